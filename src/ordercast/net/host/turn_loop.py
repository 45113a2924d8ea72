"""The turns of a host in its event loop: one ends after each burst of datagrams or timers, or soon."""

import asyncio

from ordercast.net.host.life import RUNNING, Life
from ordercast.net.host.nodes import Nodes
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.senders import Senders
from ordercast.net.host.turn import Turn
from ordercast.net.links.wire import Wire


class TurnLoop:
    """Ends the turns of one host."""

    def __init__(
        self, turn: Turn, outlet: Outlet, nodes: Nodes, senders: Senders, life: Life, wire: Wire
    ) -> None:
        self._turn = turn
        self._outlet = outlet
        self._nodes = nodes
        self._senders = senders
        self._life = life
        self._wire = wire
        self._due = False

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have turns in this event loop from now on."""
        self._loop = loop

    def end(self) -> None:
        """End a turn: handle local messages, submit the backlog, and carry all effects out."""
        life, turn = self._life, self._turn
        try:
            if turn.local:
                self._nodes.pass_on()
            if life.stage is RUNNING:
                self._senders.hand_over()
                if turn.local:
                    self.end_soon()
                self._outlet.let_out(turn.take())
                self._wire.flush()
        except Exception as error:  # a full disk, for one: what cannot be kept may not leave
            life.fail(error)

    def end_soon(self) -> None:
        """Have a turn soon, because messages were submitted."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._on_due)

    def _on_due(self) -> None:
        self._due = False
        self.end()

    def go_on_soon(self) -> None:
        """Have the rest of a large turn carried out soon."""
        self._loop.call_soon(self._life.attempt, self._outlet.go_on)
