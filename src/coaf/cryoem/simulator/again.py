"""The same simulated grid once more, for another policy; and what its exposures truly gave."""

from collections.abc import Iterable
from concurrent.futures import Executor

from coaf.cryoem.microscope import Score
from coaf.cryoem.reward import Reward
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.simulator.survey import Opened
from coaf.cryoem.simulator.times import REGIMES


def again(simulator: Simulator) -> Simulator:
    """The same grid under the same microscope, its clock at 0.

    Squares are drawn once for all of them, by whoever opens them first.

    Examples
    --------
    >>> first = Simulator(seed=3, squares=2, pixels=False)
    >>> name = first.squares()[0].name
    >>> again(first).survey(name) is first.survey(name)
    True
    """
    regime = next(name for name, held in REGIMES.items() if held is simulator._times.regime)
    same = Simulator(
        simulator.seed,
        regime=regime,  # type: ignore[arg-type]
        squares=len(simulator.squares()),
        foil=simulator.foil,
        shots=simulator.shots,
        pixels=simulator.pixels,
        prediction=simulator.prediction,
        delay=simulator.feedback.delay,
        faults=simulator.faults,
        world=simulator.world,
    )
    same._opened, same._qualities = simulator._opened, simulator._qualities
    same._squares = simulator.squares()
    return same


def draw_ahead(simulator: Simulator, executor: Executor) -> Iterable[str]:
    """Draw all squares in other processes; yields their names as they are done."""
    fresh = again(simulator)
    fresh._opened, fresh._qualities = {}, {}  # or all of it would be sent with each
    names = [s.name for s in simulator.squares() if s.name not in simulator._opened]
    for name, opened in zip(names, executor.map(_open, [fresh] * len(names), names), strict=True):
        simulator._opened[name] = opened
        yield name


def _open(simulator: Simulator, square: str) -> Opened:
    return simulator._open(square)


def true_rewards(simulator: Simulator, reward: Reward) -> dict[str, float]:
    """By hole that was exposed: what its shots were worth, whether scored or not.

    A fit that failed is worth 0: it is no micrograph that anybody can use.
    """
    return {hole: _worth(shots, reward) for hole, shots in simulator._taken.items()}


def first_visit(simulator: Simulator, reward: Reward, hole: str) -> float:
    """What a hole is worth on a first visit without a fault."""
    shots = [
        Score(hole, k, simulator.truth(hole, k), simulator.particles(hole, k), 0.0, 0.0)
        for k in range(simulator.shots)
    ]
    return _worth(shots, reward)


def _worth(shots: list[Score], reward: Reward) -> float:
    return sum(reward(score) or 0.0 for score in shots)
