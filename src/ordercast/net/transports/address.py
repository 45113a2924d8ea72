"""The address of a host: an IP address or a name, and a port."""

import ipaddress
import os
import re
import socket
from collections import deque
from typing import NamedTuple

from ordercast.core import LocalError

_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")
PORT_MAX = 65_535


class Address(NamedTuple):
    """A host and a port, as sockets take them."""

    host: str
    port: int

    def __str__(self) -> str:
        """The address as text; an IPv6 address is in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        ip = _ip(self.host)
        return ip.is_loopback if ip else self.host == "localhost"

    @property
    def version(self) -> int | None:
        """4 or 6; None for a name, which may be either."""
        ip = _ip(self.host)
        return ip.version if ip else None


def parse_address(text: str) -> Address:
    """An address such as ``10.0.0.1:7400``, ``[::1]:7400`` or ``one.example:7400``."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= PORT_MAX:
        raise LocalError(f"'{text}' is not an address: expected HOST:PORT with a port from 1 to {PORT_MAX}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not isinstance(_ip(host), ipaddress.IPv6Address):
            raise LocalError(f"'{text}' is not an address: only an IPv6 address may be in brackets")
    elif ":" in host:
        raise LocalError(f"'{text}' is not an address: write an IPv6 address in brackets, as in [::1]:7400")
    ip = _ip(host)
    if ip is None and (not _NAME.fullmatch(host) or host.replace(".", "").isdigit()):
        raise LocalError(f"'{text}' is not an address: '{host}' is neither an IP address nor a host name")
    if ip is not None and (ip.is_unspecified or ip.is_multicast):
        raise LocalError(f"'{text}' is not an address that others can send to: name the host's own address")
    return Address(str(ip) if ip else host, int(port))


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports that are free now, for both UDP and TCP, and that no other process finds while this one runs.

    They are below the ports that systems give to sockets that ask for any port. A process takes them from
    blocks that it keeps to itself, so that a host which is down for a while has its port when it comes back.
    """
    global _blocks
    if _blocks.process != os.getpid():
        _blocks.close()  # what was inherited still belongs to the parent
        _blocks = _Blocks()
    return _blocks.find(count, host)


class _Blocks:
    """Blocks of ports. A process owns a block while it has a socket at the first port of the block."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._place = self.process * _STRIDE
        self._ports: deque[int] = deque()
        self._owned: deque[int] = deque()

    def find(self, count: int, host: str) -> list[int]:
        found: list[int] = []
        for _ in range(_BLOCKS):
            while self._ports and len(found) < count:
                port = self._ports.popleft()
                if is_free(Address(host, port)):
                    found.append(port)
            if len(found) == count:
                return found
            self._own_next()
        raise LocalError(f"{host} does not have {count} free ports")

    def _own_next(self) -> None:
        """Own one more block, if the next one is not taken. Give up the oldest if there are enough."""
        first = _FIRST_PORT + self._place % _BLOCKS * _BLOCK_PORTS
        self._place += 1
        guard = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            guard.bind(("127.0.0.1", first))
        except OSError:
            guard.close()
            return
        self._ports.extend(range(first + 1, first + _BLOCK_PORTS))
        self._owned.append(guard.detach())  # until the process ends
        if len(self._owned) > _OWNED_MAX:
            os.close(self._owned.popleft())

    def close(self) -> None:
        while self._owned:
            os.close(self._owned.popleft())


_FIRST_PORT, _BLOCKS, _BLOCK_PORTS = 10_000, 200, 100
_OWNED_MAX = 20
_STRIDE = 97  # processes that start one after the other do not try the same blocks
_blocks = _Blocks()


def is_free(address: Address) -> bool:
    """Whether a socket can be bound to an address of this machine, for UDP and for TCP."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp:
        try:
            tcp.bind(address)
            udp.bind(address)
        except OSError:
            return False
        return True
