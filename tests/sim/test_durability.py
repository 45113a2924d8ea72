"""What is saved: rolled back by a crash at most until something that depends on it has left."""

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import Delivered
from ordercast.core.bundle import Item, pack
from tests.sim.probes import Probe, ProbeWorld, Word

NAMES = st.sampled_from("abc")
EFFECTS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), NAMES, st.none() | st.binary(max_size=3)),
        st.tuples(st.sampled_from(("send", "multicast", "deliver")), st.none(), st.none()),
    ),
    max_size=12,
)
Effect = tuple[str, str | None, bytes | None]
State = dict[str, bytes]


def act(probe: Probe, effect: Effect) -> None:
    kind, name, value = effect
    match kind:
        case "save":
            assert name is not None
            probe.env.save(name, value)
        case "send":
            probe.env.send(1, Word("depends on it"))
        case "multicast":
            probe.env.multicast((1, 2), Word("depends on it"))
        case _:
            probe.env.deliver(Delivered(pack([Item(1, 0, b"")]), (0,), 0))


def applied(state: State, effect: Effect) -> State:
    kind, name, value = effect
    if kind != "save" or name is None:
        return state
    rest = {key: kept for key, kept in state.items() if key != name}
    return rest if value is None else {**rest, name: value}


@given(st.lists(EFFECTS, min_size=1, max_size=3), st.integers(0, 50))
def test_a_crash_undoes_only_saves_that_nothing_depended_on(lives: list[list[Effect]], seed: int) -> None:
    world = ProbeWorld((0, 1, 2), seed=seed)
    before: State = {}
    for effects in lives:
        allowed = [before]
        state = before
        for effect in effects:
            state = applied(state, effect)
            if effect[0] == "save":
                allowed.append(state)
            else:
                allowed = [state]
        for effect in effects:
            world.do(0, partial(act, effect=effect))
        world.crash(0)
        world.restart(0)
        assert world.probe(0).saved in allowed
        before = world.probe(0).saved


def outcomes(action: Callable[[Probe], None]) -> set[bool]:
    """Whether the state was there after a crash, over many seeds."""
    found = set()
    for seed in range(40):
        world = ProbeWorld(seed=seed)
        world.do(0, action)
        world.crash(0)
        world.restart(0)
        found.add("state" in world.probe(0).saved)
    return found


def test_a_save_alone_is_kept_sometimes_and_lost_sometimes() -> None:
    assert outcomes(lambda probe: probe.env.save("state", b"x")) == {True, False}


def test_a_save_before_a_send_is_always_kept() -> None:
    def action(probe: Probe) -> None:
        probe.env.save("state", b"x")
        probe.env.send(1, Word("depends on it"))

    assert outcomes(action) == {True}


def test_a_save_after_a_send_is_not_covered_by_it() -> None:
    def action(probe: Probe) -> None:
        probe.env.send(1, Word("does not depend on it"))
        probe.env.save("state", b"x")

    assert outcomes(action) == {True, False}


def test_what_is_saved_is_a_copy() -> None:
    world = ProbeWorld()
    state = bytearray(b"before")

    def action(probe: Probe) -> None:
        probe.env.save("state", state)  # type: ignore[arg-type]
        state[:] = b"after!"
        probe.env.send(1, Word("durable"))

    world.do(0, action)
    world.crash(0)
    world.restart(0)
    assert world.probe(0).saved == {"state": b"before"}
