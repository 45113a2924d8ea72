"""The comparison of overlapping groups: it finds what is disordered, lost or doubled."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.groups.__main__ import loads, main, middle, report
from benchmarks.groups.account import Figures, Notes, Numbers, figures_of, inversions
from benchmarks.groups.load import GROUPS
from benchmarks.groups.stage import CONTENDERS, group_lines, measure, missing

BOTH = ((0, 1), (0, 1), (1, 2))
"""Groups 0 and 1 have the same members."""
SECOND = 1_000_000_000


def rows(*messages: tuple[int, int, int]) -> Numbers:
    return np.array(messages, np.int64).reshape(-1, 3)


def notes(*orders: list[tuple[int, int, int]]) -> dict[int, Notes]:
    """Process 0 has sent messages 0 to 3, at times 10, 20, 30 and 40, to groups 0, 1, 0 and 2."""
    sent = rows((0, 0, 10), (1, 1, 20), (2, 0, 30), (3, 2, 40))
    return {node: Notes(0, sent if node == 0 else rows(), rows(*order)) for node, order in enumerate(orders)}


def test_processes_that_agree_have_nothing_to_tell() -> None:
    seen = [(0, 0, 1010), (1, 1, 1020), (2, 0, 1030)]
    found = figures_of(notes(seen, [*seen, (3, 2, 1040)], [(3, 2, 3040)]), BOTH, 1.0)
    assert found == Figures(4.0, 1.0, 2.9, 0, 0.0, 0, 0, 0)


def test_disorder_across_groups_and_within_one_loss_and_repetition_are_counted_apart() -> None:
    one = [(0, 0, 1), (1, 1, 2), (2, 0, 3)]
    two = [(1, 1, 1), (2, 0, 2), (0, 0, 3), (0, 0, 4), (3, 2, 5)]
    found = figures_of(notes(one, two, []), BOTH, 1.0)
    # Message 0 before 1 at the one, after it at the other; 1 before 2 at both; 0 and 2 are of one group.
    assert (found.disagreements, found.share, found.within_group) == (1, 0.5, 1)
    assert (found.lost, found.twice) == (1, 1)
    assert found.delivered_per_s == 3.0, "process 2 has not got message 3"


def test_messages_outside_the_time_do_not_count_for_the_rate() -> None:
    seen = [(0, 0, 100), (1, 1, SECOND + 1), (2, 0, 2 * SECOND)]
    assert figures_of(notes(seen, seen, []), BOTH, 1.0).delivered_per_s == 1.0


@pytest.mark.parametrize("length", [0, 1, 64, 65, 500])
def test_inversions_are_pairs_in_the_wrong_order(length: int) -> None:
    values = np.random.default_rng(length).permutation(length)
    assert inversions(values) == sum(one > two for one, two in combinations(values, 2))


def test_most_pairs_of_groups_share_two_processes_or_more() -> None:
    shared = [len({*one} & {*two}) for one, two in combinations(GROUPS, 2)]
    assert len(GROUPS) == 10 and len(shared) == 45
    assert sum(count >= 2 for count in shared) == 29


def test_the_report_has_medians_and_adds_up_what_must_not_be() -> None:
    rounds = [Figures(rate, 5.0, 9.0, 3, 0.1, 0, 1, 0) for rate in (30.0, 10.0, 20.0)]
    assert middle(rounds) == {
        "delivered_per_s": 20.0, "p50_us": 5.0, "p99_us": 9.0, "disagreements": 9, "share": 0.1,
        "within_group": 0, "lost": 3, "twice": 0,
    }  # fmt: skip
    found = report({"atoms": {"most": rounds, "paced": []}}, {"redis": "there is no redis-server"})
    assert found["absent"] == {"redis": "there is no redis-server"}
    assert found["contenders"]["atoms"]["paced"] is None  # type: ignore[index]


def test_hydra_gets_a_group_for_each_process() -> None:
    assert group_lines(loads("hydra", 1, 60)["most"])[:2] == ["process0 = 1", "process1 = 1"]
    assert group_lines(loads("atoms", 1, 60)["most"])[0] == "group0 = [0, 1, 2]"


def test_an_unknown_contender_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks.groups", "--only", "rabbit"])
    with pytest.raises(SystemExit):
        main()
    assert "no contender rabbit; there are redis, hydra, atoms" in capsys.readouterr().err


@pytest.mark.deep
@pytest.mark.parametrize("contender", CONTENDERS)
def test_a_contender_is_measured_if_it_is_here(tmp_path: Path, contender: str) -> None:
    if why := missing(contender):
        pytest.skip(why)
    found = measure(loads(contender, 1.0, 60)["paced"], tmp_path)
    assert found.delivered_per_s > 0 and found.p50_us > 0
    assert found.within_group == found.lost == found.twice == 0
    if contender != "redis":
        assert found.disagreements == 0
