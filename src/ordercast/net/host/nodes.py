"""The processes of a live host, and how events reach their handlers.

A handler runs to its end. If it has filled a datagram by then, the effects so far are carried out; the others
wait for the end of the turn.
"""

import logging
from collections.abc import Callable, Mapping

from ordercast.core import (
    HostId,
    LocalError,
    Message,
    NodeId,
    Plan,
    RemoteError,
    packet_text,
    protocol_failed,
)
from ordercast.net.host.clock import HostClock
from ordercast.net.host.life import RUNNING, Life
from ordercast.net.host.live_env import LiveEnv
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.routes import NOWHERE, places_of
from ordercast.net.host.store import Store
from ordercast.net.host.timers import Timers
from ordercast.net.host.turn import Turn
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.transport import Datagram

LOCAL_MAX = 10_000
"""How many messages between processes of this host are handled in a turn; more wait for the next."""

HOST_ITSELF = (1 << 32) - 1
"""The source and the destination of a message from host to host; no node has this id."""

_log = logging.getLogger("ordercast")


class Nodes:
    """The nodes of a plan that are on one host."""

    def __init__(
        self,
        plan: Plan,
        host: HostId,
        turn: Turn,
        outlet: Outlet,
        life: Life,
        clock: HostClock,
        metrics: Metrics,
    ) -> None:
        self._plan = plan
        self._places = places_of(plan)
        self._decode = plan.codec.decode
        self._turn = turn
        self._outbox = turn.outbox
        self._outlet = outlet
        self._life = life
        self._clock = clock
        self._metrics = metrics
        self._hear_host: Callable[[HostId, bytes], None] = lambda host, body: None
        self._envs = {node.id: LiveEnv(node.id, turn) for node in plan.nodes if node.host == host}
        if not self._envs:
            known = ", ".join(map(str, sorted({*self._places} - {NOWHERE})))
            raise LocalError(f"the plan has no host {host}; its hosts are: {known}")

    @property
    def envs(self) -> Mapping[NodeId, LiveEnv]:
        """The environment of each node."""
        return self._envs

    def begin(self, store: Store, timers: Timers, *, forgot: bool) -> None:
        """Start all processes; `forgot` says whether earlier lives lost what they had saved."""
        for env in self._envs.values():
            env.begin(self._clock.now, self._plan.nodes[env.me].factory, timers, forgot=forgot)
        for env in self._envs.values():
            self._run(env, "its start", self._start, env, store.load(env.me))
        if self._plan.changes:
            self._tell_nodes()

    def _start(self, env: LiveEnv, saved: Mapping[str, bytes]) -> None:
        """Start a process. It may find that its saved state is not its own: that is the user's error."""
        try:
            env.process.on_start(saved)
        except LocalError as error:
            self._life.fail(error)

    def change(self, plan: Plan) -> None:
        """Go on with another plan of the same cluster, and tell all processes."""
        self._plan = plan
        self._places = places_of(plan)
        self._tell_nodes()

    def _tell_nodes(self) -> None:
        roles = self._plan.present()
        for env in self._envs.values():
            self._run(env, "a change of the cluster's nodes", env.process.on_nodes, roles)

    def on_frame(
        self, host: HostId, source: NodeId, destinations: tuple[NodeId, ...], body: Datagram
    ) -> None:
        """Handle a frame: decode its message, and pass it to each destination on this host."""
        if source >= len(self._places) or self._places[source] != host:
            if source == HOST_ITSELF:
                self._hear_host(host, bytes(body))
            else:
                self._metrics.rejected_source += 1
            return
        try:
            message = self._decode(body)
        except RemoteError:
            self._metrics.malformed += 1
            return
        for node in destinations:
            env = self._envs.get(node)
            if env is not None:
                self._handle(env, source, message)

    def hear_hosts(self, hear: Callable[[HostId, bytes], None]) -> None:
        """Set what handles messages of other hosts that are from none of their nodes."""
        self._hear_host = hear

    def pass_on(self) -> None:
        """Handle messages between processes here, up to a limit per turn.

        What these send elsewhere leaves before what they send here is handled, so that other hosts work at
        the same time; unless something has to be saved first, which is saved once a turn.
        """
        local, left = self._turn.local, LOCAL_MAX
        while local and left > 0:
            for _ in range(min(len(local), left)):
                left -= 1
                node, source, message = local.popleft()
                self._handle(self._envs[node], source, message)
            if local and not self._turn.saves and self._outbox.is_open:
                self._life.attempt(self._let_all_out)

    def on_timer(self, node: NodeId, name: str) -> None:
        """Handle a timer of a process that went off."""
        env = self._envs[node]
        self._run(env, f"its timer '{name}'", env.process.on_timer, name)

    def call(self, node: NodeId, event: str, handler: Callable[..., None], *args: object) -> None:
        """Call a method of a process for its application."""
        self._run(self._envs[node], event, handler, *args)

    def _handle(self, env: LiveEnv, source: NodeId, message: Message) -> None:
        if self._life.stage is not RUNNING:
            return
        env.now = self._clock.read()
        try:
            env.process.on_message(source, message)
        except RemoteError as error:
            self._metrics.implausible += 1
            _log.debug("node %d refused a message from node %d: %s", env.me, source, error)
        except Exception as error:
            self._life.fail(protocol_failed(env.me, env.now, packet_text(source, message), error))
        if self._outbox.closed:
            self._life.attempt(self._let_out)

    def _run(self, env: LiveEnv, event: str, handler: Callable[..., None], *args: object) -> None:
        if self._life.stage is not RUNNING:
            return
        env.now = self._clock.read()
        try:
            handler(*args)
        except Exception as error:
            self._life.fail(protocol_failed(env.me, env.now, event, error))
        if self._outbox.closed:
            self._life.attempt(self._let_out)

    def _let_all_out(self) -> None:
        self._outlet.let_out(self._turn.take())

    def _let_out(self) -> None:
        self._outlet.let_out(self._turn.take_full())
