"""What a graph of views looks like."""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean, pstdev

Views = Mapping[int, Sequence[int]]


def random_views(nodes: int, size: int, seed: int) -> dict[int, list[int]]:
    """The yardstick: each node knows so many others, all equally likely."""
    rng = Random(seed)
    return {
        node: rng.sample([other for other in range(nodes) if other != node], size) for node in range(nodes)
    }


def reached(views: Views, start: int) -> set[int]:
    """The living nodes that a message from `start` comes to, going from neighbour to neighbour."""
    found = {start}
    waiting = [start]
    while waiting:
        for node in views[waiting.pop()]:
            if node in views and node not in found:
                found.add(node)
                waiting.append(node)
    return found


def backwards(views: Views) -> dict[int, list[int]]:
    """Who knows each living node."""
    knowing: dict[int, list[int]] = {node: [] for node in views}
    for node, view in views.items():
        for other in view:
            if other in knowing:
                knowing[other].append(node)
    return knowing


def strongly_connected(views: Views) -> bool:
    """Whether every living node comes to every other."""
    start = min(views)
    return len(reached(views, start)) == len(reached(backwards(views), start)) == len(views)


def indegrees(views: Views) -> list[int]:
    """How many know each living node."""
    return [len(knowing) for knowing in backwards(views).values()]


def indegree_spread(views: Views) -> float:
    """The standard deviation of the in-degrees."""
    return pstdev(indegrees(views))


def clustering(views: Views) -> float:
    """Which share of the pairs of a node's neighbours are neighbours, both ways counted: the mean of all."""
    near = {node: set(view) for node, view in views.items()}
    for node, knowing in backwards(views).items():
        near[node].update(knowing)
    shares = []
    for node, others in near.items():
        around = sorted(others & near.keys() - {node})
        pairs = len(around) * (len(around) - 1)
        shares.append(sum(len(near[other] & others) for other in around) / pairs if pairs else 0.0)
    return fmean(shares)
