"""Shops that sell from one stock: all hear of all orders in the same order, and agree on which are served."""

import sys

import ordercast

stock = 10
with ordercast.join_sync("cluster.toml", group="all") as group:
    for pieces in sys.argv[1:]:
        group.send(pieces.encode())
    while (delivery := group.receive(timeout=5)) is not None:
        if not isinstance(delivery, ordercast.Received):
            print(delivery)  # a message that will not come, or a change of configuration
            continue
        wanted = int(delivery.payload)
        sold = wanted if wanted <= stock else 0
        stock -= sold
        print(f"order {delivery.name} of {wanted}: {'served' if sold else 'refused'}, {stock} left")
