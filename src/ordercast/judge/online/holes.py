"""Counts holes from the ledger of a run (`judge/finding/holes.py` defines them)."""

from ordercast.core import MessageId, NodeId
from ordercast.judge.finding import NAMED_MAX, Holes, NodeHoles, Standing
from ordercast.judge.online.ledger import Ledger
from ordercast.judge.online.population import Population


def holes(ledger: Ledger) -> Holes:
    """The holes of the run so far."""
    lacked: dict[NodeId, list[MessageId]] = {}
    nowhere = 0
    for message, submission in ledger.submissions.items():
        receivers = ledger.receivers(submission.groups)
        without = [node for node in receivers if message not in ledger.delivered[node]]
        if len(without) == len(receivers):
            nowhere += 1
            continue
        for node in without:
            if ledger.owes(node, message):
                lacked.setdefault(node, []).append(message)
    found = (
        NodeHoles(node, _standing(ledger.population, node), len(messages), tuple(messages[:NAMED_MAX]))
        for node, messages in sorted(lacked.items())
    )
    return Holes(tuple(found), nowhere)


def _standing(population: Population, node: NodeId) -> Standing:
    if node in population.down:
        return "down"
    return "lost" if node in population.lost else "stayed"
