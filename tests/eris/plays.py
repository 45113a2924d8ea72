"""Plays of epochs that end, each of which ends with all of a call in its shards, or nothing.

`test_plays.py` plays each; `test_mutants.py` plays it again with something broken on purpose, which must
break a promise.
"""

from ordercast.components.cross_shard.messages import FoundMessages, Gone, Promised, Shown
from ordercast.core import MILLISECOND, NodeId
from ordercast.protocols.hydra.messages import Announce, Report, Steps
from ordercast.transactions.eris.messages import EpochRequest
from tests.eris.lab import ABOUT_EPOCHS, DURABLE, FIRST, SECOND, EpochLab
from tests.hand_driven import Chosen, require
from tests.hydra_txn.lab import REPLICAS
from tests.hydra_txn.plays import any_of, between, without


def apart(*nodes: NodeId) -> Chosen:
    """Cut these off from everybody."""
    return lambda source, to, message: source in nodes or to in nodes


def _require_epoch(lab: EpochLab, epoch: int) -> None:
    require(set(lab.epochs()) == {epoch}, f"replicas are in epochs {lab.epochs()}, not in {epoch}")


# What counts of an epoch


def an_epoch_ends() -> None:
    """All know the same of it, and the next one goes on."""
    lab = EpochLab()
    lab.call("old")
    lab.next_epoch(2)
    _require_epoch(lab, 2)
    lab.call("new", sequencer=2)
    require(lab.answered["new"] == {0, 1}, "nothing is answered in the new epoch")
    lab.finish("old", "new")


def what_was_answered_counts() -> None:
    """Majorities of both shards have it, and the leader of one dies with the sequencer."""
    lab = EpochLab()
    lab.call("old")
    lab.give(lab.stamp("answered"), 0, 1, 3, 4)
    require(lab.answered["answered"] == {0, 1}, "majorities with their leaders have not answered")
    lab.crash(0)
    lab.next_epoch(2)
    lab.wait_ms(150)
    lab.call("new", sequencer=2)
    lab.finish("old", "answered", "new")


def one_shard_has_it() -> None:
    """A majority of one shard has it, for certain; the other has never heard of it. So it counts in both."""
    lab = EpochLab()
    lab.call("old")
    lab.give(lab.stamp("certain"), *FIRST)
    lab.wait(20 * MILLISECOND)
    require(lab.order(0) == ["old", "certain"], "one shard alone is not certain of its log")
    require(lab.order(1) == ["old"], "a shard has what never came")
    lab.next_epoch(2)
    lab.call("new", sequencer=2)
    lab.finish("old", "certain", "new")
    assert lab.kinds(FoundMessages) > 0


def only_one_leader_has_it() -> None:
    """It has executed it, and nobody else knows of it when the epoch ends: the leader goes back."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = apart(0)
    beyond = lab.stamp("beyond")
    lab.give(beyond, 0)
    assert [entry.number for entry in lab.replica(0).log.entries][-1] == 2
    lab.next_epoch(2, 1, 2, *SECOND)
    lab.wait_ms(5)
    lab.finish("old", never=("beyond",))


def who_has_it_dies(node: NodeId) -> None:
    """One replica has it, alone, and has reported it; then it dies. So the end is behind a message that
    nobody has any more: it is gone in both shards, and they go on."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = any_of(between(node), without(Steps, Shown))
    lab.give(lab.stamp("last"), node)
    lab.next_epoch(2)
    lab.crash(node)
    lab.lost = without()
    lab.call("new", sequencer=2)
    lab.wait_ms(150)
    require(lab.answered["new"] == {0, 1}, "the shards wait for a message that nobody has")
    lab.finish("old", "new", never=("last",))
    assert lab.kinds(Gone) > 0


def a_follower_who_has_it_dies() -> None:
    """It takes part in no decision any more."""
    who_has_it_dies(2)


def a_leader_who_has_it_dies() -> None:
    """Its shard must begin a view before it can promise anything."""
    who_has_it_dies(0)


def nobody_has_it() -> None:
    """A heartbeat alone tells that it was stamped: it is gone, and a late copy counts nowhere."""
    lab = EpochLab()
    late = lab.stamp("late")
    lab.flush()
    lab.next_epoch(2)
    lab.wait_ms(6)
    assert lab.kinds(Gone) > 0
    lab.give(late)
    lab.call("late", sequencer=2)
    lab.finish("late")


def the_old_sequencer_goes_on() -> None:
    """It was only deaf to the controllers: what it stamps after the end counts nowhere."""
    lab = EpochLab()
    lab.call("old")
    lab.next_epoch(2, old_one_stays=True)
    lab.call("new", sequencer=2)
    lab.give(lab.stamp("late"))
    lab.wait_ms(10)
    lab.give(lab.stamp("later", (1,)))
    lab.finish("old", "new", never=("late", "later"))


def it_comes_while_replicas_wait() -> None:
    """What comes of an epoch after a report is not taken, whoever it reaches: the report stands."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = without(*ABOUT_EPOCHS)
    lab.next_epoch(2)
    lab.give(lab.stamp("late"))
    lab.wait_ms(30)
    require(not lab.answered["late"], "a call is answered after the reports")
    lab.lost = without()
    lab.finish("old", never=("late",))


def a_follower_was_not_asked() -> None:
    """A follower was not asked yet, and takes what comes after the reports of the others, who decide."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = any_of(without(*ABOUT_EPOCHS), without(Shown))
    lab.next_epoch(2, 0, 1, *SECOND)
    lab.give(lab.stamp("late", (0,)), 2)
    lab.lost = without(*ABOUT_EPOCHS, to=(2,))
    lab.wait_ms(40)
    lab.finish("old", never=("late",))


# The next epoch


def nothing_is_executed_before_the_decision() -> None:
    """The new sequencer stamps, and nobody knows where the old epoch ends."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = without(Report)
    lab.next_epoch(2)
    lab.call("early", sequencer=2)
    lab.wait_ms(30)
    require(not lab.answered["early"], "a call of the new epoch is answered before that began")
    require("early" not in lab.order(0) + lab.order(1), "the new epoch goes on before it began")
    lab.finish("old", "early")


def nothing_is_executed_before_the_old_epoch_is_settled() -> None:
    """The new epoch has begun, and one shard searches for a message of the old one."""
    lab = EpochLab()
    lab.call("old")
    lab.give(lab.stamp("both"), *FIRST)
    lab.lost = without(FoundMessages)
    lab.next_epoch(2)
    lab.call("new", sequencer=2)
    lab.wait_ms(20)
    require(lab.order(1) == ["old"], "a shard passes what it lacks")
    lab.finish("old", "both", "new")


def a_minority_hears_nothing() -> None:
    """A replica of each shard was away: it learns of both epochs later, and has what the others have."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = apart(2, 5)
    lab.give(lab.stamp("also"), 0, 1, 3, 4)
    lab.next_epoch(2, 0, 1, 3, 4)
    lab.give(lab.stamp("new", sequencer=2), 0, 1, 3, 4)
    lab.wait_ms(30, 0, 1, 3, 4)
    lab.next_epoch(3, 0, 1, 3, 4)
    lab.wait_ms(30, 0, 1, 3, 4)
    require(lab.epochs() == [3, 3, 1, 3, 3, 1], f"replicas are in epochs {lab.epochs()}")
    require(lab.answered["new"] == {0, 1}, "majorities do not go on by themselves")
    lab.finish("old", "also", "new")


def two_epochs_at_once() -> None:
    """The second sequencer dies before the end of the first epoch is decided: its epoch never begins."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = without(Report)
    lab.next_epoch(2)
    lab.call("skipped", sequencer=2)
    lab.wait_ms(5)
    lab.next_epoch(3, 0, 3)
    lab.wait_ms(5)
    lab.lost = without()
    lab.wait_ms(20)
    lab.announce()
    lab.wait_ms(20)
    _require_epoch(lab, 3)
    require(not lab.answered["skipped"], "a call of an epoch that never began is answered")
    lab.call("new", sequencer=3)
    lab.finish("old", "new")


def an_epoch_dies_at_once() -> None:
    """The second epoch begins, and its sequencer is gone; one shard has heard of nothing but its end."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = without(Steps, to=SECOND)
    lab.next_epoch(2)
    lab.give(lab.stamp("middle", sequencer=2), *FIRST)
    lab.next_epoch(3)
    lab.lost = without()
    lab.wait_ms(40)
    _require_epoch(lab, 3)
    lab.call("new", sequencer=3)
    lab.finish("old", "new")


# Who decides


def the_coordinator_loses_its_leader() -> None:
    """It had decided, and told one shard alone. The next leader says the same, whatever is reported now."""
    lab = EpochLab(coordinators=3)
    lab.call("old")
    lab.give(lab.stamp("certain"), 0, 1)
    lab.lost = any_of(without(Steps, Announce, to=SECOND), without(FoundMessages))
    lab.next_epoch(2)
    require(lab.epochs() == [2, 2, 2, 1, 1, 1], f"replicas are in epochs {lab.epochs()}")
    chief = lab.chief()
    lab.crash(chief)
    lab.wait_ms(150)
    assert lab.chief() != chief
    lab.lost = without()
    lab.wait_ms(50)
    _require_epoch(lab, 2)
    lab.finish("old", "certain")


def the_coordinator_loses_its_leader_before_it_decides() -> None:
    """One shard has reported to it alone; replicas repeat their reports to the next leader."""
    lab = EpochLab(coordinators=3)
    lab.call("old")
    lab.lost = without(Report, source=SECOND)
    lab.next_epoch(2)
    lab.wait_ms(5)
    lab.crash(lab.chief())
    lab.wait_ms(100)
    lab.lost = without()
    lab.wait_ms(60)
    _require_epoch(lab, 2)
    lab.call("new", sequencer=2)
    lab.finish("old", "new")


def all_coordinators_restart() -> None:
    """What they decided is on their disks."""
    lab = EpochLab(coordinators=3)
    lab.call("old")
    lab.lost = without(Steps, Announce, to=SECOND)
    lab.next_epoch(2)
    for node in lab.coordinators:
        lab.crash(node)
    lab.resume(*lab.coordinators)
    lab.wait_ms(150)
    lab.lost = without()
    lab.wait_ms(60)
    _require_epoch(lab, 2)
    lab.call("new", sequencer=2)
    lab.finish("old", "new")


def a_shard_without_majority() -> None:
    """Nobody knows what it has, so the epoch does not end before it is back."""
    lab = EpochLab()
    lab.call("old")
    lab.give(lab.stamp("kept", (1,)), 3, 4)
    require(lab.answered["kept"] == {1}, "a majority has not answered")
    lab.lost = apart(3, 4)
    lab.next_epoch(2, *FIRST, 5)
    lab.wait_ms(60, *FIRST, 5)
    require(set(lab.epochs()) == {1}, f"replicas are in epochs {lab.epochs()}")
    lab.finish("old", "kept")


# Other trouble at the same time


def a_view_changes_meanwhile() -> None:
    """One shard changes its view between the reports and the decision, with a leader that knows less."""
    lab = EpochLab()
    lab.call("old")
    lab.give(lab.stamp("answered"), 0, 1, 3, 4)
    require(lab.answered["answered"] == {0, 1}, "majorities with their leaders have not answered")
    lab.lost = without(Report)
    lab.next_epoch(2)
    lab.begin_view(2, *FIRST)
    lab.wait_ms(10)
    require({lab.replica(node).view for node in FIRST} == {2}, "there is no new view")
    lab.lost = without()
    lab.wait_ms(30)
    _require_epoch(lab, 2)
    lab.finish("old", "answered")


def a_view_changes_among_two_epochs() -> None:
    """The new leader has not heard of the new epoch; logs are merged when all who vote have."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = without(Steps, Announce, to=(1,))
    lab.next_epoch(2)
    lab.call("new", sequencer=2)
    require(lab.epochs() == [2, 1, 2, 2, 2, 2], f"replicas are in epochs {lab.epochs()}")
    lab.begin_view(1, *FIRST)
    lab.wait_ms(10)
    lab.lost = without()
    lab.wait_ms(60)
    _require_epoch(lab, 2)
    lab.finish("old", "new")


def a_search_is_open() -> None:
    """All promise not to take a message, and no promise arrives before the epoch ends. Then it is gone."""
    lab = EpochLab()
    late = lab.stamp("late")
    lab.lost = without(Promised)
    lab.call("old")
    lab.wait_ms(4)
    assert all(lab.replica(node).book for node in REPLICAS)
    lab.next_epoch(2)
    lab.call("new", sequencer=2)
    lab.wait_ms(10)
    require(not lab.answered["new"], "a shard passes what is searched for")
    lab.lost = without()
    lab.wait_ms(40)
    lab.give(late)
    lab.finish("old", "new", never=("late",))


def what_is_found_is_beyond() -> None:
    """The leader of a shard alone has a message, and is cut off while the epoch ends. The other one lacks it,
    and has later ones. It is found, and counts nowhere: in the shard that has it, it is beyond the end."""
    lab = EpochLab()
    lab.call("old", (0,))
    beyond, after = lab.stamp("beyond"), lab.stamp("after", (0,))
    lab.lost = apart(3)
    lab.give(beyond, 3)
    lab.give(after, *FIRST)
    lab.next_epoch(2, *FIRST, *SECOND[1:])
    require(lab.epochs() == [2, 2, 2, 1, 2, 2], f"replicas are in epochs {lab.epochs()}")
    lab.lost = any_of(between(3), without(*ABOUT_EPOCHS, to=(3,)))
    lab.told = (*FIRST, *SECOND[1:])
    lab.wait_ms(10)
    assert lab.kinds(FoundMessages) > 0
    lab.finish("old", "after", never=("beyond",))


def a_replica_forgets_what_it_reported() -> None:
    """It comes back with the log of others, takes more of the old epoch, and answers. So the report of its
    earlier life must not decide."""
    lab = EpochLab()
    lab.call("old")
    lab.lost = any_of(without(Report, source=(0, *SECOND)), without(Steps, Announce, to=(1,)))
    lab.next_epoch(2, 0, 2, *SECOND)
    lab.lost = any_of(without(Report, EpochRequest), without(Announce, to=(1, 2)))
    lab.told = (0,)
    lab.forget(2)
    lab.wait_ms(30)
    require(lab.replica(2).is_normal, "a replica does not return")
    lab.give(lab.stamp("answered", (0,)), 1, 2)
    lab.wait_ms(4)
    require(lab.answered["answered"] == {0}, "a majority with its leader has not answered")
    lab.lost = without(Report, source=(1, 2))
    lab.told = (0, *SECOND)
    lab.announce()
    lab.wait_ms(40)
    lab.finish("old", "answered")


def all_restart_after_their_reports() -> None:
    """They are durable: their reports stand, and they take nothing more of the old epoch."""
    lab = EpochLab(options=DURABLE)
    lab.call("old")
    lab.lost = without(Steps)
    lab.next_epoch(2)
    lab.restart(*REPLICAS)
    lab.give(lab.stamp("late"))
    lab.wait_ms(30)
    require(not lab.answered["late"], "a call is answered after the reports")
    lab.lost = without()
    lab.finish("old", never=("late",))


def a_replica_returns_from_an_older_epoch() -> None:
    """A durable replica was off while two epochs ended."""
    lab = EpochLab(options=DURABLE)
    lab.call("old")
    lab.crash(4)
    lab.next_epoch(2)
    lab.call("middle", sequencer=2)
    lab.next_epoch(3)
    lab.call("new", sequencer=3)
    lab._start(4, lab._replica_of(1))
    lab.finish("old", "middle", "new")


PLAYS = (
    an_epoch_ends,
    what_was_answered_counts,
    one_shard_has_it,
    only_one_leader_has_it,
    a_follower_who_has_it_dies,
    a_leader_who_has_it_dies,
    nobody_has_it,
    the_old_sequencer_goes_on,
    it_comes_while_replicas_wait,
    a_follower_was_not_asked,
    nothing_is_executed_before_the_decision,
    nothing_is_executed_before_the_old_epoch_is_settled,
    a_minority_hears_nothing,
    two_epochs_at_once,
    an_epoch_dies_at_once,
    the_coordinator_loses_its_leader,
    the_coordinator_loses_its_leader_before_it_decides,
    all_coordinators_restart,
    a_shard_without_majority,
    a_view_changes_meanwhile,
    a_view_changes_among_two_epochs,
    a_search_is_open,
    what_is_found_is_beyond,
    a_replica_forgets_what_it_reported,
    all_restart_after_their_reports,
    a_replica_returns_from_an_older_epoch,
)
