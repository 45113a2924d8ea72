"""Members that many overlaps share: a few who are in all of them, one in each at least.

Atoms whose overlaps have a member in common can share a sequencing node: that member receives every message
that the node orders, so the node orders no more than the busiest receiver gets. The fewest members of whom
each overlap has one is a hitting set; it is found greedily, the member of most overlaps first, in time that
grows with the sum of the overlaps' sizes (and a logarithm).
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappushpop

from ordercast.core import NodeId


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
            for other in overlaps[index] - {member}:
                del left[other][index]
    return hubs


def _most(heap: list[tuple[int, NodeId]], left: dict[NodeId, dict[int, None]]) -> NodeId:
    """The member with most overlaps left. Entries of the heap may be out of date, but never too small."""
    count, member = heappop(heap)
    while -count != len(left[member]):
        count, member = heappushpop(heap, (-len(left[member]), member))
    return member
