"""Badly broken runs are judged in time: findings are capped, and what they cost is too."""

import random
import time

import msgspec
import pytest

from ordercast.core import Causality, Gaps, Guarantees, MessageId, Order
from ordercast.judge import VIOLATIONS_MAX, Judge
from tests.check.traces import Trace

COUNT = 8_000
PATIENCE_S = 10.0
"""Each takes a quarter of a second; if every counterexample were worked out, most of a minute."""

PROMISES = [
    Guarantees(order=Order.GROUP),
    Guarantees(order=Order.ACROSS),
    Guarantees(causality=Causality.CAUSAL),
    Guarantees(gaps=Gaps.NOTIFIED),
]


def scrambled(messages: list[MessageId], how: str) -> list[MessageId]:
    if how == "reversed":
        return messages[::-1]
    if how == "shuffled":
        return random.Random(1).sample(messages, len(messages))
    return messages[::2] + messages[1::2]


@pytest.mark.parametrize("how", ["reversed", "shuffled", "split"])
@pytest.mark.parametrize("first", [True, False])
def test_a_receiver_that_scrambles_everything(first: bool, how: str) -> None:
    trace = Trace(groups={0: (0, 1, 2), 1: (0, 1, 2)})
    messages = [trace.submit() for _ in range(COUNT)]
    numbers = {message: number for number, message in enumerate(messages, 1)}
    for node in (2, 0, 1) if first else (0, 1, 2):
        for message in scrambled(messages, how) if node == 2 else messages:
            trace.numbered(node, message, numbers[message])
    for promise in PROMISES:
        judge = Judge(msgspec.structs.replace(trace.description, guarantees=promise))
        start = time.process_time()
        judge.observe_all(trace.events)
        judge.finish()
        assert time.process_time() - start < PATIENCE_S, promise
        assert 1 <= len(judge.violations) <= VIOLATIONS_MAX
