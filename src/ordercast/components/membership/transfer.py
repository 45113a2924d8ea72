"""How a newcomer gets the state in which its first view begins.

Every member that was in the view before takes a snapshot when it has delivered all of that view and
nothing of the new one. The newcomer asks one of them for the state, piece by piece, and another one if no
answer comes. Members may write the same state down in different bytes, so pieces of two are not mixed.
"""

from ordercast.components.membership.messages import StateChunk, StateRequest
from ordercast.core import Env, Nanos, NodeId, RemoteError, Wait

STATE_BYTES_MAX = 1 << 30


class Sponsor:
    """The state at the beginning of a view, for newcomers."""

    __slots__ = ("_state", "_view")

    def __init__(self, view: int, state: bytes) -> None:
        self._view = view
        self._state = state

    def answer(self, env: Env, source: NodeId, message: StateRequest, chunk_bytes: int) -> None:
        """Send a piece of the state, if it is that of this view."""
        if message.view == self._view and message.offset <= len(self._state):
            data = self._state[message.offset : message.offset + chunk_bytes]
            env.send(source, StateChunk(self._view, message.offset, len(self._state), data))


class Transfer:
    """The pieces of the state that a newcomer has got, and whom it asks for the next one."""

    __slots__ = ("_asked", "_data", "_env", "_progress", "_since", "_size", "_sources", "_view")

    def __init__(self, env: Env, view: int, sources: tuple[NodeId, ...]) -> None:
        self._env = env
        self._view = view
        self._sources = sources
        self._asked = 0
        self._progress = False
        """Whether a piece has come since the last look."""
        self._data = bytearray()
        self._size: int | None = None
        self._since: Nanos = env.now

    def ask(self) -> None:
        """Ask for the next piece."""
        self._env.send(self._source, StateRequest(self._view, len(self._data)))

    def ask_another(self) -> None:
        """Ask again; if no piece came since the last time, the next member, from the beginning."""
        if not self._progress:
            self._asked += 1
            self._data.clear()
            self._size = None
        self._progress = False
        self.ask()

    def on_chunk(self, source: NodeId, message: StateChunk) -> bytes | None:
        """A piece came; return the state if it is complete. The whole state is welcome from any member."""
        whole = message.offset == 0 and len(message.data) == message.size
        if message.view != self._view or not (whole or self._is_next(source, message)):
            return None
        self._check(source, message, whole=whole)
        if whole:
            return message.data
        self._size, self._progress = message.size, True
        self._data += message.data
        if len(self._data) == message.size:
            return bytes(self._data)
        self.ask()
        return None

    def _is_next(self, source: NodeId, message: StateChunk) -> bool:
        """Whether a piece is the next one, and not of a member that was asked before."""
        given_up = source in self._sources and source != self._source
        return not given_up and message.offset == len(self._data)

    def _check(self, source: NodeId, message: StateChunk, *, whole: bool) -> None:
        end = message.offset + len(message.data)
        wrong = message.size > STATE_BYTES_MAX or not (whole or self._size in (None, message.size))
        if (
            source not in self._sources
            or wrong
            or end > message.size
            or (not message.data and end < message.size)
        ):
            raise RemoteError(f"node {source} sent bytes that are no part of the state of view {self._view}")

    @property
    def _source(self) -> NodeId:
        return self._sources[self._asked % len(self._sources)]

    def waits(self) -> list[Wait]:
        """Who is asked."""
        source = self._source
        blocker = f"the state of view {self._view} from node {source}"
        return [Wait("the first delivery", blocker, self._since, on=(source,))]
