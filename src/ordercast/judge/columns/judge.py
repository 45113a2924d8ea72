"""The vectorised judge: a run's table in, the verdict out.

The properties are those of `ordercast.judge.online`, by the same names, written anew over columns instead of
events. Each first proves by a few passes over arrays that nothing is wrong, which is what most runs cost;
what the proof does not cover is looked at in depth.
"""

import pyarrow as pa

from ordercast.core import Agreement, Causality, Gaps, Order
from ordercast.judge.columns.agreement import agreement
from ordercast.judge.columns.causal import causal
from ordercast.judge.columns.clocks import clocks
from ordercast.judge.columns.debts import Debts
from ordercast.judge.columns.drops import drop_detection
from ordercast.judge.columns.fifo import fifo
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.holes import holes
from ordercast.judge.columns.integrity import integrity
from ordercast.judge.columns.lifecycle import lifecycle
from ordercast.judge.columns.order import order
from ordercast.judge.columns.rare import changes_of, drops_of, views_of
from ordercast.judge.columns.stamps import stamps
from ordercast.judge.columns.stays import Stays
from ordercast.judge.columns.trace import Trace
from ordercast.judge.columns.validity import validity
from ordercast.judge.columns.views import view_synchrony
from ordercast.judge.online import Verdict
from ordercast.trace import RunDescription


def audit(description: RunDescription, table: pa.Table) -> Verdict:
    """The findings on a whole run, and how many more there were."""
    promised = description.guarantees
    trace, findings = Trace(description, table), Findings()
    clocks(trace, findings)
    lifecycle(trace, findings)
    gate = findings if promised.integrity else Findings()
    account = integrity(trace, gate)
    drops, views = drops_of(trace, gate), views_of(trace, gate)
    stays, changes = Stays(trace, views), changes_of(trace, views)
    stamps(account, findings)
    if promised.order is not Order.NONE:
        order(account, findings)
    if promised.causality is Causality.FIFO:
        fifo(account, findings)
    elif promised.causality is Causality.CAUSAL:
        causal(account, findings)
    if promised.gaps is Gaps.NOTIFIED:
        drop_detection(account, drops, changes, findings)
    if promised.views:
        view_synchrony(account, views, stays, findings)
    agreed = promised.agreement in (Agreement.ALL, Agreement.NOTIFIED)
    at_end = description.complete and (agreed or promised.validity)
    missing = None
    if at_end or description.counts_holes:
        debts = Debts(account, drops, views, changes, stays)
        missing = holes(debts) if description.counts_holes else None
    if at_end:
        lacking = debts.lacking()
        told = agreement(debts, lacking, findings) if agreed else set()
        if promised.validity:
            validity(debts, lacking, told, findings)
    return findings.verdict()._replace(holes=missing)
