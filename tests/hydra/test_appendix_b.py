"""Hydra's Appendix B: the cases of its proof of safety, with several receivers and every packet by hand."""

from random import Random

import pytest

from ordercast.core import Delivered, NodeId
from ordercast.protocols.hydra.messages import Join
from tests.hydra.ensemble import EVERYONE, GROUP_OF, Ensemble
from tests.hydra.lab import MEMBERS

QUORUMS = (0, 1, 3, 4, 6, 7)
"""Two of three in each group; 2, 5 and 8 are the minorities."""
MINORITY = (2, 5, 8)


def messages(texts: list[str]) -> list[str]:
    return [text for text in texts if text.startswith("<G")]


# No sequencer fails


@pytest.mark.parametrize("seed", range(12))
def test_without_failures_the_order_is_one_and_every_number_is_settled(seed: int) -> None:
    rng = Random(f"appendix B/{seed}")
    ensemble = Ensemble()
    numbers = {1: dict.fromkeys(MEMBERS, 0), 2: dict.fromkeys(MEMBERS, 0)}
    clock = 0
    stream: list[tuple[list[int], str]] = []
    for _ in range(50):
        clock += rng.randint(0, 1)
        sequencer = rng.choice((1, 2))
        groups = sorted(rng.sample(list(MEMBERS), rng.randint(1, 3)))
        for group in groups:
            numbers[sequencer][group] += 1
        stamp = ",".join(f"({group},{numbers[sequencer][group]})" for group in groups)
        stream.append((groups, f"<G,{sequencer},{{{stamp}}},{2 * clock + 10 * len(stream)}>"))
    for node in EVERYONE:
        mine = [text for groups, text in stream if GROUP_OF[node] in groups and rng.random() < 0.8]
        delays = [place + rng.randint(0, 4) for place in range(len(mine))]
        ensemble.hear([node], *(text for _, text in sorted(zip(delays, mine, strict=True))))
    for sequencer in (1, 2):
        last = ",".join(f"({group},{number})" for group, number in numbers[sequencer].items())
        ensemble.hear(EVERYONE, f"<F,{sequencer},{{{last}}},10000>")
    for lab in ensemble.receivers.values():
        lab.pass_time(40_000_000)
    line = [text for _, text in stream]
    for node in EVERYONE:
        given = ensemble.given(node)
        delivered = messages(given)
        assert delivered == [text for text in line if text in delivered], "one order for all"
        settled = sum(numbers[sequencer][GROUP_OF[node]] for sequencer in (1, 2))
        assert len(given) == len(set(given)) == settled


# A sequencer is removed


SHARED = "<G,1,{(0,1),(1,1)},10>"
LATER = "<G,1,{(0,2)},20>"


def remove_first(ensemble: Ensemble, without: tuple[NodeId, ...] = ()) -> None:
    """Sequencer 1 is removed, with reports of all but some."""
    ensemble.suspect(1, QUORUMS)
    ensemble.exchange(without)


def test_what_a_quorum_of_one_group_delivered_all_groups_deliver_or_are_notified_of() -> None:
    ensemble = Ensemble()
    ensemble.hear((0, 1), SHARED, "<F,2,{(1,0)},15>")
    assert ensemble.given(0) == ensemble.given(1) == [SHARED]
    remove_first(ensemble)
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},99>")
    assert ensemble.given(0) == ensemble.given(1) == [SHARED, "<-1,1,10>"]
    for node in (2, 3, 4, 5):
        assert ensemble.given(node) == ["<D,1,1>", "<-1,1,10>"]
    for node in MEMBERS[2]:
        assert ensemble.given(node) == ["<-1,0,10>"]


def test_the_notification_comes_before_any_message_behind_it_in_the_order() -> None:
    ensemble = Ensemble()
    ensemble.hear((0, 1), SHARED)
    ensemble.hear(MEMBERS[0], "<G,2,{(0,1)},30>")
    remove_first(ensemble)
    ensemble.hear(EVERYONE, "<F,2,{(0,1)},99>")
    for node in MEMBERS[0]:
        assert ensemble.given(node) == ["<D,1,1>", "<-1,1,10>", "<G,2,{(0,1)},30>"]


def test_what_nobody_saw_is_neither_delivered_nor_notified_of() -> None:
    ensemble = Ensemble()
    ensemble.hear(EVERYONE[:6], SHARED)
    remove_first(ensemble)
    ensemble.hear(MEMBERS[0], LATER)
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},99>", "<F,1,{(0,2),(1,1)},99>")
    for node in (*MEMBERS[0], *MEMBERS[1]):
        assert ensemble.given(node) == [SHARED, "<-1,1,10>"]


def test_what_only_a_minority_holds_undelivered_is_delivered_nowhere() -> None:
    ensemble = Ensemble()
    ensemble.hear((5,), SHARED)
    remove_first(ensemble, without=MINORITY)
    ensemble.reannounce()
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},99>")
    for node in EVERYONE:
        assert ensemble.given(node) == ["<-1,0,0>"]


def test_a_message_whose_other_group_did_not_settle_it_is_not_delivered_in_one_group_only() -> None:
    """The quorum of group 0 saw a later number, but nobody in a quorum saw the message itself."""
    ensemble = Ensemble()
    ensemble.hear((5,), SHARED)
    ensemble.hear((3,), LATER)
    remove_first(ensemble, without=MINORITY)
    ensemble.reannounce()
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},99>")
    assert all(SHARED not in ensemble.given(node) for node in EVERYONE)
    assert ensemble.given(3) == ["<D,1,1>", LATER, "<-1,2,20>"]
    assert ensemble.given(5) == ensemble.given(4) == ["<D,1,1>", "<D,1,2>", "<-1,2,20>"]
    assert ensemble.given(0) == ["<-1,0,20>"]


def test_one_multi_stamp_in_a_quorum_is_enough_for_all_its_groups() -> None:
    ensemble = Ensemble()
    ensemble.hear((3,), SHARED)
    remove_first(ensemble, without=MINORITY)
    ensemble.reannounce()
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},99>")
    assert ensemble.given(3) == [SHARED, "<-1,1,10>"]
    for node in (0, 1, 2, 4, 5):
        assert ensemble.given(node) == ["<D,1,1>", "<-1,1,10>"]


def test_reports_of_one_group_alone_decide_nothing() -> None:
    ensemble = Ensemble()
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},99>")
    remove_first(ensemble, without=(6, 7))
    assert all(ensemble.given(node) == [] for node in EVERYONE)
    ensemble.reannounce(without=(7,))
    assert all(ensemble.given(node) == ["<-1,0,0>"] for node in EVERYONE if node != 7)


def test_a_minority_receiver_that_delivered_beyond_the_agreed_number_keeps_the_order() -> None:
    ensemble = Ensemble()
    own = "<G,1,{(1,1)},10>"
    ensemble.hear((2,), own, "<F,2,{(1,0)},15>")
    assert ensemble.given(2) == [own]
    remove_first(ensemble, without=MINORITY)
    ensemble.reannounce()
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},50>")
    assert ensemble.given(2) == [own, "<-1,0,0>"], "the view says that the group settled nothing"
    assert ensemble.given(0) == ["<-1,0,0>"]
    ensemble.hear(MEMBERS[1], "<G,2,{(1,1)},60>")
    assert ensemble.given(2)[-1] == ensemble.given(0)[-1] == "<G,2,{(1,1)},60>"


def test_the_configuration_number_tells_what_is_uncertain() -> None:
    ensemble = Ensemble()
    lab = ensemble.receivers[2]
    lab.hears("<G,1,{(1,1)},10>", "<F,2,{(1,0)},15>")
    (beyond,) = lab.env.delivered
    assert isinstance(beyond, Delivered) and beyond.config == 0
    remove_first(ensemble, without=MINORITY)
    ensemble.reannounce()
    ensemble.hear(MEMBERS[1], "<G,2,{(1,1)},50>")
    for node in MEMBERS[1]:
        after = ensemble.receivers[node].env.delivered[-1]
        assert isinstance(after, Delivered) and after.config == 1


def test_a_quorum_of_the_whole_group_makes_a_removal_uniform() -> None:
    ensemble = Ensemble(quorum="all")
    own = "<G,1,{(1,1)},10>"
    ensemble.hear((2,), own, "<F,2,{(1,0)},15>")
    ensemble.suspect(1, EVERYONE)
    ensemble.exchange(without=(2,))
    ensemble.hear(EVERYONE, "<F,2,{(1,0)},99>")
    assert ensemble.given(0) == [], "without node 2 nothing is decided"
    ensemble.reannounce()
    assert ensemble.given(2) == [own, "<-1,1,10>"]
    assert ensemble.given(0) == ensemble.given(1) == ["<D,1,1>", "<-1,1,10>"]


# A sequencer is added


def add_third(ensemble: Ensemble, flushes: dict[NodeId, str], without: tuple[NodeId, ...] = ()) -> None:
    """Sequencer 3 joins; receivers hear different flushes of it."""
    ensemble.service.receive(23, Join(7))
    ensemble.exchange(without)
    for node, flush in flushes.items():
        ensemble.hear((node,), flush)
    ensemble.exchange(without)


def test_the_highest_flush_is_the_start_and_gives_the_numbers_of_all_groups() -> None:
    ensemble = Ensemble()
    flushes = dict.fromkeys(EVERYONE, "<F,3,{(0,1),(1,1),(2,1)},40>") | {7: "<F,3,{(0,4),(1,5),(2,6)},60>"}
    add_third(ensemble, flushes)
    ensemble.hear(EVERYONE, "<F,1,{(1,0)},99>", "<F,2,{(1,0)},99>")
    for node in EVERYONE:
        assert ensemble.given(node) == [f"<+3,{4 + GROUP_OF[node]},60>"]
    ensemble.hear(MEMBERS[1], "<G,3,{(1,5)},59>", "<G,3,{(1,6)},61>", "<G,3,{(1,8)},63>", "<G,3,{(1,9)},99>")
    ensemble.hear(MEMBERS[1], "<G,1,{(1,1)},110>", "<F,3,{(0,4),(1,9),(2,6)},111>", "<F,2,{(1,0)},111>")
    for node in MEMBERS[1]:
        tail = ensemble.given(node)[1:]
        assert tail[:4] == ["<G,3,{(1,6)},61>", "<D,3,7>", "<G,3,{(1,8)},63>", "<G,3,{(1,9)},99>"]


def test_the_start_is_above_all_that_a_quorum_has_delivered() -> None:
    ensemble = Ensemble()
    early = "<G,1,{(1,1)},45>"
    ensemble.hear((0, 1), early, "<F,2,{(1,0)},50>")
    add_third(ensemble, dict.fromkeys(EVERYONE, "<F,3,{(1,0)},40>"), without=(0,))
    assert ensemble.given(2) == [], "nodes 0 and 1 have no quorum without a flush above 45"
    ensemble.hear((1,), "<F,3,{(1,1)},46>")
    ensemble.exchange(without=(0,))
    ensemble.hear(MEMBERS[1], early, "<F,1,{(1,1)},99>", "<F,2,{(1,0)},99>")
    assert ensemble.given(1) == ensemble.given(2) == [early, "<+3,1,46>"]


def test_a_minority_receiver_that_delivered_beyond_the_start_keeps_the_order() -> None:
    ensemble = Ensemble()
    beyond = "<G,1,{(1,1)},70>"
    late, after = "<G,3,{(1,1)},60>", "<G,3,{(1,2)},80>"
    add_third(ensemble, dict.fromkeys(QUORUMS, "<F,3,{(1,0)},40>"), without=MINORITY)
    ensemble.hear((2,), beyond, "<F,2,{(1,0)},99>")
    assert ensemble.given(2) == [beyond], "it does not know of the addition"
    ensemble.reannounce()
    ensemble.hear(MEMBERS[1], late, beyond, after, "<F,1,{(1,1)},99>", "<F,2,{(1,0)},99>")
    ensemble.hear(MEMBERS[1], "<F,3,{(1,2)},99>")
    ensemble.receivers[2].pass_time(40_000_000)
    assert ensemble.given(0) == ["<+3,0,40>", late, beyond, after]
    assert ensemble.given(2) == [beyond, "<+3,0,40>", "<D,3,1>", after], "late would be out of order"


def test_a_quorum_of_the_whole_group_makes_an_addition_uniform() -> None:
    ensemble = Ensemble(quorum="all")
    beyond = "<G,1,{(1,1)},70>"
    add_third(ensemble, dict.fromkeys(EVERYONE, "<F,3,{(1,0)},40>"), without=MINORITY)
    ensemble.hear((2,), beyond, "<F,2,{(1,0)},99>")
    assert ensemble.given(2) == [beyond]
    ensemble.hear((2, 5, 8), "<F,3,{(1,0)},71>")
    ensemble.reannounce()
    ensemble.hear((2, 5, 8), "<F,3,{(1,0)},72>")
    ensemble.reannounce()
    ensemble.hear(MEMBERS[1], beyond, "<F,1,{(1,1)},99>", "<F,2,{(1,0)},99>")
    for node in MEMBERS[1]:
        assert ensemble.given(node) == [beyond, "<+3,0,72>"]
