"""What one group needs goes into a message, and what many need is sent in parts."""

from collections.abc import Callable

import pytest

from ordercast.components.consensus import VALUE_BYTES_MAX
from ordercast.core import Deployment, LocalError, Message
from ordercast.core.message import MESSAGE_DATA_MAX
from ordercast.protocols.atoms import PROTOCOL
from ordercast.protocols.atoms import parts as parts_module
from ordercast.protocols.atoms.commands import Decide, Final, encode
from ordercast.protocols.atoms.limits import Limits
from ordercast.protocols.atoms.messages import Plans, Seal, Sealed
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.parts import PROCESSES_MAX, parts, size_of
from ordercast.protocols.atoms.records import NUMBER_MAX, Begin, GroupPlan, Part, Post, Serial, Tenure
from ordercast.protocols.atoms.registry import Registry
from ordercast.protocols.atoms.sequencing_node import SequencingNode
from ordercast.testing import ProcessDriver
from tests.atoms.lab import Lab
from tests.atoms.plays import PLAYS

NODE, STORE = 5000, 5001
LONG: Serial = (NUMBER_MAX, NUMBER_MAX)


def size(message: Message) -> int:
    """The bytes of a message."""
    return len(PROTOCOL.deploy(Deployment(((0, 1),)), AtomsOptions()).codec.encode(message))


def test_many_publishers_of_many_groups_are_reported_in_parts() -> None:
    groups, publishers = 200, 1000
    options = AtomsOptions(nodes=1, store=1, copies=1)
    plans = Registry(dict.fromkeys(range(groups), (0,)), (NODE,), 1, "apart", causal=False).plans
    limits = Limits(range(groups), (NODE,), (STORE,))
    driver = ProcessDriver(lambda env: SequencingNode(env, plans, (STORE,), limits, options), me=NODE)
    for group in range(groups):
        driver.process._keeping.log(group).serials = {1 + node: LONG for node in range(publishers)}
    driver.take_sent()
    labels = tuple(plan.label for plan in plans.values())
    driver.receive(STORE, Seal(1, max(plan.version for plan in plans.values()), labels))
    told = [message for _, message in driver.take_sent() if isinstance(message, Sealed)]
    assert [report.group for message in told for report in message.reports] == list(range(groups))
    assert sum(map(size, told)) > MESSAGE_DATA_MAX > max(map(size, told))


def the_largest_plan() -> GroupPlan:
    """Of a group with as many members and publishers as there may be."""
    far = NUMBER_MAX - PROCESSES_MAX
    serials = tuple((far + node, LONG) for node in range(PROCESSES_MAX // 2))
    tenures = tuple(Tenure(far + node, far, far) for node in range(PROCESSES_MAX // 2))
    begin = Begin(far, far, tuple(range(1000)), ())
    return GroupPlan(0, far, far, ((far, far),), far, begin, (), (), tenures, serials, (), far)


def test_the_largest_group_fits_into_a_message_and_into_the_log_of_the_store() -> None:
    assert size(Plans(0, 1, 1, (the_largest_plan(),))) < MESSAGE_DATA_MAX
    serials = tuple((NUMBER_MAX - node, LONG) for node in range(PROCESSES_MAX))
    held = tuple(Part(Post(node, NUMBER_MAX), NUMBER_MAX, NUMBER_MAX) for node in range(1000))
    assert len(encode(Decide(1, (Final(0, 1, 1, serials, held, ()),)))) < VALUE_BYTES_MAX


def test_a_deployment_with_more_processes_is_refused() -> None:
    with pytest.raises(LocalError, match=r"2 subscribers and 49999 publishers; the limit is 50000"):
        PROTOCOL.deploy(Deployment(((0, 1),), PROCESSES_MAX - 1), AtomsOptions())


def test_parts_are_as_large_as_allowed_and_in_order() -> None:
    posts = [Post(number, NUMBER_MAX) for number in range(200_000)]
    found = list(parts(posts))
    assert [post for part in found for post in part] == posts
    assert len(found) == 1 + sum(map(size_of, posts)) // parts_module.PART_BYTES > 2
    assert [len(part) for part in parts(posts[:7], 3)] == [3, 3, 1]
    assert list(parts(())) == []


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_a_play_ends_well_if_everything_is_sent_in_parts(
    play: Callable[[], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "PART_BYTES", 0)
    assert play() == set()


def test_plans_and_reports_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "PART_BYTES", 0)
    lab = Lab((0, 1), (0, 1), (0, 1), joiners=1)
    lab.join(2, 0)
    lab.wait_ms(30)
    lab.submit("a", 1)
    told = [message for _, _, message in lab.sent if isinstance(message, Plans | Sealed)]
    assert {len(one.plans if isinstance(one, Plans) else one.reports) for one in told} == {1}
    assert lab.registry().change == 1
    assert lab.finish() == set() and lab.log(0) == ["a"]
