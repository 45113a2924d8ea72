"""A message is lost, or a process crashes, at any step of a change: nothing is lost or out of order.

Each script runs once for each message that is sent after its beginning, and each trouble. Whoever has crashed
comes back with its disk at the end, and then everything that was sent is delivered.
"""

from collections.abc import Callable

import pytest

from ordercast.core import Message, NodeId
from ordercast.protocols.atoms.messages import MESSAGES, Alive
from tests.atoms.lab import Lab
from tests.deep import deep_after
from tests.hand_driven import Strike

STRIDE = 12
"""Each so many of the steps of a script is tried with each trouble; deep tests try the steps between them."""
TROUBLES = ("lost", "before", "after", "sender")
JOINER = 4


def chosen(source: NodeId, to: NodeId, message: Message) -> bool:
    """Every message of the protocol, but for signs of life."""
    return isinstance(message, MESSAGES) and not isinstance(message, Alive)


def talk(lab: Lab, name: str) -> None:
    """Send a message to each group that is there."""
    for group in range(3):
        node = lab.publishers[group % 2]
        if node in lab.drivers:
            lab.submit(f"{name}{group}", group, group % 2)


def a_subscriber_joins(lab: Lab) -> None:
    """It makes a double overlap out of a single one."""
    talk(lab, "a")
    if JOINER in lab.drivers:
        lab.join(JOINER, 1)
    talk(lab, "b")
    lab.wait_ms(30)


def a_subscriber_leaves(lab: Lab) -> None:
    """A double overlap is one no more."""
    talk(lab, "a")
    if 1 in lab.drivers:
        lab.leave(1, 1)
    talk(lab, "b")
    lab.wait_ms(30)


def a_group_gets_its_first_member(lab: Lab) -> None:
    """And then another."""
    talk(lab, "a")
    if JOINER in lab.drivers:
        lab.join(JOINER, 3)
    lab.wait_ms(10)
    if 0 in lab.drivers:
        lab.join(0, 3)
    lab.wait_ms(30)


def a_group_loses_its_last_member(lab: Lab) -> None:
    """Two leave, one after the other."""
    talk(lab, "a")
    for node in (1, 2):
        if node in lab.drivers:
            lab.leave(node, 1)
        talk(lab, f"b{node}")
    lab.wait_ms(30)


def a_node_crashes(lab: Lab) -> None:
    """Its atoms move to others."""
    talk(lab, "a")
    node = lab.nodes[0]
    if node in lab.drivers:
        lab.crash(node)
    talk(lab, "b")
    lab.wait_ms(100)


def a_node_restarts(lab: Lab) -> None:
    """It has its logs, but not its counters."""
    talk(lab, "a")
    node = lab.nodes[1]
    if node in lab.drivers:
        lab.crash(node)
    talk(lab, "b")
    if node not in lab.drivers:
        lab.start(node)
    talk(lab, "c")
    lab.wait_ms(60)


def two_at_once(lab: Lab) -> None:
    """One joins, one leaves, and a node crashes meanwhile."""
    talk(lab, "a")
    if JOINER in lab.drivers:
        lab.join(JOINER, 0)
    if 3 in lab.drivers:
        lab.leave(3, 2)
    node = lab.nodes[2]
    if node in lab.drivers:
        lab.crash(node)
    talk(lab, "b")
    lab.wait_ms(100)


SCRIPTS = (
    a_subscriber_joins,
    a_subscriber_leaves,
    a_group_gets_its_first_member,
    a_group_loses_its_last_member,
    a_node_crashes,
    a_node_restarts,
    two_at_once,
)


def run(script: Callable[[Lab], None], trouble: str, step: int) -> bool:
    """Run a script with trouble at a step; False if it has no such step."""
    lab = Lab((0, 1, 2), (1, 2), (0, 1, 3), (), publishers=2, joiners=1, store=3)
    lab.strike = Strike(chosen, step, trouble)
    script(lab)
    if lab.struck is None:
        return False
    broken = lab.finish()
    assert broken == set(), f"step {step}, node {lab.struck}"
    for node in (0, 1, 2):
        lab.submit(f"last{node}", node, node % 2)
    lab.wait_ms(200)
    assert lab.history.broken() == set(), f"at the end, after step {step}, node {lab.struck}"
    return True


@pytest.mark.parametrize("offset", deep_after(1, range(STRIDE)))
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_trouble_at_any_step_loses_nothing(script: Callable[[Lab], None], trouble: str, offset: int) -> None:
    step = 1 + (len(script.__name__) + TROUBLES.index(trouble) + offset) % STRIDE
    while run(script, trouble, step):
        step += STRIDE
    assert step > 2 * STRIDE, "the script has many steps"
