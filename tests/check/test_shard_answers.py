"""Answers of shards: all shards are executed again, with locks, and their results make one answer."""

from collections.abc import Sequence
from zlib import crc32

import msgspec
import pytest

from ordercast.core import (
    HELD,
    Context,
    MessageId,
    Order,
    ServiceSpec,
    Sharding,
    ShardMachine,
    message_id,
)
from ordercast.core.general import pack_commit, pack_prepare
from ordercast.core.service_class import ServiceType
from ordercast.core.shard import shard_of
from ordercast.judge import audit, verdict
from ordercast.judge.finding import Replay
from ordercast.services.sharded import Bank
from ordercast.trace import ABORTED, Event, Kind, build_table
from tests.check.shards import CLIENTS, GROUPS, description, promised

SHARDS = len(GROUPS)
CLIENT = CLIENTS[0]
BANK = ServiceType.of(Bank)
ONE, OTHER = (next(k for k in map(str, range(99)) if shard_of(k, SHARDS) == shard) for shard in (0, 1))


def sharding_of(spec: ServiceSpec) -> Sharding:
    assert spec.sharding is not None
    return spec.sharding


class Run:
    """A run of a bank in shards, whose answers are those of machines that execute it."""

    def __init__(self) -> None:
        self.spec = BANK.spec("bank")
        self.machines = {group: self.spec.for_group(group, SHARDS).make() for group in GROUPS}
        self.operations: dict[MessageId, bytes] = {}
        self.parts: dict[MessageId, dict[int, bytes]] = {}
        self.events: list[Event] = []
        self.place = 0

    def row(self, node: int, kind: Kind, message: MessageId, groups: Sequence[int], **fields: object) -> None:
        time_ns = 10 * (len(self.events) + 1)
        event = Event(time_ns, time_ns, node, kind, message, tuple(groups), stamp_issuer=0)
        placed: dict[str, object] = {"stamp_clock": self.place} | fields
        self.events.append(event._replace(**placed))  # type: ignore[arg-type]

    def call(self, operation: bytes) -> MessageId:
        """Each shard executes an operation; those that have all results are answered."""
        message, self.place = message_id(CLIENT, len(self.operations)), self.place + 1
        groups = sharding_of(self.spec).groups(operation, SHARDS)
        self.operations[message] = operation
        told: dict[str, object] = {"size": len(operation), "digest": crc32(operation)}
        told["submitted_ns"] = self.place
        self.row(CLIENT, Kind.SUBMIT, message, groups, **told)
        self.events[-1] = self.events[-1]._replace(stamp_clock=None, stamp_issuer=None)
        for group in groups:
            result = self.machines[group].apply(operation, Context(message, self.place))
            for node in GROUPS[group]:
                self.row(node, Kind.DELIVER, message, groups, **told)
            self.note(group, [(message, result)] if result != HELD else [])
        return message

    def note(self, group: int, results: list[tuple[MessageId, bytes]]) -> None:
        """A shard has results, also of what waited."""
        machine = self.machines[group]
        assert isinstance(machine, ShardMachine)
        results, machine.released = results + machine.released, []
        for message, result in results:
            self.parts.setdefault(message, {})[group] = result
            groups = sharding_of(self.spec).groups(self.operations[message], SHARDS)
            if len(self.parts[message]) == len(groups):
                self.answer(message, groups)

    def answer(self, message: MessageId, groups: Sequence[int]) -> None:
        """The client gets the results of all shards as one."""
        results = [self.parts[message][group] for group in groups]
        answer = sharding_of(self.spec).combine(self.operations[message], results)
        at = next(
            event.stamp_clock for event in self.events if event.message == message and event.stamp_clock
        )
        told: dict[str, object] = {"size": len(answer), "digest": crc32(answer), "stamp_clock": at}
        self.row(CLIENT, Kind.REPLY, message, groups[:1], **told)

    def end(self, transaction: MessageId, groups: Sequence[int]) -> None:
        """The shards end a general transaction."""
        self.place += 1
        for group in groups:
            machine = self.machines[group]
            assert isinstance(machine, ShardMachine)
            assert machine.end(transaction, Context(transaction, self.place))
            for node in GROUPS[group]:
                self.row(node, Kind.RELEASED, transaction, (group,), label=ABORTED)
            self.note(group, [])

    def told(self) -> list[str]:
        """What both judges find broken."""
        run = msgspec.structs.replace(description(promised(Order.ACROSS)), service="bank")
        replay = Replay(self.spec, self.operations)
        found = [one.property for one in verdict(run, self.events, replay=replay).violations]
        table = build_table("test", [tuple(event) for event in self.events])
        assert [one.property for one in audit(run, table, replay=replay).violations] == found
        return found


def transfer(amount: int) -> bytes:
    return BANK.operations["transfer"].pack((ONE, OTHER, amount), {})


def total() -> bytes:
    return BANK.operations["total"].pack(([ONE, OTHER],), {})


def busy_run() -> Run:
    """Transfers that wait for two general transactions: one commits, one is ended by the shards."""
    run = Run()
    run.call(transfer(3))
    first = run.call(pack_prepare([ONE, OTHER]))
    run.call(transfer(5))
    run.call(total())
    run.call(pack_commit(first, (0, 1), {ONE: 40, OTHER: 160}))
    second = run.call(pack_prepare([ONE, OTHER]))
    run.call(transfer(7))
    run.end(second, (0, 1))
    run.call(total())
    return run


def test_shards_answer_what_they_executed() -> None:
    run = busy_run()
    assert sum(event.kind is Kind.REPLY for event in run.events) == len(run.operations)
    assert run.told() == []


@pytest.mark.parametrize("which", range(8))
def test_an_answer_that_no_shard_gave(which: int) -> None:
    run = busy_run()
    row = [row for row, event in enumerate(run.events) if event.kind is Kind.REPLY][which]
    run.events[row] = run.events[row]._replace(digest=1)
    assert run.told() == ["answers"]
