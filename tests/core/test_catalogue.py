"""The catalogue: packages become protocols, and a broken one is named."""

import json
import re
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from ordercast import protocols
from ordercast.catalogue import FOLDERS, broken_protocols, find_protocol, protocol_names
from ordercast.cli import run
from ordercast.core import Codec, LocalError, Message


def add(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """A package among the protocols."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(text)
    monkeypatch.setattr(protocols, "__path__", [*protocols.__path__, str(folder)])


def test_every_package_is_a_protocol_of_its_name() -> None:
    assert FOLDERS[0] == protocols.__name__
    assert {"atomic_multicast", "epto", "hydra", "unordered"} <= set(protocol_names())
    assert all(find_protocol(name).name == name for name in protocol_names())


def test_an_unknown_name_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(LocalError, match=r"no protocol 'hydro'.*hydra"):
        find_protocol("hydro")


def test_a_package_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, monkeypatch, "half_written", "import no_such_module_at_all\n")
    with pytest.raises(LocalError, match=r"ordercast.protocols.half_written.*no_such_module_at_all"):
        find_protocol("half_written")
    assert find_protocol("hydra").name == "hydra"


def test_a_package_without_a_protocol_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, monkeypatch, "nothing_there", '"""Nothing yet."""\n')
    with pytest.raises(LocalError, match=r"ordercast.protocols.nothing_there does not define PROTOCOL"):
        find_protocol("nothing_there")


HEAD = """from ordercast.core import Guarantees, Options, Protocol

class Needy(Options, frozen=True):
    window: int{default}

PROTOCOL = Protocol("{name}", "", "", Guarantees(), Needy, lambda deployment, options: None, ())
"""
BROKEN = {
    "lacks_module": ("\nimport no_such_module_at_all\n", "ModuleNotFoundError.*lacks_module/__init__.py:2"),
    "no_python": ("x = 1\ny = = 2\n", r"SyntaxError: invalid syntax \(__init__.py:2\)"),
    "divides": ("def f():\n    return 1 / 0\nf()\n", "ZeroDivisionError: .*divides/__init__.py:2"),
    "needs_options": (HEAD.format(default="", name="needs_options"), "have no valid defaults: TypeError: "),
    "misnamed": (HEAD.format(default=" = 1", name="other"), "has the name other, not misnamed"),
}


def test_broken_packages_name_themselves_and_disturb_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, (text, _) in BROKEN.items():
        add(tmp_path, monkeypatch, name, text)
    found = broken_protocols()
    assert set(found) == set(BROKEN)
    for name, (_, why) in BROKEN.items():
        assert re.search(why, found[name]), found[name]
    assert run(["protocols"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "hydra" in told and all(f"{name} cannot be used: the " in told for name in BROKEN)
    assert run(["protocols", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["broken"] == found and "hydra" in [one["name"] for one in content["protocols"]]
    assert run(["simulate", "--protocol", "unordered", "--messages", "3"]) == 0
    capsys.readouterr()
    assert run(["simulate", "--protocol", "divides"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be imported: ZeroDivisionError: division by zero" in line


def test_two_packages_do_not_share_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.catalogue.FOLDERS", ("ordercast.protocols", "ordercast.protocols"))
    with pytest.raises(LocalError, match="have the same name"):
        protocol_names()


def test_a_codec_names_the_type_that_it_cannot_take() -> None:
    class Fine(Message, frozen=True, tag=1):
        number: int

    class Odd(Message, frozen=True, tag=2):
        number: Annotated[int, msgspec.Meta(lt=1 << 63)]

    with pytest.raises(LocalError, match=r"test_catalogue.*Odd: .*bounds"):
        Codec((Fine, Odd))
