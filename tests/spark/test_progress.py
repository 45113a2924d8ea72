"""Progress is told while a job runs, and is whole at its end."""

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline import progress
from ordercast.pipeline.progress import Progress, watched


def test_what_is_done_grows_while_the_job_runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "POLL_S", 0.05)
    told: list[Progress] = []

    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(0.2)
            yield batch

    frame = spark.range(0, 80, 1, 8).mapInArrow(dawdle, "id long")
    with watched(spark.sparkContext, "dawdling", 80, told.append):
        assert frame.count() == 80
    done = [one.done for one in told]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 80)
    assert len({count for count in done if 0 < count < 80}) >= 2
    assert {one.what for one in told} == {"dawdling"}
    partly = next(one for one in told if 0 < one.done < 80)
    assert partly.left_s == pytest.approx((80 - partly.done) * partly.elapsed_s / partly.done)


def test_a_job_that_fails_is_not_told_as_done(spark: SparkSession) -> None:
    told: list[Progress] = []
    with pytest.raises(RuntimeError), watched(spark.sparkContext, "failing", 10, told.append):
        raise RuntimeError
    assert [one.done for one in told] == [0]
    assert told[0].left_s is None
