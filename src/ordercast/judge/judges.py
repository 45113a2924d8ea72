"""Both judges, each with the properties of the registry that a run promises."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from ordercast.judge.columns import blocks, judge_columns
from ordercast.judge.columns.node_order import NodeOrder
from ordercast.judge.columns.parts import BLOCK_BITS, SUBMITTED
from ordercast.judge.finding import Replay, Verdict, Violation, failed
from ordercast.judge.online import OnlineJudge
from ordercast.judge.property import Property
from ordercast.judge.registry import PROPERTIES
from ordercast.trace import Event, RunDescription


def properties_of(description: RunDescription, properties: Iterable[Property] = PROPERTIES) -> list[Property]:
    """The properties that a run is judged by, in order."""
    return [declared for declared in properties if declared.judged(description)]


class Judge(OnlineJudge):
    """The oracles of all properties that a run promises, fed event by event."""

    def __init__(
        self,
        description: RunDescription,
        properties: Iterable[Property] = PROPERTIES,
        replay: Replay | None = None,
    ) -> None:
        wanted = properties_of(description, properties)
        super().__init__(description, [(declared.name, declared.oracle) for declared in wanted], replay)


def verdict(
    description: RunDescription,
    events: Iterable[Event],
    properties: Iterable[Property] = PROPERTIES,
    replay: Replay | None = None,
) -> Verdict:
    """Judge a whole run event by event; return the findings, and how many more there were.

    `replay` are the operations of the run, if they are known.
    """
    court = Judge(description, properties, replay)
    court.observe_whole(events if isinstance(events, Sequence) else list(events))
    court.finish()
    return _with_failure(description, Verdict(court.violations, court.suppressed, court.holes()))


def judge(
    description: RunDescription, events: Iterable[Event], properties: Iterable[Property] = PROPERTIES
) -> list[Violation]:
    """Judge a whole run event by event; return the findings."""
    return verdict(description, events, properties).violations


def audit(
    description: RunDescription,
    table: pa.Table,
    properties: Iterable[Property] = PROPERTIES,
    order: NodeOrder | None = None,
    replay: Replay | None = None,
) -> Verdict:
    """Judge a whole run over its columns; return the findings, and how many more there were.

    `order` are the rows of the table by node, if they have been sorted already. `replay` are the operations
    of the run, if they are known.
    """
    wanted = properties_of(description, properties)
    judges = [(declared.name, declared.columns) for declared in wanted]
    return _with_failure(description, judge_columns(description, table, judges, order, replay))


def _with_failure(description: RunDescription, found: Verdict) -> Verdict:
    """The verdict, with the exception that ended the run if there was one."""
    if description.failure is None:
        return found
    return found._replace(violations=[*found.violations, failed(description.failure)])


def may_be_parted(description: RunDescription, properties: Iterable[Property] = PROPERTIES) -> bool:
    """Whether the summaries of a run's parts can prove everything that the run promises."""
    if description.failure is not None:
        return False
    promised = [declared for declared in properties if declared.applies(description)]
    return all(declared.in_parts for declared in promised) and all(
        node.id > SUBMITTED for node in description.nodes
    )


def judge_selected(
    description: RunDescription,
    selection: blocks.Selection,
    read_parts: Callable[[], Iterator[pa.Table]],
    read_whole: Callable[[], pa.Table],
    block_bits: int = BLOCK_BITS,
    properties: Sequence[Property] = PROPERTIES,
) -> Verdict:
    """The verdict on a large run. `selection` is what the summaries of its parts could not prove."""
    judge_table = partial(audit, properties=properties)
    in_excerpts = [declared for declared in properties if declared.in_excerpts]
    judge_excerpt = partial(audit, properties=in_excerpts)
    return blocks.judge_selected(
        judge_table, judge_excerpt, description, selection, read_parts, read_whole, block_bits
    )
