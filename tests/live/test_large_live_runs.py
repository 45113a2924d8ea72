"""A live run of many segments, by clocks that differ, judged by its parts as it is judged whole."""

from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ordercast.core import Causality
from ordercast.judge import audit, judge_selected
from ordercast.judge.columns import STORED
from ordercast.judge.columns.blocks import files_in_order, select
from ordercast.judge.columns.parts import Summary, summarize
from ordercast.scenario.spec import ClocksSpec, Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Kind, RunDescription, StoredRun, find_runs
from tests.live.recording import record

BITS = 2


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """Some hundred messages, with clocks up to a second apart."""
    scenario = Scenario(
        protocol="atomic_multicast",
        groups=2,
        senders=3,
        clocks=ClocksSpec(skew_us=1e6),
        workload=WorkloadSpec(messages=300, spread=(0.7, 0.3)),
        seed=5,
    )
    plan = scenario.plan()
    folder = record(simulate(scenario, plan), plan, tmp_path_factory.mktemp("live"))
    (run,) = find_runs(folder)
    promised = msgspec.structs.replace(run.description.guarantees, causality=Causality.NONE)
    return run._replace(description=msgspec.structs.replace(run.description, guarantees=promised))


def parts_of(run: StoredRun) -> list[pa.Table]:
    return [segment.read(STORED) for segment in run.open_segments()]


def summaries(description: RunDescription, parts: list[pa.Table]) -> Iterator[Summary]:
    for number, part in enumerate(parts):
        summary = summarize(description, part, key=1, block_bits=BITS)
        summary.segment = number
        yield summary


def found_by_parts(description: RunDescription, parts: list[pa.Table]) -> set[str]:
    def refuse() -> pa.Table:
        raise AssertionError("the whole run was read")

    summed = list(summaries(description, parts))
    assert files_in_order(summed)
    verdict = judge_selected(description, select(description, summed), lambda: iter(parts), refuse, BITS)
    return {violation.property for violation in verdict.violations}


def test_a_clean_live_run_is_proved_by_its_parts_alone(stored: StoredRun) -> None:
    parts = parts_of(stored)
    assert len(parts) > 20
    times, submitted = stored.table()["time_ns"], stored.table()["submitted_ns"]
    early = pc.sum(pc.less(times, pc.fill_null(submitted, 0))).as_py()
    assert early > 100, "deliveries before their submission, by the clocks"
    assert select(stored.description, summaries(stored.description, parts)).nothing


@pytest.mark.parametrize("column", ["digest", "size"])
def test_a_changed_delivery_is_found_without_reading_the_whole_run(stored: StoredRun, column: str) -> None:
    parts = parts_of(stored)
    number = next(n for n, part in enumerate(parts) if Kind.DELIVER in part["kind"].to_pylist())
    part = parts[number]
    row = part["kind"].to_pylist().index(Kind.DELIVER)
    values = part[column].to_pylist()
    values[row] += 1
    field = part.schema.field(column)
    parts[number] = part.set_column(part.schema.get_field_index(column), field, pa.array(values, field.type))
    whole = pa.concat_tables(parts)
    expected = {violation.property for violation in audit(stored.description, whole).violations}
    assert found_by_parts(stored.description, parts) == expected == {"integrity"}


def test_files_whose_nodes_are_not_in_order_are_recognised(stored: StoredRun) -> None:
    parts = parts_of(stored)
    assert not files_in_order(summaries(stored.description, parts[::-1]))
