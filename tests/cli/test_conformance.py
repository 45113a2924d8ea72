"""`ordercast conformance`: a good protocol passes, a broken one is told by clause and seed."""

import pytest

from ordercast.core import Seen
from ordercast.sim.conformance import clauses
from tests.cli.conftest import Command


def test_a_good_protocol_keeps_its_contract(ordercast: Command) -> None:
    words = ("conformance", "--protocol", "unordered", "--seeds", "0:2")
    shown = ordercast(*words)
    assert shown.code == 0 and f"keeps its contract: {len(clauses())} clauses, 2 seeds" in shown.out
    content = ordercast(*words, "--json").json()
    assert (content["protocol"], content["seeds"], content["failures"]) == ("unordered", 2, [])


def test_a_broken_one_is_told_by_clause_and_seed(ordercast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seen, "admit", lambda self, number: True)
    words = ("conformance", "--protocol", "unordered", "--seeds", "1")
    outcome = ordercast(*words, "--json")
    assert outcome.code == 1
    failure = outcome.json()["failures"][0]
    assert failure["clause"] == "fault: duplication" and failure["property"] == "integrity"
    assert f"fault: duplication, seed 1: integrity: {failure['message']}" in ordercast(*words).out


def test_the_help_teaches_every_clause(ordercast: Command) -> None:
    told = " ".join(ordercast("conformance", "--help").out.split())
    for name in clauses():
        assert f"{name}:" in told


def test_an_unknown_protocol_is_one_clear_line(ordercast: Command) -> None:
    outcome = ordercast("conformance", "--protocol", "hydrant")
    assert outcome.code == 2 and "no protocol 'hydrant'; there are: " in outcome.err
