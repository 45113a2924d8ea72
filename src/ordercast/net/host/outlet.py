"""Where the effects of a host's processes leave it: one place, one order.

The order is: record the deliveries, make the saved state durable, tell the applications the deliveries,
send the datagrams. So nobody acts on a delivery that is not on record, and neither applications nor peers
see anything of a host before the state that it saved by then is durable.

The record comes first because a write to the kernel takes microseconds and a wait for the disk takes long.
It names the commit that it depends on. If the host is killed before that commit, nobody saw the deliveries, a
later life makes them again, and the record of the first time is left out. If the disk refuses the state, the
record is taken back: the host stops, and a later life delivers the messages.

A handler may deliver very much at once, for example many thousand drop notifications. Such effects are
carried out in slices, in the same order, and the event loop goes on in between: otherwise a host would answer
nobody for seconds. Later effects wait behind them.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from ordercast.core import LocalError, NodeId
from ordercast.net.host.clock import HostClock
from ordercast.net.host.delivered import AnswerListener, BundleOrNotice, Listener, RepliedBundle
from ordercast.net.host.delivery_log import DeliveryLog
from ordercast.net.host.recording.contract import Recorder
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Effects, Saves
from ordercast.net.links.wire import Wire

SLICE = 1_024
"""So many deliveries are carried out before the event loop goes on. Usual turns have far fewer."""


class Outlet:
    """Carries out the effects of one host's processes."""

    def __init__(
        self,
        recorder: Recorder | None,
        store: Store,
        wire: Wire,
        clock: HostClock,
        go_on_soon: Callable[[], None],
    ) -> None:
        """`go_on_soon` has `go_on` called soon."""
        self._recorder = recorder
        self._store = store
        self._wire = wire
        self._clock = clock
        self._log = DeliveryLog(wire.metrics, recorder)
        self._listeners: dict[NodeId, list[Listener]] = {}
        self._answer_listeners: dict[NodeId, list[AnswerListener]] = {}
        self._go_on_soon = go_on_soon
        self._waiting: deque[Iterator[int]] = deque()
        """The slices of effects that are not carried out yet."""

    def add_listener(self, node: NodeId, listener: Listener) -> None:
        """Tell a listener what a node delivers."""
        self._listeners.setdefault(node, []).append(listener)

    def add_answer_listener(self, node: NodeId, listener: AnswerListener) -> None:
        """Tell a listener the answers that a client gets."""
        self._answer_listeners.setdefault(node, []).append(listener)

    def let_out(self, effects: Effects) -> None:
        """Carry effects out, or some of them now and the others soon."""
        deliveries, saves, datagrams = effects
        if self._waiting or len(deliveries) > SLICE:
            if not self._waiting:
                self._go_on_soon()
            self._waiting.append(self._slices(effects))
            return
        delivered = self._log.enter(deliveries, self._clock.read()) if deliveries else ()
        self._make_durable(saves)
        if delivered:
            self._tell(delivered)
        if datagrams:
            self._wire.transmit(datagrams)

    def go_on(self) -> None:
        """Carry out another slice of what waits."""
        left = SLICE
        while self._waiting and left > 0:
            done = next(self._waiting[0], None)
            if done is None:
                self._waiting.popleft()
            else:
                left -= done
        self._wire.flush()
        if self._waiting:
            self._go_on_soon()

    def finish(self) -> None:
        """Carry out all that waits."""
        while self._waiting:
            for _ in self._waiting.popleft():
                pass

    def _slices(self, effects: Effects) -> Iterator[int]:
        """Carry effects out step by step; gives the number of deliveries of each step."""
        deliveries, saves, datagrams = effects
        delivered: list[tuple[NodeId, BundleOrNotice | RepliedBundle]] = []
        for start in range(0, len(deliveries), SLICE):
            part = deliveries[start : start + SLICE]
            delivered += self._log.enter(part, self._clock.read())
            yield len(part)
        self._make_durable(saves)
        for start in range(0, len(delivered), SLICE):
            told = delivered[start : start + SLICE]
            self._tell(told)
            yield len(told)
        if datagrams:
            self._wire.transmit(datagrams)

    def _make_durable(self, saves: Saves) -> None:
        """Write the record down, submissions too, which are taken down as they come; then save the state."""
        if self._recorder is not None:
            self._recorder.flush(self._store.commits + 1 if saves else 0)
        if saves:
            self._commit(saves)

    def _commit(self, saves: Saves) -> None:
        """Make saved state durable. If that fails, its deliveries were none, and a later life makes them."""
        try:
            self._store.commit(saves)
        except LocalError:
            if self._recorder is not None:
                self._recorder.take_back()
            raise

    def _tell(self, delivered: Sequence[tuple[NodeId, BundleOrNotice | RepliedBundle]]) -> None:
        for node, one in delivered:
            if isinstance(one, RepliedBundle):
                for answered in self._answer_listeners.get(node, ()):
                    answered(one)
                continue
            for listener in self._listeners.get(node, ()):
                listener(one)
