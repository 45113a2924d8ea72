"""Processes that stack: the frame routes, keeps names apart, and hands up what is delivered."""

import pytest

from ordercast.core import (
    Delivered,
    Delivery,
    Dropped,
    Env,
    Explanation,
    LocalError,
    Message,
    NodeId,
    Process,
    Stack,
    Wait,
)
from ordercast.testing import ProcessDriver, RecordingEnv


class Ping(Message, frozen=True, tag=1):
    word: str = ""


class Pong(Message, frozen=True, tag=2):
    word: str = ""


class Inner(Process):
    """Answers a ping, and delivers its word; a timer pings; it saves what it heard."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.heard: list[str] = []
        self.saved: dict[str, bytes] = {}

    def on_start(self, saved: object) -> None:
        assert isinstance(saved, dict)
        self.saved = saved
        self.env.set_timer("tick", 5)

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Ping)
        self.heard.append(message.word)
        self.env.save("heard", message.word.encode())
        self.env.deliver(Delivered(message.word.encode(), (), source))
        self.env.multicast((source, 9), Pong(message.word))

    def on_timer(self, name: str) -> None:
        self.heard.append(f"timer {name} at {self.env.now}")
        self.env.cancel_timer("never")

    def explain(self) -> Explanation:
        return Explanation({"role": "inner"}, (Wait("a word", "nobody", 3),))


class Outer(Stack):
    """Passes on what it gets, in capitals."""

    def __init__(self, env: Env, make: type[Process] = Inner) -> None:
        super().__init__(env)
        self.log: list[str] = []
        self.inner = self.embed("inner", make, (Ping,))

    def on_own_message(self, source: NodeId, message: Message) -> None:
        self.log.append(f"own {type(message).__name__}")

    def on_own_timer(self, name: str) -> None:
        self.log.append(f"own timer {name}")

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        assert isinstance(delivery, Delivered)
        self.log.append(f"from {inner}")
        self.env.deliver(Delivered(delivery.payload.upper(), (), delivery.sender))

    def conclude(self) -> None:
        self.log.append(".")

    def explain_own(self) -> Explanation:
        return Explanation({"role": "outer"}, (Wait("all", "time", 7), Wait("first", "time", 1)))


def driver(make: type[Outer] = Outer, saved: dict[str, bytes] | None = None) -> ProcessDriver[Outer]:
    return ProcessDriver(make, me=4, saved=saved)


def test_a_message_goes_to_the_one_that_takes_its_type() -> None:
    tested = driver()
    tested.receive(2, Ping("a"), Pong("b"))
    assert tested.process.inner.heard == ["a"]  # type: ignore[attr-defined]
    assert tested.process.log == [".", "from inner", ".", "own Pong", "."]
    assert tested.take_sent() == [(2, Pong("a")), (9, Pong("a"))]


def test_what_the_inner_one_delivers_comes_to_the_outer_one() -> None:
    tested = driver()
    tested.receive(2, Ping("a"))
    assert tested.take_delivered() == [Delivered(b"A", (), 2)]


def test_a_stack_that_does_not_mind_passes_deliveries_on() -> None:
    class Plain(Stack):
        def __init__(self, env: Env) -> None:
            super().__init__(env)
            self.embed("inner", Inner, (Ping,))

    tested = ProcessDriver(Plain)
    tested.receive(2, Ping("a"), Pong("ignored"))
    assert tested.take_delivered() == [Delivered(b"a", (), 2)]
    assert tested.process.explain().state == {"inner role": "inner"}


def test_timers_and_saved_state_have_names_of_their_own() -> None:
    tested = driver()
    tested.env.set_timer("tick", 2)
    assert set(tested.env.timers) == {"inner.tick", "tick"}
    tested.receive(2, Ping("a"))
    assert tested.env.saved == {"inner.heard": b"a"}
    tested.pass_time(10)
    assert tested.process.inner.heard == ["a", "timer tick at 5"]  # type: ignore[attr-defined]
    assert tested.process.log == [".", "from inner", ".", "own timer tick", ".", "."]


def test_the_inner_one_starts_with_what_it_saved_and_nothing_else() -> None:
    tested = driver(saved={"inner.heard": b"a", "heard": b"other", "innermost.x": b"y"})
    assert tested.process.inner.saved == {"heard": b"a"}  # type: ignore[attr-defined]


def test_a_timer_of_no_inner_process_is_the_outer_ones_own_even_with_a_dot() -> None:
    tested = driver()
    tested.process.on_timer("other.tick")
    assert tested.process.log[-2:] == ["own timer other.tick", "."]


def test_the_inner_one_sees_the_world_of_the_outer_one() -> None:
    tested = driver()
    inner = tested.process.inner.env
    tested.env.now = 77
    assert (inner.me, inner.now) == (4, 77)
    assert inner.rng is tested.env.rng


def test_explanations_are_put_together_with_the_oldest_wait_first() -> None:
    told = driver().process.explain()
    assert told.state == {"role": "outer", "inner role": "inner"}
    assert [wait.since for wait in told.waits] == [1, 3, 7]


def test_stacks_stack() -> None:
    class Top(Stack):
        def __init__(self, env: Env) -> None:
            super().__init__(env)
            self.middle = self.embed("middle", Outer, (Ping, Pong))

    tested = ProcessDriver(Top, saved={"middle.inner.heard": b"z"})
    tested.receive(2, Ping("a"), Pong("b"))
    middle = tested.process.middle
    assert middle.inner.saved == {"heard": b"z"}  # type: ignore[attr-defined]
    assert middle.log == [".", "from inner", ".", "own Pong", "."]
    assert set(tested.env.timers) == {"middle.inner.tick"}
    tested.pass_time(5)
    assert middle.inner.heard == ["a", "timer tick at 5"]  # type: ignore[attr-defined]
    assert tested.env.saved["middle.inner.heard"] == b"a"
    assert tested.take_delivered() == [Delivered(b"A", (), 2)]
    assert tested.process.explain().state == {"middle role": "outer", "middle inner role": "inner"}


@pytest.mark.parametrize("name", ["", "a.b", "inner"])
def test_an_inner_process_has_a_name_of_its_own(name: str) -> None:
    outer = Outer(RecordingEnv())
    with pytest.raises(LocalError, match="must be unique and have no dots"):
        outer.embed(name, Inner)


def test_two_inner_processes_do_not_take_the_same_messages() -> None:
    outer = Outer(RecordingEnv())
    with pytest.raises(LocalError, match="two inner processes take messages of type Ping"):
        outer.embed("other", Inner, (Pong, Ping))


def test_other_deliveries_than_messages_come_up_too() -> None:
    seen: list[tuple[str, Delivery]] = []

    class Watching(Outer):
        def on_deliver(self, inner: str, delivery: Delivery) -> None:
            seen.append((inner, delivery))

    tested = driver(Watching)
    tested.process.inner.env.deliver(Dropped(0, 1, 2))
    assert seen == [("inner", Dropped(0, 1, 2))]
    assert tested.take_delivered() == []
