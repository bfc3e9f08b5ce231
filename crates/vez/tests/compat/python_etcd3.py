"""What python's etcd3 makes of a server: the same script for each, a line for each answer.

Takes the port; prints nothing that may differ between two right servers: revisions are told as
distances from the first, leases and members by what can be compared of them.
"""

import json
import sys
import threading

import etcd3

client = etcd3.client(host="127.0.0.1", port=int(sys.argv[1]), timeout=10)
base = client.put("start", "0").header.revision


def tell(what, *facts):
    print(json.dumps([what, *facts]), flush=True)


def key(value, meta):
    if meta is None:
        return None
    revisions = [meta.create_revision - base, meta.mod_revision - base, meta.version]
    return [meta.key.decode(), None if value is None else value.decode(), *revisions]


def keys():
    client.put("a", "1")
    client.put("a", "2")
    client.put("b/1", "x")
    client.put("b/2", "y")
    tell("get", key(*client.get("a")))
    tell("missing", key(*client.get("nothing")))
    tell("prefix", [key(*pair) for pair in client.get_prefix("b/")])
    descending = client.get_prefix("b/", sort_order="descend", sort_target="key")
    tell("descending", [key(*pair) for pair in descending])
    tell("range", [key(*pair) for pair in client.get_range("a", "b/2")])
    tell("keys only", [key(*pair) for pair in client.get_prefix("b/", keys_only=True)])
    tell("replace", client.replace("a", "2", "3"), client.replace("a", "2", "4"))
    tell("put if not exists", client.put_if_not_exists("a", "5"), client.put_if_not_exists("c", "6"))
    tell("delete", client.delete("c"), client.delete("c"))
    tell("delete prefix", client.delete_prefix("b/").deleted)
    tell("all", [key(*pair) for pair in client.get_all()])


def transactions():
    compare, operations = client.transactions, client.transactions
    for value in ["3", "other"]:
        done, answers = client.transaction(
            compare=[compare.value("a") == value, compare.version("a") > 1],
            success=[operations.put("t", "yes"), operations.get("t")],
            failure=[operations.get("a"), operations.delete("t")],
        )
        read = [[key(*pair) for pair in answer] for answer in answers if isinstance(answer, list)]
        tell("transaction", done, read)


def leases():
    lease = client.lease(30)
    client.put("leased", "1", lease)
    tell("lease", lease.granted_ttl, [name.decode() for name in lease.keys])
    tell("keep-alive", [answer.TTL for answer in client.refresh_lease(lease.id)])
    client.revoke_lease(lease.id)
    tell("revoked", key(*client.get("leased")))
    try:
        client.put("leased", "1", lease)
    except Exception as error:
        cause = getattr(error, "details", lambda: str(error))()
        tell("no such lease", cause)


def watching():
    events, cancel = client.watch_prefix("w/")
    client.put("w/1", "a")
    client.delete("w/1")
    for _ in range(2):
        event = next(events)
        tell(type(event).__name__, event.key.decode(), event.value.decode(), event.version)
    cancel()
    past, cancel = client.watch("a", start_revision=base + 1)
    tell("from the past", [next(past).value.decode() for _ in range(3)])
    cancel()


def locks():
    first = client.lock("door", ttl=30)
    second = client.lock("door", ttl=30)
    tell("locks", first.acquire(timeout=5), second.acquire(timeout=0))
    turn = []
    waiting = threading.Thread(target=lambda: turn.append(second.acquire(timeout=10)))
    waiting.start()
    tell("release", first.release())
    waiting.join()
    tell("its turn", turn)
    tell("holds", first.is_acquired(), second.is_acquired(), second.release())


def server():
    members = list(client.members)
    tell("members", len(members), client.status().leader.id == members[0].id)
    client.compact(client.put("end", "0").header.revision)
    try:
        past, cancel = client.watch("a", start_revision=base)
        next(past)
    except Exception as error:
        tell("compacted", type(error).__name__, error.compacted_revision - base)


for part in [keys, transactions, leases, watching, locks, server]:
    part()
