"""Ordercast itself, through its own command `ordercast bench`: Hydra with two sequencers.

Once on as few processes as the others have: each receiver's process has a replica of the configuration
service, and two have a sequencer (option `compact`). And once with a process for each, eight in all.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.contender import Contender, Figures, MeasureError, Task
from benchmarks.peers.stage import GRACE_S, die_with_parent

SEQUENCERS = 2
HELP_S = 60.0


class OrdercastBench(Contender):
    """The one that the others are compared with."""

    name, title = "ordercast", "ordercast (Hydra, compact)"
    compact = True

    def missing(self) -> str:
        """Whether the command is there."""
        found = subprocess.run(
            [*program(), "bench", "--help"], capture_output=True, timeout=HELP_S, check=False
        )
        return "" if found.returncode == 0 else "this version has no command `ordercast bench`"

    def measure(self, task: Task, folder: Path) -> Figures:
        """Run the command and read what it found."""
        process = subprocess.Popen(
            [*program(), *arguments_for(task, compact=self.compact)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        try:
            said, complained = process.communicate(timeout=task.seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            raise MeasureError(f"not done after {task.seconds + GRACE_S:.0f} s") from None
        finally:
            stop(process)
        try:
            return figures_from(json.loads(said), task)  # also with exit code 1, which means violations
        except (ValueError, KeyError, TypeError) as error:
            lines = complained.strip().splitlines() or [repr(error)]
            raise MeasureError(f"exit code {process.returncode}: {lines[-1]}") from error


class OrdercastApart(OrdercastBench):
    """The same with a process for each role."""

    name, title = "ordercast-apart", "ordercast (Hydra, 8 processes)"
    compact = False


def program() -> list[str]:
    """The console script beside this Python, or else the module."""
    script = Path(sys.executable).parent / "ordercast"
    return [str(script)] if script.exists() else [sys.executable, "-m", "ordercast.cli"]


def arguments_for(task: Task, *, compact: bool) -> list[str]:
    """The same measurement in the words of the command."""
    load = ["--clients", str(task.clients)] if task.clients else ["--max"]
    if task.tasks:
        load.append("--tasks")
    layout = f"compact={str(compact).lower()}"
    return [
        "bench", "--protocol", "hydra", "--receivers", str(task.receivers),
        "--option", f"sequencers={SEQUENCERS}", "--option", layout, "--size", str(task.size), *load,
        "--seconds", f"{task.seconds:g}", "--json",
    ]  # fmt: skip


def figures_from(found: dict[str, Any], task: Task) -> Figures:
    """The figures in the command's JSON."""
    latency = found["latency_us"] if task.clients else {}
    return Figures(
        float(found["ordered_per_s"]),
        int(found["lost"]),
        len(found["violations"]),
        latency.get("p50"),
        latency.get("p99"),
    )


def stop(process: subprocess.Popen[str]) -> None:
    """Ask it to end, for it has processes of its own to stop; insist after a while."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
