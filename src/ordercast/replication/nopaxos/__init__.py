"""NOPaxos: replication over the order of one sequencer, in one round trip (OSDI 2016)."""

from ordercast.replication.nopaxos.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
