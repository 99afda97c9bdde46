"""Partial subsets, step by step: a dynamic programme that keeps only the most promising ones.

Each step makes new partial subsets of the old. One that takes as long as another with the same
counts, or longer, and is worth no more, is dropped; so is one that even the bound on what it may
still become does not lift above the best subset known. If then more than `width` are left, those of
the lowest bounds go too, and the highest bound among them says what that may have cost.
"""

import math

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray
from coaf.bandit.compiled.partial import beaten, ceiling, move, thin
from coaf.bandit.compiled.simd import compiled
from coaf.bandit.selection.steps import ARM, CLOSE, OPEN, Steps

SECONDS, VALUE, TOLLED, COUNT = 0, 1, 2, 3


@compiled
def beam(
    steps: Steps,
    gain: FloatArray,
    forgone: FloatArray,
    tolls: FloatArray,
    rates: FloatArray,
    ahead: FloatArray,
    fees: FloatArray,
    fields: IntArray,
    start: float,
    room: float,
    fewest: int,
    most: int,
    insist: int,
    bar: float,
    width: int,
    work: int,
) -> tuple[float, IntArray, float, int]:
    """The best subset worth more than `bar` that `width` partial subsets at a time lead to.

    Parameters
    ----------
    steps
        The round.
    gain, forgone : (T,)
        What taking a step adds to the bound, and what not taking an arm that could be takes off.
    tolls
        Of the groups.
    rates, ahead, fees
        What the steps ahead can add at most; `ceiling` explains them.
    fields : (groups + 1 + gates, 3)
        Where a key counts each limited group, then all arms, then says which gates are open: word,
        shift, and mask, which is 0 if arms need not be counted.
    start
        The bound at the beginning, without what is ahead.
    room
        The seconds that may be used.
    fewest, most
        How many arms must and may be taken.
    insist
        1 if an arm must be taken inside every node opened, else 0.
    width, work
        How many partial subsets to keep after a step, and to look at in all.

    Returns
    -------
    value, arms
        What the subset is worth, or -inf if none was found or the work did not suffice; its arms.
    dropped
        No subset that was lost on the way is worth more than this.
    done
        The work.
    """
    kind, group = steps.kind, steps.group
    T, groups = kind.shape[0], steps.limit.shape[0]
    words = 1
    for f in range(fields.shape[0]):
        words = max(words, fields[f, 0])
    counting = fields[groups, 2] > 0
    keyed = counting or insist > 0 or fields.shape[0] > 1
    slots = 4
    while keyed and slots < 4 * width + 8:
        slots *= 2
    stamps, tops = np.full(slots, -1), np.empty(slots)
    owners = np.empty((slots, words + 1), np.int64)

    # Partial subsets by rising seconds: lists of those that passed by each open node, and on top
    # those inside. Tags are the last entry of the trail, then the key; its first bit says that a
    # node was opened and nothing taken in it yet.
    states, tags = np.empty((8, 4)), np.empty((8, words + 1), np.int64)
    fresh, labels = np.empty((2 * width + 2, 4)), np.empty((2 * width + 2, words + 1), np.int64)
    marks, takes = np.empty(2 * width + 2), np.empty(2 * width + 2, np.bool_)
    keep = np.empty(2 * width + 2, np.bool_)
    begins = np.zeros(T + 1, np.int64)
    depth, end = 0, 1
    states[0, SECONDS], states[0, VALUE], states[0, TOLLED], states[0, COUNT] = 0, 0, start, 0
    at = np.zeros(fees.shape[0], np.int64)
    for w in range(words + 1):
        tags[0, w] = 0
    tags[0, 0] = -1
    trail, trail_end = np.empty((64, 2), np.int32), 0
    dropped, done, arms = -math.inf, 0, 0
    for t in range(T):
        arms += kind[t] == ARM

    for t in range(T):
        what, g, begin = kind[t], group[t], begins[depth]
        more, worth, tolled_worth = steps.time[t], steps.score[t], gain[t]
        gate = groups + 1 + steps.gate[t] if steps.gate[t] >= 0 else -1
        a, a_end, b, b_end = begin, end, begin, end  # those left as they are, those changed
        if what == ARM:
            arms -= 1
        elif what == CLOSE:
            a, a_end = begins[depth - 1], begin
        else:
            a = a_end
        size, best = 0, -math.inf
        while a < a_end or b < b_end:
            done += words
            change = a == a_end
            if not change and b < b_end:
                later = states[b, SECONDS] + more
                change = later < states[a, SECONDS] or (
                    later == states[a, SECONDS] and states[b, VALUE] + worth > states[a, VALUE]
                )
            row = b if change else a
            seconds, value = states[row, SECONDS], states[row, VALUE]
            tolled, count = states[row, TOLLED], states[row, COUNT]
            for w in range(words + 1):
                labels[size, w] = tags[row, w]
            takes[size] = False
            reach = gate < 0 or (labels[size, fields[gate, 0]] >> fields[gate, 1]) & 1 == 1
            if not change:
                a += 1
                if what == ARM and reach:
                    tolled -= forgone[t]
            else:
                b += 1
                seconds += more
                value += worth
                tolled += tolled_worth
                if seconds > room:
                    continue
                if what == ARM:
                    if not reach:
                        continue
                    takes[size] = True
                    count += 1.0
                    labels[size, 1] &= ~1
                    if g >= 0:
                        w, place = fields[g, 0], fields[g, 1]
                        if (labels[size, w] >> place) & fields[g, 2] >= steps.limit[g]:
                            continue
                        labels[size, w] += 1 << place
                    if counting:
                        if count > most:
                            continue
                        labels[size, fields[groups, 0]] += 1 << fields[groups, 1]
                elif what == OPEN:
                    labels[size, 1] |= insist
                    if gate >= 0:
                        labels[size, fields[gate, 0]] |= 1 << fields[gate, 1]
                elif what == CLOSE:
                    if labels[size, 1] & 1:
                        continue
                else:
                    w, place = fields[g, 0], fields[g, 1]
                    taken = (labels[size, w] >> place) & fields[g, 2]
                    labels[size, w] -= taken << place
                    tolled -= tolls[g] * (steps.limit[g] - taken)
            if count + arms < fewest:
                continue
            if not keyed:
                if value <= best:
                    continue
                best = value
            unsure = labels[size, 1] & 1
            x = ceiling(rates, ahead, fees, t + 1, unsure, room - seconds, count, at)
            if tolled + x <= bar:
                continue
            if keyed and beaten(labels, size, value, stamps, t, tops, owners):
                continue
            fresh[size, SECONDS], fresh[size, VALUE] = seconds, value
            fresh[size, TOLLED], fresh[size, COUNT] = tolled, count
            marks[size] = tolled + x
            size += 1
        if what == OPEN:
            end, after = begin, steps.jump[t] + 1
            for i in range(begin, b_end):
                left, count = room - states[i, SECONDS], states[i, COUNT]
                x = ceiling(rates, ahead, fees, after, tags[i, 1] & 1, left, count, at)
                if states[i, TOLLED] + x > bar:
                    move(states, tags, i, states, tags, end)
                    end += 1
            depth += 1
            begins[depth] = end
        elif what == CLOSE:
            depth -= 1
            end = begins[depth]
        else:
            end = begin
        for i in range(size):
            keep[i] = True
        if size > width:
            dropped = max(dropped, thin(marks, size, width, keep))
        if end + size > states.shape[0]:
            more_states = np.empty((2 * (end + size), 4))
            more_tags = np.empty((2 * (end + size), words + 1), np.int64)
            for i in range(end):
                move(states, tags, i, more_states, more_tags, i)
            states, tags = more_states, more_tags
        if trail_end + size > trail.shape[0]:
            longer = np.empty((2 * (trail_end + size), 2), np.int32)
            for i in range(trail_end):
                longer[i, 0], longer[i, 1] = trail[i, 0], trail[i, 1]
            trail = longer
        for i in range(size):
            if keep[i]:
                move(fresh, labels, i, states, tags, end)
                if takes[i]:
                    trail[trail_end, 0], trail[trail_end, 1] = labels[i, 0], steps.part[t]
                    tags[end, 0] = trail_end
                    trail_end += 1
                end += 1
        if done > work:
            return -math.inf, np.empty(0, np.int64), math.inf, done

    found, last = -math.inf, -1
    for i in range(end):
        if states[i, VALUE] > found:
            found, last = states[i, VALUE], tags[i, 0]
    total, entry = 0, last
    while entry >= 0:
        total += 1
        entry = trail[entry, 0]
    chosen = np.empty(total, np.int64)
    while last >= 0:
        total -= 1
        chosen[total] = trail[last, 1]
        last = trail[last, 0]
    return found, chosen, dropped, done
