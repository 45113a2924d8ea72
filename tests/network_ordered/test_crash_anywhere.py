"""A replica crashes at any step of an agreement, and comes back: nothing that was answered is lost.

Each script runs once for each message that it sends, with a crash after that message; what its sender would
have sent next is lost with it. A durable replica comes back with its disk, another one without its memory.
"""

from collections.abc import Callable

import msgspec
import pytest

from ordercast.components.network_ordered.messages import Entries
from ordercast.replication.nopaxos.session import SESSION_BITS, SessionOrdering
from tests.deep import deep_after
from tests.network_ordered.lab import OPTIONS, Lab

STRIDE = 5
"""Each so many of the steps of a script is tried with each victim; deep tests try the steps between them."""
SHORT = msgspec.structs.replace(OPTIONS, checkpoint_every=2, keep=0, chunk_bytes=64)


def gap_agreement(lab: Lab) -> None:
    """All miss a call; one has another, and it is supplied."""
    lab.stamp(1, "lost")
    lab.call("b", 0)
    lab.call("c")
    lab.wait_ms(6)


def view_change(lab: Lab) -> None:
    """The leader is cut off with a call of its own."""
    lab.call("a")
    lab.lost = lambda source, to, message: 0 in (source, to)
    lab.call("own", 0)
    lab.wait_ms(100)
    lab.lost = lambda source, to, message: False
    lab.wait_ms(20)


def synchronisation(lab: Lab) -> None:
    """Calls become certain, and the log is forgotten."""
    for name in ("a", "b", "c"):
        lab.call(name)
        lab.wait_ms(6)


def transfer(lab: Lab) -> None:
    """A replica was away, and takes over a state."""
    lab.lost = lambda source, to, message: 2 in (source, to)
    for name in ("a", "b", "c", "d", "e"):
        lab.call(name, 0, 1)
        lab.wait_ms(6)
    lab.lost = lambda source, to, message: False
    lab.wait_ms(40)


def reconfiguration(lab: Lab) -> None:
    """A sequencer is removed whose last call only one replica has, and another is added."""
    lab.call("a")
    lab.lost = lambda source, to, message: isinstance(message, Entries)
    lab.call("b", 1)
    lab.plan("removed", 1)
    lab.wait_ms(2)
    lab.decide("removed", 1, lab.clock, 2)
    lab.lost = lambda source, to, message: False
    lab.call("c", sequencer=2)
    lab.decide("added", 3, lab.clock, 0)
    lab.call("d", sequencer=3)
    lab.wait_ms(6)


def change_of_session(lab: Lab) -> None:
    """NOPaxos: the sequencer is replaced, and its last calls are not everywhere."""
    lab.clock = 1 << SESSION_BITS
    lab.call("a")
    lab.call("b", 1, 2)
    lab.call("own", 0)
    lab.decide("removed", 1, 0, 0)
    lab.wait_ms(30)
    lab.decide("added", 2, 0, 0)
    lab.clock = 2 << SESSION_BITS
    lab.call("c", sequencer=2)
    lab.wait_ms(10)


SCRIPTS = (gap_agreement, view_change, synchronisation, transfer, reconfiguration, change_of_session)


def lab_for(script: Callable[[Lab], None], *, durable: bool) -> Lab:
    """Two sequencers, or one at a time."""
    if script is change_of_session:
        return Lab(durable=durable, options=SHORT, ordering=SessionOrdering, sequencers=(1,))
    return Lab(durable=durable, options=SHORT)


def run(script: Callable[[Lab], None], victim: int, step: int, *, durable: bool) -> bool:
    """Run a script with a crash after a step; False if it has no such step."""
    lab = lab_for(script, durable=durable)
    lab.crash_at = (len(lab.sent) + step, victim)
    script(lab)
    if not lab.crashed:
        return False
    lab.wait_ms(20)
    if not durable:
        lab.disks[victim] = {}
    lab.start(victim, forgot=not durable)
    lab.lost = lambda source, to, message: False
    lab.tell_all()
    lab.wait_ms(200)
    lab.call("last", sequencer=2)
    lab.finish("last")
    return True


@pytest.mark.parametrize("offset", deep_after(1, range(STRIDE)))
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "forgetful"])
@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_crash_at_any_step_loses_nothing(
    script: Callable[[Lab], None], victim: int, durable: bool, offset: int
) -> None:
    step = 1 + (victim + offset) % STRIDE
    while run(script, victim, step, durable=durable):
        step += STRIDE
    assert step > 10, "the script has many steps"
