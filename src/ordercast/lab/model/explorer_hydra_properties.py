"""What must hold of Hydra (section 4.2), the same as in the specification, said of what receivers deliver.

- *Global order*: every receiver delivers by (clock, sequencer), and a message has one place everywhere.
- *Local order*: the numbers of a sequencer are settled (delivered or notified) one after the other, each
  once.
- *At most once*: no receiver delivers a message twice, also if its sender sent it through two sequencers; the
  copy that counts has one place everywhere.
- *Delivery*: what one receiver delivers is settled at every receiver of its groups before anything later is.
- *Views*: configurations come one after the other and are the same everywhere; of a removed sequencer all
  numbers up to the last agreed upon are settled before the view and none after it; an added one begins where
  it was agreed; and a message belongs to the same configuration everywhere.
- *Progress*: when faults end, every stamped number is settled everywhere, and what was to be added or removed
  is. A message of a sender that keeps is delivered or notified at every receiver of its groups, or its sender
  is told that it is unconfirmed.

They are exact where groups have one receiver, or where a quorum is the whole group. Of a minority that has
gone beyond what a majority agreed on, less is promised (Appendix B).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ordercast.core import Delivered, Delivery, Dropped, Groups, NodeId, Notice, Plan, Unconfirmed, View
from ordercast.lab.model.explorer_case import Properties
from ordercast.lab.model.explorer_world import History, Packet
from ordercast.protocols.hydra.messages import Announce, Flush

Place = tuple[int, int]


class HydraProperties(Properties):
    """The properties, for a plan, the first sequencers, and the payloads that were submitted."""

    def __init__(
        self,
        plan: Plan,
        sequencers: int,
        payloads: Iterable[bytes],
        changes: int,
        kept: Mapping[bytes, Groups] | None = None,
    ) -> None:
        self._home = {node: group for group, nodes in plan.groups.items() for node in nodes}
        self._sequencers = range(1, sequencers + 1)
        self._payloads = frozenset(payloads)
        self._changes = changes
        """Configurations that must have come about at the end."""
        self._kept = kept or {}
        """Payloads of senders that keep, and the groups of each."""

    def alone(self, node: NodeId, history: History) -> str | None:
        """Order, numbers and views of one receiver, or what a sender is told."""
        if node not in self._home:
            return self._told(history)
        return _Reading(self._home[node], self._sequencers, self._payloads).fault(history)

    def together(self, one: NodeId, first: History, other: NodeId, second: History) -> str | None:
        """Common places, delivery and common views of two receivers."""
        if one not in self._home or other not in self._home:
            return None
        fault = _different(first, second, self._home[one] == self._home[other]) or _crossed(first, second)
        fault = fault or _untold(first, second, self._home[other]) or _untold(second, first, self._home[one])
        return fault and f"between receivers {one} and {other}: {fault}"

    def unsettled(self, histories: Mapping[NodeId, History], traffic: Sequence[Packet]) -> str | None:
        """Numbers stamped and not settled, and configurations not reached."""
        announced = next((p.message for p in reversed(traffic) if isinstance(p.message, Announce)), None)
        if announced is None:
            return "the configuration service is silent"
        if announced.planned is not None:
            return f"sequencer {announced.planned.sequencer} is to be {announced.planned.change}"
        flushes = {p.message.sequencer: p.message for p in traffic if isinstance(p.message, Flush)}
        config = announced.latest.config if announced.latest is not None else 0
        if config < self._changes:
            return f"only {config} of {self._changes} configurations are decided"
        for node, group in self._home.items():
            reading = _Reading(group, self._sequencers, self._payloads)
            reading.fault(histories[node])
            if reading.config != config:
                return f"receiver {node} is in configuration {reading.config} of {config}"
            for sequencer, _ in announced.active:
                if sequencer not in flushes:
                    return f"sequencer {sequencer} is silent"
                stamped = flushes[sequencer].numbers[group]
                if reading.settled.get(sequencer, -1) < stamped:
                    return f"receiver {node} has not settled number {stamped} of sequencer {sequencer}"
        return self._lost(histories)

    def _told(self, history: History) -> str | None:
        for delivery in history:
            if not isinstance(delivery, Unconfirmed) or delivery.payload not in self._kept:
                return f"a sender is told {delivery}"
        return None

    def _lost(self, histories: Mapping[NodeId, History]) -> str | None:
        """A message that was kept, and of which a receiver and its sender hear nothing."""
        unconfirmed = {
            notice.payload
            for history in histories.values()
            for notice in history
            if isinstance(notice, Unconfirmed)
        }
        for payload, groups in self._kept.items():
            for node, group in self._home.items():
                heard = payload in unconfirmed or any(
                    isinstance(one, Dropped) or (isinstance(one, Delivered) and one.payload == payload)
                    for one in histories[node]
                )
                if group in groups and not heard:
                    return (
                        f"validity: receiver {node} and the sender of {payload.decode()} hear nothing of it"
                    )
        return None

    def fades(self, packet: Packet) -> bool:
        """Flushes and news that are overtaken, and news that leave a sequencer where it is.

        Clocks, numbers and steps only grow at a receiver. A flush of a sequencer that is still to be added is
        another matter: it does not count today, and may tomorrow.
        """
        match packet.message:
            case Flush(sequencer=sequencer):
                return sequencer in self._sequencers
            case Announce(active=active, planned=planned):
                nodes = [node for _, node in active]
                return (
                    packet.to in self._home
                    or packet.to in nodes
                    or (planned is not None and packet.to == planned.node)
                )
            case _:
                return False


class _Reading:
    """A history, read from its beginning."""

    def __init__(self, group: int, sequencers: Iterable[int], payloads: frozenset[bytes]) -> None:
        self._group = group
        self._payloads = payloads
        self._last: Place = (0, 0)
        self._seen: set[bytes] = set()
        self.settled = dict.fromkeys(sequencers, 0)
        """By sequencer of the configuration, the last number settled."""
        self.config = 0

    def fault(self, history: History) -> str | None:
        """The first thing wrong."""
        for delivery in singles(history):
            fault: str | None
            match delivery:
                case Delivered():
                    fault = self._message(delivery)
                case Dropped():
                    fault = self._settle(delivery.issuer, delivery.number)
                    if delivery.group != self._group:
                        fault = f"a notice for group {delivery.group} came to group {self._group}"
                case View():
                    fault = self._view(delivery)
                case _:
                    fault = f"Hydra does not deliver {type(delivery).__name__}"
            if isinstance(delivery, Delivered | Dropped) and delivery.config != self.config:
                fault = (
                    fault
                    or f"a delivery in configuration {self.config} names configuration {delivery.config}"
                )
            if fault is not None:
                return f"group {self._group}: {fault}"
        return None

    def _message(self, delivery: Delivered) -> str | None:
        stamp = delivery.stamp
        if stamp is None or self._group not in delivery.groups or delivery.payload not in self._payloads:
            return f"{_name(delivery)} was not sent to this group"
        place = (stamp.clock, stamp.issuer)
        if place <= self._last:
            return f"global order: {_name(delivery)} at {place} comes after a message at {self._last}"
        self._last = place
        if delivery.payload in self._seen:
            return f"at most once: {_name(delivery)} comes again at {place}"
        self._seen.add(delivery.payload)
        return self._settle(stamp.issuer, stamp.numbers[delivery.groups.index(self._group)])

    def _settle(self, sequencer: int, number: int) -> str | None:
        before = self.settled.get(sequencer)
        if before is None:
            return f"views: number {number} of sequencer {sequencer} is not of configuration {self.config}"
        if number != before + 1:
            return f"local order: number {number} of sequencer {sequencer} is settled after number {before}"
        self.settled[sequencer] = number
        return None

    def _view(self, view: View) -> str | None:
        if view.stamp is None or view.config != self.config + 1:
            return f"views: configuration {view.config} comes after {self.config}"
        self.config = view.config
        sequencer, (number,) = view.stamp.issuer, view.stamp.numbers
        if view.change == "added":
            if sequencer in self.settled:
                return f"views: sequencer {sequencer} is added, but was there already"
            self.settled[sequencer] = number
            return None
        settled = self.settled.pop(sequencer, None)
        if settled != number:
            return (
                f"views: sequencer {sequencer} is removed after number {settled} instead of number {number}"
            )
        return None


def _different(first: History, second: History, same_group: bool) -> str | None:
    """Messages and configurations are the same for both."""
    seen = {delivery.payload: delivery for delivery in first if isinstance(delivery, Delivered)}
    views = {view.config: view for view in first if isinstance(view, View)}
    for delivery in second:
        if isinstance(delivery, Delivered) and delivery.payload in seen:
            other = seen[delivery.payload]
            if delivery != other:
                return f"{_name(delivery)} is both {delivery} and {other}"
        elif isinstance(delivery, View):
            twin = views.get(delivery.config)
            if twin is not None and _content(delivery, same_group) != _content(twin, same_group):
                return f"views: configuration {delivery.config} is both {delivery} and {twin}"
    return None


def _content(view: View, same_group: bool) -> tuple[object, ...]:
    stamp = view.stamp
    numbers = stamp.numbers if stamp is not None and same_group else ()
    return (view.change, numbers, stamp and (stamp.clock, stamp.issuer))


def _crossed(first: History, second: History) -> str | None:
    """Whether two messages come in different orders, whatever their stamps say."""
    order = {
        delivery.payload: place for place, delivery in enumerate(first) if isinstance(delivery, Delivered)
    }
    common = [d.payload for d in second if isinstance(d, Delivered) and d.payload in order]
    for before, after in pairwise(common):
        if order[before] > order[after]:
            return f"global order: {before.decode()} and {after.decode()} come in different orders"
    return None


def _untold(first: History, second: History, group: int) -> str | None:
    """Whether the second, of this group, goes past a message of the first that it has not settled."""
    for delivery in first:
        if isinstance(delivery, Delivered) and group in delivery.groups and delivery.stamp is not None:
            stamp = delivery.stamp
            fault = _passed(
                (stamp.clock, stamp.issuer), stamp.numbers[delivery.groups.index(group)], second, group
            )
            if fault is not None:
                return (
                    f"delivery: {_name(delivery)} was delivered by one receiver; for the other it is {fault}"
                )
    return None


def singles(history: History) -> Iterator[Delivery]:
    """A history in which each drop notification is of one number."""
    for delivery in history:
        if isinstance(delivery, Notice):
            yield from delivery.singles()
        else:
            yield delivery


def _passed(place: Place, number: int, history: History, group: int) -> str | None:
    for delivery in singles(history):
        match delivery:
            case Delivered(stamp=stamp) if stamp is not None:
                here = (stamp.clock, stamp.issuer)
                if here == place:
                    return None
                if here > place:
                    return f"not settled before {_name(delivery)}"
            case Dropped(issuer=issuer, number=lost) if issuer == place[1] and lost == number:
                return None
            case View(change="removed", stamp=stamp) if stamp is not None and stamp.issuer == place[1]:
                return "not settled before its sequencer is removed"
            case View(change="added", stamp=stamp) if stamp is not None and stamp.issuer == place[1]:
                if number <= stamp.numbers[0]:
                    return "before the beginning of its sequencer"
            case _:
                pass
    return None


def _name(delivery: Delivered) -> str:
    return delivery.payload.decode(errors="replace")
