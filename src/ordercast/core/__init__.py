"""The contract that protocols, drivers and checks share. It imports nothing else of ordercast."""

from ordercast.core.chain import Chain, cause_text, chain_text, follow
from ordercast.core.delivery import (
    ANEW,
    CARRIERS,
    Carrier,
    Delivered,
    Delivery,
    Dropped,
    Notice,
    OutOfOrder,
    Stamp,
    Unconfirmed,
    View,
)
from ordercast.core.errors import LocalError, OrdercastError, RemoteError, exception_text
from ordercast.core.explain import Explanation, Wait
from ordercast.core.failure import (
    FAILED,
    ProtocolFailed,
    ProtocolFailure,
    packet_text,
    place_of,
    protocol_failed,
)
from ordercast.core.guarantees import (
    Agreement,
    Causality,
    Crashes,
    Fault,
    Gaps,
    Guarantees,
    Order,
    Partition,
)
from ordercast.core.ids import (
    GroupId,
    Groups,
    HostId,
    MessageId,
    NodeId,
    message_id,
    message_name,
    message_number,
    message_sender,
)
from ordercast.core.message import Codec, Message, Numbered, Payload
from ordercast.core.message_text import message_text
from ordercast.core.plan import Action, Deployment, Node, Options, Pace, Plan, Protocol
from ordercast.core.process import Env, Member, Process
from ordercast.core.stack import InnerEnv, Stack
from ordercast.core.states import LifeCycle
from ordercast.core.tags import message_types
from ordercast.core.time import MICROSECOND, MILLISECOND, SECOND, Nanos, format_ns
from ordercast.core.window import Seen

__all__ = [
    "CARRIERS",
    "FAILED",
    "Carrier",
    "Notice",
    "Numbered",
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "ANEW",
    "Action",
    "Agreement",
    "Causality",
    "Chain",
    "Codec",
    "Crashes",
    "Delivered",
    "Delivery",
    "Deployment",
    "Dropped",
    "Env",
    "Explanation",
    "Fault",
    "Gaps",
    "GroupId",
    "Groups",
    "Guarantees",
    "HostId",
    "InnerEnv",
    "LifeCycle",
    "LocalError",
    "Member",
    "Message",
    "MessageId",
    "Nanos",
    "Node",
    "NodeId",
    "Options",
    "Order",
    "OrdercastError",
    "OutOfOrder",
    "Partition",
    "Payload",
    "Pace",
    "Plan",
    "Process",
    "Protocol",
    "ProtocolFailed",
    "ProtocolFailure",
    "RemoteError",
    "Seen",
    "Stack",
    "Stamp",
    "Unconfirmed",
    "View",
    "Wait",
    "cause_text",
    "chain_text",
    "exception_text",
    "follow",
    "format_ns",
    "message_id",
    "message_name",
    "message_number",
    "message_sender",
    "message_text",
    "message_types",
    "packet_text",
    "place_of",
    "protocol_failed",
]
