"""One Spark for all tests of this folder, started by the first that asks for it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.cli import sweep
from ordercast.pipeline import session
from ordercast.pipeline.session import spark_session

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and begin with them.

    One worker is busy with them for minutes, while the others take all other tests.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.fixture(scope="session")
def _spark_of_session() -> Iterator[SparkSession]:
    started = spark_session("local[2]", "ordercast-tests", quick=True)
    yield started
    started.stop()


@pytest.fixture
def spark(_spark_of_session: SparkSession) -> Iterator[SparkSession]:
    """Spark without anything that an earlier test cached or registered."""
    yield _spark_of_session
    _spark_of_session.catalog.clearCache()
    for table in _spark_of_session.catalog.listTables():
        if table.isTemporary:
            _spark_of_session.catalog.dropTempView(table.name)


@pytest.fixture
def here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command uses the Spark of the tests, leaves it running, and says no word of taking long."""

    @contextmanager
    def running(master: str, app: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "running_spark", running)
    monkeypatch.setattr(sweep, "LONG_S", math.inf)
