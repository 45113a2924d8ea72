"""The logs that a sequencing node keeps, and their way to subscribers and to other nodes."""

from collections.abc import Iterable

from ordercast.core import Env, GroupId, NodeId
from ordercast.protocols.atoms.distribution import BYTES_MAX, Distribution
from ordercast.protocols.atoms.group_log import GroupLog
from ordercast.protocols.atoms.messages import BATCH, Copy, Entries, Kept, Lagging, Pull
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.records import GroupPlan, GroupReport, Post


class LogKeeping:
    """The logs of one node."""

    def __init__(
        self, env: Env, nodes: Iterable[NodeId], store: tuple[NodeId, ...], options: AtomsOptions
    ) -> None:
        self._env = env
        self._others = sorted(node for node in nodes if node != env.me)
        self._store = store
        self._options = options
        self.logs: dict[GroupId, GroupLog] = {}
        self.distributions: dict[GroupId, Distribution] = {}
        """Of the groups whose subscribers this node sends to."""
        self._copied: dict[GroupId, tuple[int, int]] = {}
        """By group: the plan whose epoch is sealed, and the position before which its log was asked for."""

    def log(self, group: GroupId) -> GroupLog:
        """The log of a group."""
        if group not in self.logs:
            self.logs[group] = GroupLog(self._env, group)
        return self.logs[group]

    def install(self, plan: GroupPlan, mine: Post) -> None:
        """Take up what a plan gives this node to keep and to send."""
        group = plan.group
        if group in self.logs or mine in plan.holders:
            self.log(group).keep(plan)
        if mine in plan.holders:
            self.log(group).begin(plan)
        if plan.distributor != mine:
            self.distributions.pop(group, None)
            return
        distribution = self.distributions.get(group)
        if distribution is None:
            distribution = Distribution(self._env, group, self.log(group), self._options.retry_ns)
            self.distributions[group] = distribution
        distribution.update(plan.tenures)
        distribution.catch_up()

    def repeat(self, group: GroupId, plan: GroupPlan, mine: Post) -> bool:
        """Send again what is not acknowledged, and ask again for what is missing; whether anything is."""
        busy = self.pull(plan, mine)
        distribution = self.distributions.get(group)
        if distribution is not None:
            busy |= distribution.repeat()
            busy |= self._tidy(plan, distribution)
        return busy

    def _tidy(self, plan: GroupPlan, distribution: Distribution) -> bool:
        """Forget what all subscribers have; give up those that are too far behind."""
        group, log = plan.group, self.logs[plan.group]
        low = min(distribution.low(), log.next - 1)
        others = {post.node for post in plan.holders} | {part.post.node for part in plan.parts}
        others.discard(self._env.me)
        if low > log.low:
            log.forget(low)
            self._env.multicast(sorted(others), Kept(group, low))
        if log.next - log.low > self._options.history:
            for node in distribution.silent(self._options.suspect_ns):
                self._env.multicast(self._store, Lagging(group, node))
        return log.next > low + 1

    def pull(self, plan: GroupPlan, mine: Post) -> bool:
        """Ask for what this node lacks of a log: those who said that they have it, or anybody."""
        if mine not in plan.holders:
            return False
        lacking = self.log(plan.group).lacks(plan.low, plan.base)
        if lacking is None:
            return False
        start, stop = lacking
        told = [part.post.node for part in plan.parts if part.start <= start < part.stop]
        others = sorted({node for node in told if node != mine.node}) or self._others
        self._env.multicast(others, Pull(plan.group, plan.version, start, stop))
        return True

    def on_pull(self, source: NodeId, message: Pull) -> None:
        """Another node lacks a part of a log."""
        log = self.logs.get(message.group)
        if log is None or log.version < message.version:
            return
        if message.start < log.low:
            self._env.send(source, Kept(message.group, log.low))
        elif message.start < message.stop:
            entries = log.run(message.start, min(BATCH, message.stop - message.start), BYTES_MAX)
            if entries:
                self._env.send(source, Entries(message.group, message.start, entries))

    def on_copy(self, message: Copy, plan: GroupPlan) -> None:
        """Get a part of a log whose epoch is sealed, whether this node was a holder or not."""
        if plan.version != message.version:
            return
        log = self.log(plan.group)
        log.keep(plan)
        lacking = log.lacks(message.start, message.stop)
        if lacking is not None:
            self._copied[plan.group] = (plan.version, message.stop)
            self._env.send(message.source, Pull(plan.group, plan.version, *lacking))

    def on_entries(self, message: Entries, plan: GroupPlan, mine: Post) -> None:
        """A part of a log that this node lacked."""
        version, end = self._copied.get(message.group, (0, 0))
        if version != plan.version:
            end = plan.base
        if mine not in plan.holders and version != plan.version:
            return
        log = self.log(message.group)
        for position, entry in enumerate(message.entries, message.start):
            if log.low <= position < end:
                log.put(position, entry)
        self.pull(plan, mine)
        if message.group in self.distributions:
            self.distributions[message.group].catch_up()

    def on_kept(self, message: Kept) -> None:
        """All subscribers have what is before a position."""
        log = self.logs.get(message.group)
        if log is None:
            return
        log.forget(min(message.low, log.next))

    def report(self, plan: GroupPlan) -> GroupReport:
        """What there is of a group whose epoch is sealed."""
        group = plan.group
        log = self.log(group)
        distribution = self.distributions.get(group)
        low = log.low
        gone: tuple[NodeId, ...] = ()
        if distribution is not None:
            low, gone = max(low, distribution.low()), tuple(sorted(distribution.gone))
        serials = tuple(sorted(log.serials.items()))
        return GroupReport(group, tuple(log.ranges()), log.reach(plan.label), low, serials, gone)
