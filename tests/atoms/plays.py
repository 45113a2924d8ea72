"""Plays: short stories of failures, each of which ends with the names of the promises that were broken.

`test_plays.py` plays each; `test_mutants.py` plays it again with a process that is broken on purpose.
"""

from ordercast.core import Message, NodeId
from ordercast.protocols.atoms.messages import (
    Entries,
    Forward,
    Got,
    Kept,
    Plans,
    Publish,
    Pull,
    Receipt,
    Seal,
    Sealed,
    Told,
)
from tests.atoms.lab import Lab, kinds
from tests.hand_driven import Chosen, nothing


def to(node: NodeId, *types: type[Message]) -> Chosen:
    """All messages to a node, or those of some types."""
    return lambda source, target, message: target == node and (not types or isinstance(message, types))


def about(node: NodeId) -> Chosen:
    """All messages from and to a node."""
    return lambda source, target, message: node in (source, target)


def either(*chosen: Chosen) -> Chosen:
    """What one of them chooses."""
    return lambda source, target, message: any(one(source, target, message) for one in chosen)


# Crashes of sequencing nodes


def a_node_restarts_at_once() -> set[str]:
    """Its counters are gone. The messages after its return are numbered in another epoch."""
    lab = Lab((0, 1), (0, 1), copies=1)
    for count in range(3):
        lab.submit(f"a{count}", count % 2)
    node = lab.ingress(0)
    lab.crash(node)
    lab.start(node)
    for count in range(3):
        lab.submit(f"b{count}", count % 2)
    return lab.finish()


def a_node_that_is_cut_off_goes_on() -> set[str]:
    """Its messages come to the next holder only when the store has sealed their epoch there."""
    lab = Lab((0, 1), (0, 1))
    lab.submit("a")
    first, last = lab.ingress(0), lab.distributor(0)
    lab.hold = lambda source, target, message: source == first and isinstance(message, Forward)
    for count in range(3):
        lab.submit(f"b{count}")
    lab.lost = lambda source, target, message: first in (source, target) and {source, target} != {first, last}
    lab.hold = either(lab.hold, to(last, Plans))  # the last holder has sealed, but knows of no next epoch
    lab.hold = either(lab.hold, lambda source, target, message: target == 0 and source != last)
    lab.wait_ms(70)
    lab.lost = either(lab.lost, to(1, Entries))
    for told in lab.held:
        if isinstance(told[2], Forward):
            lab.give(*told)
    lab.pump()
    return lab.finish()


def the_last_holder_crashes_before_its_report() -> set[str]:
    """What it has sent to subscribers is in the order, so nothing is decided without it."""
    lab = Lab((0, 1), (1, 2), copies=2, suspect_ns=400_000_000)
    first, last = lab.ingress(0), lab.distributor(0)
    assert first != last
    lab.submit("a")
    lab.submit("aa")
    lab.lost = either(
        lambda source, target, message: source == last and isinstance(message, Sealed),
        to(1, Entries),
    )
    lab.join(2, 0)
    lab.submit("b")
    lab.wait_ms(60)
    return lab.finish()


def the_distributor_crashes_with_what_a_subscriber_has() -> set[str]:
    """One subscriber has delivered a message; the other has it from the other holder."""
    lab = Lab((0, 1), (0, 1))
    lab.submit("a")
    first, last = lab.ingress(0), lab.distributor(0)
    lab.lost = either(to(1, Entries), lambda s, t, m: isinstance(m, Forward) and t == last and s == first)
    lab.submit("b")
    lab.wait_ms(1)
    lab.crash(first)
    lab.lost = about(first)
    lab.wait_ms(100)
    lab.submit("c")
    lab.wait_ms(100)
    return lab.finish()


# The end of an epoch


def a_change_with_messages_on_their_way() -> set[str]:
    """Messages that have some numbers, and not all, get others in the next epoch, and are there once."""
    lab = Lab((0, 1, 2), (1, 2), (0, 1), joiners=1, nodes=3, grouping="apart", window=8)
    lab.hold = kinds(Forward)
    for count in range(6):
        lab.submit(f"a{count}", count % 3)
    lab.hold, held = kinds(Receipt), lab.held
    lab.held = []
    for told in held[::2]:
        lab.give(*told)
    lab.pump()
    lab.lost = kinds(Forward)
    lab.join(3, 0)
    lab.wait_ms(30)
    return lab.finish()


def a_number_is_missing_at_the_end_of_an_epoch() -> set[str]:
    """Who has a later number, but not the end of the other group, holds it: the number may still come."""
    lab = Lab((0, 1), (0, 1), joiners=1)
    lab.hold = lambda source, target, message: (
        target == 1 and isinstance(message, Entries) and (message.group == 0)
    )
    lab.submit("a", 0)
    lab.submit("b", 1)
    lab.join(2, 1)
    lab.submit("c", 1)
    lab.wait_ms(5)
    return lab.finish()


def two_trees_merge() -> set[str]:
    """A subscriber lacks the last message of one of them when the other one's next epoch begins."""
    lab = Lab((0, 1), (2, 1), publishers=1, joiners=0)
    lab.hold = lambda source, target, message: (
        target == 1 and isinstance(message, Entries) and (message.group == 1)
    )
    lab.submit("late", 1)
    lab.join(2, 0)
    lab.wait_ms(10)
    lab.submit("early", 0)
    lab.wait_ms(10)
    lab.lost = to(2, Entries)
    return lab.finish()


def a_join_is_not_known_to_the_one_who_asked() -> set[str]:
    """It has been in group 1 since the epoch that group 0 begins; its numbers matter from then on."""
    lab = Lab((0, 1), (0,), joiners=0)
    lab.hold = either(to(1, Told), lambda s, t, m: t == 1 and isinstance(m, Entries) and m.group == 1)
    lab.join(1, 1)
    lab.wait_ms(10)
    for count in range(4):
        lab.submit(f"m{count}", (count + 1) % 2)
    lab.wait_ms(10)
    return lab.finish()


def three_groups_share_an_atom() -> set[str]:
    """One subscriber is in two groups of an atom only: its numbers are not for it."""
    lab = Lab((0, 1, 2), (0, 1, 2), (0, 1))
    for count in range(9):
        lab.submit(f"m{count}", count % 3)
    lab.join(2, 2)
    lab.wait_ms(30)
    lab.leave(2, 2)
    lab.wait_ms(30)
    for count in range(9):
        lab.submit(f"n{count}", count % 3)
    return lab.finish(200)


# What a restart forgets


def a_subscriber_restarts_with_entries_that_it_holds() -> set[str]:
    """What it has acknowledged as received, and not delivered, is lost with it, and sent again."""
    lab = Lab((0, 1), (0, 1))
    lab.lost = lambda source, target, message: (
        target == 1 and isinstance(message, Entries) and message.group == 0
    )
    lab.submit("a", 0)
    lab.submit("b", 1)
    lab.wait_ms(10)
    assert lab.count(Got) and lab.log(1) == []
    lab.crash(1)
    lab.start(1)
    lab.wait_ms(10)
    return lab.finish()


def a_distributor_follows_that_knows_nothing_of_subscribers() -> set[str]:
    """It does not know how far they had come, and what all have delivered is kept by nobody."""
    lab = Lab((0, 1), (0, 1), copies=2)
    for count in range(5):
        lab.submit(f"a{count}", count % 2)
    lab.wait_ms(60)
    node = lab.distributor(0)
    lab.crash(node)
    lab.wait_ms(60)
    assert lab.distributor(0) != node
    lab.submit("b", 0)
    lab.wait_ms(60)
    lab.crash(1)
    lab.submit("c", 0)
    lab.start(1)
    return lab.finish()


def an_epoch_begins_where_no_reporter_knows_of_it() -> set[str]:
    """The plans of an epoch come to none of its holders before the next change."""
    lab = Lab((0, 1), (0, 1), joiners=1)
    lab.submit("a", 0)
    holders = {post.node for post in lab.registry().plans[0].holders}
    outside = next(node for node in lab.nodes if node not in holders)
    change = lab.registry().change
    lab.lost = kinds(Plans)
    lab.join(2, 0)
    lab.wait_ms(20)
    assert lab.registry().change == change + 1
    lab.crash(*holders)
    lab.lost = either(*(about(node) for node in holders))
    lab.wait_ms(60)
    lab.lost = about(outside)
    lab.start(*sorted(holders))
    lab.wait_ms(100)
    lab.submit("b", 0)
    lab.submit("c", 1)
    return lab.finish()


def a_restarted_node_hears_of_a_store_that_is_behind() -> set[str]:
    """A leader that knows no better tells it of epochs that are over. It has more recent entries."""
    lab = Lab((0, 1), (0, 1), joiners=1)
    lab.submit("a", 0)
    version, plans = lab.registry().version, tuple(lab.registry().plans.values())
    lab.join(2, 0)
    lab.wait_ms(20)
    lab.submit("b", 0)
    node, (store,) = lab.distributor(0), lab.store
    lab.crash(node)
    lab.lost = lambda source, target, message: {source, target} == {node, store}
    lab.start(node)
    lab.give(store, node, Plans(0, version, version, plans))
    lab.pump()
    lab.lost = nothing
    lab.wait_ms(30)
    lab.submit("c", 0)
    return lab.finish()


def a_publisher_restarts_with_a_message_on_its_way() -> set[str]:
    """It arrives when the next life has sent to another group, and gets no place any more."""
    lab = Lab((0, 1), (0, 1), causal=True)
    lab.hold = lambda source, target, message: isinstance(message, Publish) and message.payload == b"a"
    lab.submit("a", 0)
    lab.crash(*lab.publishers)
    lab.start(*lab.publishers)
    lab.submit("b", 1)
    lab.release()
    lab.submit("c", 0)
    return lab.finish()


def a_publisher_restarts_before_its_message_has_come_far() -> set[str]:
    """It has arrived, and has no place yet: the next life waits until it has one."""
    lab = Lab((0, 1), (0, 1), causal=True)
    lab.hold = kinds(Forward)
    lab.submit("a", 0)
    lab.crash(*lab.publishers)
    lab.start(*lab.publishers)
    assert not lab.submit("b", 1)
    lab.release()
    assert lab.submit("b", 1)
    assert lab.log(0) == ["a", "b"]
    return lab.finish()


def a_copy_comes_when_its_group_has_members_again() -> set[str]:
    """Its publisher was told that it is for nobody, and has sent to another group since."""
    lab = Lab((0, 1), (0, 1), causal=True)
    lab.hold = lambda source, target, message: (
        isinstance(message, Publish) and message.payload == b"a" and not lab.held
    )
    lab.submit("a", 0)
    for node in (0, 1):
        lab.leave(node, 0)
    lab.wait_ms(60)
    assert lab.submit("b", 1)
    for node in (0, 1):
        lab.join(node, 0)
    lab.wait_ms(60)
    lab.release()
    lab.submit("c", 0)
    return lab.finish()


def a_part_is_forgotten_before_it_is_pulled() -> set[str]:
    """All subscribers have it meanwhile: who asks for it is told so, and is quiet from then on."""
    lab = Lab((0, 1), (0, 1), copies=2)
    lab.lost = kinds(Got, Pull, Kept)
    for count in range(4):
        lab.submit(f"a{count}", count % 2)
    lab.crash(lab.registry().plans[0].holders[0].node)
    lab.wait_ms(100)
    lab.lost = kinds(Pull, Kept)
    lab.wait_ms(200)
    broken = lab.finish()
    pulls = lab.count(Pull)
    lab.wait_ms(500)
    return broken | ({"quiet"} if lab.count(Pull) > pulls else set())


def a_subscriber_misses_more_than_is_kept() -> set[str]:
    """It is taken out, so that the log ends somewhere, and told so when it is back. It may come again."""
    lab = Lab((0, 1), (0, 1), history=5, suspect_ns=20_000_000)
    lab.submit("a", 0)
    lab.crash(1)
    for count in range(20):
        lab.submit(f"b{count}", 0)
        lab.wait_ms(10)
    kept = lab.process(lab.distributor(0))._keeping.logs[0].entries
    lab.wait_ms(100)
    found = {"history"} if len(kept) > 10 else set()
    lab.start(1)
    lab.wait_ms(100)
    if lab.history.is_in(1, 0):
        found.add("lost")
    lab.submit("c", 1)
    lab.join(1, 0)
    lab.wait_ms(50)
    lab.submit("d", 0)
    broken = lab.finish()
    assert lab.log(1) == ["a", "c", "d"]
    return broken | found


# The store


def a_seal_and_its_reports_are_lost() -> set[str]:
    """They are repeated until the change is decided."""
    lab = Lab((0, 1), (1, 2), joiners=1)
    lab.submit("a", 0)
    lab.lost = kinds(Seal)
    lab.join(3, 0)
    lab.wait_ms(20)
    lab.lost = kinds(Sealed)
    lab.wait_ms(20)
    lab.submit("b", 0)
    assert lab.log(0) == ["a"]
    return lab.finish()


PLAYS = (
    a_node_restarts_at_once,
    a_node_that_is_cut_off_goes_on,
    the_last_holder_crashes_before_its_report,
    the_distributor_crashes_with_what_a_subscriber_has,
    a_change_with_messages_on_their_way,
    a_number_is_missing_at_the_end_of_an_epoch,
    two_trees_merge,
    a_join_is_not_known_to_the_one_who_asked,
    three_groups_share_an_atom,
    a_subscriber_restarts_with_entries_that_it_holds,
    a_distributor_follows_that_knows_nothing_of_subscribers,
    an_epoch_begins_where_no_reporter_knows_of_it,
    a_restarted_node_hears_of_a_store_that_is_behind,
    a_publisher_restarts_with_a_message_on_its_way,
    a_publisher_restarts_before_its_message_has_come_far,
    a_copy_comes_when_its_group_has_members_again,
    a_part_is_forgotten_before_it_is_pulled,
    a_subscriber_misses_more_than_is_kept,
    a_seal_and_its_reports_are_lost,
)
