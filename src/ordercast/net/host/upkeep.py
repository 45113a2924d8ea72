"""What a host does for itself at times: look after its links, and what others want done each second."""

from collections.abc import Callable

from ordercast.core import SECOND
from ordercast.net.host.clock import HostClock
from ordercast.net.host.identities import OURS
from ordercast.net.host.store import Store
from ordercast.net.host.timers import Timers
from ordercast.net.links.wire import REPAIR_NS, TICK_NS, Wire

WIRE, REPAIR, EACH_SECOND = "wire", "repair", "second"


class Upkeep:
    """The timers of a host itself, which belong to none of its nodes."""

    def __init__(self, wire: Wire, store: Store, clock: HostClock) -> None:
        self._wire = wire
        self._store = store
        self._clock = clock
        self._actions: list[Callable[[], None]] = []

    def add(self, action: Callable[[], None]) -> None:
        """Call a function once a second."""
        self._actions.append(action)

    def begin(self, timers: Timers) -> None:
        """Use these timers."""
        self._timers = timers

    def start(self) -> None:
        """Set the timers for the first time, when the wire and all nodes have started."""
        self._timers.set(OURS, WIRE, TICK_NS)
        self._timers.set(OURS, EACH_SECOND, SECOND)

    def repair_soon(self) -> None:
        """Look soon for fragments that are lost."""
        self._timers.set(OURS, REPAIR, REPAIR_NS)

    def on_timer(self, name: str) -> None:
        """Do what a timer is for, and set it again."""
        if name == WIRE:
            self._wire.tick()
            self._timers.set(OURS, WIRE, TICK_NS)
        elif name == REPAIR:
            if self._wire.repair():
                self.repair_soon()
        else:
            self._store.note_time(self._clock.read())
            for action in self._actions:
                action()
            self._timers.set(OURS, EACH_SECOND, SECOND)
