"""Tags of messages: allotted once, and a clash is refused."""

from itertools import pairwise

import msgspec
import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import Deployment, LocalError, Message, message_types
from ordercast.core.tags import ALLOTMENTS


def kind(module: str, name: str, tag: int) -> type[Message]:
    """A message type as a module of that name would declare it."""
    made = msgspec.defstruct(name, [], bases=(Message,), module=module, frozen=True, tag=tag)
    assert issubclass(made, Message)
    return made


def test_no_range_meets_another() -> None:
    ranges = sorted((allotment.tags for allotment in ALLOTMENTS), key=lambda tags: tags.start)
    assert all(one.stop <= two.start for one, two in pairwise(ranges))


def test_the_types_are_given_back_for_a_codec() -> None:
    one, two = kind("somewhere.messages", "One", 1), kind("somewhere.messages", "Two", 2)
    assert message_types(one, two) == (one, two)
    assert message_types(one, two) == (one, two)  # a module may be imported again


def test_two_types_of_one_package_do_not_share_a_tag() -> None:
    message_types(kind("ordercast.protocols.made_up.one", "One", 7))
    with pytest.raises(LocalError, match=r"made_up.two.Two and .*made_up.one.One both have tag 7"):
        message_types(kind("ordercast.protocols.made_up.two", "Two", 7))


def test_protocols_do_not_meet() -> None:
    message_types(kind("ordercast.protocols.made_up_a", "One", 9))
    message_types(kind("ordercast.protocols.made_up_b", "Two", 9))


@pytest.mark.parametrize(
    ("module", "tag", "said"),
    [
        ("ordercast.components.consensus.messages", 1, "has tags 200 to 219"),
        ("ordercast.protocols.made_up_c", 200, "has tags 1 to 159"),
        ("elsewhere.protocol", 0, "has tags 1 to 159"),
    ],
)
def test_a_tag_out_of_range_is_refused(module: str, tag: int, said: str) -> None:
    with pytest.raises(LocalError, match=said):
        message_types(kind(module, "Stray", tag))


def test_a_type_without_a_tag_is_refused() -> None:
    class Untagged(Message, frozen=True):
        pass

    with pytest.raises(LocalError, match="has tag None"):
        message_types(Untagged)


@pytest.mark.parametrize("name", protocol_names())
def test_every_message_of_a_protocol_was_declared(name: str) -> None:
    protocol = find_protocol(name)
    plan = protocol.deploy(Deployment.disjoint(1, 3, 1), protocol.options())
    assert message_types(*plan.codec.types) == plan.codec.types
