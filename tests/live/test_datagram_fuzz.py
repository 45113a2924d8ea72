"""Whatever bytes come, parsing gives what was written or refuses them, and never anything else."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import RemoteError
from ordercast.net.links.acquaintance import StorageClaim, Verdict
from ordercast.net.links.datagram import (
    ACK,
    CHALLENGE,
    DATA,
    FRAGMENT,
    FRAGMENT_HEAD_BYTES,
    HEADER_BYTES,
    MISSING,
    NONCE_BYTES,
    PLACES_MAX,
    PROOF,
    Ack,
    Challenge,
    Frame,
    Missing,
    Proof,
    Rejected,
    read_ack,
    read_challenge,
    read_fragment,
    read_frames,
    read_header,
    read_missing,
    read_proof,
    write_ack,
    write_challenge,
    write_destinations,
    write_fragments,
    write_frame,
    write_header,
    write_missing,
    write_proof,
)
from ordercast.net.links.fragments import UNFINISHED_BYTES_MAX, Fragments
from tests.live.wire_pairs import Net, data_frame, rejected

U8, U32, U64 = st.integers(0, 0xFF), st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)
NODES = st.lists(U32, max_size=255)
BOTH = pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plaintext"])


@given(st.binary(max_size=100))
def test_any_bytes_have_a_header_or_are_rejected_for_a_reason_that_is_counted(data: bytes) -> None:
    try:
        header = read_header(data)
    except Rejected as error:
        assert error.reason in ("truncated", "version")
    else:
        assert write_header(*header) == data[:HEADER_BYTES]


@given(st.integers(0, 1), U32, U32, U64, U64)
def test_a_header_is_read_as_it_was_written(
    flags: int, key: int, host: int, session: int, counter: int
) -> None:
    written = write_header(flags, key, host, session, counter)
    assert tuple(read_header(written)) == (flags, key, host, session, counter)


@given(st.lists(st.tuples(U8, U32, NODES, st.binary(max_size=50)), max_size=8))
def test_frames_are_read_as_they_were_written(frames: list[tuple[int, int, list[int], bytes]]) -> None:
    plain = b"".join(
        write_frame(kind, source, write_destinations(nodes), len(nodes), body)
        for kind, source, nodes, body in frames
    )
    assert [
        (kind, source, list(nodes), bytes(body)) for kind, source, nodes, body in read_frames(plain)
    ] == frames


@given(st.binary(max_size=300))
def test_any_bytes_are_frames_or_an_error_of_the_peer(plain: bytes) -> None:
    read: list[Frame] = []
    try:
        for frame in read_frames(plain):
            read.append(frame)
    except RemoteError:
        pass
    else:
        assert sum(10 + 4 * len(frame.destinations) + len(frame.body) for frame in read) == len(plain)


@given(st.binary(max_size=60))
def test_any_oneis_what_its_kind_says_or_an_error_of_the_peer(data: bytes) -> None:
    sizes = {read_ack: 21, read_challenge: NONCE_BYTES + 25}
    for read, size in sizes.items():
        assert is_read(read, data) == (len(data) == size)
    assert is_read(read_proof, data) == (len(data) == NONCE_BYTES + 34 and data[-1] in list(Verdict))
    place, count = data[4:6][::-1], data[6:8][::-1]
    assert is_read(read_fragment, data) == (len(data) > FRAGMENT_HEAD_BYTES and place < count)


def is_read(read: Callable[[memoryview], object], data: bytes) -> bool:
    """Whether a body is taken; anything but an error of the peer fails the test."""
    try:
        read(memoryview(data))
    except RemoteError:
        return False
    return True


@given(U32, U64, U64, U8, st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES))
def test_words_between_hosts_are_read_as_they_were_written(
    host: int, session: int, number: int, pressure: int, nonce: bytes
) -> None:
    claim = StorageClaim(nonce[::-1], session, as_new=True)
    challenge = Challenge(nonce, claim)
    ack, proof = Ack(host, session, number, pressure), Proof(nonce, number, claim, Verdict.OTHER)
    first, second, third = read_frames(
        write_ack(ack) + write_challenge(host, challenge) + write_proof(host, proof)
    )
    assert (first.kind, read_ack(first.body)) == (ACK, ack)
    assert (second.kind, second.source, read_challenge(second.body)) == (CHALLENGE, host, challenge)
    assert (third.kind, third.source, read_proof(third.body)) == (PROOF, host, proof)


@given(U32, st.sets(st.integers(0, 0xFFFF), min_size=1, max_size=PLACES_MAX))
def test_a_request_for_fragments_is_read_as_it_was_written(message: int, places: set[int]) -> None:
    asked = Missing(message, tuple(sorted(places)))
    (frame,) = read_frames(write_missing(asked))
    assert (frame.kind, read_missing(frame.body)) == (MISSING, asked)


@given(st.binary(max_size=20))
def test_any_request_for_fragments_names_places_in_order_or_is_an_error_of_the_peer(data: bytes) -> None:
    if is_read(read_missing, data):
        places = read_missing(memoryview(data)).places
        assert list(places) == sorted(set(places)) and len(data) == 4 + 2 * len(places) > 4


@given(
    st.binary(min_size=1, max_size=2_000),
    st.integers(FRAGMENT_HEAD_BYTES + 1, 300),
    st.randoms(use_true_random=False),
)
def test_fragments_in_any_order_and_twice_make_the_message_once(body: bytes, room: int, rng: object) -> None:
    written = write_fragments(7, body, room)
    assert all(len(fragment) <= room for fragment in written)
    shuffled = 2 * written
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    fragments = Fragments()
    made = [
        whole
        for fragment in shuffled
        if (whole := fragments.add(read_fragment(memoryview(fragment)), 0)) is not None
    ]
    assert made == [body]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 6), st.integers(0, 6), st.integers(1, 40)), max_size=60
    )
)
def test_fragments_that_contradict_each_other_are_errors_of_the_peer(
    fragments: list[tuple[int, int, int, int]],
) -> None:
    assembly = Fragments()
    for message, place, count, size in fragments:
        body = message.to_bytes(4, "little") + place.to_bytes(2, "little") + count.to_bytes(2, "little")
        try:
            whole = assembly.add(read_fragment(memoryview(body + bytes(size))), 0)
        except RemoteError:
            continue
        assert whole is None or 0 < len(whole) <= 40 * count
    assert 0 <= assembly._size <= UNFINISHED_BYTES_MAX
    assert assembly._size == sum(one.size for one in assembly._assemblies.values())


@BOTH
@given(st.data())
def test_a_key_holders_bad_frames_are_counted_and_do_no_harm(sealed: bool, data: st.DataObject) -> None:
    net = Net(sealed=sealed)
    net.meet()
    first, second = net.sides[0], net.sides[1]
    kinds = st.sampled_from([DATA, FRAGMENT, ACK, CHALLENGE, PROOF, MISSING, 0, 7, 255])
    frame = st.builds(
        lambda kind, source, to, body: write_frame(kind, source, write_destinations(to), len(to), body),
        kinds, U32, st.lists(U32, max_size=4), st.binary(max_size=60),
    )  # fmt: skip
    counter = 1_000
    for plain in data.draw(st.lists(st.binary(max_size=80) | frame, min_size=1, max_size=12)):
        counter += 1
        second.wire.on_datagram(first.forged(counter, plain, data.draw(st.integers(0, 1))))
    second.flush()
    assert not set(rejected(second)) - {"malformed"}
    second.reads.clear()
    second.wire.on_datagram(first.forged(counter + 1, data_frame(0, 1, b"a good one")))
    assert second.bodies() == [b"a good one"]
    second.wire.tick()
