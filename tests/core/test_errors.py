"""Errors say whose fault it was."""

import pytest

from ordercast.core import LocalError, OrdercastError, RemoteError


def test_one_base_catches_both() -> None:
    for error in (LocalError, RemoteError):
        with pytest.raises(OrdercastError):
            raise error("why")


def test_the_two_blames_never_meet() -> None:
    assert not issubclass(LocalError, RemoteError)
    assert not issubclass(RemoteError, LocalError)


def test_the_callers_fault_is_a_value_error_and_a_peers_is_not() -> None:
    assert issubclass(LocalError, ValueError)
    assert not issubclass(RemoteError, ValueError)
