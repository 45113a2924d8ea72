"""What the operations of a call are about: general transactions, which lock keys beyond the call."""

from collections.abc import Iterator

from ordercast.components.execution import Call
from ordercast.core import LocalError, MessageId
from ordercast.core.bundle import unpack
from ordercast.core.general import Conclude, Prepare, read_general


def halves_of(call: Call) -> Iterator[tuple[MessageId, Prepare | Conclude]]:
    """The halves of general transactions in a call, each with the transaction that it belongs to."""
    for message, _, operation in unpack(call.bundle):
        try:
            general = read_general(operation)
        except LocalError:
            continue
        if general is not None:
            yield (general.transaction if isinstance(general, Conclude) else message), general


def generals_of(call: Call) -> list[MessageId]:
    """The general transactions that the operations of a call prepare or conclude."""
    return [transaction for transaction, _ in halves_of(call)]
