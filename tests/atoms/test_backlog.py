"""Publishers wait while subscribers take more slowly than they send."""

from ordercast.protocols.atoms.limits import Limits
from ordercast.protocols.atoms.messages import Got, Publish, Receipt
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.registry import Registry
from ordercast.protocols.atoms.sequencing_node import REPEAT, SequencingNode
from ordercast.testing import ProcessDriver

SUBSCRIBERS = (0, 1)
PUBLISHER, NODE, STORE = 2, 3, 4
HISTORY = 5


def receipts(driver: ProcessDriver[SequencingNode]) -> list[int]:
    """What the publisher was told: up to which number its messages have their places."""
    sent = driver.take_sent()
    return [message.next for to, message in sent if to == PUBLISHER and isinstance(message, Receipt)]


def test_a_publisher_waits_until_slow_subscribers_have_delivered() -> None:
    options = AtomsOptions(nodes=1, store=1, copies=1, history=HISTORY)
    plans = Registry({0: SUBSCRIBERS}, (NODE,), 1, "apart", causal=False).plans
    limits = Limits((0,), (NODE,), (STORE,))
    driver = ProcessDriver(lambda env: SequencingNode(env, plans, (STORE,), limits, options), me=NODE)
    for number in range(8):
        driver.receive(PUBLISHER, Publish(0, 1, 1, number, 0, b"x"))
    assert receipts(driver) == [1, 2, 3, 4], "the entry of the epoch and four messages fill the log"
    driver.receive(PUBLISHER, Publish(0, 1, 1, 7, 4, b"x"))
    assert receipts(driver) == [], "a repeated message gets no receipt either"
    for subscriber in SUBSCRIBERS:
        driver.receive(subscriber, Got(0, 9, 9))
    driver.fire(REPEAT)
    driver.receive(PUBLISHER, Publish(0, 1, 1, 7, 4, b"x"))
    assert receipts(driver) == [8]
