"""Trouble at any step of an independent transaction, and of a general one."""

from ordercast.core import Message, MessageId, NodeId, message_sender
from ordercast.core.general import pack_commit, pack_prepare
from tests.granola.lab import LOCK_MS, GranolaWorld
from tests.logged_shards.lab import ALSO_HERE, ALSO_THERE, FAR, HERE, THERE, transfer


def independent(world: GranolaWorld) -> list[MessageId]:
    """Two transactions of two shards, and one of each shard."""
    ways = (FAR, FAR[::-1], (HERE, ALSO_HERE), (THERE, ALSO_THERE))
    return [world.call(transfer(*way, 1), number % 2) for number, way in enumerate(ways)]


def general(world: GranolaWorld) -> list[MessageId]:
    """A general transaction, and one that wants its keys; the client concludes it when it is prepared."""
    message = world.call(pack_prepare(FAR))
    other = world.call(transfer(*FAR, 1), 1)

    def conclude() -> None:
        if world.envs[6].host.up and world.answered(message):
            world.call(pack_commit(message, (0, 1), {HERE: 1, THERE: 1}))
        elif world.envs[6].host.up and world.now < 1_000_000_000:
            world.scheduler.after(1_000_000, conclude)

    conclude()
    return [message, other]


STORIES = {"independent": independent, "general": general}


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


def a_host_crashes(story: str, node: NodeId, number: int) -> bool:
    """After so many messages, also those of the logs; return whether there were so many."""
    world = GranolaWorld()
    left = [number]

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        left[0] -= 1
        if left[0] == 0:
            world.scheduler.after(0, world.crash, node)
        return False

    world.lost = lost
    messages = STORIES[story](world)
    world.run_ms(3 * LOCK_MS)
    world.finish(*(message for message in messages if message_sender(message) != node))
    return left[0] <= 0
