"""The contract is of no protocol: `core` and `trace` say what a field means in their own terms."""

import re
from pathlib import Path

import pytest

from ordercast.catalogue import find_protocol, protocol_names
from tests.naming import PACKAGE

PAPERS = {find_protocol(name).paper.split(" (")[0] for name in protocol_names()}
OTHERS = {"hybrid paper", "LLFT", "sequencing atoms", "Cyclon", "Paxos"}
NAMES = {*PAPERS, *OTHERS, *protocol_names(), *(name.replace("_", " ") for name in protocol_names())}
CITED = re.compile(rf"\b({'|'.join(sorted(map(re.escape, NAMES)))})\b", re.IGNORECASE)


def test_the_scan_knows_the_names() -> None:
    assert {"Hydra", "EpTO", "atomic multicast"} <= NAMES
    assert CITED.search("a place in the order (epto section 8.2)")
    assert CITED.search("Hydra's clock")
    assert not CITED.search("a place in the order")


@pytest.mark.parametrize("path", sorted([*PACKAGE.glob("core/**/*.py"), *PACKAGE.glob("trace/**/*.py")]))
def test_no_protocol_is_cited(path: Path) -> None:
    cited = CITED.search(path.read_text(encoding="utf-8"))
    assert cited is None, f"{path.name} cites {cited.group()}"
