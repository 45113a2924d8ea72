"""Redis Streams without persistence, through everyday calls of the `redis` package: `pipeline`, `xread`.

The same server and the same batches as in `redis_streams`, but the publisher waits for each pipeline, and a
receiver asks only when it has nothing left: what most programs do.
"""

from typing import Any

from benchmarks.peers.contender import Ports, Task
from benchmarks.peers.redis_streams import BATCH, BLOCK_MS, KEPT, STREAM, Reader, RedisStreams, Writer


class RedisCalls(RedisStreams):
    """The stream as its users mostly use it."""

    name, title = "redis-calls", "Redis Streams, everyday calls"

    def takes(self, task: Task) -> bool:
        """Clients that are tasks use everyday calls in any case: `redis` has them."""
        return not task.tasks

    def writer(self, ports: Ports) -> Writer:
        """Pipelines of the client."""
        return CallsWriter(ports)

    def reader(self, ports: Ports) -> Reader:
        """Calls of the client."""
        return CallsReader(ports)


def client_of(ports: Ports) -> Any:
    """A client of the server."""
    import redis

    return redis.Redis(port=ports[0], protocol=2)


class CallsWriter(Writer):
    """Adds messages, and waits until they are added."""

    def __init__(self, ports: Ports) -> None:
        self._client = client_of(ports)

    def add(self, payloads: list[bytes]) -> None:
        """One pipeline."""
        pipeline = self._client.pipeline(transaction=False)
        for payload in payloads:
            pipeline.xadd(STREAM, {"m": payload})
        pipeline.xtrim(STREAM, KEPT, approximate=True)
        pipeline.execute()

    def settle(self) -> None:
        """Nothing is under way."""


class CallsReader(Reader):
    """Asks when it is asked."""

    def __init__(self, ports: Ports) -> None:
        self._client = client_of(ports)
        self._last: bytes | str = "0"

    def read(self) -> list[bytes]:
        """The next messages; none when there were none for a while."""
        answer = self._client.xread({STREAM: self._last}, count=BATCH, block=BLOCK_MS)
        entries = answer[0][1] if answer else []
        if entries:
            self._last = entries[-1][0]
        return [fields[b"m"] for _, fields in entries]
