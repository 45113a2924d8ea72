"""What the processes of a run do."""

import msgspec

GROUPS = (
    (0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5), (0, 4, 5), (0, 1, 5), (0, 1, 2, 3, 4, 5), (0, 2, 4),
    (1, 3, 5), (0, 1, 3, 4),
)  # fmt: skip
"""Who is in which group."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What each process sends, over what."""

    contender: str
    groups: tuple[tuple[int, ...], ...] = GROUPS
    seconds: float = 5.0
    size: int = 64
    rate: float = 0.0
    """Messages per second of each process; 0: as many as the window allows."""
    window: int = 64
    """Messages of a process under way at a time."""
    port: int = 0
    """Of the Redis server."""

    @property
    def nodes(self) -> list[int]:
        """The processes."""
        return sorted({node for members in self.groups for node in members})
