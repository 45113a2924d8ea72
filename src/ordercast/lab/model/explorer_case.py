"""A case for the explorer: a plan, what happens in it, and what must hold."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ordercast.core import Nanos, NodeId, Plan
from ordercast.lab.model.explorer_world import History, Jump, Packet, Submission, Timer


class Properties(ABC):
    """The properties of a protocol: of one history, of two, and of all at the end."""

    @abstractmethod
    def alone(self, node: NodeId, history: History) -> str | None:
        """The fault in the history of a node, or None."""

    @abstractmethod
    def together(self, one: NodeId, first: History, other: NodeId, second: History) -> str | None:
        """The fault between the histories of two nodes, or None."""

    @abstractmethod
    def unsettled(self, histories: Mapping[NodeId, History], traffic: Sequence[Packet]) -> str | None:
        """What is still to come, given all that was sent since faults have ended; None at the end."""

    def fades(self, packet: Packet) -> bool:
        """Whether a packet that would change nothing if it came now never will.

        As soon as it would not, it is taken off the network, which spares the states that differ in it alone.
        """
        return False


@dataclass(frozen=True, slots=True)
class Case:
    """A small run, all interleavings of which are explored.

    All nodes but those in `late` start and settle first, without faults. Then `packets`, and what senders
    make of `submissions`, are under way, and everything in flight may arrive in any order. A packet that is
    lost is one that never arrives: no step stands for it. Every state is judged, whatever is still in flight;
    and from each state with at most `losses` packets in flight these are lost, time goes on for everybody,
    and all must come to its end.
    """

    name: str
    shows: str
    plan: Plan
    properties: Properties
    packets: tuple[Packet, ...]
    submissions: tuple[Submission, ...] = ()
    """Messages that applications give to senders."""
    late: tuple[NodeId, ...] = ()
    """Nodes that start just before the exploration does; what prompt nodes tell others of it is under way."""
    greeting: bool = False
    """Whether the first packets of late nodes are under way too; otherwise they have arrived."""
    deaf: tuple[NodeId, ...] = ()
    """Nodes that only listen: packets to them make no difference and vanish."""
    clocks: Mapping[NodeId, Nanos] = field(default_factory=dict)
    """The clocks of nodes at the start; other clocks are at 0."""
    timers: Mapping[Timer, int] = field(default_factory=dict)
    """Timers that may go off at any time while they are armed, and how often at most."""
    prompt: tuple[NodeId, ...] = ()
    """Nodes that get their packets at once; such that deliver nothing themselves.

    That leaves nothing out if the order in which a node gets packets makes no difference, since what it sends
    in return can take as long as it likes.
    """
    leading: tuple[NodeId, ...] = ()
    """Nodes that do all that they can before anybody else does anything, in every order.

    That leaves nothing out if what they get does not depend on others, for the same reason: what they send
    can take as long as it likes.
    """
    always: tuple[Timer, ...] = ()
    """Timers that may go off at any time while they are armed, without a limit."""
    jumps: tuple[Jump, ...] = ()
    """Clocks that may run ahead, each once, at any time."""
    copies: int = 0
    """Packets that may arrive twice."""
    losses: int = 1
    states_max: int = 2_000_000
    """The largest number of states; a search that reaches it has failed."""
