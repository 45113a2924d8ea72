"""Listed workloads: every message by itself."""

import pytest

from ordercast.core import LocalError
from ordercast.scenario.listed import list_submissions, listed_submissions
from ordercast.scenario.schedule import schedule
from ordercast.scenario.spec import Scenario, SubmissionSpec, WorkloadSpec, to_scenario
from ordercast.scenario.submission import Submission
from ordercast.sim.run import simulate
from ordercast.trace import Kind

LISTED = (
    SubmissionSpec(at_ms=2.5, sender=1, groups=(1, 0), bytes=100),
    SubmissionSpec(at_ms=1.000001, sender=0, groups=(1,), bytes=0),
)
SCENARIO = Scenario(
    protocol="unordered", groups=2, senders=2, workload=WorkloadSpec(kind="listed", submission=LISTED)
)


def test_the_messages_are_submitted_as_they_are_listed_and_by_no_other_rule() -> None:
    run = simulate(SCENARIO)
    told = [
        (event.time_ns, event.node, event.groups, event.size)
        for event in run.events()
        if event.kind is Kind.SUBMIT
    ]
    assert told[:2] == [(1_000_001, 6, (1,), 0), (2_500_000, 7, (0, 1), 100)]
    assert run.summary().delivered >= 9 and not run.violations


def test_real_processes_get_the_same_schedule() -> None:
    plan = SCENARIO.plan()
    assert list(schedule(SCENARIO, plan)) == listed_submissions(SCENARIO.workload, plan)


def test_a_list_of_submissions_is_the_workload_that_makes_them() -> None:
    plan = SCENARIO.plan()
    made = [Submission(1_234_567, 7, (0,), 8), Submission(98_765_432_109, 6, (0, 1), 64)]
    spec = WorkloadSpec(kind="listed", submission=list_submissions(made, plan))
    assert listed_submissions(spec, plan) == made


@pytest.mark.parametrize(
    ("submission", "said"),
    [
        ({"sender": 2}, r"workload.submission\[0\].sender: there is no sender 2; the 2 senders"),
        ({"groups": [5]}, r"workload.submission\[0\].groups: there is no group 5"),
        ({"groups": []}, r"workload.submission\[0\].groups: expected `array` of length >= 1"),
        ({"at_ms": -1}, r"workload.submission\[0\].at_ms: expected `float` >= 0.0"),
    ],
)
def test_wrong_submissions_are_named(submission: dict[str, object], said: str) -> None:
    content = {
        "protocol": "unordered",
        "senders": 2,
        "workload": {"kind": "listed", "submission": [submission]},
    }
    with pytest.raises(LocalError, match=said):
        simulate(to_scenario(content))


def test_only_a_listed_workload_lists_its_messages() -> None:
    content = {"protocol": "unordered", "workload": {"submission": [{}]}}
    with pytest.raises(LocalError, match=r"submission\[0\]: a poisson workload does not list its messages"):
        to_scenario(content)
