"""Cyclon as arrays: each step of `components.sampling.cyclon` once more, compiled, for all processes.

A row of the arrays is a slot, in which one process lives after another. Messages under way are in lists, one
for each tick to come, in the order in which they were sent.

Only what is called from elsewhere is kept in Numba's cache.
"""

import numpy as np
from numba import njit

from ordercast.components.sampling.cyclon import ANSWERS, CONTACTS, OFFERS, WAITS
from ordercast.components.sampling.messages import AGE_MAX
from ordercast.components.sampling.sampler import TARGETS
from ordercast.engines.epto.cyclon_state import (
    ANSWER,
    FREE,
    IGNORED,
    LOST,
    NOBODY,
    PURGED,
    REQUEST,
    SENT,
    Mail,
    Nodes,
    Rules,
)
from ordercast.engines.epto.draws import choose, draw, stream
from ordercast.engines.epto.network import latency_of
from ordercast.engines.epto.timeline import process_seed
from ordercast.engines.epto.types import Numbers, Offsets

REQUEST_LOSS = 105
ANSWER_LOSS = 106
"""The streams of a process's seed that say what is lost of its messages."""


@njit(nogil=True)
def _find(nodes: Numbers, size: int, node: int) -> int:
    """The place of a node, or NOBODY."""
    for place in range(size):
        if nodes[place] == node:
            return place
    return NOBODY


@njit(nogil=True)
def _begin(rules: Rules, nodes: Nodes, slot: int, now: int) -> None:
    """`on_start` of the process in a slot; its contacts are known."""
    seed = process_seed(rules.seed, nodes.process[slot])
    nodes.seed[slot] = seed
    nodes.rounds[slot] = 0
    nodes.shuffles[slot] = 0
    nodes.answers[slot] = 0
    nodes.asked_number[slot, :] = NOBODY
    _return_to_contacts(nodes, slot)
    wait = draw(stream(seed, WAITS), 0, 0) % np.uint64(rules.period)
    nodes.due[slot] = now + np.int64(wait)


@njit(nogil=True)
def _meet(rules: Rules, nodes: Nodes, slot: int, places: Numbers) -> None:
    """A process that joins gets to know some others that are there now."""
    seed = process_seed(rules.seed, nodes.process[slot])
    others = nodes.process.shape[0] - 1
    found = choose(stream(seed, CONTACTS), 0, nodes.contacts.shape[1], others, places)
    nodes.contacts[slot, :] = NOBODY
    for index in range(found):
        other = places[index] + (1 if places[index] >= slot else 0)
        nodes.contacts[slot, index] = nodes.process[other]


@njit(nogil=True)
def _return_to_contacts(nodes: Nodes, slot: int) -> None:
    size = 0
    most = min(nodes.contacts.shape[1], nodes.known.shape[1])
    while size < most and nodes.contacts[slot, size] != NOBODY:
        nodes.known[slot, size] = nodes.contacts[slot, size]
        nodes.ages[slot, size] = 0
        size += 1
    nodes.size[slot] = size


@njit(nogil=True)
def _shuffle(rules: Rules, nodes: Nodes, mail: Mail, slot: int, now: int, places: Numbers) -> None:
    """Rule 1, and the wait for the next time."""
    seed = nodes.seed[slot]
    number = nodes.shuffles[slot]
    nodes.shuffles[slot] = number + 1
    least = rules.period - rules.jitter
    more = draw(stream(seed, WAITS), number + 1, 0) % np.uint64(2 * rules.jitter + 1)
    nodes.due[slot] = now + least + np.int64(more)
    asked = number % rules.patience
    if nodes.asked_number[slot, asked] != NOBODY:
        mail.totals[PURGED] += 1
        nodes.asked_number[slot, asked] = NOBODY
    if nodes.size[slot] == 0:
        _return_to_contacts(nodes, slot)
    if nodes.size[slot] == 0:
        return
    node = _take_oldest(nodes, slot)
    found = choose(stream(seed, OFFERS), number, rules.length - 1, nodes.size[slot], places)
    nodes.asked_number[slot, asked] = number
    nodes.asked_node[slot, asked] = node
    nodes.asked_count[slot, asked] = found
    for index in range(found):
        nodes.asked_sent[slot, asked, index] = nodes.known[slot, places[index]]
    lost = bool(draw(stream(seed, REQUEST_LOSS), number, 0) < rules.loss)
    _send(rules, nodes, mail, REQUEST, slot, node, number, lost, now, places, found)


@njit(nogil=True)
def _take_oldest(nodes: Nodes, slot: int) -> int:
    """All become older, and the oldest leaves the view."""
    size = nodes.size[slot] - 1
    view = nodes.known[slot]
    ages = nodes.ages[slot]
    oldest = 0
    for place in range(size + 1):
        if ages[place] < AGE_MAX:
            ages[place] += 1
        if ages[place] > ages[oldest]:
            oldest = place
    node = view[oldest]
    for place in range(oldest, size):
        view[place] = view[place + 1]
        ages[place] = ages[place + 1]
    nodes.size[slot] = size
    return int(node)


@njit(nogil=True)
def _send(
    rules: Rules,
    nodes: Nodes,
    mail: Mail,
    kind: int,
    slot: int,
    target: int,
    number: int,
    lost: bool,
    now: int,
    places: Numbers,
    count: int,
) -> None:
    """Put a message with the entries at these places into the list of the tick in which it arrives."""
    mail.totals[SENT] += 1
    # Whom the process of a slot knows may be an earlier one of that slot, to which there is no way.
    latency = latency_of(rules.matrix, rules.values, rules.latency_seed, slot, rules.slot[target])
    if lost or latency < 1:
        mail.totals[LOST] += 1
        return
    message = mail.totals[FREE]
    mail.totals[FREE] = mail.next[message]
    mail.next[message] = NOBODY
    mail.kind[message] = kind
    mail.source[message] = nodes.process[slot]
    mail.target[message] = target
    mail.number[message] = number
    mail.carried[message] = count
    for index in range(count):
        mail.nodes[message, index] = nodes.known[slot, places[index]]
        mail.ages[message, index] = nodes.ages[slot, places[index]]
    tick = (now + latency) % mail.first.shape[0]
    if mail.first[tick] == NOBODY:
        mail.first[tick] = message
    else:
        mail.next[mail.last[tick]] = message
    mail.last[tick] = message


@njit(nogil=True)
def _arrive(rules: Rules, nodes: Nodes, mail: Mail, now: int, places: Numbers, sent: Numbers) -> None:
    """All that arrives in a tick."""
    tick = now % mail.first.shape[0]
    message = mail.first[tick]
    mail.first[tick] = NOBODY
    while message != NOBODY:
        slot = rules.slot[mail.target[message]]
        if nodes.process[slot] == mail.target[message]:
            if mail.kind[message] == REQUEST:
                _answer(rules, nodes, mail, slot, message, now, places, sent)
            else:
                _accept(rules, nodes, mail, slot, message)
        following = mail.next[message]
        mail.next[message] = mail.totals[FREE]
        mail.totals[FREE] = message
        message = following


@njit(nogil=True)
def _answer(
    rules: Rules,
    nodes: Nodes,
    mail: Mail,
    slot: int,
    message: int,
    now: int,
    places: Numbers,
    sent: Numbers,
) -> None:
    """Rule 2, and rule 3 for the receiver."""
    seed = nodes.seed[slot]
    source = mail.source[message]
    size = nodes.size[slot]
    asker = _find(nodes.known[slot], size, source)
    others = size if asker == NOBODY else size - 1
    number = nodes.answers[slot]
    nodes.answers[slot] = number + 1
    found = choose(stream(seed, ANSWERS), number, rules.length, others, places)
    for index in range(found):
        if asker != NOBODY and places[index] >= asker:
            places[index] += 1
        sent[index] = nodes.known[slot, places[index]]
    lost = bool(draw(stream(seed, ANSWER_LOSS), number, 0) < rules.loss)
    _send(rules, nodes, mail, ANSWER, slot, source, mail.number[message], lost, now, places, found)
    _merge(rules, nodes, mail, slot, message, source, sent, found)


@njit(nogil=True)
def _accept(rules: Rules, nodes: Nodes, mail: Mail, slot: int, message: int) -> None:
    """Rule 3 for the asker."""
    number = mail.number[message]
    asked = number % rules.patience
    right = nodes.asked_node[slot, asked] == mail.source[message]
    if nodes.asked_number[slot, asked] != number or not right:
        mail.totals[IGNORED] += 1
        return
    nodes.asked_number[slot, asked] = NOBODY
    sent = nodes.asked_sent[slot, asked]
    _merge(rules, nodes, mail, slot, message, NOBODY, sent, nodes.asked_count[slot, asked])


@njit(nogil=True)
def _merge(
    rules: Rules,
    nodes: Nodes,
    mail: Mail,
    slot: int,
    message: int,
    asker: int,
    sent: Numbers,
    sent_count: int,
) -> None:
    """Rule 3, in one of its two forms; an asker is the first entry, of age 0."""
    view = nodes.known[slot]
    ages = nodes.ages[slot]
    came = mail.nodes[message]
    count = mail.carried[message]
    size = nodes.size[slot]
    next_sent = 0
    for index in range(-1 if asker != NOBODY else 0, count):
        node = came[index] if index >= 0 else asker
        age = mail.ages[message, index] if index >= 0 else 0
        place = _find(view, size, node)
        if place != NOBODY:
            ages[place] = age if rules.over_oldest else min(ages[place], age)
            continue
        if size < rules.view_size:
            place = size
            size += 1
        elif rules.over_oldest:
            place = int(np.argmax(ages[:size]))
        while place == NOBODY and next_sent < sent_count:
            gone = sent[next_sent]
            next_sent += 1
            if gone != asker and _find(came, count, gone) == NOBODY:
                place = _find(view, size, gone)
        if place != NOBODY:
            view[place] = node
            ages[place] = age
    nodes.size[slot] = size


@njit(nogil=True)
def _sample(nodes: Nodes, slot: int, chosen: Numbers) -> None:
    """Whom the process in a slot sends to in its next round; NOBODY where it knows no more."""
    nodes.rounds[slot] += 1
    seed = stream(nodes.seed[slot], TARGETS)
    found = choose(seed, nodes.rounds[slot], chosen.shape[0], nodes.size[slot], chosen)
    for index in range(found):
        chosen[index] = nodes.known[slot, chosen[index]]
    patience = nodes.asked_number.shape[1]
    number = nodes.shuffles[slot] - 1
    oldest = max(0, number - patience + 1)
    while found < chosen.shape[0] and number >= oldest:
        asked = number % patience
        node = nodes.asked_node[slot, asked]
        due = nodes.asked_number[slot, asked] == number
        outside = due and _find(nodes.known[slot], nodes.size[slot], node) == NOBODY
        if outside and _find(chosen, found, node) == NOBODY:
            chosen[found] = node
            found += 1
        number -= 1
    chosen[found:] = NOBODY


@njit(cache=True, nogil=True)
def begin_all(rules: Rules, nodes: Nodes, drawn: bool) -> None:
    """The first processes begin, all at once; their contacts are `drawn` from all, or known."""
    places = np.empty(nodes.contacts.shape[1], np.int32)
    for slot in range(nodes.process.shape[0]):
        if drawn:
            _meet(rules, nodes, slot, places)
        _begin(rules, nodes, slot, 0)


@njit(cache=True, nogil=True)
def ticks(
    rules: Rules,
    nodes: Nodes,
    mail: Mail,
    by_tick: Offsets,
    slots: Numbers,
    leavers: Numbers,
    round_ticks: int,
    warmup: int,
    start: int,
    stop: int,
    targets: Numbers,
) -> None:
    """All ticks from `start` up to but not `stop`, counted from the begin of the warm-up."""
    places = np.empty(max(rules.length, nodes.contacts.shape[1]), np.int32)
    sent = np.empty(rules.length, np.int32)
    for now in range(start, stop):
        tick = now - warmup
        step = tick // round_ticks - 1
        if tick % round_ticks == 0 and 0 <= step < leavers.shape[0]:
            first = nodes.process.shape[0] + step * leavers.shape[1]
            for place in range(leavers.shape[1]):
                nodes.process[leavers[step, place]] = first + place
            for place in range(leavers.shape[1]):
                _meet(rules, nodes, leavers[step, place], places)
                _begin(rules, nodes, leavers[step, place], now)
        _arrive(rules, nodes, mail, now, places, sent)
        for slot in range(nodes.process.shape[0]):
            if nodes.due[slot] == now:
                _shuffle(rules, nodes, mail, slot, now, places)
        if tick >= 0 and targets.shape[0] > 0:
            for turn in range(by_tick[tick], by_tick[tick + 1]):
                _sample(nodes, slots[turn], targets[turn])
