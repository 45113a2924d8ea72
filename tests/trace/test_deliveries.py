"""Kinds of delivery: declared once, so that a new one is written in few files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.core import CARRIERS, Carrier, Delivered, Dropped, Notice, OutOfOrder, Stamp, View
from ordercast.trace import (
    ACTIONS,
    CARRYING,
    KIND_OF,
    ORDERED,
    REQUESTS,
    SETTLING,
    Event,
    Kind,
    notice_event,
)
from tests.naming import PACKAGE, files_naming, patch

FILES_MAX = 6

WHISPERED = {
    "core/delivery.py": [
        (
            "CARRIERS: tuple[type[Carrier], ...] = (Delivered, OutOfOrder)",
            "class Whispered(Carrier, frozen=True, gc=False):\n    pass\n\n\n"
            "CARRIERS: tuple[type[Carrier], ...] = (Delivered, OutOfOrder, Whispered)",
        ),
        (
            "class Dropped(Notice",
            "class Paused(Notice, frozen=True, gc=False):\n    config: int = 0\n\n\nclass Dropped(Notice",
        ),
    ],
    "core/__init__.py": [("    OutOfOrder,\n", "    OutOfOrder,\n    Paused,\n    Whispered,\n")],
    "trace/event.py": [
        ('    DROP = "drop"\n', '    DROP = "drop"\n    WHISPER = "whispered"\n    PAUSE = "pause"\n')
    ],
    "trace/deliveries.py": [
        ("    OutOfOrder,\n", "    OutOfOrder,\n    Paused,\n    Whispered,\n"),
        (
            "    DeliveryKind(View, Kind.VIEW, configures=True, columns=_view),\n",
            "    DeliveryKind(View, Kind.VIEW, configures=True, columns=_view),\n"
            "    DeliveryKind(Whispered, Kind.WHISPER),\n"
            '    DeliveryKind(Paused, Kind.PAUSE, columns=lambda n: {"groups": (n.group,)}),\n',
        ),
    ],
}
"""All that must be written for a new carrier of messages and a new notice, file by file."""

SCRIPT = """
import msgspec

from ordercast.core import Paused, Whispered
from ordercast.core.bundle import Bundle
from ordercast.judge import audit, verdict
from ordercast.net.tools.feed_lines import feed_lines
from ordercast.net.host.delivered import DeliveredBundle
from ordercast.net.host.recording import spool_file
from ordercast.protocols.unordered import protocol
from ordercast.sim.run import simulate
from ordercast.scenario.swarm import swarm_scenario
from ordercast.trace import Kind, build_table


def whisper(payload, groups, sender):
    return Whispered(payload, groups, sender)


class Receiver(protocol.Receiver):
    def on_start(self, saved):
        super().on_start(saved)
        self.env.deliver(Paused(0))


protocol.Delivered, protocol.Receiver = whisper, Receiver
run = simulate(msgspec.structs.replace(swarm_scenario("unordered", 1), liveness=False))
events = list(run.events())
assert {Kind.WHISPER, Kind.PAUSE} <= {event.kind for event in events}
assert Kind.DELIVER not in {event.kind for event in events}
assert run.summary().out_of_order > 0
assert run.violations == [] == audit(run.description, run.table).violations

# Both judges hold what is whispered to what is promised of messages.
place = next(place for place, event in enumerate(events) if event.kind is Kind.WHISPER)
events.insert(place + 1, events[place])
for found in (verdict(run.description, events), audit(run.description, build_table("again", events))):
    assert [violation.property for violation in found.violations] == ["integrity"], found
down = [event for event in events if event.kind is Kind.PAUSE][0]
events = [down._replace(kind=Kind.CRASH), down]
for found in (verdict(run.description, events), audit(run.description, build_table("down", events))):
    assert "lifecycle" in [violation.property for violation in found.violations], found

# The live host records it, and those who watch are told.
assert spool_file.CARRIED[Kind.WHISPER] == 6
bundle = DeliveredBundle(Whispered(b"", (0,), 1), Bundle(7, (5,), [b"x"]), 9)
((line, count),) = feed_lines(bundle, {0: "all"})
assert b'"whispered":true' in line and count == 1
((line, count),) = feed_lines(Paused(0), {0: "all"})
assert line == b'{"paused":{"group":"all","config":0}}\\n' and count == 0
print("heard")
"""


def test_a_new_kind_of_delivery_is_written_in_few_files(tmp_path: Path) -> None:
    """It goes through the simulator, both judges and the feed of a live host, in a copy of the sources."""
    assert len(WHISPERED) <= FILES_MAX
    sources = tmp_path / "src"
    shutil.copytree(PACKAGE, sources / "ordercast", ignore=shutil.ignore_patterns("__pycache__"))
    for path, changes in WHISPERED.items():
        patch(sources / "ordercast" / path, changes)
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("heard\n", 0), done.stderr


@pytest.mark.parametrize("delivery", [Delivered, OutOfOrder, Dropped, View])
def test_a_kind_of_delivery_is_named_in_few_files(delivery: type) -> None:
    """Its class, or its word in `Kind`; what judges drops or views has to name them, too."""
    found = files_naming((delivery.__name__, KIND_OF[delivery].name))
    judging = ("judge/", "sim/fates.py")
    judges = {path for path in found if path.startswith(judging) and issubclass(delivery, Notice)}
    assert len(found - judges) <= FILES_MAX, sorted(found - judges)
    assert len(judges) <= 7, sorted(judges)


def test_every_class_of_delivery_has_a_kind() -> None:
    classes = {*Carrier.__subclasses__(), *Notice.__subclasses__()}
    assert classes == set(KIND_OF)
    assert set(CARRIERS) == set(Carrier.__subclasses__())
    assert {KIND_OF[carrier] for carrier in CARRIERS} == set(CARRYING)
    assert set(ORDERED) < set(CARRYING)
    assert not set(SETTLING) & set(CARRYING)
    assert set(ACTIONS) == {Kind.SUBMIT, Kind.GIVE_STATE, *REQUESTS, *KIND_OF.values()}


def test_a_notice_has_its_fields_in_the_columns_of_its_row() -> None:
    dropped = notice_event(5, 6, 2, Dropped(1, 3, 40, 7))
    assert dropped == Event(5, 6, 2, Kind.DROP, groups=(1,), numbers=(40,), stamp_issuer=3, config=7)
    plain = notice_event(5, 6, 2, View(1, 7, (0, 2), "hello"))
    assert plain == Event(5, 6, 2, Kind.VIEW, groups=(1,), config=7, members=(0, 2), label="hello")
    removal = notice_event(5, 6, 2, View(1, 7, (0,), change="removed", stamp=Stamp(9, 3, (40,))))
    assert removal == Event(
        5, 6, 2, Kind.VIEW, groups=(1,), numbers=(40,), stamp_clock=9, stamp_issuer=3, config=7,
        members=(0,), label="removed",
    )  # fmt: skip


def test_a_notification_of_many_numbers_has_a_row_for_each() -> None:
    rows = [notice_event(5, 6, 2, one) for one in Dropped(1, 3, 40, 7, count=3).singles()]
    assert [row.numbers for row in rows] == [(40,), (41,), (42,)]
    assert rows[0] == notice_event(5, 6, 2, Dropped(1, 3, 40, 7))
    view = View(1, 7, (0, 2))
    assert list(view.singles()) == [view]
