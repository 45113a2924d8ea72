"""A live host: runs the processes that a plan puts on it, in one event loop.

The loop works in *turns*: a burst of datagrams, the timers that are due, or the messages that applications
submitted. In a turn handlers run one after the other (`nodes.py`), and their effects are gathered (`turn.py`)
and carried out in one place (`outlet.py`): at the end of the turn, and earlier whenever a datagram is full.

Nothing here knows a protocol. If a process refuses a message, the message is counted and dropped. An
unexpected error stops the host, because its state is then unknown.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from ordercast.core import (
    Explanation,
    Fault,
    GroupId,
    Groups,
    HostId,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    Plan,
    StateWanted,
)
from ordercast.kernel.backlog import Backlog
from ordercast.net.host.acquaintances import Acquaintances
from ordercast.net.host.clock import HostClock
from ordercast.net.host.delivered import AnswerListener, Listener
from ordercast.net.host.identities import OURS
from ordercast.net.host.life import RUNNING, Life, Stage
from ordercast.net.host.live_env import LiveEnv
from ordercast.net.host.membership_requests import MembershipRequests
from ordercast.net.host.nodes import HOST_ITSELF, Nodes
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.recording.contract import Recorder
from ordercast.net.host.routes import Routes, places_of
from ordercast.net.host.senders import Senders
from ordercast.net.host.store import Store
from ordercast.net.host.timers import Timers
from ordercast.net.host.turn import Turn
from ordercast.net.host.turn_loop import TurnLoop
from ordercast.net.host.upkeep import Upkeep
from ordercast.net.links.datagram import write_destinations
from ordercast.net.links.wire import Wire
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.address import Address


class LiveHost:
    """The processes of one host."""

    def __init__(
        self,
        plan: Plan,
        host: HostId,
        wire: Wire,
        *,
        store: Store,
        recorder: Recorder | None = None,
        bundle_bytes: int = 0,
        clock: Callable[[], Nanos] = time.time_ns,
    ) -> None:
        self._plan = plan
        self._host = host
        self._wire = wire
        self._store = store
        self._recorder = recorder
        self._clock = HostClock(clock)
        self._life = Life(host, wire.metrics)
        self._routes = Routes(places_of(plan), host, wire.metrics)
        self._turn = Turn(plan.codec, self._routes, wire.outbox)
        self._outlet = Outlet(recorder, store, wire, self._clock, lambda: self._turns.go_on_soon())
        self._nodes = Nodes(plan, host, self._turn, self._outlet, self._life, self._clock, wire.metrics)
        self._senders = Senders(
            plan,
            host,
            self._nodes.envs,
            bundle_bytes,
            turn=self._turn,
            outlet=self._outlet,
            wire=wire,
            store=store,
            recorder=recorder,
            clock=self._clock,
            life=self._life,
        )
        self._turns = TurnLoop(self._turn, self._outlet, self._nodes, self._senders, self._life, wire)
        self._upkeep = Upkeep(wire, store, self._clock)
        self._requests = MembershipRequests(plan, self._nodes, self._outlet, self._clock, recorder)
        self._life.on_failure(lambda _: self._senders.wake())
        self._details: list[Callable[[], Mapping[str, object]]] = []

    # What others may see

    @property
    def plan(self) -> Plan:
        """All nodes of the cluster."""
        return self._plan

    @property
    def host(self) -> HostId:
        """Which host of the plan this is."""
        return self._host

    @property
    def wire(self) -> Wire:
        """The connection to the other hosts."""
        return self._wire

    @property
    def metrics(self) -> Metrics:
        """The counters of this host."""
        return self._wire.metrics

    @property
    def store(self) -> Store:
        """The saved state of this host."""
        return self._store

    @property
    def recorder(self) -> Recorder | None:
        """The recorder of this host's trace, if there is one."""
        return self._recorder

    @property
    def nodes(self) -> Mapping[NodeId, LiveEnv]:
        """The nodes that run here."""
        return self._nodes.envs

    @property
    def backlogs(self) -> Mapping[NodeId, Backlog]:
        """The backlog of each sender here."""
        return self._senders.backlogs

    @property
    def in_doubt(self) -> int:
        """How many bundles senders here have sent that would be lost if the host stopped now."""
        return self._senders.in_doubt

    @property
    def running(self) -> bool:
        """Whether the host is running."""
        return self._life.stage is RUNNING

    @property
    def remembers(self) -> bool:
        """Whether a later life of a node is the same member. A receiver or sender that may come back without
        its memory, and promises nothing about coming back with it, keeps nothing; its later life is a new
        member."""
        tolerates = self._plan.guarantees.tolerates
        infrastructure = {node.id for node in self._plan.infrastructure()}
        return Fault.RESTART in tolerates or Fault.AMNESIA not in tolerates or infrastructure >= {*self.nodes}

    @property
    def _forgot(self) -> bool:
        """Whether the nodes here had earlier lives of which they know nothing."""
        lost = self._store.lives > 1 and not self.remembers
        return self._store.as_new or (lost and not self._plan.guarantees.churns)

    @property
    def failure(self) -> BaseException | None:
        """The error that stopped this host, if there was one."""
        return self._life.failure

    def explain(self) -> dict[NodeId, Explanation]:
        """What waits at the nodes here, and for what."""
        return {node: env.process.explain() for node, env in self.nodes.items()}

    def explain_node(self, node: NodeId) -> Explanation:
        """What waits at one node, and for what."""
        return self.nodes[node].process.explain()

    # Who wants to be told

    def add_listener(self, node: NodeId, listener: Listener) -> None:
        """Tell a listener what a node delivers."""
        if node not in self.nodes:
            raise LocalError(f"node {node} is not on host {self._host}")
        self._outlet.add_listener(node, listener)

    def add_answer_listener(self, node: NodeId, listener: AnswerListener) -> None:
        """Tell a listener the answers that a client of a service gets."""
        if node not in self.backlogs:
            raise LocalError(f"node {node} is not a client on host {self._host}")
        self._outlet.add_answer_listener(node, listener)

    def on_failure(self, listener: Callable[[BaseException], None]) -> None:
        """Call a listener when the host fails."""
        self._life.on_failure(listener)

    def each_second(self, action: Callable[[], None]) -> None:
        """Call a function once a second."""
        self._upkeep.add(action)

    def add_details(self, details: Callable[[], Mapping[str, object]]) -> None:
        """Have the status of this host say more."""
        self._details.append(details)

    def details(self) -> dict[str, object]:
        """What the status of this host says besides."""
        return {name: value for one in self._details for name, value in one().items()}

    # Life

    async def start(self) -> None:
        """Open the sockets and start all processes."""
        self._life.step(Stage.STARTING)
        loop = asyncio.get_running_loop()
        self._turns.begin(loop)
        self._timers = Timers(loop, self._on_timer, self._turns.end)
        self._upkeep.begin(self._timers)
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        commits = self._store.found  # what was noted since, before the start, is no turn of an earlier life
        begun = self._clock.begin(self._store.begin_life)
        if self._recorder is not None:
            saved = self._store.lives > 1 and self.remembers
            past = saved or self._forgot
            self._recorder.begin(begun, saved=saved, past=past, commits=commits if saved else None)
        self._senders.identities.begin(begun)
        self._wire.introduce(Acquaintances(self._host, self._store, self._turn, self._life.fail))
        await self._wire.start(self._nodes.on_frame, self._turns.end, self._upkeep.repair_soon)
        self._life.step(Stage.RUNNING)
        self._nodes.begin(self._store, self._timers, forgot=self._forgot)
        self._upkeep.start()
        self.end_turn()

    async def stop(self) -> None:
        """Send what is ready, and stop; other hosts still deliver what was not delivered here."""
        if self._life.stage in (Stage.NEW, Stage.STOPPED):
            return
        self.end_turn()
        self._life.attempt(self._outlet.finish)
        ended_well = self.running
        # Calls without an answer are, for the record, the crash of a client.
        forsaken = ended_well and bool(self._plan.service and self._senders.waiting)
        self._life.step(Stage.STOPPED)
        self._senders.wake()
        self._timers.cancel_all()
        self._store.note_time(self._clock.now)
        async with AsyncExitStack() as parts:  # each is let go of, whatever happens to the others
            parts.callback(self._store.close)
            if self._recorder is not None:
                parts.callback(self._recorder.close, failed=self.failure is not None or forsaken)
            parts.push_async_callback(self._wire.transport.close)
            if ended_well:
                self._senders.identities.give_back()

    # Other hosts

    def tell_host(self, host: HostId, body: bytes) -> None:
        """Send a message to another host, for none of its nodes."""
        self._wire.outbox.send((host,), HOST_ITSELF, write_destinations((HOST_ITSELF,)), 1, body)
        self._turns.end_soon()

    def hear_hosts(self, hear: Callable[[HostId, bytes], None]) -> None:
        """Have messages handled that other hosts send by `tell_host`."""
        self._nodes.hear_hosts(hear)

    def change(self, plan: Plan, addresses: Mapping[HostId, Address]) -> None:
        """Go on with another plan of the same cluster: hosts came, or were removed. All have addresses."""
        self.end_turn()
        self._life.attempt(self._outlet.finish)  # what waits may be for a host that is removed now
        for host in [host for host in self._wire.peers if host not in addresses]:
            self._wire.remove_peer(host)
        for host in [host for host in addresses if host not in self._wire.peers and host != self._host]:
            self._wire.add_peer(host, addresses[host])
        self._plan = plan
        self._routes.change(places_of(plan))
        self._senders.change(plan)
        self._nodes.change(plan)
        self.end_turn()

    def retire(self, reason: LocalError) -> None:
        """Stop, because this host is no longer one of the cluster."""
        self._life.fail(reason)

    # Applications

    def skip_messages(self, node: NodeId, count: int) -> None:
        """Before the start: note that a sender used `count` identities; its store may have forgotten."""
        self._senders.identities.skip(node, count)

    def submit(
        self,
        node: NodeId,
        groups: Groups,
        payloads: Sequence[bytes],
        *,
        urgent: bool = False,
        read: bool = False,
        ends_turn: bool = False,
    ) -> MessageId | None:
        """Take messages for these groups; returns the identity of the first, or None if the backlog is full.

        `urgent`: even if it is. `read`: they are reads of a service. `ends_turn`: the caller ends the turn.
        """
        if (first := self._senders.add(node, groups, payloads, urgent, read)) is not None and not ends_turn:
            self._turns.end_soon()
        return first

    def join(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to join a group; it delivers `Joined` when that takes effect."""
        self._requests.ask(node, "join", group)
        self._turns.end_soon()

    def leave(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to leave a group; it delivers `Left` when that takes effect."""
        self._requests.ask(node, "leave", group)
        self._turns.end_soon()

    def give_state(self, node: NodeId, wanted: StateWanted, data: bytes, label: str = "") -> None:
        """Let an application give a state that it was asked for; newcomers fetch it."""
        self._requests.give_state(node, wanted, data, label)
        self._turns.end_soon()

    async def wait_for_room(self) -> None:
        """Wait until there may be room for messages again."""
        await self._senders.wait_for_room()

    def strain(self, strained: bool) -> None:
        """Note whether an application is slow to take its deliveries."""
        self._wire.strain(strained)
        if strained:
            self._senders.wake()  # a taker that waits for room must not, any more

    async def drain(self, timeout_s: float) -> bool:
        """Wait until the protocols have taken all submitted messages, and hold none that would be lost if the
        host stopped; False if that takes longer."""
        return await self._senders.drain(timeout_s)

    # Turns

    def end_turn(self) -> None:
        """End a turn now: handle what waits, and carry all effects out."""
        self._turns.end()

    def _on_timer(self, node: NodeId, name: str) -> None:
        if node == OURS:
            self._life.attempt(self._upkeep.on_timer, name)
        else:
            self._nodes.on_timer(node, name)
