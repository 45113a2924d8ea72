"""`ordercast node`: one host of a cluster."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.abc import MetaPathFinder
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.config import CONFIG, ConfigOption
from ordercast.core import HostId, LocalError, ProtocolFailed
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.host_mark import Mark, leave_mark, mark_path
from ordercast.net.cluster.leftovers import forget_left, note_left
from ordercast.net.cluster.socket_file import folder_identity

if TYPE_CHECKING:
    from ordercast.net.host.live_host import LiveHost

DEFECT = 70
GRACE_S = 5.0
"""Seconds that a host has to stop cleanly after its supervisor has gone."""

DRAIN_S = 2.0
"""Seconds that a stopping host has to send what applications handed over."""
LEFT_BEHIND = 1
PROTOCOL_FAILED = 1
"""Exit code if a handler of the protocol raised an exception: a defect of the protocol, not of ordercast."""
CANNOT_GO_ON = 2
"""Exit code if the host cannot go on: it cannot save its state, or the others do not let it in."""

_log = logging.getLogger("ordercast")


def node(
    id: Annotated[int, typer.Option("--id", help="Id of the host in the cluster file.", metavar="N")],
    config: ConfigOption = CONFIG,
    run: Annotated[
        str,
        typer.Option(help="Name of the run in traces, the same on all hosts. Default: the cluster name."),
    ] = "",
    leash: Annotated[
        int | None,
        typer.Option(help="Exit when this file descriptor is closed (for supervisors).", metavar="FD"),
    ] = None,
    detached: Annotated[
        bool,
        typer.Option(
            "--detached",
            help="Leave a mark in the cluster's folder, by which `ordercast cluster` finds this process"
            " (for supervisors).",
        ),
    ] = False,
    impair: Annotated[
        int | None,
        typer.Option(
            help="Seed of injected network faults, which the control socket can then set (for trials).",
            metavar="SEED",
        ),
    ] = None,
    as_new: Annotated[
        bool,
        typer.Option("--as-new", help="Set the saved state aside, and come back as a new member."),
    ] = False,
) -> int:
    """Run one host of a cluster in the foreground, with all its processes.

    The host stops cleanly on SIGTERM or Ctrl-C. Its log goes to standard error. On one machine,
    [bold]ordercast cluster up[/] starts all hosts at once. On several machines, copy cluster.toml and the key
    file to each machine and run its host there.

    [bold]Example[/]

    ordercast node --id 0 --config cluster.toml
    """
    sys.meta_path.insert(0, _WithoutPandas())
    stopper = Stopper()
    if leash is not None:
        _hold(leash, stopper)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format=f"%(asctime)s %(levelname)s host {id}: %(message)s"
    )
    cluster = load_cluster(config)
    cluster.host(id)
    run = run or cluster.name
    if detached:
        leave_mark(mark_path(cluster.folder, id), Mark(os.getpid(), run, time.time()))
    from ordercast.net.host.loop import run as run_loop

    draws = None if impair is None else Random(f"{impair}/impair/{id}")
    return int(run_loop(_serve(cluster, id, run, stopper, draws, detached, as_new)))


class _WithoutPandas(MetaPathFinder):
    """Hides pandas: Arrow would import it, which takes a second, and a host does not use it."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Report pandas as not installed."""
        if fullname == "pandas":
            raise ModuleNotFoundError("a host does not use pandas", name=fullname)


class Stopper:
    """Stops the host from any thread, also before its loop runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = False
        self._stop: Callable[[], None] | None = None

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the host; it is safe to call from any thread."""
        with self._lock:
            self._stop = stop
            if self._wanted:
                stop()

    def stop(self) -> None:
        """Stop the host."""
        with self._lock:
            self._wanted = True
            if self._stop is not None:
                self._stop()


def _hold(leash: int, stopper: Stopper) -> None:
    """Watch the leash in a thread, so that a host with a hanging loop stops too."""
    try:
        os.fstat(leash)
    except OSError as error:
        raise LocalError(f"--leash {leash} is not an open file descriptor") from error
    threading.Thread(target=_watch, args=(leash, stopper), name="leash", daemon=True).start()


def _watch(leash: int, stopper: Stopper) -> None:
    while os.read(leash, 1):
        pass  # nobody writes to it; if somebody did, the supervisor would be alive
    stopper.stop()
    time.sleep(GRACE_S)
    os._exit(LEFT_BEHIND)


def ends_host(context: Mapping[str, Any]) -> bool:
    """Whether an unexpected error that the event loop reports stops the host.

    An error in the work of the host itself does, because the state that it left is unknown. An error in a
    task that only answers a request at the control socket or for metrics does not: otherwise a request could
    stop the host.
    """
    return "handle" in context or "protocol" in context


def _note_backlog(cluster: Cluster, host: "LiveHost") -> None:
    """Note for `cluster down` how many messages will not be sent."""
    left = sum(backlog.messages for backlog in host.backlogs.values())
    if left:
        _log.warning("%d messages in the backlog were not sent", left)
    if host.in_doubt:
        _log.warning("%d bundles were sent, but it is not known that they arrived", host.in_doubt)
        left += host.in_doubt
    with suppress(OSError):  # the folder may have vanished, which stops the host too
        note_left(cluster.folder, host.host, left)


def _end_with_folder(cluster: Cluster, host: "LiveHost", stop: Callable[[], None]) -> None:
    """Stop the host when its folder vanishes: nobody could find it any more."""
    folder = folder_identity(cluster.folder)
    host.each_second(lambda: None if folder_identity(cluster.folder) == folder else stop())


async def _serve(
    cluster: Cluster,
    id: HostId,
    run: str,
    stopper: Stopper,
    draws: Random | None,
    detached: bool,
    as_new: bool,
) -> int:
    # Imported here, so that the leash is watched before libraries are imported.
    from ordercast.net.cluster.as_new import screen_as_new
    from ordercast.net.cluster.open_host import open_host
    from ordercast.net.host.recording.recorder import TraceRecorder
    from ordercast.net.tools.attendance import Attendance

    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop() -> None:
        loop.call_soon_threadsafe(stopping.set)

    stopper.attach(stop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    plan = cluster.plan()
    if as_new:
        screen_as_new(cluster, plan, id)
    nodes = [node.id for node in plan.nodes if node.host == id]
    late = cluster.comes_late(id)
    recorder = TraceRecorder(cluster.traces, run, id, nodes, late=late) if cluster.trace else None
    host = open_host(cluster, id, plan=plan, recorder=recorder, impaired=draws, as_new=as_new)
    defects: list[str] = []

    def on_defect(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if ends_host(context):
            defects.append(str(context.get("exception") or context["message"]))
            stopping.set()
        if len(defects) <= 1:
            loop.default_exception_handler(context)

    loop.set_exception_handler(on_defect)
    host.on_failure(lambda _: stopping.set())
    if detached:
        _end_with_folder(cluster, host, stopping.set)
    await host.start()
    try:
        async with Attendance(host, cluster, stopping.set) as attendance:
            forget_left(cluster.folder, id)
            _log.info("runs %s at %s", ", ".join(cluster.node_names[id]), cluster.host(id).address)
            await stopping.wait()
            attendance.control.refuse(f"host {id} is stopping and takes no more messages")
            await host.drain(DRAIN_S)
            _note_backlog(cluster, host)
    finally:
        await host.stop()
    if isinstance(host.failure, ProtocolFailed):
        _log.critical("stopped: %s", host.failure)
        return PROTOCOL_FAILED
    if isinstance(host.failure, LocalError):
        _log.critical("stopped: %s", host.failure)
        return CANNOT_GO_ON
    if host.failure is not None or defects:
        _log.critical("stopped by a defect in ordercast: %s", host.failure or defects[0])
        return DEFECT
    _log.info("stopped")
    return 0
