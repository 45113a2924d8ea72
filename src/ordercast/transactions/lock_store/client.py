"""A client of Lock-Store: it coordinates the two phases of each of its calls.

A call asks all of its shards for locks, and commits when all have them. If a lock is taken, it gives up those
that it got, waits for a random time, and makes another attempt. It waits for no lock, so nobody waits in a
circle. An attempt that the shards have frozen, because they thought that this client had died, has the
outcome that they find: the client waits for it, or makes another attempt.
"""

from ordercast.components.execution import Pending
from ordercast.components.logged_shards import Round, ShardsClient
from ordercast.core import GroupId, Message
from ordercast.transactions.lock_store.commands import Command, Order, State, Told, Verb, pack_command


class Phases(Round):
    """One call under way, with its phase."""

    __slots__ = ("verb",)

    def __init__(self) -> None:
        super().__init__()
        self.verb = Verb.LOCK


class TransactionClient(ShardsClient[Phases]):
    """One client of all shards."""

    def make_round(self) -> Phases:
        """A call in its first attempt."""
        return Phases()

    def begin(self, round_: Phases, attempt: int) -> None:
        """Ask for locks."""
        super().begin(round_, attempt)
        round_.verb = Verb.LOCK

    def ask(self, call: Pending, round_: Phases, group: GroupId, *, again: bool = False) -> None:
        """Ask a shard to lock, or to commit."""
        command = Command(round_.verb, call.first, round_.attempt, call.groups)
        if round_.verb is Verb.LOCK:
            packed, done = call.packed(self.calls.floor), self.take_done(group)
            command = Command(Verb.LOCK, call.first, round_.attempt, call.groups, packed, done)
        self.send(group, Order(pack_command(command)), again=again)

    def on_told(self, group: GroupId, message: Message) -> bool:
        """What has become of a call in a shard."""
        if not isinstance(message, Told):
            return False
        found = self.find(message.first, group)
        if found is not None:
            self._on_told(*found, group, message)
        return True

    def _on_told(self, call: Pending, round_: Phases, group: GroupId, told: Told) -> None:
        if told.state is State.COMMITTED:
            if told.results:
                self.keep(call, round_, group, told.state, told.results, told.stamp)
        elif told.state is State.ABORTED:
            if told.attempt >= round_.attempt and told.verb is not Verb.ABORT:
                self.try_again(call, round_, told.attempt + 1)
        elif round_.waits or told.state is State.FROZEN:
            return
        elif (told.verb, told.attempt) == (round_.verb, round_.attempt):
            round_.said[group] = told.state
            self._count(call, round_)

    def _count(self, call: Pending, round_: Phases) -> None:
        """In the first phase: all shards have locked, or one could not."""
        if round_.verb is not Verb.LOCK or len(round_.said) < len(call.groups):
            return
        states = round_.said.values()
        if State.BUSY not in states:
            round_.verb = Verb.COMMIT
            round_.said.clear()
            self.ask_all(call, round_)
            return
        abort = Order(pack_command(Command(Verb.ABORT, call.first, round_.attempt, call.groups)))
        for group, state in round_.said.items():
            if state is State.LOCKED:
                self.send(group, abort)
        self.try_again(call, round_, round_.attempt + 1)
