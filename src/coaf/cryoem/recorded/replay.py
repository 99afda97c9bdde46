"""Play pilots over a recorded grid: patch by patch in some order, or free to choose."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from coaf.bandit.arrays import number
from coaf.cryoem.feedback import Delay
from coaf.cryoem.pilots.catalogue import GRID_RULES, PILOTS, clairvoyant, pilot_for
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.recorded.environment import environment_of
from coaf.cryoem.recorded.microscope import RecordedMicroscope
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.yardsticks import best_fixed_cut, calibrated, clairvoyant_rate, free_limit
from coaf.cryoem.reports import replay as report
from coaf.cryoem.reward import GoodBelow, Reward, known_as
from coaf.cryoem.session.collect import Driver
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.events import Exposed, Settings
from coaf.cryoem.session.situation import Make
from coaf.cryoem.timing import HOUR
from coaf.worlds.cluster import tasks_on
from coaf.worlds.progress import Progress

Order = Literal["random", "recorded", "free"]

# The clairvoyant is a yardstick here, and there is no cassette.
PLAYED = tuple(name for name in PILOTS if name not in ("clairvoyant", *GRID_RULES))


class Pass(NamedTuple):
    """What one pass brought.

    Attributes
    ----------
    good, exposed, seconds
        The reward, the holes taken, and the time it all took.
    gains
        (second, reward) of each hole, in the order of taking.
    """

    good: float
    exposed: int
    seconds: float
    gains: tuple[tuple[float, float], ...] = ()


def play(
    recording: Recording,
    pilot: str | Make,
    order: Sequence[int] | None,
    *,
    reward: Reward,
    seconds: Seconds | None = None,
    delay: Delay = "none",
    seed: int = 0,
    hours: float | None = None,
    ahead: bool = False,
    knowledge: Knowledge | None = None,
) -> Pass:
    """One pass over a recording by the engine of a session.

    Parameters
    ----------
    recording
        What was collected.
    pilot
        Its name, or what makes it.
    order
        Of the patches: each is shown once, and can be had then or never. None: free to choose
        squares and patches, and to return to them.
    reward
        What a score is worth.
    seconds
        What things take; those of the recording unless given.
    delay, seed
        When scores arrive, as in `Feedback`.
    hours
        The time there is; without any, all patches are shown, or all that is wanted is taken.
    ahead
        Whether who is free to choose knows all holes from the start, and opens no square.
    knowledge
        What an earlier session taught, for COAF to begin with.
    """
    microscope = RecordedMicroscope(
        recording, seconds=seconds, delay=delay, seed=seed, ahead=ahead and order is None
    )
    settings = Settings(
        pilot=pilot if isinstance(pilot, str) else "",
        reward=str(reward),
        hours=hours,
        seed=seed,
        columns=microscope.feature_names,
        timing=microscope.timing,
        knowledge=knowledge,
    )
    rewards = known_as(reward)
    make = partial(pilot_for, rewards=rewards) if isinstance(pilot, str) else pilot
    engine = Engine(make=make, rewards=rewards)
    driver = Driver(microscope, engine)
    driver.start(settings)
    if order is None:
        driver.run(ahead=[microscope.peek(s.name) for s in microscope.squares() if ahead])
    for patch in order or ():
        timing = engine.timing
        if engine.left().seconds < timing.survey + timing.enter + timing.hole():
            break
        driver.offer(microscope.offer(patch))
        while driver.step().do not in ("leave", "stop"):
            pass
    worth = microscope.worth(reward)
    taken = [event for event in engine.events if isinstance(event, Exposed)]
    gains = tuple((event.time, worth[event.hole]) for event in taken)
    return Pass(sum(gain for _, gain in gains), len(taken), driver.time, gains)


def orders_of(recording: Recording, order: Order, seed: int, number_: int) -> list[int] | None:
    """The patches in the numbered order of a kind."""
    if order == "free":
        return None
    if order == "recorded":
        return recorded_order(recording)
    rng = np.random.default_rng([seed, number_])
    return [int(patch) for patch in rng.permutation(len(recording.patches))]


def recorded_order(recording: Recording) -> list[int]:
    """Patches as they were first exposed; as they are listed where times are not known."""
    first = np.full(len(recording.patches), np.inf)
    np.fmin.at(first, recording.patch[recording.shots.hole], recording.shots.when)
    return [int(patch) for patch in np.argsort(first, kind="stable")]


def play_orders(
    recording: Recording,
    pilot: str | Make,
    numbers: Iterable[int],
    *,
    seed: int,
    order: Order = "random",
    **settings: Any,
) -> list[Pass]:
    """A pass for each of the numbered orders."""
    held = recording.playable()
    return [play(held, pilot, orders_of(held, order, seed, k), seed=k, **settings) for k in numbers]


def summarise(passes: Sequence[Pass]) -> dict[str, float | None]:
    """Means over orders; `good_per_hour` is the mean of good/hours, with its standard error.

    With a single order there is no error to be told.
    """
    good, exposed, seconds = (np.array([one[k] for one in passes]) for k in range(3))
    rates = good / seconds * HOUR
    error = float(rates.std(ddof=1)) / len(rates) ** 0.5 if len(rates) > 1 else None
    return {
        "good_per_hour": float(rates.mean()),
        "standard_error": error,
        "good": float(good.mean()),
        "exposed": float(exposed.mean()),
        "hours": float(seconds.mean()) / HOUR,
    }


def replay(
    folder: Path | None = None,
    *,
    holes: Path | None = None,
    truth: Path | None = None,
    environment: str | None = None,
    good_below: float | None = None,
    reward: Reward | None = None,
    columns: Sequence[str] | None = None,
    policies: Sequence[str] = ("coaf", "take-all"),
    order: Order | None = None,
    orders: int = 100,
    hours: float | None = None,
    seed: int = 0,
    survey: float | None = None,
    move: float | None = None,
    expose: float | None = None,
    feedback_delay: float | Literal["measured"] = 0.0,
    knowledge: Knowledge | None = None,
    workers: int | None = None,
    dask: str | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Play pilots over a recorded grid; the numbers do not depend on where that is done.

    Parameters
    ----------
    folder, holes, truth
        What `read_recording` reads.
    environment
        A published setting (`ENVIRONMENTS`): what things take, how long it lasts and what is good,
        unless given. Pilots are free to choose, and know all holes from the start.
    good_below, reward
        Good is a CTF fit below so many Å, 3.8 unless given; or any reward.
    columns
        Which of the columns known before exposure pilots see; all unless given.
    policies
        Names of pilots.
    order
        "random": patches are shown once each, in `orders` random orders; "recorded": as they were
        collected; "free": pilots choose where to go, and may return. Random unless given.
    orders, seed
        How many random orders, and where they begin; of the others there is one, and more only if
        scores come at random.
    hours
        The time there is; without any, until all was shown, or nothing more is wanted.
    survey, move, expose
        Seconds; those of the recording unless given.
    feedback_delay
        Seconds until a score is there, or "measured".
    knowledge
        What an earlier session taught, for COAF to begin with.
    workers, dask
        Processes, all cores unless given; or the address of a Dask cluster.
    out
        A folder for a report with a figure of good against time.
    progress
        Called with passes done, and of how many.

    Returns
    -------
    dict
        `policies` by name (`good_per_hour`, its `standard_error`, `good`, `exposed`, `hours`),
        `yardsticks` in good per hour, and `data`: what was read, and by which of the columns that
        pilots see a yardstick goes (`yardstick_columns`): the best one for it.
    """
    for name in policies:
        if name not in PLAYED:
            raise ValueError(f"there is no pilot {name!r}; there are {', '.join(PLAYED)}")
    preset = environment_of(environment)
    if preset is not None and order not in (None, "free"):
        raise ValueError(f"in {environment} pilots are free to choose; order is {order!r}")
    if order is None:
        order = "random" if preset is None else "free"
    if order not in get_args(Order):
        raise ValueError(f"order is {order!r}; there are {', '.join(get_args(Order))}")
    if good_below is None:
        good_below = 3.8 if preset is None else preset.good_below
    if hours is None and preset is not None:
        hours = preset.hours
    count = int(number("orders", orders, low=1))
    worth = GoodBelow(number("good_below", good_below, above=0.0)) if reward is None else reward
    delay: Delay = (
        "measured"
        if feedback_delay == "measured"
        else number("feedback_delay", feedback_delay, low=0.0)
    )
    if order != "random" and delay != "measured":
        count = 1  # nothing is drawn, so all would be the same
    read = read_recording(folder, holes=holes, truth=truth)
    recording = read if columns is None else read.seen_by(columns)
    if knowledge is not None:
        knowledge.check(recording.columns, str(worth))
    given = {"survey": survey, "move": move, "expose": expose}
    times = {} if preset is None else dict(preset.seconds)
    times |= {name: value for name, value in given.items() if value is not None}
    seconds = recording.seconds._replace(**times)
    settings: dict[str, Any] = {
        "reward": worth,
        "seconds": seconds.checked(),
        "delay": delay,
        "hours": None if hours is None else number("hours", hours, above=0.0),
        "seed": int(seed),
        "order": order,
        "ahead": preset is not None,
        "knowledge": knowledge,
    }
    tasks = [(name, k) for k in range(count) for name in policies]
    passes: dict[str, list[Pass]] = {name: [] for name in policies}
    played = tasks_on(_one, (recording, settings), tasks, workers=workers, dask=dask, told=progress)
    for (name, _), one in played:
        passes[name].append(one)
    yardsticks, columns_of = _yardsticks(recording, worth, settings)
    about = _about(read, recording, worth, count, order, hours)
    result: dict[str, Any] = {
        "policies": {name: summarise(found) for name, found in passes.items()},
        "yardsticks": yardsticks,
        "data": about | {"environment": environment, "yardstick_columns": columns_of},
    }
    if out is not None:
        result["files"] = [str(path) for path in report.write(out, result, passes)]
    return result


def _one(shared: tuple[Recording, dict[str, Any]], name: str, number_: int) -> Pass:
    recording, settings = shared
    return play_orders(recording, name, [number_], **settings)[0]


def _yardsticks(
    recording: Recording, reward: Reward, settings: dict[str, Any]
) -> tuple[dict[str, float], dict[str, str]]:
    """What could have been had: in one pass, or free to choose in the time there is.

    And the column that each goes by, of those that do. Who may skip what is poor, and has no end
    to fill, collects as quickly as the best hole: that bounds nothing.
    """
    seconds, hours = settings["seconds"], settings["hours"]
    if settings["ahead"]:
        return {"clairvoyant": free_limit(recording, reward, seconds, hours) / hours}, {}
    if settings["order"] == "free":
        if hours is None:
            return {}, {}
        grid = RecordedMicroscope(recording, seconds=seconds)
        return {"clairvoyant": clairvoyant(grid, hours=hours, reward=reward).limit / hours}, {}
    found = {"clairvoyant": HOUR * clairvoyant_rate(recording, reward, seconds)}
    best = _of_columns(recording, reward, seconds)
    found |= {name: HOUR * value for name, (_, value) in best.items()}
    return found, {name: column for name, (column, _) in best.items()}


def _of_columns(
    recording: Recording, reward: Reward, seconds: Seconds
) -> dict[str, tuple[str, float]]:
    """Yardsticks that go by a column that pilots see: by the best one for each, and which."""
    rules = {"calibrated": calibrated, "best_fixed_cut": best_fixed_cut}
    found = {
        name: {column: rule(recording, reward, column, seconds) for column in recording.columns}
        for name, rule in rules.items()
    }
    return {
        name: max(values.items(), key=lambda one: one[1])
        for name, values in found.items()
        if values
    }


def _about(
    read: Recording,
    recording: Recording,
    reward: Reward,
    orders: int,
    order: Order,
    hours: float | None,
) -> dict[str, Any]:
    held = recording.playable()
    return {
        "name": read.name,
        "holes": len(held.holes),
        "not_played": len(read.holes) - len(held.holes),
        "patches": len(held.patches),
        "squares": len(set(held.squares)),
        "columns": list(held.columns),
        "good": float(held.worth(reward).rewards.sum()),
        "without_fit": held.failed,
        "reward": str(reward),
        "order": order,
        "orders": orders,
        "hours": hours,
        "files": [str(path) for path in read.files],
    }
