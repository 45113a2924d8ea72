"""Plays of groups that ask groups, and what breaks in each with a defect."""

from typing import Any

from ordercast.components.execution import Executor
from ordercast.components.execution.asks import Asks
from ordercast.core import MILLISECOND
from ordercast.replication.llft.asker import Asker
from ordercast.replication.llft.messages import Reply
from tests.llft.lab import kinds
from tests.llft.mutants import Mutant
from tests.llft.plays import Play
from tests.llft.tiers import TierLab

_send = Executor.send


def a_connection_is_replaced_while_an_ask_waits() -> set[str]:
    """The second tier has performed it, and its reply is lost with the connection."""
    lab = TierLab(replicas=3, close_ns=100 * MILLISECOND)
    lab.lost = kinds(Reply, source=lab.groups[1][0])
    lab.call("a")
    lab.cut(lab.groups[0], lab.groups[1])
    lab.wait_ms(200)
    lab.heal()
    lab.wait_ms(50)
    return lab.finish()


def a_client_calls_again_while_an_ask_waits() -> set[str]:
    """It comes on another connection, on which it waits for the answer."""
    lab = TierLab(replicas=3, close_ns=100 * MILLISECOND)
    lab.lost = kinds(Reply, source=lab.groups[1][0])
    lab.call("a")
    lab.isolate(lab.clients[0])
    lab.wait_ms(80)
    lab.wait_ms(150)
    lab.blocked.clear()
    lab.wait_ms(60)
    return lab.finish()


def a_newcomer_takes_over_while_an_ask_waits() -> set[str]:
    """It knows of the ask by the state alone."""
    lab = TierLab(replicas=2)
    lab.lost = kinds(Reply, source=lab.groups[1][0])
    lab.call("a")
    lab.crash(1)
    lab.start(1)
    lab.wait_ms(100)
    lab.crash(0)
    lab.wait_ms(60)
    lab.heal()
    lab.wait_ms(60)
    return lab.finish()


def a_primary_crashes_while_an_ask_waits() -> set[str]:
    """The next one goes on."""
    lab = TierLab(replicas=3)
    lab.lost = kinds(Reply, source=lab.groups[1][0])
    lab.call("a")
    lab.wait_ms(5)
    lab.crash(0)
    lab.wait_ms(100)
    lab.heal()
    lab.wait_ms(60)
    return lab.finish()


TIERED: tuple[Play, ...] = (
    a_connection_is_replaced_while_an_ask_waits,
    a_client_calls_again_while_an_ask_waits,
    a_newcomer_takes_over_while_an_ask_waits,
    a_primary_crashes_while_an_ask_waits,
)


def send_under_a_new_identity(self: Executor, number: int, message: int, *rest: Any) -> bytes | None:
    """Forget under which identity an ask was sent before."""
    assert self.asks is not None
    ask = self.asks.waiting.get(number)
    if ask is not None and ask.message is not None:
        ask.message = None
        message += 1
    return _send(self, number, message, *rest)


def send_once(self: Asks, via: tuple[int, ...]) -> None:
    """Do not send again what was sent on a connection that has ended."""


def answer_the_first_way(self: Executor, first: int, via: tuple[int, ...]) -> bool:
    """Answer a call on the connection on which it came first."""
    return self.asks is not None and first in self.asks.calls


def forget_what_waits(self: Asks) -> Any:
    """Leave out of the state what has no answer."""
    return 0, [], {}


def resume_nothing(self: Asker, *rest: Any) -> None:
    """Deliver replies, and do nothing with them."""


MUTANTS = (
    Mutant(
        "an ask that is sent again under another identity",
        Executor,
        "send",
        send_under_a_new_identity,
        a_connection_is_replaced_while_an_ask_waits,
        "exactly-once",
    ),
    Mutant(
        "an ask that is sent once",
        Asks,
        "recall",
        send_once,
        a_connection_is_replaced_while_an_ask_waits,
        "validity",
    ),
    Mutant(
        "an answer on the connection that has ended",
        Executor,
        "_runs_already",
        answer_the_first_way,
        a_client_calls_again_while_an_ask_waits,
        "validity",
    ),
    Mutant(
        "a state without what has no answer",
        Asks,
        "pack",
        forget_what_waits,
        a_newcomer_takes_over_while_an_ask_waits,
        "validity",
    ),
    Mutant(
        "a reply that nobody takes",
        Asker,
        "on_reply",
        resume_nothing,
        a_primary_crashes_while_an_ask_waits,
        "validity",
    ),
)
