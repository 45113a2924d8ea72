"""An epoch that ends while messages are lost, or processes crash, at any step of it."""

from ordercast.core import Message, NodeId
from ordercast.protocols.hydra.messages import Groupcast
from tests.eris.lab import SECOND, EpochLab
from tests.hand_driven import require
from tests.hydra_txn.plays import without


def _trouble(lab: EpochLab) -> Groupcast:
    """An epoch ends with a message that one shard has lost; another one never came at all."""
    lab.call("old")
    late = lab.stamp("late")
    lab.give(lab.stamp("both"), *SECOND)
    lab.next_epoch(2)
    lab.call("new", sequencer=2)
    return late


def one_kind_is_lost_for_a_while(kind: type[Message]) -> None:
    """Nothing of it comes."""
    lab = EpochLab(coordinators=3)
    lab.lost = without(kind)
    late = _trouble(lab)
    lab.wait_ms(40)
    lab.lost = without()
    lab.wait_ms(100)
    lab.give(late)
    lab.finish("old", "both", "new", never=("late",))


def first_of_a_kind_is_lost(kind: type[Message], number: int) -> None:
    """One message of it is lost."""
    lab = EpochLab(coordinators=3)
    count = 0

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        nonlocal count
        count += isinstance(message, kind)
        return isinstance(message, kind) and count == number

    lab.lost = lost
    late = _trouble(lab)
    lab.wait_ms(60)
    require(lab.answered["new"] == {0, 1}, "one lost message stops all")
    lab.give(late)
    lab.finish("old", "both", "new", never=("late",))


def a_process_crashes(number: int, node: NodeId | None) -> bool:
    """A replica, or the leader of the coordinator, crashes after so many messages about epochs. Returns
    whether it did."""
    lab = EpochLab(coordinators=3)
    lab.crash_at = number, lab.chief() if node is None else node
    late = _trouble(lab)
    lab.wait_ms(40)
    crashed = lab.crash_at is None
    lab.crash_at = None
    lab.wait_ms(160)
    lab.give(late)
    lab.finish("old", "both", "new", never=("late",))
    return crashed
