"""What came out of an attack."""

from pathlib import Path

import msgspec
import numpy as np

from benchmarks.hostile.attacker import ATTACK, DECOY, PHASES, QUIET, Sent
from benchmarks.hostile.datagrams import LIVES, OLD
from benchmarks.hostile.phases import Assault, Span, Tally
from ordercast.core import SECOND
from ordercast.lab.bench.account import Account, read_log, to_all
from ordercast.lab.bench.spec import BenchResult

TRIM_NS = SECOND // 4
"""The beginning of a phase that does not count: what was under way belongs to the phase before."""
SENT_MIN = 0.99
"""Of what was asked for, to allow for the last burst of a phase."""
RATE_MIN = 0.85
"""The rate in an attack must be at least this share of the rate without one."""


class PhaseFigures(msgspec.Struct, frozen=True):
    """What was measured in all turns of a phase."""

    ordered_per_s: float
    """Messages that all receivers delivered."""
    host_cores: float
    """CPU time of all hosts by the clock."""
    host_us_per_message: float
    attacker_cores: float


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result."""

    wanted: Sent
    """What the attacker was asked to send."""
    sent: Sent
    refused: int
    """Datagrams that hosts refused, by their own counters."""
    no_room: int
    """Datagrams of anybody for which a socket had no room."""
    held_max: int
    """Recordings of earlier lives that may wait for a proof which never comes."""
    implausible: int
    """Lies that processes refused."""
    malformed: int
    delivered: int
    lost: int
    drops: int
    violations: list[str]
    hosts: int
    """Hosts that answered at the end, which are all."""
    check: str
    """What `ordercast check` says of the trace; empty if all is well."""
    phases: dict[str, PhaseFigures]
    ratios: dict[str, list[float]]
    """The rate in the attack divided by that of another phase, for each cycle."""

    def ratio(self, phase: str) -> float:
        """The median over all cycles."""
        return float(np.median(self.ratios[phase]))

    @property
    def accepted(self) -> int:
        """Datagrams and lies that are not accounted for as refused."""
        datagrams = self.sent.datagrams - self.refused - self.no_room - self.held_max
        lies = self.sent.lies - self.implausible - self.no_room
        return max(0, datagrams) + max(0, lies)

    @property
    def faults(self) -> list[str]:
        """Why the cluster did not stand the attack; nothing if it did."""
        found = (
            [] if self.ratio(QUIET) >= RATE_MIN else [f"users are at {self.ratio(QUIET):.0%} of their rate"]
        )
        if (
            self.sent.datagrams < SENT_MIN * self.wanted.datagrams
            or self.sent.lies < SENT_MIN * self.wanted.lies
        ):
            found.append(f"only {self.sent} of {self.wanted} was sent: the attacker got too little CPU time")
        if self.accepted:
            found.append(f"{self.accepted} hostile datagrams or messages were not refused")
        if self.lost or self.drops:
            found.append(f"{self.lost} messages lost, {self.drops} drop notifications")
        return found + self.violations + ([self.check] if self.check else [])


def conclude(
    wanted: Sent, result: BenchResult, assault: Assault, folder: Path, hosts: int, check: str
) -> Verdict:
    """Put together what was measured."""
    found: Tally = assault.found
    everywhere = _everywhere(folder)
    rates = [(span, _rate(span, everywhere)) for span in assault.spans]
    return Verdict(
        wanted=wanted,
        sent=assault.sent,
        refused=found.rejected,
        no_room=found.dropped,
        held_max=hosts * LIVES * OLD,
        implausible=found.counters["implausible"],
        malformed=found.counters["malformed"],
        delivered=len(everywhere.messages),
        lost=result.lost,
        drops=result.drops_notified,
        violations=result.violations,
        hosts=hosts,
        check=check,
        phases={phase: _figures(phase, rates) for phase in PHASES},
        ratios={phase: _ratios(phase, rates) for phase in (QUIET, DECOY)},
    )


def _everywhere(folder: Path) -> Account:
    """Messages that all receivers delivered, and when the last one did."""
    first = read_log(folder / "submitted-0.bin").messages.min()
    accounts = [read_log(path) for path in sorted(folder.glob("delivered-*.bin"))]
    return to_all(
        [Account(one.messages[one.messages >= first], one.times[one.messages >= first]) for one in accounts]
    )


def _rate(span: Span, everywhere: Account) -> float:
    begin = span.begin + TRIM_NS
    within = (everywhere.times >= begin) & (everywhere.times < span.end)
    return float(within.sum()) * SECOND / (span.end - begin)


def _figures(phase: str, rates: list[tuple[Span, float]]) -> PhaseFigures:
    spans = [span for span, _ in rates if span.phase == phase]
    seconds = sum(span.end - span.begin for span in spans) / SECOND
    ordered = float(np.mean([rate for span, rate in rates if span.phase == phase]))
    cores = sum(span.host_cpu_s for span in spans) / seconds
    attacker = sum(span.attacker_cpu_s for span in spans) / seconds
    return PhaseFigures(
        round(ordered, 1), round(cores, 3), round(cores / ordered * 1e6, 2), round(attacker, 3)
    )


def _ratios(phase: str, rates: list[tuple[Span, float]]) -> list[float]:
    attacks = [rate for span, rate in rates if span.phase == ATTACK]
    others = [rate for span, rate in rates if span.phase == phase]
    return [round(attack / other, 3) for attack, other in zip(attacks, others, strict=True)]


def table(found: Verdict) -> str:
    """The result for people."""
    lines = [
        f"{found.sent.datagrams:,} hostile datagrams: {found.refused:,} refused, {found.no_room:,} lost",
        f"{found.sent.lies:,} lies behind valid seals: {found.implausible:,} refused",
        f"{found.delivered:,} messages delivered to all; {found.lost} lost, {found.drops} drops notified, "
        f"{len(found.violations)} violations; {found.hosts} hosts alive",
        "phase      messages a second   cores of hosts   us of hosts per message   cores of the attacker",
    ]
    for phase, one in found.phases.items():
        lines.append(
            f"{phase:8} {one.ordered_per_s:19,.0f} {one.host_cores:16.2f} {one.host_us_per_message:25.1f}"
            f" {one.attacker_cores:23.2f}"
        )
    for phase, ratios in found.ratios.items():
        lines.append(
            f"attack / {phase}: median {found.ratio(phase):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    return "\n".join([*lines, *found.faults, "FAILED" if found.faults else "passed"])
