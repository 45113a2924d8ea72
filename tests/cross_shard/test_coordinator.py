"""Who may decide what: the failure coordinator, driven by hand, with two groups of three replicas.

Replica 0 leads group 0 in view 0, replica 4 in view 1; of group 1 these are 3 and 4.
"""

import pytest

from ordercast.components.cross_shard import CoordinatorOptions, FailureCoordinator
from ordercast.components.cross_shard.coordinator import RULINGS_FEW
from ordercast.components.cross_shard.ledger import NOTHING
from ordercast.components.cross_shard.marks import Lost, Mark
from ordercast.components.cross_shard.messages import (
    Certain,
    FindMessages,
    Floors,
    FoundMessages,
    Gone,
    Late,
    Promised,
    Question,
    Shown,
)
from ordercast.components.cross_shard.rulings import Show, encode
from ordercast.components.network_ordered import LogEntry
from ordercast.core import MILLISECOND, Delivered, Env, Explanation, Groups, Member, Message, NodeId, Stamp
from ordercast.testing import ProcessDriver

GROUPS = {0: (0, 1, 2), 1: (3, 4, 5)}
REPLICAS = (0, 1, 2, 3, 4, 5)
MARK: Mark = (1, 0, 7)
LOSS = Lost(MARK, 60)
ENTRY = LogEntry(50, 1, 7, 9, b"both", (0, 1), (7, 3))
OPTIONS = CoordinatorOptions(replicas=1)


class Sender(Member):
    """Notes what is to be sent to groups."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.submitted: list[tuple[Groups, bytes]] = []

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Note it."""
        self.submitted.append((groups, payload))
        return True

    def on_message(self, source: NodeId, message: Message) -> None:
        """Nothing comes."""

    def explain(self) -> Explanation:
        """Nothing waits."""
        return Explanation({}, (), "")


class Lab:
    """A coordinator of one replica, which leads."""

    def __init__(self) -> None:
        def make(env: Env) -> FailureCoordinator:
            return FailureCoordinator(env, GROUPS, (41,), OPTIONS, Sender, ())

        self.driver = ProcessDriver(make, me=41, now=1)
        self.driver.pass_time(200 * MILLISECOND)
        assert self.driver.process._log.is_leader
        self.driver.take_sent()

    def tell(self, source: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        """Let a message come; returns what is sent then."""
        self.driver.receive(source, message)
        return self.driver.take_sent()

    def promise(self, *promises: tuple[NodeId, int, int]) -> bool:
        """Let replicas promise in a view, with a tag; whether the message is gone then."""
        sent: list[tuple[NodeId, Message]] = []
        for node, view, tag in promises:
            sent += self.tell(node, Promised(view, tag, (MARK,)))
        assert all(message == Gone((LOSS,)) for _, message in sent), sent
        return bool(sent)


def asking() -> Lab:
    """A coordinator that was asked for the message."""
    lab = Lab()
    assert lab.tell(0, FindMessages((LOSS,))) == [(node, Question((LOSS,))) for node in REPLICAS]
    return lab


OTHERS = ((3, 0, 0), (5, 0, 0))
"""Enough of group 1."""


def test_a_majority_of_every_group_with_its_leader_decides() -> None:
    assert asking().promise((0, 0, 0), (1, 0, 0), *OTHERS)


def test_a_decision_is_told_to_everybody() -> None:
    lab = asking()
    lab.promise((0, 0, 0), (3, 0, 0), (5, 0, 0))
    assert lab.tell(1, Promised(0, 0, (MARK,))) == [(node, Gone((LOSS,))) for node in REPLICAS]
    assert lab.tell(2, Promised(0, 0, (MARK,))) == [(2, Gone((LOSS,)))], "who comes later, too"


def test_each_group_has_its_own_view_and_tag() -> None:
    assert asking().promise((1, 4, 2), (0, 4, 2), (5, 2, 1), (4, 2, 1))


@pytest.mark.parametrize(
    "promises",
    [
        ((0, 0, 0),),
        ((1, 0, 0), (2, 0, 0)),
        ((0, 0, 0), (1, 1, 0)),
        ((0, 0, 0), (1, 1, 0), (2, 1, 1)),
        ((0, 0, 0), (1, 0, 1)),
        ((0, 0, 0), (1, 0, 1), (2, 0, 1)),
        ((0, 1, 0), (2, 1, 0)),
        ((0, 0, 0), (1, 0, 0), (0, 1, 0)),
    ],
    ids=[
        "no majority",
        "a majority without the leader",
        "two views",
        "three views and tags",
        "two tags",
        "the leader with another tag",
        "the leader of another view",
        "the leader has gone on to another view",
    ],
)
def test_other_promises_decide_nothing(promises: tuple[tuple[NodeId, int, int], ...]) -> None:
    lab = asking()
    if promises[-1] == (0, 1, 0):  # the last promise of a replica counts: so the others come after it
        assert not lab.promise(*promises)
        assert not lab.promise(*OTHERS)
    else:
        assert not lab.promise(*OTHERS, *promises)
    assert lab.promise((1, 0, 0), (0, 0, 0)), "these do"


@pytest.mark.parametrize("group", [0, 1])
def test_no_group_decides_for_the_other(group: int) -> None:
    lab = asking()
    assert not lab.promise(*((node, 0, 0) for node in GROUPS[group]))
    assert lab.promise(*((node, 0, 0) for node in GROUPS[1 - group]))


def test_promises_that_nobody_asked_for_decide_nothing() -> None:
    lab = Lab()
    assert not lab.promise(*((node, 0, 0) for node in REPLICAS))
    lab.tell(0, FindMessages((LOSS,)))
    assert not lab.promise((0, 0, 0), (1, 0, 0))


def test_anybody_who_has_it_decides() -> None:
    lab = asking()
    assert not lab.promise((0, 0, 0), (1, 0, 0), (3, 0, 0))
    assert lab.tell(5, Shown(ENTRY)) == [(node, FoundMessages((ENTRY,))) for node in REPLICAS]
    assert lab.tell(4, Promised(0, 0, (MARK,))) == [(4, FoundMessages((ENTRY,)))]
    assert lab.tell(1, FindMessages((LOSS,))) == [(1, FoundMessages((ENTRY,)))]


def test_who_shows_what_is_gone_is_told_so() -> None:
    lab = asking()
    assert lab.promise((0, 0, 0), (1, 0, 0), *OTHERS)
    gone = Gone((Lost(MARK, 50), Lost((1, 1, 3), 50)))
    assert lab.tell(4, Shown(ENTRY)) == [(node, gone) for node in REPLICAS], "all marks of it are known now"
    assert lab.tell(4, Shown(ENTRY)) == [(4, gone)]
    assert lab.tell(3, FindMessages((Lost((1, 1, 3), 90),))) == [(3, Gone((Lost((1, 1, 3), 50),)))]


def test_a_question_is_repeated_until_it_is_decided() -> None:
    lab = asking()
    lab.driver.pass_time(OPTIONS.ask_ns)
    asked = [message for _, message in lab.driver.take_sent() if isinstance(message, Question)]
    assert asked == [Question((LOSS,))] * len(REPLICAS)
    lab.driver.pass_time(100 * OPTIONS.ask_ns)
    again = [to for to, message in lab.driver.take_sent() if isinstance(message, Question)]
    assert 4 < again.count(0) < 16, "less and less often"
    lab.promise((0, 0, 0), (1, 0, 0), *OTHERS)
    lab.driver.pass_time(100 * OPTIONS.ask_ns)
    assert not any(isinstance(message, Question) for _, message in lab.driver.take_sent())


def test_what_all_groups_are_beyond_is_forgotten() -> None:
    lab = asking()
    lab.promise((0, 0, 0), (1, 0, 0), *OTHERS)
    coordinator = lab.driver.process
    lab.tell(0, Certain(60))
    lab.driver.pass_time(OPTIONS.certain_ns)
    assert (0, Floors((60, 0))) in lab.driver.take_sent()
    assert len(coordinator._rulings) == 1, "the other group may still ask"
    lab.tell(3, Certain(70))
    lab.driver.pass_time(OPTIONS.certain_ns)
    assert (5, Floors((60, 70))) in lab.driver.take_sent()
    assert len(coordinator._rulings) == 0
    assert lab.tell(4, Shown(ENTRY)) == [(4, Floors((60, 70)))], "it is too late for that"
    assert lab.tell(0, FindMessages((LOSS,))) == []


def test_clocks_of_groups_do_not_go_back() -> None:
    lab = Lab()
    for clock in (60, 40):
        lab.tell(0, Certain(clock))
    assert lab.driver.process._floors() == Floors((60, 0))


def test_a_late_transaction_is_ended_in_all_of_its_shards() -> None:
    lab = Lab()
    lab.tell(0, Late(((77, (0, 1)), (78, (1,)))))
    sender = lab.driver.process._sender
    assert isinstance(sender, Sender)
    assert [groups for groups, _ in sender.submitted] == [(0, 1), (1,)]
    assert len({payload for _, payload in sender.submitted}) == 2


def test_it_says_whose_promises_are_missing() -> None:
    lab = asking()
    lab.promise((0, 0, 0), (1, 0, 0))
    assert [(subject, blocker) for subject, blocker, _ in lab.driver.waits()] == [
        ("number 7 of sequencer 1 in group 0", "a majority of groups 1, or a replica that has it")
    ]


@pytest.mark.parametrize(
    "entry",
    [LogEntry(50, 1, 7, 9, b"one", (0, 1), (7,)), LogEntry(50, 1, 7, 9, b"nobody")],
    ids=["too few numbers", "no groups"],
)
def test_a_command_about_a_message_that_cannot_be_is_counted_and_not_obeyed(entry: LogEntry) -> None:
    """A leader that proposes it must not stop the other coordinators."""
    lab = Lab()
    coordinator = lab.driver.process
    before = coordinator.snapshot()
    coordinator.on_deliver("log", Delivered(encode(Show(entry)), (0,), 41, Stamp(0, 0)))
    assert coordinator.snapshot() == before
    assert coordinator.explain_own().state["commands refused"] == 1


def test_an_idle_group_is_sent_something_when_there_are_many_decisions() -> None:
    """Otherwise they would be kept for ever; a group that does not answer is sent little."""
    lab = Lab()
    sender, coordinator = lab.driver.process._sender, lab.driver.process
    assert isinstance(sender, Sender)
    for number in range(1, RULINGS_FEW + 2):
        assert sender.submitted == []
        lab.tell(0, Certain(number))
        lab.tell(3, Shown(LogEntry(number, 1, number, 9, b"one", (0,), (number,))))
        lab.driver.pass_time(OPTIONS.certain_ns)
    assert sender.submitted == [((1,), NOTHING)]
    lab.driver.pass_time(32 * OPTIONS.certain_ns)
    assert sender.submitted == [((1,), NOTHING)] * 3
    assert len(coordinator._rulings) == RULINGS_FEW + 1
    lab.tell(3, Certain(RULINGS_FEW + 1))
    lab.driver.pass_time(32 * OPTIONS.certain_ns)
    assert len(coordinator._rulings) == 0
    assert len(sender.submitted) == 3
