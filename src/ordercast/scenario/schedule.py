"""The submissions of open-loop senders, drawn before the run from the seed, as the simulator draws them."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

from ordercast.core import Plan
from ordercast.scenario.arrivals import arrivals_of
from ordercast.scenario.destinations import Destinations
from ordercast.scenario.listed import listed_submissions
from ordercast.scenario.operations import operations_of
from ordercast.scenario.recorded_run import submissions_of
from ordercast.scenario.seeds import workload_stream
from ordercast.scenario.spec import Scenario
from ordercast.scenario.submission import Submission, check_submission
from ordercast.toml_file import about


def schedule(scenario: Scenario, plan: Plan) -> Iterator[Submission]:
    """All submissions of a scenario that has an open-loop workload, in order of time."""
    spec = scenario.workload
    if spec.kind == "listed":
        yield from listed_submissions(spec, plan)
        return
    if spec.kind == "trace":
        with about("workload.file"):
            for submission in submissions_of(Path(spec.file))[: spec.messages]:
                check_submission(submission, plan.senders, plan.groups)
                yield submission
        return
    destinations = Destinations.of(spec, plan)
    arrivals = dict(zip(plan.senders, arrivals_of(scenario, len(plan.senders)), strict=True))
    draws = {sender: workload_stream(scenario.seed, sender) for sender in plan.senders}
    operations = operations_of(scenario, plan)
    due: list[tuple[int, int, int]] = []
    ties = count()  # at the same time, the sender that has waited longest is first, as in the simulator

    def await_next(sender: int, now: int) -> None:
        gap = arrivals[sender].gap(draws[sender])
        if gap is not None:
            heappush(due, (now + gap, next(ties), sender))

    for sender in plan.senders:
        await_next(sender, 0)
    for number in range(1, 1 + spec.messages):
        if not due:
            return
        now, _, sender = heappop(due)
        groups = destinations.choose(draws[sender])
        if operations is None:
            yield Submission(now, sender, groups, spec.bytes)
        else:
            payload, read, placed = operations.draw(draws[sender], number)
            yield Submission(now, sender, placed or groups, len(payload), payload, read)
        await_next(sender, now)
