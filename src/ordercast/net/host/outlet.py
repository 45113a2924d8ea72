"""Where the effects of a host's processes leave it: one place, one order.

The order is: record the deliveries, make the saved state durable, tell the applications the deliveries,
send the datagrams. So nobody acts on a delivery that is not on record, and neither applications nor peers
see anything of a host before the state that it saved by then is durable.

The record comes first because a write to the kernel takes microseconds and a wait for the disk takes long.
If the host is killed in between, its state already says that the messages were delivered.
"""

from collections.abc import Sequence

from ordercast.core import NodeId
from ordercast.net.host.clock import HostClock
from ordercast.net.host.delivered import BundleOrNotice, Listener
from ordercast.net.host.delivery_log import DeliveryLog
from ordercast.net.host.recording.spool import Recorder
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Effects
from ordercast.net.links.wire import Wire


class Outlet:
    """Carries out the effects of one host's processes."""

    def __init__(self, recorder: Recorder | None, store: Store, wire: Wire, clock: HostClock) -> None:
        self._recorder = recorder
        self._store = store
        self._wire = wire
        self._clock = clock
        self._log = DeliveryLog(wire.metrics, recorder)
        self._listeners: dict[NodeId, list[Listener]] = {}

    def add_listener(self, node: NodeId, listener: Listener) -> None:
        """Tell a listener what a node delivers."""
        self._listeners.setdefault(node, []).append(listener)

    def let_out(self, effects: Effects) -> None:
        """Carry effects out."""
        deliveries, saves, datagrams = effects
        delivered = self._log.enter(deliveries, self._clock.read()) if deliveries else ()
        if self._recorder is not None:
            self._recorder.flush()  # submissions too, which are taken down as they come
        if saves:
            self._store.commit(saves)
        if delivered:
            self._tell(delivered)
        if datagrams:
            self._wire.transmit(datagrams)

    def _tell(self, delivered: Sequence[tuple[NodeId, BundleOrNotice]]) -> None:
        for node, one in delivered:
            for listener in self._listeners.get(node, ()):
                listener(one)
