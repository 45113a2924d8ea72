"""The client of a measured service, in its own process: `python -m ordercast.lab.bench.service_member`.

Lines on its standard input tell it what to do; it ends when the input ends. Operations are drawn before the
measurement, so that drawing them costs nothing in it.
"""

import asyncio
import cProfile
import sys
import time
from array import array
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from ordercast.core import SECOND, LocalError, Nanos, Refused, ServiceFailed
from ordercast.lab.bench.call_log import CallLog
from ordercast.lab.bench.member import hear_order, hear_orders, tell
from ordercast.lab.bench.service_spec import ServiceBenchSpec
from ordercast.lab.bench.spec import GROUP
from ordercast.net.api.client import Client
from ordercast.net.api.connect import Calling
from ordercast.net.api.open_calls import OpenCalls, Unknown
from ordercast.net.host.loop import run
from ordercast.services import Operations, find_service, service_class, workload_of
from ordercast.services.workload import GENERAL

DRAWN = 4096
"""How many different operations are drawn; calls repeat them."""
DRAWS_MAX = 20
"""If one kind of operation is wanted, so many are drawn at most for each that is."""
PATIENCE_S = 60.0
UNKNOWN_S = 10.0


class ServiceReport(msgspec.Struct):
    """What the client measured; times are those of the machine's clock."""

    latencies: str
    """The file with the time of each answer and how long it took, two numbers each."""
    answered: int
    unknown: int
    violations: list[str]
    checked: int


class Callers:
    """Tasks that call, and their log."""

    def __init__(self, calls: OpenCalls, spec: ServiceBenchSpec) -> None:
        service = service_class(spec.service)
        self._spec = spec
        self._service = find_service(spec.service)
        self._client: Client[Any] = Client(calls, service)
        drawing, rng = Operations(workload_of(spec.service), spec.reads, spec.size), Random(1)
        drawn = draw_calls(drawing, rng, spec.only)
        self._drawn = [(getattr(service, name), arguments) for name, arguments in drawn]
        self._log = CallLog()
        (node,) = calls.host.backlogs
        calls.on_submit = self._log.on_submit
        calls.host.add_answer_listener(node, self._log.on_answer)
        self._times = array("q")
        self._called = 0
        self._unknown = 0

    async def first(self) -> None:
        """Call until somebody answers."""
        async with asyncio.timeout(PATIENCE_S):
            with suppress(Refused, ServiceFailed):
                await self._call()

    async def work(self, seconds: float) -> None:
        """Let all tasks call for so long."""
        end = time.time_ns() + round(seconds * SECOND)
        await asyncio.gather(*(self._be_task(end) for _ in range(self._spec.tasks)))

    async def _be_task(self, end: Nanos) -> None:
        times, start = self._times, time.time_ns()
        while start < end:
            try:
                await self._call()
            except (Refused, ServiceFailed):
                pass  # an answer too
            except Unknown:
                self._unknown += 1
                start = time.time_ns()
                continue
            now = time.time_ns()
            times.append(now)
            times.append(now - start)
            start = now

    def _call(self) -> Awaitable[object]:
        self._called += 1
        operation, arguments = self._drawn[self._called % DRAWN]
        return self._client.call(operation, *arguments)

    def report(self, folder: Path) -> ServiceReport:
        """What came of it."""
        path = folder / "answered.bin"
        path.write_bytes(self._times.tobytes())
        sure = not self._unknown
        return ServiceReport(
            latencies=str(path),
            answered=self._log.answered,
            unknown=self._unknown,
            violations=self._log.violations(self._service) if sure else [],
            checked=self._log.answered if sure else 0,
        )


def draw_calls(drawing: Operations, rng: Random, only: str) -> list[tuple[str, tuple[object, ...]]]:
    """Operations to call, of one kind if it is named."""
    drawn: list[tuple[str, tuple[object, ...]]] = []
    for number in range(DRAWN * DRAWS_MAX):
        name, arguments = drawing.draw_call(rng, number)
        if name != GENERAL and only in ("", name):  # the tasks call operations, one after the other
            drawn.append((name, arguments))
            if len(drawn) == DRAWN:
                return drawn
    raise LocalError(f"the service's generator hardly ever draws an operation '{only}'")


async def main(folder: Path, host: int) -> None:
    """Be the client until told to end."""
    spec = msgspec.json.decode((folder / "spec.json").read_bytes(), type=ServiceBenchSpec)
    orders = await hear_orders()
    calling = Calling(folder / "cluster.toml", service_class(spec.service), "", host, UNKNOWN_S, GROUP)
    async with calling as calls:
        callers = Callers(calls, spec)
        await callers.first()
        tell({"ready": host})
        await hear_order(orders)
        tell({"begun": time.time_ns()})
        profile = cProfile.Profile() if spec.profile else None
        if profile is not None:
            profile.enable()
        await callers.work(spec.warmup_s + spec.seconds)
        if profile is not None:
            profile.disable()
            profile.dump_stats(spec.profile)
        tell({"called": host})
        await hear_order(orders)
        (folder / "report.json").write_bytes(msgspec.json.encode(callers.report(folder)))
        tell({"reported": host})
        await hear_order(orders)


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), int(sys.argv[2])))
