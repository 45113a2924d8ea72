"""The catalogue: every protocol by name, wherever its package is.

Each package inside one of `FOLDERS` is a protocol and defines a `PROTOCOL`. A package is imported when it is
looked up, so a protocol that builds on another one may look it up here.
"""

import importlib
import pkgutil
from importlib.util import find_spec
from pathlib import Path

from ordercast.core import LocalError, Protocol, place_of

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
        raise LocalError(f"the package {packages[name]} cannot be imported: {_told(error)}") from error
    return _checked(getattr(package, "PROTOCOL", None), name, packages[name])


def serving_protocol(name: str) -> Protocol:
    """The protocol with this name, if it replicates services; otherwise `LocalError`, with those that do."""
    protocol = find_protocol(name)
    if protocol.serves:
        return protocol
    broken = broken_protocols()
    serving = [one for one in protocol_names() if one not in broken and find_protocol(one).serves]
    raise LocalError(
        f"{name} orders messages, and does not replicate services; these do: {', '.join(serving)}"
    )


def broken_protocols() -> dict[str, str]:
    """The protocols that cannot be used, by name, each with the reason; the others are not disturbed."""
    broken: dict[str, str] = {}
    for name in protocol_names():
        try:
            find_protocol(name)
        except LocalError as error:
            broken[name] = str(error)
    return broken


def _checked(protocol: object, name: str, package: str) -> Protocol:
    if not isinstance(protocol, Protocol):
        raise LocalError(f"the package {package} does not define PROTOCOL")
    if protocol.name != name:
        raise LocalError(f"the PROTOCOL of the package {package} has the name {protocol.name}, not {name}")
    try:
        protocol.options()
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise LocalError(f"the options of the package {package} have no valid defaults: {what}") from error
    return protocol


def _told(error: Exception) -> str:
    """What an import raised, and in which line of the package."""
    place = place_of(error)
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{Path(error.filename).name}:{error.lineno}"
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text} ({place})"


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
