"""What all protocols promise that replicate a service, whatever they tolerate."""

from ordercast.core import Agreement, Consistency, Crashes, Gaps, Guarantees, Order, Partition

PROMISES = Guarantees(
    order=Order.GROUP,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    gaps=Gaps.NEVER,
    partition=Partition.MAJORITY_CONTINUES,
    crashes=Crashes.MINORITY,
    groups_max=1,
    consistency=Consistency.LINEARIZABLE,
)
"""The log of a group as its order, and linearizable answers, while a majority of its replicas is there."""
