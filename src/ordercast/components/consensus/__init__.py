"""Multi-Paxos: a replicated log that a process embeds.

Theory of operation. Replica i of n owns the ballots i, i+n, i+2n, ... A leader of ballot b has the
promises of a majority (phase 1) and proposes values for slots in b (phase 2); a slot that a
majority accepted in b is chosen, and slots are committed and delivered in order. Replica 0 leads from
the first boot: ballot 0 is the lowest, nothing can have been accepted before it, so it needs no
phase 1.

A replica is a *follower* until it has not heard of a leader for too long. Then it asks, as a *canvasser*,
whether the others hear one. If a majority does not, it stands in a ballot of its own as a *candidate*
(phase 1), and is the *leader* when a majority has promised (phase 2). All step down when they hear of a
higher ballot.

Rules beyond plain Paxos, each with its reason:

- A commit notice names a ballot. A follower commits only what it accepted in that ballot: the
  leader of a ballot proposes one value for a slot. What it lacks it fetches, in bounded chunks.
- A leader commits only by counting in its own ballot and takes no lessons (`Learn`). Otherwise it
  could put its ballot's name on a value that a later ballot chose.
- No promise to a candidate that has committed less: it gets what it lacks, and asks again. So a
  leader has every slot that its voters have committed, and no follower of its majority is ahead of
  it.
- A leader gives up if no majority answers its heartbeats for as long as a follower's patience may last.
  Otherwise a leader that sends but does not hear would stop the group: it decides nothing, and nobody
  stands against it.
- Nobody stands before a majority has said that it hears no leader. So a replica that does not hear, or
  that comes back after it was cut off, neither deposes a good leader nor pushes the ballots up.

Limits. At most `window` slots are in flight and at most `log_limit` are kept; beyond, `propose`
returns False. Without a snapshot function nothing is truncated. With one, a slot is kept until the
snapshots of all replicas cover it, so a replica that lags always finds what it lacks; the price is
that a replica which stays away stops the log after `log_limit` slots. An owner that can restore a
snapshot at any time (`transfers`) need not pay it: the snapshots of a majority suffice then, and a
replica that lags behind the kept slots gets a snapshot (see `transfer`).

Durability. What a message depends on is saved before the message is sent. The committed index is
not saved: after a restart the owner's state is that of the last snapshot, and each slot after it is
delivered again, as the group confirms them. A replica whose saved state is lost, or that is told to
keep nothing on a disk (`durable`), does not vote until it has recovered from the others; it needs
`transfers` for this (see `recovery`).

Reads. An owner that answers from its state, past the log, asks for a `barrier` when a read comes and
answers when the replica `passes` it: then this replica led after the read came, and has delivered
all that was decided before.
"""

from ordercast.components.consensus.leadership import Barrier
from ordercast.components.consensus.messages import MESSAGES, VALUE_BYTES_MAX
from ordercast.components.consensus.options import LIVE_TIMEOUTS, ConsensusOptions
from ordercast.components.consensus.replica import Replica

__all__ = ["LIVE_TIMEOUTS", "MESSAGES", "VALUE_BYTES_MAX", "Barrier", "ConsensusOptions", "Replica"]
