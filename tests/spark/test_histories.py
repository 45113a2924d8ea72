"""Runs of services on Spark: both commands say the same as without it."""

from pathlib import Path

import pytest

from ordercast.sim import simulate
from tests.cli.conftest import Command, ordercast
from tests.cli.served_runs import served
from tests.histories.test_list_append_runs import KIND, scenario_of

__all__ = ["ordercast", "served"]  # fixtures


@pytest.mark.usefixtures("here")
def test_spark_says_the_same_of_services(ordercast: Command, served: tuple[Path, Path]) -> None:
    folder = served[0].parent
    alone, on_spark = (
        ordercast("check", folder, *words, "--json").json() for words in ((), ("--master", "local[2]"))
    )
    assert on_spark["verdicts"] == alone["verdicts"]
    assert [found["messages"] for found in on_spark["violations"]] == [
        found["messages"] for found in alone["violations"]
    ]
    alone, on_spark = (
        ordercast("history", folder, *words, "--json").json() for words in ((), ("--master", "local[2]"))
    )
    for one, other in zip(alone["histories"], on_spark["histories"], strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}
    assert [one["linearizable"] for one in alone["histories"]] == [True, False]


@pytest.mark.usefixtures("here")
def test_spark_says_the_same_of_transactions(ordercast: Command, tmp_path: Path) -> None:
    for seed in range(2):
        simulate(scenario_of("lock_store", seed)).write(tmp_path / "traces")
    run = simulate(scenario_of("lock_store", 3))
    some = dict(run.values.results)
    for message in list(some)[60:80]:
        lists = KIND.unpack_result(some[message])
        assert isinstance(lists, dict)
        some[message] = KIND.pack_result({key: [] for key in lists})
    run.values = run.values._replace(results=some)
    run.write(tmp_path / "traces")
    for command in ("check", "history"):
        alone, on_spark = (
            ordercast(command, tmp_path / "traces", *words, "--json").json()
            for words in ((), ("--master", "local[2]"))
        )
        if command == "check":
            assert on_spark["verdicts"] == alone["verdicts"] and not alone["violations"]
        else:
            told = [[one | {"seconds": 0} for one in found["histories"]] for found in (alone, on_spark)]
            assert told[0] == told[1]
            assert sorted(one["strict_serializable"] for one in told[0]) == [False, True, True]
