"""A property: one promise of a run, declared once for both judges, the command line and the documents."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ordercast.core import LocalError
from ordercast.judge.columns import ColumnJudge
from ordercast.judge.online import MakeOracle
from ordercast.trace import RunDescription


@dataclass(frozen=True, slots=True)
class Property:
    """What is promised, when it is promised, and how each judge finds violations."""

    name: str
    statement: str
    """The promise, as a sentence."""
    when: str
    """The condition of `applies`, in words."""
    applies: Callable[[RunDescription], bool]
    """Whether a run promises the property."""
    oracle: MakeOracle
    columns: ColumnJudge
    at_end: bool = False
    """It is about the end of a run, so it is judged only if the run is complete."""
    heeds: tuple[str, ...] = ()
    """Properties whose findings it takes into account. They come before it in every list."""
    in_parts: bool = False
    """Whether fingerprints of the parts of a large run can prove it. If not, the run is judged as a whole."""
    in_excerpts: bool = True
    """Whether it can be judged on some messages of a large run. If not, the parts alone prove it."""
    of_services: bool = False
    """Whether it is about the clients of a service; a run without one is never judged by it."""

    def judged(self, description: RunDescription) -> bool:
        """Whether a run is judged by this property."""
        return self.applies(description) and (description.complete or not self.at_end)

    @property
    def words(self) -> str:
        """When the property is judged, in words."""
        return f"at the end of a complete run, {self.when}" if self.at_end else self.when


def in_registry(properties: Iterable[Property]) -> tuple[Property, ...]:
    """The properties, checked: each name occurs once, after the properties that it heeds."""
    found: dict[str, Property] = {}
    for declared in properties:
        if declared.name in found:
            raise LocalError(f"two properties have the name {declared.name}")
        later = [name for name in declared.heeds if name not in found]
        if later:
            raise LocalError(f"property {declared.name} heeds {later[0]}, which must be declared before it")
        found[declared.name] = declared
    return tuple(found.values())


def rows_of(properties: Sequence[Property]) -> list[str]:
    """The rows of the table in `docs/checks.md`: what each property says, and when it is judged."""
    return [f"| `{one.name}` | {one.statement} | {one.words} |" for one in properties]
