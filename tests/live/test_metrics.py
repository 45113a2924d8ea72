"""Counters and latencies of a host: kept cheaply, told exactly."""

import random
import re
from pathlib import Path

import msgspec
import pytest

from ordercast.core import LocalError
from ordercast.net.metrics.histogram import VALUE_MAX, Histogram
from ordercast.net.metrics.metrics import FAMILIES, Metrics, resident_bytes


def histogram_of(*values: int) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    return histogram


def test_percentiles_are_within_eight_tenths_of_a_percent() -> None:
    rng = random.Random(7)
    values = sorted(int(rng.lognormvariate(11, 2)) for _ in range(5000))
    histogram = histogram_of(*values)
    for percent in (1, 25, 50, 90, 99, 99.9):
        exact = values[max(0, -(-len(values) * int(percent * 10) // 1000) - 1)]
        found = histogram.percentile(percent)
        assert found is not None
        assert abs(found - exact) <= exact * 0.008


@pytest.mark.parametrize("power", range(42))
def test_a_value_alone_is_its_own_percentile_at_every_scale(power: int) -> None:
    for value in (1 << power, (1 << power) + (1 << power) // 3, (2 << power) - 1):
        found = histogram_of(value).percentile(50)
        assert found is not None
        assert abs(found - value) <= value * 0.008


def test_small_values_are_exact() -> None:
    histogram = histogram_of(*range(128))
    assert [histogram.at_most(value) for value in range(128)] == list(range(1, 129))


def test_what_is_out_of_range_is_counted_at_the_ends() -> None:
    histogram = histogram_of(-5, VALUE_MAX * 9)
    assert (histogram.count, histogram.maximum, histogram.total) == (2, VALUE_MAX, VALUE_MAX)
    assert histogram.percentile(0) == 0


def test_an_empty_histogram_has_no_percentile() -> None:
    assert Histogram().percentile(50) is None


def test_a_percentile_beyond_a_hundred_is_refused() -> None:
    with pytest.raises(LocalError, match="between 0 and 100"):
        histogram_of(1).percentile(101)


def test_merging_is_as_if_one_had_counted_all() -> None:
    left, right, both = histogram_of(5, 1000), histogram_of(70_000), histogram_of(5, 1000, 70_000)
    left.merge(right)
    assert left.to_dict() == both.to_dict()
    assert left.count == both.count == 3


def test_what_came_since_an_earlier_state_is_counted_alone() -> None:
    earlier = histogram_of(1_000_000, 2_000)
    later = histogram_of(1_000_000, 2_000, 50_000, 60_000)
    recent = later.since(earlier)
    assert (recent.count, recent.total) == (2, 110_000)
    assert 60_000 <= recent.maximum <= 60_000 * 1.016


def test_nothing_came_since_the_same_state() -> None:
    recent = histogram_of(9_000).since(histogram_of(9_000))
    assert (recent.count, recent.maximum, recent.percentile(99)) == (0, 0, None)


def test_a_histogram_survives_json() -> None:
    histogram = histogram_of(3, 3, 123_456)
    content = msgspec.json.decode(msgspec.json.encode(histogram.to_dict()))
    assert Histogram.from_dict(content).to_dict() == histogram.to_dict()


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"buckets": 3, "total_ns": 0, "max_ns": 0},
        {"buckets": [[-1, 1]], "total_ns": 0, "max_ns": 0},
        {"buckets": [[1 << 20, 1]], "total_ns": 0, "max_ns": 0},
        {"buckets": [[1, -1]], "total_ns": 0, "max_ns": 0},
        {"buckets": [["1", 1]], "total_ns": 0, "max_ns": 0},
        {"buckets": [[1]], "total_ns": 0, "max_ns": 0},
    ],
    ids=str,
)
def test_what_is_no_histogram_is_refused(content: dict[str, object]) -> None:
    with pytest.raises(LocalError, match="not a histogram"):
        Histogram.from_dict(content)


def test_every_counter_has_a_family_and_starts_at_zero() -> None:
    metrics = Metrics()
    others = {"_started", "answer_latency", "latency", "more", "role"}
    own = {name for name in Metrics.__slots__ if name not in others}
    listed = [name for family in FAMILIES for name in family.attributes.values()]
    assert set(listed) == own
    assert len(listed) == len(own)
    assert set(metrics.counters().values()) == {0}


def test_a_snapshot_tells_counters_latency_time_and_memory() -> None:
    metrics = Metrics()
    metrics.packets_in += 4
    metrics.latency.record(1_000, 3)
    told = msgspec.json.decode(msgspec.json.encode(metrics.snapshot()))
    assert told["packets_in"] == 4
    assert Histogram.from_dict(told["latency"]).count == 3
    assert told["latency_ns"]["p99"] == 1_000
    assert told["cpu_ns"] > 0
    assert told["uptime_ns"] > 0
    assert told["rss_bytes"] > 1 << 20


def test_rejections_add_up() -> None:
    metrics = Metrics()
    metrics.rejected_key, metrics.rejected_replay = 2, 3
    assert metrics.rejected == 5


LINE = re.compile(r'^[a-z_]+(\{([a-z]+="(\\.|[^"\\])*",?)+\})? [0-9.]+$')


def test_the_exposition_is_well_formed_and_each_name_has_its_help_and_type() -> None:
    metrics = Metrics()
    metrics.rejected_seal = 2
    metrics.latency.record(3_000_000)
    text = metrics.prometheus({"host": "3", "cluster": 'a"b\\c'})
    lines = text.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if not LINE.match(line)] == []
    named = {re.sub("_(bucket|sum|count)$", "", re.split("[{ ]", line)[0]) for line in samples}
    for kind in ("HELP", "TYPE"):
        assert {line.split()[2] for line in lines if line.startswith(f"# {kind} ")} == named
    assert 'ordercast_packets_rejected_total{reason="seal",host="3",cluster="a\\"b\\\\c"} 2' in lines
    assert text.endswith("\n")


def test_exposed_buckets_are_cumulative_and_end_with_the_count() -> None:
    metrics = Metrics()
    for latency in (50_000, 300_000, 300_000, 90_000_000_000):
        metrics.latency.record(latency)
    buckets = [
        int(line.split()[-1])
        for line in metrics.prometheus().splitlines()
        if line.startswith("ordercast_latency_seconds_bucket")
    ]
    assert buckets == sorted(buckets)
    assert (buckets[0], buckets[2], buckets[-2], buckets[-1]) == (1, 3, 3, 4)


def test_the_page_of_tools_lists_every_metric_with_its_kind_and_meaning() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `") and "_" in line]
    told = {row[0].strip("| `"): (row[1], row[2]) for row in rows if len(row) == 3}
    for family in FAMILIES:
        kind, meaning = told[family.name]
        assert kind == family.kind
        assert meaning.startswith(family.help)
        assert all(f"`{value}`" in meaning for value in family.attributes if value)
    exposed = re.findall("^# TYPE ([a-z_]+) ([a-z]+)$", Metrics().prometheus(), re.MULTILINE)
    assert {name: kind for name, (kind, _) in told.items()} == dict(exposed)


def test_memory_in_use_is_told_where_the_system_tells_it() -> None:
    assert 1 << 20 < resident_bytes() < 1 << 40
