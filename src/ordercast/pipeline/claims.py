"""Published claims and their results: the table `claims` and the file `claims.json`."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ordercast.pipeline.json_file import write_json

CLAIMS_FILE = "claims.json"
NO_EXPERIMENT = "no experiment yet"


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number that a paper published, and the band in which a measured number counts as the same."""

    id: str
    system: str
    source: str
    setup: str
    metric: str
    published: float
    accept_low: float
    accept_high: float
    note: str


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment measured for a claim."""

    claim: str
    value: float
    note: str = ""


class ClaimResult(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with its measured number; `met` is None if nothing was measured."""

    id: str
    published: float
    accept_low: float
    accept_high: float
    measured: float | None
    met: bool | None
    note: str
    seeds: tuple[int, ...] = ()
    simulated_seconds: float | None = None
    """Seconds of virtual time that were simulated for the measurement."""


def unmeasured(claim: Claim, note: str = NO_EXPERIMENT) -> ClaimResult:
    """A claim for which there is no measurement: neither met nor missed."""
    return _result(claim, None, None, note)


def broken(claim: Claim, note: str, measurement: Measurement | None = None) -> ClaimResult:
    """A claim whose runs broke a promise or failed: missed, with any measured value."""
    return _result(claim, measurement.value if measurement else None, False, note)


def judged(
    claim: Claim, measurement: Measurement, seeds: Sequence[int] = (), simulated_seconds: float | None = None
) -> ClaimResult:
    """Whether the measured value lies in the band, its ends included."""
    met = claim.accept_low <= measurement.value <= claim.accept_high
    result = _result(claim, measurement.value, met, measurement.note)
    return msgspec.structs.replace(result, seeds=tuple(seeds), simulated_seconds=simulated_seconds)


def _result(claim: Claim, measured: float | None, met: bool | None, note: str) -> ClaimResult:
    return ClaimResult(
        id=claim.id,
        published=claim.published,
        accept_low=claim.accept_low,
        accept_high=claim.accept_high,
        measured=measured,
        met=met,
        note=note,
    )


def claim_rows(claims: Sequence[Claim], results: Sequence[ClaimResult]) -> list[dict[str, object]]:
    """Rows of CLAIMS, in the order of the claims; the claim's own note stands before the result's."""
    rows: list[dict[str, object]] = []
    for place, (claim, result) in enumerate(zip(claims, results, strict=True)):
        row = {"place": place, **msgspec.to_builtins(claim), **msgspec.to_builtins(result)}
        row["seeds"] = list(result.seeds)
        row["note"] = "; ".join(note for note in (claim.note, result.note) if note)
        rows.append(row)
    return rows


def write_claims(results: Sequence[ClaimResult], out: Path, seconds: float) -> Path:
    """Write `claims.json`: one object per claim, in their order.

    `seconds` is the time of the whole job. It is in this file and in no table, because tables are the same
    each time.
    """
    claims = [
        msgspec.to_builtins(result) | {"seconds": None if result.met is None else round(seconds, 1)}
        for result in results
    ]
    return write_json({"claims": claims}, out / CLAIMS_FILE)
