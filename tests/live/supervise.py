"""Supervises a cluster whose hosts are stand-ins: ``python -m tests.live.supervise CLUSTER [HOW]``."""

import asyncio
import sys
from pathlib import Path

from ordercast.core import HostId
from ordercast.net.cluster import supervisor
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor import Supervisor

STAND_IN = Path(__file__).with_name("stand_in.py")


def main(path: str, how: str) -> None:
    """Serve until told to stop."""
    cluster = load_cluster(Path(path))

    def command(host: HostId, leash: int | None) -> list[str]:
        assert leash is not None
        return [sys.executable, str(STAND_IN), str(cluster.socket_path(host)), str(leash), how]

    if how == "stubborn":
        supervisor.STOP_TIMEOUT_S = 3_600.0  # so that only the order to end can say when it is time to kill
    asyncio.run(Supervisor(cluster, "test", command).serve())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
