"""Starts the processes of one measurement, and stops every one of them whatever happens.

A process that is started here dies with its parent, even if that is killed. An interrupt from the keyboard
moves the parent alone, which then stops them in order.
"""

import ctypes
import multiprocessing
import os
import signal
import socket
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.account import (
    Numbers,
    check_known,
    count_lost,
    count_repeated,
    count_violations,
    percentile_us,
    slowest_rate,
)
from benchmarks.peers.client_tasks import ClientTasks
from benchmarks.peers.contender import Contender, Figures, MeasureError, Peer, Ports, Task
from benchmarks.peers.roles import Clients, Flow, Recorder, Shared

START_S = 15.0
GRACE_S = 40.0
"""How much longer than its measurement a run may take: start-up, warm-up and what is still under way."""

WINDOW_BYTES = 8 * 1024 * 1024
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends (Linux)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def server(command: Sequence[str], port: int, folder: Path) -> Iterator[None]:
    """Run a server, from the moment that it answers on its port."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    try:
        _wait_for_port(process, port, folder)
        yield
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_port(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    said = (folder / "server.log").read_text(errors="replace").strip().splitlines()
    raise MeasureError(f"the server did not start: {said[-1] if said else 'it said nothing'}")


class OnStage(Contender):
    """A peer as a contender: the roles are played on it by processes of their own."""

    def __init__(self, peer: Peer) -> None:
        self.name, self.title = peer.name, peer.title
        self.peer = peer

    def missing(self) -> str:
        """As the peer says."""
        return self.peer.missing()

    def takes(self, task: Task) -> bool:
        """As the peer says."""
        return self.peer.takes(task)

    def measure(self, task: Task, folder: Path) -> Figures:
        """Play the roles and account for what came of it."""
        with self.peer.serve(folder, task.receivers) as ports:
            _play(self.peer, ports, task, folder)
        return figures_of(task, folder)


def _play(peer: Peer, ports: Ports, task: Task, folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    shared = Shared(context, task.receivers)
    inside = bool(task.clients) or peer.publishes_inside
    roles: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
        (_be_receiver, (peer, ports, shared, index, folder)) for index in range(int(inside), task.receivers)
    ]
    roles.append((_be_clients if task.clients else _be_publisher, (peer, ports, shared, task, folder)))
    processes = [
        context.Process(target=_guarded, args=(role, folder, arguments), daemon=True)
        for role, arguments in roles
    ]
    try:
        for process in processes:
            process.start()
        _wait_for_all(processes, task.seconds + GRACE_S, folder)
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()
                process.join()


def _wait_for_all(processes: Sequence[SpawnProcess], seconds: float, folder: Path) -> None:
    """Until every process ended well; the first that fails ends the run."""
    deadline = time.monotonic() + seconds
    while any(process.exitcode is None for process in processes):
        if any(process.exitcode for process in processes):
            break
        if time.monotonic() > deadline:
            raise MeasureError(f"not done after {seconds:.0f} s")
        time.sleep(0.02)
    if any(process.exitcode for process in processes):
        error = folder / "error.txt"
        said = error.read_text().strip().splitlines() if error.exists() else ["a process died"]
        raise MeasureError(said[-1])


def _guarded(role: Callable[..., None], folder: Path, arguments: tuple[Any, ...]) -> None:
    """Play a role in this process; what goes wrong is left in the folder."""
    die_with_parent()
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() != parent.pid:
        raise SystemExit(1)  # the parent died while this process was starting
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        role(*arguments)
    except BaseException:
        (folder / "error.txt").write_text(traceback.format_exc())
        raise SystemExit(1) from None


def _be_receiver(peer: Peer, ports: Ports, shared: Shared, index: int, folder: Path) -> None:
    recorder = Recorder(index, shared)
    peer.receive(ports, recorder)
    _keep(folder, f"receiver-{index}", recorder.result())


def _be_publisher(peer: Peer, ports: Ports, shared: Shared, task: Task, folder: Path) -> None:
    flow = Flow(shared, task.size, task.seconds, min(peer.window, WINDOW_BYTES // task.size))
    inside = Recorder(0, shared) if peer.publishes_inside else None
    peer.publish(ports, flow, inside)
    _keep(folder, "source", flow.result())
    if inside is not None:
        _keep(folder, "receiver-0", inside.result())


def _be_clients(peer: Peer, ports: Ports, shared: Shared, task: Task, folder: Path) -> None:
    clients: Clients | ClientTasks
    recorder = Recorder(0, shared)
    if task.tasks:
        clients = ClientTasks(shared, task.size, task.seconds, task.clients, recorder)
        peer.run_tasks(ports, clients)
    else:
        clients = Clients(shared, task.size, task.seconds, task.clients, recorder)
        peer.run_clients(ports, clients)
    _keep(folder, "source", clients.result())
    _keep(folder, "receiver-0", recorder.result())


def _keep(folder: Path, name: str, arrays: dict[str, Numbers]) -> None:
    for part, values in arrays.items():
        np.save(folder / f"{name}-{part}.npy", values)


def figures_of(task: Task, folder: Path) -> Figures:
    """The figures of what the roles left in the folder."""
    start_ns, end_ns, sent = (int(value) for value in np.load(folder / "source-times.npy"))
    orders = [np.load(folder / f"receiver-{index}-order.npy") for index in range(task.receivers)]
    for order in orders:
        check_known(order, sent)
    lost, violations = count_lost(orders, sent), count_violations(orders) + count_repeated(orders)
    if not task.clients:
        marks = [np.load(folder / f"receiver-{index}-marks.npy") for index in range(task.receivers)]
        return Figures(slowest_rate(marks, start_ns, end_ns), lost, violations)
    rounds = np.load(folder / "source-rounds.npy")
    took_ns = rounds[(rounds[:, 0] >= start_ns) & (rounds[:, 0] < end_ns), 1]
    rate = len(took_ns) / ((end_ns - start_ns) / 1e9)
    return Figures(rate, lost, violations, percentile_us(took_ns, 50), percentile_us(took_ns, 99))
