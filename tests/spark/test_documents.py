"""What the documents say of Spark is true: the sweep of the page runs, and so do the commands after it."""

from pathlib import Path

import pytest

from ordercast.catalogue import protocol_names
from ordercast.experiments.published import all_claims
from tests.cli.conftest import Command, ordercast
from tests.docs.test_documents import ROOT, blocks, commands, on_spark

__all__ = ["ordercast"]  # a fixture


def test_the_commands_of_the_documents_are_known(ordercast: Command) -> None:
    found = [
        words for page in ("README.md", "docs/pipeline.md") for words in commands(page) if on_spark(words)
    ]
    assert {words[0] for words in found} == {"sweep", "check", "reproduce", "report"}
    for words in found:
        assert ordercast(words[0], "--help").code == 0
        named = [word for word in words[1:] if word.endswith(".toml")]
        assert all((ROOT / name).exists() for name in named)
        if words[0] == "reproduce":
            assert any(claim.id.startswith(words[1]) for claim in all_claims())


@pytest.mark.deep
@pytest.mark.usefixtures("here")
def test_the_sweep_of_the_page_runs_and_is_judged_and_reported(ordercast: Command, tmp_path: Path) -> None:
    (text,) = blocks("docs/pipeline.md", "toml")
    (tmp_path / "page.toml").write_text(text.replace('"0:20"', "3").replace("300", "30"))
    swept = ordercast("sweep", tmp_path / "page.toml", "--out", tmp_path / "out", "--json")
    assert swept.code == 0, swept.err
    content = swept.json()
    assert content["runs"] == content["kept"] == len(protocol_names()) * 3 * 2
    assert content["judges_differ"] == []
    checked = ordercast("check", tmp_path / "out" / "traces", "--master", "local[2]", "--json")
    assert checked.code == 0 and checked.json()["runs"] == content["runs"]
    first = Path(content["report"]).read_bytes()
    assert ordercast("report", tmp_path / "out").code == 0
    assert Path(content["report"]).read_bytes() == first
    for table in ("latency", "throughput", "recoveries", "verdicts"):
        assert (tmp_path / "out" / "tables" / table).is_dir()
