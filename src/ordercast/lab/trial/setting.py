"""The setting of a scenario on this machine: the ports of hosts, their folders, and their start time."""

from pathlib import Path

import msgspec

from ordercast.core import HostId, Nanos, Plan
from ordercast.net.cluster.cluster import (
    DATAGRAM_LOOPBACK,
    Cluster,
    HostSpec,
    MetricsSpec,
    SecuritySpec,
    TransportSpec,
)
from ordercast.net.transports.address import Address
from ordercast.scenario.spec import Scenario

LOOPBACK = "127.0.0.1"
EACH_ALONE = 1
"""A size of bundles that is so small that each message is its own bundle."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What each host process of a live scenario must know."""

    scenario: Scenario
    run: str
    folder: str
    """The folder of state, keys and logs."""
    traces: str
    ports: dict[HostId, int]
    answer_ports: dict[HostId, int]
    """The ports at which the closed-loop clients of each host get the answers of receivers."""
    epoch_ns: Nanos
    """The wall clock's reading at which clocks that drift are right."""

    @property
    def key_file(self) -> Path:
        """The seal of datagrams."""
        return Path(self.folder) / "cluster.key"

    @property
    def diaries(self) -> Path:
        """The folder in which the applications of hosts write down what they see."""
        return Path(self.folder) / "diaries"

    def log_path(self, host: HostId) -> Path:
        """The log file of a host."""
        return Path(self.folder) / f"{host}.log"

    def cluster(self) -> Cluster:
        """The setting as a cluster whose hosts are all on this machine."""
        scenario, folder = self.scenario, Path(self.folder)
        return Cluster(
            file=folder / "cluster.toml",
            name=self.run,
            protocol=scenario.protocol,
            options=scenario.options,
            groups={f"group-{n}": members for n, members in enumerate(scenario.deployment().groups)},
            senders=scenario.senders,
            colocated=scenario.colocated,
            joiners=scenario.joiners,
            hosts=tuple(
                HostSpec(id=host, address=Address(LOOPBACK, port))
                for host, port in sorted(self.ports.items())
            ),
            transport=TransportSpec(datagram_bytes=DATAGRAM_LOOPBACK),
            security=SecuritySpec(key_file=self.key_file),
            metrics=MetricsSpec(),
            bundle_bytes=scenario.bundle_bytes or EACH_ALONE,
            inbox_bytes=16 << 20,
            trace=True,
            folder=folder,
        )


def hosts_of(plan: Plan) -> list[HostId]:
    """The hosts of a plan, in order."""
    return sorted({node.host for node in plan.nodes})
