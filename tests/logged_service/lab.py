"""A service with a log in the simulator: calls of clients one by one, and what became of them."""

from collections.abc import Mapping
from zlib import crc32

from ordercast.components.logged_service import LogClient, LoggedService
from ordercast.core import MILLISECOND, MessageId, Nanos, ServiceType
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.spec import Scenario
from ordercast.services.built_in import Counter
from ordercast.sim.latency import Uniform
from ordercast.sim.network import LatencyNetwork
from ordercast.sim.world import World
from ordercast.trace import READ, RESTORED, Event, Kind

PROTOCOLS = ("multi_paxos", "fast_paxos")


class ServiceWorld(World):
    """Replicas 0, 1, 2, ... of a counter, and clients behind them."""

    def __init__(
        self,
        protocol: str,
        replicas: int = 3,
        clients: int = 2,
        options: Mapping[str, object] | None = None,
        conditions: Conditions | None = None,
        seed: int = 0,
    ) -> None:
        scenario = Scenario(
            protocol=protocol,
            receivers=replicas,
            senders=clients,
            service="counter",
            options={"checkpoint_every": 1, **(options or {})},
        )
        self.replicas = replicas
        super().__init__(
            scenario.plan(),
            seed,
            lambda scheduler, rng: LatencyNetwork(
                scheduler, rng, conditions or Conditions(), Uniform(20_000, 200_000)
            ),
            through_codec=True,
        )
        self.run(0)
        self.run_ms(1)

    def run_ms(self, duration_ms: float) -> None:
        self.run(self.now + Nanos(round(duration_ms * MILLISECOND)))

    def add(self, client: int = 0) -> MessageId:
        """A client adds one to the counter, and returns the name of the operation."""
        return self._call(client, ADD.pack((1,), {}), None)

    def ask(self, client: int = 0) -> MessageId:
        """A client reads the counter."""
        return self._call(client, GET.pack((), {}), READ)

    def _call(self, client: int, operation: bytes, label: str | None) -> MessageId:
        message = self.submit(self.replicas + client, (0,), operation, label)
        assert message is not None
        return message

    def replica(self, index: int) -> LoggedService:
        process = self.envs[index].process
        assert isinstance(process, LoggedService)
        return process

    def client(self, index: int = 0) -> LogClient:
        process = self.envs[self.replicas + index].process
        assert isinstance(process, LogClient)
        return process

    def leader(self) -> int | None:
        """The living leader of the highest ballot."""
        leaders = [i for i in range(self.replicas) if self.envs[i].host.up and self.replica(i).log.is_leader]
        return max(leaders, key=lambda i: self.replica(i).log.ballot, default=None)

    def events(self, kind: Kind) -> list[Event]:
        return [event for event in map(Event._make, self.rows) if event.kind == kind]

    def answers(self) -> dict[MessageId, Event]:
        """The answers of all clients; none has two."""
        found = self.events(Kind.REPLY)
        answered = {event.message: event for event in found if event.message is not None}
        assert len(answered) == len(found)
        return answered

    def executed(self, replica: int) -> list[MessageId]:
        return [
            event.message
            for event in self.events(Kind.DELIVER)
            if event.node == replica and event.message is not None
        ]

    def restored(self, replica: int) -> int:
        found = [event for event in self.events(Kind.CHECKPOINT) if event.node == replica]
        return sum(event.label == RESTORED for event in found)

    def states_agree(self) -> None:
        """Replicas that note their state at the same place have the same state."""
        states: dict[int | None, tuple[int | None, int | None]] = {}
        for event in self.events(Kind.CHECKPOINT):
            state = (event.size, event.digest)
            assert states.setdefault(event.stamp_clock, state) == state, f"at {event.stamp_clock}"

    def block(self, *ways: tuple[int, int]) -> None:
        """Let nothing pass on these ways, and everything on all others."""
        self.network.blocked = set(ways)

    def isolate(self, node: int) -> None:
        others = [env.me for env in self.envs if env.me != node]
        self.block(*((node, other) for other in others), *((other, node) for other in others))


ADD, GET = (ServiceType.of(Counter).find(name) for name in ("add", "get"))


def result(count: int) -> int:
    """The digest of the answer that says so."""
    return crc32(ADD.pack_result(count))
