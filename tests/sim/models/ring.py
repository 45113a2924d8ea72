"""A token ring that tolerates crashes of a minority, lost packets, and members that come back.

The receivers of all groups are members of one ring. The token goes round; who holds it numbers the requests
of senders that wait here, and multicasts the numbered entries. The token also carries how far each member has
all entries; a number that a majority has is decided, and is delivered in order by the receivers of its group.

When no token comes for a while, a member forms a new ring: it asks all for their entries, needs the answers
of a majority, takes for every number the entry of the latest ring, and starts a new token. Whoever answers
has promised to take part in no earlier ring. So rings are the ballots of Paxos, and entries its proposals.

A token is known by its hop, and a copy of one that was seen is ignored. Which hops were seen is not saved. So
a member that restarts must leave its ring: a late copy of an old token would look like a new one to it, and
it would give numbers a second time.
"""

from collections.abc import Mapping
from functools import partial

import msgspec

from ordercast.core import (
    MILLISECOND,
    Agreement,
    Codec,
    Crashes,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Fault,
    Gaps,
    GroupId,
    Groups,
    Guarantees,
    LocalError,
    Member,
    Message,
    Node,
    NodeId,
    Order,
    Partition,
    Payload,
    Plan,
    Process,
    Stamp,
    Wait,
)

PROMISES = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    gaps=Gaps.NEVER,
    crashes=Crashes.MINORITY_OF_ALL,
    groups_max=1,
    partition=Partition.MAJORITY_CONTINUES,
    tolerates=(
        Fault.LOSS,
        Fault.DUPLICATION,
        Fault.REORDERING,
        Fault.PARTITION,
        Fault.CRASH,
        Fault.RESTART,
        Fault.PAUSE,
        Fault.CLOCK,
    ),
)
HOLD = 2 * MILLISECOND
"""How long an idle member keeps the token."""
AGAIN = 8 * MILLISECOND
"""How often a member repeats the token that it has passed on, until the token comes round again."""
SILENCE = 60 * MILLISECOND
"""How long a member waits for a token, at least, before it forms a new ring; at most twice as long."""
GATHER = 20 * MILLISECOND
RETRY = 40 * MILLISECOND
VISIT_MAX = 16
"""How many requests a holder numbers, and how many missing entries it asks for, in one visit of the token."""
NOBODY = -1


class Request(Message, frozen=True, tag=1):
    """From a sender to a member: order this."""

    serial: int
    group: GroupId
    payload: Payload


class Done(Message, frozen=True, tag=2):
    """From a member to a sender: this was delivered."""

    serial: int


class Entry(Message, frozen=True, tag=3):
    """A request with its number in the order, as a ring proposes it; of nobody if the number stays empty."""

    ring: int
    number: int
    sender: NodeId
    serial: int
    group: GroupId
    payload: Payload


class Token(Message, frozen=True, tag=4):
    """The right to number requests."""

    ring: int
    hop: int
    members: tuple[NodeId, ...]
    next: int
    decided: int
    have: tuple[int, ...]
    """For each member, up to which number it has all entries."""


class Join(Message, frozen=True, tag=5):
    """Form a ring with me; I have delivered so much."""

    ring: int
    delivered: int


class Joined(Message, frozen=True, tag=6):
    """I take part in no earlier ring, and these are my entries."""

    ring: int
    entries: tuple[Entry, ...]


class Refused(Message, frozen=True, tag=7):
    """I have promised myself to this later ring."""

    ring: int


class Want(Message, frozen=True, tag=8):
    """Send me these entries."""

    ring: int
    numbers: tuple[int, ...]


class Sender(Member):
    """Repeats a request until it is delivered."""

    def __init__(self, env: Env, members: tuple[NodeId, ...], groups: range) -> None:
        super().__init__(env)
        self.members = members
        self.groups = groups
        self.serial = 0
        self.pending: dict[int, tuple[GroupId, bytes]] = {}

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin above every serial that an earlier life can have used."""
        self.serial = self.env.now
        self.env.set_timer("retry", RETRY)

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Ask a member to order it."""
        if len(groups) != 1 or groups[0] not in self.groups:
            raise LocalError(f"the ring needs one of the groups 0 to {self.groups[-1]}, not {groups}")
        self.serial += 1
        self.pending[self.serial] = groups[0], payload
        self.ask(self.serial)
        return True

    def ask(self, serial: int) -> None:
        """Ask all members: whoever has the token next gives it a number."""
        self.env.multicast(self.members, Request(serial, *self.pending[serial]))

    def on_message(self, source: NodeId, message: Message) -> None:
        """A request was delivered."""
        if isinstance(message, Done):
            self.pending.pop(message.serial, None)

    def on_timer(self, name: str) -> None:
        """Ask again."""
        for serial in list(self.pending)[:VISIT_MAX]:
            self.ask(serial)
        self.env.set_timer("retry", RETRY)

    def explain(self) -> Explanation:
        """The requests that were not delivered yet."""
        waits = (
            Wait(f"request {serial}", "a member to order it", serial, payload, on=self.members)
            for serial, (_, payload) in self.pending.items()
        )
        return Explanation({"role": "sender", "pending": len(self.pending)}, tuple(waits))


class RingMember(Process):
    """Numbers, keeps and delivers."""

    def __init__(self, env: Env, everybody: tuple[NodeId, ...], mine: frozenset[GroupId]) -> None:
        super().__init__(env)
        self.everybody = everybody
        self.mine = mine
        self.majority = len(everybody) // 2 + 1
        # Saved:
        self.promised = 0
        self.log: dict[int, Entry] = {}
        self.delivered = 0
        # Not saved:
        self.left = 0
        self.ring = 0
        self.hop = 0
        self.token: Token | None = None
        self.passed: Token | None = None
        self.decided = 0
        self.requests: dict[tuple[NodeId, int], Request] = {}
        self.done: set[tuple[NodeId, int]] = set()
        self.gathered: dict[NodeId, tuple[Entry, ...]] = {}
        self.forming = 0

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Read what was saved; a member that comes back leaves the ring that it was in."""
        self.promised = int(saved.get("promised", b"0"))
        self.delivered = int(saved.get("delivered", b"0"))
        entries = (
            msgspec.msgpack.decode(state, type=Entry)
            for name, state in saved.items()
            if name.startswith("log.")
        )
        self.log = {entry.number: entry for entry in entries}
        for number in range(1, self.delivered + 1):
            self.done.add((self.log[number].sender, self.log[number].serial))
        self.left = self.leave()
        self.listen()

    def leave(self) -> int:
        """The last ring whose tokens a member that starts must not take any more."""
        return self.promised

    def listen(self) -> None:
        """Wait for a token, and not for ever."""
        self.env.set_timer("silence", SILENCE + self.env.rng.randrange(SILENCE))

    # Requests

    def on_message(self, source: NodeId, message: Message) -> None:
        """Handle what senders and other members say."""
        match message:
            case Request():
                self.on_request(source, message)
            case Entry():
                self.on_entry(message)
            case Token():
                self.on_token(message)
            case Join():
                self.on_join(source, message)
            case Joined():
                self.on_joined(source, message)
            case Refused():
                self.forming = max(self.forming, message.ring)
            case Want():
                self.on_want(source, message)

    def on_request(self, source: NodeId, request: Request) -> None:
        """Keep a request until the token comes."""
        if (source, request.serial) in self.done:
            self.env.send(source, Done(request.serial))
        else:
            self.requests[source, request.serial] = request

    # The token

    def on_token(self, token: Token) -> None:
        """Take the token, unless it is of an earlier ring or a copy of one that was here."""
        if token.ring < self.promised or token.ring <= self.left:
            return
        if (token.ring, token.hop) <= (self.ring, self.hop):
            return
        self.promise(token.ring)
        self.ring, self.hop, self.passed = token.ring, token.hop, None
        self.env.cancel_timer("again")
        self.listen()
        self.token = token
        busy = self.number_requests()
        self.advance()
        self.env.set_timer("pass", 0 if busy else HOLD)

    def number_requests(self) -> bool:
        """Number the requests that wait here; return whether there were any."""
        assert self.token is not None
        open_ = (entry for number, entry in self.log.items() if number > self.delivered)
        numbered = {(entry.sender, entry.serial) for entry in open_ if entry.ring == self.token.ring}
        chosen = [key for key in self.requests if key not in numbered][:VISIT_MAX]
        for sender, serial in chosen:
            request = self.requests[sender, serial]
            number, token = self.token.next, self.token
            self.token = msgspec.structs.replace(token, next=number + 1)
            self.propose(Entry(token.ring, number, sender, serial, request.group, request.payload))
        return bool(chosen)

    def propose(self, entry: Entry) -> None:
        """Keep an entry, and tell all others."""
        self.keep(entry)
        self.env.multicast([node for node in self.everybody if node != self.env.me], entry)

    def advance(self) -> None:
        """Note in the token how far this member is, and deliver what a majority has."""
        assert self.token is not None
        token, me = self.token, self.token.members.index(self.env.me)
        have = (*token.have[:me], self.has(token.ring), *token.have[me + 1 :])
        decided = max(token.decided, sorted(have, reverse=True)[self.majority - 1])
        self.token = msgspec.structs.replace(token, have=have, decided=decided)
        self.decided = max(self.decided, decided)
        missing = [n for n in range(have[me] + 1, token.next) if not self.holds(n, token.ring)]
        if missing:
            others = [node for node in token.members if node != self.env.me]
            self.env.multicast(others, Want(token.ring, tuple(missing[:VISIT_MAX])))
        self.deliver()

    def holds(self, number: int, ring: int) -> bool:
        """Whether this member has the entry of a ring, or one that was delivered."""
        return number <= self.delivered or (number in self.log and self.log[number].ring == ring)

    def has(self, ring: int) -> int:
        """Up to which number this member has all entries of a ring."""
        number = self.delivered
        while self.holds(number + 1, ring):
            number += 1
        return number

    def on_timer(self, name: str) -> None:
        """Pass the token on, repeat it, or form a ring."""
        if name == "pass" and self.token is not None:
            if self.token.ring == self.promised:
                self.number_requests()
                self.advance()
                self.hand_on(self.token)
            self.token = None
        elif name == "again" and self.passed is not None and self.passed.ring == self.promised:
            self.send_on()
        elif name == "silence":
            self.form()
        elif name == "gather":
            self.start_ring() if len(self.gathered) >= self.majority else self.form()

    def hand_on(self, token: Token) -> None:
        """Give the token to the next member."""
        self.passed = msgspec.structs.replace(token, hop=token.hop + 1)
        self.send_on()

    def send_on(self) -> None:
        """Send the token, and send it again: it may be lost."""
        assert self.passed is not None
        members = self.passed.members
        after = members[(members.index(self.env.me) + 1) % len(members)]
        self.env.send(after, self.passed)
        self.env.set_timer("again", AGAIN)

    # Entries

    def on_entry(self, entry: Entry) -> None:
        """Keep an entry, unless it is of an earlier ring."""
        if entry.ring >= self.promised:
            self.promise(entry.ring)
            self.keep(entry)
            self.deliver()

    def keep(self, entry: Entry) -> None:
        """Save an entry."""
        if entry.number > self.delivered:
            self.log[entry.number] = entry
            self.env.save(f"log.{entry.number}", msgspec.msgpack.encode(entry))

    def on_want(self, source: NodeId, want: Want) -> None:
        """Send what this member has of a ring."""
        for number in want.numbers if want.ring == self.promised else ():
            if self.holds(number, want.ring):
                self.env.send(source, msgspec.structs.replace(self.log[number], ring=want.ring))

    def deliver(self) -> None:
        """Deliver what is decided and here, each request once."""
        while self.delivered < self.decided and self.holds(self.delivered + 1, self.promised):
            self.delivered += 1
            self.env.save("delivered", str(self.delivered).encode())
            entry = self.log[self.delivered]
            key = (entry.sender, entry.serial)
            self.requests.pop(key, None)
            if entry.sender != NOBODY and key not in self.done:
                self.done.add(key)
                stamp = Stamp(clock=entry.number, issuer=0)
                if entry.group in self.mine:
                    self.env.deliver(Delivered(entry.payload, (entry.group,), entry.sender, stamp))
                self.env.send(entry.sender, Done(entry.serial))

    # New rings

    def promise(self, ring: int) -> None:
        """Take part in no earlier ring from now on."""
        if ring > self.promised:
            self.promised = ring
            self.env.save("promised", str(ring).encode())
            self.token = self.passed = None
            self.gathered = {}
            self.decided = self.delivered
            self.env.cancel_timer("gather")

    def form(self) -> None:
        """Ask all members to form a new ring."""
        rounds = max(self.promised, self.forming) // len(self.everybody) + 1
        ring = rounds * len(self.everybody) + self.everybody.index(self.env.me)
        self.promise(ring)
        self.gathered = {self.env.me: tuple(self.log.values())}
        others = [node for node in self.everybody if node != self.env.me]
        self.env.multicast(others, Join(ring, self.delivered))
        self.env.set_timer("gather", GATHER + self.env.rng.randrange(GATHER))
        self.listen()

    def on_join(self, source: NodeId, join: Join) -> None:
        """Promise, and hand over the entries; or say which later ring there is."""
        if join.ring < self.promised:
            self.env.send(source, Refused(self.promised))
        else:
            self.promise(join.ring)
            self.listen()
            entries = (entry for number, entry in self.log.items() if number > join.delivered)
            self.env.send(source, Joined(join.ring, tuple(entries)))

    def on_joined(self, source: NodeId, joined: Joined) -> None:
        """Begin at once if everybody has answered."""
        if joined.ring == self.promised and self.gathered:
            self.gathered[source] = joined.entries
            if len(self.gathered) == len(self.everybody):
                self.start_ring()

    def start_ring(self) -> None:
        """Propose again what earlier rings may have decided, and let the token go round."""
        ring, members = self.promised, tuple(sorted(self.gathered))
        latest: dict[int, Entry] = {}
        for entry in (entry for entries in self.gathered.values() for entry in entries):
            if entry.number not in latest or latest[entry.number].ring < entry.ring:
                latest[entry.number] = entry
        self.gathered = {}
        self.env.cancel_timer("gather")
        last = max([self.delivered, *latest])
        for number in range(self.delivered + 1, last + 1):
            empty = Entry(ring, number, NOBODY, 0, 0, b"")
            self.propose(msgspec.structs.replace(latest.get(number, empty), ring=ring))
        have = tuple(0 for _ in members)
        self.on_token(Token(ring, 1, members, last + 1, self.delivered, have))

    def explain(self) -> Explanation:
        """Entries that are not delivered, and requests that wait for the token."""
        first = self.delivered + 1
        blocker = f"number {first}" if first not in self.log else "a majority to have it"
        waits = [
            Wait(f"number {number}", blocker, 0, entry.payload)
            for number, entry in sorted(self.log.items())
            if number > self.delivered and entry.sender != NOBODY
        ]
        waits += [
            Wait(f"request {serial} of {sender}", "the token", 0, request.payload)
            for (sender, serial), request in self.requests.items()
        ]
        state: dict[str, str | int] = {"role": "member", "ring": self.ring, "delivered": self.delivered}
        return Explanation(state, tuple(waits))


class Lingering(RingMember):
    """Broken: goes on in its old ring when it comes back."""

    def leave(self) -> int:
        """Leave none."""
        return 0


class Hurried(RingMember):
    """Broken: delivers what it has itself, without a majority."""

    def keep(self, entry: Entry) -> None:
        """One is enough."""
        super().keep(entry)
        self.decided = max(self.decided, self.has(self.promised))


def plan(deployment: Deployment, make: type[RingMember] = RingMember) -> Plan:
    """All receivers of the deployment as members of one ring, and its senders."""
    members = tuple(range(deployment.receivers))
    groups = dict(enumerate(deployment.groups))

    def member(node: NodeId) -> partial[RingMember]:
        mine = frozenset(group for group, nodes in groups.items() if node in nodes)
        return partial(make, everybody=members, mine=mine)

    sender = partial(Sender, members=members, groups=range(len(groups)))
    nodes = [Node(node, "member", node, member(node)) for node in members]
    nodes += [Node(node, "sender", deployment.sender_host(node), sender) for node in deployment.sender_ids()]
    codec = Codec([Request, Done, Entry, Token, Join, Joined, Refused, Want])
    return Plan("ring-model", PROMISES, tuple(nodes), groups, deployment.sender_ids(), codec)
