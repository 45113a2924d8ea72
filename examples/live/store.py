"""A replicated map: all replicas apply the same operations in the same order."""

import ordercast


class Store(ordercast.Service):
    """Keys and their values."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}

    @ordercast.operation
    def put(self, key: str, value: str) -> None:
        self.data[key] = value

    @ordercast.operation
    def take(self, key: str) -> str:
        if key not in self.data:
            raise ordercast.Refused(f"there is no {key}")
        return self.data.pop(key)

    @ordercast.read
    def get(self, key: str) -> str | None:
        return self.data.get(key)
