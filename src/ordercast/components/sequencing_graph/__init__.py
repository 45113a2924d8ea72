"""The sequencing graph of [atoms]: which atoms order which groups, and the way of a message through them.

`SequencingGraph` is what there is; the functions of `changes` change it and return the steps that they made,
and `SequencingGraph.apply` makes the same steps elsewhere, one by one. `build` makes a graph for many groups
at once, with shorter paths. `placement` says which atoms share a sequencing node.

A receiver takes the numbers of the atoms that are *relevant* to it (`SequencingGraph.relevant`): it is in
**all** groups of the atom, not just in two of them.
"""

from ordercast.components.sequencing_graph.build import build, by_group, by_hub, by_load
from ordercast.components.sequencing_graph.changes import (
    add_group,
    change_group,
    remove_group,
    subscribe,
    unsubscribe,
)
from ordercast.components.sequencing_graph.graph import SequencingGraph
from ordercast.components.sequencing_graph.network import Network, check_network
from ordercast.components.sequencing_graph.placement import (
    GROUPINGS,
    NodeLayout,
    Siting,
    apart,
    busiest_receiver,
    nested,
    shared_member,
    within_load,
)
from ordercast.components.sequencing_graph.planner import Steps
from ordercast.components.sequencing_graph.record import GraphRecord, load_graph, save_graph
from ordercast.components.sequencing_graph.steps import (
    AtomId,
    AttachAtom,
    CloseGroup,
    DetachAtom,
    ExtendAtom,
    FoundGroup,
    InsertAtom,
    LeaveAtom,
    OpenGroup,
    RetireAtom,
    Step,
    Subscribe,
    Unsubscribe,
)

__all__ = [
    "SequencingGraph",
    "add_group",
    "change_group",
    "remove_group",
    "subscribe",
    "unsubscribe",
    "build",
    "by_group",
    "by_hub",
    "by_load",
    "GROUPINGS",
    "NodeLayout",
    "Siting",
    "apart",
    "nested",
    "shared_member",
    "within_load",
    "busiest_receiver",
    "GraphRecord",
    "load_graph",
    "save_graph",
    "Network",
    "check_network",
    "Step",
    "Steps",
    "AtomId",
    "FoundGroup",
    "OpenGroup",
    "CloseGroup",
    "InsertAtom",
    "ExtendAtom",
    "LeaveAtom",
    "AttachAtom",
    "DetachAtom",
    "RetireAtom",
    "Subscribe",
    "Unsubscribe",
]
