"""Stories without troubles of their own, in which a test lets something go wrong at every step.

A script goes on whoever is down: it acts only on processes that are up.
"""

from collections.abc import Callable
from typing import Any

from ordercast.core import MILLISECOND
from ordercast.replication.llft.messages import Request
from tests.hand_driven import nothing
from tests.llft.lab import Lab

Script = Callable[[Lab], None]


def crash(lab: Lab, *nodes: int) -> None:
    """Crash those that are up, and without which enough are left."""
    for node in nodes:
        if lab.may_crash(node):
            lab.crash(node)


def start(lab: Lab, *nodes: int) -> None:
    """Start those that are down."""
    lab.start(*(node for node in nodes if node not in lab.drivers))


def an_exchange(lab: Lab) -> None:
    """Two clients call, one after the other and at the same time."""
    lab.call("a")
    lab.call("b", 1)
    lab.wait_ms(2)
    lab.call("c")
    lab.wait_ms(15)


def a_view_change(lab: Lab) -> None:
    """The primary crashes with a call that it has answered, and another call follows."""
    lab.call("a")
    lab.call("b", 1)
    crash(lab, 0)
    lab.call("c")
    lab.wait_ms(60)
    lab.call("d", 1)
    lab.wait_ms(60)


def two_view_changes(lab: Lab) -> None:
    """Two primaries crash, one after the other."""
    lab.call("a")
    crash(lab, 0)
    lab.wait_ms(45)
    lab.call("b", 1)
    crash(lab, 1)
    lab.wait_ms(150)


def a_join(lab: Lab) -> None:
    """A backup crashes and comes back while a client calls."""
    lab.call("a")
    crash(lab, 2)
    lab.wait_ms(20)
    lab.call("b", 1)
    start(lab, 2)
    lab.wait_ms(2)
    lab.call("c")
    lab.wait_ms(60)
    lab.call("d", 1)
    lab.wait_ms(20)


def the_primary_returns(lab: Lab) -> None:
    """The primary crashes and comes back at once."""
    lab.call("a")
    crash(lab, 0)
    start(lab, 0)
    lab.call("b", 1)
    lab.wait_ms(100)
    lab.call("c")
    lab.wait_ms(60)


def two_groups(lab: Lab) -> None:
    """The primaries of two groups crash at once."""
    for group, _ in enumerate(lab.groups):
        lab.call(f"a{group}", 0, group)
        lab.call(f"b{group}", 1, group)
    crash(lab, *(members[0] for members in lab.groups))
    for group, _ in enumerate(lab.groups):
        lab.call(f"c{group}", 0, group)
    lab.wait_ms(100)


def gaps(lab: Lab) -> None:
    """Requests come late: first one at the primary, then one at a backup."""
    lab.call("a")
    lab.call("b", 1)
    lab.wait_ms(4)
    for late in (0, 2):
        lab.hold = lambda source, to, message, late=late: (  # type: ignore[misc]
            to == late and source == lab.clients[0] and isinstance(message, Request)
        )
        lab.call(f"late{late}")
        lab.hold = nothing
        lab.call(f"next{late}")
        lab.wait_ms(8)
        lab.release()
    lab.wait_ms(12)


def a_partition(lab: Lab) -> None:
    """The primary and one client are cut off, and come back."""
    lab.call("a")
    lab.wait_ms(5)
    lab.cut((0, 3), (1, 2, 4))
    lab.call("b")
    lab.call("c", 1)
    lab.wait_ms(120)
    lab.call("d")
    lab.call("e", 1)
    lab.wait_ms(10)
    lab.blocked.clear()
    lab.wait_ms(60)


def a_silence(lab: Lab) -> None:
    """A client is cut off until its connection is closed."""
    lab.call("a")
    lab.call("b", 1)
    lab.wait_ms(5)
    lab.isolate(3)
    lab.wait_ms(70)
    lab.call("c")
    lab.wait_ms(60)
    lab.blocked.clear()
    lab.wait_ms(60)
    lab.call("d")
    lab.wait_ms(10)


def a_newcomer(lab: Lab) -> None:
    """A replica that was not in the group at the start joins under load."""
    lab.call("a")
    lab.join(NEWCOMER)
    lab.call("b", 1)
    lab.wait_ms(8)
    lab.call("c")
    lab.wait_ms(25)
    lab.call("d", 1)
    lab.wait_ms(20)


def a_backup_leaves(lab: Lab) -> None:
    """A backup leaves under load, and joins again."""
    lab.call("a")
    lab.leave(2)
    lab.call("b", 1)
    lab.wait_ms(25)
    lab.call("c")
    lab.join(2)
    lab.wait_ms(40)
    lab.call("d", 1)
    lab.wait_ms(20)


def the_primary_leaves(lab: Lab) -> None:
    """The primary leaves under load, and the next one follows."""
    lab.call("a")
    lab.leave(0)
    lab.call("b", 1)
    lab.wait_ms(15)
    lab.call("c")
    lab.wait_ms(60)
    lab.call("d", 1)
    lab.wait_ms(20)


def they_change_places(lab: Lab) -> None:
    """A newcomer joins, the primary leaves, and then they change places again."""
    lab.call("a")
    lab.join(NEWCOMER)
    lab.wait_ms(30)
    lab.leave(0)
    lab.call("b", 1)
    lab.wait_ms(60)
    lab.join(0)
    lab.call("c")
    lab.wait_ms(40)
    lab.leave(NEWCOMER)
    lab.call("d", 1)
    lab.wait_ms(40)


COMING: tuple[Script, ...] = (a_newcomer, a_backup_leaves, the_primary_leaves, they_change_places)
"""Replicas join and leave: there is one that is in no group at the start."""
NEWCOMER = 3
SCRIPTS: tuple[Script, ...] = (
    an_exchange,
    a_view_change,
    two_view_changes,
    a_join,
    the_primary_returns,
    two_groups,
    gaps,
    a_partition,
    a_silence,
)


def lab_for(script: Script, **options: Any) -> Lab:
    """Three replicas a group, and two clients; one more replica where they come and go."""
    if script is a_silence:
        options["close_ns"] = 100 * MILLISECOND
    if script in COMING:
        options["joiners"] = 1
    return Lab(3, groups=2 if script is two_groups else 1, clients=2, **options)
