"""The registry: a property is declared once, and both judges, the command and the documents have it."""

import msgspec
import pytest
from rich.console import Console

from ordercast.cli.properties import at_end_named, properties_table
from ordercast.core import Guarantees, LocalError
from ordercast.judge import PROPERTIES, Property, audit, may_be_parted, properties_of, rows_of, verdict
from ordercast.judge.columns import Case as Columns
from ordercast.judge.columns import Findings, blocks
from ordercast.judge.online import Handler, Oracle
from ordercast.judge.property import in_registry
from ordercast.trace import CARRYING, Event, Kind, build_table
from tests.check.traces import Trace
from tests.naming import files_importing, files_saying, source_files

FILES_MAX = 4
"""Its oracle, its columns, the registry, and one more: a property that heeds it."""


class Quiet(Oracle):
    """Made up: nobody delivers a message of more than ten bytes."""

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries."""
        return dict.fromkeys(CARRYING, self._on_deliver)

    def _on_deliver(self, event: Event) -> None:
        if (event.size or 0) > 10:
            self.report((event.node,), (), (event.time_ns,), f"node {event.node} is loud")


def quiet(case: Columns, findings: Findings) -> None:
    """The same over columns."""
    rows = case.account.row
    for row in findings.wanted(rows[case.trace.column("size")[rows] > 10].tolist()):
        node = int(case.trace.node[row])
        findings.add((node,), (), (int(case.trace.time[row]),), f"node {node} is loud", row)


QUIET = Property(
    "quiet",
    "No message is loud.",
    "`uniform`",
    lambda run: run.guarantees.uniform,
    Quiet,
    quiet,
)
MORE = (*PROPERTIES, QUIET)


def loud(uniform: bool = True) -> Trace:
    trace = Trace(Guarantees(uniform=uniform))
    for size in (3, 11):
        message = trace.submit()
        trace.deliver(1, message, size=size)
    return trace


def test_both_judges_take_a_new_property_from_its_declaration_alone() -> None:
    trace = loud()
    table = build_table("test", trace.events)
    for found in (verdict(trace.description, trace.events, MORE), audit(trace.description, table, MORE)):
        assert [violation.property for violation in found.violations] == ["quiet"]
        assert found.violations[0].nodes == (1,)
        assert trace.events[found.violations[0].step].size == 11
    assert verdict(trace.description, trace.events).violations == []


def test_a_property_is_judged_only_where_it_applies() -> None:
    trace = loud(uniform=False)
    assert QUIET not in properties_of(trace.description, MORE)
    assert verdict(trace.description, trace.events, MORE).violations == []
    assert audit(trace.description, build_table("test", trace.events), MORE).violations == []


def test_one_that_is_judged_at_the_end_waits_for_a_complete_run() -> None:
    trace = Trace(complete=False)
    names = [declared.name for declared in properties_of(trace.description)]
    assert names and not {"agreement", "validity"} & set(names)
    assert at_end_named(serves=False) == "agreement and validity"
    assert at_end_named(serves=True) == "agreement, validity and replies"


def test_the_command_and_the_documents_list_a_new_property() -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(properties_table(MORE))
    assert "No message is loud." in capture.get()
    assert all(declared.name in capture.get() for declared in PROPERTIES)
    assert rows_of(MORE)[-1] == "| `quiet` | No message is loud. | `uniform` |"


def test_parts_of_a_large_run_do_not_prove_what_nobody_says_they_do() -> None:
    description = loud().description
    assert may_be_parted(description)
    assert not may_be_parted(description, MORE)


def test_a_property_stands_once_and_behind_those_that_it_heeds() -> None:
    with pytest.raises(LocalError, match="two properties have the name quiet"):
        in_registry((QUIET, QUIET))
    first, second = (one for one in PROPERTIES if one.name in ("total-order", "acyclic-order"))
    with pytest.raises(LocalError, match="acyclic-order heeds total-order, which must be declared before it"):
        in_registry((second, first))
    assert in_registry((first, second)) == (first, second)


def test_stamps_are_compared_where_large_runs_rely_on_them() -> None:
    assert blocks.STAMP in [declared.name for declared in PROPERTIES]


@pytest.mark.parametrize("name", [declared.name for declared in PROPERTIES])
def test_a_property_is_named_in_few_files(name: str) -> None:
    """One that is added has to be written in as many: it is named nowhere but where it is judged.

    Counted are the modules of the property in both judges, who imports something from them, and who has its
    name as a string within `judge` and the command. Integrity is also the gate of both judges.
    """
    word = name.replace("-", "_")
    own = {f"judge/{judge}/{word}.py" for judge in ("online", "columns")}
    assert own <= set(source_files())
    importing = {path for side in ("online", "columns") for path in files_importing(f"judge.{side}.{word}")}
    saying = {path for path in files_saying(name) if path.startswith(("judge/", "cli/"))}
    gates = {"judge/online/judge.py", "judge/columns/case.py"} if name == "integrity" else set()
    assert importing & {"judge/registry.py", "judge/service_properties.py"}
    assert len((own | importing | saying) - gates) <= FILES_MAX, sorted(own | importing | saying)


def test_a_verdict_does_not_change_with_properties_that_do_not_apply() -> None:
    trace = loud(uniform=False)
    promised = msgspec.structs.replace(trace.description, complete=False)
    assert verdict(promised, trace.events, MORE) == verdict(promised, trace.events)
