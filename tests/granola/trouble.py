"""Messages that are lost at any step of an independent transaction, and of a general one."""

from ordercast.core import Message, NodeId
from tests.granola.lab import LOCK_MS, GranolaWorld
from tests.logged_shards.trouble import STORIES


def one_message_is_lost(story: str, kind: type[Message], number: int) -> bool:
    """The first of a kind, or the second, and so on; return whether there were so many."""
    world = GranolaWorld()
    left = [number]

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        left[0] -= isinstance(message, kind)
        return isinstance(message, kind) and left[0] == 0

    world.lost = lost
    messages = STORIES[story](world)
    world.run_ms(3 * LOCK_MS)
    world.finish(*messages)
    return left[0] <= 0


def a_kind_is_lost_for_a_while(story: str, kind: type[Message]) -> None:
    """All messages of a kind."""
    world = GranolaWorld()
    world.lose(kind)
    messages = STORIES[story](world)
    world.run_ms(2 * LOCK_MS)
    world.finish(*messages)
