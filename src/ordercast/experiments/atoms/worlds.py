"""The worlds of the experiments: hosts on a topology, and groups of hosts.

What the paper leaves open was chosen before anything was measured:

- Hosts come in clusters of eight. A cluster is at a router of a stub domain, drawn at random, and at those
  nearest.
- The group of rank k has a share 1/k of the hosts as members, two at least (Zipf's law with exponent one);
  the most popular has all. Members are drawn at random, whatever their cluster.
- With an expected occupancy p, each host is in each group with probability p. Groups without members are left
  out.
- Each member sends one message to each of its groups, as in section 4.2.
- Sequencing nodes are at hosts, not more than one at each.

One choice was made after a first look. At first, atoms shared a node only if a member had all their overlaps
(`shared_member`): the largest stretch of a destination was 2.0 with 8 groups, but 9 to 12 with 64, as paths
led over 30 nodes. Nodes now take atoms in as long as they order no more than the busiest receiver gets
(`within_load`), which is what the paper demands of a node.
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ordercast.experiments.atoms.topology import Indices, Lengths, Topology

HOSTS = 128
CLUSTER = 8
MEMBERS_MIN = 2

Memberships: TypeAlias = dict[int, tuple[int, ...]]


def place_hosts(topology: Topology, hosts: int, seed: int) -> Indices:
    """The router of each host."""
    rng = np.random.default_rng([seed, hosts])
    centres = rng.choice(topology.stub_routers(), -(-hosts // CLUSTER), replace=False)
    return np.concatenate([topology.neighbours(int(centre), CLUSTER) for centre in centres])[:hosts]


def host_distances(topology: Topology, hosts: int, seed: int) -> Lengths:
    """The lengths of the ways between hosts. Two at one router are one unit apart."""
    routers = place_hosts(topology, hosts, seed)
    lengths = np.maximum(1.0, topology.between(routers, routers))
    np.fill_diagonal(lengths, 0.0)
    return lengths


def zipf_groups(hosts: int, groups: int, seed: int) -> Memberships:
    """Groups whose sizes follow Zipf's law."""
    rng = np.random.default_rng([seed, hosts, groups])
    sizes = [max(MEMBERS_MIN, round(hosts / rank)) for rank in range(1, groups + 1)]
    return {group: _drawn(rng.choice(hosts, size, replace=False)) for group, size in enumerate(sizes)}


def occupied_groups(hosts: int, groups: int, occupancy: float, seed: int) -> Memberships:
    """Groups in which each host is with the same probability."""
    rng = np.random.default_rng([seed, hosts, groups])
    matrix = rng.random((groups, hosts)) < occupancy
    found = {group: _drawn(np.flatnonzero(row)) for group, row in enumerate(matrix)}
    return {group: members for group, members in found.items() if members}


def message_rates(groups: Mapping[int, tuple[int, ...]]) -> dict[int, float]:
    """How many messages each group gets: one from each member."""
    return {group: float(len(members)) for group, members in groups.items()}


def _drawn(members: Indices) -> tuple[int, ...]:
    return tuple(sorted(int(member) for member in members))
