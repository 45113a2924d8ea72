"""The schema is documented, and agrees with the rows in memory."""

import pytest

from ordercast.trace import SCHEMA, Event, Kind
from tests.tidy import ROOT


@pytest.mark.parametrize("column", SCHEMA.names)
def test_every_column_is_documented(column: str) -> None:
    assert f"`{column}`" in (ROOT / "docs" / "trace.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_documented(kind: Kind) -> None:
    assert f"`{kind}`" in (ROOT / "docs" / "trace.md").read_text(encoding="utf-8")


def test_every_field_of_an_event_is_a_column_in_the_same_order() -> None:
    assert [name for name in SCHEMA.names if name in Event._fields] == list(Event._fields)
    assert set(SCHEMA.names) - set(Event._fields) == {"run", "step", "position"}


def test_what_every_event_has_is_never_null() -> None:
    always = {field.name for field in SCHEMA if not field.nullable}
    assert always == {"run", "step", "time_ns", "clock_ns", "node", "kind"}
