"""The ordering component of EpTO as the paper prints it (Algorithm 2), defects and all."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf

from ordercast.core import Env, Plan, Process
from ordercast.core.plan import Factory
from ordercast.protocols.epto.messages import Event, Key
from ordercast.protocols.epto.ordering import Ordering
from ordercast.protocols.epto.peer import Peer


class Printed(Ordering):
    """Compares timestamps alone where the source should decide: in lines 9 and 23."""

    def __init__(self, ttl: int) -> None:
        super().__init__(ttl)
        self.limit = ttl
        self.received: dict[Key, tuple[Event, int]] = {}
        self.delivered: set[Key] = set()

    def __len__(self) -> int:
        return len(self.received)

    def admit(self, key: Key, event: Event, ttl: int, round_number: int) -> bool:
        """Lines 8 to 14."""
        if key in self.delivered or key[0] < self.last[0]:
            return False
        born = min(round_number - ttl, self.received.get(key, (event, round_number))[1])
        self.received[key] = (event, born)
        return True

    def stable(self, round_number: int) -> Iterator[tuple[Key, Event]]:
        """Lines 15 to 30."""
        old = {key for key, (_, born) in self.received.items() if round_number - born > self.limit}
        least = min((key[0] for key in self.received if key not in old), default=inf)
        for key in sorted(key for key in old if key[0] <= least):
            self.delivered.add(key)
            self.last = key
            yield key, self.received.pop(key)[0]

    def waiting(self, round_number: int) -> Iterable[tuple[Key, Event, int]]:
        """Every known event with its age, in order."""
        return [(key, event, round_number - born) for key, (event, born) in sorted(self.received.items())]


def printed(plan: Plan, ttl: int) -> Plan:
    """A plan of EpTO whose peers order as printed."""

    def changed(make: Factory) -> Factory:
        def factory(env: Env) -> Process:
            peer = make(env)
            assert isinstance(peer, Peer)
            peer._order = Printed(ttl)
            return peer

        return factory

    return replace(plan, nodes=tuple(replace(node, factory=changed(node.factory)) for node in plan.nodes))
