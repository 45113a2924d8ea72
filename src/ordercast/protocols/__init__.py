"""The protocols, each a package of its own here that offers a `PROTOCOL`."""

import importlib
import pkgutil

from ordercast.core import LocalError, Protocol


def protocol_names() -> list[str]:
    """The names of all protocols there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def find_protocol(name: str) -> Protocol:
    """The protocol of a name, or an error that lists the names there are."""
    known = protocol_names()
    if name not in known:
        raise LocalError(f"no protocol '{name}'; there are: {', '.join(known)}")
    protocol = importlib.import_module(f"{__name__}.{name}").PROTOCOL
    if not isinstance(protocol, Protocol):
        raise LocalError(f"the package of '{name}' offers no PROTOCOL")
    return protocol
