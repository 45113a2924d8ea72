"""One run: starts what is needed and the processes, and leaves nothing behind."""

import importlib.util
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

import msgspec
import numpy as np

from benchmarks.groups.account import Figures, Notes, figures_of
from benchmarks.groups.load import Load
from benchmarks.peers.contender import MeasureError
from benchmarks.peers.stage import free_ports, server
from ordercast.net.cluster.key_file import create_keys

OPTIONS = {
    "hydra": "sequencers = 2\nspares = 0\nreplicas = 3\ncompact = true",
    "atoms": "nodes = 3\nstore = 3\ncompact = true",
}
CONTENDERS = ("redis", *OPTIONS)
START_S = 120.0
END_S = 60.0
STAGES = ("ready", "sent", "done")


def missing(contender: str) -> str:
    """Why a contender cannot take part; empty if it can."""
    if contender != "redis":
        return ""
    if shutil.which("redis-server") is None:
        return "there is no redis-server"
    return "" if importlib.util.find_spec("redis") else "there is no Python package redis"


def measure(load: Load, folder: Path) -> Figures:
    """Run a load and account for it."""
    with _serve(load, folder) as served:
        (folder / "load.json").write_bytes(msgspec.json.encode(served))
        _run(served, folder)
    notes = {
        node: Notes(
            int(np.load(folder / f"begun-{node}.npy")[0]),
            np.load(folder / f"sent-{node}.npy"),
            np.load(folder / f"got-{node}.npy"),
        )
        for node in load.nodes
    }
    return figures_of(notes, load.groups, load.seconds)


@contextmanager
def _serve(load: Load, folder: Path) -> Iterator[Load]:
    """Everything but the processes."""
    if load.contender != "redis":
        write_cluster(load, folder)
        yield load
        return
    (port,) = free_ports(1)
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    with server([*command, "--dir", str(folder)], port, folder):
        yield msgspec.structs.replace(load, port=port)


def write_cluster(load: Load, folder: Path) -> None:
    """A cluster in which the processes of the run are all hosts."""
    create_keys(folder / "cluster.key")
    nodes = load.nodes
    lines = [
        f'name = "groups"\nprotocol = "{load.contender}"\nsenders = {len(nodes)}\ncolocated = true',
        "trace = false",
        f"[options]\n{OPTIONS[load.contender]}\n[groups]",
        *group_lines(load),
        '[transport]\nkind = "udp"\n[security]\nkey_file = "cluster.key"',
    ]
    for node, port in zip(nodes, free_ports(len(nodes)), strict=True):
        lines.append(f'[[host]]\nid = {node}\naddress = "127.0.0.1:{port}"')
    (folder / "cluster.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def group_lines(load: Load) -> list[str]:
    """The groups of the cluster. Those of Hydra do not overlap: there, each process is one."""
    if load.contender == "hydra":
        return [f"process{node} = 1" for node in load.nodes]
    return [f"group{group} = {list(members)}" for group, members in enumerate(load.groups)]


def _run(load: Load, folder: Path) -> None:
    with (folder / "errors.txt").open("w") as log, ExitStack() as running:
        processes = [running.enter_context(_start(folder, node, log)) for node in load.nodes]
        running.callback(_kill, processes)
        late = threading.Timer(START_S + load.seconds + END_S, _kill, (processes,))
        late.start()
        running.callback(late.cancel)
        for stage in STAGES:
            counts = _await_all(processes, stage, folder)
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(f"{json.dumps(counts)}\n")
                process.stdin.flush()


def _start(folder: Path, node: int, log: TextIO) -> "subprocess.Popen[str]":
    """One process of the run; as a context it is waited for, and its pipes are closed."""
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.groups.member", str(folder), str(node)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )


def _kill(processes: Sequence[subprocess.Popen[str]]) -> None:
    """All have left their notes, or have failed."""
    for process in processes:
        process.kill()


def _await_all(processes: Sequence[subprocess.Popen[str]], stage: str, folder: Path) -> list[int]:
    """How many messages all processes have sent to each group so far."""
    totals: list[int] = []
    for process in processes:
        assert process.stdout is not None
        word, _, counts = process.stdout.readline().strip().partition(" ")
        if word == stage:
            totals = [sum(both) for both in zip_longest(totals, json.loads(counts), fillvalue=0)]
        else:
            said = (folder / "errors.txt").read_text(errors="replace").strip().splitlines()
            raise MeasureError(said[-1] if said else f"a process ended or hung before it was {stage}")
    return totals
