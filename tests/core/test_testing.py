"""The environment that ships for tests of protocols."""

import pytest

from ordercast.core import Delivered, Env, Explanation, LocalError, Message, NodeId, Process, Wait
from ordercast.testing import ProcessDriver


class Word(Message, frozen=True, tag=1):
    text: str


class Parrot(Process):
    """Repeats what it hears, delivers it, and counts its lives."""

    def on_start(self, saved: object) -> None:
        assert isinstance(saved, dict)
        self.lives = int(saved.get("lives", b"0")) + 1
        self.env.save("lives", b"%d" % self.lives)
        self.env.save("gone", b"x")
        self.env.save("gone", None)
        self.env.set_timer("later", 30)
        self.env.set_timer("soon", 10)
        self.env.set_timer("never", 20)
        self.env.cancel_timer("never")

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Word)
        self.env.multicast((source, 8), message)
        self.env.deliver(Delivered(message.text.encode(), (), source))

    def on_timer(self, name: str) -> None:
        self.env.send(1, Word(f"{name} at {self.env.now}"))

    def explain(self) -> Explanation:
        return Explanation({}, (Wait("a word", "somebody", 3),))


def test_what_is_sent_and_delivered_is_taken_once() -> None:
    driver = ProcessDriver(Parrot, me=2, now=5)
    driver.receive(7, Word("a"), Word("b"))
    assert driver.take_sent() == [(7, Word("a")), (8, Word("a")), (7, Word("b")), (8, Word("b"))]
    assert driver.take_delivered() == [Delivered(b"a", (), 7), Delivered(b"b", (), 7)]
    assert driver.take_sent() == []
    assert driver.take_delivered() == []


def test_timers_go_off_in_their_order_as_time_passes() -> None:
    driver = ProcessDriver(Parrot, now=5)
    assert driver.env.timers == {"later": 35, "soon": 15}
    driver.pass_time(9)
    assert driver.take_sent() == []
    driver.pass_time(100)
    assert [message for _, message in driver.take_sent()] == [Word("soon at 15"), Word("later at 35")]
    assert driver.env.now == 114
    assert driver.env.timers == {}


def test_a_timer_can_be_let_off_early_but_not_one_that_is_not_armed() -> None:
    driver = ProcessDriver(Parrot)
    driver.fire("later")
    assert driver.take_sent() == [(1, Word("later at 0"))]
    with pytest.raises(LocalError, match="'later' is not armed; armed timers: soon"):
        driver.fire("later")


def test_a_later_life_starts_with_what_was_saved() -> None:
    first = ProcessDriver(Parrot)
    assert first.env.saved == {"lives": b"1"}
    second = ProcessDriver(Parrot, saved=first.env.saved)
    assert second.process.lives == 2


def test_it_says_what_a_process_waits_for() -> None:
    assert ProcessDriver(Parrot).waits() == [("a word", "somebody", 3)]


def test_the_driver_knows_the_type_of_its_process() -> None:
    def make(env: Env) -> Parrot:
        return Parrot(env)

    assert ProcessDriver(make).process.lives == 1
