"""Where the effects of a host's processes leave it: one place, one order.

What was delivered goes on record; what was saved is made durable; what was delivered goes to the
applications; what was sent goes to the wire. So nobody can have acted on a delivery that is not on record,
and nothing is seen of a host, by applications or by peers, before what it had saved by then is durable.

The record comes first: to write to the kernel is a matter of microseconds, to wait for the disk takes long,
and if the host is killed in between, its state says already that the messages were delivered.
"""

from collections.abc import Sequence

from ordercast.core import NodeId
from ordercast.net.host.clock import HostClock
from ordercast.net.host.delivery_log import DeliveryLog
from ordercast.net.host.heard import Heard, Listener
from ordercast.net.host.recording.spool import Recorder
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Effects
from ordercast.net.links.wire import Wire


class Outlet:
    """The way out of one host."""

    def __init__(self, recorder: Recorder | None, store: Store, wire: Wire, clock: HostClock) -> None:
        self._recorder = recorder
        self._store = store
        self._wire = wire
        self._clock = clock
        self._log = DeliveryLog(wire.metrics, recorder)
        self._listeners: dict[NodeId, list[Listener]] = {}

    def add_listener(self, node: NodeId, listener: Listener) -> None:
        """Tell somebody what a node delivers."""
        self._listeners.setdefault(node, []).append(listener)

    def let_out(self, effects: Effects) -> None:
        """Carry effects out."""
        deliveries, saves, datagrams = effects
        heard = self._log.enter(deliveries, self._clock.read()) if deliveries else ()
        if self._recorder is not None:
            self._recorder.flush()  # submissions too, which are taken down as they come
        if saves:
            self._store.commit(saves)
        if heard:
            self._tell(heard)
        if datagrams:
            self._wire.transmit(datagrams)

    def _tell(self, heard: Sequence[tuple[NodeId, Heard]]) -> None:
        for node, one in heard:
            for listener in self._listeners.get(node, ()):
                listener(one)
