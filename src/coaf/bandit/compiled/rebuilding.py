"""Prize-collecting paths: ruin a part of the path, build it anew, keep what is better."""

import math

import numpy as np

from coaf.bandit.arrays import IntArray
from coaf.bandit.compiled.paths import PROGRESS, grain, shorten
from coaf.bandit.compiled.prizes import (
    LOSS,
    SECONDS,
    Prizes,
    grow,
    insert,
    place,
    prune,
    remove,
    shed,
    sums,
    wait,
)
from coaf.bandit.compiled.simd import compiled

# How many points a ruin takes out at most.
_RUIN = 12

# Moving a node takes as long as weighing so many places.
_NODE = 20

# How much worse than the best, in proportion, what is kept may be.
_LENIENT = 0.003

# After so many ruins in vain, and so many for each point, there is little hope.
_VAIN, _VAIN_EACH = 2000, 50


@compiled
def climb(prizes: Prizes, path: IntArray, at: IntArray, size: int, work: int) -> tuple[int, int]:
    """Shorten, prune and grow until that no longer helps; the new size, and places weighed."""
    nodes, near = at.shape[0], prizes.near
    queue, waiting = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_)
    ready, listed = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_)
    weighed, loss, total, slack = 0, math.inf, np.empty(2), grain(prizes.table)
    while weighed <= work:
        last, many = 0, 0
        for i in range(size):
            last = wait(queue, waiting, last, path[i])
        _, looked = shorten(path, at, size, prizes.table, near, queue, waiting, last, slack)
        weighed += _NODE * looked
        size, done = prune(prizes, path, at, size, work - weighed)
        weighed += done
        for j in range(nodes - 2):
            listed[j] = at[j] < 0
            if listed[j]:
                ready[many] = j
                many += 1
        sums(prizes, path, size, total)
        size, last, done = grow(
            prizes, path, at, size, ready, listed, many, False, queue, waiting, 0, total
        )
        _, looked = shorten(path, at, size, prizes.table, near, queue, waiting, last, slack)
        weighed += done + _NODE * looked
        sums(prizes, path, size, total)
        if total[LOSS] >= loss - PROGRESS * abs(loss):
            break
        loss = total[LOSS]
    return size, weighed


@compiled
def rebuild(prizes: Prizes, path: IntArray, at: IntArray, size: int, work: int) -> int:
    """Ruin and build anew until that seems vain or the work is done; the new size.

    In turn a stretch of the path is taken out, or a point from outside is put in whatever it costs;
    then points around it are added as long as that pays. What is hardly worse than the best is gone
    on from, and the best is what the path ends as.
    """
    nodes, near, table = at.shape[0], prizes.near, prizes.table
    queue, waiting = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_)
    ready, listed = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_)
    kept, kept_size, now, total = path.copy(), size, np.empty(2), np.empty(2)
    best, best_size = path.copy(), size
    sums(prizes, path, size, now)
    least = now[LOSS]
    slack, span = grain(table), abs(least)
    for j in range(nodes - 2):
        span += abs(prizes.scores[j])
    weighed, turn, seed, vain = 0, 0, 1, 0
    while weighed < work and vain < _VAIN + _VAIN_EACH * nodes:
        turn += 1
        vain += 1
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        many, last = 0, 0
        total[LOSS], total[SECONDS] = now[LOSS], now[SECONDS]
        if turn % 2 == 0 and size > 2:
            first = 1 + (seed >> 8) % (size - 2)
            seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
            end = min(first + (seed >> 8) % _RUIN, size - 2)
            before, after = path[first - 1], path[end + 1]
            last = wait(queue, waiting, last, before)
            last = wait(queue, waiting, last, after)
            way = table[path[end], after] - table[before, after]
            for i in range(first, end + 1):
                j = path[i]
                way += table[path[i - 1], j]
                total[LOSS] += prizes.scores[j]
                total[SECONDS] -= prizes.each[j]
                ready[many] = j
                listed[j] = True
                many += 1
            total[LOSS] -= prizes.price * way
            total[SECONDS] -= way / prizes.speed
            remove(path, at, size, first, end)
            size -= end + 1 - first
        else:
            pick = (seed >> 8) % (nodes - 2)
            weighed += 1
            if at[pick] >= 0:
                continue
            way, where = place(path, at, size, table, near, pick)
            insert(path, at, size, pick, where)
            total[LOSS] += prizes.price * way - prizes.scores[pick]
            total[SECONDS] += way / prizes.speed + prizes.each[pick]
            size, done = shed(prizes, path, at, size + 1, pick, total)
            weighed += done
            for i in range(at[pick] - 1, at[pick] + 2):
                last = wait(queue, waiting, last, path[i])
            ready[0] = pick
            many = 1
        for i in range(many):
            for k in range(near.shape[1]):
                j = near[ready[i], k]
                if j < nodes - 2 and at[j] < 0 and not listed[j]:
                    listed[j] = True
                    ready[many] = j
                    many += 1
        by_time = prizes.spare < math.inf and turn % 4 < 2
        size, last, done = grow(
            prizes, path, at, size, ready, listed, many, by_time, queue, waiting, last, total
        )
        saved, looked = shorten(path, at, size, table, near, queue, waiting, last, slack)
        weighed += done + size // 2 + _NODE * looked + 100
        limit = least + _LENIENT * abs(least)
        good = total[LOSS] - prizes.price * saved < limit - PROGRESS * span
        if good:
            sums(prizes, path, size, total)
            good = total[LOSS] < limit and total[SECONDS] <= prizes.spare
        if good:
            now[LOSS], now[SECONDS], kept_size = total[LOSS], total[SECONDS], size
            for i in range(size):
                kept[i] = path[i]
            if now[LOSS] < least - PROGRESS * span:
                least, best_size, vain = now[LOSS], size, 0
                for i in range(size):
                    best[i] = path[i]
        else:
            for i in range(size):
                at[path[i]] = -1
            size = kept_size
            for i in range(size):
                path[i] = kept[i]
                at[path[i]] = i
    for i in range(size):
        at[path[i]] = -1
    for i in range(best_size):
        path[i] = best[i]
        at[path[i]] = i
    return best_size
