"""The page about the gateway goes as it says: its commands of curl, on real processes."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from ordercast.cli import run
from ordercast.net.gateway.gateway import FAMILIES
from tests.docs.test_documents import ROOT, blocks, cluster_ended, quick
from tests.live.cluster_files import free_ports
from tests.live.processes import PATIENCE_S
from tests.live.test_gateway_command import gateway

PAGE = "docs/gateway.md"
SERVED = "127.0.0.1:9300"


def shown(address: str) -> list[tuple[str, str]]:
    """The commands of the page at a free port, each with the answer that follows it."""
    parts = re.split(r"^```(.*)\n", (ROOT / PAGE).read_text(), flags=re.MULTILINE)
    found, fences = parts[2::4], parts[1::4]
    pairs = [
        (content, found[place + 1] if fences[place + 1 : place + 2] == ["json"] else "")
        for place, content in enumerate(found)
        if fences[place] == "sh"
    ]
    assert len(pairs) == 5 and all(SERVED in command for command, _ in pairs)
    return [(command.replace(SERVED, address), answer) for command, answer in pairs]


def test_the_page_goes_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("store.py").write_text((ROOT / "examples" / "live" / "store.py").read_text())
    (start, *_) = blocks(PAGE, "")
    init, up, serve = [line.split()[1:] for line in start.splitlines()]
    assert serve == ["gateway"]
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with cluster_ended():
        for words in (init, up):
            assert run(quick(words)) == 0, capsys.readouterr().err
        with gateway("--address", address):
            for command, answer in shown(address):
                done = subprocess.run(
                    ["bash", "-ec", command], capture_output=True, text=True, timeout=PATIENCE_S, check=True
                )
                if answer:
                    assert done.stdout == answer
                else:
                    names = [one["name"] for one in json.loads(done.stdout)["operations"]]
                    assert names == ["get", "put", "take"]
        assert Path("gateway.header").stat().st_mode & 0o777 == 0o600


def test_the_page_has_the_metrics_of_the_gateway() -> None:
    page = (ROOT / PAGE).read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `ordercast_gateway")]
    assert len(rows) == len(FAMILIES)
    for family, row in zip(FAMILIES, rows, strict=True):
        assert row.startswith(f"| `{family.name}` | {family.kind} | {family.help}")
