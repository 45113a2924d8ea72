"""What is needed to execute the operations of a run again: the service, and their bytes."""

from collections.abc import Mapping
from typing import NamedTuple

from ordercast.core import MessageId, ServiceSpec


class Replay(NamedTuple):
    """The operations of a run, which a fresh service can execute."""

    service: ServiceSpec
    operations: Mapping[MessageId, bytes]
