"""Deployments: what the user asks for, and what is refused."""

import pytest

from ordercast.core import Deployment, LocalError


def test_disjoint_groups_share_no_receiver() -> None:
    deployment = Deployment.disjoint(3, 2, 4)
    assert deployment.groups == ((0, 1), (2, 3), (4, 5))
    assert deployment.receivers == 6
    assert deployment.sender_ids() == (6, 7, 8, 9)


def test_senders_have_hosts_of_their_own() -> None:
    deployment = Deployment.disjoint(1, 3, 2)
    assert [deployment.sender_host(sender) for sender in deployment.sender_ids()] == [3, 4]


def test_colocated_senders_go_round_the_receivers_hosts() -> None:
    deployment = Deployment.disjoint(1, 3, 5, colocated=True)
    assert [deployment.sender_host(sender) for sender in deployment.sender_ids()] == [0, 1, 2, 0, 1]


def test_overlapping_groups_count_a_receiver_once() -> None:
    deployment = Deployment(((0, 1, 2), (1, 2, 3)), senders=1)
    assert deployment.receivers == 4
    assert deployment.sender_ids() == (4,)


@pytest.mark.parametrize(
    ("groups", "senders", "complaint"),
    [
        ((), 1, "at least one group"),
        (((),), 1, "at least one group with a receiver"),
        (((), ()), 1, "at least one group with a receiver"),
        (((0,),), 0, "at least one sender"),
        (((0,),), -1, "at least one sender"),
        (((1, 2),), 1, "from 0 without gaps"),
        (((0, 2),), 1, "from 0 without gaps"),
        (((-1, 0),), 1, "from 0 without gaps"),
        (((0, 1, 0),), 1, "twice in one group"),
    ],
)
def test_what_cannot_be_deployed_is_refused(
    groups: tuple[tuple[int, ...], ...], senders: int, complaint: str
) -> None:
    with pytest.raises(LocalError, match=complaint):
        Deployment(groups, senders)


def test_a_group_may_be_empty() -> None:
    deployment = Deployment(((), (0, 1)), senders=1, joiners=1)
    assert (deployment.receivers, deployment.joiner_ids(), deployment.sender_ids()) == (3, (2,), (3,))


def test_no_group_and_no_receiver_are_refused_in_disjoint_deployments() -> None:
    for groups, receivers in ((0, 3), (2, 0)):
        with pytest.raises(LocalError):
            Deployment.disjoint(groups, receivers, 1)
