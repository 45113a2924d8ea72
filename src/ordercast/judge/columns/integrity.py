"""Integrity: no message is delivered twice, made up, or delivered to the wrong receiver.

Integrity is also the gate for the other properties. A delivery is *admitted* if its message went to a group
of the receiver, and the receiver had not delivered it before in the same life. The other properties are
judged on admitted deliveries, so that one fault causes one finding. If integrity is not promised, the gate
works in the same way, but its findings are not reported.
"""

import numpy as np

from ordercast.core import Groups, RemoteError, format_ns
from ordercast.judge.columns.account import Account, chains_of
from ordercast.judge.columns.columns import CODE, Flags, Ints, factorize, null_of, words_at
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.messages import Places
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import listed, message_at
from ordercast.trace import ORDERED, PROMISED, READ, Kind


def admit(trace: Trace, findings: Findings, carried: Ints) -> Account:
    """Judge submissions and these deliveries; return the account of those that other properties may see."""
    submissions = _Submissions(trace, findings)
    return _Gate(trace, findings, submissions, carried).account()


class _Submissions:
    """The first submission of each message, judged."""

    def __init__(self, trace: Trace, findings: Findings) -> None:
        rows = trace.rows(Kind.SUBMIT)
        codes, messages = trace.groups.codes[rows], trace.message[rows]
        wanting = (codes < 0) | (messages == null_of(messages))
        if wanting.any():
            raise RemoteError(
                f"event {rows[np.argmax(wanting)]}: a submission must have a message and groups"
            )
        self.places = Places(messages)
        first = self.places.is_first
        for row in findings.wanted(rows[~first].tolist()):
            self._tell_again(trace, findings, row, rows[first])
        self.row: Ints = rows if first.all() else rows[first]
        """The first submission of each message that is no read."""
        self.code: Ints = codes if first.all() else codes[first]
        """The groups of each message, as its row has them."""
        tuples = trace.groups.tuples
        known = [trace.known(groups) for groups in tuples]
        self._judge_groups(trace, findings, known)
        foreign = np.flatnonzero((self.places.messages >> 40) != trace.node[self.row])
        for place in findings.wanted(foreign.tolist()):
            row = int(self.row[place])
            detail = f"node {trace.node[row]} submitted {_at(trace, row)}, which is another node's message"
            _tell(trace, findings, row, detail)
        self.reads = self._take_reads(trace)
        """The messages that are reads of a service, which nobody delivers."""
        self.destinations: list[Groups] = list(dict.fromkeys([*known, ()]))
        """The sets of known groups that rows go to."""
        position = {groups: place for place, groups in enumerate(self.destinations)}
        self.known_code = np.array([position[groups] for groups in (*known, ())], np.int32)
        """For each code of groups, and last for null, the number of its destination."""
        self.destination: Ints = self.known_code[self.code]

    def _take_reads(self, trace: Trace) -> Ints:
        reading = trace.labelled(self.row, READ)
        reads: Ints = self.places.messages[reading]
        if len(reads):
            self.row, self.code = self.row[~reading], self.code[~reading]
            self.places = Places(trace.message[self.row])
        return reads

    def _judge_groups(self, trace: Trace, findings: Findings, known: list[Groups]) -> None:
        tuples = trace.groups.tuples
        bad = np.array([k != t or not t for k, t in zip(known, tuples, strict=True)], bool)
        if not bad.any():
            return
        for place in findings.wanted(np.flatnonzero(bad[self.code]).tolist()):
            row = int(self.row[place])
            detail = (
                f"node {trace.node[row]} submitted {_at(trace, row)} to {_groups(tuples[self.code[place]])};"
                f" the run has {_groups(tuple(trace.description.groups))}"
            )
            _tell(trace, findings, row, detail)

    def _tell_again(self, trace: Trace, findings: Findings, row: int, rows: Ints) -> None:
        first = int(rows[self.places.of(trace.message[row : row + 1])[0]])
        detail = (
            f"node {trace.node[row]} submitted {_at(trace, row)} again;"
            f" node {trace.node[first]} had submitted it at {format_ns(int(trace.time[first]))}"
        )
        _tell(trace, findings, row, detail)


class _Gate:
    """Judges deliveries, sorted by node, and admits them or not."""

    def __init__(self, trace: Trace, findings: Findings, submissions: _Submissions, rows: Ints) -> None:
        self._trace = trace
        self._findings = findings
        self._submissions = submissions
        rows = self._without_reads(rows)
        messages = trace.message[rows]
        place = submissions.places.of(messages)
        self._identities = submissions.places.messages
        self._row, self._place = rows, place
        self._to: Ints = np.zeros(len(rows), np.int32)
        """For each delivery, the number of the destination to which its message was submitted."""
        if len(submissions.destination):
            self._to = submissions.destination[place]
        unsubmitted = place < 0
        if unsubmitted.any():
            self._screen_unsubmitted(messages, np.flatnonzero(unsubmitted))
        self._refuse(~self._addressed(), "was submitted only to groups that the node does not receive")
        self._refuse_duplicates()
        self._compare()

    def account(self) -> Account:
        """The account of what passed the gate."""
        ordered = self._trace.is_kind(*ORDERED)[self._row]
        if not ordered.all():
            self._refuse_unpromised()
        return Account(
            self._trace,
            self._identities,
            self._submissions.row,
            self._submissions.destination,
            self._submissions.destinations,
            self._row,
            self._place,
            self._to,
            None if ordered.all() else ordered,
        )

    def _refuse_unpromised(self) -> None:
        """Report deliveries of a kind that is not promised."""
        promised = self._trace.description.guarantees
        for kind, promise in PROMISED.items():
            if not getattr(promised, promise):
                rows = self._row[self._trace.kind[self._row] == CODE[kind]]
                self._tell_rows(rows, f"was {kind.replace('-', ' ')}, but that is not promised")

    def _without_reads(self, rows: Ints) -> Ints:
        """Report deliveries of reads; return the others."""
        if not len(self._submissions.reads):
            return rows
        reading = np.isin(self._trace.message[rows], self._submissions.reads)
        self._tell_rows(rows[reading], "is a read, which nobody delivers")
        return rows[~reading]

    def _screen_unsubmitted(self, messages: Ints, where: Ints) -> None:
        """Report deliveries that nobody submitted; those to the right receiver may pass, once per life."""
        trace, submissions = self._trace, self._submissions
        nothing = messages[where] == null_of(messages)
        for delivery in self._findings.wanted(where[nothing].tolist()):
            row = int(self._row[delivery])
            label = words_at(trace.table["label"], self._row[delivery : delivery + 1])[0]
            detail = f"node {trace.node[row]} delivered something that is not a message"
            _tell(trace, self._findings, row, f"{detail}: {label}" if label else detail)
        made_up = where[~nothing]
        for delivery in self._findings.wanted(made_up.tolist()):
            self._breach(int(self._row[delivery]), "nobody submitted")
        strangers, numbers = np.unique(messages[made_up], return_inverse=True)
        self._place = self._place.astype(np.int64)
        self._place[made_up] = len(self._identities) + numbers
        self._identities = np.concatenate([self._identities, strangers])
        # The destination of a made-up message is what each of its rows says.
        self._to[made_up] = submissions.known_code[trace.groups.codes[self._row[made_up]]]
        passing = np.ones(len(self._row), bool)
        passing[where[nothing]] = False
        passing[made_up] = self._at_address(self._to[made_up], self._row[made_up])
        self._keep(passing)

    def _addressed(self) -> Flags:
        """For each delivery, whether its message went to a group of the receiver."""
        return self._at_address(self._to, self._row)

    def _at_address(self, destinations: Ints, rows: Ints) -> Flags:
        nodes = self._trace.node[rows]
        flags = self._at_any_time(destinations, nodes)
        for node in self._trace.members.changed:
            mine = np.flatnonzero(nodes == node)
            flags[mine] = self._at_that_time(node, destinations[mine], rows[mine])
        return flags

    def _at_that_time(self, node: int, destinations: Ints, rows: Ints) -> Flags:
        """For each row of a node that joined or left groups, whether it received a destination then."""
        flags, known = np.zeros(len(rows), bool), self._submissions.destinations
        for group in self._trace.description.groups:
            to = np.array([group in groups for groups in known], bool)
            flags |= to[destinations] & self._trace.members.inside(node, group, rows)
        return flags

    def _at_any_time(self, destinations: Ints, nodes: Ints) -> Flags:
        ids, index = factorize(nodes)
        table = np.zeros((len(self._submissions.destinations), max(1, len(ids))), bool)
        position = {node: place for place, node in enumerate(ids.tolist())}
        for place, groups in enumerate(self._submissions.destinations):
            there = [position[node] for node in self._trace.receivers(groups) if node in position]
            table[place, there] = True
        if table.all():
            return np.ones(len(nodes), bool)
        flags: Flags = table[destinations, index]
        return flags

    def _refuse_duplicates(self) -> None:
        again = np.zeros(len(self._row), bool)
        for chain in chains_of(self._trace, self._row):
            span = slice(chain.start, chain.stop)
            again[span] = repeated(self._place[span], len(self._identities))
        self._refuse(again, "it had delivered before")

    def _refuse(self, refused: Flags, why: str) -> None:
        if refused.any():
            self._tell_rows(self._row[refused], why)
            self._keep(~refused)

    def _keep(self, passing: Flags) -> None:
        self._row, self._place, self._to = self._row[passing], self._place[passing], self._to[passing]

    def _compare(self) -> None:
        """Compare each admitted delivery with its submission."""
        trace, submissions = self._trace, self._submissions
        count = len(submissions.row)
        if (self._place >= count).any():
            submitted = np.flatnonzero(self._place < count)
            rows, places = self._row[submitted], self._place[submitted]
        else:
            rows, places = self._row, self._place
        if not len(rows):
            return
        origin = submissions.row
        if trace.description.source == "simulator":
            early = trace.time[rows] < trace.time[origin][places]
            self._tell_rows(rows[early], "was submitted only later")
        codes = trace.groups.codes[rows]
        if len(trace.groups.tuples) > 1 or (codes < 0).any():
            # What was submitted to groups that the run does not have goes to those that it has.
            code_of = {groups: code for code, groups in enumerate(trace.groups.tuples)}
            written = np.array([code_of.get(groups, -2) for groups in submissions.destinations], np.int32)
            self._tell_rows(
                rows[codes != written[submissions.destination][places]],
                "names other groups than it was submitted to",
            )
        digest, size = self._differs("digest", rows, places), self._differs("size", rows, places)
        self._tell_rows(rows[digest], "has other bytes than were submitted")
        self._tell_rows(rows[size & ~digest], "has another size than was submitted")
        told = self._differs("submitted_ns", rows, places)
        self._tell_rows(rows[told], "names another time of submission than its own")
        peer = trace.column("peer")[rows]
        named = (peer != trace.node[origin][places]) & (peer != null_of(peer))
        if named.any():
            named &= peer != (trace.message[rows] >> 40)
            self._tell_rows(rows[named], "the protocol said came from another node than its sender")

    def _differs(self, name: str, rows: Ints, places: Ints) -> Flags:
        """Whether a delivery has another value than its submission, where both have one."""
        column = self._trace.column(name)
        here, there = column[rows], column[self._submissions.row][places]
        flags: Flags = here != there
        if flags.any():
            flags &= (here != null_of(column)) & (there != null_of(column))
        return flags

    def _tell_rows(self, rows: Ints, what: str) -> None:
        for row in self._findings.wanted(rows.tolist()):
            self._breach(row, what)

    def _breach(self, row: int, what: str) -> None:
        detail = f"node {self._trace.node[row]} delivered {_at(self._trace, row)}, which {what}"
        _tell(self._trace, self._findings, row, detail)


def repeated(places: Ints, count: int) -> Flags:
    """For each element, whether an equal one comes before it; all are less than `count`."""
    if len(places) * 16 < count:  # a table of marks would be mostly empty
        _, first = np.unique(places, return_index=True)
        again = np.ones(len(places), bool)
        again[first] = False
        return again
    seen = np.zeros(count, bool)
    seen[places] = True
    if np.count_nonzero(seen) == len(places):
        return np.zeros(len(places), bool)
    first = np.empty(count, np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    return np.asarray(first[places] != np.arange(len(places)))


def _at(trace: Trace, row: int) -> str:
    return message_at(int(trace.message[row]), int(trace.time[row]))


def _tell(trace: Trace, findings: Findings, row: int, detail: str) -> None:
    message = int(trace.message[row])
    messages = () if message == null_of(trace.message) else (message,)
    findings.add((int(trace.node[row]),), messages, (int(trace.time[row]),), detail, row)


def _groups(groups: Groups) -> str:
    if not groups:
        return "no group"
    return f"group{'' if len(groups) == 1 else 's'} {listed(groups)}"
