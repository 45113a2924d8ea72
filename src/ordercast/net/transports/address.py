"""The address of a host: an IP address or a name, and a port."""

import ipaddress
import os
import re
import socket
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
    """Ports that are free now, for both UDP and TCP.

    They are below the ports that systems give to sockets that ask for any port, and each process begins its
    search elsewhere. So another process is unlikely to take one before its host does.
    """
    global _looked
    found: list[int] = []
    start = os.getpid() * _STRIDE
    for _ in range(_PORTS):
        port = _FIRST_PORT + (start + _looked) % _PORTS
        _looked += 1
        if is_free(Address(host, port)):
            found.append(port)
            if len(found) == count:
                return found
    raise LocalError(f"{host} does not have {count} free ports")


_FIRST_PORT, _PORTS = 10_000, 20_000
_STRIDE = 9_967  # 300 processes that start one after the other begin at least 66 ports apart
_looked = 0


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
