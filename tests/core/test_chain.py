"""Who waits for whom: a chain of waits leads to the cause, and does not go in circles."""

from ordercast.core import Wait, chain_text, follow

ROLES = {0: "receiver", 1: "sequencer", 2: "service"}


def wait(subject: str, blocker: str, *on: int) -> Wait:
    return Wait(subject, blocker, 1, on=on)


def test_a_chain_ends_at_the_node_that_is_down() -> None:
    first, second = wait("message 4", "number 3", 1), wait("all stamping", "a number", 2)
    chain = follow(0, first, {0: (first,), 1: (second,)})
    assert chain.links == ((0, first), (1, second)) and (chain.cause, chain.absent) == (2, True)
    assert chain_text(chain, ROLES) == (
        "at node 0 (receiver) message 4 waits for number 3"
        "; at node 1 (sequencer) all stamping waits for a number; node 2 (service) is down"
    )


def test_a_chain_ends_at_the_node_that_waits_for_nothing() -> None:
    first = wait("message 4", "number 3", 1)
    chain = follow(0, first, {0: (first,), 1: ()})
    assert chain_text(chain, ROLES).endswith("; node 1 (sequencer) waits for nothing itself")


def test_a_node_that_is_down_comes_before_one_that_waits_and_that_before_one_that_does_not() -> None:
    first, other = wait("a", "b", 1, 2, 3), wait("c", "d")
    assert follow(0, first, {0: (first,), 1: (), 2: (other,)}).cause == 3
    assert follow(0, first, {0: (first,), 1: (), 2: (other,), 3: ()}).links[-1] == (2, other)


def test_nodes_that_wait_for_each_other_end_the_chain() -> None:
    one, two = wait("a", "b", 1), wait("c", "d", 0)
    chain = follow(0, one, {0: (one,), 1: (two,)})
    assert chain.links == ((0, one), (1, two)) and chain.cause is None


def test_the_wait_that_names_a_node_tells_more_than_an_older_one() -> None:
    first, dull, telling = wait("a", "b", 1), wait("c", "d"), wait("e", "f", 2)
    assert follow(0, first, {0: (first,), 1: (dull, telling)}).links[-1] == (1, telling)


def test_a_wait_that_names_nobody_is_all_there_is() -> None:
    alone = wait("a", "b")
    assert follow(0, alone, {0: (alone,)}) == (((0, alone),), None, False)
