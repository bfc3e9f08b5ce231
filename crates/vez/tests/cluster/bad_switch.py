"""A switch that is late, loses and confuses what members say; for kernels that have no netem.

bad_switch.py DELAY_MS JITTER_MS LOSS SWIFT WELL PORT...

Frames that come in at a PORT go to the one that has their receiver, or to all others: so many
milliseconds later, more or less; LOSS of them never, and SWIFT of them at once, before earlier
ones. The port WELL is not such: what comes in there is passed on as it is.
"""

import heapq
import random
import select
import socket
import sys
import time

SOL_PACKET, IGNORE_OUTGOING, VNET_HDR = 263, 23, 15
ALL_PROTOCOLS = 3
# Before each frame stands what a card would still have to do with it: checksums, cutting it up.
HEADER = 10
FRAME_MAX = 1 << 17


def open_port(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    port.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    port.setsockopt(SOL_PACKET, VNET_HDR, 1)
    port.bind((name, 0))
    return port


def main():
    delay, jitter, loss, swift = map(float, sys.argv[1:5])
    well, others = sys.argv[5], sys.argv[6:]
    ports = [open_port(name) for name in [well, *others]]
    homes, late, number = {}, [], 0
    print("ready", flush=True)
    while True:
        wait = max(0, late[0][0] - time.monotonic()) if late else None
        for port in select.select(ports, [], [], wait)[0]:
            frame = port.recv(FRAME_MAX)
            receiver, sender = frame[HEADER:HEADER + 6], frame[HEADER + 6:HEADER + 12]
            homes[sender] = port
            due = time.monotonic()
            if port is not ports[0]:
                if random.random() < loss:
                    continue
                if swift <= random.random():
                    due += (delay + random.uniform(-jitter, jitter)) / 1000
            home = homes.get(receiver)
            for other in [home] if home else [other for other in ports if other is not port]:
                number += 1
                heapq.heappush(late, (due, number, other, frame))
        while late and late[0][0] <= time.monotonic():
            _, _, port, frame = heapq.heappop(late)
            try:
                port.send(frame)
            except OSError:
                # Its receiver has gone.
                pass


main()
