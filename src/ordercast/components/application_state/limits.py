"""What others may claim about states. A claim beyond is refused before it changes anything."""

from collections.abc import Collection

from ordercast.components.application_state.messages import (
    STATE_BYTES_MAX,
    PieceRequest,
    StateAnswer,
    StatePiece,
    StateQuestion,
    StateTaken,
)
from ordercast.components.membership.limits import VIEWS_AHEAD_MAX
from ordercast.core import GroupId, NodeId, RemoteError

StateMessage = StateQuestion | StateAnswer | PieceRequest | StatePiece | StateTaken


def check(source: NodeId, message: StateMessage, known: bool, groups: Collection[GroupId], view: int) -> None:
    """Raise `RemoteError` for what no correct node says; `known`: the sender is a node of the cluster."""
    if not known:
        raise RemoteError(f"node {source} asks or tells about a state, but is not known to be in the cluster")
    if message.group not in groups:
        raise RemoteError(f"node {source} names group {message.group}; there are: {sorted(groups)}")
    if message.view - view > VIEWS_AHEAD_MAX:
        raise RemoteError(f"node {source} knows view {message.view}; the newest here is {view}")
    if isinstance(message, StatePiece):
        _check_piece(source, message)
    elif isinstance(message, PieceRequest) and message.offset > STATE_BYTES_MAX:
        raise RemoteError(f"node {source} asks for byte {message.offset} of a state")


def _check_piece(source: NodeId, piece: StatePiece) -> None:
    if piece.size > STATE_BYTES_MAX or piece.offset + len(piece.data) > piece.size:
        raise RemoteError(
            f"node {source} sent {len(piece.data)} bytes from byte {piece.offset} on, of a state of"
            f" {piece.size} bytes; the limit is {STATE_BYTES_MAX}"
        )
