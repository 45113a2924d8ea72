"""Events for tests: a hand-written run, and random ones."""

from hypothesis import strategies as st

from ordercast.core import Guarantees, message_id
from ordercast.trace import Event, Kind, NodeDescription, RunDescription

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)

RANDOM = st.lists(
    st.builds(
        Event,
        time_ns=INT64,
        clock_ns=INT64,
        node=st.integers(0, 3),
        kind=st.sampled_from(Kind),
        message=st.none() | st.integers(0, (1 << 63) - 1),
        groups=st.none() | st.lists(INT32, max_size=3).map(tuple),
        numbers=st.none() | st.lists(INT64, max_size=3).map(tuple),
        submitted_ns=st.none() | INT64,
        stamp_clock=st.none() | INT64,
        stamp_issuer=st.none() | INT64,
        config=st.none() | INT64,
        members=st.none() | st.lists(INT32, max_size=3).map(tuple),
        peer=st.none() | INT32,
        size=st.none() | INT32,
        digest=st.none() | INT64,
        label=st.none() | st.text(max_size=6),
    ),
    max_size=12,
)


def run_of_three() -> list[Event]:
    """One message of node 2, delivered at nodes 0 and 1, then a second one at node 1 only."""
    first, second = message_id(2, 0), message_id(2, 1)
    return [
        Event(10, 10, 2, Kind.SUBMIT, first, (0,), None, 10, size=3, digest=77),
        Event(20, 20, 2, Kind.SUBMIT, second, (0,), None, 20, size=3, digest=78),
        Event(30, 31, 0, Kind.DELIVER, first, (0,), (1,), 10, 5, 9, 0, size=3, digest=77),
        Event(30, 30, 1, Kind.DELIVER, first, (0,), (1,), 10, 5, 9, 0, size=3, digest=77),
        Event(40, 41, 0, Kind.DROP, None, (0,), (2,), stamp_issuer=9, config=0),
        Event(40, 40, 1, Kind.VIEW, None, (0,), config=1, members=(0, 1), label="joined"),
        Event(50, 50, 1, Kind.DELIVER, second, (0,), (2,), 20, 6, 9, 1, size=3, digest=78),
        Event(60, 61, 0, Kind.CRASH),
    ]


def description(run: str = "hand-1", *, complete: bool = True) -> RunDescription:
    """What `run_of_three` would say of itself."""
    return RunDescription(
        run=run,
        source="test",
        protocol="hand",
        seed=1,
        guarantees=Guarantees(),
        nodes=tuple(NodeDescription(node, "role", node) for node in range(3)),
        groups={0: (0, 1)},
        complete=complete,
    )
