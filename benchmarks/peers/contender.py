"""What a contender is: something that can be measured; and a peer: one that the roles are played on."""

import importlib.util
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.client_tasks import ClientTasks
from benchmarks.peers.roles import Clients, Flow, Recorder

Ports = Sequence[int]


class MeasureError(Exception):
    """A contender did not get through a measurement; the text says why."""


@dataclass(frozen=True, slots=True)
class Task:
    """One measurement; without clients it is the pipelined one."""

    size: int
    seconds: float
    receivers: int
    clients: int = 0
    tasks: bool = False
    """Whether each client is a task of its own; otherwise their messages are batched by hand."""

    @property
    def name(self) -> str:
        """As the table says it."""
        if not self.clients:
            return f"{self.size} B pipelined"
        if self.clients == 1 and not self.tasks:
            return f"{self.size} B, 1 client"
        clients = f"{self.clients} client{'s' if self.clients > 1 else ''}"
        return f"{self.size} B, {clients}, {'a task each' if self.tasks else 'batched by hand'}"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a measurement found; latencies only where there are clients."""

    ordered_per_s: float
    lost: int
    violations: int
    p50_us: float | None = None
    p99_us: float | None = None


class Contender(ABC):
    """Someone who takes part."""

    name: str
    title: str

    @abstractmethod
    def missing(self) -> str:
        """What keeps it from taking part, with the way to get it; empty when nothing does."""

    def takes(self, task: Task) -> bool:
        """Whether this measurement is one of its own; not if it would be another contender's again."""
        return True

    @abstractmethod
    def measure(self, task: Task, folder: Path) -> Figures:
        """Take one measurement, with a scratch folder; raises `MeasureError`."""


class Peer(ABC):
    """How one other system carries the messages of the roles; each method but `serve` has its own process."""

    name: str
    title: str
    server = ""
    """The program that must be on the path; empty when it needs none."""
    packages: Sequence[tuple[str, str]] = ()
    """The client packages: the module to import and the name to install it by."""
    window = 20_000
    """How far the publisher may be ahead of the slowest receiver, in messages."""
    publishes_inside = False
    """Whether the publisher is the first receiver as well, because that is the best place for it."""

    @abstractmethod
    def serve(self, folder: Path, receivers: int) -> AbstractContextManager[Ports]:
        """Start what must run before the roles, and stop it at the end."""

    @abstractmethod
    def receive(self, ports: Ports, recorder: Recorder) -> None:
        """Be a receiver until it is finished."""

    @abstractmethod
    def publish(self, ports: Ports, flow: Flow, inside: Recorder | None) -> None:
        """Be the publisher until its time is over; `inside` is the receiver to be besides."""

    @abstractmethod
    def run_clients(self, ports: Ports, clients: Clients) -> None:
        """Be the clients, batched by hand, and the first receiver until they are finished."""

    @abstractmethod
    def run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        """Be the clients, a task each, and the first receiver until they are finished."""

    def takes(self, task: Task) -> bool:
        """As `Contender.takes`."""
        return True

    def missing(self) -> str:
        """What is not installed here, and how to get it."""
        wanted = []
        if self.server and shutil.which(self.server) is None:
            wanted.append(f"no {self.server} (Debian: apt-get install {self.server})")
        absent = [install for module, install in self.packages if importlib.util.find_spec(module) is None]
        if absent:
            wanted.append(f"no client package (pip install {' '.join(absent)})")
        return "; ".join(wanted)
