"""Runs of services on Spark: both commands say the same as without it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command, ordercast
from tests.cli.served_runs import served

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
