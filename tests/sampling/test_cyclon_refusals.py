"""What no correct peer sends is refused, and changes nothing; and no message harms a view."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.components.sampling import Cyclon, CyclonOptions
from ordercast.components.sampling.cyclon import SHUFFLE_TIMER
from ordercast.components.sampling.messages import (
    AGE_MAX,
    MESSAGES,
    SHUFFLE_MAX,
    Entry,
    ShuffleAnswer,
    ShuffleRequest,
)
from ordercast.core import Codec, Message, RemoteError
from ordercast.core.ids import NODE_MAX
from ordercast.testing import RecordingEnv

ME = 3
NODES = range(100)
OPTIONS = CyclonOptions(view=6, length=3, period_ns=1000, jitter_ns=10, patience=2)


def node() -> tuple[RecordingEnv, Cyclon]:
    env = RecordingEnv(ME)
    cyclon = Cyclon(env, 5, [10, 11, 12, 13], OPTIONS, NODES)
    cyclon.on_start({})
    cyclon.on_timer(SHUFFLE_TIMER)
    env.sent.clear()
    return env, cyclon


def state(cyclon: Cyclon) -> tuple[object, ...]:
    asked = [each and (each.number, each.node, each.sent) for each in cyclon._asked]
    counts = (cyclon.shuffles, cyclon.answers, cyclon.purged, cyclon.ignored)
    return deepcopy((cyclon.entries(), asked, counts))


BAD_ENTRIES: dict[str, tuple[Entry, ...]] = {
    "too many": ((20, 0), (21, 0), (22, 0), (23, 0)),
    "the receiver": ((20, 0), (ME, 0)),
    "the sender": ((20, 0), (10, 0)),
    "twice the same": ((20, 0), (20, 1)),
    "an unknown node": ((20, 0), (100, 0)),
    "a negative node": ((20, 0), (-1, 0)),
    "a negative age": ((20, 0), (21, -1)),
    "an age beyond all": ((20, 0), (21, AGE_MAX + 1)),
}


@pytest.mark.parametrize("kind", [ShuffleRequest, ShuffleAnswer])
@pytest.mark.parametrize("entries", BAD_ENTRIES.values(), ids=BAD_ENTRIES.keys())
def test_entries_that_cannot_be_are_refused_and_change_nothing(
    kind: type[ShuffleRequest] | type[ShuffleAnswer], entries: tuple[Entry, ...]
) -> None:
    env, cyclon = node()
    before = state(cyclon)
    with pytest.raises(RemoteError, match=r"cyclon: .*node 10\b"):
        cyclon.on_message(10, kind(0, entries))
    assert state(cyclon) == before
    assert not env.sent


def test_a_request_leaves_room_for_the_asker() -> None:
    env, cyclon = node()
    full = ((20, 0), (21, 0), (22, 0))
    with pytest.raises(RemoteError, match="node 10 sent 3 entries; the limit is 2"):
        cyclon.on_message(10, ShuffleRequest(0, full))
    cyclon.on_message(10, ShuffleAnswer(0, full))
    assert {20, 21, 22} <= set(cyclon.known())
    assert not env.sent


@pytest.mark.parametrize("source", [ME, 100, -1])
@pytest.mark.parametrize("message", [ShuffleRequest(0, ()), ShuffleAnswer(0, ())], ids=["request", "answer"])
def test_messages_of_oneself_and_of_unknown_nodes_are_refused(source: int, message: Message) -> None:
    env, cyclon = node()
    before = state(cyclon)
    with pytest.raises(RemoteError, match=f"from node {source}, which is not a peer of node 3"):
        cyclon.on_message(source, message)
    assert state(cyclon) == before
    assert not env.sent


@pytest.mark.parametrize("number", [-1, 1 << 63])
def test_numbers_that_cannot_be_are_refused(number: int) -> None:
    _, cyclon = node()
    with pytest.raises(RemoteError, match="out of range"):
        cyclon.on_message(10, ShuffleRequest(number, ()))


@pytest.mark.parametrize(
    "fields",
    [
        [240, -1, []],
        [240, 1 << 63, []],
        [240, 0, [[-1, 0]]],
        [240, 0, [[NODE_MAX + 1, 0]]],
        [240, 0, [[1, -1]]],
        [240, 0, [[1, AGE_MAX + 1]]],
        [240, 0, [[1]]],
        [240, 0, [[1, 2, 3]]],
        [240, 0, [["1", 2]]],
        [240, 0, [[place, 0] for place in range(SHUFFLE_MAX + 1)]],
        [240, 0],
        [240, 0, [], 0],
        [242, 0, []],
    ],
    ids=str,
)
def test_the_codec_refuses_what_is_out_of_bounds(fields: list[Any]) -> None:
    codec = Codec(MESSAGES)
    with pytest.raises(RemoteError):
        codec.decode(msgspec.msgpack.encode(fields))


ENTRIES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 50) | st.just(AGE_MAX)), max_size=3, unique_by=lambda e: e[0]
).map(tuple)
EVENTS = st.one_of(
    st.none(),
    st.tuples(
        st.integers(0, 30), st.sampled_from([ShuffleRequest, ShuffleAnswer]), st.integers(0, 12), ENTRIES
    ),
)


@given(st.lists(EVENTS, max_size=60))
def test_whatever_comes_a_view_holds_different_others_within_its_size(
    events: list[tuple[int, type[ShuffleRequest] | type[ShuffleAnswer], int, tuple[Entry, ...]] | None],
) -> None:
    env, cyclon = node()
    codec = Codec(MESSAGES)
    for event in events:
        before = state(cyclon)
        if event is None:
            cyclon.on_timer(SHUFFLE_TIMER)
        else:
            source, kind, number, entries = event
            try:
                cyclon.on_message(source, kind(number, entries))
            except RemoteError:
                assert state(cyclon) == before
        known = [node for node, _ in cyclon.entries()]
        assert len(set(known)) == len(known) <= OPTIONS.view
        assert ME not in known
        assert all(0 <= age <= AGE_MAX for _, age in cyclon.entries())
    for to, message in env.sent:
        # What it sent, another node of the same options would take.
        other = Cyclon(RecordingEnv(to), 6, [], OPTIONS, NODES)
        other.on_message(ME, codec.decode(codec.encode(message)))
        assert len(other.env.sent) == isinstance(message, ShuffleRequest)  # type: ignore[attr-defined]
