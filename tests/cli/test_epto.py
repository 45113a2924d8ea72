"""`ordercast epto`: the advice for people and for programs."""

import pytest

from ordercast.protocols.epto.parameters import parameters
from tests.cli.conftest import Command


def test_the_advice_for_programs_is_that_of_the_library(ordercast: Command) -> None:
    words = ("--processes", 10_000, "--loss", 0.05, "--churn", 0.01, "--drift", 0.01, "--latency-ms", 120.5)
    outcome = ordercast("epto", "parameters", *words, "--clock", "global", "--target", 1e-6, "--json")
    chosen = parameters(
        10_000, loss=0.05, churn=0.01, drift=0.01, latency=120_500_000, clock="global", target=1e-6
    )
    found = outcome.json()
    assert outcome.code == 0
    assert found["fanout"] == chosen.fanout
    assert found["ttl"] == chosen.ttl
    assert found["round_ns"] == chosen.round_ns
    assert found["proved_anywhere"] == chosen.proved_anywhere <= 1e-6
    assert found["conditions"]["clock"] == "global"


def test_the_advice_for_people_says_what_and_why(ordercast: Command) -> None:
    plain = ordercast("epto", "parameters", "--processes", 100)
    assert plain.code == 0
    first, second, *rest = plain.out.splitlines()
    assert first.split()[:2] == ["fanout", "17"] and first.endswith("(Lemma 3)")
    assert second.split()[:2] == ["ttl", "64"] and "doubled for logical clocks (Lemma 4)" in second
    assert any("8.6e-10" in line and "target 1e-09" in line for line in rest)
    assert "--latency-ms" in rest[-2] and "a proof shows that a ttl of 10 is enough" in rest[-1]

    words = ("--processes", 500, "--loss", 0.1, "--churn", 0.1, "--drift", 0.01, "--latency-ms", 125)
    lossy = ordercast("epto", "parameters", *words).out
    assert "fanout  23" in lossy and "increased for loss and churn (Lemma 7)" in lossy
    assert "increased for drift (Lemma 5), plus one for the latency (Lemma 6)" in lossy
    assert "round   127 ms" in lossy, "125 ms are 99 % of 126.262626"
    assert "add the longest pause of a process that you want to tolerate" in lossy


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--processes", 8), "every process throws each ball to all others"),
        (("--processes", 200, "--loss", 0.7), "more than the 58 of Lemma 7"),
    ],
)
def test_the_fanout_is_explained_where_the_lemmas_do_not(
    ordercast: Command, words: tuple[object, ...], says: str
) -> None:
    assert says in ordercast("epto", "parameters", *words).out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--processes", 3, "--loss", 0.1), "not even a fanout of 2 is proved to keep holes within 1e-09"),
        (("--processes", 100, "--loss", 1), "loss must be at least 0"),
        (("--processes", 100, "--target", 0), "the target must be a probability"),
        (("--processes", 100, "--drift", 0.9), "the largest TTL is 250"),
        (("--processes", 100, "--latency-ms", "nan"), "--latency-ms must be 0 to 3600000 (one hour)"),
        (("--processes", 0), "not 0"),
        (("--processes", 100, "--clock", "atomic"), "'logical', 'global'"),
    ],
)
def test_what_cannot_be_had_is_said_in_a_line(
    ordercast: Command, words: tuple[object, ...], says: str
) -> None:
    outcome = ordercast("epto", "parameters", *words)
    assert outcome.code == 2 and not outcome.out
    assert says in outcome.err and len(outcome.err.splitlines()) == 1
