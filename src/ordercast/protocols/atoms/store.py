"""A replica of the store of groups and their members ([atoms] section 3: a distributed data store).

The leader of its log hears requests of subscribers and signs of life of sequencing nodes. It prepares a
change, has the epochs that it touches sealed, collects how far their logs have come, and decides. What it has
collected is lost with it: its successor asks again, and nodes report again, the same.
"""

from collections.abc import Mapping
from functools import partial
from itertools import islice

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.consensus import Barrier, Replica
from ordercast.core import (
    Delivered,
    Delivery,
    Env,
    Explanation,
    GroupId,
    LocalError,
    Message,
    Nanos,
    NodeId,
    RemoteError,
    Stack,
    Wait,
)
from ordercast.protocols.atoms.commands import (
    Command,
    Decide,
    Final,
    Greet,
    Prepare,
    Request,
    decode,
    encode,
)
from ordercast.protocols.atoms.limits import Limits
from ordercast.protocols.atoms.messages import (
    BATCH,
    Alive,
    Ask,
    Lagging,
    Plans,
    Receipt,
    Route,
    Seal,
    Sealed,
    Told,
    Unheard,
)
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.parts import parts
from ordercast.protocols.atoms.records import Post
from ordercast.protocols.atoms.registry import Registry
from ordercast.protocols.atoms.sealing import Reports

TICK = "tick"
BEGINNING = "beginning"
REQUESTS_MAX = 256
"""Requests of subscribers in one change, and subscribers that have missed too much."""
UNHEARD_MAX = 1024
"""Questions about groups without members that wait for the log."""


class StoreReplica(Stack):
    """One replica."""

    def __init__(
        self,
        env: Env,
        registry: Registry,
        replicas: tuple[NodeId, ...],
        limits: Limits,
        options: AtomsOptions,
    ) -> None:
        super().__init__(env)
        self._registry = registry
        self._beginning = registry.digest()
        self._limits = limits
        self._options = options
        self._log = self.embed("log", partial(self._make_replica, replicas), CONSENSUS_MESSAGES)
        self._ballot = -1
        self._proposed: set[Command] = set()
        self._refused = 0
        """Commands in the log that no correct leader proposes."""
        self._heard: dict[NodeId, Nanos] = {}
        """When each sequencing node gave its last sign of life."""
        self._alive: dict[NodeId, Alive] = {}
        self._asks: dict[NodeId, dict[int, Ask]] = {}
        """By subscriber: its requests by number, all of its latest life."""
        self._lagging: set[tuple[GroupId, NodeId]] = set()
        self._reports = Reports(registry, options.copies)
        self._unheard: list[tuple[NodeId, Unheard, Barrier]] = []
        self._since: Nanos = 0

    def _make_replica(self, replicas: tuple[NodeId, ...], env: Env) -> Replica:
        registry, options = self._registry, self._options.consensus
        return Replica(env, replicas, options, snapshot=registry.snapshot, restore=registry.restore)

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Start the log, which says what became of the groups of the beginning: they must be the same."""
        if saved.get(BEGINNING, self._beginning) != self._beginning:
            raise LocalError(
                "atoms: the saved state is that of other groups, nodes or options than the plan has now;"
                " go back to those, or begin anew without saved state"
            )
        if BEGINNING not in saved:
            self.env.save(BEGINNING, self._beginning)
        super().on_start(saved)
        self.env.set_timer(TICK, self._options.heartbeat_ns)

    # What comes

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """Handle a message; only the leader acts."""
        self._limits.check(source, message)
        if not self._log.is_leader:
            return
        self._take_office()
        match message:
            case Alive():
                self._on_alive(source, message)
            case Ask():
                self._on_ask(source, message)
            case Sealed():
                self._on_sealed(message)
            case Unheard():
                self._on_unheard(source, message)
            case Lagging():
                self._lagging.add((message.group, message.node))

    def on_own_timer(self, name: str) -> None:
        """Ask again for what is missing."""
        if self._log.is_leader:
            self._take_office()
            if self._log.in_flight == 0:
                self._proposed.clear()  # what was refused is proposed again
            self._seal()
        self.env.set_timer(TICK, self._options.heartbeat_ns)

    def _on_alive(self, source: NodeId, message: Alive) -> None:
        known = self._alive.get(source)
        if known is not None and message.life < known.life:
            return
        self._heard[source] = self.env.now
        self._alive[source] = message
        self._send_plans(source)

    def _send_plans(self, node: NodeId) -> None:
        """Send a node the plans that it lacks."""
        since, latest = self._alive[node].version, self._registry.version
        if since >= latest:
            return
        plans = sorted(
            (plan for plan in self._registry.plans.values() if plan.version > since), key=lambda p: p.version
        )
        first = next(parts(plans, BATCH))
        upto = latest if len(first) == len(plans) else first[-1].version
        self.env.send(node, Plans(since, upto, latest, first))

    def _on_ask(self, source: NodeId, message: Ask) -> None:
        life, number = self._registry.asked.get(source, (0, 0))
        if message.life < life:
            return
        asks = self._asks.setdefault(source, {})
        for stale in [one for one, ask in asks.items() if ask.life < message.life or one <= number]:
            del asks[stale]
        if (message.life, message.number) > (life, number):
            asks[message.number] = message
        self._tell(source)

    def _tell(self, node: NodeId) -> None:
        """Tell a subscriber where it is."""
        registry = self._registry
        life, number = registry.asked.get(node, (0, 0))
        memberships = tuple(registry.memberships.get(node, {}).values())
        settled = not registry.concerns(node)
        self.env.send(node, Told(life, number, registry.next_label, memberships, settled))

    def _on_sealed(self, message: Sealed) -> None:
        if message.change != self._registry.change + 1:
            return
        plans = self._registry.plans
        for report in message.reports:
            plan = plans.get(report.group)
            if plan is not None and plan.label in message.labels:
                self._limits.check_report(message.post.node, report, plan)
                self._reports.take(message, report, plan)

    def _on_unheard(self, source: NodeId, message: Unheard) -> None:
        """A publisher wants to know whether really nobody receives a group."""
        plan = self._registry.plans.get(message.group)
        if plan is not None and plan.hops:
            self.env.send(source, Route(message.group, plan.version, plan.ingress))
            return
        barrier = self._log.barrier()
        if barrier is not None and len(self._unheard) < UNHEARD_MAX:
            self._unheard.append((source, message, barrier))

    # What the leader does

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """The log has decided on a command."""
        assert isinstance(delivery, Delivered)
        try:
            command = decode(delivery.payload)
        except RemoteError:  # no correct leader proposes it, and no replica obeys it
            self._refused += 1
            return
        registry = self._registry
        change, moves = registry.change, () if registry.planned is None else registry.planned.moves
        registry.apply(command)
        self._proposed.discard(command)
        if not self._log.is_leader:
            return
        if isinstance(command, Greet):
            self._tell(command.node)
        if isinstance(command, Prepare):
            self._since = self.env.now
            self._lagging -= set(command.lost)
            self._seal()
        if registry.change != change:
            self._reports.clear()
            for node in dict.fromkeys(move[0] for move in moves):
                self._tell(node)
            for node in sorted(self._alive):
                self._send_plans(node)

    def conclude(self) -> None:
        """Propose what is due, as the leader."""
        if not self._log.is_leader:
            self._unheard.clear()
            return
        self._take_office()
        self._answer_unheard()
        command = self._due()
        if command is not None and command not in self._proposed:
            self._proposed.add(command)  # before, for a store of one applies it at once
            if not self._log.propose(encode(command)):
                self._proposed.discard(command)

    def _take_office(self) -> None:
        """Begin a leadership: nothing is collected yet, and every node has time to give a sign of life."""
        if self._log.ballot != self._ballot:
            self._ballot = self._log.ballot
            self._proposed.clear()
            self._reports.clear()
            self._asks.clear()
            self._lagging.clear()
            self._alive.clear()
            self._unheard.clear()
            self._heard = dict.fromkeys(self._registry.lives, self.env.now)
            self._since = self.env.now

    def _answer_unheard(self) -> None:
        left: list[tuple[NodeId, Unheard, Barrier]] = []
        for source, message, barrier in self._unheard:
            passes = self._log.passes(barrier)
            if passes is False:
                left.append((source, message, barrier))
            elif passes and not self._registry.is_open(message.group) and not self._opens(message.group):
                self.env.send(source, Receipt(message.group, message.life, message.next))
        self._unheard = left

    def _opens(self, group: GroupId) -> bool:
        """Whether the change under way gives a group its first member."""
        return self._registry.planned is not None and group in self._registry.planned.groups

    def _due(self) -> Command | None:
        registry = self._registry
        for node, asks in self._asks.items():
            greeting = asks.get(0)
            if greeting is not None and greeting.life > registry.asked.get(node, (0, 0))[0]:
                return Greet(node, greeting.life)
        up, down = self._returned(), self._silent()
        if registry.planned is None:
            prepare = Prepare(registry.change + 1, self._requests(), up, down, self._left_behind())
            return prepare if prepare != Prepare(registry.change + 1) else None
        if down or up:
            return Prepare(registry.change + 1, (), up, down)
        finals = self._finals() if registry.has_enough else None
        return None if finals is None else Decide(registry.change + 1, next(parts(finals), ()))

    def _requests(self) -> tuple[Request, ...]:
        """The next requests of subscribers, each subscriber's without a gap."""
        found: list[Request] = []
        for node, asks in self._asks.items():
            life, number = self._registry.asked.get(node, (0, 0))
            while len(found) < REQUESTS_MAX and (ask := asks.get(number + 1)) is not None:
                if ask.group is None or (life and ask.life != life):
                    break
                number += 1
                found.append(Request(node, ask.life, number, ask.group, ask.wants))
        return tuple(found)

    def _returned(self) -> tuple[Post, ...]:
        registry = self._registry
        return tuple(
            Post(node, alive.life)
            for node, alive in sorted(self._alive.items())
            if alive.life >= registry.lives[node]
            and (alive.life > registry.lives[node] or node not in registry.up)
            and not self._is_silent(node)
        )

    def _is_silent(self, node: NodeId) -> bool:
        return self.env.now - self._heard.get(node, 0) > self._options.suspect_ns

    def _silent(self) -> tuple[NodeId, ...]:
        silent = tuple(node for node in sorted(self._registry.up) if self._is_silent(node))
        return silent if len(silent) < len(self._registry.up) else ()

    def _left_behind(self) -> tuple[tuple[GroupId, NodeId], ...]:
        plans = self._registry.plans
        lost = (
            (group, node)
            for group, node in sorted(self._lagging)
            if group in plans and any(one.node == node and one.stop is None for one in plans[group].tenures)
        )
        return tuple(islice(lost, REQUESTS_MAX))

    def _seal(self) -> None:
        """Have the epochs sealed that the change under way ends."""
        registry = self._registry
        if registry.planned is None:
            return
        labels = tuple(sorted({plan.label for plan in registry.sealing()}))
        if labels:
            nodes = sorted(registry.up)
            self.env.multicast(nodes, Seal(registry.change + 1, registry.version, labels))
            for plan in registry.undecided():
                for node, copy in self._reports.copies(plan):
                    self.env.send(node, copy)

    def _finals(self) -> tuple[Final, ...] | None:
        """How far each log has come, if that is not decided; None if somebody has not said so."""
        finals: list[Final] = []
        for plan in self._registry.undecided():
            final = self._reports.final(plan)
            if final is None:
                return None
            finals.append(final)
        return tuple(finals)

    # Explanations

    def explain_own(self) -> Explanation:
        """What a change waits for."""
        registry = self._registry
        state: dict[str, str | int] = {
            "role": "store",
            "changes": registry.change,
            "groups": len(registry.graph.groups),
            "atoms": len(registry.graph.atoms),
            "sequencing nodes up": ", ".join(map(str, sorted(registry.up))) or "none",
        }
        if self._refused:
            state["commands refused"] = self._refused
        waits: list[Wait] = []
        if registry.planned is not None and self._log.is_leader:
            lacking = sorted(
                {node for plan in registry.undecided() if (node := self._reports.lacking(plan)) is not None}
            )
            if not registry.has_enough:
                lacking = sorted(registry.lives.keys() - registry.up)
            if lacking:
                names = ", ".join(map(str, lacking))
                what = f"change {registry.change + 1}"
                waits.append(Wait(what, f"a report from nodes {names}", self._since, on=tuple(lacking)))
        return Explanation(state, tuple(waits), waits[0].subject if waits else "")
