"""Groups that ask other groups (section II.C): each call is performed once by every tier, whoever crashes and
whatever is lost, at any step."""

import pytest

from ordercast.core import Message, NodeId, message_name
from ordercast.core.bundle import bundle_span
from ordercast.core.chain import follow
from tests.deep import deep_after
from tests.hand_driven import Strike
from tests.llft.mutants import Mutant
from tests.llft.plays import Play
from tests.llft.plays_tiers import MUTANTS, TIERED
from tests.llft.scripts import crash
from tests.llft.tiers import TierLab

TROUBLES = ("lost", "before", "after", "sender", "primaries")
OPTIONS: dict[str, dict[str, object]] = {
    "semi-active": {},
    "majority": {"require_majority": True},
    "semi-passive": {"replication": "semi-passive", "update_every": 1},
    "semi-passive majority": {"replication": "semi-passive", "update_every": 2, "require_majority": True},
}
STRIDE = 24


def any_message(source: NodeId, to: NodeId, message: Message) -> bool:
    """Every message."""
    return True


def an_exchange(lab: TierLab) -> None:
    """Two clients call, one after the other and at the same time."""
    lab.call("a")
    lab.call("b", 1)
    lab.wait_ms(2)
    lab.call("c")
    lab.wait_ms(12)


def a_view_change(lab: TierLab) -> None:
    """The primary of the first tier crashes with a call that waits for the second one."""
    lab.call("a")
    lab.hold = lambda source, to, message: source in lab.groups[1] and to in lab.groups[0]
    lab.call("b", 1)
    crash(lab, 0)
    lab.release()
    lab.call("c")
    lab.wait_ms(90)


def both_primaries(lab: TierLab) -> None:
    """The primaries of both tiers crash at once."""
    lab.call("a")
    lab.call("b", 1)
    crash(lab, *(members[0] for members in lab.groups))
    lab.call("c")
    lab.wait_ms(120)


SCRIPTS = (an_exchange, a_view_change, both_primaries)


def run(script: object, tiers: int, options: str, strike: Strike | None) -> bool:
    """Run a script with trouble at a step; False if it has no such step."""
    assert callable(script)
    lab = TierLab(tiers, replicas=3, clients=2, **OPTIONS[options])
    lab.strike = strike
    script(lab)
    if strike is not None and lab.struck is None:
        return False
    found = lab.finish()
    assert found == set(), f"{strike}, node {lab.struck}: {lab.details}"
    return True


@pytest.mark.parametrize("tiers", [2, 3])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_each_tier_performs_each_call_once(script: object, options: str, tiers: int) -> None:
    assert run(script, tiers, options, None)


@pytest.mark.parametrize(
    "part", deep_after(1, [range(1), range(1, STRIDE)]), ids=lambda part: f"from-{part[0]}"
)
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_trouble_at_any_step_breaks_no_promise(
    script: object, options: str, trouble: str, part: range
) -> None:
    for offset in part:
        step = 1 + (5 * TROUBLES.index(trouble) + offset) % STRIDE
        while run(script, 2, options, Strike(any_message, step, trouble)):
            step += STRIDE
        assert step > STRIDE, "the script has many steps"


@pytest.mark.parametrize("play", TIERED, ids=lambda play: play.__name__)
def test_promises_are_kept(play: Play) -> None:
    assert play() == set()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_breaks_a_promise(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.owner, mutant.attribute, mutant.value)
    assert mutant.breaks in mutant.play()


def test_a_call_that_waits_says_for_which_group_and_what_is_lacking() -> None:
    """From the client to the primary that it calls, and on to the group that does not answer."""
    lab = TierLab(replicas=2)
    lab.cut(lab.groups[0], lab.groups[1])
    lab.call("a")
    waits = {node: driver.process.explain().waits for node, driver in lab.drivers.items()}
    client, primary, other = lab.clients[0], lab.groups[0][0], lab.groups[1][0]
    (call,) = waits[client]
    (ask,) = [wait for wait in waits[primary] if wait.subject.startswith("call ")]
    assert call.on == (primary,) and ask.on == (other,)
    assert ask.subject == f"call {message_name(lab.names['a'])}" and ask.groups == (0,)
    assert ask.blocker.startswith("the answer of group 1 to ")
    assert ask.payload is not None and bundle_span(ask.payload) == (lab.names["a"], 1)
    chain = follow(client, call, waits)
    assert [node for node, _ in chain.links] == [client, primary] and chain.cause == other
    lab.crash(primary)
    lab.wait_ms(20)
    lab.heal()
    lab.wait_ms(150)
    assert all(not driver.process.explain().waits for driver in lab.drivers.values())
    assert lab.finish() == set()
