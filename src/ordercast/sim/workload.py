"""Who submits what, when: open-loop sources and closed-loop clients.

An open-loop source submits at times of its own, however slow the system is, and latency counts from
there. A closed-loop client waits for the answers of all receivers before it goes on, as the clients of
Hydra section 7.1 do; answers travel over the same hosts and network.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random

from ordercast.core import Groups, LocalError, MessageId, Nanos, NodeId
from ordercast.sim.world import World


class Arrivals(ABC):
    """The time between one submission of a source and the next."""

    @abstractmethod
    def gap(self, rng: Random) -> Nanos | None:
        """The next gap, or None when there is no more to come."""


class QuasiPeriodic(Arrivals):
    """A narrow normal distribution around an interval (hybrid paper, section 3)."""

    def __init__(self, interval_ns: Nanos, jitter: float = 0.01) -> None:
        self._interval_ns = interval_ns
        self._std = interval_ns * jitter

    def gap(self, rng: Random) -> Nanos:
        """About the interval."""
        gap = int(rng.gauss(self._interval_ns, self._std))
        return gap if gap > 0 else 0


class Poisson(Arrivals):
    """Independent arrivals: exponential gaps with a mean."""

    def __init__(self, interval_ns: Nanos) -> None:
        self._rate = 1 / interval_ns

    def gap(self, rng: Random) -> Nanos:
        """An exponential gap."""
        return round(rng.expovariate(self._rate))


class Recorded(Arrivals):
    """Arrivals that were observed somewhere, once through."""

    def __init__(self, times_ns: Sequence[Nanos]) -> None:
        ordered = sorted(times_ns)
        self._gaps = [now - before for before, now in zip([0, *ordered], ordered, strict=False)]
        self._next = 0

    def gap(self, rng: Random) -> Nanos | None:
        """The gap as it was recorded."""
        if self._next == len(self._gaps):
            return None
        self._next += 1
        return self._gaps[self._next - 1]


class Destinations:
    """Chooses the groups of a message: how many, by a distribution, and which, evenly."""

    def __init__(self, groups: Sequence[int], spread: Sequence[float] = (1.0,)) -> None:
        if not spread or any(share < 0 for share in spread) or sum(spread) <= 0:
            raise LocalError(f"spread lists shares of messages to 1, 2, ... groups, not {list(spread)}")
        if len(spread) > len(groups):
            raise LocalError(f"spread has {len(spread)} entries, but there are {len(groups)} groups")
        self._groups = list(groups)
        self._counts = range(1, len(spread) + 1)
        self._spread = list(spread)

    def choose(self, rng: Random) -> Groups:
        """The groups of one message, ascending."""
        if len(self._spread) == 1:
            return (self._groups[int(rng.random() * len(self._groups))],)
        count = rng.choices(self._counts, self._spread)[0]
        return tuple(sorted(rng.sample(self._groups, count)))


class Workload(ABC):
    """Drives the applications of a world."""

    def __init__(self, world: World, destinations: Destinations, messages: int, payload_bytes: int) -> None:
        self.world = world
        self.remaining = messages
        self._destinations = destinations
        self._filler = bytes(max(0, payload_bytes - 8))
        self._head_bytes = min(8, payload_bytes)
        self._count = 0
        self.timed_out = 0
        """Messages whose answers a client stopped waiting for."""

    @abstractmethod
    def start(self) -> None:
        """Begin at the world's present time."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """True when nothing more will be submitted."""

    def _submit(self, sender: NodeId, rng: Random) -> tuple[MessageId, Groups] | None:
        """Submit one message, if any is left; at a sender that is down it is lost, and counts."""
        if self.remaining <= 0:
            return None
        self.remaining -= 1
        groups = self._destinations.choose(rng)
        self._count += 1
        payload = self._count.to_bytes(8, "little")[: self._head_bytes] + self._filler
        message = self.world.submit(sender, groups, payload)
        return None if message is None else (message, groups)


class OpenLoop(Workload):
    """Each sender submits at the times of its own arrivals, until so many were submitted by all."""

    def __init__(
        self,
        world: World,
        destinations: Destinations,
        messages: int,
        payload_bytes: int,
        arrivals: Sequence[Arrivals],
        until: Nanos | None = None,
    ) -> None:
        super().__init__(world, destinations, messages, payload_bytes)
        self._arrivals = dict(zip(world.plan.senders, arrivals, strict=True))
        self._open = len(self._arrivals)
        self._until = until

    def start(self) -> None:
        """Let every sender wait for its first arrival."""
        for sender in self._arrivals:
            self._next(sender, Random(f"{self.world.seed}/workload/{sender}"))

    @property
    def finished(self) -> bool:
        """True when the messages or the arrivals of all senders are used up."""
        return self.remaining <= 0 or self._open == 0

    def _next(self, sender: NodeId, rng: Random) -> None:
        gap = self._arrivals[sender].gap(rng)
        over = gap is None or (self._until is not None and self.world.now + gap > self._until)
        if gap is None or over:
            self._open -= 1
        else:
            self.world.scheduler.after(gap, self._arrive, sender, rng)

    def _arrive(self, sender: NodeId, rng: Random) -> None:
        self._submit(sender, rng)
        if self.remaining > 0:
            self._next(sender, rng)


class ClosedLoop(Workload):
    """Each sender keeps so many messages under way, the next when all receivers have answered one."""

    def __init__(
        self,
        world: World,
        destinations: Destinations,
        messages: int,
        payload_bytes: int,
        outstanding: int = 1,
        timeout_ns: Nanos = 1_000_000_000,
    ) -> None:
        super().__init__(world, destinations, messages, payload_bytes)
        self._outstanding = outstanding
        self._timeout_ns = timeout_ns
        self._awaited: dict[MessageId, tuple[NodeId, Nanos, set[NodeId]]] = {}
        self._rngs = {sender: Random(f"{world.seed}/workload/{sender}") for sender in world.plan.senders}
        world.observers.append(self._on_delivery)

    def start(self) -> None:
        """Fill every sender's window, in turn and a little apart, as real clients are."""
        for sender, rng in self._rngs.items():
            for _ in range(self._outstanding):
                self.world.scheduler.after(int(rng.random() * 10_000), self._issue, sender)

    @property
    def finished(self) -> bool:
        """True when all was submitted and answered, or given up."""
        return self.remaining <= 0 and not self._awaited

    def _issue(self, sender: NodeId) -> None:
        submitted = self._submit(sender, self._rngs[sender])
        if submitted is None:
            if self.remaining > 0:  # the sender is down: its client comes back with it
                self.world.scheduler.after(self._timeout_ns, self._issue, sender)
            return
        message, groups = submitted
        receivers = {node for group in groups for node in self.world.plan.groups[group]}
        self._awaited[message] = (sender, self.world.now, receivers)
        self.world.scheduler.after(self._timeout_ns, self._give_up, message)

    def _on_delivery(self, node: NodeId, message: MessageId, groups: Groups) -> None:
        awaited = self._awaited.get(message)
        if awaited:
            self.world.application_send(node, awaited[0], self._on_answer, node, message)

    def _on_answer(self, node: NodeId, message: MessageId) -> None:
        awaited = self._awaited.get(message)
        if awaited is None:
            return
        sender, submitted, receivers = awaited
        receivers.discard(node)
        if not receivers:
            del self._awaited[message]
            self.world.complete(sender, message, submitted)
            self._issue(sender)

    def _give_up(self, message: MessageId) -> None:
        awaited = self._awaited.pop(message, None)
        if awaited:
            self.timed_out += 1
            self._issue(awaited[0])
