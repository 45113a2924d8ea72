"""Honest traces in which issuers come and go, drawn from a seed (Hydra section 4.4 and Appendix B).

There is one line of messages and of changes, and every receiver goes along it: it delivers or is notified of
each message of its group, and installs each change. When an issuer is removed, each group settles some of the
last messages of it; a minority receiver may have got the others too. A message that one of its groups does
not settle is delivered by minorities only, and the rest of the groups that do settle it are notified.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from ordercast.core import Agreement, Gaps, GroupId, Groups, Guarantees, NodeId, Order
from tests.check.traces import Trace

PROMISED = Guarantees(order=Order.ACROSS, agreement=Agreement.NOTIFIED, gaps=Gaps.NOTIFIED)
GROUPS: dict[GroupId, tuple[NodeId, ...]] = {0: (0, 1, 2), 1: (3, 4, 5)}
RECEIVERS = {node: group for group, members in GROUPS.items() for node in members}
MINORITY = (2, 5)
LINE = 25
DROP_PROBABILITY = 0.1

Row = Callable[[], None]


class _Turnover:
    """A trace as it grows: what each receiver does, in order, to be told in any order of receivers."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"turnover/{seed}")
        self.trace = Trace(PROMISED, GROUPS)
        self.rows: dict[NodeId, list[Row]] = {node: [] for node in RECEIVERS}
        self.numbers = {issuer: dict.fromkeys(GROUPS, 0) for issuer in (1, 2)}
        self.issued = 2
        self.config = 0
        self.clock = 0

    def message(self, issuer: int, *, settled: dict[GroupId, bool] | None = None) -> None:
        """An issuer numbers a message; a group that does not settle it leaves it to its minority."""
        self.clock += 1
        groups: Groups = self.rng.choice(((0,), (1,), (0, 1)))
        for group in groups:
            self.numbers[issuer][group] += 1
        numbers = tuple(self.numbers[issuer][group] for group in groups)
        message = self.trace.submit(groups=groups)
        torn = settled is not None and not all(settled[group] for group in groups)
        for node, group in RECEIVERS.items():
            if group not in groups or not (settled is None or settled[group] or node in MINORITY):
                continue
            if self.rng.random() < DROP_PROBABILITY or (torn and node not in MINORITY):
                number = self.numbers[issuer][group]
                row: Row = partial(self.trace.drop, node, number, group=group, issuer=issuer)
            else:
                row = partial(self.trace.numbered, node, message, *numbers, issuer=issuer, clock=self.clock)
            self.rows[node].append(row)

    def add(self) -> None:
        """Another issuer joins, with numbers that have begun already."""
        self.issued += 1
        self.numbers[self.issued] = {group: self.rng.randrange(4) for group in GROUPS}
        self._install(self.trace.added, self.issued, dict(self.numbers[self.issued]))

    def remove(self) -> None:
        """An issuer leaves, after some last messages that not all groups settle."""
        issuer = self.rng.choice(list(self.numbers))
        settled = dict.fromkeys(GROUPS, True)
        last = dict(self.numbers[issuer])
        for _ in range(self.rng.randrange(4)):
            settled = {group: before and self.rng.random() < 0.5 for group, before in settled.items()}
            self.message(issuer, settled=settled)
            last = {group: self.numbers[issuer][group] if settled[group] else last[group] for group in GROUPS}
        del self.numbers[issuer]
        self._install(self.trace.removed, issuer, last)

    def _install(self, view: Callable[..., None], issuer: int, numbers: dict[GroupId, int]) -> None:
        self.config += 1
        self.clock += 1
        for node, group in RECEIVERS.items():
            place = (node, self.config, issuer, numbers[group])
            self.rows[node].append(partial(view, *place, group=group, clock=self.clock))

    def tell(self) -> Trace:
        """The rows of all receivers, those of each in their order."""
        turns = [node for node, rows in self.rows.items() for _ in rows]
        self.rng.shuffle(turns)
        waiting = {node: iter(rows) for node, rows in self.rows.items()}
        for node in turns:
            next(waiting[node])()
        return self.trace


def turnover(seed: int) -> Trace:
    """A trace that keeps what Hydra promises."""
    run = _Turnover(seed)
    for _ in range(LINE):
        chance = run.rng.random()
        if chance < 0.15:
            run.add()
        elif chance < 0.3 and len(run.numbers) > 1:
            run.remove()
        else:
            run.message(run.rng.choice(list(run.numbers)))
    return run.tell()
