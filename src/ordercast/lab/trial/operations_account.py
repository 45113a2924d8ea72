"""The account of a service: what its clients called and were answered in a live run, without the trace.

1. Every call of a client that lived is answered, or its client is told that the outcome is unknown.
2. No call is answered twice.
3. The answers are those of a single service: in the order of the places that replies name, a fresh service
   gives the same ones, and no call was answered before one with an earlier place was made. If some outcomes
   are unknown, it is not known what the service executed, and only the order in time is judged. An answer
   that was taken back does not count, and the outcome is unknown. Answers of shards are not compared here:
   that needs the locks of the trace, whose judge `answers` compares them.
4. Transactions that add up everything all come to the same, which is what there was at first.
5. Nobody waits too long for the next answer while calls are made.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from zlib import crc32

import msgspec

from ordercast.core import (
    Context,
    GroupId,
    MessageId,
    Nanos,
    NodeId,
    Outcome,
    Plan,
    ServiceSpec,
    message_name,
    message_sender,
)
from ordercast.lab.trial.account import Circumstances
from ordercast.lab.trial.account_rules import NAMED_MAX, Complaint, Outage, longest_wait, too_long
from ordercast.lab.trial.diary import Answered, Called, LifeDiary


class OperationsAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the calls of a run, by what its clients saw."""

    invoked: int
    """Operations that clients called."""
    answered: int
    """Those of them that were answered."""
    refused: int
    """Answers that refuse the operation."""
    failed: int
    """Answers that say that the operation failed in the service."""
    unknown: int
    """Operations whose outcome nobody knows: their client was told so, or did not live to hear."""
    undone: int
    """Those of them that were answered, and whose answers were taken back."""
    total: int | None
    """What every transaction that adds up everything came to; None if there was none, or they differ."""
    sums: int
    """How many did."""
    checked: int
    """Answers that were compared with those of a single service."""
    outage_ns: Nanos
    """The longest time without any answer while calls were made, at clients that no fault hit."""
    outage_begin_ns: Nanos
    """When it began, after the first call."""
    limit_ns: Nanos | None
    complaints: tuple[Complaint, ...]
    """The rules that were broken."""


def account_operations(
    plan: Plan, diaries: Sequence[LifeDiary], told: Circumstances
) -> OperationsAccount | None:
    """Take the account of a run's calls; None if it has no service."""
    return _Calls(plan, plan.service, diaries, told).account() if plan.service is not None else None


class _Calls:
    """All calls and answers of a run."""

    def __init__(
        self, plan: Plan, service: ServiceSpec, diaries: Sequence[LifeDiary], told: Circumstances
    ) -> None:
        self._service = service
        self._told = told
        self._hosts = {node.id: node.host for node in plan.nodes}
        self._killed = frozenset(crash.host for crash in told.crashes)
        self._called = {one.message: one for diary in diaries for one in diary.called}
        self._answers = [one for diary in diaries for one in diary.answered]
        self._answered: Mapping[MessageId, Answered] = {one.message: one for one in self._answers}
        self._sums = {message: total for diary in diaries for message, total in diary.sums.items()}
        self._undone = {message for diary in diaries for message in diary.undone}
        self._unconfirmed = self._undone.union(*(diary.unconfirmed for diary in diaries))

    def account(self) -> OperationsAccount:
        """The account."""
        outcomes = Counter(one.outcome for one in self._answered.values())
        open_calls = self._called.keys() - self._answered.keys()
        whole = not open_calls
        longest = self._outage()
        start = min((one.time_ns for one in self._called.values()), default=0)
        limit = self._told.limit_ns
        late = None if limit is None else too_long(longest, limit, start)
        found = (
            *self._missing(open_calls),
            *self._twice(),
            *self._disorder(),
            *self._wrong(whole),
            *self._wrong_sums(),
        )
        totals = set(self._sums.values())
        return OperationsAccount(
            invoked=len(self._called),
            answered=len(self._answered),
            refused=outcomes[Outcome.REFUSED],
            failed=outcomes[Outcome.FAILED],
            unknown=len(open_calls),
            undone=len(self._undone - self._answered.keys()),
            total=totals.pop() if len(totals) == 1 else None,
            sums=len(self._sums),
            checked=len(self._checkable()) if whole else 0,
            outage_ns=longest.lasted_ns,
            outage_begin_ns=max(0, longest.begin_ns - start),
            limit_ns=limit,
            complaints=(*found, late) if late is not None else found,
        )

    def _missing(self, open_calls: Iterable[MessageId]) -> Iterator[Complaint]:
        """Calls of clients that lived, without an answer or notice."""
        if not self._told.complete:
            return
        owed = [
            message
            for message in sorted(open_calls)
            if message not in self._unconfirmed and self._host(message) not in self._killed
        ]
        for node in sorted({message_sender(message) for message in owed}):
            mine = [message for message in owed if message_sender(message) == node]
            detail = f"client {node} got no answer to {_names(mine)} and was not told that it is unknown"
            yield Complaint("missing", (node,), tuple(mine[:NAMED_MAX]), len(mine), detail)

    def _twice(self) -> Iterator[Complaint]:
        counts = Counter(one.message for one in self._answers)
        again = sorted(message for message, count in counts.items() if count > 1)
        if again:
            nodes = tuple(sorted({message_sender(message) for message in again}))
            detail = f"{_names(again)} got more than one answer"
            yield Complaint("twice", nodes, tuple(again[:NAMED_MAX]), len(again), detail)

    def _in_place(self, group: GroupId) -> list[tuple[Answered, Called]]:
        """The answered operations of a group in the order of their places. Reads stand behind them, in the
        order in which they were called: they change nothing, so any order will do."""
        pairs = [(answer, self._called[message]) for message, answer in self._answered.items()]
        mine = [pair for pair in pairs if pair[1].group == group]
        return sorted(mine, key=_key)

    def _checkable(self) -> list[Called]:
        """The answered operations of services without shards that ask no other one. Nobody is told where
        others went on."""
        called = [self._called[message] for message in self._answered if message in self._called]
        parts = {group: self._service.part(group) for group in self._groups()}
        return [one for one in called if not parts[one.group].asks and parts[one.group].sharding is None]

    def _groups(self) -> list[GroupId]:
        return sorted({one.group for one in self._called.values()})

    def _disorder(self) -> Iterator[Complaint]:
        """An answer that came before an operation with an earlier place was called."""
        for group in self._groups():
            latest: Called | None = None
            for answer, called in self._in_place(group):
                if latest is None or called.time_ns > latest.time_ns:
                    latest = called
                if answer.time_ns < latest.time_ns:
                    late, early = message_name(answer.message), message_name(latest.message)
                    detail = f"{late} was answered before {early} was called, whose place is earlier"
                    yield _about("disorder", (latest.message, answer.message), detail)
                    break

    def _wrong(self, whole: bool) -> Iterator[Complaint]:
        """The first answer of each group that a single service would not have given."""
        for group in self._groups() if whole else ():
            service = self._service.part(group)
            if service.asks or service.sharding is not None:
                continue
            machine, now = service.make(), 0
            for answer, called in self._in_place(group):
                now = max(now, called.time_ns)
                run = machine.read if called.read else machine.apply
                expected = run(called.operation, Context(called.message, now))
                if crc32(expected) != answer.digest:
                    name = message_name(answer.message)
                    detail = f"{name} has another answer than a single service gives there: {expected!r}"
                    yield _about("wrong", (answer.message,), detail)
                    break

    def _wrong_sums(self) -> Iterator[Complaint]:
        """The first sum that differs from what there was at first."""
        expected = self._told.total
        wrong = sorted(message for message, total in self._sums.items() if total != expected)
        if wrong and expected is not None:
            first = wrong[0]
            detail = f"{message_name(first)} came to {self._sums[first]}, but there is {expected} in all"
            nodes = tuple(sorted({message_sender(message) for message in wrong}))
            yield Complaint("wrong", nodes, tuple(wrong[:NAMED_MAX]), len(wrong), detail)

    def _outage(self) -> Outage:
        """The longest time without an answer at all clients together that no fault hit."""
        spared = {node for node, host in self._hosts.items() if host not in self._told.hit | self._killed}
        called = sorted(one.time_ns for one in self._called.values() if message_sender(one.message) in spared)
        times = [one.time_ns for one in self._answers if message_sender(one.message) in spared]
        nodes = sorted({message_sender(message) for message in self._called} & spared)
        return longest_wait(nodes[0], times, called) if nodes else Outage(0, 0, 0)

    def _host(self, message: MessageId) -> int:
        return self._hosts[message_sender(message)]


def _key(pair: tuple[Answered, Called]) -> tuple[tuple[int, int], bool, int]:
    answer, called = pair
    return answer.place, called.read, called.time_ns if called.read else called.message


def _about(rule: str, messages: tuple[MessageId, ...], detail: str) -> Complaint:
    nodes: tuple[NodeId, ...] = tuple(sorted({message_sender(message) for message in messages}))
    return Complaint("wrong" if rule == "wrong" else "disorder", nodes, messages, 1, detail)


def _names(messages: Sequence[MessageId]) -> str:
    more = f" and {len(messages) - NAMED_MAX} more" if len(messages) > NAMED_MAX else ""
    return ", ".join(map(message_name, messages[:NAMED_MAX])) + more
