"""The published claims, as they came with the papers, and those that follow from them.

`claims.csv` has one printed number a row, with the band in which a measured one counts as the same.
`derived.csv` has the same columns for numbers that no paper prints but that follow from printed ones: by
multiplication and division, with the band from the ends of theirs; or because what is printed should hold
further on as well, with the same band. Each says which. Both files are older than any measurement.
"""

import csv
from collections.abc import Sequence
from importlib.resources import files

import msgspec

from ordercast.core import LocalError
from ordercast.pipeline.claims import Claim

DERIVED = "derived.csv"
FILES = ("claims.csv", DERIVED)


def read_claims(name: str) -> list[Claim]:
    """The claims of one of the files."""
    text = (files(__package__) / name).read_text(encoding="utf-8")
    # Numbers are written as text in a CSV, hence not strict.
    rows = list(csv.DictReader(text.splitlines()))
    return msgspec.convert(rows, list[Claim], strict=False)


def all_claims() -> list[Claim]:
    """All claims, in the order of the files."""
    return [claim for name in FILES for claim in read_claims(name)]


def claim_of(name: str) -> Claim:
    """The claim with this id."""
    return next(each for each in all_claims() if each.id == name)


def published(claim: str) -> float:
    """The published value of a claim, for the mark of the paper in a figure."""
    return claim_of(claim).published


def select_claims(wanted: Sequence[str], claims: Sequence[Claim]) -> list[Claim]:
    """The claims with these ids, or below these prefixes (`hydra`, `hydra.micro`); all if none is named."""
    for name in wanted:
        if not any(_below(claim.id, name) for claim in claims):
            known = ", ".join(claim.id for claim in claims)
            raise LocalError(f"no claim '{name}'; there are: {known}")
    return [claim for claim in claims if not wanted or any(_below(claim.id, name) for name in wanted)]


def _below(claim: str, prefix: str) -> bool:
    return claim == prefix or claim.startswith(f"{prefix}.")
