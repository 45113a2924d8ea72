"""Tables of a small finished sweep, written without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ordercast.core import message_id
from ordercast.pipeline import schemas
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference

EVIL = "<script>alert('1')</script> & \"quotes\""
MS = 1_000_000


def write(out: Path, name: str, schema: StructType, rows: Sequence[Mapping[str, Any]]) -> None:
    """One table, as `write_table` leaves it."""
    folder = out / "tables" / name
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(list(rows), schema=to_arrow_schema(schema))
    pq.write_table(table, folder / "part-00000.parquet")


def run_row(place: int, protocol: str, parameters: str, status: str = "kept", **more: Any) -> dict[str, Any]:
    """A row of RUNS."""
    name = f"{protocol}-{place}"
    row = {"place": place, "run": name, "protocol": protocol, "seed": place, "parameters": parameters}
    row |= {"status": status, "folder": f"traces/{name}", "events": 100, "submitted": 10, "delivered": 30}
    return row | {"duration_ns": 5 * MS, "complete": True} | more


def finding(**more: Any) -> dict[str, Any]:
    """A finding of a judge."""
    row = {"property": "total order", "nodes": [0, 1], "messages": [message_id(6, 3)], "times_ns": [7 * MS]}
    return row | {"detail": "nodes 0 and 1 delivered 6#3 and 7#1 in different orders", "step": 12} | more


def sweep_tables(out: Path) -> None:
    """Five runs of two protocols, with everything that a report can show."""
    loss, evil = '{"network.loss":0.1}', f'{{"case":{_json(EVIL)}}}'
    runs = [
        run_row(0, "calm", loss),
        run_row(1, "calm", loss),
        run_row(2, "wild", evil, "violated"),
        run_row(3, "wild", evil),
        run_row(
            4, "wild", evil, "failed", folder=None, events=None, submitted=None, delivered=None, error=EVIL
        ),
    ]
    write(out, "runs", schemas.RUNS, runs)
    about = {"run": "wild-2", "protocol": "wild", "seed": 2}
    write(out, "violations", schemas.VIOLATIONS, [{**about, "judge": "oracles", **finding(detail=EVIL)}])
    verdicts = [
        {
            "run": run["run"],
            "folder": "/x",
            "protocol": run["protocol"],
            "seed": run["seed"],
            "complete": True,
        }
        | {"findings": [finding()] if run["run"] in ("wild-2", "wild-3") else [], "suppressed": {}}
        | {"damage": [], "hashed": True}
        for run in runs[:4]
    ]
    write(out, "verdicts", schemas.VERDICTS, verdicts)
    quantiles = {"deliveries": 60, "mean_ns": 2.5e6, "p50_ns": 2 * MS, "p90_ns": 3 * MS, "p99_ns": 4 * MS}
    points = [("calm", loss), ("wild", evil)]
    latency = [
        {"protocol": protocol, "parameters": parameters, **quantiles, "p999_ns": 5 * MS, "max_ns": 6 * MS}
        for protocol, parameters in points
    ]
    write(out, "point_latency", schemas.POINT_LATENCY, latency)
    shares = [
        {
            "protocol": protocol,
            "parameters": parameters,
            "latency_ns": n * MS,
            "deliveries": n,
            "share": n / 20,
        }
        for protocol, parameters in points
        for n in range(1, 21)
    ]
    write(out, "point_distribution", schemas.POINT_DISTRIBUTION, shares)
    windows = [
        {"run": run["run"], "start_ns": n * MS, "window_ns": MS, "messages": n % 3, "deliveries": 3 * (n % 3)}
        for run in runs[:4]
        for n in range(10)
    ]
    write(out, "throughput", schemas.THROUGHPUT, windows)
    rates = [{"run": run["run"], "messages_per_s": 1234.0, "deliveries_per_s": 3702.0} for run in runs[:4]]
    write(out, "rates", schemas.RATES, rates)
    fault = {"fault": 0, "kind": "crash", "at_ns": 5 * MS, "detail": "{}", "submitted": 4, "dated": True}
    recovered = [
        {"run": "calm-0", **fault, "node": 0, "struck": True, "recovery_ns": 90 * MS, "silence_ns": 80 * MS},
        {"run": "calm-0", **fault, "node": 1, "struck": False, "recovery_ns": 40 * MS, "silence_ns": 39 * MS},
        {"run": "calm-1", **fault, "node": 1, "struck": False, "recovery_ns": None, "silence_ns": None},
    ]
    write(out, "recoveries", schemas.RECOVERIES, recovered)


def folder_tables(out: Path) -> None:
    """A live run with a crash, one in which nothing happened, and one that could not be read."""
    start_ns = 1_700_000_000_000_000_000
    live: dict[str, Any] = {"source": "live", "seed": None, "start_ns": start_ns}
    runs = [
        run_row(0, "calm", "{}", "violated", **live, complete=False, duration_ns=8_000 * MS, dropped=3),
        run_row(1, "idle", "{}", **live, submitted=0, delivered=0, dropped=0, duration_ns=0),
        run_row(2, "unknown", "{}", "failed", run=EVIL, folder=None, error="cut off", complete=None),
    ]
    write(out, "runs", schemas.RUNS, runs)
    verdict = {"run": "calm-0", "folder": "calm-0", "protocol": "calm", "complete": False, "suppressed": {}}
    found = finding(times_ns=[start_ns + 5_000 * MS])
    record = {"damage": [], "hashed": True}
    write(out, "verdicts", schemas.VERDICTS, [{**verdict, **record, "findings": [found]}])
    roles = [("receiver", 0, [0]), ("receiver", 1, [0]), ("sender", 0, []), ("sequencer", 2, [])]
    nodes = [
        {"run": run["run"], "node": node, "role": role, "host": host, "groups": groups}
        | {"name": f"{role}-{min(node, 1) if role == 'receiver' else 0}"}
        for run in runs[:2]
        for node, (role, host, groups) in enumerate(roles)
    ]
    write(out, "nodes", schemas.NODES, nodes)
    about = {"run": "calm-0", "window_ns": 500 * MS}
    activity = [
        {**about, "node": node, "kind": kind, "start_ns": 500 * MS * n, "events": 10 + n}
        for n in range(16)
        for node, kind in ((2, "submit"), (0, "deliver"), (1, "deliver"))
        if (node, n // 6) != (1, 1)
    ]
    drop = {**about, "node": 1, "kind": "drop", "start_ns": 7_500 * MS, "events": 3}
    write(out, "activity", schemas.ACTIVITY, [*activity, drop])
    quantiles = {"deliveries": 9, "mean_ns": 2.5e6, "p50_ns": 2 * MS, "p90_ns": 3 * MS, "p99_ns": 4 * MS}
    quantiles |= {"p999_ns": 5 * MS, "max_ns": 6 * MS}
    windows = [{**about, **quantiles, "start_ns": 500 * MS * n} for n in range(16)]
    write(out, "window_latency", schemas.WINDOW_LATENCY, windows)
    write(out, "latency", schemas.LATENCY, [{"run": "calm-0", **quantiles}])
    by_node = [{"run": "calm-0", "node": node, **quantiles} for node in (0, 1)]
    write(out, "node_latency", schemas.NODE_LATENCY, by_node)
    shares = [{"run": "calm-0", "latency_ns": n * MS, "deliveries": n, "share": n / 9} for n in range(1, 10)]
    write(out, "distribution", schemas.DISTRIBUTION, shares)
    write(out, "rates", schemas.RATES, [{"run": "calm-0", "messages_per_s": 21.0, "deliveries_per_s": 42.0}])
    view = {"kind": "view", "group": 0, "config": 4, "members": [0, 1], "issuer": 7, "label": "removed"}
    changes = [
        {"run": "calm-0", "node": 3, "kind": "crash", "time_ns": 0},
        {"run": "calm-0", "node": 1, "kind": "crash", "time_ns": 3_000 * MS},
        {"run": "calm-0", "node": 0, "time_ns": 3_500 * MS, **view},
        {"run": "calm-0", "node": 1, "time_ns": 6_000 * MS, **view},
        {"run": "calm-0", "node": 1, "kind": "recover", "time_ns": 6_000 * MS, "label": "lost"},
    ]
    write(out, "changes", schemas.CHANGES, changes)
    fault = {"run": "calm-0", "kind": "crash", "submitted": 4}
    undated = {**fault, "fault": 0, "at_ns": 0, "detail": '{"kind":"crash","host":2}', "dated": False}
    dated = {**fault, "fault": 1, "at_ns": 3_000 * MS, "detail": '{"kind":"crash","host":1}', "dated": True}
    recovered = [
        {**undated, "node": 0, "struck": False, "silence_ns": 90 * MS},
        {**dated, "node": 0, "struck": False, "recovery_ns": 40 * MS, "silence_ns": 39 * MS},
        {**dated, "node": 1, "struck": True, "recovery_ns": 3_100 * MS, "silence_ns": 3_050 * MS},
    ]
    write(out, "recoveries", schemas.RECOVERIES, recovered)


def claim_tables(out: Path) -> None:
    """One experiment that met a claim and missed another, and a claim that nothing measured."""
    write(out, "runs", schemas.RUNS, [run_row(0, "calm", '{"protocol":"calm","clients":3}')])
    about = {"system": "toy", "source": "Fig 1", "setup": "as it was", "metric": "a ratio"}
    band = {"published": 0.5, "accept_low": 0.4, "accept_high": 0.6}
    measured = {"seeds": [1, 2, 3], "simulated_seconds": 12.34}
    rows = [
        {
            "place": 0,
            "id": "toy.one",
            **about,
            **band,
            "measured": 0.55,
            "met": True,
            "note": "fine",
            **measured,
        },
        {
            "place": 1,
            "id": "toy.two",
            **about,
            **band,
            "measured": 0.7,
            "met": False,
            "note": EVIL,
            **measured,
        },
        {"place": 2, "id": EVIL, **about, **band, "note": "no experiment yet", "seeds": []},
    ]
    write(out, "claims", schemas.CLAIMS, rows)
    experiment = {"place": 0, "name": "toy", "title": EVIL, "source": "A paper, Figure 1", "cases": 7}
    write(out, "experiments", schemas.EXPERIMENTS, [{**experiment, "seeds": [1, 2, 3], "broken": 0}])
    figure = Figure(
        id="toy-1",
        title="The toy",
        caption=EVIL,
        x=Axis(label=EVIL),
        y=Axis(label="y"),
        curves=(Curve(label="measured", points=(Point(1, 2), Point(2, 3))),),
        references=(Reference(label="by the paper", y=2.5),),
    )
    content = msgspec.json.encode(figure).decode()
    row = {"place": 0, "experiment": "toy", "figure": "toy-1", "content": content}
    write(out, "figures", schemas.FIGURES, [row])


def _json(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
