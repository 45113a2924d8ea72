"""What a member with states believes of others, and what its application may do."""

import pytest

from ordercast.components.application_state import StatefulMember
from ordercast.components.application_state.donor import KEEP_NS, UNANSWERED_MAX, Donor
from ordercast.components.application_state.held import HELD_BYTES_MAX, Held
from ordercast.components.application_state.messages import (
    MESSAGES,
    STATE_BYTES_MAX,
    PieceRequest,
    Possession,
    StateAnswer,
    StatePiece,
    StateQuestion,
    StateTaken,
)
from ordercast.components.application_state.newcomer import FETCHING, PROMISED, SEEKING, Newcomer
from ordercast.components.membership.limits import VIEWS_AHEAD_MAX
from ordercast.core import (
    Codec,
    Delivered,
    Deployment,
    Joined,
    Left,
    LocalError,
    Message,
    Process,
    RemoteError,
    State,
    Stateful,
    StateWanted,
    View,
)
from ordercast.protocols.view_synchronous import PROTOCOL
from ordercast.testing.process_driver import ProcessDriver
from ordercast.testing.recording_env import RecordingEnv

PLAN = PROTOCOL.deploy(
    Deployment(((0, 1, 2),), senders=1, joiners=1), PROTOCOL.options(application_state=True)
)
STRANGER = 77


def member() -> ProcessDriver[Process]:
    return ProcessDriver(PLAN.nodes[0].factory)


CLAIMS = {
    "a group that there is not": (1, StateQuestion(9, 1)),
    "a view that nobody can have reached": (1, StateAnswer(0, VIEWS_AHEAD_MAX + 9, Possession.HAS)),
    "a stranger": (STRANGER, StateTaken(0, 1)),
    "a state that is too large": (1, StatePiece(0, 1, 0, STATE_BYTES_MAX + 1, b"x")),
    "more bytes than the state has": (1, StatePiece(0, 1, 4, 5, b"xx")),
    "a byte beyond all states": (1, PieceRequest(0, 1, STATE_BYTES_MAX + 1)),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_that_no_correct_member_makes_are_refused(claim: str) -> None:
    source, message = CLAIMS[claim]
    driver = member()
    before = driver.process.explain()
    with pytest.raises(RemoteError):
        driver.process.on_message(source, message)
    assert driver.process.explain() == before


@pytest.mark.parametrize(
    "message", [StatePiece(0, 1, 0, 1, b"x"), StateAnswer(0, 1, Possession.HAS), StateTaken(0, 1)]
)
def test_what_nobody_asked_for_has_no_effect(message: Message) -> None:
    driver = member()
    before = driver.process.explain()
    driver.process.on_message(1, message)
    assert driver.process.explain() == before


def test_messages_pass_the_codec_only_as_declared() -> None:
    codec = Codec(MESSAGES)
    for message in (StateQuestion(0, 1), StateAnswer(0, 1, Possession.WAITS), StatePiece(0, 1, 2, 3, b"x")):
        assert codec.decode(codec.encode(message)) == message
    with pytest.raises(RemoteError):
        codec.decode(codec.encode(StateAnswer(0, 1, 9)))  # type: ignore[arg-type]


# The application of a donor


def donor() -> Donor:
    """A member that has promised its state to nodes 3 and 4, in view 6."""
    found = Donor(RecordingEnv(), 4)
    for node in (3, 4):
        found.answer(node, StateQuestion(0, 6), Possession.HAS)
    return found


def test_an_application_gives_each_state_once() -> None:
    giving = donor()
    wanted = giving.enter(View(0, 7, (0, 1, 3, 4)))
    assert wanted == StateWanted(0, 7, (3, 4))
    assert giving.enter(View(0, 8, (0, 1, 3, 4))) is None, "it is promised for one view"
    giving.give(0, 7, b"state")
    for group, config in ((0, 7), (0, 8), (1, 7)):
        with pytest.raises(LocalError, match="is not asked for the state of group"):
            giving.give(group, config, b"state")


def test_a_state_that_is_too_large_is_refused_and_may_be_given_smaller() -> None:
    giving = donor()
    giving.enter(View(0, 7, (0, 3)))
    with pytest.raises(LocalError, match=f"the limit is {STATE_BYTES_MAX}"):
        giving.give(0, 7, bytes(STATE_BYTES_MAX + 1))
    giving.give(0, 7, b"small")


def test_a_state_is_forgotten_when_all_have_it_or_are_gone_or_nobody_asks() -> None:
    for end in ("taken", "gone", "old"):
        giving = donor()
        giving.enter(View(0, 7, (0, 3, 4)))
        giving.give(0, 7, b"state")
        giving._env.now += KEEP_NS + 1 if end == "old" else 1
        assert giving.busy
        for node in (3, 4) if end == "taken" else ():
            giving.on_taken(node, StateTaken(0, 7))
        if end == "gone":
            giving.enter(View(0, 8, (0, 1)))
        giving.tick()
        assert not giving.busy, end


def test_an_application_that_never_answers_costs_little() -> None:
    giving = Donor(RecordingEnv(), 4)
    for view in range(2 * UNANSWERED_MAX):
        giving.answer(3, StateQuestion(0, view), Possession.HAS)
        giving.enter(View(0, view + 1, (0, 3)))
    assert len(giving._unanswered) == UNANSWERED_MAX


def test_a_newcomer_that_was_not_promised_a_state_gets_none() -> None:
    giving = donor()
    giving.enter(View(0, 7, (0, 3, 4)))
    giving.give(0, 7, b"state")
    giving.on_request(5, PieceRequest(0, 7, 0))
    giving.on_request(3, PieceRequest(0, 7, 0))
    env = giving._env
    assert isinstance(env, RecordingEnv)
    assert env.sent[-2:] == [
        (5, StateAnswer(0, 7, Possession.LACKS)),
        (3, StatePiece(0, 7, 0, 5, b"stat")),
    ]


# A newcomer


def newcomer() -> Newcomer:
    """Node 3, which seeks the state of group 0 in view 6 among nodes 0, 1 and 2."""
    found = Newcomer(RecordingEnv(me=3), 0)
    found.enter(6, (0, 1, 2, 3), (3,))
    return found


def test_a_newcomer_asks_the_others_one_after_the_other() -> None:
    one = newcomer()
    for node, possession in ((0, Possession.LACKS), (1, Possession.WAITS)):
        one.on_answer(node, StateAnswer(0, 6, possession))
        assert one.stage is SEEKING
    one.on_answer(2, StateAnswer(0, 5, Possession.HAS))
    assert one.stage is SEEKING, "that was another view"
    one.on_answer(2, StateAnswer(0, 6, Possession.HAS))
    assert (one.stage, one.donor) == (PROMISED, 2)


@pytest.mark.parametrize(
    ("members", "newcomers", "stage"),
    [((0, 1, 2, 3), (), FETCHING), ((0, 1, 3), (), SEEKING), ((0, 1, 2, 3), (2,), SEEKING)],
    ids=["there", "gone", "came anew"],
)
def test_a_promise_holds_if_the_donor_goes_on(
    members: tuple[int, ...], newcomers: tuple[int, ...], stage: object
) -> None:
    one = newcomer()
    one.on_answer(0, StateAnswer(0, 6, Possession.LACKS))
    one.on_answer(1, StateAnswer(0, 6, Possession.LACKS))
    one.on_answer(2, StateAnswer(0, 6, Possession.HAS))
    one.enter(7, members, newcomers)
    assert one.stage is stage


def test_only_the_lowest_begins_where_nobody_has_a_state() -> None:
    high, low = newcomer(), Newcomer(RecordingEnv(me=0), 0)
    low.enter(6, (0, 1), ())
    for node in (0, 1, 2):
        high.on_answer(node, StateAnswer(0, 6, Possession.LACKS))
    low.on_answer(1, StateAnswer(0, 6, Possession.WAITS))
    assert (high.stage, low.stage) == (SEEKING, SEEKING)
    low.tick()
    low.on_answer(1, StateAnswer(0, 6, Possession.LACKS))
    assert (low.stage, low.donor) == (PROMISED, 0)
    low.enter(7, (0, 1), ())
    assert low.state == State(0, 7, b"")


def test_pieces_come_in_order_from_the_donor_only() -> None:
    one = newcomer()
    one.on_answer(0, StateAnswer(0, 6, Possession.HAS))
    one.enter(7, (0, 1, 2, 3), ())
    one.on_piece(1, StatePiece(0, 7, 0, 5, b"evil!"))
    one.on_piece(0, StatePiece(0, 7, 3, 5, b"xy"))
    one.on_piece(0, StatePiece(0, 7, 0, 5, b"abc"))
    with pytest.raises(RemoteError, match="no part of the state"):
        one.on_piece(0, StatePiece(0, 7, 3, 6, b"xyz"))
    one.on_piece(0, StatePiece(0, 7, 0, 5, b"abc"))
    assert one.state is None
    one.on_piece(0, StatePiece(0, 7, 3, 5, b"xy"))
    assert one.state == State(0, 7, b"abcxy", 0)


def test_a_newcomer_holds_a_bounded_number_of_bytes() -> None:
    held = Held()
    held.add(Joined(0, 7))
    large = Delivered(bytes(1 << 20), (0,), 1)
    for _ in range(HELD_BYTES_MAX // (1 << 20)):
        held.add(large)
    before = held.overflows
    held.add(large)
    assert (before, held.overflows) == (False, True)
    assert len(held.cut(Joined(0, 7), set())) == 1 + 65
    assert held.bytes == len(held) == 0


def test_what_waits_behind_a_lost_state_is_told_only_for_groups_that_were_joined_before_it() -> None:
    """The state of group 0 is lost; group 1 was joined in between, and group 2 was there before."""
    held = Held()
    both, early, third = (Delivered(b"", groups, 9) for groups in ((0, 1), (0,), (0, 2)))
    second = Joined(1, 8)
    for one in (
        Left(0, 6),
        Joined(0, 7),
        View(0, 7, (3,)),
        both,
        early,
        third,
        second,
        both,
        View(0, 8, (3,)),
    ):
        held.add(one)
    held.cut(Joined(0, 7), {0, 2})
    assert held.take(lambda notice: False) == [Left(0, 6), third, second, both]


def test_a_member_without_the_option_takes_no_state() -> None:
    plain = PROTOCOL.deploy(Deployment(((0, 1),)), PROTOCOL.options())
    assert not isinstance(plain.nodes[0].factory(RecordingEnv()), Stateful)
    process = member().process
    assert isinstance(process, StatefulMember)
    with pytest.raises(LocalError, match="is not asked"):
        process.give_state(0, 1, b"")
