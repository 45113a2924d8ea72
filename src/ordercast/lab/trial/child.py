"""A host process of a live scenario: a live host and its applications, directed by the conductor."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import msgspec

from ordercast.core import HostId, LocalError, OrdercastError, exception_text
from ordercast.lab.trial.applications import LiveApplications
from ordercast.lab.trial.diary import Diary
from ordercast.lab.trial.faulty_store import FaultyStore
from ordercast.lab.trial.load import Load, make_load
from ordercast.lab.trial.messages import (
    Begin,
    ChangeMembers,
    Impair,
    Life,
    Order,
    Report,
    StepClock,
    Stop,
    TroubleDisk,
)
from ordercast.lab.trial.setting import Setting
from ordercast.net.cluster.open_host import open_host
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.loop import run as run_loop
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.transports.impair import ImpairedTransport
from ordercast.scenario.clock import Clock, clocks_of

REPORT_S = 0.02
DRAIN_S = 1.0
UNREPORTED_MAX = 1 << 20
"""More messages than a host can have submitted and not reported when it was killed. Where its disk is lost
too, their identities must not be given to others."""
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG

_encode = msgspec.json.encode
_decoder: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)


def run_child(setting: bytes, life: bytes, host: HostId, connection: Connection) -> None:
    """Run a host until it is told to stop, or the conductor is gone."""
    _leave_no_orphan()
    told = msgspec.json.decode(setting, type=Setting)
    log = os.open(told.log_path(host), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.basicConfig(level=logging.WARNING, format=f"%(asctime)s %(levelname)s host {host}: %(message)s")
    child = _Child(told, msgspec.json.decode(life, type=Life), host, connection)
    try:
        run_loop(child.serve())
    except OrdercastError as error:
        child.tell(Report(error=str(error)))
        sys.exit(1)
    except Exception as error:
        logging.exception("host %d", host)
        child.tell(Report(error=f"a defect of ordercast: {exception_text(error)}"))
        sys.exit(1)


def _leave_no_orphan() -> None:
    """Die with the process that started this one, even while stopped; where the system cannot do that, the
    end of the connection must do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the conductor
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


class _Child:
    def __init__(self, setting: Setting, life: Life, host: HostId, connection: Connection) -> None:
        self._setting = setting
        self._life = life
        self._host = host
        self._connection = connection
        self._stopping: asyncio.Event | None = None
        clock = clocks_of(setting.scenario, sorted(setting.ports)).get(host, Clock())
        clock.step(life.clock_step_ns)
        self._clock = clock

    def tell(self, report: Report) -> None:
        """Send a report to the conductor."""
        with contextlib.suppress(OSError):
            self._connection.send_bytes(_encode(report))

    def _now(self) -> int:
        epoch = self._setting.epoch_ns
        return epoch + self._clock.read(time.time_ns() - epoch)

    async def serve(self) -> None:
        """Start the host, follow commands, send reports, and stop."""
        setting, host = self._setting, self._host
        loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        plan = setting.scenario.plan()
        nodes = [node.id for node in plan.nodes if node.host == host]
        recorder = TraceRecorder(Path(setting.traces), setting.run, host, nodes)
        draws = Random(f"{setting.scenario.seed}/impair/{host}/{int(self._life.first)}")
        live = open_host(
            setting.cluster(),
            host,
            plan=plan,
            recorder=recorder,
            impaired=draws,
            clock=self._now,
            as_new=self._life.as_new,
            store_type=FaultyStore,
        )
        transport = live.wire.transport
        assert isinstance(transport, ImpairedTransport)
        transport.set_impairment(self._life.impairment)
        for node, count in self._life.submitted.items():
            live.skip_messages(node, count + UNREPORTED_MAX)
        remembers, values = not self._life.as_new and live.remembers, setting.scenario.history
        diary = Diary(setting.diaries, live, remembers=remembers, values=values)
        LiveApplications(live)
        load = make_load(live, self._life, setting, diary, self._now)
        await live.start()
        begun: list[asyncio.Task[None]] = []

        def obey() -> None:
            try:
                while self._connection.poll():
                    self._obey(_decoder.decode(self._connection.recv_bytes()), live, load, begun)
            except (EOFError, OSError):  # the conductor has gone
                loop.remove_reader(self._connection.fileno())
                self._stop()

        loop.add_reader(self._connection.fileno(), obey)
        try:
            await self._report(live, load, transport)
        finally:
            for task in begun:
                task.cancel()
            if live.failure is None:
                await live.drain(DRAIN_S)
            load.close()
            await live.stop()
            diary.close()

    def _stop(self) -> None:
        if self._stopping is not None:
            self._stopping.set()

    def _obey(self, order: Order, live: LiveHost, load: Load, begun: list[asyncio.Task[None]]) -> None:
        transport = live.wire.transport
        match order:
            case Begin():
                begun.append(asyncio.get_running_loop().create_task(load.run(order.start_ns)))
            case Impair() if isinstance(transport, ImpairedTransport):
                transport.set_impairment(order.impairment)
            case StepClock():
                self._now()
                self._clock.step(order.by_ns)
            case TroubleDisk() if isinstance(live.store, FaultyStore):
                live.store.trouble(order.what, order.duration)
            case ChangeMembers():
                with contextlib.suppress(LocalError):  # such as a node that lost its state meanwhile
                    getattr(live, order.request)(order.node, order.group)
            case Stop():
                self._stop()

    async def _report(self, live: LiveHost, load: Load, transport: ImpairedTransport) -> None:
        """Report progress whenever it has changed, until asked to stop."""
        assert self._stopping is not None
        told: Report | None = None
        while not self._stopping.is_set():
            if live.failure is not None:
                raise live.failure
            report = _report_of(live, load, transport)
            if report != told:
                self.tell(report)
                told = report
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), REPORT_S)
        self.tell(_report_of(live, load, transport))


def _report_of(live: LiveHost, load: Load, transport: ImpairedTransport) -> Report:
    metrics = live.metrics
    return Report(
        done=load.done,
        submitted=dict(load.submitted),
        expected=load.expected,
        delivered=metrics.messages_delivered,
        dropped=metrics.drops_notified,
        answered=metrics.operations_answered + (metrics.unconfirmed if live.plan.service is not None else 0),
        waiting=metrics.backlog_messages,
        lost=transport.lost + transport.blocked + transport.losses,
        overflowed=metrics.overflow,
        refused=load.refused,
        timed_out=load.timed_out,
        late_ns=load.late_ns,
    )
