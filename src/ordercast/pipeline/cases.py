"""The cases of experiments: one scenario to simulate, or one function to call, with parameters and a seed.

Most experiments simulate. Some need an engine of their own, such as arrays for a million peers: their cases
name a function that a Spark task calls. Both give the same: numbers by name.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from ordercast.core import LocalError
from ordercast.pipeline.sweep_file import Sweep, SweepRow
from ordercast.scenario.spec import Scenario, run_name

Value: TypeAlias = str | int | float | bool
Record: TypeAlias = dict[str, Value]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of an experiment: either `scenario` or `function` is given."""

    parameters: dict[str, Value]
    """What the experiment varies; a function gets them as keyword arguments."""
    seed: int
    scenario: Scenario | None = None
    function: str = ""
    """``package.module:function``, called with the parameters, the arguments and `seed`; it returns numbers
    by name, or `CaseValues`, and must give the same for the same arguments."""
    arguments: dict[str, Value] = {}
    """What a function needs besides the parameters, such as the place of its data."""
    weight: int = 0
    """Functions of larger weight are called first, so that none runs on alone at the end."""

    def __post_init__(self) -> None:
        if (self.scenario is None) == (not self.function):
            raise LocalError("a case needs either a scenario or a function, not both")
        if self.scenario is not None and self.scenario.seed != self.seed:
            raise LocalError(f"the case has seed {self.seed}, but its scenario has seed {self.scenario.seed}")
        if self.function and ":" not in self.function:
            raise LocalError(f"'{self.function}' is not of the form package.module:function")

    def name(self) -> str:
        """What the case is called in tables and folders: the same case has the same name."""
        if self.scenario is not None:
            return run_name(self.scenario, self.scenario.plan())
        digest = hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:12]
        return f"{self.function.split(':')[1]}-{self.seed}-{digest}"

    def parameters_json(self) -> str:
        """The parameters as a row of a table has them."""
        return msgspec.json.encode(self.parameters, order="sorted").decode()


class CaseValues(msgspec.Struct, frozen=True, kw_only=True):
    """What a function returns for its case: numbers by name, and records for other data."""

    numbers: dict[str, float]
    records: list[Record] = []
    """The function's experiment knows what they are, and reads them back with the type that it wrote."""


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a case."""

    case: Case
    name: str
    status: str
    """kept, violated or failed."""
    error: str | None
    values: dict[str, float]
    records: list[Record] = []


class Results:
    """The results of an experiment's cases, selected by parameter."""

    def __init__(self, results: Iterable[CaseResult]) -> None:
        self.all = tuple(results)

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, in order."""
        return tuple(sorted({result.case.seed for result in self.all}))

    def where(self, **parameters: Value) -> "Results":
        """Those whose parameters have these values."""
        return Results(
            result
            for result in self.all
            if all(result.case.parameters.get(name) == value for name, value in parameters.items())
        )

    def values(self, name: str) -> list[float]:
        """The value of this name in every result; an error lists the known names."""
        for result in self.all:
            if name not in result.values:
                known = ", ".join(sorted(result.values))
                raise LocalError(f"{result.name} has no value '{name}'; its values are: {known}")
        return [result.values[name] for result in self.all]

    def by(self, parameter: str) -> "dict[Value, Results]":
        """The results grouped by one parameter, in the order of the cases."""
        groups: dict[Value, list[CaseResult]] = {}
        for result in self.all:
            groups.setdefault(result.case.parameters[parameter], []).append(result)
        return {value: Results(group) for value, group in groups.items()}


def sweep_of(name: str, cases: Sequence[Case]) -> Sweep:
    """The cases with scenarios as a sweep; experiments that share a run get it once."""
    rows: dict[str, SweepRow] = {}
    files: dict[Path, None] = {}
    for case in cases:
        scenario = case.scenario
        if scenario is None:
            continue
        run = case.name()
        if run not in rows:
            content = msgspec.json.encode(scenario).decode()
            about = (scenario.protocol, scenario.seed, case.parameters_json())
            rows[run] = SweepRow(len(rows), run, *about, content)
            files |= dict.fromkeys(_files(scenario))
    return Sweep(name, list(rows.values()), list(files))


def _files(scenario: Scenario) -> list[Path]:
    named = (getattr(scenario.network.latency, "file", ""), scenario.workload.file)
    return [Path(file) for file in named if file]
