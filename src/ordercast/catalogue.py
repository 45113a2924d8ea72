"""The catalogue: every protocol by name, wherever its package is.

Each package inside one of `FOLDERS` is a protocol and offers a `PROTOCOL`. Packages are imported by name when
somebody asks for them, so a protocol that stands on another may look it up here.
"""

import importlib
import pkgutil
from importlib.util import find_spec

from ordercast.core import LocalError, Protocol, exception_text

FOLDERS = ("ordercast.protocols", "ordercast.replication", "ordercast.transactions")
"""Packages of protocols, each above the one before."""


def protocol_names() -> list[str]:
    """The names of all protocols."""
    return sorted(_packages())


def find_protocol(name: str) -> Protocol:
    """The protocol of a name, or an error that lists the names there are."""
    packages = _packages()
    if name not in packages:
        raise LocalError(f"no protocol '{name}'; there are: {', '.join(sorted(packages))}")
    try:
        package = importlib.import_module(packages[name])
    except Exception as error:  # whatever an author's module raises
        raise LocalError(
            f"the package {packages[name]} cannot be imported: {exception_text(error)}"
        ) from error
    protocol = getattr(package, "PROTOCOL", None)
    if not isinstance(protocol, Protocol):
        raise LocalError(f"the package {packages[name]} offers no PROTOCOL")
    return protocol


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in FOLDERS:
        path = importlib.import_module(folder).__path__ if find_spec(folder) else ()
        for module in pkgutil.iter_modules(path):
            if module.ispkg and module.name in found:
                raise LocalError(f"{found[module.name]} and {folder}.{module.name} have the same name")
            if module.ispkg:
                found[module.name] = f"{folder}.{module.name}"
    return found
