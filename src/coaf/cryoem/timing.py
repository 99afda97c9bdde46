"""How long things take: opening a square, going to a patch, taking a shot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np

from coaf.bandit.arrays import FloatArray, IntArray, number
from coaf.bandit.latency import Setup
from coaf.bandit.state import entry, seal, unseal
from coaf.cryoem.grid import Square

HOUR = 3600.0  # seconds

LEVELS = ("stage", "height", "image", "move", "focus", "expose", "shot")
SWITCHES = ("to_square", "to_tile", "to_grid")  # from the inside out
LOADING = ("load", "atlas")
_LEARNED = (*LEVELS, *SWITCHES, *LOADING)
# What spends time and says nothing of how long the next move takes.
MAINTENANCE = ("dewar", "filter", "dark", "emitter")


@overload
def hole_seconds(expose: float, shot: float, shots: int) -> float: ...
@overload
def hole_seconds(expose: float, shot: float, shots: IntArray) -> FloatArray: ...
def hole_seconds(expose: float, shot: float, shots: Any) -> Any:
    """To take all shots of a hole: the first, and each further one."""
    return expose + (shots - 1) * shot


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, on three levels: square, patch and shot; and between what squares lie in.

    Parameters
    ----------
    stage, height, image
        To open a square: drive to it, find its eucentric height, take its image. Paid once.
    move, focus
        To enter a patch: move the stage, and focus.
    expose, shot
        The first shot of a hole, with the beam shift to it; each further shot of the same hole.
    patches
        How many patches share the survey of a square, as a rule.
    overhead
        What deciding about a patch takes where its square is open already.
    to_square, to_tile, to_grid
        Switching, beyond entering: to a patch of another square than the stage is in, and beyond
        that of another tile, and of another grid. Opening a square has its own way there.
    load, atlas
        To load a grid of a cassette, and to see its atlas, which is paid once.

    Examples
    --------
    >>> FAST.survey, FAST.enter, FAST.expose  # the paper's 12.09, 51.99 and 6.66 s
    (12.09, 51.99, 6.66)
    """

    stage: float
    height: float
    image: float
    move: float
    focus: float
    expose: float
    shot: float = 4.0
    patches: float = 7.0
    overhead: float = 1.0
    to_square: float = 0.0
    to_tile: float = 0.0
    to_grid: float = 0.0
    load: float = 0.0
    atlas: float = 0.0

    def __post_init__(self) -> None:
        for one in fields(self):
            number(one.name, getattr(self, one.name), low=0.0)
        number("patches", self.patches, low=1.0)
        number("overhead", self.overhead, above=0.0)

    @classmethod
    def constant(cls, survey: float, move: float, expose: float, **more: float) -> "Timing":
        """The three constants of `eq: microscope`: a patch's survey, the way to it, an exposure.

        Examples
        --------
        >>> Timing.constant(10.0, 95.0, 91.0).latency()
        Setup(base=10.0, setup=95.0, each=91.0)
        """
        number("survey", survey, above=0.0)
        patches = number("patches", more.get("patches", 7.0), low=1.0)
        return cls(0.0, 0.0, survey * patches, move, 0.0, expose, **more)

    @property
    def square(self) -> float:
        """To open a square."""
        return self.stage + self.height + self.image

    @property
    def survey(self) -> float:
        """A patch's share of it."""
        return round(self.square / self.patches, 9)

    @property
    def enter(self) -> float:
        """To be ready at a patch."""
        return round(self.move + self.focus, 9)

    def switch(self, here: Square | None, there: Square) -> float:
        """To go to another square, beyond entering its patch; the whole way from nowhere.

        Examples
        --------
        >>> timing = Timing.constant(10.0, 60.0, 60.0, to_square=240.0, to_tile=120.0)
        >>> a, b, c = (Square(n, 0.0, 0.0, tile=t) for n, t in [("a", "1"), ("b", "1"), ("c", "2")])
        >>> timing.switch(a, a), timing.switch(a, b), timing.switch(a, c)
        (0.0, 240.0, 360.0)
        """
        return float(sum(getattr(self, level) for level in switches(here, there)))

    def hole(self, shots: int = 1) -> float:
        """To take all shots of a hole."""
        return hole_seconds(self.expose, self.shot, shots)

    def holes(self, shots: IntArray) -> FloatArray:
        """To take all shots of each of several holes."""
        return hole_seconds(self.expose, self.shot, shots)

    def latency(self, *, shots: int | Iterable[int] = 1, opens: bool | None = None) -> Setup:
        """The time of a patch as a round (`eq: microscope`).

        Parameters
        ----------
        shots
            Per hole: one number for all, or one for each.
        opens
            Whether this round pays for its square: True, the whole survey; False, it is paid, and
            only the overhead of deciding is left; None, the share that a patch has in it.
        """
        base = {None: self.survey, True: self.square, False: self.overhead}[opens]
        each = self.hole(shots) if isinstance(shots, int) else [self.hole(k) for k in shots]
        return Setup(base=max(base, self.overhead), setup=self.enter, each=each)

    @classmethod
    def from_log(
        cls, rows: Iterable[tuple[str, float]], *, prior: "Timing | None" = None
    ) -> "LogTiming":
        """The timing that a log of (level, seconds) shows, robust to a heavy tail.

        Each level is the mean of what lies within reach of its median (`steady`). Levels that the
        log lacks are taken from `prior`; without one they are an error. Rows of maintenance are
        counted and left out.
        """
        held: dict[str, list[float]] = {level: [] for level in LEVELS}
        upkeep = 0
        for at, (level, seconds) in enumerate(rows):
            if level in MAINTENANCE:
                upkeep += 1
                continue
            _check_level(level, f"row {at}")
            held[level].append(number(f"seconds of row {at} ({level})", seconds, low=0.0))
        missing = [level for level in LEVELS if not held[level]]
        if missing and prior is None:
            raise ValueError(
                f"the log has no {', '.join(missing)}; give a prior timing for what it lacks"
            )
        chosen = {level: _steady_or(held[level], prior, level) for level in LEVELS}
        timing = cls(
            **{level: mean for level, (mean, _) in chosen.items()},
            patches=prior.patches if prior else 7.0,
            overhead=prior.overhead if prior else 1.0,
            **{level: getattr(prior, level) for level in (*SWITCHES, *LOADING) if prior},
        )
        counts = {level: len(held[level]) for level in LEVELS}
        left_out = {level: out for level, (_, out) in chosen.items() if out}
        return LogTiming(timing, counts, left_out, upkeep)


@dataclass(frozen=True, slots=True)
class LogTiming:
    """A timing from a log, and what it rests on.

    Attributes
    ----------
    timing
        What was found.
    counts, left_out
        By level: rows there were, and rows so far off that they were left out.
    maintenance
        Rows of maintenance, none of which were used.
    """

    timing: Timing
    counts: dict[str, int]
    left_out: dict[str, int]
    maintenance: int


def switches(here: Square | None, there: Square) -> tuple[str, ...]:
    """Which switches lie between two squares: all of them if nobody knows where one is."""
    if here is None or here.grid != there.grid:
        return SWITCHES
    if here.tile != there.tile:
        return SWITCHES[:2]
    return SWITCHES[:1] if here.name != there.name else ()


def _check_level(level: str, where: str, levels: Sequence[str] = LEVELS) -> None:
    if level not in levels:
        raise ValueError(
            f"{where}: {level!r} is no level; there are {', '.join((*levels, *MAINTENANCE))}"
        )


def _steady_or(seconds: list[float], prior: "Timing | None", level: str) -> tuple[float, int]:
    if seconds:
        return steady(np.array(seconds))
    return float(getattr(prior, level)), 0


def steady(seconds: FloatArray) -> tuple[float, int]:
    """The mean of what lies within six robust deviations of the median, and how many do not.

    The deviation is the median one, and at least a tenth of the median, so that a clock of whole
    seconds or a second mode is no outlier.

    Examples
    --------
    >>> steady(np.array([74.0, 91.0, 91.0, 92.0, 35745.0]))
    (87.0, 1)
    """
    middle = float(np.median(seconds))
    reach = 6.0 * max(1.4826 * float(np.median(np.abs(seconds - middle))), 0.1 * middle)
    near = np.abs(seconds - middle) <= reach
    return float(seconds[near].mean()), int(np.count_nonzero(~near))


class LearnedTiming:
    """A timing that is learned while it is used.

    Each level is a running mean that begins as `weight` pretended measurements of the prior, in
    which a measurement counts as at most `reach` times the present mean away from it: a heavy tail
    moves it a little, a microscope that became slower moves it all the way. Old measurements fade
    over `memory` new ones.

    Parameters
    ----------
    prior
        What to expect before anything was measured.
    weight, memory, reach
        As above.

    Examples
    --------
    >>> learned = LearnedTiming(FAST)
    >>> for _ in range(50):
    ...     learned.learn("expose", 10.0)
    >>> round(learned.timing.expose, 1)
    9.7
    """

    def __init__(
        self, prior: Timing, *, weight: float = 5.0, memory: float = 200.0, reach: float = 2.0
    ) -> None:
        self.prior = prior
        self.weight = number("weight", weight, above=0.0)
        self.memory = number("memory", memory, low=1.0)
        self.reach = number("reach", reach, above=0.0)
        self.means = {level: float(getattr(prior, level)) for level in _LEARNED}
        self.weights = dict.fromkeys(_LEARNED, self.weight)
        self.counts = dict.fromkeys(_LEARNED, 0)
        self.clipped = dict.fromkeys(_LEARNED, 0)

    def learn(self, level: str, seconds: float) -> None:
        """Take in a measurement. Maintenance is checked, and otherwise passed over."""
        seconds = number(f"seconds of {level}", seconds, low=0.0)
        if level in MAINTENANCE:
            return
        _check_level(level, "learn", _LEARNED)
        mean = self.means[level]
        # A prior of 0 gives no scale, so the first measurement is taken as it is.
        far = self.reach * mean if mean > 0.0 else seconds
        taken = min(max(seconds, mean - far), mean + far)
        self.clipped[level] += taken != seconds
        self.weights[level] = min(self.weights[level] + 1.0, self.memory)
        self.means[level] = mean + (taken - mean) / self.weights[level]
        self.counts[level] += 1

    def learn_together(self, levels: Sequence[str], seconds: float) -> None:
        """Take in what several levels took together, shared as it is expected of them.

        Where nothing is expected of any they have equal shares.

        Examples
        --------
        >>> learned = LearnedTiming(Timing(10.0, 0.0, 30.0, 20.0, 30.0, 6.0), weight=1.0)
        >>> learned.learn_together(("stage", "height", "image"), 80.0)
        >>> learned.timing.stage, learned.timing.height, learned.timing.image
        (15.0, 0.0, 45.0)
        """
        for level in levels:
            _check_level(level, "learn_together", _LEARNED)
        seconds = number(f"seconds of {' and '.join(levels)}", seconds, low=0.0)
        expected = [self.means[level] for level in levels]
        whole = sum(expected)
        for level, usual in zip(levels, expected, strict=True):
            self.learn(level, seconds * (usual / whole if whole > 0.0 else 1.0 / len(levels)))

    @property
    def timing(self) -> Timing:
        """What to plan with now."""
        return Timing(**self.means, patches=self.prior.patches, overhead=self.prior.overhead)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        prior = {one.name: getattr(self.prior, one.name) for one in fields(self.prior)}
        held = {name: dict(getattr(self, name)) for name in _HELD}
        settings = {"weight": self.weight, "memory": self.memory, "reach": self.reach}
        return seal("learned-timing", {"prior": prior, **settings, **held})

    @classmethod
    def restore(cls, state: Mapping[str, Any] | str) -> "LearnedTiming":
        """The one whose state this is."""
        saved = unseal("learned-timing", state)
        settings = {name: entry(saved, name) for name in ("weight", "memory", "reach")}
        learned = cls(Timing(**entry(saved, "prior")), **settings)
        for name in _HELD:
            getattr(learned, name).update(entry(saved, name))
        return learned


_HELD = ("means", "weights", "counts", "clipped")

FAST = Timing(
    stage=15.0, height=30.0, image=39.63, move=21.99, focus=30.0, expose=6.66, shot=4.0
)  # means of the paper
SLOW = Timing(
    stage=20.0, height=25.0, image=25.0, move=35.0, focus=60.0, expose=91.0, shot=74.0
)  # a recorded grid of aldolase
