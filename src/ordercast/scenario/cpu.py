"""What work costs on a simulated host, as data."""

from typing import Annotated

import msgspec

from ordercast.core import Nanos

Cost = Annotated[Nanos, msgspec.Meta(ge=0, le=1_000_000_000_000)]


class Cpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What work costs on a host. Throughput and saturation come from here."""

    receive_ns: Cost = 0
    """Service time of each packet that arrives."""
    send_ns: Cost = 0
    """Service time of each packet that leaves."""
    save_ns: Cost = 0
    """Service time of each durable save."""
    copies: bool = False
    """Whether a multicast costs one send a copy (unicast fan-out) or one in all (the network copies)."""
    queue_max: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    """Work that may wait for the CPU; packets beyond that are dropped, as a full socket buffer does."""
