"""The compiled rule by which a single reward has bounded influence on a learner without units.

The extremes are the EXTREMES rewards of largest magnitude. None counts for more than BEYOND times
the root mean square of the other rewards that are not 0; of m rewards that are not 0 only the
largest m/JUDGED are judged. This is a function of all rows learned, whatever their order; it has
no unit, and leaves alone what is merely rare, as successes and counts.

Extremes stand at the end of the learner: a row x̃ each, then a row of rewards, of what they count
for, of their weights (0 where there is none), and of marks.
"""

import math

from coaf.bandit.compiled.linear import (
    ESTIMATE,
    HEAD,
    LOSS,
    NUMBERS,
    PART,
    PICKED,
    REWARD,
    SMALL,
    STATED,
    THETA,
    WAITING,
    fit,
    fold,
)
from coaf.bandit.compiled.simd import Block, columns, compiled, fma, load, splat, store

EXTREMES, BEYOND, JUDGED = 8, 10.0, 10.0

# Columns of NUMBERS: Σ y² and the number of rewards that are neither 0 nor extreme, and the
# least magnitude of extremes, once there are as many as there may be.
SQUARES, NONZERO, LEAST = 5, 6, 7
# Columns of STATED, as `judge` last found them: the largest magnitude of extremes, how many
# count for less than they are, and Σ y² of what they count for.
GREATEST, LIMITED, COUNTING = 5, 6, 7
REST = 7  # row from 2dp on: Σ x̃ y without the extremes
REWARDS, COUNTED, WEIGHTS, MARKS = range(EXTREMES, EXTREMES + 4)  # rows from the extremes on
TAIL = EXTREMES + 4  # rows of them all


@compiled
def extremes_at(M: Block, D: int) -> int:
    """The first row of the extremes."""
    row: int = 2 * columns(M) + HEAD + (3 * PART if D > SMALL else 0)
    return row


@compiled
def limit(M: Block, D: int) -> float:
    """The most that a reward counts for, up or down."""
    dp, e = columns(M), extremes_at(M, D)
    squares, count = M[2 * dp + NUMBERS, SQUARES], M[2 * dp + NUMBERS, NONZERO]
    largest, all_ = 0.0, count
    for i in range(EXTREMES):
        if M[e + WEIGHTS, i] > 0.0:
            largest = max(largest, abs(M[e + REWARDS, i]))
            all_ += M[e + WEIGHTS, i]
    if count > 0.0 and largest * largest * count <= BEYOND * BEYOND * squares:
        return math.inf  # the usual case: even beside the rest alone nothing stands out
    judged = min(float(EXTREMES), math.floor(all_ / JUDGED))
    for i in range(EXTREMES):
        weight, size, rank = M[e + WEIGHTS, i], abs(M[e + REWARDS, i]), 0.0
        for k in range(EXTREMES):
            other = abs(M[e + REWARDS, k])
            if M[e + WEIGHTS, k] > 0.0 and (other > size or (other == size and k < i)):
                rank += 1.0
        if weight > 0.0 and rank >= judged:
            squares += weight * size * size
            count += weight
    if judged < 1.0 or count <= 0.0:
        return math.inf
    return BEYOND * math.sqrt(squares / count)


@compiled
def count_rest(M: Block, reward: float, weight: float) -> None:
    """A reward that is no extreme."""
    dp = columns(M)
    M[2 * dp + NUMBERS, SQUARES] += weight * reward * reward
    M[2 * dp + NUMBERS, NONZERO] += weight


@compiled
def enlist(M: Block, D: int, X: Block, j: int, S: Block) -> bool:
    """Sort the reward of pick j among the extremes or the rest; row ESTIMATE of S says which.

    Whether one that counted for less than it was gave way.
    """
    dp, e = columns(M), extremes_at(M, D)
    reward, a = S[dp + REWARD, j], int(S[dp + PICKED, j])
    S[dp + ESTIMATE, j] = 1.0
    if abs(reward) <= M[2 * dp + NUMBERS, LEAST]:
        if reward != 0.0:
            count_rest(M, reward, 1.0)
        return False
    slot, least, limited = _smallest(M, e), 0.0, False
    if M[e + WEIGHTS, slot] > 0.0:
        limited = M[e + MARKS, slot] == 0.0 and M[e + COUNTED, slot] != M[e + REWARDS, slot]
        for i in range(D):
            M[2 * dp + REST, i] += M[e + WEIGHTS, slot] * M[e + REWARDS, slot] * M[e + slot, i]
        count_rest(M, M[e + REWARDS, slot], M[e + WEIGHTS, slot])
    for i in range(D):
        M[e + slot, i] = X[i, a]
    M[e + REWARDS, slot] = M[e + COUNTED, slot] = reward
    M[e + WEIGHTS, slot], M[e + MARKS, slot] = 1.0, j + 1.0
    S[dp + ESTIMATE, j] = 0.0
    slot = _smallest(M, e)
    if M[e + WEIGHTS, slot] > 0.0:
        least = abs(M[e + REWARDS, slot])
    M[2 * dp + NUMBERS, LEAST] = least
    return limited


@compiled
def _smallest(M: Block, e: int) -> int:
    """The slot that is free, or else that of the smallest extreme."""
    slot, least = 0, math.inf
    for i in range(EXTREMES):
        size = abs(M[e + REWARDS, i]) if M[e + WEIGHTS, i] > 0.0 else -1.0
        if size < least:
            slot, least = i, size
    return slot


@compiled
def add_rest(M: Block, Q: Block, first: int, count: int, S: Block) -> None:
    """Σ x̃ y over the picks that are no extremes, whose rows stand in Q from row `first`."""
    dp = columns(M)
    for j in range(count):
        if S[dp + ESTIMATE, j] > 0.0:
            y, c = splat(S[dp + REWARD, j]), 0
            while c < dp:
                total = load(M, 2 * dp + REST, c)
                store(M, 2 * dp + REST, c, fma(y, load(Q, first + j, c), total))
                c += 8


@compiled
def nothing_stands_out(M: Block) -> bool:
    """Whether `judge` would change nothing, as long as the extremes are those it last saw."""
    dp = columns(M)
    squares, count = M[2 * dp + NUMBERS, SQUARES], M[2 * dp + NUMBERS, NONZERO]
    largest, limited = M[2 * dp + STATED, GREATEST], M[2 * dp + STATED, LIMITED]
    return bool(limited == 0.0 and largest * largest * count <= BEYOND * BEYOND * squares)


@compiled
def judge(M: Block, D: int, S: Block) -> bool:
    """Let extremes count for what they may; whether that changed for one learned before.

    Those with a mark are about to be learned, and S gets what they count as.
    """
    dp, e = columns(M), extremes_at(M, D)
    most, changed = limit(M, D), False
    largest, limited, total = 0.0, 0.0, 0.0
    for i in range(EXTREMES):
        if M[e + WEIGHTS, i] > 0.0:
            reward = M[e + REWARDS, i]
            counted = min(max(reward, -most), most)
            mark = int(M[e + MARKS, i])
            if mark > 0:
                S[dp + REWARD, mark - 1] = counted
            else:
                changed |= counted != M[e + COUNTED, i]
            M[e + COUNTED, i], M[e + MARKS, i] = counted, 0.0
            largest = max(largest, abs(reward))
            limited += 1.0 if counted != reward else 0.0
            total += M[e + WEIGHTS, i] * counted * counted
    M[2 * dp + STATED, GREATEST], M[2 * dp + STATED, LIMITED] = largest, limited
    M[2 * dp + STATED, COUNTING] = total
    return changed


@compiled
def sum_of_squares(M: Block) -> float:
    """Σ y², of rewards as they count, after `judge`."""
    dp = columns(M)
    return float(M[2 * dp + NUMBERS, SQUARES] + M[2 * dp + STATED, COUNTING])


@compiled
def recount(M: Block, Q: Block, D: int) -> None:
    """θ̄ and the loss once extremes count for something else.

    Σ x̃ y is added up afresh, so that nothing stays of what a huge reward once counted for.
    """
    dp, e = columns(M), extremes_at(M, D)
    if M[2 * dp + NUMBERS, WAITING] > 0.0:
        fold(M, Q, D)
    for k in range(D):
        total = M[2 * dp + REST, k]
        for i in range(EXTREMES):
            total += M[e + WEIGHTS, i] * M[e + COUNTED, i] * M[e + i, k]
        M[2 * dp, k] = total
    fit(M, D)
    loss = sum_of_squares(M)
    for k in range(D):
        loss -= M[2 * dp, k] * M[2 * dp + THETA, k]
    M[2 * dp + NUMBERS, LOSS] = max(loss, 0.0)


@compiled
def any_limited(M: Block, D: int) -> bool:
    """Whether a reward counts for less than it is."""
    e, found = extremes_at(M, D), False
    for i in range(EXTREMES):
        found |= M[e + WEIGHTS, i] > 0.0 and M[e + REWARDS, i] != M[e + COUNTED, i]
    return found


@compiled
def take_back(M: Block, D: int, X: Block, reward: float) -> bool:
    """Strike the extreme that is arm 0 of X with this reward; whether there was one."""
    e = extremes_at(M, D)
    for i in range(EXTREMES):
        same = M[e + WEIGHTS, i] > 0.0 and M[e + REWARDS, i] == reward
        for k in range(D):
            same = same and M[e + i, k] == X[k, 0]
        if same:
            M[e + WEIGHTS, i] -= 1.0
            if M[e + WEIGHTS, i] <= 0.0:
                M[e + WEIGHTS, i] = M[e + REWARDS, i] = M[e + COUNTED, i] = 0.0
                M[2 * columns(M) + 2, LEAST] = 0.0
            return True
    return False
