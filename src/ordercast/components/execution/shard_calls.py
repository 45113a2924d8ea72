"""The calls of a client of shards, which may go to several of them at once."""

from collections.abc import Callable, Collection

from ordercast.components.execution.calls import Calls, Pending
from ordercast.components.execution.options import CallOptions
from ordercast.core import Env, GroupId, Groups, LocalError


class ShardCalls(Calls):
    """The calls of a client of shards, each to all shards that run it."""

    def __init__(
        self,
        env: Env,
        groups: Collection[GroupId],
        options: CallOptions,
        send: Callable[[Pending], None],
        *,
        answers: bool,
        several: bool,
    ) -> None:
        """`several`: a call may go to several groups."""
        super().__init__(env, groups, options, send, answers=answers)
        self._several = several

    def check(self, groups: Groups) -> None:
        """Raise `LocalError` if no replicas can take a call to these groups."""
        if not groups or (len(groups) > 1 and not self._several):
            raise LocalError(
                f"an operation of a service without shards goes to one group, not to {len(groups)}: {groups}"
            )
        for group in groups:
            super().check((group,))
