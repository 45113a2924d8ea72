"""Plays of semi-passive replication: backups log what the primary does, and take over its states."""

from ordercast.core import MILLISECOND
from ordercast.replication.llft.messages import SERVER, Reply, Request, Reset, State, StateAsk, StateOffer
from tests.llft.lab import Lab, kinds
from tests.llft.plays import Play, certain


def two_clients_of_a_semi_passive_service() -> set[str]:
    """Section II.E."""
    lab = Lab(clients=2, replication="semi-passive", update_every=1)
    lab.call("a", 0)
    lab.wait_ms(20)
    lab.lost = kinds(Reply, to=3)
    lab.call("first", 0)
    lab.call("second", 1)
    lab.wait_ms(20)
    lab.crash(0)
    lab.heal()
    lab.wait_ms(100)
    return certain(lab, lab.finish())


def a_semi_passive_backup_has_no_state_yet() -> set[str]:
    """It performs what it has logged."""
    lab = Lab(clients=2, replication="semi-passive", update_every=2)
    lab.lost = kinds(StateOffer, StateAsk, State)
    for turn in range(5):
        lab.call(f"a{turn}", turn % 2)
        lab.wait_ms(5)
    lab.crash(0)
    lab.heal()
    lab.wait_ms(100)
    return certain(lab, lab.finish())


def a_request_of_a_replaced_connection_is_left_at_backups() -> set[str]:
    """Only semi-passive backups got it. Its call was performed on the next connection, and the client
    waits for it no longer: a new primary and its backups must not take it for a new one."""
    lab = Lab(replication="semi-passive", update_every=1, close_ns=100 * MILLISECOND)
    lab.lost = kinds(Request, to=0)
    lab.call("x")
    lab.wait_ms(5)
    lab.isolate(3)
    lab.wait_ms(200)
    lab.heal()
    lab.wait_ms(60)
    for text in ("y", "z"):
        lab.call(text)
        lab.wait_ms(20)
    lab.crash(0)
    lab.wait_ms(100)
    return certain(lab, lab.finish())


def a_connection_is_replaced_that_only_backups_know() -> set[str]:
    """No state tells them of it: they see it by the next connection of the client."""
    lab = Lab(replication="semi-passive", update_every=100, close_ns=100 * MILLISECOND)
    lab.lost = kinds(Request, to=0)
    lab.call("x")
    lab.wait_ms(5)
    lab.isolate(3)
    lab.wait_ms(200)
    lab.heal()
    lab.wait_ms(60)
    lab.call("y")
    return certain(lab, lab.finish())


def a_backup_wakes_that_has_logged_a_view() -> set[str]:
    """The connection was opened behind the beginning of that view, and stays open."""
    lab = Lab(4, replication="semi-passive", update_every=1)
    lab.lost = kinds(StateOffer)
    lab.crash(0)
    lab.wait_ms(100)
    lab.lost = lambda source, to, message: to == 4 or isinstance(message, StateOffer)
    lab.call("a")
    lab.wait_ms(20)
    lab.crash(1)
    lab.wait_ms(20)
    lab.heal()
    lab.wait_ms(100)
    lab.hold = kinds(State)
    lab.call("b")
    lab.wait_ms(10)
    lab.call("c")  # it is logged behind the state that is on its way
    lab.wait_ms(3)
    lab.release()
    lab.call("d")
    lab.wait_ms(20)
    return certain(lab, lab.finish())


def a_connection_is_replaced_between_two_states() -> set[str]:
    """Backups still have to perform what they have logged of it, but nobody lacks its messages."""
    lab = Lab(replication="semi-passive", update_every=100)
    lab.call("x")
    lab.give(0, 3, Reset(lab.connection(0).link, SERVER))
    lab.pump()
    return lab.finish()


SEMI_PASSIVE: tuple[Play, ...] = (
    two_clients_of_a_semi_passive_service,
    a_semi_passive_backup_has_no_state_yet,
    a_request_of_a_replaced_connection_is_left_at_backups,
    a_connection_is_replaced_that_only_backups_know,
    a_backup_wakes_that_has_logged_a_view,
    a_connection_is_replaced_between_two_states,
)
