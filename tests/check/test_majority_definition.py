"""Agreement on the last message of a removed issuer against its plain definition (Hydra, Appendix B)."""

from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ordercast.core import Agreement, GroupId, Guarantees, NodeId
from tests.check.traces import Trace

ISSUER = 9


class Case(NamedTuple):
    """What became of a message with number 1 in its groups, up to the views that remove its issuer."""

    groups: tuple[str, ...]
    """For each group what its receivers got: the message, a notification or nothing (m, n, -); in capitals,
    and as a dot, if they crash afterwards."""
    lasts: tuple[int, ...]
    """For each group the last number, 0 or 1."""
    uniform: bool = False

    def members(self) -> dict[GroupId, tuple[NodeId, ...]]:
        edges = pairwise(accumulate(map(len, self.groups), initial=0))
        return {group: tuple(range(*edge)) for group, edge in enumerate(edges)}


def trace_of(case: Case) -> Trace:
    promise = Guarantees(agreement=Agreement.NOTIFIED)
    trace = Trace(msgspec.structs.replace(promise, uniform=case.uniform), case.members())
    message = trace.submit(groups=tuple(case.members()))
    for node, got in enumerate("".join(case.groups)):
        group = next(group for group, members in case.members().items() if node in members)
        if got in "mM":
            trace.numbered(node, message, *(1 for _ in case.groups), issuer=ISSUER)
        elif got in "nN":
            trace.drop(node, 1, group=group, issuer=ISSUER)
        trace.removed(node, 1, ISSUER, case.lasts[group], group=group)
        if got in "MN.":
            trace.crash(node)
    return trace


def owing(case: Case) -> set[NodeId]:
    """The correct receivers that lack what binds them."""
    everyone = "".join(case.groups)
    up = {node for node, got in enumerate(everyone) if got in "mn-"}
    message = {node for node, got in enumerate(everyone) if got in "mM"}
    either = {node for node, got in enumerate(everyone) if got in "mMnN"}
    members = {group: set(nodes) for group, nodes in case.members().items()}
    witnesses = either if case.uniform else either & up
    everywhere = any(2 * len(message & group) > len(group) for group in members.values())
    found: set[NodeId] = set()
    for group, nodes in members.items():
        settled = case.lasts[group] > 0 or everywhere or 2 * len(either & nodes) > len(nodes)
        if settled and witnesses & (message | nodes):
            found |= (nodes & up) - either
    return found


CASES = st.lists(
    st.tuples(st.text("mmnn--MN.", min_size=1, max_size=4), st.integers(0, 1)), min_size=1, max_size=3
).flatmap(
    lambda groups: st.builds(
        Case, st.just(tuple(got for got, _ in groups)), st.just(tuple(n for _, n in groups)), st.booleans()
    )
)


@settings(max_examples=300)
@given(CASES)
@example(Case(("m--", "m--"), (0, 0)))
@example(Case(("mM-", "---"), (0, 0)))
@example(Case(("MM-", "n--"), (0, 0)))
@example(Case(("nN-", "m--"), (0, 0)))
def test_those_that_owe_the_last_message_are_those_of_the_definition(case: Case) -> None:
    found = trace_of(case).judge()
    assert {violation.property for violation in found} <= {"agreement"}
    blamed = {node for violation in found for node in violation.nodes[1:]}
    assert blamed == owing(case)
