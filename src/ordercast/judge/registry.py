"""The registry of properties, in the order in which both judges use them.

To add a property, write its oracle (`online/`) and its column judge (`columns/`), and declare it here, or in
`service_properties.py` if it is about replicated services. Both judges, the command line and the table in
`docs/checks.md` read it from here.
"""

from ordercast.core import Agreement as Agreed
from ordercast.core import Causality, Gaps, Membership, Order
from ordercast.judge.columns import Case as Columns
from ordercast.judge.columns.acyclic_order import acyclic_order
from ordercast.judge.columns.agreement import agreement
from ordercast.judge.columns.causal import causal
from ordercast.judge.columns.clock import clock
from ordercast.judge.columns.completion import completion
from ordercast.judge.columns.configuration import configuration
from ordercast.judge.columns.digests import digests
from ordercast.judge.columns.drop_detection import drop_detection
from ordercast.judge.columns.drop_reason import drop_reason
from ordercast.judge.columns.fifo import fifo
from ordercast.judge.columns.joining import joining
from ordercast.judge.columns.lifecycle import lifecycle
from ordercast.judge.columns.pair_order import pair_order
from ordercast.judge.columns.probe import probe
from ordercast.judge.columns.progress import progress
from ordercast.judge.columns.replies import replies
from ordercast.judge.columns.stamp import stamp
from ordercast.judge.columns.stamp_order import stamp_order
from ordercast.judge.columns.stamp_owner import stamp_owner
from ordercast.judge.columns.state_transfer import state_transfer
from ordercast.judge.columns.tenure import tenure
from ordercast.judge.columns.total_order import total_order
from ordercast.judge.columns.validity import validity
from ordercast.judge.columns.view_synchrony import view_synchrony
from ordercast.judge.online.acyclic_order import AcyclicOrder
from ordercast.judge.online.agreement import Agreement
from ordercast.judge.online.causal import Causal
from ordercast.judge.online.clock import Clocks
from ordercast.judge.online.completion import Completion
from ordercast.judge.online.configuration import Configurations
from ordercast.judge.online.digests import Digests
from ordercast.judge.online.drop_detection import DropDetection
from ordercast.judge.online.drop_reason import DropReasons
from ordercast.judge.online.fifo import Fifo
from ordercast.judge.online.integrity import Integrity
from ordercast.judge.online.joining import Requests
from ordercast.judge.online.lifecycle import Lifecycle
from ordercast.judge.online.pair_order import PairOrder
from ordercast.judge.online.probe import Probes
from ordercast.judge.online.progress import Progress
from ordercast.judge.online.replies import Replies
from ordercast.judge.online.stamp import Stamps
from ordercast.judge.online.stamp_order import StampOrder
from ordercast.judge.online.stamp_owner import StampOwners
from ordercast.judge.online.state_transfer import StateTransfer
from ordercast.judge.online.tenure import Tenure
from ordercast.judge.online.total_order import TotalOrder
from ordercast.judge.online.validity import Validity
from ordercast.judge.online.view_synchrony import ViewSynchrony
from ordercast.judge.property import Property, in_registry
from ordercast.judge.service_properties import SERVICE_PROPERTIES

PROPERTIES: tuple[Property, ...] = in_registry(
    (
        Property(
            "clock",
            "A node's clock never runs backwards, not even over restarts, nor does the time of its events.",
            "always",
            lambda run: True,
            Clocks,
            clock,
            in_parts=True,
        ),
        Property(
            "lifecycle",
            "A crashed node does nothing until it recovers: it has no row of any kind.",
            "always",
            lambda run: True,
            Lifecycle,
            lifecycle,
            in_parts=True,
        ),
        # Both judges filter out what integrity refuses; if integrity is not promised, this is not reported.
        Property(
            "integrity",
            "A receiver delivers a message at most once, unchanged, and only if it was submitted before to"
            " a group that the receiver is in. A delivery is tagged as out of order only if `out_of_order` is"
            " promised.",
            "`integrity` is promised, which is the default",
            lambda run: run.guarantees.integrity,
            Integrity,
            Columns.open_gate,
            in_parts=True,
        ),
        Property(
            "tenure",
            "A receiver delivers of a group only what is ordered between the places where it joined and left."
            " It joins and leaves in turn, and joins only if it asked to or was a member at the start.",
            "`membership` is `views` or `subscriptions`",
            lambda run: run.guarantees.membership is not Membership.FIXED,
            Tenure,
            tenure,
            in_parts=True,
        ),
        Property(
            "digests",
            "Every submission and every delivery of a message has the digest of its bytes.",
            "always",
            lambda run: True,
            Digests,
            digests,
            in_parts=True,
        ),
        Property(
            "stamp",
            "All receivers that deliver a message deliver it with the same stamp, or all without a stamp."
            " Where `order` is `group`, all receivers in one group do.",
            "always",
            lambda run: True,
            Stamps,
            stamp,
            in_parts=True,
        ),
        Property(
            "stamp-owner",
            "A stamp belongs to one message, or to one bundle of messages of one sender. So does each number"
            " of an issuer for a group. A sender that recovered may use a stamp of its earlier life.",
            "always, for deliveries with a stamp",
            lambda run: True,
            StampOwners,
            stamp_owner,
            in_parts=True,
        ),
        Property(
            "stamp-order",
            "The stamps of a receiver's deliveries never decrease; where `order` is `overlapping-groups`,"
            " those to each group. A delivery is tagged as out of order only after a delivery in order whose"
            " stamp is not lower; this is judged at receivers in all groups, if all stamps are in one order.",
            "an `order` is promised, for deliveries with a stamp",
            lambda run: run.guarantees.order is not Order.NONE,
            StampOrder,
            stamp_order,
            in_parts=True,
        ),
        Property(
            "configuration",
            "A delivery or a drop notification names the first configuration, which is 0, or one that its"
            " node has installed. A node that began the run with saved state may name any, until its first"
            " view.",
            "always",
            lambda run: True,
            Configurations,
            configuration,
            in_parts=True,
        ),
        Property(
            "completion",
            "A client has all answers to a message only after every receiver of the message delivered it.",
            "always",
            lambda run: True,
            Completion,
            completion,
            in_parts=True,
        ),
        Property(
            "total-order",
            "The receivers of a group deliver its messages in one common order.",
            "an `order` is promised",
            lambda run: run.guarantees.order is not Order.NONE,
            TotalOrder,
            total_order,
            in_parts=True,
        ),
        Property(
            "pair-order",
            "For any two groups, the receivers that are in both deliver the messages of both in one common"
            " order.",
            "`order` is `overlapping-groups`, and there are several groups",
            lambda run: run.guarantees.order is Order.OVERLAPS and len(run.groups) > 1,
            PairOrder,
            pair_order,
            heeds=("total-order",),
        ),
        Property(
            "acyclic-order",
            "The orders of all groups together have no cycle.",
            "`order` is `across-groups`, and there are several groups",
            lambda run: run.guarantees.order is Order.ACROSS and len(run.groups) > 1,
            AcyclicOrder,
            acyclic_order,
            heeds=("total-order",),
            in_parts=True,
        ),
        Property(
            "fifo",
            "A receiver delivers the messages of one sender in the order in which they were submitted.",
            "`causality` is `fifo`",
            lambda run: run.guarantees.causality is Causality.FIFO,
            Fifo,
            fifo,
            in_parts=True,
        ),
        Property(
            "causal",
            "If a sender knew message a when it submitted b, no receiver delivers a after b.",
            "`causality` is `causal`",
            lambda run: run.guarantees.causality is Causality.CAUSAL,
            Causal,
            causal,
        ),
        Property(
            "drop-detection",
            "Every delivery has a number. Each number of an issuer is delivered or notified once, before any"
            " later number is delivered. The numbers begin and end where the views that add and remove the"
            " issuer say.",
            "`gaps` is `notified`",
            lambda run: run.guarantees.gaps is Gaps.NOTIFIED,
            DropDetection,
            drop_detection,
            in_parts=True,
            in_excerpts=False,
        ),
        Property(
            "drop-reason",
            "A drop notification is about a packet that was lost or late, or that the receiver had to"
            " refuse. It is never about one that the receiver had received, or that nobody had sent.",
            "`gaps` is `notified`, in a simulated run",
            lambda run: run.guarantees.gaps is Gaps.NOTIFIED and run.source == "simulator",
            DropReasons,
            drop_reason,
            in_parts=True,
        ),
        Property(
            "view-synchrony",
            "Nodes that install the same two consecutive views deliver the same messages between them. A view"
            " is the same at all nodes that install it, and so is the state of the group, if the view tells"
            " it. A message is delivered in one view only. If `partition` is `majority-continues`, every view"
            " has a majority of the receivers; those that came later, were removed, or asked to join or"
            " to leave, count as its members.",
            "`views` are promised",
            lambda run: run.guarantees.views,
            ViewSynchrony,
            view_synchrony,
        ),
        Property(
            "state-transfer",
            "A node that joins a group gets the state of the group before its first view and its first"
            " message there. It is the state that a member gave which was asked for it as that view began."
            " All who install a view have the same messages, by delivery or by the state with which they"
            " began, and what a state stands for is not delivered again.",
            "`state_transfer` is promised",
            lambda run: run.guarantees.state_transfer,
            StateTransfer,
            state_transfer,
        ),
        *SERVICE_PROPERTIES,
        Property(
            "agreement",
            "If one receiver delivers a message, every correct receiver delivers it. Where notifications are"
            " promised, a notification of its drop counts as well.",
            "`agreement` is `all` or `message-or-notification`",
            lambda run: run.guarantees.agreement in (Agreed.ALL, Agreed.NOTIFIED),
            Agreement,
            agreement,
            at_end=True,
            in_parts=True,
        ),
        Property(
            "validity",
            "If a sender submits a message and does not crash afterwards, every correct receiver delivers"
            " it, unless the sender is told that the message may be lost.",
            "`validity` is promised",
            lambda run: run.guarantees.validity,
            Validity,
            validity,
            at_end=True,
            heeds=("agreement",),
            in_parts=True,
        ),
        Property(
            "replies",
            "A client that invokes an operation of a service, and does not crash afterwards, gets an answer,"
            " or is told that the outcome is unknown.",
            "the run has a service",
            lambda run: bool(run.service),
            Replies,
            replies,
            at_end=True,
            of_services=True,
        ),
        Property(
            "progress",
            "While enough nodes are up and connected, by `partition` and `crashes`, a receiver to which"
            " something is submitted hears something within the time in which the protocol recovers.",
            "the run is judged for liveness",
            lambda run: bool(run.stretches),
            Progress,
            progress,
        ),
        Property(
            "joining",
            "A node that asks to join or to leave a group, and does not crash afterwards, is told that it"
            " joined or left.",
            "the run is judged for liveness and complete, and `membership` is `views` or `subscriptions`",
            lambda run: run.probed and run.guarantees.membership is not Membership.FIXED,
            Requests,
            joining,
            in_parts=True,
        ),
        Property(
            "probe",
            "What each sender that is up submits to each group after all faults is delivered, in order, by"
            " every receiver that is up and in the group.",
            "the run is judged for liveness and complete",
            lambda run: run.probed,
            Probes,
            probe,
        ),
    )
)
"""Every property that can be judged."""
