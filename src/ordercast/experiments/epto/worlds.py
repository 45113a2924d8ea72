"""The two worlds of EpTO's evaluation (section 6): that of its authors, and one with random phases.

The paper does not say when rounds begin or where processes are. The program of its authors does:

- All processes begin at tick 0, and round k is at tick 125 k, one tick more or less. The drift of 1% does not
  add up, so rounds stay together. Hence the steps of the printed curves, at multiples of 125.
- The processes are the nodes of the latency matrix, the first 100 of them in Figure 6. Pairs without a
  measurement never hear each other. Beyond 226 processes, pairs have one of the measured latencies.
- An event has age 0 when its source first relays it, and not age 1 as in Algorithm 1. That is a TTL larger by
  one.
- K and TTL are those of the lemmas for c = 1.25: only that gives the printed TTL of 15 for 100 processes. K
  is not raised for loss or churn. Logical clocks have twice the TTL.
- *Unordered* delivery is in the round in which a process first relays an event, not when a ball arrives.
- Cyclon has views of 30 and exchanges 5 entries; newcomers start with 30 living processes.

One thing cannot be known: whether a ball that arrives in the very tick of a round counts for that round. The
program leaves it to the addresses of two functions in memory. It matters, because some pairs of nodes are
only two ticks apart (0.8% of those in Figure 6). If a process is a tick early and its neighbour a tick late,
an event is relayed twice in one round, and its age runs ahead. Here balls come first, as in all runs of the
engine. Figure 6 is also made with rounds first.

The claims are measured in this world. The other world is the one that users have: rounds begin at random
times and drift apart, an event's first relay has age 1, each pair of processes has one of the measured
latencies, K is that of Lemma 7, unordered delivery is the arrival of the first ball, and Cyclon is set up as
for users. It shows how robust the results are.

What is still not as in the authors' program:

- A process that joins has its first round at once, takes over the latencies of the one that left, and
  broadcasts. Theirs has its first round two rounds later, and with a global clock it never broadcasts.
- A ball arrives though its sender has left meanwhile. Theirs is lost then.
- An event that first arrives with an age of TTL is not taken, as in line 13 of Algorithm 1. Theirs takes it,
  even where that breaks the order.
- With logical clocks, their events wait for one more round.
- Cyclon shuffles at its own times, once a round, and answers with up to 5 entries. Theirs shuffles at the
  beginning of each round, and answers with up to 4.
"""

from typing import Literal, TypeAlias

World: TypeAlias = Literal["authors", "random phases"]
AUTHORS: World = "authors"
RANDOM: World = "random phases"
WORLDS = (AUTHORS, RANDOM)
SAID = {
    AUTHORS: "the authors' world: rounds begin together and stay together",
    RANDOM: "random phases: rounds begin at random times and drift apart",
}
