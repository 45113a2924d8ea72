"""A turn of a live host: what handlers do leaves in one order, and nothing of it while they run."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from ordercast.core import Codec, Delivered, LocalError, Message, NodeId, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.net.host.clock import HostClock
from ordercast.net.host.delivered import BundleOrNotice
from ordercast.net.host.life import NEXT, Life, Stage
from ordercast.net.host.live_env import LiveEnv
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.recording.contract import Recorder
from ordercast.net.host.routes import Routes
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Turn
from ordercast.net.links.outbox import Outgoing
from ordercast.net.links.seal import Unsealed
from ordercast.net.links.wire import Wire
from ordercast.net.metrics.metrics import Metrics
from tests.live.wire_pairs import Mailbox

FIRST = message_id(0, 0)


class Word(Message, frozen=True, tag="word"):
    """Something to say."""

    text: bytes


class Deeds:
    """A host's surroundings, which tell what is done to them, in one list."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.wire = Wire(0, (0, 1), Mailbox(), Unsealed(0, 1), Metrics(), window=1 << 20)
        self.turn = Turn(Codec([Word]), Routes([0, 1, 0], 0, self.wire.metrics), self.wire.outbox)
        self.env = LiveEnv(0, self.turn)
        self.store = TellingStore(self.done)
        self.later: list[str] = []
        self.outlet = Outlet(
            TellingRecorder(self.done),
            self.store,
            self.wire,
            HostClock(lambda: 7),
            lambda: self.later.append("go on"),
        )
        self.outlet.add_listener(0, self.hear)

    def hear(self, heard: BundleOrNotice) -> None:
        """An application is told."""
        self.done.append("tell")

    def let_out(self, *, full: bool = False) -> None:
        """Let effects out, and note when datagrams come to the transport."""
        effects = self.turn.take_full() if full else self.turn.take()
        self.wire.transmit = self.transmit  # type: ignore[method-assign]
        self.outlet.let_out(effects)

    def transmit(self, datagrams: Any) -> None:
        """The wire gets datagrams."""
        self.done.append(f"send {len(datagrams)}")


class TellingStore(Store):
    """Tells when something is made durable."""

    def __init__(self, done: list[str]) -> None:
        super().__init__(None)
        self.done = done

    def commit(self, saves: Mapping[tuple[NodeId, str], bytes | None]) -> None:
        self.done.append("save")
        super().commit(saves)


class TellingRecorder(Recorder):
    """Tells what it takes down, and when it is handed to the kernel."""

    def __init__(self, done: list[str]) -> None:
        super().__init__()
        self.done = done

    def delivered(self, *_: Any, **__: Any) -> None:
        self.done.append("record")

    def flush(self, commit: int = 0) -> None:
        self.done.append("flush")

    def take_back(self) -> None:
        self.done.append("take back")

    def _unexpected(self, *_: Any, **__: Any) -> None:
        raise AssertionError("nothing of that kind happens here")

    begin = submitted = replied = unreadable = noticed = requested = gave_state = _unexpected
    completed = crashed = recovered = close = _unexpected


def delivery() -> Delivered:
    return Delivered(pack_bundle(FIRST, [1], [b"x"]), (0,), 0)


def test_effects_leave_in_one_order_whatever_the_order_in_which_they_were_made() -> None:
    deeds = Deeds()
    deeds.env.send(1, Word(b"a"))
    deeds.env.deliver(delivery())
    deeds.env.save("term", b"7")
    assert deeds.done == [], "a handler only adds up effects"
    deeds.let_out()
    assert deeds.done == ["record", "flush", "save", "tell", "send 1"]
    assert deeds.store.load(0) == {"term": b"7"}


def test_what_was_let_out_does_not_leave_again() -> None:
    deeds = Deeds()
    deeds.env.deliver(delivery())
    deeds.env.send(1, Word(b"a"))
    deeds.let_out()
    deeds.done.clear()
    deeds.let_out()
    assert deeds.done == ["flush"]


def test_an_instalment_has_all_but_the_datagram_that_has_room_left() -> None:
    deeds = Deeds()
    for number in range(4):
        deeds.env.send(1, Word(bytes(500)))
        assert bool(deeds.turn.outbox.closed) == (number >= 2), "two fit into a datagram"
    deeds.env.save("term", b"7")
    deeds.let_out(full=True)
    assert deeds.done == ["flush", "save", "send 1"]
    assert not deeds.turn.outbox.closed
    deeds.let_out()
    assert deeds.done[3:] == ["flush", "send 1"]


def test_messages_to_processes_of_the_same_host_stay_there() -> None:
    deeds = Deeds()
    deeds.env.multicast([1, 2], Word(b"to both"))
    assert list(deeds.turn.local) == [(2, 0, Word(b"to both"))]
    taken: list[Outgoing] = deeds.turn.take().datagrams
    assert [hosts for hosts, _ in taken] == [(1,)]


def test_what_cannot_be_made_durable_is_neither_told_nor_sent() -> None:
    deeds = Deeds()
    deeds.env.deliver(delivery())
    deeds.env.send(1, Word(b"a"))
    deeds.env.save("term", b"7")
    deeds.store.close()
    with pytest.raises(LocalError):
        deeds.let_out()
    assert deeds.done == ["record", "flush", "save", "take back"], "nothing of it took place"


# The life of a host


def life(*stages: Stage) -> Life:
    made = Life(0, Metrics())
    for stage in stages:
        made.step(stage)
    return made


@pytest.mark.parametrize("stage", Stage)
def test_from_each_stage_only_the_steps_of_the_table_can_be_taken(stage: Stage) -> None:
    for to in Stage:
        made = life()
        made.stage = stage
        if to in NEXT[stage]:
            made.step(to)
            assert made.stage is to
        else:
            with pytest.raises(LocalError, match=f"a host that is {stage.value} cannot become {to.value}"):
                made.step(to)
            assert made.stage is stage


def test_every_stage_can_be_reached_and_leads_to_the_end() -> None:
    reached = [Stage.NEW]
    for stage in reached:
        reached += [to for to in NEXT[stage] if to not in reached]
    assert set(reached) == set(Stage) == set(NEXT)
    assert [stage for stage in Stage if not NEXT[stage]] == [Stage.STOPPED]
    ways = [(Stage.NEW, Stage.STARTING, Stage.RUNNING, Stage.FAILED, Stage.STOPPED)]
    assert all(to in NEXT[stage] for way in ways for stage, to in pairwise(way))


def test_a_host_fails_once_and_does_nothing_after_that() -> None:
    made, done = life(Stage.STARTING, Stage.RUNNING), list[object]()
    made.on_failure(done.append)
    error = ValueError("a defect")

    def go_wrong() -> None:
        raise error

    made.attempt(done.append, "before")
    made.attempt(go_wrong)
    made.attempt(done.append, "after")
    made.fail(ValueError("another"))
    assert done == ["before", error]
    assert (made.stage, made.failure) == (Stage.FAILED, error)


@pytest.mark.parametrize("stages", [(), (Stage.STARTING,), (Stage.STARTING, Stage.STOPPED)])
def test_nothing_is_attempted_unless_the_host_runs(stages: tuple[Stage, ...]) -> None:
    done: list[int] = []
    life(*stages).attempt(done.append, 1)
    assert done == []
