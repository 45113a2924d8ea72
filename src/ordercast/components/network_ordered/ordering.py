"""What a replica needs of the network: an ordering of calls, which may lose some and says so."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ordercast.components.network_ordered.place import LogEntry, LogPlace, Rank, Slot
from ordercast.core import Message, NodeId, Wait


class OrderingOwner(Protocol):
    """The replica, as its ordering sees it. It must not call `advance` inside these."""

    def ordered(self, entry: LogEntry) -> None:
        """This call is next."""

    def missing(self, slots: list[Slot]) -> None:
        """These are known to be missing; told again and again while they are."""

    def reconfigured(self, is_void: Callable[[LogEntry], bool], beyond: Rank | None) -> None:
        """The tag has changed. Entries that are void never count; those beyond a place come again."""

    def new_session(self) -> None:
        """The order goes on only after a view change."""

    def revived(self) -> None:
        """The ordering has taken note that this replica lost its memory."""

    def save_ordering(self) -> None:
        """The state of the ordering has changed."""


class NetworkOrdering(ABC):
    """The order of calls at one replica."""

    holds: bool = False
    """Whether nothing is handed over for now; what comes is buffered."""

    @property
    @abstractmethod
    def tag(self) -> int:
        """The number of changes of the sequencers that are applied here. Replies match only if their tags
        are equal: with another tag, another set of messages may come before the same one."""

    @abstractmethod
    def begin(self) -> None:
        """Begin for the first time."""

    @abstractmethod
    def lose_memory(self) -> None:
        """Begin without the memory of an earlier life: nothing that it said counts from then on."""

    @abstractmethod
    def begin_at(self, setting: bytes) -> bool:
        """After that, begin with what another replica describes; False if that is too old."""

    @abstractmethod
    def come_back(self) -> None:
        """This replica has its log again: from now on it takes part in changes of the sequencers."""

    @abstractmethod
    def describe(self) -> bytes:
        """The sequencers and the tag, for a replica that has lost its memory."""

    @abstractmethod
    def state(self) -> bytes:
        """What a durable replica keeps."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Take that back."""

    @abstractmethod
    def handles(self, message: Message) -> bool:
        """Whether a message is for the ordering."""

    @abstractmethod
    def on_message(self, source: NodeId, message: Message) -> None:
        """Take such a message."""

    @abstractmethod
    def on_timer(self, name: str) -> bool:
        """Take a timer; False if it is none of the ordering's."""

    @abstractmethod
    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Other nodes are there now."""

    @abstractmethod
    def advance(self) -> None:
        """Hand over what is next."""

    @abstractmethod
    def find(self, slot: Slot) -> LogEntry | None:
        """An entry that has come and was not handed over yet."""

    @abstractmethod
    def offer(self, entry: LogEntry) -> None:
        """Another replica has an entry that is missing here."""

    @abstractmethod
    def check(self, entry: LogEntry) -> None:
        """Refuse an entry of another replica that no sequencer can have stamped for this group."""

    @abstractmethod
    def doubt(self, slot: Slot) -> None:
        """The slot is about to be given up: its entry does not count any more, but nothing passes it."""

    @abstractmethod
    def settle(self, slot: Slot) -> None:
        """The slot is given up: the order goes on past it."""

    @abstractmethod
    def exists(self, slot: Slot) -> bool:
        """Somebody lacks this slot, so it exists. Returns whether it is missing here too."""

    @abstractmethod
    def reset(self, place: LogPlace, entries: Iterable[LogEntry], voids: Iterable[Slot]) -> None:
        """Go to a place, back or ahead. What is beyond comes again, with these entries and without those
        slots."""

    @abstractmethod
    def may_take(self, place: LogPlace) -> bool:
        """Whether this replica may take others' entries up to a place: not beyond what it has reported for a
        change of the sequencers that is not decided yet."""

    @abstractmethod
    def may_have(self, entries: Iterable[LogEntry]) -> bool:
        """The same for entries, which may have numbers in other groups too."""

    @abstractmethod
    def begun(self, sequencer: int) -> int | None:
        """The number after which a sequencer counts; None if it does not count yet, or is not known any
        more."""

    @abstractmethod
    def highest(self, sequencer: int) -> int | None:
        """The highest number of a sequencer that is known to exist; None if it does not count here."""

    @abstractmethod
    def forget(self, synced: LogPlace, kept: Iterable[LogEntry]) -> None:
        """Nobody goes back to before this place; others may still fetch the entries that are kept."""

    @abstractmethod
    def steps_since(self, tag: int) -> bytes | None:
        """The changes after a tag; None if they are not kept."""

    @abstractmethod
    def take_steps(self, start: int, steps: bytes) -> None:
        """Take changes of which another replica tells."""

    @abstractmethod
    def waits(self) -> list[Wait]:
        """What waits here, and for what."""
