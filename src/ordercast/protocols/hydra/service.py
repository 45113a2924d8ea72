"""The configuration service: replicas that agree on the sequence of configurations (section 4.4).

The leader of the log hears suspicions of receivers and sequencers that want to join, plans a step, collects
reports, and decides when a quorum of each group has reported. What it has collected is lost with it: its
successor announces the planned step again, and receivers report again, the same.

When a sequencer is removed: as soon as so many receivers of one group suspect it that the others are no
quorum; if fewer do, after they have for `LONELY` times as long. One receiver with a bad link must not take
a sequencer away from everybody at once, but neither is it left behind for ever. A sender complains of a
sequencer that does not stamp what it is sent. Then the leader probes the sequencer, and removes it if it
answers nothing for as long as a receiver would wait; if it answers, the sender is one with a bad link.
"""

from collections.abc import Mapping
from functools import partial

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.consensus import Replica
from ordercast.core import (
    Delivered,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Message,
    Nanos,
    NodeId,
    RemoteError,
    Stack,
    Wait,
    named,
)
from ordercast.protocols.hydra.audience import Audience
from ordercast.protocols.hydra.limits import Limits, first_after
from ordercast.protocols.hydra.messages import (
    NOBODY,
    Announce,
    BlindReport,
    Echo,
    Fetch,
    Join,
    Rebirth,
    Report,
    Steps,
    Suspect,
    Welcome,
)
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.registry import (
    Add,
    Claim,
    Command,
    GiveUp,
    Reborn,
    Registry,
    Remove,
    decode,
    encode,
)
from ordercast.protocols.hydra.reports import Reports
from ordercast.protocols.hydra.suspicions import Suspicions

BATCH = 256
"""How many steps one message has."""
HURRY = 10
"""While a step is planned, announcements come this many times as often."""


class ConfigurationReplica(Stack):
    """One replica of the service."""

    def __init__(
        self,
        env: Env,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        initial: Mapping[int, NodeId],
        service: tuple[NodeId, ...],
        audience: tuple[NodeId, ...],
        senders: tuple[NodeId, ...],
        options: HydraOptions,
    ) -> None:
        super().__init__(env)
        self._clients = frozenset(senders)
        """All senders."""
        self._senders = self._clients if options.resend else frozenset()
        """The senders that keep what they send."""
        self._groups = members
        self._members = {group: nodes for group, nodes in members.items() if nodes}
        self._home = {node: group for group, nodes in members.items() for node in nodes}
        self._audience = Audience(audience, service, options)
        self._limits = Limits(service, len(members), first_after(members.values()))
        self._options = options
        self._registry = Registry(initial, options.history)
        self._log = self.embed("log", partial(self._make_replica, service), CONSENSUS_MESSAGES)
        self._reports = self._make_reports()
        self._suspicions = Suspicions(
            env, self._members.values(), self._senders, self._reports.quorum, options.suspect_ns
        )
        self._joins: dict[NodeId, int] = {}
        self._rebirths: dict[NodeId, int] = {}
        """By receiver: the life that wants to be a new member."""
        self._proposed: set[Command] = set()
        self._refused = 0
        """Commands in the log that no correct leader proposes."""
        self._ballot = -1
        self._planned_since: Nanos = 0
        self._heard: set[NodeId] = set()
        """Sequencers that have asked for their number since this replica started."""

    def _make_replica(self, service: tuple[NodeId, ...], env: Env) -> Replica:
        registry, options = self._registry, self._options.consensus
        return Replica(env, service, options, snapshot=registry.snapshot, restore=registry.restore)

    def _make_reports(self) -> Reports:
        return Reports(self._groups, all_needed=self._options.quorum == "all")

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Start the log, and announce from time to time."""
        super().on_start(saved)
        self.env.set_timer("announce", self._options.announce_ns)

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """Handle a message; only the leader acts, but every replica notes who asked for a number."""
        self._check(source, message)
        if isinstance(message, Join):
            self._heard.add(source)
        if not self._log.is_leader:
            return
        self._take_office()
        match message:
            case Report() | BlindReport():
                self._on_report(source, message)
            case Suspect():
                self._on_suspect(source, message)
            case Join():
                self._on_join(source, message)
            case Rebirth():
                self._on_rebirth(source, message)
            case Fetch():
                self._on_fetch(source, message)
            case Echo():
                self._suspicions.on_echo(source)

    def _check(self, source: NodeId, message: Message) -> None:
        """Refuse what no node of its role says."""
        match message:
            case Join() if source not in self._clients:
                self._limits.check_join(source, message.life, self.env.now)
            case Report() | BlindReport() | Rebirth() if source not in self._home:
                raise RemoteError(f"node {source} sent {named(message)}, but is no receiver")
            case Report():
                self._limits.check_report(source, message, self.env.now)
            case Rebirth():
                self._limits.check_life(source, message.life, self.env.now)
            case Suspect() if source not in self._home and source not in self._senders:
                raise RemoteError(f"node {source} suspects sequencers, but neither sends nor receives")
            case Suspect() | BlindReport() | Fetch() | Echo():
                pass
            case _:
                raise RemoteError(f"node {source} sent {named(message)} to the service")

    def on_own_timer(self, name: str) -> None:
        """Time to announce."""
        if self._log.is_leader:
            self.env.multicast(self._audience.nodes, self._announcement())
        if self._log.in_flight == 0:
            self._proposed.clear()  # what was refused is proposed again
        planned = self._registry.planned is not None
        self.env.set_timer("announce", max(1, self._options.announce_ns // (HURRY if planned else 1)))

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Announce to sequencers that came later too, and want that many more, unless a target is set."""
        self._limits.know(roles)
        self._audience.know(roles)
        super().on_nodes(roles)

    def explain_own(self) -> Explanation:
        """The receivers whose reports the planned step lacks."""
        registry = self._registry
        state: dict[str, str | int] = {
            "role": "configuration replica",
            "configuration": registry.config,
            "sequencers": ", ".join(map(str, sorted(registry.active))) or "none",
        }
        if self._refused:
            state["commands refused"] = self._refused
        waits: list[Wait] = []
        planned = registry.planned
        if planned is not None and self._log.is_leader:
            what = f"step {registry.steps + 1} (sequencer {planned.sequencer} {planned.change})"
            lacking = self._reports.lacking
            waits.append(
                Wait(
                    what,
                    f"a report from nodes {', '.join(map(str, lacking))}",
                    self._planned_since,
                    on=tuple(lacking),
                )
            )
        return Explanation(state, tuple(waits), waits[0].subject if waits else "")

    # What comes

    def _on_report(self, source: NodeId, report: Report | BlindReport) -> None:
        registry = self._registry
        planned = registry.planned
        if planned and (report.step, report.sequencer) == (registry.steps, planned.sequencer):
            self._reports.take(source, report)

    def _on_suspect(self, source: NodeId, message: Suspect) -> None:
        registry = self._registry
        planned = registry.planned.sequencer if registry.planned else None
        if source in self._senders:
            for sequencer in message.sequencers:
                if sequencer in registry.active:
                    self._suspicions.probe(registry.active[sequencer])
        for sequencer in message.sequencers:
            if sequencer in registry.active or sequencer == planned:
                self._suspicions.take(source, sequencer)

    def _on_join(self, source: NodeId, message: Join) -> None:
        life, _ = self._registry.lives.get(source, (-1, 0))
        if life == message.life:
            self._welcome(source)
        elif message.life > life:
            self._joins[source] = message.life

    def _on_rebirth(self, source: NodeId, message: Rebirth) -> None:
        life = self._registry.reborn.get(source, -1)
        if life == message.life:
            self.env.send(source, self._registry.revival(source))
        elif message.life > life:
            self._rebirths[source] = message.life

    def _on_fetch(self, source: NodeId, message: Fetch) -> None:
        registry = self._registry
        start = max(message.start, registry.forgotten)
        steps = tuple(registry.kept[start - registry.forgotten :][:BATCH])
        if steps and (source in self._home or source in self._senders):
            self.env.send(source, Steps(start, steps))
        self.env.send(source, self._announcement())

    def _announcement(self) -> Announce:
        registry = self._registry
        active = tuple(sorted(registry.active.items()))
        silent = tuple(number for number, node in active if self._is_silent(number, node))
        latest = registry.kept[-1] if registry.kept else None
        return Announce(registry.steps, active, registry.planned, latest, silent)

    def _is_silent(self, number: int, node: NodeId) -> bool:
        """Whether messages to a sequencer may be lost, because it has no number yet or lost it.

        This replica does not know that of a sequencer that has not contacted it: after a restart of all it
        has a new life. If it has not, it says so when it is told that it counts as silent.
        """
        planned = self._registry.planned
        leaving = planned is not None and planned.change == "removed" and planned.sequencer == number
        unknown = node not in self._heard or not self._registry.claimed(number, node)
        return leaving or unknown or self._is_reborn(number, node)

    def _is_reborn(self, number: int, node: NodeId) -> bool:
        """Whether a node asks for a number in a later life: then it has lost the one that it had."""
        life, own = self._registry.lives.get(node, (0, 0))
        return own == number and self._joins.get(node, life) > life

    def _welcome(self, node: NodeId) -> None:
        """Tell a sequencer its number, even one that was given up meanwhile.

        It then finds itself missing from the configuration, and asks again in a new life.
        """
        registry = self._registry
        life, number = registry.lives[node]
        planned = registry.planned is not None and registry.planned.sequencer == number
        self.env.send(node, Welcome(life, number, registry.steps + planned))

    # What the leader does

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """The log has decided on a command."""
        assert isinstance(delivery, Delivered)
        registry = self._registry
        try:
            command = decode(delivery.payload)
        except RemoteError:  # no correct leader proposes it, and no replica obeys it
            self._refused += 1
            return
        steps, planned = registry.steps, registry.planned
        registry.apply(command)
        claimed = isinstance(command, Claim)
        self._proposed.discard(command)
        if isinstance(command, Claim | Add) and self._log.is_leader and command.node in registry.lives:
            self._joins.pop(command.node, None)
            self._welcome(command.node)
        if isinstance(command, Reborn) and self._log.is_leader:
            self._rebirths.pop(command.node, None)
            self.env.send(command.node, registry.revival(command.node))
        if self._log.is_leader and (claimed or registry.steps != steps or registry.planned != planned):
            self.env.multicast(self._audience.nodes, self._announcement())
        if registry.steps != steps or registry.planned != planned:
            self._reports.clear()
            self._planned_since = self.env.now
            if registry.planned is not None:
                self.env.set_timer("announce", max(1, self._options.announce_ns // HURRY))

    def conclude(self) -> None:
        """Propose what is due, as the leader."""
        if not self._log.is_leader:
            return
        self._take_office()
        command = self._due()
        if command is not None and command not in self._proposed:
            self._proposed.add(command)  # before, for a service of one applies it at once
            if not self._log.propose(encode(command)):
                self._proposed.discard(command)

    def _take_office(self) -> None:
        """Begin a leadership: nothing is collected yet; announce the state of the service."""
        if self._log.ballot != self._ballot:
            self._ballot = self._log.ballot
            self._reports.clear()
            self._suspicions.clear()
            self._joins.clear()
            self._rebirths.clear()
            self._proposed.clear()
            self._planned_since = self.env.now
            self.env.multicast(self._audience.nodes, self._announcement())

    def _due(self) -> Command | None:
        registry = self._registry
        first = self._claim() or self._rebirth()
        if first is not None:
            return first
        if registry.planned is None:
            return self._removal() or self._addition()
        if self._reports.has_quorums():
            removes = registry.planned.change == "removed"
            if removes and self._senders and self._reports.lacking and self._is_early():
                return None
            return self._reports.decision(registry.steps, registry.planned)
        if registry.planned.change == "added":
            late = self.env.now - self._planned_since > self._options.addition_ns
            if late or self._condemned(registry.planned.sequencer):
                return GiveUp(registry.steps)
        return None

    def _is_early(self) -> bool:
        """Whether it is worth to wait for the last reports: only if all receivers have reported, messages to
        the sequencer may be sent again."""
        return self.env.now - self._planned_since < self._options.announce_ns

    def _claim(self) -> Claim | None:
        for node, life in sorted(self._joins.items()):
            if self._registry.unclaimed(node) is not None:
                claim = Claim(node, life)
                if claim not in self._proposed:
                    return claim
        return None

    def _rebirth(self) -> Reborn | None:
        wanted = [Reborn(node, life) for node, life in sorted(self._rebirths.items())]
        return next((reborn for reborn in wanted if reborn not in self._proposed), None)

    def _removal(self) -> Remove | None:
        registry = self._registry
        self._suspicions.forget_others(registry.active)
        for sequencer, node in sorted(registry.active.items()):
            if self._is_reborn(sequencer, node) or self._condemned(sequencer):
                return Remove(sequencer)
        return None

    def _addition(self) -> Add | None:
        registry = self._registry
        if len(registry.active) >= self._audience.target:
            return None
        busy = set(registry.active.values())
        for node, life in sorted(self._joins.items()):
            if node not in busy:
                return Add(node, life)
        return None

    def _condemned(self, sequencer: int) -> bool:
        """Whether enough nodes have suspected a sequencer for long enough."""
        return self._suspicions.condemn(sequencer, self._registry.active.get(sequencer, NOBODY))
