"""Members that many overlaps share: a few who are in all of them, one in each at least.

Atoms whose overlaps have a member in common can share a sequencing node: that member receives every message
that the node orders, so the node orders no more than the busiest receiver gets. The fewest members of whom
each overlap has one is a hitting set; it is found greedily, the member of most overlaps first, in time that
grows with the sum of the overlaps' sizes (and a logarithm).
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappushpop

from ordercast.core import GroupId, NodeId


def find_hubs(overlaps: Sequence[frozenset[NodeId]]) -> list[tuple[NodeId, list[int]]]:
    """Members, and for each the indices of the overlaps that it stands for: every overlap is at one."""
    left: dict[NodeId, dict[int, None]] = {}
    for index, overlap in enumerate(overlaps):
        for member in sorted(overlap):
            left.setdefault(member, {})[index] = None
    heap = [(-len(those), member) for member, those in left.items()]
    heapify(heap)
    hubs: list[tuple[NodeId, list[int]]] = []
    while heap:
        member = _most(heap, left)
        if taken := list(left.pop(member)):
            hubs.append((member, taken))
        for index in taken:
            for other in sorted(overlaps[index] - {member}):
                del left[other][index]
    return hubs


def _most(heap: list[tuple[int, NodeId]], left: dict[NodeId, dict[int, None]]) -> NodeId:
    """The member with most overlaps left. Entries of the heap may be out of date, but never too small."""
    count, member = heappop(heap)
    while -count != len(left[member]):
        count, member = heappushpop(heap, (-len(left[member]), member))
    return member


def pack_hubs(
    overlaps: Sequence[frozenset[NodeId]],
    groups: Sequence[Sequence[GroupId]],
    rates: Mapping[GroupId, float],
    limit: float,
) -> list[list[int]]:
    """Overlaps of several hubs together, as long as all messages to their groups stay within a limit.

    The hub of most overlaps comes first, and takes those hubs along that add least. A hub alone may be above
    the limit. Time grows with the square of the number of hubs.
    """
    hubs = [indices for _, indices in find_hubs(overlaps)]
    left = {hub: frozenset(one for index in hubs[hub] for one in groups[index]) for hub in range(len(hubs))}
    packs: list[list[int]] = []
    while left:
        first = min(left)
        packed = left.pop(first)
        pack = list(hubs[first])
        load = sum(rates[one] for one in sorted(packed))
        extra = {hub: sum(rates[one] for one in sorted(those - packed)) for hub, those in left.items()}
        while extra and load + (least := min((cost, hub) for hub, cost in extra.items()))[0] <= limit:
            cost, hub = least
            new = left.pop(hub) - packed
            del extra[hub]
            pack += hubs[hub]
            packed |= new
            load += cost
            for other, those in left.items():
                extra[other] -= sum(rates[one] for one in sorted(new & those))
        packs.append(pack)
    return packs
