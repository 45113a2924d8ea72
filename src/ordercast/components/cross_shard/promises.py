"""What replicas of shards promise: one order over all of them, and all of a transaction or none."""

import msgspec

from ordercast.components.network_ordered.promises import guarantees
from ordercast.core import Consistency, Guarantees, Order


def promises(*, durable: bool) -> Guarantees:
    """The promises of a group of replicas, for several of them."""
    return msgspec.structs.replace(
        guarantees(durable=durable),
        order=Order.ACROSS,
        groups_max=None,
        consistency=Consistency.STRICT_SERIALIZABLE,
    )
