"""Cluster files for tests: small, on loopback, at ports that are free."""

from pathlib import Path

from ordercast.net.cluster.key_file import create_keys
from ordercast.net.transports.address import free_ports


def write_cluster(
    folder: Path,
    *,
    protocol: str = "unordered",
    receivers: int = 2,
    top: str = "",
    options: str = "",
    more: str = "",
    hosts: tuple[int, ...] = (0, 1, 2),
    spares: tuple[int, ...] = (),
) -> Path:
    """A cluster file with its key; `hosts` are the ids that the plan asks for."""
    lines = [f'protocol = "{protocol}"', 'name = "test"', top, "[options]", options]
    lines += ["[groups]", f"orders = {receivers}", more]
    for host, port in zip(hosts, free_ports(len(hosts)), strict=True):
        lines += ["[[host]]", f"id = {host}", f'address = "127.0.0.1:{port}"']
        lines += ["start = false"] if host in spares else []
    path = folder / "cluster.toml"
    path.write_text("\n".join(line for line in lines if line) + "\n")
    create_keys(folder / "cluster.key", force=True)
    return path


def free_port_range(count: int) -> int:
    """The first of so many ports in a row that nobody uses just now."""
    while (ports := free_ports(count))[-1] != ports[0] + count - 1:
        pass
    return ports[0]


__all__ = ["free_port_range", "free_ports", "write_cluster"]
