"""The plan of a protocol with a shard in each group."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ordercast.components.logged_service import deploy_logged
from ordercast.components.logged_service.logged_replica import LoggedReplica, Place
from ordercast.components.logged_shards.options import ShardsOptions
from ordercast.core import (
    Caller,
    Deployment,
    Env,
    GroupId,
    Guarantees,
    LocalError,
    Message,
    NodeId,
    Options,
    Plan,
    Sharding,
)

Members = dict[GroupId, tuple[NodeId, ...]]
Own = TypeVar("Own", bound=ShardsOptions)


def deploy_shards(
    name: str,
    deployment: Deployment,
    options: Options,
    kind: type[Own],
    replica: Callable[[Env, Place, Own, Members], LoggedReplica],
    client: Callable[[Env, Members, Own, Sharding | None, bool], Caller],
    messages: Sequence[type[Message]],
    promises: Guarantees,
) -> Plan:
    """The plan; `kind` are the options of the protocol, `replica` and `client` make its processes, which know
    the replicas of all shards."""
    if not isinstance(options, kind):
        raise LocalError(f"{name} takes {kind.__name__}, not {type(options).__name__}")
    own, service, members = options, deployment.service, dict(enumerate(deployment.groups))
    sharding = None if service is None else service.sharding

    def make_replica(env: Env, place: Place) -> LoggedReplica:
        spec = None if service is None else service.for_group(place.group, len(members))
        return replica(env, place._replace(service=spec), own, members)

    def make_client(env: Env, _: Mapping[GroupId, tuple[NodeId, ...]], answers: bool) -> Caller:
        return client(env, members, own, sharding, answers)

    return deploy_logged(name, deployment, own, make_replica, make_client, messages, promises)
