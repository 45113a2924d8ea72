"""Transit-stub topologies: networks of 10,000 routers as GT-ITM makes them, and ways through them.

Transit domains are spread over a square and joined with each other; each has some routers near its centre,
and each of those has some stub domains, which hang on it by one link. Inside a domain, routers are joined at
random, and domains that fall apart are joined. A link is as long as the distance of its ends; lengths stand
for delays.

There are two kinds, after two graphs that GT-ITM made: `WIDE` has few, large, dense stub domains, `NARROW`
many small, sparse ones. How many domains and links there are, and how far they spread, was taken from those
graphs; degrees and lengths of ways then come out as theirs do, which a test checks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ordercast.core import LocalError

Lengths: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kind:
    """The sizes of a topology."""

    domains: int
    transits: int
    """Transit routers, in all domains together."""
    stubs: int
    """Stub domains, at all transit routers together."""
    routers: int
    side: float
    """Of the square in which the domains lie."""
    transit_side: float
    """Of the square in which the routers of a transit domain lie."""
    stub_side: float
    joined: float
    """The share of pairs of transit domains that have a link."""
    transit_links: float
    """The share of pairs of routers in a transit domain that have a link."""
    stub_links: float


WIDE = Kind(10, 100, 300, 10_000, 800.0, 130.0, 80.0, 1.0, 0.31, 0.2)
NARROW = Kind(25, 200, 1_400, 10_000, 800.0, 150.0, 110.0, 0.98, 0.45, 0.44)
KINDS = {"wide": WIDE, "narrow": NARROW}
SPREAD = 2.35
"""Standard deviation of the sizes of domains."""


class Topology:
    """Routers and links. Stub domains hang on the transit routers by one link each."""

    def __init__(self, transit: NDArray[np.bool_], links: Indices, lengths: Lengths) -> None:
        self.transit = transit
        self.links = links
        self.lengths = lengths
        self._stub = _components(len(transit), links[~transit[links].any(axis=1)])
        self._core = self._core_lengths()
        self._gate = self._gates()

    @property
    def degrees(self) -> Indices:
        """The number of links of each router."""
        return np.bincount(self.links.ravel(), minlength=len(self.transit))

    def stub_routers(self) -> Indices:
        """The routers that are not in a transit domain."""
        return np.flatnonzero(~self.transit)

    def neighbours(self, router: int, count: int) -> Indices:
        """The nearest routers of stub domains, with this one first."""
        candidates = self._nearby(router, count)
        lengths = self.between([router], candidates)[0]
        return candidates[np.argsort(lengths, kind="stable")[:count]]

    def between(self, sources: Sequence[int] | Indices, targets: Sequence[int] | Indices) -> Lengths:
        """The lengths of the shortest ways from routers of stub domains to others of those."""
        up, transit = self._to_core(np.asarray(sources))
        down, other = self._to_core(np.asarray(targets))
        found = up[:, None] + self._core[np.ix_(transit, other)] + down[None, :]
        for row, source in enumerate(sources):
            same = np.flatnonzero(self._stub[np.asarray(targets)] == self._stub[source])
            inside, routers = self._inside(int(self._stub[source]))
            places = np.searchsorted(routers, np.asarray(targets)[same])
            found[row, same] = inside[np.searchsorted(routers, source), places]
        return found

    def _nearby(self, router: int, count: int) -> Indices:
        """Routers of the same stub domain, and of others at the same transit router if those are too few."""
        own = np.flatnonzero((self._stub == self._stub[router]) & ~self.transit)
        if len(own) >= count:
            return own
        gates, transits, _ = self._gate
        siblings = self._stub[gates[transits == self._transit_of(router)]]
        near = np.flatnonzero(np.isin(self._stub, siblings) & ~self.transit)
        return near if len(near) >= count else self.stub_routers()

    def _transit_of(self, router: int) -> int:
        gates, transits, _ = self._gate
        return int(transits[self._stub[gates] == self._stub[router]][0])

    def _to_core(self, routers: Indices) -> tuple[Lengths, Indices]:
        """The length from each router to the transit router of its stub domain, and that router's place."""
        lengths, transits = np.empty(len(routers)), np.empty(len(routers), dtype=np.int64)
        places = np.cumsum(self.transit) - 1
        gates, uplinks, gate_lengths = self._gate
        of_stub = {int(self._stub[gate]): index for index, gate in enumerate(gates)}
        for index, router in enumerate(routers):
            stub = int(self._stub[router])
            gate = of_stub[stub]
            inside, members = self._inside(stub)
            way = inside[np.searchsorted(members, router), np.searchsorted(members, gates[gate])]
            lengths[index] = way + gate_lengths[gate]
            transits[index] = places[uplinks[gate]]
        return lengths, transits

    def _inside(self, stub: int) -> tuple[Lengths, Indices]:
        """All shortest ways inside a stub domain, and its routers."""
        if stub not in self._known:
            members = np.flatnonzero((self._stub == stub) & ~self.transit)
            within = self._within[self._stub_starts[stub] : self._stub_starts[stub + 1]]
            ends = np.searchsorted(members, self.links[within])
            self._known[stub] = (_all_ways(len(members), ends, self.lengths[within]), members)
        return self._known[stub]

    def _core_lengths(self) -> Lengths:
        """All shortest ways between transit routers, and an index of the links inside each stub domain."""
        places = np.cumsum(self.transit) - 1
        core = self.transit[self.links].all(axis=1)
        inside = np.flatnonzero(~self.transit[self.links].any(axis=1))
        stubs = self._stub[self.links[inside, 0]]
        self._within = inside[np.argsort(stubs, kind="stable")]
        self._stub_starts = np.searchsorted(np.sort(stubs), np.arange(self._stub.max() + 2))
        self._known: dict[int, tuple[Lengths, Indices]] = {}
        return _all_ways(int(self.transit.sum()), places[self.links[core]], self.lengths[core])

    def _gates(self) -> tuple[Indices, Indices, Lengths]:
        """The links between stub domains and transit routers: their ends, and their lengths."""
        mixed = self.transit[self.links].sum(axis=1) == 1
        links, lengths = self.links[mixed], self.lengths[mixed]
        first = self.transit[links[:, 0]]
        gates, transits = np.where(first, links[:, 1], links[:, 0]), np.where(first, links[:, 0], links[:, 1])
        stubs = np.unique(self._stub[~self.transit])
        if len(gates) != len(stubs) or len(np.unique(self._stub[gates])) != len(stubs):
            raise LocalError("this is no topology in which each stub domain hangs on one transit router")
        return gates, transits, lengths


def read_topology(path: Path) -> Topology:
    """A topology from a file with `transit` and `edges`: two routers and a length; the rest is not used."""
    try:
        with np.load(path, allow_pickle=False) as content:
            transit, edges = content["transit"], content["edges"].astype(np.int64)
    except (OSError, ValueError, KeyError) as error:
        raise LocalError(f"{path} is no topology: {error}") from error
    return Topology(transit, edges[:, :2], edges[:, 2].astype(np.float64))


def make_topology(kind: Kind, seed: int) -> Topology:
    """A topology of a kind."""
    rng = np.random.default_rng([seed, kind.routers, kind.stubs])
    transit_sizes = _sizes(rng, kind.transits, kind.domains)
    per_transit = 1 + rng.multinomial(kind.stubs - kind.transits, np.full(kind.transits, 1 / kind.transits))
    stub_sizes = _sizes(rng, kind.routers - kind.transits, kind.stubs)
    places = np.empty((kind.routers, 2))
    links: list[Any] = []
    starts = np.concatenate([[0], np.cumsum(transit_sizes)])
    centres = rng.uniform(0, kind.side, (kind.domains, 2))
    for domain, centre in enumerate(centres):
        routers = np.arange(starts[domain], starts[domain + 1])
        places[routers] = centre + rng.uniform(-0.5, 0.5, (len(routers), 2)) * kind.transit_side
        links.append(_random_links(rng, routers, kind.transit_links))
    for one, other in _random_links(rng, np.arange(kind.domains), kind.joined):
        ends = [rng.integers(starts[domain], starts[domain + 1]) for domain in (one, other)]
        links.append(np.array([ends]))
    first = kind.transits
    for transit, size in zip(np.repeat(np.arange(kind.transits), per_transit), stub_sizes, strict=True):
        routers = np.arange(first, first + size)
        centre = places[transit] + rng.uniform(-0.5, 0.5, 2) * kind.stub_side
        places[routers] = centre + rng.uniform(-0.5, 0.5, (size, 2)) * kind.stub_side
        links += [_random_links(rng, routers, kind.stub_links), np.array([[transit, rng.choice(routers)]])]
        first += size
    all_links = np.concatenate(links)
    lengths = np.maximum(1.0, np.hypot(*(places[all_links[:, 0]] - places[all_links[:, 1]]).T))
    return Topology(np.arange(kind.routers) < kind.transits, all_links, lengths)


def _sizes(rng: np.random.Generator, total: int, parts: int) -> Indices:
    """Sizes about the mean, one at least, that give a total."""
    sizes = np.maximum(1, np.rint(rng.normal(total / parts, SPREAD, parts))).astype(np.int64)
    while (missing := total - int(sizes.sum())) != 0:
        part = rng.integers(parts)
        sizes[part] = max(1, sizes[part] + (1 if missing > 0 else -1))
    return sizes


def _random_links(rng: np.random.Generator, routers: Indices, share: float) -> Indices:
    """Links between pairs at random, and what it takes to join all."""
    one, other = np.triu_indices(len(routers), 1)
    drawn = rng.random(len(one)) < share
    pairs = np.stack([one[drawn], other[drawn]], axis=1)
    parts = _components(len(routers), pairs)
    extra = [
        [rng.choice(np.flatnonzero(parts == part)), rng.choice(np.flatnonzero(parts == 0))]
        for part in range(1, int(parts.max()) + 1)
    ]
    links: Indices = routers[np.concatenate([pairs, np.array(extra, dtype=np.int64).reshape(-1, 2)])]
    return links


def _components(count: int, links: Indices) -> Indices:
    """The number of the component of each of so many, from zero."""
    leader = np.arange(count)
    while True:
        low = leader.copy()
        np.minimum.at(low, links[:, 0], leader[links[:, 1]])
        np.minimum.at(low, links[:, 1], leader[links[:, 0]])
        low = low[low]
        if np.array_equal(low, leader):
            return np.unique(leader, return_inverse=True)[1]
        leader = low


def _all_ways(count: int, links: Indices, lengths: Lengths) -> Lengths:
    """The shortest way between each pair, by Floyd's algorithm."""
    ways: Lengths = np.full((count, count), np.inf)
    np.fill_diagonal(ways, 0.0)
    np.minimum.at(ways, (links[:, 0], links[:, 1]), lengths)
    ways = np.minimum(ways, ways.T)
    for middle in range(count):
        ways = np.minimum(ways, ways[:, middle, None] + ways[None, middle, :])
    return ways
