"""Two network namespaces with a cable between them: a network with an MTU of 1,500 on one machine.

It takes root and the tool `ip`. Where they are missing the tests that need them are skipped, and say why.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.processes import PATIENCE_S

CLONE_NEWNET = 0x40000000
MTU = 1_500


class Cable:
    """Two namespaces by name, and the address in each."""

    def __init__(self, name: str) -> None:
        self.names = (f"{name}a", f"{name}b")
        self.addresses = ("10.77.0.1", "10.77.0.2")


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Sockets that this thread makes meanwhile are in the namespace, and stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            if libc.setns(home, CLONE_NEWNET):  # every later socket would be on the wrong network
                os._exit(70)
    finally:
        os.close(home)
        os.close(there)


@contextmanager
def cable() -> Iterator[Cable]:
    """Make the namespaces, and remove them at the end."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces take root and the tool `ip`")
    made = Cable(f"oc{os.getpid()}")
    try:
        try:
            _lay(made)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        yield made
    finally:
        for name in made.names:
            if Path(f"/run/netns/{name}").exists():
                _ip(f"netns del {name}")


def _lay(made: Cable) -> None:
    first, second = made.names
    _ip(f"netns add {first}")
    _ip(f"netns add {second}")
    _ip(f"-n {first} link add wire mtu {MTU} type veth peer name wire netns {second} mtu {MTU}")
    for name, address in zip(made.names, made.addresses, strict=True):
        _ip(f"-n {name} addr add {address}/24 dev wire")
        _ip(f"-n {name} link set wire up")
        _ip(f"-n {name} link set lo up")


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, timeout=PATIENCE_S)
