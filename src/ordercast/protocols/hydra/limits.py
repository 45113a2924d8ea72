"""What a peer may claim about configurations: steps, numbers, lives and nodes that there can be.

A claim beyond is refused before it changes anything. Otherwise one announcement of very many steps would keep
all true ones from being believed, and one life in the far future a sequencer from ever joining again.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ordercast.core import SECOND, GroupId, Nanos, NodeId, Process, RemoteError
from ordercast.protocols.hydra.lane import AHEAD_MAX
from ordercast.protocols.hydra.messages import (
    NEVER,
    Announce,
    Flush,
    Groupcast,
    Plans,
    Report,
    Revived,
    Step,
    Steps,
)
from ordercast.protocols.hydra.options import SEQUENCERS_MAX

STEPS_MAX = 1 << 40
"""More steps than any service takes, and more sequencers than there ever are: at one each millisecond they
take 34 years."""
CLOCK_AHEAD_MAX = 366 * 86_400 * SECOND
"""Lives and stamps come from clocks. Clocks are wrong, but not by more than a year."""
NUMBERS_MAX = 1 << 48
"""More messages than a sequencer stamps for a group: at a million a second they take nine years."""


SEQUENCER_ROLES = frozenset({"sequencer", "switch"})


def later_sequencers(roles: Mapping[NodeId, str], service: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The sequencers that are not in the first plan: their ids follow those of the service."""
    return tuple(node for node in sorted(roles) if node > max(service) and roles[node] in SEQUENCER_ROLES)


def first_after(nodes: Iterable[Sequence[NodeId]]) -> NodeId:
    """The first node behind all of these."""
    return 1 + max((node for some in nodes for node in some), default=-1)


class Limits:
    """The bounds on what the configuration service and its clients tell each other."""

    __slots__ = ("_first", "_groups", "_later", "_nodes", "_service")

    def __init__(self, service: tuple[NodeId, ...], groups: int, first: NodeId = 0) -> None:
        """`first` is the first node that may be a sequencer: those before are receivers."""
        self._service = service
        self._first = first
        self._groups = groups
        self._nodes = min(service)
        """Sequencers of the first plan come before the service in the order of nodes."""
        self._later: frozenset[NodeId] = frozenset()
        """Sequencers that came later."""

    def know(self, roles: Mapping[NodeId, str]) -> None:
        """Take note of sequencers that came later. What was said of removed ones may still be under way."""
        self._later = self._later.union(later_sequencers(roles, self._service))

    def check_announce(self, source: NodeId, message: Announce) -> None:
        """Refuse an announcement that no service makes."""
        self.check_service(source)
        self._check_steps(source, message.steps)
        if len(message.silent) > SEQUENCERS_MAX:
            raise RemoteError(f"node {source} announces {len(message.silent)} silent sequencers")
        self._check_active(source, message.active)
        if message.planned is not None:
            self._check_plan(source, message.planned)
        if message.latest is not None:
            self._check_step(source, message.latest)
            self._check_latest(source, message.latest, message)

    def check_steps(self, source: NodeId, message: Steps) -> None:
        """Refuse steps that no service takes."""
        self.check_service(source)
        self._check_steps(source, message.start + len(message.steps))
        for place, step in enumerate(message.steps, message.start + 1):
            self._check_step(source, step)
            if step.config > place:
                raise RemoteError(f"node {source} tells of configuration {step.config} after {place} steps")
        for before, step in pairwise(message.steps):
            if step.config != before.config + step.configures:
                raise RemoteError(
                    f"node {source} tells of configuration {step.config} after configuration {before.config}"
                )

    def check_revived(self, source: NodeId, message: Revived) -> None:
        """Refuse a beginning that no service gives."""
        self.check_service(source)
        self._check_steps(source, max(message.steps, message.config, message.newest, message.sequencer))
        self._check_active(source, message.active)
        if message.clock >= NEVER:
            raise RemoteError(f"node {source} tells of a step at clock {message.clock}")

    def check_report(self, source: NodeId, report: Report, now: Nanos) -> None:
        """Refuse numbers of other groups than there are, or that no sequencer reaches."""
        if len(report.numbers) != self._groups:
            raise RemoteError(
                f"node {source} reports numbers of {len(report.numbers)} groups instead of {self._groups}"
            )
        if max(report.numbers, default=0) > NUMBERS_MAX or report.clock > now + CLOCK_AHEAD_MAX:
            raise RemoteError(f"node {source} reports a number or a clock that no sequencer reaches")

    def check_flush(self, flush: Flush, now: Nanos) -> None:
        """Refuse a clock or numbers that no sequencer reaches."""
        numbers = flush.numbers
        # An aggregator that has not heard of a sequencer yet has no numbers of it.
        if numbers and len(numbers) != self._groups:
            raise RemoteError(f"a flush has {len(numbers)} numbers for {self._groups} groups")
        if numbers and max(numbers) > NUMBERS_MAX:
            raise RemoteError(f"a flush of sequencer {flush.sequencer} has numbers that no sequencer reaches")
        if flush.clock > now + CLOCK_AHEAD_MAX:
            raise RemoteError(f"a flush of sequencer {flush.sequencer} has the clock {flush.clock}")

    def check_refreshed(self, source: NodeId, flush: Flush, now: Nanos) -> None:
        """Refuse a fresh flush that says nothing."""
        self.check_flush(flush, now)
        if not flush.numbers:
            raise RemoteError(f"node {source} tells no numbers of sequencer {flush.sequencer}")

    def check_ahead(self, flush: Flush, group: GroupId, high: int) -> None:
        """Refuse a flush that is too far ahead of the numbers that its receiver knows."""
        if flush.numbers[group] - high > AHEAD_MAX:
            raise RemoteError(
                f"flush of sequencer {flush.sequencer} at {flush.numbers} is too far ahead of {high}"
            )

    def own_number(self, packet: Groupcast, group: GroupId) -> int:
        """The number of a packet for a group of its receiver; refuses a packet that is not for it."""
        groups = packet.groups
        if len(groups) != len(packet.numbers) or group not in groups or max(groups) >= self._groups:
            raise RemoteError(f"a groupcast to {groups} with numbers {packet.numbers} came to group {group}")
        return packet.numbers[groups.index(group)]

    def check_lane(self, sequencer: int, node: NodeId, numbers: Sequence[int]) -> None:
        """Refuse a sequencer, or numbers of it, that there cannot be."""
        if not 0 < sequencer <= STEPS_MAX or not self._may_sequence(node) or max(numbers) > NUMBERS_MAX:
            raise RemoteError(f"there is no sequencer {sequencer} at node {node} with numbers {numbers}")

    def check_join(self, source: NodeId, life: int, now: Nanos) -> None:
        """Refuse a sequencer at a node that has another role."""
        if not self._may_sequence(source):
            raise RemoteError(f"node {source} asks for the number of a sequencer, but is none")
        self.check_life(source, life, now)

    def check_life(self, source: NodeId, life: int, now: Nanos) -> None:
        """Refuse a life that has not begun yet."""
        if life > now + CLOCK_AHEAD_MAX:
            raise RemoteError(f"node {source} tells of its life {life}, too far ahead of {now}")

    def _may_sequence(self, node: NodeId) -> bool:
        return self._first <= node < self._nodes or node in self._later

    def check_service(self, source: NodeId) -> None:
        """Refuse what only the configuration service says."""
        if source not in self._service:
            raise RemoteError(f"node {source} tells of configurations, but is not of the service")

    def _check_steps(self, source: NodeId, steps: int) -> None:
        if steps > STEPS_MAX:
            raise RemoteError(f"node {source} tells of {steps} steps; there are not so many")

    def _check_sequencer(self, source: NodeId, sequencer: int, node: NodeId) -> None:
        if not 0 < sequencer <= STEPS_MAX or not self._may_sequence(node):
            raise RemoteError(f"node {source} names sequencer {sequencer} at node {node}; there is none")

    def _check_active(self, source: NodeId, active: tuple[tuple[int, NodeId], ...]) -> None:
        if len(active) > SEQUENCERS_MAX:
            raise RemoteError(f"node {source} tells of {len(active)} sequencers")
        for sequencer, node in active:
            self._check_sequencer(source, sequencer, node)

    def _check_latest(self, source: NodeId, step: Step, message: Announce) -> None:
        """What the last step did is seen in the configuration after it."""
        is_active = step.sequencer in (sequencer for sequencer, _ in message.active)
        if step.configures and is_active is not (step.change == "added"):
            raise RemoteError(
                f"node {source} announces that sequencer {step.sequencer} was {step.change}, "
                f"but {'has' if is_active else 'does not have'} it among the active ones"
            )
        if step.config > message.steps:
            raise RemoteError(
                f"node {source} tells of configuration {step.config} after {message.steps} steps"
            )

    def _check_plan(self, source: NodeId, plan: Plans) -> None:
        self._check_sequencer(source, plan.sequencer, plan.node)

    def _check_step(self, source: NodeId, step: Step) -> None:
        if step.change != "reborn":
            self._check_sequencer(source, step.sequencer, step.node)
        self._check_steps(source, step.config)
        if step.configures and len(step.numbers) != self._groups:
            raise RemoteError(f"a step has {len(step.numbers)} numbers for {self._groups} groups")
        if max(step.numbers, default=0) > NUMBERS_MAX or step.clock >= NEVER:
            raise RemoteError(f"node {source} tells of a step with numbers that no sequencer has")


class KnowsSequencers(Process):
    """A process that hears of sequencers, also of those that came later."""

    _limits: Limits

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Know sequencers that came later."""
        self._limits.know(roles)
