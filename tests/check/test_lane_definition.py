"""Drop detection against its plain definition: one receiver, one issuer, and anything happens."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core import Gaps, Guarantees
from tests.check.traces import Trace

Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("message", "message", "message", "drop", "added", "removed")), st.integers(0, 4)
    ),
    max_size=7,
)


@st.composite
def likely(draw: st.DrawFn) -> list[Step]:
    """Steps that keep all rules, but for one that is left out, or another one put in."""
    start = draw(st.integers(0, 2))
    numbers = range(start + 1, start + 1 + draw(st.integers(0, 4)))
    steps: list[Step] = [(draw(st.sampled_from(("message", "drop"))), number) for number in numbers]
    if start or draw(st.booleans()):
        steps.insert(0, ("added", start))
    if draw(st.booleans()):
        steps.append(("removed", draw(st.integers(0, start + len(numbers)))))
    place = draw(st.integers(0, len(steps)))
    steps[place : place + draw(st.integers(0, 1))] = draw(STEPS.map(lambda other: other[:1]))
    return steps


def comings(steps: list[Step]) -> list[int]:
    return [number for what, number in steps if what in ("message", "drop")]


def begins(steps: list[Step], fresh: bool) -> int:
    """The first number of a lane, after some steps: what a view says, or what came or was settled first."""
    added = [number for what, number in steps if what == "added"]
    if added:
        return added[-1] + 1
    if not fresh or not steps:
        return 1
    what, number = steps[0]
    return number + 1 if what == "removed" else number


def wrong(steps: list[Step], fresh: bool) -> bool:
    """Whether a lane breaks a rule. `fresh`: the receiver had lost its state."""
    came = comings(steps)
    if len(set(came)) < len(came):
        return True
    first = begins(steps, fresh)
    for place, (what, number) in enumerate(steps):
        before, after = steps[:place], steps[place + 1 :]
        if what == "added" and any(other != "added" for other, _ in before):
            return True
        if what == "removed" and comings(after):
            return True
        if what in ("message", "drop") and number < first:
            return True
        if what in ("message", "removed") and not set(range(first, number)) <= set(comings(before)):
            return True
        if what == "removed" and number >= first and number not in comings(before):
            return True
    return False


@given(st.one_of(STEPS, likely()), st.booleans())
@settings(max_examples=500)
def test_a_lane_is_judged_by_its_definition(steps: list[Step], fresh: bool) -> None:
    trace = Trace(Guarantees(gaps=Gaps.NOTIFIED))
    if fresh:
        trace.crash(0)
        trace.recover(0, "lost")
    for place, (what, number) in enumerate(steps):
        if what == "message":
            trace.numbered(0, trace.submit(), number, clock=place)
        elif what == "drop":
            trace.drop(0, number)
        else:
            (trace.added if what == "added" else trace.removed)(0, place, 9, number)
    assert bool(trace.judge()) == wrong(steps, fresh)
