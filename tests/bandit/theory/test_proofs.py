"""Steps of docs/proofs.md, on cases small enough to go through all of them."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.bandit.arrays import FloatArray
from coaf.bandit.rates.rate import robbins_monro
from coaf.bandit.theory import bounds
from coaf.bandit.theory.bounds import Scale
from coaf.bandit.theory.eluder import beta_general, eluder_dimension

# --- (P2), (P6), (P19), (P22), (P23), (P42): every path of a small world ----------------------

# A round has one arm of mean 1/2, which takes 1/2 s or 3 s beyond the 1 s of seeing it. The least
# gaps at a rate between 1/6 and 1 are 1.5 Γ - 0.5 and Γ: their mean vanishes at 0.2.
WORLD = Scale(5.0, n_max=1, l_min=1.0, l_max=4.0)
LATENCIES, MEAN, STAR = ((1.0, 1.5), (1.0, 4.0)), 0.5, 0.2
DEPTH = 6


@dataclass(frozen=True)
class Path:
    """A run of COAF; arrays hold rounds 1 to K = k(T) + 1, `lost` the T Γ* - q(T) of the run."""

    least: FloatArray
    distance: FloatArray
    error: FloatArray
    failed: int  # the first round that is not optimistic; beyond the last, if none
    lost: float


def run(kinds: tuple[int, ...], coins: tuple[int, ...], *, xi: float = 0.6) -> Path:
    """The estimate begins optimistic and follows the coins, which are the noise, up and down."""
    rate, elapsed, clock, seen, earned = 0.05, 0.0, 0.0, 0.0, 0.0
    least, distance, error, failed = [], [], [], DEPTH + 1
    for j, (kind, coin) in enumerate(zip(kinds, coins, strict=True), start=1):
        skip, take = LATENCIES[kind]
        estimate = min(1.0, MEAN + 0.25 + 0.3 * seen)
        if estimate < MEAN:
            failed = min(failed, j)
        taken = take * rate - estimate < skip * rate
        least.append(min(skip * STAR, take * STAR - MEAN))
        distance.append(rate - STAR)
        error.append((estimate - MEAN) * taken)
        gap = min(skip * rate, take * rate - estimate)
        elapsed += min(skip, take)
        rate = robbins_monro(rate, gap, elapsed, xi, WORLD.rate_bound)
        clock += take if taken else skip
        seen += coin * taken
        if clock > WORLD.horizon:
            break
        earned += MEAN * taken
    lost = WORLD.horizon * STAR - earned
    return Path(np.array(least), np.array(distance), np.array(error), failed, lost)


@pytest.fixture(scope="module")
def paths() -> list[Path]:
    """All of them, and each as likely as another."""
    every = [
        run(kinds, coins)
        for kinds in itertools.product((0, 1), repeat=DEPTH)
        for coins in itertools.product((-1, 1), repeat=DEPTH)
    ]
    assert all(len(path.least) <= WORLD.counted("repaired").rounds == DEPTH for path in every)
    assert 0.1 < np.mean([path.failed <= len(path.least) for path in every]) < 0.9
    return every


def test_martingales_vanish_at_stopping_times(paths: list[Path]) -> None:
    drifts = [path.least * path.distance for path in paths]
    lasts = [len(path.least) for path in paths]
    stops = [min(last, path.failed - 1) for path, last in zip(paths, lasts, strict=True)]
    assert np.mean([path.least.sum() for path in paths]) == pytest.approx(0.0, abs=1e-12)
    for at in (lasts, stops):
        means = np.mean([drift[:k].sum() for drift, k in zip(drifts, at, strict=True)])
        assert means == pytest.approx(0.0, abs=1e-12)


def test_they_do_not_at_the_last_completed_round_nor_given_that_no_set_failed(
    paths: list[Path],
) -> None:
    assert abs(np.mean([path.least[:-1].sum() for path in paths])) > 0.01
    drifts = [path.least * path.distance for path in paths]
    assert abs(np.mean([drift[:-1].sum() for drift in drifts])) > 1e-3
    held = [path.failed > len(path.least) for path in paths]
    assert abs(np.mean([d.sum() for d, good in zip(drifts, held, strict=True) if good])) > 1e-3


def test_the_loss_is_bounded_by_distances_errors_and_failures(paths: list[Path]) -> None:
    right, after = 0.0, 0.0
    for path in paths:
        stop = min(len(path.least), path.failed - 1)
        right += WORLD.l_max * np.abs(path.distance[:stop]).sum() + path.error[:stop].sum()
        after += (len(path.least) - stop) * WORLD.l_max * WORLD.rate_bound
    loss = np.mean([path.lost for path in paths])
    chance = float(np.mean([path.failed <= len(path.least) for path in paths]))
    assert -WORLD.gap_bound <= loss <= (right + after) / len(paths) + WORLD.gap_bound
    assert after / len(paths) <= bounds.failure_term(WORLD, probability=chance)


@pytest.mark.parametrize("factor", [1.0, 4.0, 20.0])
def test_the_drift_pays_for_its_own_square(paths: list[Path], factor: float) -> None:
    bound = WORLD.gap_bound
    a = factor * WORLD.l_min / (4.0 * bound**2)
    powers = [
        -2.0 * a * path.least * path.distance - 2.0 * (a * bound * path.distance) ** 2
        for path in paths
    ]
    assert np.mean([math.exp(power.sum()) for power in powers]) <= 1.0
    # Without the square it is no supermartingale.
    bare = [(-2.0 * a * path.least * path.distance).sum() for path in paths]
    assert np.mean(np.exp(bare)) > 1.0


# --- (P25) to (P28): the ellipsoid after batches ----------------------------------------------

COINS = list(itertools.product((-1.0, 1.0), repeat=9))


def mixtures(coins: tuple[float, ...], ridge: float, size: float) -> list[tuple[float, float, int]]:
    """After each of three rounds: M̄, the squared length ‖Y‖² in the norm of V⁻¹, and the rows.

    What a round holds, two arms or three, depends on the noise before it.
    """
    V, Y, used, results = ridge * np.eye(2), np.zeros(2), 0, []
    for j in range(3):
        turn = 0.7 * j + (0.5 if Y.sum() > 0.0 else -0.9)
        count = 3 if Y[0] > 0.5 else 2
        X = np.array([[math.cos(turn + 0.1 * i), math.sin(turn + 0.1 * i)] for i in range(count)])
        noise = size * np.array(coins[used : used + count])
        used, V, Y = used + count, V + X.T @ X, Y + X.T @ noise
        squared = float(Y @ np.linalg.solve(V, Y))
        volume = float(np.linalg.slogdet(V)[1]) - 2.0 * math.log(ridge)
        results.append((math.exp(0.5 * (squared - volume)), squared, used))
    return results


@pytest.mark.parametrize("ridge", [0.3, 1.0, 5.0])
def test_the_mixture_is_a_supermartingale_from_round_to_round(ridge: float) -> None:
    runs = [mixtures(coins, ridge, 1.0) for coins in COINS]
    means = np.mean([[value for value, _, _ in run] for run in runs], axis=0)
    assert np.all(np.diff(means, prepend=1.0) <= 1e-12)
    # Noise larger than said breaks it.
    assert np.mean([mixtures(coins, ridge, 1.5)[-1][0] for coins in COINS]) > 1.0


@pytest.mark.parametrize("delta", [0.6, 0.3])
def test_beta_holds_the_truth_after_every_batch(delta: float) -> None:
    # θ* = 0, so the noise alone must stay within √β; the ridge is small, so that it comes near.
    def outside(squared: float, rows: int, part: float) -> bool:
        square = bounds.beta(rows, delta=delta, dim=2, regularization=0.3, norm_bound=0.0)
        return squared > part * square

    runs = [mixtures(coins, 0.3, 1.0) for coins in COINS]
    for run in runs:
        assert all(value >= 1 / delta or not outside(size, n, 1.0) for value, size, n in run)
    lost = [
        np.mean([any(outside(size, n, part) for _, size, n in run) for run in runs])
        for part in (1.0, 0.2)
    ]
    assert lost[0] <= delta < lost[1]


# --- (P35), (P36): from a cover to the best fit -----------------------------------------------


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    st.integers(2, 6),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.floats(0.0, 3.0),
    st.integers(0, 10**6),
)
def test_the_best_fit_is_as_near_as_its_cover_allows(
    functions: int, rows: int, alpha: float, noise: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = rng.uniform(-1.0, 1.0, (functions, rows))
    cover = np.clip(table + alpha * rng.choice([-1.0, 1.0], table.shape), -1.0, 1.0)
    truth, epsilon = table[0], noise * rng.standard_normal(rows)
    y = truth + epsilon
    fit = table[((table - y) ** 2).sum(axis=1).argmin()]
    # What (P33) bounds by 4σ² ln(N/δ), as it is in this run.
    short = 0.5 * ((cover - truth) ** 2).sum(axis=1)
    short += (epsilon**2).sum() - ((cover - y) ** 2).sum(axis=1)
    rounding = alpha * (2.0 + 2.0 * np.abs(epsilon)).sum()
    assert ((fit - truth) ** 2).sum() <= 2.0 * (short.max() + rounding) + 1e-9


# --- (P37) to (P39): widths over batches ------------------------------------------------------


def widths(table: FloatArray, batches: list[list[int]], beta: float) -> FloatArray:
    """The largest ψ(x) - ψ'(x) over pairs within 4β on the rows before the round."""
    one, two = map(np.ravel, np.meshgrid(np.arange(len(table)), np.arange(len(table))))
    apart = table[one] - table[two]
    far, found = np.zeros(len(apart)), np.zeros(0)
    for batch in batches:
        found = np.append(found, apart[far <= 4.0 * beta][:, batch].max(axis=0))
        far += (apart[:, batch] ** 2).sum(axis=1)
    return found


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.data(), st.sampled_from([0.0, 0.25, 0.6, 2.0]))
def test_wide_rows_are_counted_by_the_eluder_dimension(data: st.DataObject, beta: float) -> None:
    points = data.draw(st.integers(1, 4))
    value = st.integers(-2, 2)
    row = st.lists(value, min_size=points, max_size=points)
    table = np.array(data.draw(st.lists(row, min_size=2, max_size=5)), dtype=float)
    arm = st.integers(0, points - 1)
    batch = st.lists(arm, min_size=1, max_size=5)
    batches = data.draw(st.lists(batch, min_size=1, max_size=5))
    m, n_max = max(float(np.abs(table).max()), 0.5), max(map(len, batches))
    w = widths(table, batches, beta)
    B = 4.0 * beta + 4.0 * m**2 * (n_max - 1)
    for width in np.unique(w[w > 0.0]):
        epsilon = width * (1.0 - 1e-6)
        dims = eluder_dimension(table, epsilon=epsilon)
        assert (w > epsilon).sum() <= (B / epsilon**2 + 1.0) * dims * (1.0 + 1e-9)
    dims = eluder_dimension(table, epsilon=m / len(w))
    most = m**2 + dims * (4.0 * m**2 + B * (1.0 + math.log(len(w))))
    assert (w**2).sum() <= most
    # The rows counted singly, as the theorem has it, are no fewer.
    assert most <= m**2 + dims * (
        4.0 * m**2 + 4.0 * (beta + 4.0 * m**2 * n_max) * (1.0 + math.log(len(w)))
    )


def test_equal_arms_and_two_constants_attain_the_count() -> None:
    table, n = np.array([[1.0], [-1.0]]), 7
    w = widths(table, [[0] * n], 0.0)
    epsilon = 2.0 * (1.0 - 1e-9)
    dims = eluder_dimension(table, epsilon=epsilon)
    assert (w > epsilon).sum() == n
    assert (4.0 * (n - 1) / epsilon**2 + 1.0) * dims == pytest.approx(n)


# --- Theorem 4: the constants -----------------------------------------------------------------


def test_the_repaired_general_bound_is_the_one_in_the_docs() -> None:
    T, n, low, high, m, noise, xi = 5000.0, 7, 2.0, 9.0, 3.0, 0.5, 0.3
    delta, alpha, log_cover, dims = 0.001, 0.01, 3.0, 6
    N, r = T / low + 1, high / low
    s, G = N * n, m * n * (1 + r)
    tolerance = 8 * noise**2 * (log_cover + math.log(1 / delta))
    tolerance += 2 * alpha * s * (8 * m + noise * math.sqrt(8 * math.log(4 * s**2 / delta)))
    errors = m**2 + 4 * m**2 * dims
    errors += 4 * (tolerance + 4 * m**2 * n) * dims * (1 + math.log(s))
    U = N * r**2 * G**2 * (1 + math.log(N))
    expected = math.sqrt(U / xi + r**2 / (1 - xi) * N * n * errors) + math.sqrt(N * n * errors)
    expected += G + 2 * delta * N * n * m * r
    scale = Scale(T, n_max=n, l_min=low, l_max=high, mean_bound=m, noise=noise)
    found = bounds.general_bound(
        scale, xi=xi, delta=delta, alpha=alpha, log_covering=log_cover, eluder=dims
    )
    assert found == pytest.approx(expected)
    assert bounds.resolution(scale) == pytest.approx(m / s)
    assert tolerance == pytest.approx(
        beta_general(s, delta=delta, alpha=alpha, log_covering=log_cover, noise=noise, mean_bound=m)
    )
