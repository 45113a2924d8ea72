"""The catalogue: every protocol by name, wherever its package is.

Each package inside one of `FOLDERS` is a protocol and defines a `PROTOCOL`. A package is imported when it is
looked up, so a protocol that builds on another one may look it up here.
"""

import importlib
import pkgutil
from importlib.util import find_spec

from ordercast.core import LocalError, Protocol, exception_text

FOLDERS = ("ordercast.protocols", "ordercast.replication", "ordercast.transactions")
"""Packages of protocols. Each may import those before it."""


def protocol_names() -> list[str]:
    """The names of all protocols."""
    return sorted(_packages())


def find_protocol(name: str) -> Protocol:
    """The protocol with this name, or `LocalError` with a list of all names."""
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
        raise LocalError(f"the package {packages[name]} does not define PROTOCOL")
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
