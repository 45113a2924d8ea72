"""Tags of messages, allotted in one place.

A codec tells messages apart by their tags, and a plan may put the messages of several packages into one
codec: a protocol's own, those of a component that it embeds, those of a layer below it. So each package has a
range of tags here, and no two ranges overlap. Protocols never share a codec, so each has the first range for
itself.

A package declares its messages with `message_types`. It refuses a tag that is out of range or taken, when the
package is imported.
"""

from typing import NamedTuple

from ordercast.core.errors import LocalError
from ordercast.core.message import Message


class Allotment(NamedTuple):
    """The tags of a package."""

    package: str
    tags: range
    each: bool = False
    """Each package inside has the whole range for itself."""


ALLOTMENTS = (
    Allotment("ordercast.protocols", range(1, 160), each=True),
    Allotment("ordercast.transactions", range(160, 180), each=True),
    Allotment("ordercast.components.membership", range(180, 200)),
    Allotment("ordercast.components.consensus", range(200, 220)),
    Allotment("ordercast.replication", range(310, 350), each=True),
    Allotment("ordercast.components.cross_shard", range(220, 230)),
    Allotment("ordercast.components.sampling", range(240, 250)),
    Allotment("ordercast.components.ticketing", range(250, 260)),
    Allotment("ordercast.components.application_state", range(260, 270)),
    Allotment("ordercast.components.execution", range(270, 280)),
    Allotment("ordercast.components.logged_service", range(300, 310)),
    Allotment("ordercast.components.network_ordered", range(280, 300)),
)
ELSEWHERE = range(1, 160)
"""Tags of packages outside ordercast, which are protocols."""

_taken: dict[tuple[str, int], type[Message]] = {}


def message_types(*types: type[Message]) -> tuple[type[Message], ...]:
    """Check the tags of a package's messages, and return the messages as a tuple for a codec."""
    for kind in types:
        package, tags = _place(kind)
        tag = kind.__struct_config__.tag
        if not isinstance(tag, int) or tag not in tags:
            raise LocalError(f"{_name(kind)} has tag {tag}, but {package} has tags {tags[0]} to {tags[-1]}")
        other = _taken.setdefault((package, tag), kind)
        if _name(other) != _name(kind):
            raise LocalError(f"{_name(kind)} and {_name(other)} both have tag {tag}")
        _taken[package, tag] = kind
    return types


def _name(kind: type[Message]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _place(kind: type[Message]) -> tuple[str, range]:
    """The package whose tags a message type uses, and which they are."""
    module = kind.__module__
    for package, tags, each in ALLOTMENTS:
        if f"{module}.".startswith(f"{package}."):
            inside = module.removeprefix(f"{package}.").split(".")[0]
            return (f"{package}.{inside}" if each else package), tags
    return module.rpartition(".")[0] or module, ELSEWHERE
