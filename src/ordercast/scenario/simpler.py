"""Simpler scenarios: the same run with one setting put back to its default, or squeezed into less time."""

from collections.abc import Iterator

import msgspec

from ordercast.scenario.cpu import Cpu
from ordercast.scenario.spec import ClocksSpec, ConstantSpec, Scenario

GAPS_MS = (1.0, 5.0, 20.0, 100.0)
"""The longest pauses between two events that a squeezed scenario may have."""

_replace = msgspec.structs.replace


def simpler(scenario: Scenario) -> Iterator[Scenario]:
    """Each scenario that differs in one setting, which it has at the default."""
    yield from _networks(scenario)
    for change in (
        {"clocks": ClocksSpec()},
        {"cpu": Cpu(), "role_cpu": {}},
        {"bundle_bytes": 0},
        {"codec": False},
        {"live_options": False},
        {"liveness": False},
    ):
        yield _replace(scenario, **change)
    for name in scenario.options:
        yield _replace(scenario, options={key: own for key, own in scenario.options.items() if key != name})
    yield from _submissions(scenario)


def _networks(scenario: Scenario) -> Iterator[Scenario]:
    for change in ({"background": None}, {"latency": ConstantSpec()}, {"loss": 0.0}, {"duplication": 0.0}):
        yield _replace(scenario, network=_replace(scenario.network, **change))
    yield _replace(scenario, network=_replace(scenario.network, reordering=0.0, reorder_us=1000.0))


def _submissions(scenario: Scenario) -> Iterator[Scenario]:
    """Smaller messages, to one group each, all of the first sender."""
    listed = scenario.workload.submission
    for lighter in (
        tuple(_replace(one, bytes=8) for one in listed),
        tuple(_replace(one, groups=one.groups[:1]) for one in listed),
        tuple(_replace(one, sender=0) for one in listed),
    ):
        yield _replace(scenario, workload=_replace(scenario.workload, submission=lighter))


def squeezed(scenario: Scenario) -> Iterator[Scenario]:
    """The same events in the same order, with shorter pauses between them; then with round times."""
    if scenario.workload.kind != "listed":
        return
    for gap_ms in GAPS_MS:
        yield _retimed(scenario, _squeeze(_times(scenario), gap_ms))
    yield _retimed(scenario, {time: round(time, 1) for time in _times(scenario)})


def _times(scenario: Scenario) -> list[float]:
    times = {one.at_ms for one in (*scenario.fault, *scenario.changes)}
    return sorted(times | {one.at_ms for one in scenario.workload.submission})


def _squeeze(times: list[float], gap_ms: float) -> dict[float, float]:
    """A new time for each time; no two that follow each other are further apart than `gap_ms`."""
    moved: dict[float, float] = {}
    before = now = 0.0
    for time in times:
        now += min(gap_ms, time - before)
        moved[time], before = round(now, 6), time
    return moved


def _retimed(scenario: Scenario, moved: dict[float, float]) -> Scenario:
    listed = scenario.workload.submission
    return _replace(
        scenario,
        fault=tuple(_replace(fault, at_ms=moved[fault.at_ms]) for fault in scenario.fault),
        join=tuple(_replace(one, at_ms=moved[one.at_ms]) for one in scenario.join),
        leave=tuple(_replace(one, at_ms=moved[one.at_ms]) for one in scenario.leave),
        workload=_replace(
            scenario.workload, submission=tuple(_replace(one, at_ms=moved[one.at_ms]) for one in listed)
        ),
    )
