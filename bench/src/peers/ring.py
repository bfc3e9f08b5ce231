# Chang-Roberts with everyone starting, in SimPy: a process and a mailbox each, one unit a hop.
import sys
import time

import simpy

uids = [int(line) for line in sys.stdin]
n = len(uids)
env = simpy.Environment()
mailboxes = [simpy.Store(env) for _ in uids]
sent = 0


def send(to, message):
    # A message is a timeout that puts itself into the mailbox: leaner than a process a message.
    global sent
    sent += 1
    arrival = env.timeout(1, message)
    arrival.callbacks.append(lambda event: mailboxes[to].put(event.value))


def candidate(node):
    own, following = uids[node], (node + 1) % n
    mailbox = mailboxes[node]
    send(following, ("election", own))
    while True:
        kind, uid = yield mailbox.get()
        if kind == "election":
            if uid > own:
                send(following, (kind, uid))
            elif uid == own:
                send(following, ("elected", own))
        else:
            if uid != own:
                send(following, (kind, uid))
            return


for node in range(n):
    env.process(candidate(node))
began = time.process_time()
env.run()
print(sent, time.process_time() - began)
