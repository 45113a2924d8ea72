"""The cost of work on a simulated host, as data."""

from typing import Annotated

import msgspec

from ordercast.core import Nanos

Cost = Annotated[Nanos, msgspec.Meta(ge=0, le=1_000_000_000_000)]


class Cpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cost of work on a host. It determines throughput and saturation."""

    receive_ns: Cost = 0
    """Service time of each packet that arrives."""
    send_ns: Cost = 0
    """Service time of each packet that leaves."""
    save_ns: Cost = 0
    """Service time of each durable save."""
    execute_ns: Cost = 0
    """Service time of each operation of a service that a replica executes."""
    copies: bool = False
    """Whether a multicast costs one send per copy (unicast fan-out) or one in total (the network copies)."""
    queue_max: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    """How much work may wait for the CPU. Packets beyond that are dropped, as by a full socket buffer."""
