"""A publisher: sends messages to groups, and keeps each until it has its place.

With causal order, all its messages to one group have their places before it sends to another. This holds over
restarts: what an earlier life had on its way may still get a place, or may be lost. The new life first sends
a *mark* to that group. Once the mark has a place, nothing of an earlier life gets one.
"""

from collections.abc import Mapping

from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Groups,
    LocalError,
    Member,
    Message,
    Nanos,
    NodeId,
    Wait,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX
from ordercast.protocols.atoms.limits import Limits
from ordercast.protocols.atoms.messages import Publish, Receipt, Route, Unheard
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.records import NOBODY, GroupPlan

RETRY = "retry"
LIFE = "life"
LATEST = "latest"
"""The group to which it sent last."""
BURST = 64
"""Messages that are repeated at once."""


class Flow:
    """What is on its way to one group."""

    __slots__ = ("attempts", "due", "floor", "ingress", "kept", "next", "since", "version")

    def __init__(self, plan: GroupPlan | None) -> None:
        self.ingress = NOBODY if plan is None else plan.ingress
        self.version = 0 if plan is None else plan.version
        self.next = 0
        self.floor = 0
        """All lower numbers have their places."""
        self.kept: dict[int, bytes | None] = {}
        """By number: messages without a place, and None for a mark."""
        self.due: Nanos = 0
        self.since: Nanos = 0
        self.attempts = 0


class Publisher(Member):
    """One sender."""

    def __init__(
        self,
        env: Env,
        plans: Mapping[GroupId, GroupPlan],
        groups: tuple[GroupId, ...],
        nodes: tuple[NodeId, ...],
        store: tuple[NodeId, ...],
        limits: Limits,
        options: AtomsOptions,
    ) -> None:
        super().__init__(env)
        self._nodes = nodes
        self._store = store
        self._limits = limits
        self._options = options
        self._flows = {group: Flow(plans.get(group)) for group in groups}
        self._life = 1
        self._latest: GroupId | None = None
        """In causal order: the only group that may have messages of any life on their way."""
        self._kept = 0
        self._is_armed = False

    @property
    def in_doubt(self) -> int:
        """Messages without a place as far as it knows."""
        return self._kept

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin a life of its own; in causal order, after what earlier lives have sent."""
        self._life = int.from_bytes(saved.get(LIFE, b""), "little") + 1
        self.env.save(LIFE, self._life.to_bytes(8, "little"))
        if self._options.causal and LATEST in saved:
            self._latest = int.from_bytes(saved[LATEST], "little")
            if self._latest in self._flows:
                self._publish(self._latest, None)

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Send a message to a group; False while too many are on their way."""
        flow = self._check(groups, payload)
        if len(flow.kept) >= self._options.window:
            return False
        if self._options.causal and self._kept > len(flow.kept):
            return False  # another group has not got all its messages yet
        if self._options.causal and self._latest != groups[0]:
            self._latest = groups[0]
            self.env.save(LATEST, self._latest.to_bytes(8, "little"))
        self._publish(groups[0], payload)
        return True

    def _publish(self, group: GroupId, payload: bytes | None) -> None:
        """Send a message or a mark for the first time."""
        flow = self._flows[group]
        number = flow.next
        flow.next += 1
        self._kept += 1
        if not flow.kept:
            flow.due, flow.since, flow.attempts = self.env.now + self._options.retry_ns, self.env.now, 0
        flow.kept[number] = payload
        if flow.ingress == NOBODY:
            self._find(group, flow)
        else:
            self._send(group, flow, number, flow.ingress)
        self._arm()

    def _check(self, groups: Groups, payload: bytes) -> Flow:
        if len(groups) != 1:
            raise LocalError(f"atoms sends a message to one group, not to {len(groups)}")
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise LocalError(f"the payload has {len(payload)} bytes; the limit is {PAYLOAD_BYTES_MAX} bytes")
        if groups[0] not in self._flows:
            raise LocalError(f"there is no group {groups[0]}")
        return self._flows[groups[0]]

    def _send(self, group: GroupId, flow: Flow, number: int, to: NodeId) -> None:
        self.env.send(to, Publish(group, flow.version, self._life, number, flow.floor, flow.kept[number]))

    def _find(self, group: GroupId, flow: Flow) -> None:
        """Nobody receives the group, as far as this node knows: ask the store whether that is so."""
        self.env.multicast(self._store, Unheard(group, self._life, flow.next))

    def _arm(self) -> None:
        if not self._is_armed and self._kept:
            self._is_armed = True
            self.env.set_timer(RETRY, self._options.retry_ns)

    def on_message(self, source: NodeId, message: Message) -> None:
        """A message has its place, or another node takes messages."""
        self._limits.check(source, message)
        match message:
            case Receipt(group, life, number) if life == self._life:
                self._settle(self._flows[group], number)
            case Route():
                self._on_route(message)

    def _settle(self, flow: Flow, end: int) -> None:
        """All messages below a number have their places."""
        if end <= flow.floor or end > flow.next:
            return
        for number in range(flow.floor, end):
            if number in flow.kept:
                del flow.kept[number]
                self._kept -= 1
        flow.floor = end
        flow.due, flow.since, flow.attempts = self.env.now + self._options.retry_ns, self.env.now, 0

    def _on_route(self, message: Route) -> None:
        flow = self._flows[message.group]
        if message.version < flow.version:
            return
        known = (flow.version, flow.ingress) == (message.version, message.ingress)
        flow.version, flow.ingress = message.version, message.ingress
        if message.serial is not None and message.serial[0] == self._life:
            self._settle(flow, message.serial[1])
        if flow.kept and flow.ingress == NOBODY:
            self._find(message.group, flow)
        elif flow.kept and (not known or message.serial is not None):
            self._repeat(message.group, flow, flow.ingress)

    def _repeat(self, group: GroupId, flow: Flow, to: NodeId) -> None:
        flow.due = self.env.now + (self._options.retry_ns << min(flow.attempts, 3))
        for number in list(flow.kept)[:BURST]:
            self._send(group, flow, number, to)

    def on_timer(self, name: str) -> None:
        """Send again what has no place."""
        self._is_armed = False
        for group, flow in self._flows.items():
            if flow.kept and flow.due <= self.env.now:
                flow.attempts += 1
                if flow.ingress == NOBODY:
                    self._find(group, flow)
                    flow.due = self.env.now + (self._options.retry_ns << min(flow.attempts, 3))
                else:
                    self._repeat(group, flow, self._target(flow))
        self._arm()

    def _target(self, flow: Flow) -> NodeId:
        """Who is asked: the node that took messages last, or any that knows which one does now."""
        return flow.ingress if flow.attempts % 2 else self.env.rng.choice(self._nodes)

    def explain(self) -> Explanation:
        """The messages without a place."""
        waits = [
            Wait(
                f"message {number} to group {group}" if payload is not None else f"a mark in group {group}",
                "its place"
                if flow.ingress != NOBODY
                else "a subscriber, or the store to say that there is none",
                flow.since,
                payload,
                groups=(group,),
                on=(flow.ingress,) if flow.ingress != NOBODY else self._store,
            )
            for group, flow in self._flows.items()
            for number, payload in flow.kept.items()
        ]
        state: dict[str, str | int] = {"role": "publisher", "life": self._life, "without a place": self._kept}
        return Explanation(state, tuple(waits))
