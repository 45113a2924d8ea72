"""Programs that share a dictionary: one that comes later gets what the others have, and goes on with them.

The cluster has a protocol with views, with the option application_state, and joiners.
"""

import json
import sys

import ordercast

entries: dict[str, str] = {}
with ordercast.join_sync("cluster.toml", group="all") as group:
    for entry in sys.argv[1:]:
        group.send(entry.encode())
    while (delivery := group.receive(timeout=5)) is not None:
        if isinstance(delivery, ordercast.Received):
            key, _, value = delivery.payload.decode().partition("=")
            entries[key] = value
        elif isinstance(delivery, ordercast.StateWanted):  # a newcomer needs the dictionary as it is now
            group.give_state(delivery, json.dumps(entries).encode())
        elif isinstance(delivery, ordercast.State) and delivery.donor is not None:  # None: nobody has one
            entries = json.loads(delivery.data)
print(json.dumps(entries, sort_keys=True))
