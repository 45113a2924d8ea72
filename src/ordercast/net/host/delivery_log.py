"""The deliveries of processes: unpacked, counted, recorded, and handed on to listeners."""

from ordercast.core import (
    CARRIERS,
    Carrier,
    Delivery,
    Dropped,
    Nanos,
    NodeId,
    Notice,
    RemoteError,
    Replied,
    RoleChange,
    View,
)
from ordercast.core.bundle import Bundle, unpack_bundle
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle, RepliedBundle
from ordercast.net.host.recording.contract import Recorder
from ordercast.net.host.turn import Deliveries
from ordercast.net.metrics.histogram import Histogram
from ordercast.net.metrics.metrics import Metrics
from ordercast.trace import KIND_OF, RETURNING

SAMPLES = 16
"""How many messages of a large bundle have their latency measured."""


class DeliveryLog:
    """The deliveries of one host, on record if there is a recorder."""

    def __init__(self, metrics: Metrics, recorder: Recorder | None) -> None:
        self._metrics = metrics
        self._recorder = recorder

    def enter(
        self, deliveries: Deliveries, now: Nanos
    ) -> list[tuple[NodeId, BundleOrNotice | RepliedBundle]]:
        """Enter deliveries made at this time; returns what to tell listeners, with the node of each."""
        found = []
        for node, delivery in deliveries:
            delivered = self._enter_one(node, delivery, now)
            if delivered is not None:
                found.append((node, delivered))
        return found

    def _enter_one(
        self, node: NodeId, delivery: Delivery, now: Nanos
    ) -> BundleOrNotice | RepliedBundle | None:
        if isinstance(delivery, CARRIERS):
            return self._open(node, delivery, now)
        if type(delivery) is Replied:
            return self._answer(node, delivery, now)
        assert isinstance(delivery, Notice), delivery
        self._note(node, delivery, now)
        return delivery

    def _open(self, node: NodeId, delivery: Carrier, now: Nanos) -> DeliveredBundle | None:
        try:
            bundle = unpack_bundle(delivery.payload)
        except RemoteError as error:
            self._metrics.malformed += 1
            if self._recorder is not None:
                self._recorder.unreadable(now, node, delivery, str(error))
            return None
        if self._recorder is not None:
            self._recorder.delivered(now, node, delivery, bundle)
        self._metrics.messages_delivered += len(bundle.payloads)
        _time(self._metrics.latency, bundle, now)
        return DeliveredBundle(delivery, bundle, now)

    def _answer(self, node: NodeId, replied: Replied, now: Nanos) -> RepliedBundle:
        bundle = unpack_bundle(replied.payload)
        if self._recorder is not None:
            self._recorder.replied(now, node, replied, bundle)
        self._metrics.operations_answered += len(bundle.payloads)
        _time(self._metrics.answer_latency, bundle, now)
        return RepliedBundle(replied, bundle, now)

    def _note(self, node: NodeId, notice: Notice, now: Nanos) -> None:
        if isinstance(notice, Dropped):
            self._metrics.drops_notified += notice.count
        elif isinstance(notice, View):
            self._metrics.views += 1
            self._metrics.config = notice.config
        elif isinstance(notice, RoleChange):
            self._metrics.role = notice.role
        elif KIND_OF[type(notice)] in RETURNING:
            self._metrics.unconfirmed += notice.rows
        if self._recorder is not None:
            self._recorder.noticed(now, node, notice)


def _time(latency: Histogram, bundle: Bundle, now: Nanos) -> None:
    """Record how long the messages of a bundle took, or some of them."""
    times = bundle.times
    count = len(times)
    if count == 1 or type(times) is tuple:  # a bundle has a tuple of times if they are all equal
        latency.record(now - times[0], count)
        return
    step = max(1, count // SAMPLES)
    for submitted in times[::step]:
        latency.record(now - submitted, step)
