"""Wrong ways for a replica of a shard, or for the coordinator, to do one thing."""

from collections import Counter
from typing import Any

from ordercast.components.cross_shard import rulings
from ordercast.components.cross_shard.coordinator import Case, FailureCoordinator
from ordercast.components.cross_shard.gaps import ShardGaps
from ordercast.components.cross_shard.marks import Mark
from ordercast.components.cross_shard.messages import Gone
from ordercast.components.cross_shard.replica import ShardReplica
from ordercast.components.cross_shard.rulings import Rulings, Show
from ordercast.components.network_ordered import LogEntry


def own_mark(entry: LogEntry, group: int) -> tuple[Mark, ...]:
    """Look at the number in the own group alone."""
    return ((entry.sequencer, group, entry.number),)


_on_gone = ShardReplica._on_gone


def hear_of_own_losses(self: ShardReplica, gone: Gone) -> None:
    """Give up what the own group has lost; what another one has lost is its own affair."""
    own = tuple(loss for loss in gone.losses if loss.mark[1] == self.group)
    for loss in gone.losses:
        self.book.pop(loss.mark, None)
    _on_gone(self, Gone(own))
    self._release()


def drop_pledges(self: ShardReplica, pledges: Any) -> None:
    """Begin a view without what the last one has promised."""
    self.book.clear()
    self._release()


def save_nothing(self: ShardReplica) -> None:
    """Promise in memory alone."""


def majority_alone(self: FailureCoordinator, case: Case, members: tuple[int, ...]) -> bool:
    """Count a majority of one view, whoever is in it."""
    own = Counter(case.promises[node] for node in members if node in case.promises)
    return any(count > len(members) // 2 for count in own.values())


def any_views(self: FailureCoordinator, case: Case, members: tuple[int, ...]) -> bool:
    """Count promises of all views together, with that of some view's leader among them."""
    own = {node: case.promises[node] for node in members if node in case.promises}
    led = any(members[view % len(members)] == node for node, (view, _) in own.items())
    return led and len(own) > len(members) // 2


_take_office = FailureCoordinator._take_office


def forget_all(self: FailureCoordinator) -> None:
    """Begin a leadership without the decisions of the one before."""
    if self._log.ballot != self._ballot:
        self._rulings.__init__()  # type: ignore[misc]
    _take_office(self)


def find_what_is_gone(self: Rulings, command: Any) -> None:
    """Let a message count that somebody shows, also if one of its marks is gone."""
    if isinstance(command, Show):
        for mark in rulings.marks(command.entry):
            self._gone.pop(mark, None)
    _apply(self, command)


_apply = Rulings.apply


def nobody_asked(self: ShardReplica, slot: Any) -> bool:
    """Take a slot for gone that the own group lacks."""
    return True


def within_own(self: LogEntry, last: Any) -> bool:
    """Count a message whose own number counts."""
    return True


def never_void(self: Any, entry: LogEntry) -> bool:
    """Let everything count that was found."""
    return False


def pass_in_silence(self: ShardGaps, is_void: Any) -> None:
    """Pass void slots without a word."""


def promise_what_is_here(self: ShardReplica, mark: Mark) -> None:
    """Promise without a look at what is here."""


def take_promised(self: ShardReplica, entry: LogEntry) -> bool:
    """Take what was promised not to be taken."""
    return False
