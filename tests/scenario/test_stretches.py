"""Stretches: when a protocol must go on, by its guarantees, its pace and the faults of a scenario."""

from dataclasses import replace

import msgspec

from ordercast.core import (
    MICROSECOND,
    MILLISECOND,
    Crashes,
    Guarantees,
    HostId,
    Node,
    Pace,
    Partition,
    Plan,
)
from ordercast.scenario import faults
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import FaultSpec
from ordercast.scenario.spec import (
    BackgroundSpec,
    ChiSquareSpec,
    ClocksSpec,
    ConstantSpec,
    GraphSpec,
    LatencySpec,
    LinksSpec,
    NetworkSpec,
    Scenario,
    SitesSpec,
    UniformSpec,
)
from ordercast.scenario.stretches import pace_of, stretches_of
from ordercast.trace import Stretch
from tests.sim.probes import probe_plan

END = 1000 * MILLISECOND
DELIVERY, RECOVERY = 20 * MILLISECOND, 100 * MILLISECOND
MAJORITY = Guarantees(partition=Partition.MAJORITY_CONTINUES, crashes=Crashes.MINORITY)
EACH_SIDE = Guarantees()
SIDE_BRANCHES = Guarantees(partition=Partition.SIDE_BRANCHES_DISCARDED, crashes=Crashes.ALL_BUT_ONE)
BLOCKS = Guarantees(partition=Partition.BLOCKS, crashes=Crashes.MINORITY)


def plan_of(guarantees: Guarantees = MAJORITY, service: Crashes | None = None) -> Plan:
    """Three receivers, a sender at host 3, and perhaps three nodes of a service at hosts 4 to 6."""
    plan = probe_plan(range(4), {0: (0, 1, 2)}, (3,), guarantees=guarantees)
    nodes = plan.nodes
    if service is not None:
        nodes += tuple(Node(node, "service", node, nodes[0].factory, fails=service) for node in range(4, 7))
    return replace(plan, nodes=nodes, pace=lambda delay: Pace(DELIVERY, RECOVERY))


def found(*struck: FaultSpec, plan: Plan | None = None, **fields: object) -> list[Stretch]:
    scenario = Scenario(protocol="", liveness=True, fault=struck)
    scenario = msgspec.structs.replace(scenario, **fields)
    return list(stretches_of(scenario, plan or plan_of(), END))


def cut(at_ms: float, *hosts: HostId, one_way: bool = False, others: tuple[HostId, ...] = ()) -> FaultSpec:
    rest = others or tuple(host for host in range(7) if host not in hosts)
    return faults.Partition(at_ms=at_ms, sides=(hosts, rest), one_way=one_way)


def test_without_faults_the_whole_run_is_one_stretch_from_its_first_moment() -> None:
    assert found() == [Stretch(0, END, DELIVERY, (3,), (0, 1, 2))]


def test_nothing_is_judged_unless_the_scenario_asks_for_it() -> None:
    assert found(liveness=False) == []


def test_after_a_fault_the_protocol_has_the_time_to_recover() -> None:
    before, after = found(faults.Crash(at_ms=300, host=0))
    assert before.end_ns == 300 * MILLISECOND
    assert (after.begin_ns, after.receivers) == (300 * MILLISECOND + RECOVERY, (1, 2))


def test_faults_that_follow_each_other_closely_leave_no_stretch() -> None:
    struck = [faults.Crash(at_ms=100.0 * n + 10, host=0) for n in range(8)]
    back = [faults.Restart(at_ms=100.0 * n + 60, host=0) for n in range(8)]
    assert [one.begin_ns for one in found(*struck, *back)] == [760 * MILLISECOND + RECOVERY]


def test_faults_that_change_nothing_do_not_end_a_stretch() -> None:
    nothing = faults.Heal(at_ms=300), faults.SetClock(at_ms=400, host=0, step_us=0)
    assert found(*nothing) == found()
    at_once = faults.Crash(at_ms=300, host=0), faults.Restart(at_ms=300, host=0)
    assert len(found(*at_once)) == 2, "the host was down, however short"


def test_too_many_crashes_leave_no_stretch_until_they_are_back() -> None:
    crashes = [faults.Crash(at_ms=100, host=host) for host in (0, 1)]
    assert len(found(*crashes)) == 1
    *_, last = found(*crashes, faults.Restart(at_ms=500, host=1))
    assert last.receivers == (1, 2)


def test_the_majority_side_of_a_partition_goes_on_and_the_minority_does_not() -> None:
    _, after = found(cut(200, 0))
    assert (after.senders, after.receivers) == ((3,), (1, 2))
    _, after = found(cut(200, 0, 3))
    assert (after.senders, after.receivers) == ((), (1, 2))


def test_each_side_goes_on_if_that_is_promised() -> None:
    _, *after = found(cut(200, 0, 3), plan=plan_of(EACH_SIDE))
    assert [one.receivers for one in after] == [(0,), (1, 2)]


def test_each_side_goes_on_if_all_branches_but_one_are_discarded_later() -> None:
    _, *after = found(cut(200, 0, 3), plan=plan_of(SIDE_BRANCHES))
    assert [one.receivers for one in after] == [(0,), (1, 2)]
    crashes = [faults.Crash(at_ms=150.0 * host, host=host) for host in range(3)]
    *_, last = found(*crashes, plan=plan_of(SIDE_BRANCHES))
    assert (last.end_ns, last.receivers) == (300 * MILLISECOND, (2,))


def test_a_protocol_that_blocks_promises_nothing_while_a_receiver_is_cut_off() -> None:
    assert len(found(cut(200, 0), plan=plan_of(BLOCKS))) == 1
    assert len(found(cut(200, 0), faults.Heal(at_ms=400), plan=plan_of(BLOCKS))) == 2


def test_a_host_that_is_cut_off_one_way_is_left_behind() -> None:
    for sides in (((0,), (1, 2, 3)), ((1, 2, 3), (0,))):
        _, after = found(faults.Partition(at_ms=200, sides=sides, one_way=True))
        assert (after.senders, after.receivers) == ((3,), (1, 2))


def test_links_that_are_cut_in_part_leave_no_stretch() -> None:
    assert len(found(cut(200, 0, others=(1,)))) == 1
    assert len(found(cut(200, 0, others=(1,), one_way=True))) == 1
    heard_by_one = cut(200, 0, others=(1, 2), one_way=True), cut(200, 3, others=(0,), one_way=True)
    assert len(found(*heard_by_one)) == 1, "host 0 exchanges packets with nobody, but hears some of them"


def test_infrastructure_must_be_there_as_its_role_says() -> None:
    for service, hosts, enough in (
        (Crashes.MINORITY, (4,), True),
        (Crashes.MINORITY, (4, 5), False),
        (Crashes.ANY, (4, 5), True),
        (Crashes.ANY, (4, 5, 6), False),
        (Crashes.ONE, (4,), True),
        (Crashes.ONE, (4, 5), False),
        (Crashes.NONE, (4,), False),
    ):
        stretches = found(cut(200, *hosts), plan=plan_of(service=service))
        assert (len(stretches) == 2) is enough, (service, hosts)


def test_loss_reordering_and_pauses_leave_no_stretch_but_duplication_does() -> None:
    assert found(network=NetworkSpec(loss=0.1)) == []
    assert found(network=NetworkSpec(reordering=0.1)) == []
    assert len(found(network=NetworkSpec(duplication=0.1))) == 1
    weather = faults.Weather(at_ms=500, conditions=Conditions(loss=0.1))
    assert [one.end_ns for one in found(weather)] == [500 * MILLISECOND]
    before, after = found(faults.Pause(at_ms=200, host=1, for_ms=300))
    assert (before.end_ns, after.begin_ns) == (200 * MILLISECOND, 500 * MILLISECOND + RECOVERY)


def test_slow_links_leave_no_stretch_until_all_are_as_fast_as_before() -> None:
    sides = ((0, 1), (2, 3))
    slow = faults.Delay(at_ms=200, sides=sides, by_us=100)
    assert [one.end_ns for one in found(slow)] == [200 * MILLISECOND]
    half = faults.Delay(at_ms=300, sides=sides, by_us=0, one_way=True)
    assert [one.end_ns for one in found(slow, half)] == [200 * MILLISECOND]
    for end in (faults.Delay(at_ms=500, sides=sides, by_us=0), faults.Heal(at_ms=500)):
        assert found(slow, half, end)[1].begin_ns == 500 * MILLISECOND + RECOVERY


def test_a_pause_within_another_makes_it_longer() -> None:
    pauses = [faults.Pause(at_ms=at_ms, host=1, for_ms=100) for at_ms in (200, 250)]
    assert found(*pauses)[-1].begin_ns == 400 * MILLISECOND + RECOVERY


def test_clocks_that_differ_make_deliveries_later() -> None:
    scenario = Scenario(protocol="", liveness=True, clocks=ClocksSpec(skew_us=1000))
    stepped = msgspec.structs.replace(scenario, fault=(faults.SetClock(at_ms=1, host=0, step_us=-2000),))
    assert pace_of(scenario, plan_of()) == Pace(DELIVERY + MILLISECOND, RECOVERY + MILLISECOND)
    assert pace_of(stepped, plan_of()) == Pace(DELIVERY + 3 * MILLISECOND, RECOVERY + 3 * MILLISECOND)


def delay_of(latency: LatencySpec, background: BackgroundSpec | None = None) -> float | None:
    """The longest delay that the plan is asked about, in microseconds."""
    network = NetworkSpec(latency=latency, background=background)
    scenario = Scenario(protocol="", liveness=True, network=network)
    pace = pace_of(scenario, replace(plan_of(), pace=lambda delay: Pace(delay, delay)))
    return None if pace is None else pace.delivery_ns / MICROSECOND


def test_the_longest_delay_follows_from_the_network() -> None:
    assert delay_of(ConstantSpec(70)) == 70
    assert delay_of(UniformSpec(10, 90)) == 90
    assert delay_of(ChiSquareSpec(100, 10)) == 160
    assert delay_of(SitesSpec(((0,), (1, 2, 3)), ConstantSpec(5), UniformSpec(1, 50))) == 50
    links = delay_of(LinksSpec())
    assert links is not None and 400 < links < 500
    assert delay_of(GraphSpec("somewhere")) is None
    assert delay_of(LinksSpec("fat-tree"), BackgroundSpec()) is None


def test_a_plan_without_a_pace_has_no_stretch() -> None:
    assert found(plan=replace(plan_of(), pace=lambda delay: None)) == []
