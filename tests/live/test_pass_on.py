"""Messages between processes of one host, and when what they cause elsewhere leaves."""

from collections.abc import Mapping
from functools import partial

import pytest

from ordercast.core import (
    Codec,
    Env,
    Explanation,
    Guarantees,
    HostId,
    Message,
    Node,
    NodeId,
    Plan,
    Process,
)
from ordercast.net.host.clock import HostClock
from ordercast.net.host.life import Life, Stage
from ordercast.net.host.nodes import Nodes
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.routes import Routes, places_of
from ordercast.net.host.store import Store
from ordercast.net.host.timers import Timers
from ordercast.net.host.turn import Effects, Turn
from ordercast.net.links.seal import Unsealed
from ordercast.net.links.wire import Wire
from ordercast.net.metrics.metrics import Metrics
from tests.live.wire_pairs import Mailbox

HERE: HostId = 0
FIRST, SECOND, ELSEWHERE = range(3)


class Word(Message, frozen=True, tag="word"):
    """Something to pass on."""


class Relay(Process):
    """Passes a word on to some nodes, and may save that."""

    def __init__(self, env: Env, done: list[str], to: tuple[NodeId, ...], *, saves: bool = False) -> None:
        super().__init__(env)
        self._done = done
        self._to = to
        self._saves = saves

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        pass

    def on_message(self, source: NodeId, message: Message) -> None:
        self._done.append(f"node {self.env.me}")
        for node in self._to:
            self.env.send(node, message)
        if self._saves:
            self.env.save("passed", b"on")

    def explain(self) -> Explanation:
        raise AssertionError("nobody asks")


class TellingOutlet(Outlet):
    """Tells what is let out."""

    def __init__(self, done: list[str]) -> None:
        self.done = done

    def let_out(self, effects: Effects) -> None:
        self.done.append(f"{len(effects.datagrams)} out")


def passed_on(*first: NodeId, saves: bool = False) -> list[str]:
    """What happens when the first process passes words on to these, and the second to the third."""
    done: list[str] = []
    nodes = (
        Node(FIRST, "relay", HERE, partial(Relay, done=done, to=first, saves=saves)),
        Node(SECOND, "relay", HERE, partial(Relay, done=done, to=(ELSEWHERE,))),
        Node(ELSEWHERE, "relay", 1, partial(Relay, done=done, to=())),
    )
    plan = Plan("relays", Guarantees(), nodes, {0: (FIRST, SECOND, ELSEWHERE)}, (), Codec([Word]))
    wire = Wire(HERE, (HERE, 1), Mailbox(), Unsealed(HERE, 1), Metrics(), window=1 << 20)
    turn = Turn(plan.codec, Routes(places_of(plan), HERE, wire.metrics), wire.outbox)
    life, clock = Life(HERE, wire.metrics), HostClock(lambda: 7)
    made = Nodes(plan, HERE, turn, TellingOutlet(done), life, clock, wire.metrics)
    life.step(Stage.STARTING)
    life.step(Stage.RUNNING)
    made.begin(Store(None), NoTimers(), forgot=False)
    turn.local.append((FIRST, SECOND, Word()))
    made.pass_on()
    return done


class NoTimers(Timers):
    """Nobody sets a timer."""

    def __init__(self) -> None:
        pass


def test_what_is_for_others_leaves_before_what_is_for_this_host_is_handled() -> None:
    """So the other host works at the same time."""
    assert passed_on(ELSEWHERE, SECOND) == ["node 0", "1 out", "node 1"]


def test_nothing_leaves_early_if_nothing_is_left_to_do_here() -> None:
    assert passed_on(ELSEWHERE) == ["node 0"], "the end of the turn lets it out, with what else there is"


@pytest.mark.parametrize("saves", [False, True])
def test_nothing_leaves_early_if_it_is_not_for_others_or_must_be_saved_first(saves: bool) -> None:
    to = (ELSEWHERE, SECOND) if saves else (SECOND,)
    assert passed_on(*to, saves=saves) == ["node 0", "node 1"]
