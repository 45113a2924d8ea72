"""The senders of a live host: they keep submitted messages until the protocols have taken them."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ordercast.core import Groups, HostId, LocalError, MessageId, Nanos, NodeId, Plan, message_id
from ordercast.core.bundle import HEAD_BYTES
from ordercast.kernel.backlog import Backlog
from ordercast.kernel.payloads import check_payloads
from ordercast.kernel.recipients import Recipients
from ordercast.net.host.clock import HostClock
from ordercast.net.host.identities import Identities
from ordercast.net.host.life import RUNNING, Life
from ordercast.net.host.live_env import LiveEnv
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.recording.contract import Recorder
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Turn
from ordercast.net.links.wire import Wire

BACKLOG_BYTES_MAX = 8 << 20
ENVELOPE_BYTES = 128
"""About how many bytes protocols add to a payload; if one adds more, that costs a fragment."""
DRAIN_S = 0.02
"""How often a host that drains looks whether its protocols still hold messages."""


class Senders:
    """The senders of a plan that are on one host, each with a backlog."""

    def __init__(
        self,
        plan: Plan,
        host: HostId,
        envs: Mapping[NodeId, LiveEnv],
        bundle_bytes: int,
        *,
        turn: Turn,
        outlet: Outlet,
        wire: Wire,
        store: Store,
        recorder: Recorder | None,
        clock: HostClock,
        life: Life,
    ) -> None:
        self._plan = plan
        self._host = host
        self._envs = envs
        self._turn = turn
        self._outlet = outlet
        self._wire = wire
        self._recorder = recorder
        self._clock = clock
        self._life = life
        self._room = asyncio.Event()
        self._recipients = Recipients(plan.groups, plan.groups_max)
        packet_bytes = max(bundle_bytes or wire.outbox.room - ENVELOPE_BYTES, HEAD_BYTES + 1)
        locks = plan.service.locks if plan.service is not None else None
        self._backlogs = {
            node: Backlog(message_id(node, 0), packet_bytes, bytes_max=BACKLOG_BYTES_MAX, locks=locks)
            for node in plan.senders
            if plan.nodes[node].host == host
        }
        self._origins: dict[NodeId, Backlog] = {}
        """For each replica here that may ask other groups: the identities of what it asks."""
        if plan.service is not None and plan.service.asks:
            self._origins = {
                node: Backlog(message_id(node, 0), packet_bytes)
                for node in envs
                if node not in self._backlogs
            }
        for node in self._origins:
            envs[node].identify_by(self._originate)
        self.identities = Identities(self._backlogs | self._origins, store, turn)
        self._ends = self.identities.ends

    def change(self, plan: Plan) -> None:
        """Go on with another plan of the same cluster."""
        self._plan = plan
        self._recipients = Recipients(plan.groups, plan.groups_max)

    @property
    def backlogs(self) -> Mapping[NodeId, Backlog]:
        """The backlog of each sender."""
        return self._backlogs

    @property
    def waiting(self) -> bool:
        """Whether some sender has a backlog, or its protocol may still have to send messages again."""
        return any(backlog.bundles for backlog in self._backlogs.values()) or self.in_doubt > 0

    @property
    def in_doubt(self) -> int:
        """How many bundles protocols have taken that would be lost if the host stopped now."""
        return sum(self._plan.member(self._envs[node].process).in_doubt for node in self._backlogs)

    def add(
        self, node: NodeId, groups: Groups, payloads: Sequence[bytes], urgent: bool, read: bool = False
    ) -> MessageId | None:
        """Take messages; the identity of the first, or None if the backlog is full or the host is down."""
        backlog = self._backlogs.get(node)
        if backlog is None:
            raise LocalError(f"node {node} is not a sender on host {self._host}")
        self._recipients.count(groups)
        check_payloads(payloads)
        metrics, count = self._wire.metrics, len(payloads)
        if (backlog.full and not urgent) or self._life.stage is not RUNNING:
            metrics.messages_refused += count
            return None
        now = self._clock.read()
        if count == 1:
            first = backlog.add_one(groups, now, payloads[0], read)
        else:
            first = backlog.add(groups, now, payloads, read=read)
        metrics.messages_submitted += count
        if self._recorder is not None:
            self._recorder.submitted(node, groups, first, [now] * count, payloads, read=read)
        if backlog.next_message + count > self._ends[node]:
            self.identities.set_aside(node)
        return first

    def _originate(self, node: NodeId, groups: Groups, payload: bytes, read: bool) -> tuple[MessageId, Nanos]:
        """Give an operation of a replica an identity, and put it on record."""
        backlog, now = self._origins[node], self._clock.read()
        message = backlog.reserve()
        if self._recorder is not None:
            self._recorder.submitted(node, groups, message, [now], [payload], read=read)
        if backlog.next_message >= self._ends[node]:
            self.identities.set_aside(node)
        return message, now

    def hand_over(self) -> None:
        """Submit bundles to the protocols until their windows or the network are full."""
        for node, backlog in self._backlogs.items():
            if backlog.bundles:
                self._hand_over(self._envs[node], backlog)

    def _hand_over(self, env: LiveEnv, backlog: Backlog) -> None:
        member = self._plan.member(env.process)
        before = backlog.messages
        env.now = self._clock.read()
        while backlog.bundles and not self._wire.pressed() and backlog.offer(member) is not None:
            if self._turn.outbox.closed:
                self._outlet.let_out(self._turn.take_full())
        self._wire.metrics.backlog_messages = sum(one.messages for one in self._backlogs.values())
        if backlog.messages < before:
            self.wake()

    def wake(self) -> None:
        """Wake those who wait for room: there is some, or there will be none."""
        self._room.set()

    async def wait_for_room(self) -> None:
        """Wait until a backlog has become shorter, or there is another reason to try again."""
        self._room.clear()
        await self._room.wait()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until nothing waits here, or the host is down; False if that takes longer."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._life.stage is RUNNING and self.waiting:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(DRAIN_S):
                            await self.wait_for_room()
        except TimeoutError:
            return False
        return True
