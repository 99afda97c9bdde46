"""The queue of scores: in order, never early, with the measured delays, outages and losses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaf.cryoem.feedback import Feedback
from coaf.cryoem.grid import Shot


def run(seed: int, every: float, shots: int) -> tuple[Feedback, dict[int, float]]:
    """The delay of each shot that came, taken at even intervals."""
    queue = Feedback("measured", seed=seed)
    for k in range(shots):
        queue.submit(Shot("a", k), k * every)
    return queue, {d.shot.number: d.arrived_at - d.exposed_at for d in queue.ready(1e9)}


def test_delays_and_losses_are_the_measured_ones() -> None:
    delays, lost, shots = [], 0, 0
    for seed in range(60):
        queue, came = run(seed, 91.0, 950)
        delays += list(came.values())
        lost, shots = lost + queue.lost, shots + 950
    # Of the recorded grid: median 45 s, p90 about 80 s, 12 % without a score.
    assert np.median(delays) == pytest.approx(45.0, rel=0.1)
    assert np.quantile(delays, 0.9) == pytest.approx(80.0, rel=0.15)
    assert lost / shots == pytest.approx(0.12, abs=0.03)


def test_losses_come_in_runs_and_outages_delay_for_hours() -> None:
    runs, late = 0, 0
    for seed in range(20):
        _, came = run(seed, 91.0, 950)
        there = np.isin(np.arange(950), list(came))
        edges = np.flatnonzero(np.diff(np.concatenate([[1], there.astype(int), [1]])))
        runs = max(runs, int((edges[1::2] - edges[::2]).max()))
        late += sum(delay > 3600.0 for delay in came.values())
    assert runs > 50
    assert late > 50


def test_the_queue_keeps_up_with_a_fast_microscope() -> None:
    _, came = run(3, 6.66, 3000)
    assert np.median(list(came.values())) < 60.0


def test_a_number_delays_by_it_and_none_not_at_all() -> None:
    for delay, expected in (("none", 7.0), (45.0, 52.0), (0.0, 7.0)):
        queue = Feedback(delay)  # type: ignore[arg-type]
        queue.submit(Shot("a"), 7.0)
        assert queue.ready(expected - 1e-9) == []
        assert queue.waiting == 1
        [done] = queue.ready(expected)
        assert (done.exposed_at, done.arrived_at, queue.waiting) == (7.0, expected, 0)


@given(
    seed=st.integers(0, 5),
    gaps=st.lists(st.floats(0.0, 4000.0), min_size=1, max_size=60),
    asks=st.lists(st.integers(0, 59), max_size=10),
)
def test_asking_often_gives_the_same_as_asking_once(
    seed: int, gaps: list[float], asks: list[int]
) -> None:
    one, other = Feedback("measured", seed=seed), Feedback("measured", seed=seed)
    pieces = []
    for k, time in enumerate(np.cumsum(gaps).tolist()):
        one.submit(Shot("a", k), time)
        other.submit(Shot("a", k), time)
        if k in asks:
            new = other.ready(time)
            assert all(d.exposed_at <= d.arrived_at <= time for d in new)
            pieces += new
    pieces += other.ready(1e9)
    assert sorted(pieces) == one.ready(1e9)
    assert one.lost + len(pieces) == len(gaps)


@pytest.mark.parametrize("delay", ["sometimes", -1.0, float("nan")])
def test_other_delays_are_refused(delay: float) -> None:
    with pytest.raises(ValueError, match="delay"):
        Feedback(delay)


def test_shots_out_of_order_are_refused() -> None:
    queue = Feedback()
    queue.submit(Shot("a"), 10.0)
    with pytest.raises(ValueError, match="9 s"):
        queue.submit(Shot("b"), 9.0)
