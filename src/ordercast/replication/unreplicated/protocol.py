"""Unreplicated: the first receiver of each group is the only server; clients call it, and it answers.

It shows what a service costs without replication (Hydra section 7.2). A client repeats a call until it has
the answer, and the server executes it once. If the server crashes, the state is lost, so no crash is
tolerated. The other receivers of a group do nothing.
"""

from functools import partial
from random import Random

import msgspec

from ordercast.components.execution import CallOptions, Calls, Executor, Pending, unpack_call
from ordercast.components.execution.messages import MESSAGES, Answer, CallMessage, place_of_stamp
from ordercast.components.execution.options import LIVE_CALLS
from ordercast.components.execution.promises import PROMISES
from ordercast.core import (
    MILLISECOND,
    Caller,
    Checkpoint,
    Codec,
    Crashes,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Fault,
    GroupId,
    Groups,
    LocalError,
    Message,
    Nanos,
    Node,
    NodeId,
    Options,
    Pace,
    Partition,
    Plan,
    Process,
    Protocol,
    RemoteError,
    ServiceSpec,
    Stamp,
    named,
)

GUARANTEES = msgspec.structs.replace(
    PROMISES,
    partition=Partition.BLOCKS,
    crashes=Crashes.NONE,
    tolerates=(
        Fault.LOSS,
        Fault.DUPLICATION,
        Fault.REORDERING,
        Fault.PARTITION,
        Fault.PAUSE,
        Fault.CLOCK,
    ),
)


class UnreplicatedOptions(Options, frozen=True):
    """Options of a service without replication."""

    calls: CallOptions = CallOptions()
    """How clients call."""
    checkpoint_every: int = 256
    """The server notes the digest of its state after so many calls; 0: never."""

    def __post_init__(self) -> None:
        if self.checkpoint_every < 0:
            raise LocalError(f"checkpoint_every must not be negative, got {self.checkpoint_every}")


class Server(Process):
    """Executes calls as they come, and answers."""

    def __init__(
        self, env: Env, group: GroupId, service: ServiceSpec | None, options: UnreplicatedOptions
    ) -> None:
        super().__init__(env)
        self._group = group
        self._executor = Executor(env, service)
        self._every = options.checkpoint_every

    def on_message(self, source: NodeId, message: Message) -> None:
        """Execute a call, unless it was executed before, and answer it."""
        if not isinstance(message, CallMessage):
            raise RemoteError(f"node {source} sent {named(message)} to a server")
        call = unpack_call(message.call, source)
        done = self._executor.execute(call, Stamp(self._executor.executed + 1, self._group))
        if done is None:
            return
        if done.fresh:
            self.env.deliver(Delivered(call.bundle, (self._group,), call.client, done.stamp))
            self._checkpoint(done.stamp)
        stamp = self._executor.place if call.read else done.stamp
        self.env.send(source, Answer(done.first, done.results, place_of_stamp(stamp)))

    def _checkpoint(self, stamp: Stamp) -> None:
        if self._every and self._executor.is_checkpoint(self._every):
            self.env.deliver(Checkpoint(self._group, stamp, *self._executor.checkpoint()[1]))

    def explain(self) -> Explanation:
        """Nothing waits at a server."""
        return Explanation({"role": "server", "calls executed": self._executor.executed})


class Standby(Process):
    """Does nothing: nobody replicates."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """Nobody sends it anything."""

    def explain(self) -> Explanation:
        """Nothing waits here."""
        return Explanation({"role": "standby"})


class Client(Caller):
    """Calls the server of a group until it answers."""

    def __init__(
        self, env: Env, servers: dict[GroupId, NodeId], options: UnreplicatedOptions, *, answers: bool
    ) -> None:
        super().__init__(env)
        self._servers = servers
        self._calls = Calls(env, servers, options.calls, self._send, answers=answers)

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations."""
        return self._calls.take(groups, payload)

    def read(self, groups: Groups, payload: bytes) -> bool:
        """Call with reads."""
        return self._calls.take(groups, payload, read=True)

    @property
    def in_doubt(self) -> int:
        """The operations without an answer."""
        return self._calls.in_doubt

    def _send(self, call: Pending) -> None:
        self.env.send(self._servers[call.group], CallMessage(call.packed(self._calls.floor)))

    def on_message(self, source: NodeId, message: Message) -> None:
        """Take an answer."""
        if not isinstance(message, Answer) or source not in self._servers.values():
            raise RemoteError(f"node {source} sent {named(message)} to a client")
        self._calls.settle(message.first, message.results, message.stamp, source)

    def on_timer(self, name: str) -> None:
        """Repeat calls."""
        self._calls.on_timer()

    def explain(self) -> Explanation:
        """The calls without an answer."""
        waits = self._calls.waits("the answer of the server", tuple(self._servers.values()))
        return Explanation({"role": "client", "calls under way": len(waits)}, tuple(waits))


def pace(options: UnreplicatedOptions, delay: Nanos) -> Pace | None:
    """A call takes one way, and again after a retry."""
    again = 9 * options.calls.retry_ns
    return Pace(2 * delay + 10 * MILLISECOND + again, 2 * delay + 10 * MILLISECOND + again)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """One server a group, the clients, and the receivers that do nothing."""
    if not isinstance(options, UnreplicatedOptions):
        raise LocalError(f"unreplicated takes UnreplicatedOptions, not {type(options).__name__}")
    home = deployment.home_groups("unreplicated")
    servers = {group: members[0] for group, members in enumerate(deployment.groups)}
    service = deployment.service

    def receiver(node: NodeId) -> Node:
        if servers[home[node]] == node:
            return Node(node, "server", node, lambda env: Server(env, home[node], service, options))
        return Node(node, "standby", node, Standby, fails=Crashes.ANY)

    nodes = [receiver(node) for node in range(deployment.receivers)]
    nodes += [
        Node(
            node,
            "client",
            deployment.sender_host(node),
            lambda env: Client(env, servers, options, answers=service is not None),
        )
        for node in deployment.sender_ids()
    ]
    return Plan(
        "unreplicated",
        GUARANTEES,
        tuple(nodes),
        {group: (server,) for group, server in servers.items()},
        deployment.sender_ids(),
        Codec(MESSAGES),
        partial(pace, options),
        service=service,
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm."""
    return {
        "calls": {"window": rng.choice((1, 4, 64)), "retry_ns": rng.choice((5, 20)) * MILLISECOND},
        "checkpoint_every": rng.choice((0, 1, 16)),
    }


PROTOCOL = Protocol(
    name="unreplicated",
    summary="One server, no replication: the ceiling that replicated services are measured against.",
    paper="Hydra (NSDI 2023), section 7.2",
    guarantees=GUARANTEES,
    options=UnreplicatedOptions,
    deploy=deploy,
    roles=("server", "standby", "client"),
    serves=True,
    vary=vary,
    live={"calls": LIVE_CALLS},
)
