"""Sweeps as TOML files: one scenario, the keys that vary, and the seeds.

A sweep has a row for every case, every combination of the grid's values, and every seed, in that order. With
`swarm = true` each seed draws its own scenario instead, as `ordercast swarm` does. All rows are checked
before anything runs, and an error names the line.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ordercast.catalogue import protocol_names
from ordercast.core import LocalError, Plan
from ordercast.scenario.file import resolve_files
from ordercast.scenario.seeds import SEED_MAX, parse_seeds
from ordercast.scenario.spec import Scenario, ScenarioError, run_name, to_scenario
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.build import build_workload, build_world
from ordercast.toml_file import about, naming_lines_of, read_toml, read_validation_error

RUNS_MAX = 100_000
EVERY = "*"
_WHOLE = frozenset({"latency"})
"""Tables that a case replaces as a whole: the keys of one kind mean nothing to another."""


class SweepRow(NamedTuple):
    """One run of a sweep, as a row of the table `scenarios`."""

    place: int
    run: str
    protocol: str
    seed: int
    parameters: str
    scenario: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that can be run."""

    name: str
    rows: list[SweepRow]
    files: list[Path]
    """What its scenarios read: latencies and arrivals that were recorded."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    seeds: str | int | list[int] | None = None
    swarm: bool = False
    scenario: dict[str, Any] = {}
    grid: dict[str, Any] = {}
    case: list[dict[str, Any]] = []


class _Variant(NamedTuple):
    """One way to run the scenario: its changes, each with the place in the file where it is written."""

    changes: dict[str, Any]
    origins: dict[str, str]
    parameters: dict[str, Any]


def load_sweep(path: Path) -> Sweep:
    """Read a sweep and check every run of it; files that it names are relative to its own folder."""
    content = read_toml(path)
    with naming_lines_of(path):
        file = _convert(content)
        seeds = _seeds(file)
        grid = _grid(file.grid)
        cases = _cases(file.case)
        runs = len(seeds) * len(cases) * prod(len(values) for values in grid.values())
        if runs > RUNS_MAX:
            raise ScenarioError(
                "seeds", f"{runs} runs are too many for a sweep; at most {RUNS_MAX} are allowed"
            )
        name = file.name or path.stem
        if file.swarm:
            return Sweep(name, list(_swarm_rows(file, grid, seeds)), [])
        return Sweep(name, *_rows(file, cases, grid, seeds, path.parent.absolute()))


def _convert(content: dict[str, Any]) -> _File:
    try:
        return msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        key, what = read_validation_error(str(error))
        if what == "unknown key":
            what += "; a sweep has name, seeds, swarm, [scenario], [grid] and [[case]]"
        raise ScenarioError(key, what) from error


def _seeds(file: _File) -> Sequence[int]:
    if "seed" in file.scenario:
        raise ScenarioError("scenario.seed", 'the seeds of a sweep go into seeds = "0:10" at the top')
    match file.seeds:
        case None:
            raise ScenarioError("", 'the seeds are missing; write seeds = "0:10" at the top')
        case str() as text:
            with about("seeds"):
                return parse_seeds(text)
        case int() as seed:
            chosen = [seed]
        case list() as chosen:
            pass
    if not chosen or not all(0 <= seed < SEED_MAX for seed in chosen):
        raise ScenarioError("seeds", "give at least one seed; seeds are whole numbers from 0")
    if len(set(chosen)) < len(chosen):
        raise ScenarioError("seeds", "the same seed is listed twice")
    return chosen


def _grid(tables: dict[str, Any], above: str = "") -> dict[str, list[Any]]:
    """The lists of a grid by dotted key, whether the key was in quotes or not."""
    grid: dict[str, list[Any]] = {}
    for name, values in tables.items():
        key = f"{above}{name}"
        if isinstance(values, dict):
            grid |= _grid(values, f"{key}.")
        elif key == "seed":
            raise ScenarioError("grid.seed", 'the seeds of a sweep go into seeds = "0:10" at the top')
        elif key == "protocol" and values == EVERY:
            grid[key] = list(protocol_names())
        elif isinstance(values, list) and values:
            grid[key] = values
        else:
            some = f'a list of names, or "{EVERY}" for all' if key == "protocol" else "a list of values"
            raise ScenarioError(f"grid.{key}", f"{some} is needed here")
    return grid


def _cases(tables: list[dict[str, Any]]) -> list[_Variant]:
    if not tables:
        return [_Variant({}, {}, {})]
    cases: dict[str, _Variant] = {}
    for index, table in enumerate(tables):
        place = f"case[{index}]"
        name = table.get("name", f"case {index + 1}")
        if not isinstance(name, str) or name in cases:
            raise ScenarioError(f"{place}.name", "another case has the same name")
        if "seed" in table:
            raise ScenarioError(f"{place}.seed", 'the seeds of a sweep go into seeds = "0:10" at the top')
        changes = dict(_flat({key: value for key, value in table.items() if key != "name"}))
        origins = {key: f"{place}.{key}" for key in changes}
        cases[name] = _Variant(changes, origins, {"case": name})
    return list(cases.values())


def _flat(table: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value and name not in _WHOLE:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _rows(
    file: _File, cases: list[_Variant], grid: dict[str, list[Any]], seeds: Sequence[int], folder: Path
) -> tuple[list[SweepRow], list[Path]]:
    rows: list[SweepRow] = []
    names: dict[str, _Variant] = {}
    files: dict[Path, None] = {}
    for variant in _variants(cases, grid):
        content = msgspec.to_builtins(file.scenario)  # a copy, all the way down
        for key, value in variant.changes.items():
            with _blaming(variant):
                _set(content, key, value)
        if "protocol" not in content:
            raise ScenarioError(
                "", 'the protocol is missing; write protocol = "NAME" in [scenario], or a list in [grid]'
            )
        files |= dict.fromkeys(resolve_files(content, folder))
        with _blaming(variant):
            base = to_scenario(content | {"seed": seeds[0]})
            base = _fitting(base) if file.grid.get("protocol") == EVERY else base
            plan = _checked(base)
        for seed in seeds:
            row = _row(len(rows), msgspec.structs.replace(base, seed=seed), plan, variant.parameters)
            if other := names.get(row.run):
                raise ScenarioError(
                    min(variant.origins.values(), default=""),
                    f"two rows are the same run, {row.run}: {_text(other)}; and {_text(variant)}",
                )
            names[row.run] = variant
            rows.append(row)
    return rows, list(files)


def _fitting(scenario: Scenario) -> Scenario:
    """A scenario for every protocol: its messages go to as many groups as this protocol allows."""
    most = scenario.plan().groups_max
    workload = msgspec.structs.replace(scenario.workload, spread=scenario.workload.spread[:most])
    return msgspec.structs.replace(scenario, workload=workload)


def _variants(cases: list[_Variant], grid: dict[str, list[Any]]) -> Iterator[_Variant]:
    for case in cases:
        for values in product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            yield _Variant(
                case.changes | chosen,
                case.origins | {key: f"grid.{key}" for key in grid},
                # The protocol and the seed are columns of their own.
                case.parameters | {key: value for key, value in chosen.items() if key != "protocol"},
            )


def _text(variant: _Variant) -> str:
    chosen = variant.parameters | {key: value for key, value in variant.changes.items() if key == "protocol"}
    return ", ".join(f"{key} {value}" for key, value in chosen.items()) or "the scenario"


def _set(content: dict[str, Any], dotted: str, value: Any) -> None:
    *above, last = dotted.split(".")
    table: Any = content
    for key in above:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ScenarioError(dotted, f"'{key}' of the scenario is not a table")
    table[last] = msgspec.to_builtins(value)


def _checked(scenario: Scenario) -> Plan:
    """The plan of a scenario that can be run and read back from its own JSON."""
    plan = scenario.plan()
    try:
        build_workload(scenario, build_world(scenario, plan))
    except LocalError:
        raise
    except Exception:
        pass  # a defect of the protocol is a result of the sweep, not an error in its file
    try:
        same = msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario
    except msgspec.MsgspecError:
        same = False
    if not same:
        raise ScenarioError("", "a number of the scenario is not finite, or an option is not plain data")
    return plan


@contextmanager
def _blaming(variant: _Variant) -> Iterator[None]:
    """Name the place in the sweep file where a wrong key was set."""
    try:
        yield
    except ScenarioError as error:
        owners = [
            key for key in variant.origins if error.key == key or error.key.startswith((f"{key}.", f"{key}["))
        ]
        if not owners:
            raise ScenarioError(f"scenario.{error.key}".rstrip("."), error.what) from error
        owner = max(owners, key=len)
        place = variant.origins[owner] + error.key[len(owner) :]
        value = variant.changes[owner]
        shown = "" if isinstance(value, dict | list) or str(value) in error.what else f" (here: {value})"
        raise ScenarioError(place, f"{error.what}{shown}") from error


def _swarm_rows(file: _File, grid: dict[str, list[Any]], seeds: Sequence[int]) -> Iterator[SweepRow]:
    unwanted = [
        *(f"scenario.{key}" for key in file.scenario if key != "protocol"),
        *(f"grid.{key}" for key in grid if key != "protocol"),
        *(["case[0]"] if file.case else []),
    ]
    if unwanted:
        raise ScenarioError(unwanted[0], "with swarm = true the seeds draw everything except the protocol")
    place = "grid.protocol" if "protocol" in grid else "scenario.protocol"
    protocols = grid.get("protocol") or [file.scenario.get("protocol")]
    if len(set(map(str, protocols))) < len(protocols):
        raise ScenarioError(place, "the same protocol is listed twice")
    for index, (protocol, seed) in enumerate(product(protocols, seeds)):
        if not isinstance(protocol, str):
            raise ScenarioError(
                place, 'the protocol is missing; write protocol = "NAME", or a list in [grid]'
            )
        try:
            scenario = swarm_scenario(protocol, seed)
        except ScenarioError as error:
            raise ScenarioError(place, error.what) from error
        yield _row(index, scenario, scenario.plan(), {})


def _row(place: int, scenario: Scenario, plan: Plan, parameters: dict[str, Any]) -> SweepRow:
    return SweepRow(
        place,
        run_name(scenario, plan),
        scenario.protocol,
        scenario.seed,
        msgspec.json.encode(parameters, order="sorted").decode(),
        msgspec.json.encode(scenario).decode(),
    )
