"""Cluster files for tests: small, on loopback, at ports that are free."""

import os
import socket
from pathlib import Path

from ordercast.net.cluster.keys import create_keys


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses just now, for UDP and TCP alike."""
    taken: list[tuple[socket.socket, socket.socket]] = []
    while len(taken) < count:
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        tcp.bind(("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            udp.bind(tcp.getsockname())
        except OSError:
            udp.close()
            tcp.close()
        else:
            taken.append((tcp, udp))
    ports = [int(tcp.getsockname()[1]) for tcp, _ in taken]
    for pair in taken:
        for one in pair:
            one.close()
    return ports


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
    """The first of so many ports in a row that nobody uses just now, below those that systems deal out."""
    start = os.getpid() * 64 % 20_000
    for first in (10_000 + (start + step) % 20_000 for step in range(0, 20_000, count)):
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise OSError(f"no {count} free ports in a row")


def _is_free(port: int) -> bool:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        try:
            tcp.bind(("127.0.0.1", port))
            udp.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
