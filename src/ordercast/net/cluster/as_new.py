"""Who may come back as a new member: a host whose nodes may all forget what they saved."""

from ordercast.core import HostId, LocalError, Plan
from ordercast.net.cluster.cluster import Cluster


def screen_as_new(cluster: Cluster, plan: Plan, host: HostId) -> None:
    """Refuse to start a host as new if a node of it must not forget what it saved."""
    lasting = plan.must_remember(host)
    if lasting:
        mine = [node for node in plan.nodes if node.host == host]
        names = cluster.node_names[host]
        which = ", ".join(names[mine.index(node)] for node in lasting)
        raise LocalError(
            f"host {host} cannot come back as new: {plan.protocol} with these options needs what {which} has"
            " saved; leave the host down, or begin a new cluster: ordercast cluster init --force"
        )
