"""What python's etcd3 can do, said line by line, so that two servers can be compared.

Usage: etcd3_script.py PORT
"""

import faulthandler
import sys
import threading

import etcd3

# Whoever waits for this wants to know where it stopped.
faulthandler.dump_traceback_later(120, exit=True)
client = etcd3.client(host="127.0.0.1", port=int(sys.argv[1]))


def say(*what):
    print(*what, flush=True)


def shown(metadata):
    return metadata.key, metadata.create_revision, metadata.mod_revision, metadata.version


# Keys.
client.put("a", "1")
client.put("a", "2")
client.put("b/1", "x")
client.put("b/2", "y")
value, metadata = client.get("a")
say("get", value, shown(metadata))
say("prefix", [(value, shown(metadata)) for value, metadata in client.get_prefix("b/")])
say("sorted", [value for value, _ in client.get_prefix("b/", sort_order="descend", sort_target="key")])
say("missing", client.get("nothing")[0])
say("replace", client.replace("a", "2", "3"), client.replace("a", "2", "4"), client.get("a")[0])
say("if not there", client.put_if_not_exists("a", "z"), client.put_if_not_exists("c", "z"))
say("delete", client.delete("a"), client.delete("a"))
say("delete all", client.delete_prefix("b/").deleted)

# Transactions.
done, answers = client.transaction(
    compare=[client.transactions.version("t") == 0],
    success=[client.transactions.put("t", "first"), client.transactions.get("t")],
    failure=[client.transactions.get("t")],
)
say("transaction", done, len(answers))
done, answers = client.transaction(
    compare=[client.transactions.value("t") == b"else"],
    success=[client.transactions.delete("t")],
    failure=[client.transactions.get("t")],
)
say("transaction", done, [[value for value, _ in answer] for answer in answers])

# Leases.
lease = client.lease(100, 4711)
client.put("leased", "x", lease=lease)
say("lease", lease.id, lease.granted_ttl, lease.keys, 0 < lease.remaining_ttl <= 100)
say("kept alive", [answer.TTL for answer in lease.refresh()])
lease.revoke()
say("revoked", client.get("leased")[0])

# Watches.
events, cancel = client.watch_prefix("w/", prev_kv=True)
client.put("w/1", "one")
client.put("w/1", "two")
client.delete("w/1")
for _ in range(3):
    event = next(events)
    say("event", type(event).__name__, event.key, event.value)
cancel()

# Locks, as this library does them.
with client.lock("door", ttl=60) as door:
    say("inside", door.is_acquired())
    say("a second one", client.lock("door", ttl=60).acquire(timeout=0.2))
say("outside", door.is_acquired())
entered = []


def enter(name):
    with etcd3.client(host="127.0.0.1", port=int(sys.argv[1])).lock("door", ttl=60):
        entered.append(name)


threads = [threading.Thread(target=enter, args=(name,)) for name in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say("entered", sorted(entered))

# The server itself.
say("members", [member.name for member in client.members])
say("is leader", client.status().leader is not None)
client.compact(client.get("c")[1].mod_revision)
