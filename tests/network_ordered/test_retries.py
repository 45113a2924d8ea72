"""A client behind sequencers: how it calls again, and which replies it takes for an answer."""

from itertools import pairwise

import pytest

from ordercast.components.execution import CallOptions, Calls
from ordercast.components.network_ordered.messages import ReadReply, ReadRequest, Reply
from ordercast.core import MILLISECOND, RemoteError, Replied, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.protocols.hydra.calling import Client
from ordercast.protocols.hydra.messages import Announce, Request
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.testing import ProcessDriver, RecordingEnv
from tests.network_ordered.lab import CLIENT, REPLICAS, SERVICE

FIRST = message_id(CLIENT, 1)
CALL = pack_bundle(FIRST, [0], [b"call"])
RESULTS = pack_bundle(FIRST, [0], [b"results"])


def client(*sequencers: int) -> ProcessDriver[Client]:
    """A client that knows these sequencers."""
    driver = ProcessDriver(
        lambda env: Client(
            env, {0: REPLICAS}, SERVICE, HydraOptions(), None, CallOptions(retry_ns=MILLISECOND), answers=True
        ),
        env=RecordingEnv(CLIENT, 1),
    )
    active = tuple((sequencer, 20 + sequencer) for sequencer in sequencers)
    driver.receive(SERVICE[0], Announce(0, active, None, None))
    driver.take_sent()
    return driver


def requests(driver: ProcessDriver[Client], times: int) -> list[Request]:
    """What it sends for a call that nobody answers."""
    for _ in range(times):
        driver.env.now += 8 * MILLISECOND
        driver.fire(Calls.TIMER)
    return [message for _, message in driver.take_sent() if isinstance(message, Request)]


def test_a_retry_is_a_new_message_through_another_sequencer() -> None:
    driver = client(1, 2)
    assert driver.process.submit((0,), CALL)
    sent = requests(driver, 12)
    assert len(sent) == 13
    assert all(one.sequencer != other.sequencer for one, other in pairwise(sent)), "always the other one"
    assert len({one.number for one in sent}) == len(sent), "a sequencer would swallow a copy"
    assert len({one.payload for one in sent}) == 1, "replicas know the call by its name"


def test_with_one_sequencer_it_is_a_new_message_too() -> None:
    driver = client(1)
    assert driver.process.submit((0,), CALL)
    sent = requests(driver, 3)
    assert len({one.number for one in sent}) == len(sent) == 4


def test_a_read_without_an_answer_goes_through_the_log() -> None:
    driver = client(1, 2)
    assert driver.process.read((0,), CALL)
    asked = [to for to, message in driver.take_sent() if isinstance(message, ReadRequest)]
    assert sorted(asked) == list(REPLICAS)
    assert len(requests(driver, 2)) == 2


def reply(view: int, slot: tuple[int, int], *, leads: bool, tag: int = 0) -> Reply:
    return Reply(view, tag, slot, FIRST, RESULTS if leads else None, (5, 1, (1,)) if leads else None)


def test_the_last_reply_of_a_replica_counts() -> None:
    driver = client(1, 2)
    driver.process.submit((0,), CALL)
    driver.receive(1, reply(0, (1, 1), leads=False))
    driver.receive(1, reply(1, (1, 1), leads=True))
    driver.receive(0, reply(0, (1, 1), leads=True))
    assert driver.take_delivered() == [], "replica 1 is in another view now"
    driver.receive(2, reply(1, (1, 1), leads=False))
    (answer,) = driver.take_delivered()
    assert isinstance(answer, Replied) and answer.replica == 1


def test_followers_alone_are_no_answer() -> None:
    driver = client(1, 2)
    driver.process.submit((0,), CALL)
    for node in (1, 2):
        driver.receive(node, reply(0, (1, 1), leads=False))
    assert driver.take_delivered() == []


def test_replies_that_are_none_are_refused() -> None:
    driver = client(1, 2)
    driver.process.submit((0,), CALL)
    with pytest.raises(RemoteError):
        driver.receive(21, reply(0, (1, 1), leads=True))
    other = pack_bundle(FIRST, [0, 0], [b"two", b"results"])
    driver.receive(1, reply(0, (1, 1), leads=False))
    with pytest.raises(RemoteError, match="with other results"):
        driver.receive(0, Reply(0, 0, (1, 1), FIRST, other, None))
    assert driver.take_delivered() == []
    assert FIRST in driver.process._calls.pending, "it still waits"


def test_a_reply_to_a_read_does_not_answer_a_call() -> None:
    driver = client(1, 2)
    driver.process.submit((0,), CALL)
    driver.receive(1, reply(0, (1, 1), leads=False))
    driver.receive(0, ReadReply(0, 0, 9, 1, FIRST, RESULTS, None))
    assert driver.take_delivered() == []
