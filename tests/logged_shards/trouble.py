"""Trouble at any step of an independent transaction over shards, and of a general one."""

from ordercast.core import Message, MessageId, NodeId, message_sender
from ordercast.core.general import pack_commit, pack_prepare
from tests.logged_shards.lab import ALSO_HERE, ALSO_THERE, FAR, HERE, LOCK_MS, THERE, ShardsWorld, transfer


def independent(world: ShardsWorld) -> list[MessageId]:
    """Two transactions of two shards, and one of each shard."""
    ways = (FAR, FAR[::-1], (HERE, ALSO_HERE), (THERE, ALSO_THERE))
    return [world.call(transfer(*way, 1), number % 2) for number, way in enumerate(ways)]


def general(world: ShardsWorld) -> list[MessageId]:
    """A general transaction, and one that wants its keys; the client concludes it when it is prepared."""
    message = world.call(pack_prepare(FAR))
    other = world.call(transfer(*FAR, 1), 1)

    def conclude() -> None:
        if world.envs[world.CLIENT].host.up and world.answered(message):
            world.call(pack_commit(message, (0, 1), {HERE: 1, THERE: 1}))
        elif world.envs[world.CLIENT].host.up and world.now < 1_000_000_000:
            world.scheduler.after(1_000_000, conclude)

    conclude()
    return [message, other]


STORIES = {"independent": independent, "general": general}


def a_host_crashes(world: ShardsWorld, story: str, node: NodeId, number: int) -> bool:
    """After so many messages, also those of the logs; return whether there were so many."""
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
