"""From a scenario to a judged run: its numbers, its end, and whether it is complete."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from ordercast import core
from ordercast.core import (
    MILLISECOND,
    SECOND,
    Crashes,
    Delivered,
    Env,
    Guarantees,
    Message,
    NodeId,
    Plan,
)
from ordercast.scenario.faults import Crash, FaultSpec, Heal, Partition, Pause, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.scenario.summary import Summary
from ordercast.sim.probing import LINGER
from ordercast.sim.run import Run, simulate
from ordercast.trace import Event, Kind, find_runs, trace_hash
from tests.sim.probes import Parcel, Probe, probe_plan

LOAD = WorkloadSpec(messages=40, rate_per_s=5000)
ROUGH = NetworkSpec(latency=UniformSpec(20, 200), loss=0.1, duplication=0.1)


def scenario(*faults: FaultSpec, network: NetworkSpec = ROUGH, load: WorkloadSpec = LOAD) -> Scenario:
    return Scenario(
        protocol="unordered", seed=3, senders=2, network=network, workload=load, fault=faults, settle_ms=100
    )


def recount(run: Run) -> dict[str, object]:
    """The numbers of a run, counted row by row."""
    kinds = [event.kind for event in run.events()]
    delivered = [event for event in run.events() if event.kind is Kind.DELIVER]
    latencies = sorted(event.time_ns - (event.submitted_ns or 0) for event in delivered)

    def percentile(share: float) -> int | None:
        # The smallest latency that at least this share of the others does not exceed.
        if not latencies:
            return None
        position = share * (len(latencies) - 1)
        return latencies[int(position) + (position > int(position))]

    first = min((event.submitted_ns or 0 for event in delivered), default=0)
    last = max((event.time_ns for event in delivered), default=0)
    messages = len({event.message for event in delivered})
    return {
        "events": len(kinds),
        "submitted": kinds.count(Kind.SUBMIT),
        "delivered": kinds.count(Kind.DELIVER),
        "dropped": kinds.count(Kind.DROP),
        "latency_ns": {
            name: percentile(share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1))
        },
        "throughput_per_s": round(messages * SECOND / (last - first), 3) if last > first else 0.0,
    }


def same_numbers(summary: Summary, run: Run) -> None:
    for name, value in recount(run).items():
        assert getattr(summary, name) == value, name


@pytest.mark.parametrize("faults", [(), (Crash(at_ms=2, host=0),)])
def test_the_summary_agrees_with_a_recount(faults: tuple[FaultSpec, ...]) -> None:
    run = simulate(scenario(*faults))
    summary = run.summary()
    assert summary.delivered > 0
    same_numbers(summary, run)
    assert summary.trace_hash == trace_hash(run.table)


def test_a_run_without_messages_has_a_summary_of_nothing() -> None:
    run = simulate(scenario(load=WorkloadSpec(messages=0)))
    summary = run.summary()
    same_numbers(summary, run)
    assert (summary.events, summary.throughput_per_s, summary.complete) == (0, 0.0, True)
    assert set(summary.latency_ns.values()) == {None}


def test_a_run_in_which_nothing_arrives_has_a_summary() -> None:
    run = simulate(scenario(*(Crash(at_ms=0, host=host) for host in range(3))))
    same_numbers(run.summary(), run)
    assert run.summary().delivered == 0


class Forger(Probe):
    """Delivers what nobody submitted, as well as what was."""

    def on_message(self, source: NodeId, message: Message) -> None:
        super().on_message(source, message)
        self.env.deliver(Delivered(b"made up", (0,), source))


def test_a_run_in_which_a_protocol_makes_something_up_has_a_summary() -> None:
    run = simulate(scenario(network=NetworkSpec()), probe_plan((0, 1, 2), kind=Forger))
    summary = run.summary()
    made_up = [event for event in run.events() if event.kind is Kind.DELIVER and event.message is None]
    assert made_up
    assert all(value is not None and value >= 0 for value in summary.latency_ns.values())
    assert summary.throughput_per_s > 0


def test_every_message_arrives_and_the_run_lingers_for_strays() -> None:
    run = simulate(scenario(network=NetworkSpec()))
    assert run.summary().delivered == 3 * 40
    assert run.description.complete
    last = max(event.time_ns for event in run.events())
    assert LINGER <= run.duration_ns - last < LINGER + 20 * MILLISECOND


def test_the_order_of_a_node_is_that_of_its_deliveries() -> None:
    run = simulate(scenario())
    wanted = [event.message for event in run.events() if event.kind is Kind.DELIVER and event.node == 1]
    assert run.order(1) == wanted


def test_a_run_is_stored_with_all_that_replays_it(tmp_path: Path) -> None:
    run = simulate(scenario(Pause(at_ms=1, host=0, for_ms=1)))
    folder = run.write(tmp_path)
    (stored,) = find_runs(tmp_path)
    assert stored.folder == folder
    described = msgspec.structs.replace(stored.description, files=run.description.files)
    assert msgspec.json.encode(described) == msgspec.json.encode(run.description)
    again = simulate(msgspec.convert(stored.description.scenario, Scenario))
    assert trace_hash(again.table) == trace_hash(stored.table()) == stored.description.trace_hash


def test_progress_never_goes_back_and_ends_at_the_whole() -> None:
    seen = list[tuple[int, int]]()
    simulate(scenario(), progress=lambda done, wanted: seen.append((done, wanted)))
    assert seen == sorted(seen)
    assert seen[-1] == (40, 40)


def complete(crashes: Crashes, *faults: FaultSpec, receivers: int = 3) -> bool:
    hosts = range(receivers + 1)
    plan = probe_plan(hosts, {0: tuple(range(receivers))}, (receivers,), crashes)
    return simulate(scenario(*faults, network=NetworkSpec()), plan).description.complete


def down(count: int) -> list[Crash]:
    return [Crash(at_ms=1, host=host) for host in range(count)]


@pytest.mark.parametrize(
    ("crashes", "receivers", "crashed", "expected"),
    [
        (Crashes.ANY, 3, 3, True),
        (Crashes.MINORITY, 3, 1, True),
        (Crashes.MINORITY, 3, 2, False),
        (Crashes.MINORITY, 4, 1, True),
        (Crashes.MINORITY, 4, 2, False),
        (Crashes.MINORITY, 1, 0, True),
        (Crashes.MINORITY, 1, 1, False),
        (Crashes.ONE, 4, 1, True),
        (Crashes.ONE, 4, 2, False),
        (Crashes.ONE, 1, 1, False),
        (Crashes.NONE, 3, 0, True),
        (Crashes.NONE, 3, 1, False),
    ],
)
def test_a_run_is_complete_if_no_more_are_down_than_the_contract_allows(
    crashes: Crashes, receivers: int, crashed: int, expected: bool
) -> None:
    assert complete(crashes, *down(crashed), receivers=receivers) is expected


def test_who_came_back_is_not_down() -> None:
    back = [Restart(at_ms=2, host=host) for host in range(2)]
    assert complete(Crashes.MINORITY, *down(2), *back)
    assert complete(Crashes.NONE, *down(2), *back)


def test_an_unhealed_partition_is_not_complete_and_a_healed_one_is() -> None:
    cut = Partition(at_ms=1, sides=((0,), (1, 2)))
    assert not complete(Crashes.ANY, cut)
    assert complete(Crashes.ANY, cut, Heal(at_ms=5))


def test_a_fault_after_the_last_message_still_happens() -> None:
    run = simulate(scenario(Crash(at_ms=500, host=0), network=NetworkSpec()))
    assert (500 * MILLISECOND, 0, Kind.CRASH) in [(e.time_ns, e.node, e.kind) for e in run.events()]


class Stubborn(Probe):
    """Sends each message again and again until all receivers have acknowledged it."""

    def __init__(self, env: Env, members: Mapping[int, tuple[NodeId, ...]]) -> None:
        super().__init__(env, members)
        self.seen: set[bytes] = set()
        self.mine: list[Parcel] = []

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Parcel)
        if message.payload not in self.seen:
            self.seen.add(message.payload)
            self.env.deliver(Delivered(message.payload, message.groups, source))

    def submit(self, groups: tuple[int, ...], payload: bytes) -> bool:
        self.mine.append(Parcel(groups, payload))
        self.on_timer("again")
        return True

    def on_timer(self, name: str) -> None:
        for parcel in self.mine:
            self.env.multicast(self.members[0], parcel)
        self.env.set_timer("again", 10 * MILLISECOND)


def stubborn() -> Plan:
    return probe_plan((0, 1), {0: (1,)}, (0,), kind=Stubborn)


def test_when_nothing_arrives_the_network_is_calmed_and_the_run_goes_on() -> None:
    lost = NetworkSpec(loss=1.0)
    run = simulate(scenario(network=lost, load=WorkloadSpec(messages=5)), stubborn())
    times = [event.time_ns for event in run.events() if event.kind is Kind.DELIVER]
    assert len(times) == 5
    assert min(times) >= 100 * MILLISECOND  # the settling time went by first
    assert run.description.complete


def test_who_needs_no_calm_gets_none() -> None:
    half = NetworkSpec(loss=0.5)
    run = simulate(scenario(network=half, load=WorkloadSpec(messages=5)), stubborn())
    assert run.summary().delivered == 5
    submitted = max(event.time_ns for event in run.events() if event.kind is Kind.SUBMIT)
    assert run.duration_ns - submitted < 100 * MILLISECOND + LINGER + 20 * MILLISECOND


class Repeater(Probe):
    """Node 1 delivers everything many times at once; node 2 delivers late."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Parcel)
        delivery = Delivered(message.payload, message.groups, source)
        if self.env.me == 1:
            for _ in range(5):
                self.env.deliver(delivery)
        else:
            name = f"late {len(self.on)}"
            self.on[name] = lambda probe: probe.env.deliver(delivery)
            self.env.set_timer(name, 80 * MILLISECOND)


def test_repeated_deliveries_at_one_receiver_do_not_stand_for_missing_ones_at_another() -> None:
    plan = probe_plan((0, 1, 2), {0: (1, 2)}, (0,), guarantees=Guarantees(integrity=False), kind=Repeater)
    run = simulate(scenario(network=NetworkSpec(), load=WorkloadSpec(messages=10, rate_per_s=50_000)), plan)
    assert len(set(run.order(1))) == 10
    assert len(set(run.order(2))) == 10


def test_rows_of_a_run_are_in_order_of_time() -> None:
    events: list[Event] = simulate(
        scenario(Crash(at_ms=1, host=0), Restart(at_ms=1, host=0, state="lost"))
    ).events()
    assert [event.time_ns for event in events] == sorted(event.time_ns for event in events)
    kinds = [event.kind for event in events if event.node == 0 and event.time_ns == MILLISECOND]
    assert kinds[:2] == [Kind.CRASH, Kind.RECOVER]


def test_a_run_whose_sides_may_have_split_goes_on_until_it_is_quiet() -> None:
    split = scenario(Partition(at_ms=2, sides=((0,), (1, 2))), Heal(at_ms=4), network=NetworkSpec())
    split = msgspec.structs.replace(split, protocol="atomic_multicast")
    plan = split.plan()
    promised = msgspec.structs.replace(plan.guarantees, partition=core.Partition.SIDE_BRANCHES_DISCARDED)
    usual, branching = simulate(split), simulate(split, dataclasses.replace(plan, guarantees=promised))
    assert usual.ending == branching.ending == "settled"
    assert usual.duration_ns < split.settle_ms * MILLISECOND < branching.duration_ns
