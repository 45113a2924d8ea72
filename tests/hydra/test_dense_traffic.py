"""Dense traffic: receipts and acknowledgements keep pace with it, so that no sender stands still for room."""

from ordercast.protocols.hydra.messages import Groupcast, Receipt, Request, Stamped, Welcome
from ordercast.protocols.hydra.options import ACK_BYTES, HydraOptions
from ordercast.protocols.hydra.receiver import Receiver
from ordercast.protocols.hydra.sequencer import Sequencer
from tests.hydra.lab import CLIENT, LEADER, Bench, receiver, sequencer

KEEPS = HydraOptions(
    resend=True, flush="periodic", flush_ns=1_000_000, patience_ns=0, repair=False, route="hash"
)
HALF = bytes(ACK_BYTES // 2)


def sent(lab: Bench[Sequencer] | Bench[Receiver], kind: type[Stamped] | type[Receipt]) -> list[object]:
    return [message for _, message in lab.take_sent() if isinstance(message, kind)]


def test_a_receiver_tells_at_once_after_many_bytes() -> None:
    lab = receiver(KEEPS)
    for number in range(1, 6):
        lab.receive(21, Groupcast(1, 10 + number, (1,), (number,), CLIENT, HALF, number))
    assert sent(lab, Receipt) == [Receipt(1, 2), Receipt(1, 4)]
    lab.pass_time(KEEPS.ack_ns)
    assert sent(lab, Receipt) == [Receipt(1, 5)], "what is left is told after the usual time"


def test_copies_and_gaps_give_no_receipt() -> None:
    lab = receiver(KEEPS)
    for number in (1, 1, 1, 3):
        lab.receive(21, Groupcast(1, 10 + number, (1,), (number,), CLIENT, HALF, number))
    assert sent(lab, Receipt) == [Receipt(1, 1)], "number 2 is missing"
    lab.receive(21, Groupcast(1, 14, (1,), (4,), CLIENT, 2 * HALF, 4))
    assert sent(lab, Receipt) == [], "and still is"


def test_a_sequencer_acknowledges_at_once_when_many_bytes_are_safe() -> None:
    lab = sequencer(KEEPS)
    lab.receive(LEADER, Welcome(0, 1, 0))
    for number in range(1, 6):
        lab.receive(CLIENT, Request(1, number, (1,), HALF))
    lab.receive(0, Receipt(1, 5))
    assert sent(lab, Stamped) == [], "one of three is no majority"
    lab.receive(1, Receipt(1, 1))
    assert sent(lab, Stamped) == [], "half of the bytes may wait"
    lab.receive(1, Receipt(1, 4))
    assert sent(lab, Stamped) == [Stamped(1, (1, 2, 3, 4, 5), (1, 2, 3, 4))]
    lab.receive(1, Receipt(1, 5))
    assert sent(lab, Stamped) == []
    lab.pass_time(KEEPS.ack_ns)
    assert sent(lab, Stamped) == [Stamped(1, (), (5,))]
