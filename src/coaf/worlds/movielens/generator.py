"""Made-up ratings of the shape of MovieLens 1M, for where the real ones cannot be had.

Users and films have heavy-tailed numbers of ratings, popular films are better on average, and a
rating is a latent score (what the film is worth, how kind the user is, eight tastes of decreasing
strength, and chance) cut where MovieLens 1M has its shares of 1 to 5. The constants were fitted to
the published figures of 1M and to the 100K set; a test holds the second comparison.
"""

import itertools
import math

import numpy as np

from coaf.bandit.arrays import BoolArray, FloatArray, IntArray
from coaf.worlds.movielens.ratings import Ratings

# How often MovieLens 1M holds the ratings 1 to 5.
STARS = (56174, 107557, 261197, 348971, 226310)

# Gamma shapes of the numbers of ratings by user (past the least) and by film.
_ACTIVITY, _POPULARITY = 0.58, 0.54
_LEAST = 20  # ratings by a user; MovieLens left out who gave fewer
_MOST = 0.65  # of all films rated by one user, or of all users by whom a film is rated

# Shares of the variance of the latent score; the rest is chance.
_FILM, _USER, _TASTE = 0.21, 0.15, 0.12
_TASTES, _DECAY = 8, 0.75
_FAME = 0.65  # correlation of a film's worth with the logarithm of how often it is rated

_ROWS = 256  # users at a time, so that the memory needed stays small
_ROUNDS = 30


def generate(
    users: int = 6040, films: int = 3706, ratings: int = 1_000_209, *, seed: int = 0
) -> Ratings:
    """Exactly so many ratings by so many users of so many films; every film is rated.

    Everybody rates at least 20 films; where there are too few ratings for that, half the mean.

    Examples
    --------
    >>> made = generate(users=50, films=40, ratings=1200, seed=1)
    >>> made.shape, len(made.values)
    ((50, 40), 1200)
    >>> made.source
    'generated, not real: 1,200 ratings of 40 films by 50 users, seed 1'
    """
    if min(users, films) < 1 or not max(users, films) <= ratings <= users * films:
        raise ValueError(
            f"{ratings} ratings by {users} users of {films} films; there must be at least one for "
            "each user and each film, and at most one for each pair"
        )
    rng = np.random.default_rng(seed)
    density = ratings / (users * films)
    share = max(_MOST, (1.0 + density) / 2.0)
    mean = ratings // users
    least = _LEAST if mean >= _LEAST else max(1, mean // 2)
    activity = _counts(
        rng.gamma(_ACTIVITY, size=users), ratings, low=least, high=math.ceil(share * films)
    )
    popularity = _counts(
        rng.gamma(_POPULARITY, size=films), ratings, low=1, high=math.ceil(share * users)
    )
    who, what = _pairs(rng, activity, popularity)
    score = _scores(rng, who, what, popularity)
    source = f"{ratings:,} ratings of {films:,} films by {users:,} users, seed {seed}"
    return Ratings(
        who.astype(np.int32),
        what.astype(np.int32),
        _stars(score),
        np.arange(1, users + 1),
        np.arange(1, films + 1),
        f"generated, not real: {source}",
    )


def _counts(weights: FloatArray, total: int, *, low: int, high: int) -> IntArray:
    """Whole numbers from low to high with the given sum, above low in proportion to weights."""
    weights = weights / weights.mean() + 1e-9  # or a weight of 0 could never rise to `high`
    below, above = 0.0, 1.0
    while np.minimum(low + above * weights, high).sum() < total:
        above *= 2.0
    for _ in range(80):
        middle = 0.5 * (below + above)
        if np.minimum(low + middle * weights, high).sum() < total:
            below = middle
        else:
            above = middle
    exact = np.minimum(low + above * weights, high)
    whole = np.floor(exact)
    missing = total - int(whole.sum())
    # Largest remainders go up; a remainder below `high` leaves room for one more.
    rise = np.argsort(whole - exact, kind="stable")[:missing]
    whole[rise] += 1.0
    return whole.astype(np.int64)


def _pairs(
    rng: np.random.Generator, activity: IntArray, popularity: IntArray
) -> tuple[IntArray, IntArray]:
    """Who rates what: each user as often as said, each film as nearly so as can be arranged.

    Films race to each user and the first to arrive are rated, which draws without replacement. The
    speeds would give each film its number if all users were alike; `_settle` does the rest.
    """
    users, films = len(activity), len(popularity)
    speed = -np.log1p(-np.minimum(popularity / users, 0.999))
    seen = np.zeros((users, films), dtype=np.bool_)
    for start in range(0, users, _ROWS):
        block = seen[start : start + _ROWS]
        arrival = rng.standard_exponential(block.shape, dtype=np.float32) / speed.astype(np.float32)
        for row, times, count in zip(block, arrival, activity[start:], strict=False):
            row[np.argpartition(times, count - 1)[:count]] = True
    _settle(rng, seen, popularity)
    who, what = np.nonzero(seen)
    return who, what


def _settle(rng: np.random.Generator, seen: BoolArray, popularity: IntArray) -> None:
    """Let users swap a film rated too often for one rated too seldom that they had not rated.

    The two kinds of numbers need not fit each other exactly, so some difference may remain; but a
    film that nobody rated can be taken by anyone, so none of those is left.
    """
    films = len(popularity)
    for attempt in itertools.count():
        counts = seen.sum(axis=0)
        excess = counts - popularity
        if not excess.any() or (attempt >= _ROUNDS and counts.all()):
            return
        crowded = np.flatnonzero(excess > 0)
        raters = np.nonzero(seen[:, crowded].T)[1]
        first = np.cumsum(counts[crowded]) - counts[crowded]
        leaving = np.repeat(np.arange(len(crowded)), excess[crowded])
        places = first[leaving] + rng.integers(0, counts[crowded][leaving])
        places, at = np.unique(places, return_index=True)
        who, old = raters[places], crowded[leaving[at]]
        new = rng.permutation(np.repeat(np.arange(films), np.maximum(-excess, 0)))[: len(who)]
        fresh = np.unique(who * films + new, return_index=True)[1]
        fresh = fresh[~seen[who[fresh], new[fresh]]]
        seen[who[fresh], old[fresh]] = False
        seen[who[fresh], new[fresh]] = True


def _scores(
    rng: np.random.Generator, who: IntArray, what: IntArray, popularity: IntArray
) -> FloatArray:
    """How much each user liked each film they rated, on a scale of its own."""
    users, films = int(who.max()) + 1, len(popularity)
    worth = math.sqrt(1.0 - _FAME**2) * rng.standard_normal(films)
    worth += _FAME * _standard(np.log(popularity))
    strength = np.sqrt(_DECAY ** np.arange(_TASTES))
    tastes = rng.standard_normal((users, _TASTES)) * strength
    traits = rng.standard_normal((films, _TASTES))
    liking = np.zeros(len(who))
    for taste, trait in zip(tastes.T, traits.T, strict=True):
        liking += taste[who] * trait[what]
    parts = (
        (_FILM, worth[what]),
        (_USER, rng.standard_normal(users)[who]),
        (_TASTE, liking),
        (1.0 - _FILM - _USER - _TASTE, rng.standard_normal(len(who))),
    )
    score = np.zeros(len(who))
    for share, part in parts:
        score += math.sqrt(share) * _standard(part)
    return score


def _standard(values: FloatArray) -> FloatArray:
    centred: FloatArray = values - values.mean()
    spread = float(centred.std())
    return centred / spread if spread > 0.0 else centred


def _stars(score: FloatArray) -> FloatArray:
    """Ratings 1 to 5 in the order of the scores, each as often as in MovieLens 1M."""
    cuts = np.rint(np.cumsum(STARS) / sum(STARS) * len(score)).astype(np.int64)
    result = np.empty(len(score))
    result[np.argsort(score, kind="stable")] = np.repeat(
        np.arange(1.0, 6.0), np.diff(cuts, prepend=0)
    )
    return result
