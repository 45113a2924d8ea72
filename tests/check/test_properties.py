"""Random traces: what must never alarm, what always must, and a second definition to agree with."""

from itertools import combinations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ordercast.core import Causality, Guarantees, MessageId, NodeId, Order
from ordercast.judge import PROPERTIES, Judge, judge
from tests.check.traces import STRICT, Trace

Logs = dict[NodeId, list[int]]
"""What each node delivers, in order, as indices of submissions."""

NODES = (0, 1, 2, 3)


@st.composite
def traces(draw: st.DrawFn, logs: st.SearchStrategy[Logs], promise: Guarantees) -> Trace:
    """The logs as a trace of one group, the nodes taking turns as drawn."""
    drawn = draw(logs)
    trace = Trace(promise, {0: NODES})
    count = 1 + max((index for log in drawn.values() for index in log), default=0)
    messages = [trace.submit(4 + index % 2) for index in range(count)]
    queues = {node: list(log) for node, log in drawn.items() if log}
    while queues:
        node = draw(st.sampled_from(sorted(queues)))
        trace.deliver(node, messages[queues[node].pop(0)])
        if not queues[node]:
            del queues[node]
    return trace


@st.composite
def ordered_logs(draw: st.DrawFn) -> Logs:
    """One common order; each node delivers it, some messages lost."""
    order = draw(st.permutations(range(draw(st.integers(2, 8)))))
    return {node: [index for index in order if draw(st.booleans())] for node in NODES}


@st.composite
def swapped_logs(draw: st.DrawFn) -> Logs:
    """The same, with one swap of two neighbours that another node delivered too."""
    logs = draw(ordered_logs())
    node = draw(st.sampled_from(NODES))
    log = logs[node]
    others = [set(logs[other]) for other in NODES if other != node]
    places = [i for i in range(len(log) - 1) if any({log[i], log[i + 1]} <= other for other in others)]
    assume(places)
    place = draw(st.sampled_from(places))
    log[place], log[place + 1] = log[place + 1], log[place]
    return logs


ORDER = Guarantees(order=Order.GROUP)


@given(traces(ordered_logs(), ORDER))
def test_losses_from_a_common_order_never_alarm(trace: Trace) -> None:
    trace.clean()


@given(traces(swapped_logs(), ORDER))
def test_a_swap_that_another_node_contradicts_always_alarms(trace: Trace) -> None:
    found = trace.judge()
    assert {violation.property for violation in found} == {"total-order"}
    assert all(len(v.nodes) >= 2 and len(v.messages) >= 2 for v in found)


@st.composite
def any_logs(draw: st.DrawFn) -> Logs:
    count = draw(st.integers(2, 5))
    return {
        node: draw(st.lists(st.integers(0, count - 1), max_size=count, unique=True)) for node in NODES[:3]
    }


@given(traces(any_logs(), ORDER))
@settings(max_examples=300)
def test_total_order_agrees_with_its_definition(trace: Trace) -> None:
    logs = logs_of(trace)
    before = {pair for log in logs.values() for pair in combinations(log, 2)}
    closed = set(before)
    while True:  # transitive closure, the plain way
        more = {(a, d) for a, b in closed for c, d in closed if b == c} - closed
        if not more:
            break
        closed |= more
    cyclic = any(a == b for a, b in closed)
    assert bool(trace.judge()) == cyclic


@given(traces(any_logs(), Guarantees(causality=Causality.FIFO)))
def test_fifo_agrees_with_its_definition(trace: Trace) -> None:
    wrong = any(
        a >> 40 == b >> 40 and a > b for log in logs_of(trace).values() for a, b in combinations(log, 2)
    )
    assert bool(trace.judge()) == wrong


@st.composite
def conversations(draw: st.DrawFn) -> Trace:
    """Three hosts, a sender and a receiver at each, and groups of one and two; anything happens."""
    groups = {0: (0,), 1: (1,), 2: (2,), 3: (0, 1), 4: (1, 2), 5: (0, 2)}
    hosts = {3: 0, 4: 1, 0: 0, 1: 1, 2: 2}
    trace = Trace(Guarantees(causality=Causality.CAUSAL), groups, hosts=hosts)
    waiting: list[tuple[NodeId, MessageId]] = []
    for _ in range(draw(st.integers(2, 20))):
        deliver: bool = draw(st.booleans())
        if waiting and deliver:
            place: int = draw(st.integers(0, len(waiting) - 1))
            trace.deliver(*waiting.pop(place))
        else:
            group = draw(st.integers(0, 5))
            message = trace.submit(draw(st.integers(0, 4)), groups=(group,))
            waiting.extend((node, message) for node in groups[group])
    return trace


@given(conversations())
@settings(max_examples=300)
def test_causal_order_agrees_with_its_definition(trace: Trace) -> None:
    past: dict[MessageId, frozenset[MessageId]] = {}
    known: dict[int, frozenset[MessageId]] = {}
    hosts = {node.id: node.host for node in trace.description.nodes}
    for event in trace.events:
        message, host = event.message, hosts[event.node]
        assert message is not None
        here = known.get(host, frozenset())
        if event.kind.value == "submit":
            past[message] = here
            known[host] = here | {message}
        else:
            known[host] = here | past[message] | {message}
    wrong = any(
        late in past[early] for log in logs_of(trace).values() for early, late in combinations(log, 2)
    )
    assert bool(trace.judge()) == wrong


def logs_of(trace: Trace) -> dict[NodeId, list[MessageId]]:
    logs: dict[NodeId, list[MessageId]] = {}
    for event in trace.events:
        if event.kind.value == "deliver" and event.message is not None:
            logs.setdefault(event.node, []).append(event.message)
    return logs


@st.composite
def two_group_logs(draw: st.DrawFn) -> Trace:
    groups = {0: (0, 1), 1: (1, 2), 2: (0, 2)}
    trace = Trace(Guarantees(order=Order.ACROSS), groups)
    destinations = st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
    messages = [trace.submit(groups=draw(destinations)) for _ in range(draw(st.integers(2, 5)))]
    for node in range(3):
        mine = [
            event.message
            for event in trace.events[: len(messages)]
            if event.message is not None and any(node in groups[g] for g in event.groups or ())
        ]
        trace.deliver(node, *draw(st.permutations(mine)))
    return trace


def cyclic(pairs: set[tuple[MessageId, MessageId]]) -> bool:
    """Whether a relation has a cycle: take away what nothing precedes until nothing is left."""
    while pairs:
        tails, heads = {a for a, _ in pairs}, {b for _, b in pairs}
        free = tails - heads
        if not free:
            return True
        pairs = {(a, b) for a, b in pairs if a not in free}
    return False


@given(two_group_logs())
@settings(max_examples=300)
def test_order_across_groups_agrees_with_its_definition(trace: Trace) -> None:
    logs = logs_of(trace)
    to = {event.message: event.groups or () for event in trace.events}
    everything = {pair for log in logs.values() for pair in combinations(log, 2)}
    in_groups = [
        {
            (a, b)
            for node, log in logs.items()
            for a, b in combinations(log, 2)
            if node in members and group in to[a] and group in to[b]
        }
        for group, members in trace.description.groups.items()
    ]
    found = {violation.property for violation in trace.judge()}
    assert bool(found) == cyclic(everything)
    assert ("total-order" in found) == any(map(cyclic, in_groups))


@st.composite
def overlapping_logs(draw: st.DrawFn) -> Trace:
    """Groups of up to four receivers; each receiver delivers some messages of its groups, in any order."""
    members = st.lists(st.sampled_from(NODES), min_size=1, unique=True).map(tuple)
    groups = dict(enumerate(draw(st.lists(members, min_size=2, max_size=4))))
    trace = Trace(Guarantees(order=Order.OVERLAPS), groups)
    drawn = draw(st.lists(st.sampled_from(sorted(groups)), min_size=2, max_size=6))
    messages = {trace.submit(groups=(group,)): group for group in drawn}
    order = draw(st.permutations(list(messages)))
    for node in range(trace.sender):
        mine = [message for message in order if node in groups[messages[message]] and draw(st.booleans())]
        trace.deliver(node, *(draw(st.permutations(mine)) if draw(st.integers(0, 3)) == 0 else mine))
    return trace


@given(overlapping_logs())
@settings(max_examples=300)
def test_order_of_pairs_agrees_with_its_definition(trace: Trace) -> None:
    logs, groups = logs_of(trace), trace.description.groups
    to = {event.message: (event.groups or (0,))[0] for event in trace.events}

    def before(*both: int) -> set[tuple[MessageId, MessageId]]:
        """The pairs of messages to these groups, at those who are in all of them."""
        common = [node for node in logs if all(node in groups[group] for group in both)]
        chains = [[message for message in logs[node] if to[message] in both] for node in common]
        return {pair for chain in chains for pair in combinations(chain, 2)}

    in_groups = any(cyclic(before(group)) for group in groups)
    in_pairs = any(cyclic(before(*pair)) for pair in combinations(groups, 2))
    expected = {"total-order"} if in_groups else {"pair-order"} if in_pairs else set()
    assert {violation.property for violation in trace.judge()} == expected


@given(traces(any_logs(), STRICT))
def test_findings_do_not_depend_on_chunks(trace: Trace) -> None:
    whole = judge(trace.description, trace.events)
    chunked = Judge(trace.description)
    half = len(trace.events) // 2
    chunked.observe_all(trace.events[:half])
    chunked.observe_all(trace.events[half:])
    chunked.finish()
    chunked.finish()
    assert chunked.violations == whole == trace.judge()


def test_every_property_has_a_statement() -> None:
    assert len(PROPERTIES) == 33
    assert all(len(declared.statement) > 20 for declared in PROPERTIES)
