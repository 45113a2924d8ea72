"""Shards and clients that are broken on purpose, and the play in which each breaks a promise."""

from ordercast.components.execution import unpack_call
from ordercast.core import NodeId
from ordercast.transactions.granola.client import GranolaClient
from ordercast.transactions.granola.entries import Entry, Propose, Settle, Subject, Verdict
from ordercast.transactions.granola.messages import Ask, Request, Vote
from ordercast.transactions.granola.schedule import Record, Schedule, Stage
from ordercast.transactions.granola.server import GranolaServer
from ordercast.transactions.granola.voting import Voting
from tests.granola import general_plays, plays
from tests.play_mutants import Mutant


def _vote_without_a_timestamp(self: Voting, subject: Subject, attempt: int) -> Vote | None:
    standing = self._schedule.standing(subject, attempt)
    if standing is None:
        return None
    return Vote(subject, attempt, self._group, standing.verdict, self._group, standing.settled)


def _overtake(self: Schedule) -> None:
    """Run what is settled, whatever is pending."""
    for timestamp, subject in sorted(self._queue):
        record = self.records.get(subject)
        if record is not None and record.timestamp == timestamp and record.stage is Stage.SETTLED:
            self._run(subject, record)


def _vote_anew(self: Schedule, subject: Subject, attempt: int) -> bool:
    """A request that comes again gets another timestamp: the vote in the log is forgotten."""
    record = self.records.get(subject)
    return record is None or record.stage is Stage.PENDING


def _take_anew(self: GranolaServer, source: NodeId, request: Request) -> None:
    """A new leader proposes what its clients send again."""
    call = unpack_call(request.call)
    if self.log.is_leader:
        time = self.env.now
        self._order(Propose(Subject(call.first), request.attempt, request.groups, time, request.call))
    else:
        self._hand_on(source, request, call.first)


_order = GranolaServer._order


def _vote_at_once(self: GranolaServer, entry: Entry) -> None:
    """The vote leaves before it is in the log."""
    if isinstance(entry, Propose):
        time = max(entry.time, self.schedule.high + 1)
        timestamp = time + (self._group - time) % 2
        for group in entry.groups:
            vote = Vote(entry.subject, entry.attempt, self._group, Verdict.COMMIT, timestamp, False)
            if group != self._group:
                self.env.send(self.voting._leaders[group], vote)
    _order(self, entry)


_run_entry = Schedule.run


def _end_alone(self: Schedule, entry: Entry) -> None:
    """A shard ends a general transaction when it has waited for too long, and asks nobody."""
    if isinstance(entry, Propose) and entry.subject.ends and len(entry.groups) > 1:
        entry = Propose(entry.subject, entry.attempt, (self._group,), entry.time)
    _run_entry(self, entry)


def _keep_attempt(self: Schedule, subject: Subject) -> None:
    """The next attempt locks again, and the one before keeps its locks."""


def _see_nothing(self: GranolaClient, timestamp: int) -> None:
    pass


_on_start = GranolaClient.on_start


def _start_afresh(self: GranolaClient, saved: object) -> None:
    _on_start(self, {})


def _propose_low(self: Schedule, entry: Entry) -> None:
    """What was learned from other shards does not count for the next proposal."""
    high = self.high
    _run_entry(self, entry)
    if isinstance(entry, Settle):
        self.high = high


def _is_never_past(self: Schedule, first: int) -> bool:
    return False


_run = Schedule._run


def _forget_at_once(self: Schedule, subject: Subject, record: Record) -> None:
    """A transaction is forgotten when it has run here, whether other shards know of that or not."""
    _run(self, subject, record)
    self.records.pop(subject, None)


_on_ask = Voting.on_ask


def _say_forgotten(self: Voting, source: NodeId, ask: Ask) -> bool:
    """A replica that has nothing on record says that its shard has settled it, and forgotten that."""
    if not _on_ask(self, source, ask) and ask.settled:
        self._env.send(source, Vote(ask.subject, ask.attempt, self._group, Verdict.COMMIT, 0, True))
    return True


def _ask_nobody(self: Voting, subject: Subject, record: Record, age: int) -> None:
    pass


MUTANTS = (
    Mutant(
        "votes without timestamps",
        Voting,
        "_vote",
        _vote_without_a_timestamp,
        plays.two_shards_take_the_higher_timestamp,
    ),
    Mutant(
        "a lower timestamp overtaken",
        Schedule,
        "_advance",
        _overtake,
        plays.a_higher_timestamp_waits_for_a_lower_one_that_is_pending,
    ),
    Mutant(
        "a vote forgotten at fail-over",
        Schedule,
        "_may_vote",
        _vote_anew,
        plays.a_leader_dies_after_it_has_voted,
        ((GranolaServer, "_on_request", _take_anew),),
    ),
    Mutant(
        "a vote that is not in the log",
        GranolaServer,
        "_order",
        _vote_at_once,
        plays.a_leader_dies_before_its_proposal_is_in_the_log,
    ),
    Mutant(
        "abort by timeout alone",
        Schedule,
        "run",
        _end_alone,
        general_plays.a_conclusion_meets_the_end_by_the_shards,
    ),
    Mutant(
        "a retry that locks again",
        Schedule,
        "_drop",
        _keep_attempt,
        general_plays.a_retry_takes_the_place_of_the_attempt_before,
    ),
    Mutant(
        "a client that does not tell what it has seen",
        GranolaClient,
        "_see",
        _see_nothing,
        plays.a_client_sees_its_own_order,
    ),
    Mutant(
        "a client that forgets what it has seen",
        GranolaClient,
        "on_start",
        _start_afresh,
        plays.a_client_that_restarts_sees_its_own_order,
    ),
    Mutant(
        "a proposal below what has run",
        Schedule,
        "run",
        _propose_low,
        plays.a_proposal_is_above_what_has_run,
    ),
    Mutant(
        "a late request taken again",
        Schedule,
        "_is_past",
        _is_never_past,
        plays.a_request_that_comes_again_runs_once,
    ),
    Mutant(
        "a vote that nobody asks for",
        Voting,
        "_ask",
        _ask_nobody,
        plays.a_lost_vote_is_asked_for,
    ),
    Mutant(
        "forgotten before others have settled",
        Schedule,
        "_run",
        _forget_at_once,
        plays.a_client_gives_up_what_one_shard_has_run,
    ),
    Mutant(
        "forgotten says who lags",
        Voting,
        "on_ask",
        _say_forgotten,
        plays.a_replica_that_lags_does_not_say_what_was_forgotten,
    ),
)
