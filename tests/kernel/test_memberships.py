"""Requests to join and to leave: what makes no sense is refused in one line."""

from dataclasses import replace

import pytest

from ordercast.core import Deployment, Gaps, Guarantees, LocalError, Membership, Process, Receiver
from ordercast.kernel.memberships import Memberships
from ordercast.testing import RecordingEnv
from tests.sim.models import sequencer, subscriptions

PLAN = subscriptions.plan(Deployment(((0, 1), (1,)), joiners=1))
JOINER = 2


def process(node: int) -> Process:
    """A process of the model."""
    return PLAN.nodes[node].factory(RecordingEnv(node))


def refused(node: int, request: str, group: int, memberships: Memberships | None = None) -> str:
    """What the error says."""
    with pytest.raises(LocalError) as error:
        (memberships or Memberships(PLAN, node)).ask(process(node), request, group)  # type: ignore[arg-type]
    return str(error.value)


def test_what_makes_sense_is_passed_to_the_process() -> None:
    joiner = process(JOINER)
    assert Memberships(PLAN, JOINER).ask(joiner, "join", 0) is joiner
    assert isinstance(Memberships(PLAN, 1).ask(process(1), "leave", 1), Receiver)


def test_what_makes_no_sense_is_refused() -> None:
    assert refused(JOINER, "join", 7) == "there is no group 7; there are: 0, 1"
    assert refused(0, "join", 0) == "node 0 is in group 0 already"
    assert refused(0, "leave", 1) == "node 0 is not in group 1, so it cannot leave it"
    sender = PLAN.senders[0]
    assert refused(sender, "join", 0) == f"node {sender} (Sender) cannot join or leave groups"


def test_a_request_is_made_once_until_it_takes_effect() -> None:
    memberships = Memberships(PLAN, JOINER)
    memberships.ask(process(JOINER), "join", 0)
    assert refused(JOINER, "join", 0, memberships) == "node 2 has asked to join group 0 already"
    assert refused(JOINER, "leave", 0, memberships) == "node 2 has asked to join group 0 already"
    memberships.ask(process(JOINER), "join", 1)
    memberships.on_effect(0)
    memberships.ask(process(JOINER), "join", 0)
    memberships.forget()
    memberships.ask(process(JOINER), "join", 0)


def test_fixed_groups_do_not_change() -> None:
    plan = sequencer.plan(Deployment(((0,),)))
    with pytest.raises(LocalError, match="the groups of sequencer-model are fixed"):
        Memberships(plan, 0).ask(plan.nodes[0].factory(RecordingEnv(0)), "leave", 0)
    with pytest.raises(LocalError, match="fixed, so nobody can join them later"):
        replace(plan, joiners=(0,))


def test_gaps_cannot_be_notified_where_receivers_join_later() -> None:
    promised = Guarantees(gaps=Gaps.NOTIFIED, membership=Membership.VIEWS)
    with pytest.raises(LocalError, match="gaps cannot be notified"):
        replace(PLAN, guarantees=promised)


def test_joiners_follow_the_members_and_senders_follow_them() -> None:
    deployment = Deployment(((0, 1), (1,)), senders=2, joiners=1)
    assert deployment.receivers == 3
    assert deployment.joiner_ids() == (JOINER,)
    assert deployment.sender_ids() == (3, 4)
    assert PLAN.joiners == (JOINER,) and JOINER in PLAN.participants()
    with pytest.raises(LocalError, match="must not be negative"):
        Deployment(((0,),), joiners=-1)
