"""Names in LLFT: process groups, views of them, members, and virtual connections between them."""

from typing import Annotated, NamedTuple, TypeAlias

import msgspec

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]

Party: TypeAlias = Natural
"""A process group (section II.C): its group id, which is also the virtual port on which it is heard. The
groups of a plan have their own numbers; the group of a client follows them."""

Precedence: TypeAlias = Natural
"""The order in which a member joined its process group; unique among all members that a group ever had.

A precedence modulo the number of nodes is the node of the member. So two primaries that have never heard of
each other give two newcomers different precedences.
"""


class ViewId(NamedTuple):
    """A primary view: views compare by the precedence of their primary, as section IV wants it."""

    precedence: Precedence
    """The precedence of the primary."""
    number: Natural
    """The primary view number: how many changes of the primary there were before."""

    def __str__(self) -> str:
        return f"{self.number} of primary {self.precedence}"


class Link(NamedTuple):
    """A virtual connection (section II.D); with a role, it is the quadruple that identifies an end of it."""

    client: Party
    """The group that opened it."""
    server: Party
    number: Natural
    """The connection sequence number: tells connections of the same groups apart, and grows."""

    def __str__(self) -> str:
        return f"{self.client}-{self.server} number {self.number}"


Short: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A connection that is in use, as the members of one of its groups call it in their ordering information: the
remote group, or the complement of that (below zero) if the remote group is the server. Of several connections
of the same two groups only one is in use at a place."""


def short(link: Link, party: Party) -> Short:
    """The short name of a connection within the group of one of its ends."""
    return link.client if link.server == party else ~link.server


def next_precedence(node: int, nodes: int, highest: Precedence) -> Precedence:
    """The first precedence above `highest` that belongs to a node."""
    return highest + 1 + (node - highest - 1) % nodes
