"""Play policies over a recorded grid: one pass over its patches, in many random orders."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from coaf.bandit.arrays import FloatArray, number
from coaf.bandit.latency import Additive, Setup
from coaf.bandit.policies.baselines import TakeAll
from coaf.bandit.policies.coaf import COAF
from coaf.bandit.policies.policy import Policy
from coaf.bandit.policies.stepwise import Stepwise
from coaf.bandit.problem import Decision, Round
from coaf.cryoem.feedback import Delay, Feedback
from coaf.cryoem.grid import Shot
from coaf.cryoem.pilots.prediction import prediction_belief, prediction_features, typical_patches
from coaf.cryoem.recorded.recording import Recording, Times, read_recording
from coaf.cryoem.recorded.yardsticks import best_fixed_cut, calibrated, clairvoyant
from coaf.cryoem.timing import HOUR
from coaf.worlds.cluster import processes


class Pass(NamedTuple):
    """What one pass brought."""

    good: float
    exposed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Player:
    """A policy for recorded grids: what it sees of a patch, and how it is made."""

    features: Callable[[FloatArray, float], FloatArray]
    make: Callable[[float, Times], Policy]


def powers(predicted: FloatArray, cut: float) -> FloatArray:
    """1, u and u² of u = predicted/10 − 1, with a norm of at most 1 for predictions to 20 Å."""
    u = np.clip(predicted / 10.0 - 1.0, -1.0, 1.0)
    rows: FloatArray = np.column_stack([np.ones(len(u)), u, u * u]) / np.sqrt(3.0)
    return rows


def stepwise(cut: float, times: Times) -> Stepwise:
    """Hole by hole, from what simulated grids make one expect."""
    return Stepwise(prediction_belief(), expect=typical_patches(cut, Setup(*times)))


def paper(cut: float, times: Times) -> COAF:
    """Algorithm 1 as printed, its confidence set capped at the mean bound."""
    return COAF.paper(3, within="ellipsoid")


def tuned(cut: float, times: Times) -> COAF:
    """Algorithm 1 with a tenth of the printed radius."""
    return COAF.paper(3, within="ellipsoid", scale=0.1)


def take_all(cut: float, times: Times) -> TakeAll:
    """Every hole of every patch."""
    return TakeAll()


PLAYERS: dict[str, Player] = {
    "coaf": Player(prediction_features, stepwise),
    "coaf-paper": Player(powers, paper),
    "coaf-tuned": Player(powers, tuned),
    "take-all": Player(powers, take_all),
}


def play(
    recording: Recording,
    player: Player,
    order: Sequence[int],
    *,
    cut: float,
    times: Times = Times(),  # noqa: B008
    delay: Delay = "none",
    seed: int = 0,
) -> Pass:
    """One pass over the patches in the given order."""
    policy, queue = player.make(cut, times), Feedback(delay, seed=seed)
    good = recording.good(cut)
    clock, total, exposed = 0.0, 0.0, 0
    taken: dict[str, tuple[Decision, int, float]] = {}
    waits: list[float] = []

    def deliver() -> None:
        for done in queue.ready(clock):
            decision, arm, reward = taken.pop(done.shot.hole)
            policy.learn(decision, [arm], [reward])
            waits.append(done.arrived_at - done.exposed_at)
        if waits and isinstance(policy, Stepwise):
            policy.lag = ceil(float(np.median(waits[-50:])) / times.expose - 1e-9)

    for patch in order:
        rest = np.arange(recording.starts[patch], recording.starts[patch + 1])
        features = player.features(recording.predicted[rest], cut)
        labels = np.array([[recording.squares[patch], recording.patches[patch]]])
        clock += times.survey
        deliver()
        entry: Decision | None = None
        while len(rest):
            latency = Setup(*times) if entry is None else Additive(0.0, times.expose)
            groups = labels.repeat(len(rest), axis=0)
            decision = policy.decide(Round(features, latency, groups=groups, follows=entry))
            policy.commit(decision)
            if not decision.chosen.any():
                break
            clock += times.move if entry is None else 0.0
            entry = entry or decision
            for arm in np.flatnonzero(decision.chosen):
                clock += times.expose
                hole, reward = recording.names[rest[arm]], float(good[rest[arm]])
                taken[hole] = (decision, int(arm), reward)
                queue.submit(Shot(hole), clock)
                total, exposed = total + reward, exposed + 1
            if not isinstance(policy, Stepwise):
                break
            deliver()
            rest, features = rest[~decision.chosen], features[~decision.chosen]
    return Pass(total, exposed, clock)


def play_orders(
    recording: Recording,
    player: str | Player,
    orders: Sequence[int],
    *,
    seed: int,
    **settings: Any,
) -> list[Pass]:
    """A pass for each of the numbered random orders."""
    found = PLAYERS[player] if isinstance(player, str) else player
    passes = []
    for number_ in orders:
        rng = np.random.default_rng([seed, number_])
        order = rng.permutation(len(recording.patches)).tolist()
        passes.append(play(recording, found, order, seed=number_, **settings))
    return passes


def summarise(passes: Sequence[Pass]) -> dict[str, float]:
    """Means over orders; `good_per_hour` is the mean of good/hours, with its standard error."""
    good, exposed, seconds = np.array(passes, dtype=np.float64).T
    rates = good / seconds * HOUR
    spread = float(rates.std(ddof=1)) if len(rates) > 1 else 0.0
    return {
        "good_per_hour": float(rates.mean()),
        "standard_error": spread / len(rates) ** 0.5,
        "good": float(good.mean()),
        "exposed": float(exposed.mean()),
        "hours": float(seconds.mean()) / HOUR,
    }


def replay(
    folder: Path | None = None,
    *,
    holes: Path | None = None,
    truth: Path | None = None,
    good_below: float = 3.8,
    policies: Sequence[str] = ("coaf", "take-all"),
    orders: int = 100,
    seed: int = 0,
    survey: float = Times().survey,
    move: float = Times().move,
    expose: float = Times().expose,
    feedback_delay: float | Literal["measured"] = 0.0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Play policies over a recorded grid, in parallel; the numbers do not depend on `workers`.

    Returns
    -------
    dict
        `policies` by name (`good_per_hour`, its `standard_error`, `good`, `exposed`, `hours`),
        `yardsticks` in good per hour, and `data`: what was read.
    """
    for name in policies:
        if name not in PLAYERS:
            raise ValueError(f"there is no policy {name!r}; there are {', '.join(PLAYERS)}")
    count = int(number("orders", orders, low=1))
    cut = number("good_below", good_below, above=0.0)
    times = Times(
        number("survey", survey, above=0.0),
        number("move", move, low=0.0),
        number("expose", expose, above=0.0),
    )
    delay: Delay = (
        "measured"
        if feedback_delay == "measured"
        else number("feedback_delay", feedback_delay, low=0.0)
    )
    recording = read_recording(folder, holes=holes, truth=truth)
    settings = {"cut": cut, "times": times, "delay": delay, "seed": int(seed)}
    found = _parallel(recording, list(policies), count, settings, workers, progress)
    good, squares = recording.good(cut), len(set(recording.squares))
    return {
        "policies": {name: summarise(passes) for name, passes in found.items()},
        "yardsticks": {
            "clairvoyant": HOUR * clairvoyant(good, recording.starts, times),
            "calibrated": HOUR * calibrated(recording.predicted, good, recording.starts, times),
            "best_fixed_cut": HOUR
            * best_fixed_cut(recording.predicted, good, recording.starts, times),
        },
        "data": {
            "holes": len(recording.names),
            "patches": len(recording.patches),
            "squares": squares,
            "good": int(good.sum()),
            "without_fit": recording.failed,
            "good_below": cut,
            "orders": count,
            "files": [str(path) for path in recording.files],
        },
    }


def _parallel(
    recording: Recording,
    policies: list[str],
    orders: int,
    settings: dict[str, Any],
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> dict[str, list[Pass]]:
    """The passes of each policy; tasks are single orders, so that a progress bar moves."""
    tasks = [(name, number_) for number_ in range(orders) for name in policies]
    found: dict[str, list[Pass]] = {name: [] for name in policies}
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    one = partial(_one, recording, settings)

    def gather(passes: Any) -> None:
        for done, ((name, _), result) in enumerate(zip(tasks, passes, strict=True), start=1):
            found[name].append(result)
            if progress is not None:
                progress(done, len(tasks))

    if workers == 1:
        gather(map(one, tasks))
    else:
        with processes(workers, fresh=progress is not None) as pool:  # a bar has a thread
            gather(pool.map(one, tasks, chunksize=max(1, min(8, len(tasks) // (4 * workers)))))
    return found


def _one(recording: Recording, settings: dict[str, Any], task: tuple[str, int]) -> Pass:
    return play_orders(recording, task[0], [task[1]], **settings)[0]
