"""One member: it passes messages on to view synchrony, and hands to its application those of its own groups.

All receivers and senders form one view, whatever their groups: a message to several groups is then one
message. Each member counts the messages of each group that the group has delivered since it began. The
counts are the state that a newcomer gets, and a view tells them: they are the same at all who install it.
"""

from collections.abc import Collection, Mapping

import msgspec

from ordercast.components.membership import (
    MESSAGES,
    Reception,
    Seating,
    ViewMember,
    ViewOptions,
    ViewSynchrony,
)
from ordercast.core import (
    MALFORMED,
    Delivered,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Groups,
    LocalError,
    RemoteError,
    Stack,
    Stamp,
    Unconfirmed,
    View,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX

EVERYBODY: GroupId = 0
"""How the component calls its only group."""


class Addressed(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A payload with its groups, as it travels."""

    groups: Groups
    payload: bytes


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Addressed)
_state = msgspec.msgpack.Decoder(dict[GroupId, int])


class Peer(Stack, ViewMember):
    """A receiver, a sender, or both."""

    def __init__(
        self, env: Env, groups: Collection[GroupId], seating: Seating, sends: bool, options: ViewOptions
    ) -> None:
        super().__init__(env)
        self._groups = groups
        self._counts = dict.fromkeys(groups, 0)
        self.views = self.embed(
            "views",
            lambda inner: ViewSynchrony(inner, EVERYBODY, seating, options, self._snapshot, self._restore),
            MESSAGES,
        )
        self._reception = Reception(env, self.views, sends)

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, or come back to the groups of an earlier life."""
        super().on_start(saved)
        self._reception.resume()

    @property
    def joined(self) -> Collection[GroupId]:
        """The groups that this member receives."""
        return self._reception.groups

    def join(self, group: GroupId) -> None:
        """Ask to receive a group; the next view tells."""
        self._reception.join(group)

    def leave(self, group: GroupId) -> None:
        """Ask to receive a group no longer; the next view tells."""
        self._reception.leave(group)

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Multicast to all members; False while the window is full or this member is in no view."""
        if not groups or any(group not in self._groups for group in groups):
            raise LocalError(f"cannot send to groups {groups}; there are: {sorted(self._groups)}")
        data = _encode(Addressed(groups, payload))
        if len(data) > PAYLOAD_BYTES_MAX:
            raise LocalError(
                f"payload has {len(data)} bytes with its groups; the limit is {PAYLOAD_BYTES_MAX}"
            )
        return self.views.multicast(data)

    @property
    def in_doubt(self) -> int:
        """What some member may not have yet."""
        return self.views.in_doubt

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """Hand what is for this member to its application."""
        match delivery:
            case Delivered():
                self._deliver(delivery)
            case View():
                self._reception.install(delivery, self._state_of)
            case Unconfirmed():
                groups, payload = self._addressed(delivery.payload)
                self.env.deliver(Unconfirmed(groups[0], groups, payload))

    def _deliver(self, delivery: Delivered) -> None:
        groups, payload = self._addressed(delivery.payload)
        for group in groups:
            self._counts[group] += 1
        if self._reception.receives(groups):
            self.env.deliver(Delivered(payload, groups, delivery.sender, None, delivery.config))

    def _addressed(self, data: bytes) -> tuple[Groups, bytes]:
        try:
            found = _decoder.decode(data)
        except MALFORMED as error:
            raise RemoteError(f"malformed payload: {error}") from error
        if not found.groups or any(group not in self._groups for group in found.groups):
            raise RemoteError(f"a message names the groups {found.groups}; there are: {sorted(self._groups)}")
        return found.groups, found.payload

    def _state_of(self, group: GroupId) -> Stamp:
        """What a view tells about the state of a group."""
        return Stamp(self._counts[group], self.views.newest.number)

    def _snapshot(self) -> bytes:
        return _encode(self._counts)

    def _restore(self, state: bytes) -> None:
        """Begin with the counts of the others; with none if nobody is left who has them."""
        self._counts = dict.fromkeys(self._groups, 0) | (_state.decode(state) if state else {})

    def explain_own(self) -> Explanation:
        """What this member is."""
        return Explanation({"role": "member" if self._reception.groups else "sender"})
