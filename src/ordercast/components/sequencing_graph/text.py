"""A sequencing graph as text (JSON), for people and other programs to make and to read.

``groups`` has the members of each group. ``atoms`` (the groups of each atom) and ``paths`` (the atoms of each
group, in order) are optional, both or none: without them, a graph is built. What is given must meet the
conditions.
"""

from typing import TypeAlias

import msgspec

from ordercast.components.sequencing_graph.build import build
from ordercast.components.sequencing_graph.network import Network, check_network
from ordercast.core import LocalError

Names: TypeAlias = dict[int, list[int]]


class GraphText(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The form of the text."""

    groups: Names
    atoms: Names = {}
    paths: Names = {}


def read_network(text: str | bytes) -> Network:
    """A network from its text; `LocalError` with one sentence if it is none, or breaks a condition."""
    try:
        found = msgspec.json.decode(text, type=GraphText, strict=False)
    except msgspec.MsgspecError as error:
        raise LocalError(f"this is no sequencing graph: {error}") from error
    for group, members in found.groups.items():
        if not members:
            raise LocalError(f"group {group} has no members")
        if len(frozenset(members)) < len(members):
            raise LocalError(f"group {group} names a member twice")
    if not found.groups:
        raise LocalError("there is no group")
    if not found.atoms and not found.paths:
        return build(found.groups).network()
    network = _network(found)
    check_network(network)
    return network


def _network(found: GraphText) -> Network:
    return Network(
        {group: frozenset(members) for group, members in found.groups.items()},
        {atom: tuple(sorted(frozenset(groups))) for atom, groups in found.atoms.items()},
        {group: tuple(path) for group, path in found.paths.items()},
    )


def write_network(network: Network) -> str:
    """The text of a network."""
    text = GraphText(
        {group: sorted(members) for group, members in network.members.items()},
        {atom: list(groups) for atom, groups in network.atoms.items()},
        {group: list(path) for group, path in network.paths.items()},
    )
    return msgspec.json.format(msgspec.json.encode(text), indent=1).decode() + "\n"
