"""The two free numbers of the experiments with transactions, fitted to baselines alone.

The paper prints neither what it costs to execute a transaction nor how far a sequencer was limited (section
7.3). Both follow from how its baselines compare, by a rule that was written down before either was known:

1. *Execution*: the CPU time with which Granola's maximum throughput is 3.1 / 1.9 of Lock-Store's.
2. *The limit of a sequencer*: the one with which Eris' maximum throughput is 1.9 / 1.47 of Granola's.

The two ratios are what the paper prints of HydraTxn against each baseline, divided: the derived claims
`baseline.granola_vs_lockstore` and `baseline.eris_vs_granola`. HydraTxn is not run for the fit:
`python -m benchmarks.transaction_fit` repeats it. Both numbers are multiples of what hosts need for a packet,
so that the ratios stay as they are when packets are dearer.

The traffic of virtual groups, which in the paper takes its share of a limited sequencer, is not simulated:
the limit is what it leaves.
"""

from ordercast.experiments.hydra.calibration import Hardware

EXECUTION = 3.4
"""CPU time of executing a transaction, in packets."""
LIMIT = 275.0
"""Bytes that pass through a sequencer in the time that a host needs for a packet."""
UNLIMITED = 0.0


def execution_ns(hardware: Hardware, packets: float = EXECUTION) -> int:
    """CPU time of executing a transaction."""
    return round(packets * hardware.packet_ns)


def limit_gbps(hardware: Hardware, limit: float = LIMIT) -> float | None:
    """The rate of a sequencer's link; None if it has no limit."""
    return 8 * limit / hardware.packet_ns if limit else None
