"""A newcomer gets the state of one member. Members may write the same state down in different bytes."""

import pytest

from ordercast.components.membership.messages import StateChunk, StateRequest
from ordercast.components.membership.transfer import Transfer
from ordercast.core import RemoteError
from ordercast.testing.recording_env import RecordingEnv


def transfer() -> tuple[Transfer, RecordingEnv]:
    """A newcomer that has half of a state of six bytes from member 1."""
    env = RecordingEnv(me=3)
    found = Transfer(env, 5, (1, 2))
    found.ask()
    assert found.on_chunk(1, StateChunk(5, 0, 6, b"abc")) is None
    return found, env


def test_pieces_of_two_members_are_not_mixed() -> None:
    getting, env = transfer()
    getting.ask_another()
    assert env.sent[-1] == (1, StateRequest(5, 3)), "pieces come, so it stays with this member"
    getting.ask_another()
    assert env.sent[-1] == (2, StateRequest(5, 0)), "the next one is asked from the beginning"
    assert getting.on_chunk(1, StateChunk(5, 0, 6, b"abc")) is None
    assert getting.on_chunk(2, StateChunk(5, 0, 7, b"uvwx")) is None
    assert getting.on_chunk(1, StateChunk(5, 4, 6, b"ef")) is None
    assert getting.on_chunk(2, StateChunk(5, 4, 7, b"yz!")) == b"uvwxyz!"


def test_a_whole_state_is_welcome_from_any_member() -> None:
    getting, _ = transfer()
    getting.ask_another()
    getting.ask_another()
    assert getting.on_chunk(1, StateChunk(5, 0, 6, b"abcdef")) == b"abcdef"


def test_a_member_does_not_change_the_size_of_its_state() -> None:
    getting, _ = transfer()
    with pytest.raises(RemoteError, match="no part of the state of view 5"):
        getting.on_chunk(1, StateChunk(5, 3, 9, b"def"))
    with pytest.raises(RemoteError, match="no part of the state of view 5"):
        getting.on_chunk(9, StateChunk(5, 0, 6, b"abcdef"))
