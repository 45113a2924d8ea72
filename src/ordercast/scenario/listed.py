"""Listed workloads: a scenario that names each of its messages, with the time, the sender and the groups."""

from ordercast.core import MILLISECOND, Nanos, Plan
from ordercast.scenario.spec import ScenarioError, SubmissionSpec, WorkloadSpec
from ordercast.scenario.submission import Submission


def listed_submissions(spec: WorkloadSpec, plan: Plan) -> list[Submission]:
    """The messages of a listed workload, in order of time."""
    found = [_submission(index, listed, plan) for index, listed in enumerate(spec.submission)]
    return sorted(found, key=lambda submission: submission.at_ns)


def _submission(index: int, listed: SubmissionSpec, plan: Plan) -> Submission:
    key = f"workload.submission[{index}]"
    if listed.sender >= len(plan.senders):
        unknown = f"there is no sender {listed.sender}; the {len(plan.senders)} senders are numbered from 0"
        raise ScenarioError(f"{key}.sender", unknown)
    for group in listed.groups:
        if group not in plan.groups:
            raise ScenarioError(f"{key}.groups", f"there is no group {group}")
    at_ns: Nanos = round(listed.at_ms * MILLISECOND)
    return Submission(at_ns, plan.senders[listed.sender], tuple(sorted(set(listed.groups))), listed.bytes)


def list_submissions(submissions: list[Submission], plan: Plan) -> tuple[SubmissionSpec, ...]:
    """These submissions as the list of a workload."""
    places = {sender: place for place, sender in enumerate(plan.senders)}
    return tuple(
        SubmissionSpec(
            at_ms=one.at_ns / MILLISECOND, sender=places[one.sender], groups=one.groups, bytes=one.size
        )
        for one in submissions
    )
