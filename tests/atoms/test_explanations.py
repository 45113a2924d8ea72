"""What `ordercast why` shows: each process names the number, the entry or the process that it waits for."""

from ordercast.core import MILLISECOND, Message, NodeId
from ordercast.protocols.atoms.messages import Entries, Forward, Got, Receipt, Sealed, Told
from tests.atoms.lab import Lab, kinds
from tests.atoms.plays import either
from tests.hand_driven import Chosen, nothing


def waits(lab: Lab, node: NodeId) -> list[tuple[str, str]]:
    """The subject and the blocker of each wait."""
    return [(subject, blocker) for subject, blocker, _ in lab.drivers[node].waits()]


def since(lab: Lab, node: NodeId) -> list[int]:
    """Since when it waits, in milliseconds before now."""
    return [(lab.now - at) // MILLISECOND for _, _, at in lab.drivers[node].waits()]


def entries_of(group: int, to: NodeId) -> Chosen:
    """The entries of a group on their way to a subscriber."""

    def chosen(source: NodeId, target: NodeId, message: Message) -> bool:
        return target == to and isinstance(message, Entries) and message.group == group

    return chosen


def test_a_subscriber_names_the_number_and_the_atom_that_it_waits_for() -> None:
    lab = Lab((0, 1), (0, 1))
    (atom,) = lab.registry().graph.atoms
    lab.lost = entries_of(0, 1)
    lab.submit("a", 0)
    lab.submit("b", 1)
    assert waits(lab, 1) == [("message 1 of group 1", f"number 0 of atom {atom}, which orders groups 0, 1")]
    assert waits(lab, 0) == []
    (wait,) = lab.process(1).explain().waits
    assert wait.payload == b"b" and wait.groups == (1,) and wait.on == (lab.distributor(1),)
    assert (wait.stamp.clock, wait.stamp.issuer) == (1, 1)
    assert lab.finish() == set()
    assert waits(lab, 1) == []


def test_a_subscriber_names_the_entry_that_it_lacks() -> None:
    lab = Lab((0, 1))
    lab.lost = entries_of(0, 1)
    lab.submit("a")
    lab.lost = nothing
    lab.submit("b")
    assert waits(lab, 1) == [("1 entries of group 0", "entry 1 of its log")]
    assert lab.process(1).explain().state["groups"] == "0 up to 1"


def test_a_subscriber_names_the_groups_whose_epochs_it_has_to_end() -> None:
    lab = Lab((0, 1), (2, 1))
    lab.lost = entries_of(1, 1)
    lab.join(2, 0)
    label = lab.registry().plans[0].label
    assert waits(lab, 1) == [(f"epoch {label} of group 0", "the rest of the epoch before, in groups 1")]
    assert lab.finish() == set()


def test_a_subscriber_names_the_store_while_its_request_is_not_answered() -> None:
    lab = Lab((0, 1), (0,))
    lab.lost = kinds(Told)
    lab.join(1, 1)
    label = lab.registry().plans[0].label
    assert waits(lab, 1) == [
        (f"epoch {label} of group 0", "an answer of the store"),
        ("a request", "an answer of the store"),
    ]
    assert lab.process(1).explain().behind == "an answer of the store"
    assert lab.finish() == set()


def test_a_publisher_names_the_messages_without_a_place() -> None:
    lab = Lab((0, 1), ())
    lab.lost = kinds(Receipt)
    lab.submit("a", 0)
    lab.submit("b", 1)
    node = lab.publishers[0]
    assert waits(lab, node) == [
        ("message 0 to group 0", "its place"),
        ("message 0 to group 1", "a subscriber, or the store to say that there is none"),
    ]
    assert lab.finish() == set()
    assert waits(lab, node) == []


def test_a_sequencing_node_names_who_does_not_answer() -> None:
    lab = Lab((0, 1))
    lab.lost = kinds(Forward)
    lab.submit("a")
    node, last = lab.ingress(0), lab.distributor(0)
    assert waits(lab, node) == [("1 messages on their paths", f"an acknowledgement of node {last}")]
    lab.lost = kinds(Got)
    lab.wait_ms(100)
    assert waits(lab, lab.distributor(0)) == [("the log of group 0", "subscribers 0, 1")]
    assert lab.finish() == set()


def test_the_store_names_the_nodes_that_have_not_reported() -> None:
    lab = Lab((0, 1), joiners=1)
    last = lab.distributor(0)
    lab.lost = kinds(Sealed)
    lab.join(2, 0)
    lab.wait_ms(5)
    assert waits(lab, lab.store[0]) == [("change 1", f"a report from nodes {last}")]
    assert "the plans that follow epoch" in lab.process(last).explain().behind
    assert lab.finish() == set()


def test_a_wait_tells_since_when() -> None:
    lab = Lab((0, 1), (0, 1), joiners=1, heartbeat_ns=MILLISECOND)
    lab.lost = entries_of(0, 1)
    lab.submit("a", 0)
    lab.wait_ms(2)
    lab.submit("b", 1)
    lab.wait_ms(3)
    lab.submit("c", 1)
    assert since(lab, 1) == [3], "since the first one could be delivered, but for another"
    lab.lost = either(entries_of(0, 1), kinds(Forward), kinds(Told))
    lab.submit("d", 0)
    lab.wait_ms(4)
    lab.submit("e", 0)
    assert since(lab, lab.ingress(0)) == [4], "since the first message without an answer"
    lab.join(2, 0)
    lab.wait_ms(5)
    assert since(lab, 2) == [5], "since the request"
    assert lab.finish() == set()
    lab.lost = kinds(Got)
    lab.submit("f", 0)
    lab.wait_ms(60)
    assert since(lab, lab.distributor(0))[0] >= 60, "since the last sign of a subscriber"
