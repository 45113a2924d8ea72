"""Small processes that do what a test tells them and remember what happened to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from ordercast.core import (
    Codec,
    Crashes,
    Delivered,
    Env,
    Explanation,
    Groups,
    Guarantees,
    HostId,
    Member,
    Message,
    Nanos,
    Node,
    NodeId,
    Payload,
    Plan,
)
from ordercast.scenario.clock import Clock
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.cpu import Cpu
from ordercast.sim.latency import Constant, Latency
from ordercast.sim.network import LatencyNetwork, Network
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.world import World


class Word(Message, frozen=True, tag=1):
    """What probes say to each other."""

    text: str


class Parcel(Message, frozen=True, tag=2):
    """What a probe sends when its application submits."""

    groups: Groups
    payload: Payload


class Probe(Member):
    """Remembers what it hears, with its own clock; `on` holds what to do for a word or a timer."""

    def __init__(self, env: Env, members: Mapping[int, tuple[NodeId, ...]]) -> None:
        super().__init__(env)
        self.members = members
        self.saved: dict[str, bytes] = {}
        self.heard: list[tuple[Nanos, NodeId, str]] = []
        self.fired: list[tuple[Nanos, str]] = []
        self.taken: list[bytes] = []
        self.on: dict[str, Callable[[Probe], None]] = {}
        self.on_submit: Callable[[Probe, Groups, bytes], bool] = Probe.spread
        self.depth = 0

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        self.saved = dict(saved)

    def on_message(self, source: NodeId, message: Message) -> None:
        self._enter()
        if isinstance(message, Word):
            self.heard.append((self.env.now, source, message.text))
            self._react(message.text)
        elif isinstance(message, Parcel):
            self.env.deliver(Delivered(message.payload, message.groups, source))
        self.depth -= 1

    def on_timer(self, name: str) -> None:
        self._enter()
        self.fired.append((self.env.now, name))
        self._react(name)
        self.depth -= 1

    def submit(self, groups: Groups, payload: bytes) -> bool:
        self._enter()
        taken = self.on_submit(self, groups, payload)
        if taken:
            self.taken.append(payload)
        self.depth -= 1
        return taken

    def spread(self, groups: Groups, payload: bytes) -> bool:
        """Multicast at once to all receivers."""
        targets = sorted({node for group in groups for node in self.members[group]})
        self.env.multicast(targets, Parcel(groups, payload))
        return True

    def refuse(self, groups: Groups, payload: bytes) -> bool:
        """A window that is always full."""
        return False

    def explain(self) -> Explanation:
        return Explanation({"heard": len(self.heard)})

    def texts(self) -> list[str]:
        return [text for _, _, text in self.heard]

    def times(self) -> list[Nanos]:
        return [time for time, _, _ in self.heard]

    def _react(self, name: str) -> None:
        if name in self.on:
            self.on[name](self)

    def _enter(self) -> None:
        assert self.depth == 0, "a process was entered while one of its handlers ran"
        self.depth += 1


def probe_plan(
    hosts: Sequence[HostId],
    groups: Mapping[int, tuple[NodeId, ...]] | None = None,
    senders: Sequence[NodeId] | None = None,
    crashes: Crashes = Crashes.ANY,
    guarantees: Guarantees | None = None,
    kind: type[Probe] = Probe,
) -> Plan:
    """Probes at these hosts; by default all are receivers of one group, and all may send."""
    ids = range(len(hosts))
    members = {0: tuple(ids)} if groups is None else groups
    return Plan(
        "probes",
        guarantees or Guarantees(crashes=crashes),
        tuple(Node(node, "probe", hosts[node], lambda env: kind(env, members)) for node in ids),
        members,
        tuple(ids if senders is None else senders),
        Codec([Word, Parcel]),
    )


class ProbeWorld(World):
    """A world of probes on a network of constant delay, started."""

    def __init__(
        self,
        hosts: Sequence[HostId] = (0, 1),
        *,
        delay: Nanos = 100,
        latency: Latency | None = None,
        conditions: Conditions = Conditions(),  # noqa: B008  (frozen)
        cpu: Cpu | Mapping[HostId, Cpu] = Cpu(),  # noqa: B008  (frozen)
        clocks: Mapping[HostId, Clock] | None = None,
        groups: Mapping[int, tuple[NodeId, ...]] | None = None,
        senders: Sequence[NodeId] | None = None,
        seed: int = 0,
        record_packets: bool = False,
        through_codec: bool = False,
        bundle_bytes: int = 0,
    ) -> None:
        def network(scheduler: Scheduler, rng: Random) -> Network:
            return LatencyNetwork(scheduler, rng, conditions, latency or Constant(delay))

        super().__init__(
            probe_plan(hosts, groups, senders),
            seed,
            network,
            cpu=cpu,
            clocks=clocks,
            record_packets=record_packets,
            through_codec=through_codec,
            bundle_bytes=bundle_bytes,
        )
        self.run(0)

    def probe(self, node: NodeId) -> Probe:
        process = self.envs[node].process
        assert isinstance(process, Probe)
        return process

    def do(self, node: NodeId, action: Callable[[Probe], None], at: Nanos | None = None) -> None:
        """Let a probe do something, as in a handler of its own."""
        when = self.now if at is None else at
        env = self.envs[node]

        def handler() -> None:
            env.now = env.clock.read(self.now) if env.clock else self.now
            action(self.probe(node))

        self.scheduler.at(when, env.host.work, 0, handler)
        if at is None:
            self.run(self.now)

    def submit_at(self, time: Nanos, node: NodeId, groups: Groups, payload: bytes) -> None:
        """Let an application submit at a time to come."""

        def submit() -> None:
            self.submit(node, groups, payload)

        self.scheduler.at(time, submit)

    def say(self, source: NodeId, target: NodeId, text: str, at: Nanos | None = None) -> None:
        """Let one probe send a word to another."""
        self.do(source, lambda probe: probe.env.send(target, Word(text)), at)
