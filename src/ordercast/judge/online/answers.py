"""Answers: a fresh service that executes the delivered order gives the same answers.

The operations of each group are executed again, in the order of their places; a read is executed behind the
place that its answer names. The size and the digest of each result must be those of the answers. This needs
the bytes of the operations (`Replay`), which a trace does not have.

Each shard executes its own order, and a client is answered by all shards of a transaction together.

Only what is known to be whole is judged: up to the highest place that a replica delivered after everything
before it. A replica that took over a state may have delivered what lies behind operations that no replica
delivered, because the run ended too early. Replicas that had lives before the run do not begin with a fresh
service.
"""

from typing import NamedTuple
from zlib import crc32

from ordercast.core import Context, GroupId, MessageId, NodeId, RemoteError, format_ns, message_name
from ordercast.judge.finding import Replay
from ordercast.judge.finding.shard_replay import ShardStep, combined, is_sharded, replay_shard
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.stamp_place import FIRST, StampPlace, place_of
from ordercast.trace import ABORTED, ANSWERING, ORDERED, READ, RESTORED, Event, Kind


class Turn(NamedTuple):
    """One execution; they compare by their places."""

    place: StampPlace
    reads: bool
    message: MessageId


class Stretch:
    """What a replica delivered in a row: behind a state that it took over, or from the start."""

    def __init__(self, behind: StampPlace) -> None:
        self.behind = behind
        self.last = behind


class Answers(Oracle):
    """The answers are those of a fresh service."""

    reads = True

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._replay = case.replay
        self._invoked: dict[MessageId, Event] = {}
        self._delivered: dict[GroupId, dict[MessageId, StampPlace]] = {}
        self._stretches: dict[GroupId, dict[NodeId, list[Stretch]]] = {}
        self._replies: dict[MessageId, list[Event]] = {}
        self._ends: dict[GroupId, dict[ShardStep, None]] = {}
        """Where shards ended transactions without effect."""
        self._sharded = case.replay is not None and is_sharded(case.description.guarantees, case.replay)

    def handlers(self) -> dict[Kind, Handler]:
        """Invocations, deliveries, states and answers; nothing if nothing can be executed again."""
        if self._replay is None or self.description.resumed:
            return {}
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(ORDERED, self._on_deliver),
            Kind.CHECKPOINT: self._on_checkpoint,
            **dict.fromkeys(ANSWERING, self._on_reply),
            Kind.RELEASED: self._on_released,
        }

    def _on_submit(self, event: Event) -> None:
        if event.message is not None:
            self._invoked[event.message] = event

    def _on_deliver(self, event: Event) -> None:
        place = place_of(event)
        if event.message is None or place is None:
            return
        for group in event.groups or ():
            if self._sharded and event.node not in self.description.groups[group]:
                continue
            self._delivered.setdefault(group, {}).setdefault(event.message, place)
            stretch = self._of_node(group, event.node)[-1]
            stretch.last = max(stretch.last, place)

    def _on_checkpoint(self, event: Event) -> None:
        place = place_of(event)
        if event.label == RESTORED and place is not None:
            for group in event.groups or ():
                self._of_node(group, event.node).append(Stretch(place))

    def _of_node(self, group: GroupId, node: NodeId) -> list[Stretch]:
        return self._stretches.setdefault(group, {}).setdefault(node, [Stretch(FIRST)])

    def _on_reply(self, event: Event) -> None:
        if event.message is not None:
            self._replies.setdefault(event.message, []).append(event)

    def finish(self) -> None:
        """Execute the operations of each group again."""
        if self._replay is None:
            return
        if self._sharded:
            self._judge_shards(self._replay)
            return
        for group in sorted(self.description.groups):
            self._judge_group(group, self._replay)

    def _judge_shards(self, replay: Replay) -> None:
        """Each shard executes its own order, and a client is answered by all shards together."""
        groups = sorted(self.description.groups)
        operations = {message: _operation(replay, invoked) for message, invoked in self._invoked.items()}
        results = {
            group: replay_shard(replay, operations, group, len(groups), self._steps(group))
            for group in groups
        }
        for message, replies in self._replies.items():
            invoked = self._invoked.get(message)
            parts = [results[group] for group in (invoked.groups if invoked is not None else ()) or ()]
            expected = combined(replay, operations[message], message, parts) if parts else None
            if expected is None:
                continue
            known = (len(expected), crc32(expected))
            for reply in replies:
                if (reply.size, reply.digest) != known:
                    self._tell(reply, known)

    def _steps(self, group: GroupId) -> list[ShardStep]:
        """What a shard executes, as far as it is known to be whole."""
        end = self._whole(group)
        steps = [
            ShardStep(place, False, message, self._invoked[message].submitted_ns or 0)
            for message, place in self._delivered.get(group, {}).items()
            if message in self._invoked
        ]
        return [step for step in (*steps, *self._ends.get(group, ())) if step.place <= end]

    def _on_released(self, event: Event) -> None:
        place = place_of(event)
        if event.label == ABORTED and place is not None and event.message is not None:
            for group in event.groups or ():
                self._ends.setdefault(group, {})[ShardStep(place, True, event.message)] = None

    def _judge_group(self, group: GroupId, replay: Replay) -> None:
        end = self._whole(group)
        turns = [
            Turn(place, False, message)
            for message, place in self._delivered.get(group, {}).items()
            if place <= end and message in self._invoked
        ]
        turns += [
            Turn(place, True, message)
            for message, invoked in self._invoked.items()
            if invoked.label == READ and group in (invoked.groups or ())
            for place in dict.fromkeys(place_of(reply) or FIRST for reply in self._replies.get(message, ()))
            if place <= end
        ]
        service = replay.service.part(group)
        if service.asks:  # the deliveries do not tell where its operations went on
            return
        machine, now = service.make(), 0
        for turn in sorted(turns):
            invoked = self._invoked[turn.message]
            operation = _operation(replay, invoked)
            if turn.reads:
                result = machine.read(operation, Context(turn.message, now))
            else:
                now = max(now, invoked.submitted_ns or 0)
                result = machine.apply(operation, Context(turn.message, now))
            self._compare(turn, result)

    def _whole(self, group: GroupId) -> StampPlace:
        """The highest place up to which everything was delivered by some replica."""
        waiting = [one for stretches in self._stretches.get(group, {}).values() for one in stretches]
        end = FIRST
        while sound := [stretch for stretch in waiting if stretch.behind <= end]:
            end = max(end, *(stretch.last for stretch in sound))
            waiting = [stretch for stretch in waiting if stretch not in sound]
        return end

    def _compare(self, turn: Turn, result: bytes) -> None:
        expected = (len(result), crc32(result))
        for reply in self._replies.get(turn.message, ()):
            named = place_of(reply) or FIRST
            if (reply.size, reply.digest) != expected and (not turn.reads or named == turn.place):
                self._tell(reply, expected)

    def _tell(self, reply: Event, expected: tuple[int, int]) -> None:
        assert reply.message is not None
        self.report(
            (reply.node,) if reply.peer is None else (reply.node, reply.peer),
            (reply.message,),
            (reply.time_ns,),
            f"node {reply.node} got an answer to {message_name(reply.message)} at"
            f" {format_ns(reply.time_ns)} of {reply.size} bytes with digest {reply.digest}; a fresh service"
            f" that executes the delivered order answers with {expected[0]} bytes and digest {expected[1]}",
            at_end=True,
        )


def _operation(replay: Replay, invoked: Event) -> bytes:
    """The bytes of an operation; `RemoteError` if they are not those that were submitted."""
    assert invoked.message is not None
    operation = replay.operations.get(invoked.message)
    if operation is None or (invoked.digest is not None and crc32(operation) != invoked.digest):
        raise RemoteError(
            f"the history does not have the operation {message_name(invoked.message)} that the trace has"
        )
    return operation
