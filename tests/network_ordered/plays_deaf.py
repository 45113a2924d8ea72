"""Plays about replicas that others hear, and that hear nobody."""

from ordercast.core import SECOND
from tests.network_ordered.lab import OPTIONS, Lab


def _deaf(node: int) -> Lab:
    """A lab with one call, after which nothing of other replicas comes to this one."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    lab.lost = lambda source, to, message: to == node
    return lab


def a_deaf_leader_gives_way() -> None:
    """Its proposals arrive, so the others do not miss it; nothing becomes certain any more."""
    lab = _deaf(0)
    lab.wait(2 * OPTIONS.silence_ns)
    lab.call("b", 1, 2)
    assert lab.answers.get("b") == "a b"
    lab.finish("a", "b")


def a_deaf_leader_disturbs_once() -> None:
    """The view that follows lasts: who hears nobody does not ask for further ones."""
    lab = _deaf(0)
    lab.wait(SECOND)
    assert (lab.replica(1).view, lab.replica(1).is_normal) == (1, True)
    lab.finish("a")


def a_deaf_follower_disturbs_once() -> None:
    """It takes its leader for dead; a view begins, if not with itself as the leader, and lasts."""
    lab = _deaf(1)
    lab.wait(SECOND)
    assert (lab.replica(0).view, lab.replica(0).is_normal) == (2, True)
    lab.finish("a")


def an_idle_leader_stays() -> None:
    """Nothing happens for long: the others answer its proposals nevertheless, and one other is enough."""
    lab = Lab()
    lab.call("a")
    lab.crash(2)
    lab.wait(SECOND)
    assert lab.replica(0).view == 0
    lab.start(2, forgot=True)
    lab.finish("a")


DEAF = (
    a_deaf_leader_gives_way,
    a_deaf_leader_disturbs_once,
    a_deaf_follower_disturbs_once,
    an_idle_leader_stays,
)
