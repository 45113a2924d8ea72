"""Keeps a running host up to date about which hosts there are.

The host learns of a change from the cluster file, which it looks at every second like the key file, or from
another host. Hosts tell each other: once a second, a host sends its roster to every peer of which it does not
know that the peer has it too, and the peer answers with its own version. A host that was down, or that has an
old file on another machine, learns of all changes in this way. The messages are sealed like all others.

The longer roster wins, if it begins with the shorter one. An old one that comes again changes nothing.
"""

import asyncio
import logging
from typing import Annotated

import msgspec

from ordercast.core import MALFORMED, HostId, LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.roster import CHANGES_MAX, Roster
from ordercast.net.cluster.roster_file import save
from ordercast.net.cluster.watched_file import WatchedCluster
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.routes import NOWHERE, places_of

_log = logging.getLogger("ordercast")


class RosterNews(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a host tells another."""

    version: Annotated[int, msgspec.Meta(ge=0, le=CHANGES_MAX)]
    roster: Roster | None = None
    """None: the other host has it already."""


class RosterKeeper:
    """The roster of one running host."""

    def __init__(self, cluster: Cluster, host: LiveHost) -> None:
        self._cluster = cluster
        self._file = WatchedCluster(cluster)
        self._host = host
        self._heard: dict[HostId, tuple[int, int]] = {}
        """For each peer, its session and the version that it had."""
        self._disputed: set[Roster] = set()
        host.hear_hosts(self.on_news)
        host.each_second(self.on_second)
        host.add_details(self.details)

    def details(self) -> dict[str, object]:
        """The version of this host, and which peers are not known to have it."""
        return {"roster": self._cluster.roster.version, "roster_untold": self._untold()}

    def on_second(self) -> None:
        """Look at the file, and tell the peers that may not know."""
        self._read_file()
        news = RosterNews(self._cluster.roster.version, self._cluster.roster)
        for peer in self._untold():
            self._tell(peer, news)

    def on_news(self, peer: HostId, body: bytes) -> None:
        """Take what another host tells, and answer."""
        try:
            news = msgspec.msgpack.decode(body, type=RosterNews)
        except MALFORMED:
            self._host.metrics.malformed += 1
            return
        # Not within the handling of a datagram: the host that sent it may be removed by it.
        asyncio.get_running_loop().call_soon(self._take, peer, news)

    def _take(self, peer: HostId, news: RosterNews) -> None:
        link = self._host.wire.peers.get(peer)
        if link is None or not self._host.running:
            return
        self._heard[peer] = (link.sessions.current or 0, news.version)
        if news.roster is not None:
            self._adopt(news.roster, f"host {peer}")
            self._tell(peer, RosterNews(self._cluster.roster.version))

    def _untold(self) -> list[HostId]:
        version = self._cluster.roster.version
        if not version:
            return []
        links = self._host.wire.peers.values()
        current = {link.host: link.sessions.current for link in links if link.sessions.current is not None}
        return [host for host, session in current.items() if not self._has(host, session, version)]

    def _has(self, host: HostId, session: int, version: int) -> bool:
        heard, has = self._heard.get(host, (0, -1))
        return heard == session and has >= version

    def _tell(self, peer: HostId, news: RosterNews) -> None:
        if peer in self._host.wire.peers:
            self._host.tell_host(peer, msgspec.msgpack.encode(news))

    def _read_file(self) -> None:
        try:
            found = self._file.refresh()
        except LocalError as error:
            _log.warning("cannot read the cluster file again, so nothing changes: %s", error)
            return
        if found is not None:
            self._adopt(found.roster, str(found.file))

    def _adopt(self, roster: Roster, origin: str) -> None:
        """Go on with a newer roster; an older one changes nothing, and one that disagrees is refused."""
        mine = self._cluster.roster
        longer, shorter = (roster, mine) if roster.version > mine.version else (mine, roster)
        if not longer.follows(shorter):
            self._dispute(roster, origin)
        elif longer is roster:
            try:
                self._change(self._cluster.with_roster(roster))
            except LocalError as error:
                _log.warning("%s tells of hosts that cannot be: %s", origin, error)
                return
            _log.info("learnt of version %d of the hosts from %s", roster.version, origin)

    def _change(self, cluster: Cluster) -> None:
        plan = cluster.plan()
        if {*places_of(plan)} - {NOWHERE} != {spec.id for spec in cluster.hosts}:
            raise LocalError("the hosts do not have the ids that the plan gives them")
        self._tell_removed(cluster.roster)
        self._cluster = cluster
        self._keep(cluster)
        if self._host.host in cluster.roster.removed:
            self._host.retire(LocalError(f"host {self._host.host} was removed from the cluster"))
        else:
            self._host.change(plan, {spec.id: spec.address for spec in cluster.hosts})

    def _tell_removed(self, roster: Roster) -> None:
        """Tell hosts that they are removed, before they are forgotten: they may be on other machines."""
        for host in sorted(roster.removed - self._cluster.roster.removed):
            self._tell(host, RosterNews(roster.version, roster))

    def _keep(self, cluster: Cluster) -> None:
        """Keep what was heard and is not in the file, for later lives and for the commands."""
        try:
            self._file.refresh()
            if cluster.roster.version > self._file.cluster.roster.version:
                save(cluster.folder, cluster.roster)
        except LocalError as error:
            _log.warning("cannot keep which hosts there are; peers will tell it again: %s", error)

    def _dispute(self, roster: Roster, origin: str) -> None:
        if roster not in self._disputed and len(self._disputed) < CHANGES_MAX:
            self._disputed.add(roster)
            _log.warning(
                "%s disagrees on which hosts came and which were removed: hosts were added or removed in two"
                " places at once; this host keeps what it knows",
                origin,
            )
