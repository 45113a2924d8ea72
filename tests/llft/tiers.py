"""Groups that ask other groups: a chain of tiers, of which each tells a story and asks the next one to go on.

A call `a` of a client is performed by the first group as `a`, which asks the second one for `a>`, and so on.
The answer of each tier has its story as it was when it was told the call. So at the end the stories of all
tiers must have the same calls, each once.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ordercast.core import Asking, Context, GroupId, ServiceSpec
from tests.llft.history import History
from tests.llft.lab import Lab
from tests.story import Story


class Relay(Story):
    """Tells its story, and asks the next group to tell the same."""

    next_tier: GroupId = 0

    def begin(self, operation: bytes, context: Context) -> bytes | Asking:
        """Add it, and ask."""
        result = self.apply(operation, context)
        return Asking(operation + b">", False, "", self.next_tier, operation + b"\n" + result)

    def resume(self, token: bytes, result: bytes, context: Context) -> bytes | Asking:
        """Give the story as it was."""
        operation, _, mine = token.partition(b"\n")
        last = result.rpartition(b" ")[2].lstrip(b"\0")
        return mine if last == operation + b">" else b"\2not what was asked: " + result


def chain(tiers: int) -> ServiceSpec:
    """So many groups, each of which asks the next one, but the last."""

    def relay(group: int) -> ServiceSpec:
        kind = type(f"Relay{group}", (Relay,), {"next_tier": group + 1})
        return ServiceSpec(f"relay{group}", kind, f"relay{group}", asks=True)

    return ServiceSpec.of_groups([*map(relay, range(tiers - 1)), ServiceSpec("story", Story, "story")])


class TierHistory(History):
    """Knows that a group asks the next one."""

    def _bad_order(self, group: GroupId, order: list[str]) -> Iterator[tuple[str, str]]:
        if len(set(order)) < len(order):
            yield "exactly-once", f"group {group} has performed {order}"
        for text in order:
            called = self.called.get(text.rstrip(">"), (0, -1))[1]
            if called != group - text.count(">"):
                yield "integrity", f"group {group} has performed {text}, which nobody has called there"


class TierLab(Lab):
    """So many tiers of so many replicas; clients call the first."""

    def __init__(self, tiers: int = 2, *, replicas: int = 2, clients: int = 1, **options: Any) -> None:
        super().__init__(replicas, groups=tiers, clients=clients, service=chain(tiers), **options)

    def new_history(self) -> History:
        """One that follows what was asked."""
        return TierHistory(self.groups)

    def stories(self) -> list[list[str]]:
        """What each group has performed, by its primary."""
        primaries = [self.primary(group) for group, _ in enumerate(self.groups)]
        return [[] if node is None else self.told(node) for node in primaries]

    def _judge(self, *, uniform: bool) -> None:
        super()._judge(uniform=uniform)
        stories = self.stories()
        for group, (above, below) in enumerate(pairwise(stories)):
            asked = sorted(f"{text}>" for text in above)
            told = sorted(text for text in below if text.endswith(">"))
            if asked != told:
                self.details.append(
                    ("end-to-end", f"group {group} asked {asked}, and {group + 1} did {told}")
                )
        for members in self.groups:
            for node in members:
                asks = self.replica(node).performer.executor.asks
                active = self.replica(node).performer.active
                if active and asks is not None and (asks.waiting or asks.calls):
                    self.details.append(("unfinished", f"node {node} waits for {asks.waiting}"))
