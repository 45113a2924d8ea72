"""A sequencing node: the atoms that it hosts, the logs that it keeps, and its subscribers (section 3.1).

A message takes *stages*: the hops of its path, which number it, and then the further holders of the log. The
last of all, the *distributor*, sends it to the subscribers. So before a subscriber sees a number, it is on
the node that gave it and on the next one. What a stage needs is in the plan of the group (`records`).

The node obeys a plan only in the life for which the plan was made: counters do not survive a crash, so a node
that restarts numbers nothing until the store has begun another epoch. Its logs do survive.
"""

from collections.abc import Mapping

from ordercast.components.sequencing_graph import AtomId
from ordercast.core import Env, Explanation, GroupId, Message, NodeId, Process, Wait
from ordercast.protocols.atoms.channels import ACKS, Channels
from ordercast.protocols.atoms.group_log import GroupLog
from ordercast.protocols.atoms.ingress import Ingress
from ordercast.protocols.atoms.limits import Limits
from ordercast.protocols.atoms.log_keeping import LogKeeping
from ordercast.protocols.atoms.messages import (
    Alive,
    Copy,
    Entries,
    Forward,
    Got,
    Inquiry,
    Kept,
    Passed,
    Plans,
    Publish,
    Pull,
    Receipt,
    Route,
    Seal,
    Sealed,
)
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.parts import parts
from ordercast.protocols.atoms.records import (
    NOBODY,
    GroupPlan,
    Placed,
    Post,
    Stamps,
)

PULSE = "pulse"
REPEAT = "repeat"
LIFE = "life"
SEEN = "seen"
WAITING_MAX = 1024
"""Messages of publishers to one group that wait for its next epoch."""


class SequencingNode(Process):
    """Hosts atoms, keeps logs and distributes them."""

    def __init__(
        self,
        env: Env,
        plans: Mapping[GroupId, GroupPlan],
        store: tuple[NodeId, ...],
        limits: Limits,
        options: AtomsOptions,
    ) -> None:
        super().__init__(env)
        self._store = store
        self._limits = limits
        self._options = options
        self._plans = dict(plans)
        self._version = max((plan.version for plan in plans.values()), default=0)
        """All plans up to this version are known."""
        self._seen = self._version
        """The highest version ever known, in earlier lives too: a store that tells less is behind."""
        self._post = Post(env.me, 1)
        self._open: set[int] = set()
        """The epochs in which this node takes messages."""
        self._counters: dict[int, dict[AtomId, int]] = {}
        """By epoch: the next number of each atom."""
        self._keeping = LogKeeping(env, limits.nodes, store, options)
        self._ingresses: dict[GroupId, Ingress] = {}
        self._waiting: dict[GroupId, dict[tuple[NodeId, int], Publish]] = {}
        """Messages of publishers that came between two epochs."""
        self._channels = Channels(env, options.retry_ns)
        self._is_armed = False

    # Life

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, or come back with the logs of earlier lives."""
        life = int.from_bytes(saved.get(LIFE, b""), "little") + 1
        self._post = Post(self.env.me, life)
        self.env.save(LIFE, life.to_bytes(8, "little"))
        for name, state in saved.items():
            group, _, place = name.partition(".")
            if place:
                self._keeping.log(int(group)).load(place, state)
        if life > 1:
            self._plans, self._version = {}, 0  # those of the beginning are out of date
            self._seen = max(self._seen, int.from_bytes(saved.get(SEEN, b""), "little"))
        for plan in list(self._plans.values()):
            self._install(plan)
        self._pulse()

    def on_timer(self, name: str) -> None:
        """Give a sign of life, acknowledge, or send again."""
        if name == PULSE:
            self._pulse()
        elif name == ACKS:
            self._channels.acknowledge_all()
        else:
            self._is_armed = False
            self._repeat()

    def _pulse(self) -> None:
        self.env.multicast(self._store, Alive(self._post.life, self._version))
        self.env.set_timer(PULSE, self._options.heartbeat_ns)

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            self.env.set_timer(REPEAT, self._options.retry_ns)

    def _repeat(self) -> None:
        busy = self._channels.repeat()
        for group, plan in self._plans.items():
            busy |= self._keeping.repeat(group, plan, self._post)
        if busy:
            self._arm()

    # Plans

    def on_message(self, source: NodeId, message: Message) -> None:
        """Handle a message."""
        self._limits.check(source, message)
        match message:
            case Forward():
                self._on_forward(source, message)
            case Passed():
                self._channels.on_passed(source, message)
            case Publish():
                self._on_publish(source, message)
            case Got():
                if message.group in self._keeping.distributions:
                    self._keeping.distributions[message.group].on_got(source, message)
            case Inquiry():
                self._on_inquiry(message)
            case Plans():
                self._on_plans(message)
            case Seal():
                self._on_seal(source, message)
            case Pull():
                self._keeping.on_pull(source, message)
            case Entries(group) if group in self._plans:
                self._keeping.on_entries(message, self._plans[group], self._post)
            case Copy(group) if group in self._plans:
                self._keeping.on_copy(message, self._plans[group])
            case Kept():
                self._keeping.on_kept(message)

    def _on_plans(self, message: Plans) -> None:
        if not message.since <= self._version < message.upto or message.latest < self._seen:
            return
        if message.latest > self._seen:
            self._seen = message.latest
            self.env.save(SEEN, self._seen.to_bytes(8, "little"))
        for plan in message.plans:
            if plan.version > self._version:
                before = self._plans.get(plan.group)
                if before is not None:
                    self._end(before.label)
                self._plans[plan.group] = plan
                self._install(plan)
        self._version = message.upto
        self._channels.forget_before(min(self._open, default=0))
        for plan in message.plans:
            for source in self._channels.sources(plan.label):
                self._drain(plan.label, source)

    def _end(self, label: int) -> None:
        """An epoch is over."""
        self._open.discard(label)
        self._counters.pop(label, None)
        self._channels.end(label)

    def _install(self, plan: GroupPlan) -> None:
        """Take up what a plan gives this node to do for a group."""
        group, mine = plan.group, self._post
        self._ingresses.pop(group, None)
        if mine in plan.posts():
            self._open.add(plan.label)
        self._keeping.install(plan, mine)
        if plan.hops and plan.hops[0].post == mine:
            ingress = self._ingresses[group] = Ingress(group, plan.base + 1, dict(plan.serials))
            for publisher, serial in plan.serials:
                self.env.send(publisher, Route(group, plan.version, self.env.me, serial))
            for (publisher, _), publish in self._waiting.pop(group, {}).items():
                self._take(ingress, plan, publisher, publish)
        else:
            for publisher in dict.fromkeys(publisher for publisher, _ in self._waiting.pop(group, {})):
                self.env.send(publisher, Route(group, plan.version, plan.ingress))
        self._arm()

    # Messages on their way

    def _on_publish(self, source: NodeId, message: Publish) -> None:
        plan = self._plans.get(message.group)
        if plan is None or plan.ingress == NOBODY or plan.hops[0].post.node != self.env.me:
            version, ingress = (0, NOBODY) if plan is None else (plan.version, plan.ingress)
            self.env.send(source, Route(message.group, version, ingress))
            return
        found = self._ingresses.get(message.group)
        if found is None or plan.label not in self._open:
            waiting = self._waiting.setdefault(message.group, {})
            if len(waiting) < WAITING_MAX:
                waiting[source, message.number] = message
            return
        self._take(found, plan, source, message)

    def _take(self, ingress: Ingress, plan: GroupPlan, source: NodeId, message: Publish) -> None:
        if message.version < plan.opened:  # a late copy, or of a publisher that will send it again
            self.env.send(source, Route(plan.group, plan.version, self.env.me))
            return
        if not ingress.take(source, message):
            self._answer_again(ingress, plan, source, message)
        while (publish := ingress.ready(source)) is not None:
            entry = Placed(plan.label, (), source, publish.life, publish.number, publish.payload)
            position = ingress.position
            ingress.position += 1
            self._run(plan, 0, position, entry)

    def _answer_again(self, ingress: Ingress, plan: GroupPlan, source: NodeId, message: Publish) -> None:
        """A publisher repeats what was taken: tell it again how far its messages have their places."""
        life, number = ingress.placed.get(source, (-1, 0))
        if (life, number) > (message.life, message.number):
            self.env.send(source, Receipt(message.group, life, number))
        elif plan.distributor == self._post:
            self._on_inquiry(Inquiry(message.group, source))
        elif plan.distributor is not None:
            self.env.send(plan.distributor.node, Inquiry(message.group, source))

    def _on_inquiry(self, message: Inquiry) -> None:
        log = self._keeping.logs.get(message.group)
        plan = self._plans.get(message.group)
        if log is not None and plan is not None and plan.distributor == self._post:
            serial = log.serials.get(message.publisher)
            if serial is not None and not self._is_full(log):
                self.env.send(message.publisher, Receipt(message.group, *serial))

    def _is_full(self, log: GroupLog) -> bool:
        """Whether publishers must wait: subscribers take more slowly than they send."""
        return log.next - log.low > self._options.history

    def _on_forward(self, source: NodeId, message: Forward) -> None:
        if message.label in self._open or message.label > self._newest():
            self._channels.take(source, message)
            self._drain(message.label, source)

    def _newest(self) -> int:
        """The highest label of the plans that are known."""
        return max((plan.label for plan in self._plans.values()), default=0)

    def _drain(self, label: int, source: NodeId) -> None:
        """Process what has come on a channel, in its order."""
        while label in self._open and (message := self._channels.peek(label, source)) is not None:
            plan = self._plans.get(message.group)
            if plan is None or plan.label != label:
                return  # the plan of this group is still on its way
            self._limits.check_stage(source, message, plan, self._post)
            self._channels.pop(label, source)
            self._run(plan, message.stage, message.position, message.entry)

    def _run(self, plan: GroupPlan, stage: int, position: int, entry: Placed) -> None:
        """Do what a stage does, and pass the message on."""
        hops = len(plan.hops)
        if stage < hops:
            entry = self._stamp(plan.label, plan.hops[stage].atoms, entry)
        if stage >= hops - 1:
            self._keeping.log(plan.group).append(position, entry)
        following = stage + 1
        if following < hops:
            to = plan.hops[following].post.node
        elif following < hops - 1 + len(plan.holders):
            to = plan.holders[following - hops + 1].node
        else:
            self._distribute(plan.group, position, entry)
            return
        self._channels.send(to, plan.label, plan.group, following, position, entry)
        self._arm()

    def _stamp(self, label: int, atoms: tuple[AtomId, ...], entry: Placed) -> Placed:
        counters = self._counters.setdefault(label, {})
        stamps: Stamps = entry.stamps
        for atom in atoms:
            number = counters.get(atom, 0)
            counters[atom] = number + 1
            stamps += ((atom, number),)
        return Placed(label, stamps, entry.publisher, entry.life, entry.number, entry.payload)

    def _distribute(self, group: GroupId, position: int, entry: Placed) -> None:
        self._keeping.distributions[group].spread(position, entry)
        if not self._is_full(self._keeping.log(group)):
            self.env.send(entry.publisher, Receipt(group, entry.life, entry.number + 1))
        self._arm()

    # The end of an epoch

    def _on_seal(self, source: NodeId, message: Seal) -> None:
        """Take nothing more, and report."""
        if message.version > self._version or message.version < self._seen:
            return
        labels = frozenset(message.labels)
        self._open -= labels
        reports = [self._keeping.report(plan) for plan in self._plans.values() if plan.label in labels]
        for part in parts(reports):
            self.env.send(source, Sealed(message.change, self._post, message.labels, part))

    # Explanations

    def explain(self) -> Explanation:
        """What waits here for another node, or for a subscriber."""
        atoms = sum(
            len(hop.atoms) for plan in self._plans.values() for hop in plan.hops if hop.post == self._post
        )
        state: dict[str, str | int] = {
            "role": "sequencing node",
            "life": self._post.life,
            "plans known up to": self._version,
            "groups numbered by its atoms": atoms,
            "entries kept": sum(len(log.entries) for log in self._keeping.logs.values()),
        }
        waits = [
            Wait(f"{count} messages on their paths", f"an acknowledgement of node {node}", since, on=(node,))
            for node, count, since in self._channels.unacknowledged()
        ]
        for group, distribution in self._keeping.distributions.items():
            behind = distribution.silent(self._options.suspect_ns)
            if behind:
                names = ", ".join(map(str, behind))
                since = min(distribution.subscribers[node].heard for node in behind)
                waits.append(
                    Wait(f"the log of group {group}", f"subscribers {names}", since, on=tuple(behind))
                )
        sealed = sorted({p.label for p in self._plans.values() if self._post in p.posts()} - self._open)
        behind_of = f"the plans that follow epoch {sealed[0]}" if sealed else ""
        return Explanation(state, tuple(waits), behind_of)
