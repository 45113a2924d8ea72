"""What the entries in the logs of shards name: attempts of clients, shards, and calls that have ended."""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.components.execution.messages import Name
from ordercast.core import Groups

GROUPS_MAX = 4096
"""To how many shards a call goes at most."""
DONE_MAX = 64
"""How many ended calls a client tells a shard at once."""

Attempt: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
"""Which attempt of its client; each asks for all locks, or votes, anew."""
Shards: TypeAlias = Annotated[Groups, msgspec.Meta(min_length=1, max_length=GROUPS_MAX)]
"""All shards of a call."""
Done: TypeAlias = Annotated[tuple[Name, ...], msgspec.Meta(max_length=DONE_MAX)]
"""Calls of the same client that all of their shards have executed."""
