"""A receiver that lost its state becomes a new member: by a step of the service, and with fresh flushes."""

from typing import Any

import msgspec
import pytest

from ordercast.core import MILLISECOND, Message, RemoteError
from ordercast.protocols.hydra.messages import (
    Announce,
    BlindReport,
    Flush,
    Inquiry,
    Outcome,
    Plans,
    Rebirth,
    Refresh,
    Refreshed,
    Report,
    Revived,
    Solicit,
    Step,
    Suspect,
)
from ordercast.protocols.hydra.registry import Add, Decide, GiveUp, Reborn, Registry, Remove, decode, encode
from ordercast.protocols.hydra.reports import Reports
from tests.hydra.ensemble import EVERYONE, Ensemble
from tests.hydra.lab import (
    CLIENT,
    LEADER,
    MEMBERS,
    QUIET,
    SEQUENCERS,
    SERVICE,
    Bench,
    ReceiverBench,
    active,
    added,
    receiver,
    removed,
    sequencer,
)

LIFE = 1000
DURABLE = msgspec.structs.replace(QUIET, durable=True)


def revived(life: int = LIFE, steps: int = 0, config: int = 0) -> Revived:
    """The rebirth is decided, in a configuration of sequencers 1 and 2."""
    return Revived(life, steps, config, 0, 0, 2, active(1, 2))


def fresh(number: int, clock: int, last: int, life: int = LIFE) -> Refreshed:
    """A fresh flush of a sequencer, with its last number for the receiver's group."""
    return Refreshed(life, Flush(number, clock, (0, last, 0)))


def newborn(config: int = 0, resend: bool = False) -> ReceiverBench:
    """A receiver without its state that the service has taken in."""
    lab = receiver(msgspec.structs.replace(QUIET, resend=resend), forgot=True, now=LIFE)
    lab.receive(LEADER, revived(config=config))
    return lab


def begun(config: int = 0, resend: bool = False) -> ReceiverBench:
    """One that has begun: after number 7 of sequencer 1 and number 3 of sequencer 2."""
    lab = newborn(config, resend)
    lab.receive(21, fresh(1, 100, 7))
    lab.receive(22, fresh(2, 140, 3))
    lab.take_sent()
    return lab


def sent(lab: Bench[Any], kind: type[Message]) -> list[tuple[int, Message]]:
    """The messages of a kind that were sent."""
    return [(to, message) for to, message in lab.take_sent() if type(message) is kind]


# The receiver


def test_it_asks_the_service_and_does_nothing_else() -> None:
    lab = receiver(forgot=True, now=LIFE)
    assert lab.started == [(node, Rebirth(LIFE)) for node in SERVICE]
    assert lab.gives("<G,1,{(1,8)},110>", "<F,1,{(1,8)},120>", "<F,2,{(1,3)},130>") == []
    lab.receive(LEADER, Announce(0, active(1, 2), Plans("removed", 1, 21), None))
    assert lab.take_sent() == [(LEADER, Rebirth(LIFE))], "there is a leader; it is not a report"
    lab.pass_time(10 * MILLISECOND)
    assert {message for _, message in lab.take_sent()} == {Rebirth(LIFE)}
    assert lab.process.explain().behind == "the configuration service, which must take it in as a new member"
    (wait,) = lab.process.explain().waits
    assert wait.on == SERVICE


def test_each_lane_begins_at_a_fresh_flush() -> None:
    lab = newborn(config=4)
    asked = sent(lab, Refresh)
    assert asked == [(21, Refresh(1, LIFE)), (22, Refresh(2, LIFE))]
    lab.receive(21, fresh(1, 100, 7))
    assert lab.gives("<G,1,{(1,8)},110>", "<F,2,{(1,3)},120>") == [], "sequencer 2 has not answered"
    assert lab.process.explain().behind == "a fresh flush of sequencer 2"
    lab.receive(22, fresh(2, 140, 3))
    assert lab.delivered() == ["<=4>", "<G,1,{(1,8)},110>"]
    assert lab.gives("<G,2,{(1,3)},139>", "<G,2,{(1,5)},150>", "<F,1,{(1,8)},160>") == [
        "<D,2,4>",
        "<G,2,{(1,5)},150>",
    ], "number 3 may have been delivered before; number 4 came later and is missing"
    assert lab.process.explain().behind == ""


@pytest.mark.parametrize(
    "stale",
    [Flush(1, 100, (0, 7, 0)), fresh(1, 100, 7, life=LIFE - 1), fresh(1, 100, 7, life=LIFE + 1)],
    ids=str,
)
def test_a_flush_that_may_be_old_begins_no_lane(stale: Message) -> None:
    lab = newborn()
    lab.receive(22, fresh(2, 140, 3))
    lab.receive(21, stale)
    assert lab.gives("<G,1,{(1,8)},110>") == []
    assert [lane.sequencer for lane in lab.process._follower.blind] == [1]


def test_a_beginning_of_another_life_is_ignored() -> None:
    lab = receiver(forgot=True, now=LIFE)
    lab.receive(LEADER, revived(life=LIFE - 1))
    assert lab.process._merge.lanes == {}
    lab.receive(LEADER, revived(), revived(steps=3))
    assert lab.process._follower.steps == 0, "the first counts"


def test_what_overtook_the_fresh_flush_is_delivered() -> None:
    lab = newborn()
    lab.hears("<G,1,{(1,7)},90>", "<G,1,{(1,8)},110>")
    lab.receive(21, fresh(1, 100, 7))
    lab.receive(22, fresh(2, 140, 3))
    assert lab.delivered() == ["<=0>", "<G,1,{(1,8)},110>"]


def test_a_fresh_flush_without_numbers_is_refused() -> None:
    lab = newborn()
    with pytest.raises(RemoteError, match="node 21 tells no numbers of sequencer 1"):
        lab.receive(21, Refreshed(LIFE, Flush(1, 100, ())))
    with pytest.raises(RemoteError, match="not of the service"):
        lab.receive(CLIENT, revived())


def test_a_sequencer_tells_how_far_it_is() -> None:
    lab = sequencer(now=LIFE)
    lab.receive(0, Refresh(1, 5))
    assert sent(lab, Refreshed) == [], "it has no number yet"
    lab.process.state, lab.process.number = lab.process.state.SERVING, 1
    lab.receive(0, Refresh(2, 5), Refresh(1, 5))
    assert sent(lab, Refreshed) == [(0, Refreshed(5, Flush(1, LIFE, (0, 0, 0))))]


# Steps


def plan_removal(lab: ReceiverBench, steps: int = 0) -> list[Message]:
    """The service plans to remove sequencer 1; what the receiver answers."""
    lab.take_sent()
    lab.plan("removed", 1, steps)
    return [message for to, message in lab.take_sent() if to == LEADER]


def test_a_blind_report_waits_until_the_sequencer_is_silent() -> None:
    lab = newborn()
    assert plan_removal(lab) == []
    lab.pass_time(QUIET.suspect_ns + QUIET.heartbeat_ns)
    assert Suspect((1, 2)) in {message for to, message in lab.take_sent() if to == LEADER}
    assert plan_removal(lab) == [BlindReport(0, 1)]
    lab.receive(21, fresh(1, 100, 7))
    assert sent(lab, Report) == [(LEADER, Report(0, 1, 100, (0, 7, 0)))], "now it knows"
    lab.receive(22, fresh(2, 140, 3))
    assert lab.gives("<G,1,{(1,8)},110>", "<F,2,{(1,3)},200>") == ["<=0>"], "the report stands"


def test_a_sequencer_that_is_removed_is_waited_for_no_more() -> None:
    lab = newborn()
    lab.receive(22, fresh(2, 140, 3))
    assert lab.delivered() == []
    lab.decide(removed(1, 90, (0, 6, 0)))
    assert lab.delivered() == ["<=0>", "<-1,6,90>"], "what it had is not delivered, nor told as dropped"
    assert lab.gives("<G,2,{(1,4)},150>") == ["<G,2,{(1,4)},150>"]


def test_an_addition_begins_above_all_that_the_earlier_life_can_have_delivered() -> None:
    lab = newborn()
    lab.receive(21, fresh(1, 100, 7))
    lab.plan("added", 3)
    assert sent(lab, Solicit) == [], "it does not know yet how far that is"
    lab.receive(22, fresh(2, 140, 3))
    lab.plan("added", 3)
    assert sent(lab, Solicit) == [(23, Solicit(3, 140))]
    lab.hears("<F,3,{},130>")
    assert sent(lab, Report) == []
    lab.hears("<F,3,{},150>")
    assert sent(lab, Report) == [(LEADER, Report(0, 3, 150, (0, 0, 0)))]


@pytest.mark.parametrize("change", ["added", "removed"])
def test_the_rebirth_of_another_receiver_renumbers_a_report(change: str) -> None:
    lab = receiver()
    lab.plan(change, 1 if change == "removed" else 3)
    lab.hears("<F,3,{},40>")
    ((_, before),) = sent(lab, Report)
    reborn = Step("reborn", 0, 5, 0, 0, ())
    plans = lab.process._follower.planned.plan
    lab.receive(LEADER, Announce(1, active(1, 2), plans, reborn))
    lab.hears("<F,3,{},60>")
    assert isinstance(before, Report)
    assert sent(lab, Report) == [(LEADER, msgspec.structs.replace(before, step=1))]
    lab.decide(removed(1, 0, (0, 0, 0)) if change == "removed" else added(3, 70), start=1)
    assert lab.process._follower.steps == 2


def test_a_new_life_does_not_know_what_the_earlier_one_delivered() -> None:
    lab = begun(resend=True)
    lab.decide(removed(1, 100, (0, 7, 0)))
    lab.take_sent()
    lab.receive(CLIENT, Inquiry(1, (4, 5)))
    assert lab.take_sent() == [(CLIENT, Outcome(1, (), (), (4, 5)))]


# What it saves


def test_a_life_that_has_not_begun_saves_nothing_and_the_next_is_reborn_too() -> None:
    lab = receiver(DURABLE, forgot=True, now=LIFE)
    lab.receive(LEADER, revived())
    lab.receive(21, fresh(1, 100, 7))
    lab.plan("removed", 1)
    lab.decide(removed(1, 100, (0, 7, 0)))
    assert lab.env.saved == {}
    again = receiver(DURABLE, forgot=True, now=LIFE + 1)
    assert again.started[0] == (SERVICE[0], Rebirth(LIFE + 1))


def test_a_life_that_has_begun_goes_on_after_a_restart() -> None:
    lab = receiver(DURABLE, forgot=True, now=LIFE)
    lab.receive(LEADER, revived(steps=2, config=2))
    lab.receive(21, fresh(1, 100, 7))
    lab.receive(22, fresh(2, 140, 3))
    assert lab.delivered() == ["<=2>"]
    later = receiver(DURABLE, forgot=True, now=LIFE + 1, saved=lab.env.saved)
    assert later.gives("<G,1,{(1,8)},110>") == ["<G,1,{(1,8)},110>"]
    later.plan("added", 3, steps=2)
    assert sent(later, Solicit) == [(23, Solicit(3, 140))]


# The service


def test_a_rebirth_is_a_step_and_leaves_the_plan() -> None:
    registry = Registry(SEQUENCERS, 10)
    registry.apply(Remove(1))
    registry.apply(Reborn(4, 50))
    assert (registry.steps, registry.planned) == (1, Plans("removed", 1, 21))
    assert registry.kept == [Step("reborn", 0, 4, 0, 0, ())]
    registry.apply(Decide(0, 9, (5,)))
    assert registry.steps == 1, "the reports were for the step before"
    registry.apply(Reborn(4, 50))
    registry.apply(Reborn(4, 49))
    assert registry.steps == 1, "it is reborn once in a life, and never in an earlier one"
    registry.apply(Decide(1, 9, (5,)))
    assert (registry.steps, registry.config, registry.planned) == (2, 1, None)


def test_a_new_member_begins_where_the_service_is() -> None:
    registry = Registry(SEQUENCERS, 10)
    registry.apply(Add(23, 5))
    registry.apply(Reborn(4, 50))
    assert registry.revival(4) == Revived(50, 1, 0, 0, 0, 2, active(1, 2)), "number 3 is not decided yet"
    registry.apply(Decide(1, 80, (0,)))
    registry.apply(Remove(1))
    registry.apply(Decide(2, 70, (0,)))
    registry.apply(Add(24, 6))
    registry.apply(GiveUp(3))
    assert registry.revival(4) == Revived(50, 4, 2, 80, 3, 4, ((2, 22), (3, 23)))
    other = Registry({}, 10)
    other.restore(registry.snapshot())
    assert other.revival(4) == registry.revival(4)
    assert decode(encode(Reborn(4, 50))) == Reborn(4, 50)


def test_the_service_takes_a_receiver_in() -> None:
    ensemble = Ensemble()
    ensemble.service.receive(0, Rebirth(50))
    told = ensemble.service.take_sent()
    assert (0, Revived(50, 1, 0, 0, 0, 2, active(1, 2))) in told
    assert {to for to, message in told if isinstance(message, Announce)} == {*EVERYONE}
    ensemble.service.receive(0, Rebirth(50))
    assert ensemble.service.take_sent() == [(0, Revived(50, 1, 0, 0, 0, 2, active(1, 2)))], "once more"
    ensemble.service.receive(0, Rebirth(49))
    assert ensemble.service.take_sent() == []
    with pytest.raises(RemoteError, match="no receiver"):
        ensemble.service.receive(CLIENT, Rebirth(50))


def changes(ensemble: Ensemble) -> list[str]:
    """The steps that the service has decided."""
    return [step.change for step in ensemble.service.process._registry.kept]


def reports_for(ensemble: Ensemble, nodes: tuple[int, ...], step: int = 0) -> None:
    """Some receivers report that they saw number 4."""
    for node in nodes:
        ensemble.service.receive(node, Report(step, 1, 10, (0, 4, 0)))


def test_the_report_of_an_earlier_life_counts_no_more() -> None:
    ensemble = Ensemble()
    ensemble.suspect(1, EVERYONE)
    reports_for(ensemble, (0, 3, 4, 6, 7))
    ensemble.service.receive(0, Rebirth(50))
    reports_for(ensemble, (1,))
    assert changes(ensemble) == ["reborn"], "all must report for the next step"
    reports_for(ensemble, (1, 3, 4, 6, 7), step=1)
    assert changes(ensemble) == ["reborn"], "node 0 has not, in its new life"
    reports_for(ensemble, (0,), step=1)
    assert changes(ensemble) == ["reborn", "removed"]


def test_a_blind_report_does_not_count() -> None:
    ensemble = Ensemble()
    ensemble.suspect(1, EVERYONE)
    reports_for(ensemble, (1, 3, 4, 6, 7))
    ensemble.service.receive(0, BlindReport(0, 1))
    assert changes(ensemble) == []
    assert "nodes 0, 2, 5, 8" in ensemble.service.waits()[0][1]
    reports_for(ensemble, (0,))
    assert changes(ensemble) == ["removed"], "a full report after a blind one does"


def test_blind_reports_count_if_a_quorum_of_the_group_is_blind() -> None:
    ensemble = Ensemble()
    ensemble.suspect(1, EVERYONE)
    reports_for(ensemble, (3, 4, 5, 6, 7, 8))
    ensemble.service.receive(0, BlindReport(0, 1))
    assert changes(ensemble) == []
    ensemble.service.receive(2, BlindReport(0, 1))
    (step,) = ensemble.service.process._registry.kept
    assert (step.clock, step.numbers, step.complete) == (10, (0, 4, 0), False)


def test_blind_reports_count_if_all_of_the_group_have_reported() -> None:
    reports = Reports({0: (0, 1)}, all_needed=False)
    reports.take(0, BlindReport(0, 1))
    assert not reports.has_quorums()
    reports.take(1, Report(0, 1, 10, (4,)))
    assert reports.has_quorums()
    assert reports.decision(0, Plans("removed", 1, 21)) == Decide(0, 10, (4,), complete=False)


def test_a_removal_of_which_nobody_knows_anything_settles_nothing() -> None:
    ensemble = Ensemble()
    ensemble.suspect(1, EVERYONE)
    for node in EVERYONE:
        ensemble.service.receive(node, BlindReport(0, 1))
    (step,) = ensemble.service.process._registry.kept
    assert (step.clock, step.numbers, step.complete) == (0, (0,) * len(MEMBERS), False)
