"""Writes a new cluster file for this machine: complete, with comments."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from ordercast.catalogue import find_protocol, serving_protocol
from ordercast.core import Deployment, HostId, LocalError, Plan, ServiceSpec
from ordercast.net.transports.address import PORT_MAX
from ordercast.toml_file import convert_options

LOOPBACK = "127.0.0.1"
CLIENTS = 2
"""The clients of a service, if nobody says how many: one for a program, one for `ordercast call`."""
EMBEDDED_CLIENTS = 1
"""The same, if they are beside replicas: each program that does not run leaves a replica out."""

_HEAD = """\
# A cluster: which protocol runs on which hosts. All hosts of the cluster read the same file.
name = "{name}"
protocol = "{protocol}"        # ordercast protocols lists them, with their guarantees and options
{participants}# trace = true                 # record a trace, for `ordercast check`
# bundle_bytes = 0             # largest bundle of messages; 0: as large as fits into a datagram
# inbox_bytes = 16777216       # bytes that may wait for a slow application before senders are slowed down
# folder = ".ordercast/{name}" # folder of state, sockets, logs and traces

[options]                      # options of the protocol
{options}
[groups]                       # {members}
{groups}

[transport]
kind = "udp"                   # or "multicast", or "tcp"
# datagram_bytes = 0           # 0: 60000 on one machine, 1400 on a network
# busy_poll = false            # true: lower latency, at the cost of a whole core per host
# buffer_bytes = 4194304       # buffers of sockets; limited by net.core.rmem_max and wmem_max
# window_bytes = 0             # unacknowledged bytes from host to host; 0: a share of the buffer

[security]
{security}
# [metrics]                    # metrics over HTTP: host 0 at this port, host 1 at the next, and so on
# port = 9400
# address = "127.0.0.1"
"""

_ORDERING = """\
senders = {senders}
colocated = true               # each sender is on a receiver's host: an application there sends and receives
"""
_SERVING = """\
service = {service}
clients = {senders}                    # hosts of programs that call the service: ordercast.connect
"""
_EMBEDDED = """\
colocated = true               # each client is on a replica's host: a program that connects runs that replica
"""
_SPARE = "a spare: ordercast cluster act {}"
_APPLICATION = "left to applications: ordercast.join"
_CLIENT = "left to programs that call the service: ordercast.connect"
_MEMBERS = "receivers per group, or a list of their numbers if groups overlap: [0, 1, 2]"
_REPLICAS = "replicas per group; each group is a service of its own"


class NewCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The choices for a new cluster file."""

    name: str = "demo"
    protocol: str = "hydra"
    receivers: int = 3
    """Receivers per group."""
    groups: int = 1
    senders: int = 0
    """Number of senders; 0: one on each receiver's host."""
    applications: int = 0
    """How many receivers per group, the last ones, are left to applications."""
    options: dict[str, object] = {}
    port: int = 7400
    """The port of the first host; the others have the next ones."""
    plaintext: bool = False
    service: ServiceSpec | None = None
    """The service that the receivers replicate."""
    embedded: bool = False
    """Whether the clients of the service are on hosts of replicas, and not on hosts of their own."""

    def text(self) -> str:
        """The cluster file."""
        if self.receivers < 1 or self.groups < 1 or self.senders < 0:
            raise LocalError("a cluster needs at least one group with at least one receiver")
        if not 0 <= self.applications <= self.receivers:
            raise LocalError(f"0 to {self.receivers} receivers of each group can be left to applications")
        if self.embedded and self.service is None:
            raise LocalError("only clients of a service can be embedded; receivers have senders beside them")
        senders = self.senders or self._usual_senders()
        plan = self._plan(senders)
        hosts = sorted({node.host for node in plan.nodes})
        if not 1 <= self.port <= PORT_MAX + 1 - len(hosts):
            raise LocalError(
                f"{len(hosts)} hosts do not fit from port {self.port} on; ports are 1 to {PORT_MAX}"
            )
        head = _HEAD.format(
            name=self.name,
            protocol=self.protocol,
            participants=self._participants(senders),
            members=_REPLICAS if self.service else _MEMBERS,
            options="".join(f"{name} = {_toml(value)}\n" for name, value in self.options.items()),
            groups="\n".join(f"{name} = {self.receivers}" for name in group_names(self.groups)),
            security=_security(self.plaintext),
        )
        left_out = self._spares(plan) | self._applications(plan) | self._clients(plan)
        tables = (
            _host(plan, host, self.port + index, left_out.get(host, "")) for index, host in enumerate(hosts)
        )
        return head + "".join(tables)

    def _usual_senders(self) -> int:
        if self.service is None:
            return self.receivers * self.groups
        return EMBEDDED_CLIENTS if self.embedded else CLIENTS

    @property
    def run_by_programs(self) -> int:
        """How many receivers of some group are left to programs."""
        clients = (self.senders or EMBEDDED_CLIENTS) if self.embedded else 0
        return max(self.applications, min(clients, self.receivers))

    def _participants(self, senders: int) -> str:
        if self.service is None:
            return _ORDERING.format(senders=senders)
        clients = _SERVING.format(senders=senders, service=_toml(self.service.name))
        return clients + _EMBEDDED if self.embedded else clients

    def _clients(self, plan: Plan) -> dict[HostId, str]:
        """The hosts of the clients of a service, as which programs connect."""
        return {plan.nodes[node].host: _CLIENT for node in plan.senders} if self.service else {}

    def _applications(self, plan: Plan) -> dict[HostId, str]:
        """The hosts of the last receivers of each group, as which applications join."""
        if not self.applications:
            return {}
        receivers = [node for members in plan.groups.values() for node in members[-self.applications :]]
        return {plan.nodes[node].host: _APPLICATION for node in receivers}

    def _spares(self, plan: Plan) -> dict[HostId, str]:
        """The hosts with only spare nodes; they are started on demand."""
        busy = {node.host for node in plan.nodes if not node.spare}
        actions = find_protocol(self.protocol).all_actions(self.options)
        names = {role: action.name for action in actions for role in action.roles}
        return {
            node.host: _SPARE.format(names.get(node.role, "")).rstrip()
            for node in plan.nodes
            if node.host not in busy
        }

    def _plan(self, senders: int) -> Plan:
        protocol = serving_protocol(self.protocol) if self.service else find_protocol(self.protocol)
        colocated = self.embedded or self.service is None
        deployment = Deployment.disjoint(self.groups, self.receivers, senders, colocated=colocated)
        deployment = replace(deployment, service=self.service)
        return protocol.deploy(deployment, convert_options(dict(self.options), protocol, list_keys=True))


def group_names(count: int) -> list[str]:
    """Names for groups that have none."""
    return ["all"] if count == 1 else [f"group-{index}" for index in range(count)]


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
    return msgspec.json.encode(value).decode()  # the same as TOML for plain values


def _security(plaintext: bool) -> str:
    if plaintext:
        return 'mode = "plaintext"             # anybody on this machine can read and forge messages\n'
    return 'key_file = "cluster.key"       # beside this file; the same on all hosts, and secret\n'


def _host(plan: Plan, host: HostId, port: int, left_out: str) -> str:
    """The table of a host; `left_out` says why `cluster up` does not start it, or is empty."""
    roles = ", ".join(f'"{node.role}"' for node in plan.nodes if node.host == host)
    lines = ["", "[[host]]", f"id = {host}", f'address = "{LOOPBACK}:{port}"', f"roles = [{roles}]"]
    lines += [f"start = false                  # {left_out}"] if left_out else []
    return "\n".join(lines) + "\n"
