"""What the four protocols send for a message, by their rules; the benchmark counts it in large groups."""

import pytest

from benchmarks.tickets import SENDERS, measure
from tests.deep import deep_after

MEMBERS = SENDERS + 2
OTHERS = MEMBERS - 1
COUNTED_MS = 50
ALONE = {"hybrid": 0, "token_site": 1 - 1 / SENDERS, "symmetric": 0, "static_hybrid": 1 - 2 / SENDERS}
"""Of the tickets for a message, those that do not ride: the issuers send one message in ten themselves."""
ACTIVE = {"token_site": 1, "symmetric": MEMBERS, "static_hybrid": 2, "hybrid": SENDERS}


@pytest.mark.parametrize("protocol", deep_after(2, ALONE))
def test_a_message_costs_what_the_rules_of_its_protocol_say(protocol: str) -> None:
    found = measure(protocol, MEMBERS, COUNTED_MS)
    packets = {kind: each["packets"] for kind, each in found["per_multicast"].items()}
    assert found["active"] == ACTIVE[protocol]
    assert packets["data"] == OTHERS, "one packet to each other member"
    assert packets.get("tickets alone", 0) == pytest.approx(ALONE[protocol] * OTHERS)
    assert sum(found["tickets"].values()) == pytest.approx(1), "each message has one ticket"
    assert ("clocks alone" in packets) == (protocol == "symmetric"), "only there active members are silent"
    assert found["per_delivery"]["all"]["bytes"] == pytest.approx(
        found["per_multicast"]["all"]["bytes"] / MEMBERS
    )
