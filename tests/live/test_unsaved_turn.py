"""A host that is killed between the record of a turn and the commit of its state never made that turn."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ordercast.core import (
    Codec,
    Delivered,
    Explanation,
    Fault,
    Guarantees,
    Message,
    Node,
    NodeId,
    Plan,
    Process,
)
from ordercast.core.bundle import pack_bundle
from ordercast.net.host.clock import HostClock
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.host.recording.spool_to_parquet import finish_run
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Effects
from ordercast.net.links.seal import Unsealed
from ordercast.net.links.wire import Wire, new_session
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.udp import UdpTransport
from ordercast.trace import Kind
from ordercast.trace.store import find_runs
from tests.live.live_lab import BUFFER, WINDOW, run
from tests.live.recording import Nothing, kill
from tests.live.wires import free_addresses


class Killed(BaseException):
    """The host is dead."""


class DeadlyStore(Store):
    """A store whose host is killed at its fourth commit, before that commit or just after it."""

    deadly = False
    before = True

    def commit(self, saves: Mapping[tuple[NodeId, str], bytes | None]) -> None:
        if self.deadly and self.before:
            raise Killed
        super().commit(saves)
        if self.deadly:
            raise Killed


class Life:
    """One life of a host that delivers what it is told, and remembers it."""

    def __init__(self, folder: Path) -> None:
        self.store = DeadlyStore(folder / "state.sqlite")
        self.recorder = TraceRecorder(folder / "traces", "run", 0, [0])
        commits = self.store.found
        begun = self.store.begin_life(1_000)
        saved = self.store.lives > 1
        self.recorder.begin(begun, saved=saved, past=saved, commits=commits if saved else None)
        wire = cast(Wire, SimpleNamespace(metrics=Metrics(), transmit=lambda datagrams: None))
        clock = cast(HostClock, SimpleNamespace(read=lambda: begun + 10))
        self.outlet = Outlet(self.recorder, self.store, wire, clock, lambda: None)

    def deliver(self, message: int, *, saving: bool = True) -> None:
        """Deliver a message, and save that."""
        delivery = Delivered(pack_bundle(message, [5], [b"payload"]), (0,), 1)
        saves: dict[Any, Any] = {(0, "place"): b"%d" % message} if saving else {}
        self.outlet.let_out(Effects([(0, delivery)], saves, []))

    def die_at(self, message: int, *, before: bool) -> None:
        """Be killed while the state of this delivery is saved: before it is, or after it."""
        self.store.deadly, self.store.before = True, before
        with pytest.raises(Killed):
            self.deliver(message)
        self.store.deadly = False
        kill(self.recorder)
        self.store.close()

    def end(self) -> None:
        self.recorder.close()
        self.store.close()


class Follower(Process):
    """Delivers the message behind its place as soon as it starts."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        following = int(saved.get("place", b"0")) + 1
        self.env.save("place", b"%d" % following)
        self.env.deliver(Delivered(pack_bundle(following, [5], [b"payload"]), (0,), 1))

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("it is alone")

    def on_timer(self, name: str) -> None:
        raise AssertionError("it sets no timer")

    def explain(self) -> Explanation:
        return Explanation({}, ())


def plan() -> Plan:
    nodes = (Node(0, "receiver", 0, Follower),)
    promised = Guarantees(tolerates=(Fault.RESTART,))
    return Plan("unordered", promised, nodes, {0: (0,)}, (), Codec([Nothing]))


def delivered(folder: Path) -> list[int | None]:
    """What the finished trace says was delivered."""
    target = finish_run(folder / "traces", plan(), "run", complete=False)
    (stored,) = find_runs(target)
    table = stored.table()
    rows = zip(table["kind"].to_pylist(), table["message"].to_pylist(), strict=True)
    return [message for kind, message in rows if kind == Kind.DELIVER]


@pytest.mark.parametrize("saving", [True, False])
def test_a_turn_that_was_never_saved_is_not_on_record(tmp_path: Path, saving: bool) -> None:
    first = Life(tmp_path)
    first.deliver(1)
    first.deliver(2, saving=saving)
    first.die_at(3, before=True)
    second = Life(tmp_path)
    second.deliver(3)
    second.deliver(4)
    second.end()
    assert delivered(tmp_path) == [1, 2, 3, 4], "the second life delivered it, and only that counts"


def test_what_is_noted_before_the_start_makes_no_turn_of_an_earlier_life(tmp_path: Path) -> None:
    """A turn that was never saved is not taken for one that was because the next life has saved something."""
    first = Life(tmp_path)
    first.deliver(1)
    first.die_at(2, before=True)
    run(_live(tmp_path))
    assert delivered(tmp_path) == [1, 2], "the second life delivered it, and only that counts"


async def _live(folder: Path) -> None:
    """A life of a real host, for which identities are skipped before it starts."""
    recorder = TraceRecorder(folder / "traces", "run", 0, [0])
    transport = UdpTransport(0, free_addresses(1), 1_400, BUFFER)
    wire = Wire(0, [0], transport, Unsealed(0, new_session()), Metrics(), window=WINDOW)
    live = LiveHost(plan(), 0, wire, store=Store(folder / "state.sqlite"), recorder=recorder)
    live.skip_messages(0, 7)
    await live.start()
    await live.stop()
    assert live.failure is None, live.failure


def test_a_turn_that_was_saved_stays_on_record(tmp_path: Path) -> None:
    first = Life(tmp_path)
    first.deliver(1)
    first.die_at(2, before=False)
    second = Life(tmp_path)
    second.deliver(3)
    second.end()
    assert delivered(tmp_path) == [1, 2, 3]


def test_a_host_on_another_disk_says_nothing_of_the_last_turn(tmp_path: Path) -> None:
    first = Life(tmp_path)
    first.deliver(1)
    first.die_at(2, before=True)
    (tmp_path / "state.sqlite").unlink()
    (tmp_path / "state.mark").unlink()
    second = Life(tmp_path)
    second.deliver(3)
    second.end()
    assert delivered(tmp_path) == [1, 2, 3], "the record stands, because nobody can tell"
