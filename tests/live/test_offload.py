"""Many datagrams in one call: cut where the kernel needs it, arriving as they were sent."""

import errno
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.net.transports.offload import (
    ANCILLARY_BYTES,
    SEGMENTED_BYTES_MAX,
    SEGMENTS_MAX,
    Segmenter,
    can_segment,
    enable_coalescing,
    part_bytes,
    runs,
)
from tests.live.namespaces import MTU, cable, inside
from tests.live.processes import PATIENCE_S

SIZES = st.lists(st.sampled_from([0, 1, 2, 100, 1_400, 40_000]) | st.integers(0, 3_000), max_size=200)


@given(SIZES)
def test_a_sequence_is_cut_into_runs_that_the_kernel_takes(sizes: list[int]) -> None:
    datagrams = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    cut = list(runs(datagrams))
    assert [datagram for run in cut for datagram in run] == datagrams
    for run in cut:
        first, *others = [len(datagram) for datagram in run]
        assert len(run) <= SEGMENTS_MAX
        assert not others or sum(map(len, run)) <= SEGMENTED_BYTES_MAX
        assert all(size == first for size in others[:-1])
        assert not others or 0 < others[-1] <= first


def test_runs_are_as_long_as_they_may_be() -> None:
    assert [len(run) for run in runs([bytes(1_400)] * 100)] == [46, 46, 8]
    assert [len(run) for run in runs([bytes(10)] * 65)] == [64, 1]
    assert [len(run) for run in runs([bytes(10), bytes(10), bytes(3), bytes(10)])] == [3, 1]
    assert [len(run) for run in runs([bytes(3), bytes(10), bytes(10)])] == [1, 2]
    assert list(runs([])) == []


@contextmanager
def sockets(family: int = socket.AF_INET, name: str = "127.0.0.1") -> Iterator[tuple[socket.socket, ...]]:
    """Who sends and who receives."""
    with (
        socket.socket(family, socket.SOCK_DGRAM) as sender,
        socket.socket(family, socket.SOCK_DGRAM) as receiver,
    ):
        receiver.bind((name, 0))
        receiver.settimeout(PATIENCE_S)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        if not can_segment(sender):
            pytest.skip("this kernel does not cut datagrams")
        yield sender, receiver


def received(receiver: socket.socket, count: int) -> list[bytes]:
    """So many datagrams, whether they come in pieces or not."""
    buffer = bytearray(1 << 16)
    found: list[bytes] = []
    while len(found) < count:
        length, ancillary, _, _ = receiver.recvmsg_into([buffer], ANCILLARY_BYTES)
        size = part_bytes(ancillary, length)
        found += [bytes(buffer[start : min(start + size, length)]) for start in range(0, length, size or 1)]
    return found


MIXED = [bytes([number]) * (1_200 if number % 9 else 300 + number) for number in range(150)]


@pytest.mark.parametrize(("family", "name"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
@pytest.mark.parametrize("coalesce", [True, False])
def test_what_is_sent_in_runs_arrives_as_it_was(family: int, name: str, coalesce: bool) -> None:
    with sockets(family, name) as (sender, receiver):
        if coalesce and not enable_coalescing(receiver):
            pytest.skip("this kernel does not coalesce datagrams")
        segmenter = Segmenter(sender)
        for datagram in MIXED:
            segmenter.add(receiver.getsockname(), datagram)
        segmenter.flush()
        assert received(receiver, len(MIXED)) == MIXED
        assert (segmenter.losses, segmenter.fallbacks) == (0, 0)


def test_each_address_gets_its_own_in_order() -> None:
    with sockets() as (sender, first), sockets() as (_, second):
        segmenter = Segmenter(sender)
        for datagram in MIXED:
            segmenter.add(first.getsockname(), datagram)
            segmenter.add(second.getsockname(), datagram[::-1] + b"!")
        segmenter.flush()
        assert received(first, len(MIXED)) == MIXED
        assert received(second, len(MIXED)) == [datagram[::-1] + b"!" for datagram in MIXED]


class Unwilling:
    """A socket whose kernel will not cut, or has no room."""

    def __init__(self, reason: int) -> None:
        self.reason = reason
        self.sent: list[bytes] = []
        self.attempts = 0

    def sendmsg(self, datagrams: Sequence[bytes], *_: Any) -> None:
        self.attempts += 1
        raise OSError(self.reason, "no")

    def sendto(self, datagram: bytes, _: Any) -> None:
        self.sent.append(datagram)


def test_where_the_kernel_will_not_cut_they_go_one_by_one_and_it_is_counted_once() -> None:
    unwilling = Unwilling(errno.EIO)
    segmenter = Segmenter(unwilling)  # type: ignore[arg-type]  # of which it calls two methods
    for _ in range(3):
        for datagram in MIXED[:20]:
            segmenter.add(("10.0.0.1", 1), datagram)
        segmenter.flush()
    assert unwilling.sent == 3 * MIXED[:20]
    assert (segmenter.fallbacks, segmenter.losses, unwilling.attempts) == (1, 0, 1)


def test_what_the_kernel_has_no_room_for_is_lost_and_counted() -> None:
    unwilling = Unwilling(errno.EAGAIN)
    segmenter = Segmenter(unwilling)  # type: ignore[arg-type]
    for _ in range(10):
        segmenter.add(("10.0.0.1", 1), b"same size")
    segmenter.flush()
    assert (segmenter.losses, segmenter.fallbacks, unwilling.sent) == (10, 0, [])


@pytest.mark.parametrize(("size", "fallbacks"), [(MTU - 28, 0), (MTU + 500, 1)])
def test_over_a_real_link_they_arrive_too_even_if_larger_than_it(size: int, fallbacks: int) -> None:
    with cable() as link:
        with inside(link.names[0]):
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with inside(link.names[1]):
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender, receiver:
            receiver.bind((link.addresses[1], 0))
            receiver.settimeout(PATIENCE_S)
            enable_coalescing(receiver)
            segmenter = Segmenter(sender)
            datagrams = [bytes([number]) * size for number in range(50)]
            for datagram in datagrams:
                segmenter.add(receiver.getsockname(), datagram)
            segmenter.flush()
            assert received(receiver, len(datagrams)) == datagrams
            assert (segmenter.fallbacks, segmenter.losses) == (fallbacks, 0)
