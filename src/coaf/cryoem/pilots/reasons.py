"""Why something is done, in the words of who sits at the microscope."""

from dataclasses import dataclass

from coaf.cryoem.timing import HOUR
from coaf.cryoem.unit import REWARD, Unit, plain


@dataclass(frozen=True, slots=True)
class Facing:
    """What is known when the next hole of a patch is chosen, or none.

    Attributes
    ----------
    holes
        How many are in play.
    estimate, shots
        The reward expected of the best, and how many shots it has.
    rate
        What a second is worth, in reward.
    seconds
        What exposing the best takes.
    gain
        What going on should bring beyond what all its time is worth, with what may follow.
    inside
        Whether the stage is there.
    scored
        Whether any score has come yet.
    blind
        Whether nothing is known yet of how large rewards are: the estimate says nothing.
    """

    holes: int
    estimate: float
    rate: float
    seconds: float
    gain: float = 0.0
    shots: int = 1
    inside: bool = False
    scored: bool = True
    blind: bool = False

    @property
    def knows(self) -> bool:
        """Whether the estimate means anything."""
        return not self.blind and (self.scored or self.estimate != 0.0)


def take_hole(unit: Unit, now: Facing) -> str:
    """Why the best hole is taken.

    Examples
    --------
    >>> from coaf.cryoem.unit import MICROGRAPHS
    >>> print(take_hole(MICROGRAPHS, Facing(21, 0.53, rate=0.034, seconds=6.5, inside=True)))
    Take the best of 21 holes left: it is expected to be good with 53 %, and its 6.5 s are worth \
0.22 good micrographs, as an hour is worth 122.
    """
    if not now.knows:
        rule = "the one of which least is known is tried" if now.blind else "they are tried in turn"
        return f"Take one of {_holes(now)}: {_unknown(unit, now)}. Until scores tell, {rule}."
    if not now.inside:
        brings = f"the patch to bring {unit.count(now.gain)} more than its time is worth"
        return (
            f"Go there and take the best of {_holes(now)}: {_best(unit, now, 'it')}, and {brings}, "
            f"as {_hour(unit, now.rate)}."
        )
    which = f"the best of {_holes(now)}" if now.holes > 1 else "the last hole"
    found = f"Take {which}: {_best(unit, now, 'it')}, and {_cost(unit, now)}"
    if now.estimate >= now.rate * now.seconds or now.holes == 1:
        return f"{found}."
    return (
        f"{found}; but its score tells of the others, and with those it should bring "
        f"{unit.bare(now.gain)} more than the time is worth."
    )


def no_hole(unit: Unit, now: Facing) -> str:
    """Why a patch is left, or not gone to.

    Examples
    --------
    >>> from coaf.cryoem.unit import MICROGRAPHS
    >>> print(no_hole(MICROGRAPHS, Facing(21, 0.08, rate=0.034, seconds=6.5, gain=-1.8)))
    Skip: the best of 21 holes is expected to be good with 8 %; an hour is worth 122 good \
micrographs; going there would lose 1.8 of them.
    """
    verb = "Leave" if now.inside else "Skip"
    if not now.holes:
        return f"{verb}: no hole is left."
    if not now.knows:
        return (
            f"{verb}: {_unknown(unit, now)}, and what {_holes(now)} may give is not worth the time."
        )
    which = f"the best of {_holes(now)}" if now.holes > 1 else "the last hole"
    found = f"{verb}: {_best(unit, now, which)}"
    if now.rate <= 0.0:
        return f"{found}."
    if now.inside:
        return f"{found}, and {_cost(unit, now)}."
    of = " of them" if unit != REWARD else ""
    loss, hour = unit.bare(max(-now.gain, 0.0)), f"an hour is worth {unit.count(now.rate * HOUR)}"
    return f"{found}; {hour}; going there would lose {loss}{of}."


def whole_patch(unit: Unit, taken: int, now: Facing) -> str:
    """Why so many holes of a patch are taken together, or none.

    Of `now` the estimate is what those taken may bring together at best, or the best hole if none
    is, and the seconds are theirs together.

    Examples
    --------
    >>> from coaf.cryoem.unit import MICROGRAPHS
    >>> print(whole_patch(MICROGRAPHS, 9, Facing(21, 5.6, rate=0.029, seconds=111.0)))
    Take 9 of 21 holes: at best they bring 5.6 good micrographs, and their 111 s are worth 3.2, as \
an hour is worth 104.
    >>> print(whole_patch(MICROGRAPHS, 0, Facing(21, 0.08, rate=0.029, seconds=111.0)))
    Skip: of 21 holes the best is at best expected to be good with 8 %, and no choice of them is \
worth its time, as an hour is worth 104.
    """
    if not taken:
        best = unit.expected(now.estimate, now.shots)
        return (
            f"Skip: of {_holes(now)} the best is at best {best}, and no choice of them is worth "
            f"its time, as {_hour(unit, now.rate)}."
        )
    worth = f"their {plain(now.seconds)} s are worth {unit.bare(now.rate * now.seconds)}, as "
    found = f"at best they bring {unit.count(now.estimate)}, and {worth if now.rate > 0.0 else ''}"
    return f"Take {taken} of {_holes(now)}: {found}{_hour(unit, now.rate)}."


def patch(unit: Unit, patches: int, gain: float) -> str:
    """Why a patch is looked at next."""
    found = f"it should bring {_beyond(unit, gain)} than its time is worth"
    return f"The best of {patches} patches: {found}."


def no_patch(unit: Unit, patches: int, gain: float) -> str:
    """Why none of the patches is returned to."""
    return (
        f"None of {patches} patches pays for its time: the best would bring {_beyond(unit, gain)} "
        "than that is worth."
    )


FIRST_SQUARE = (
    "The first square: nothing is known yet, so it is the one that lets most light through."
)


def square(unit: Unit, squares: int, gain: float, rate: float, seconds: float) -> str:
    """Why a square is opened.

    Examples
    --------
    >>> from coaf.cryoem.unit import MICROGRAPHS
    >>> print(square(MICROGRAPHS, 31, gain=12.3, rate=0.034, seconds=85.0))
    The best of 31 squares: its patches should bring 12 good micrographs more than their time is \
worth, and the 85 s of opening it are worth 2.9, as an hour is worth 122.
    """
    return (
        f"The best of {squares} squares: {_inside_it(unit, gain)}{_opening(unit, rate, seconds)}."
    )


def no_square(unit: Unit, gain: float, rate: float, seconds: float) -> str:
    """Why no square is opened."""
    found = f"{_inside_it(unit, gain, of='the best')}{_opening(unit, rate, seconds)}"
    return f"No square pays for being opened: {found}."


def _inside_it(unit: Unit, gain: float, *, of: str = "") -> str:
    whose = f"the patches of {of}" if of else "its patches"
    return f"{whose} should bring {_beyond(unit, gain)} than their time is worth"


def _beyond(unit: Unit, gain: float) -> str:
    return f"{unit.count(abs(gain))} {'more' if gain > 0.0 else 'less'}"


def _opening(unit: Unit, rate: float, seconds: float) -> str:
    if rate <= 0.0:
        return ""
    return (
        f", and the {plain(seconds)} s of opening it are worth {unit.bare(rate * seconds)}, as "
        f"{_hour(unit, rate)}"
    )


def _holes(now: Facing) -> str:
    left = " left" if now.inside else ""
    return f"{now.holes} hole{'s' if now.holes != 1 else ''}{left}"


def _best(unit: Unit, now: Facing, who: str) -> str:
    before = "" if now.scored else ", before any score has come,"
    return f"{who} is{before} {unit.expected(now.estimate, now.shots)}"


def _unknown(unit: Unit, now: Facing) -> str:
    why = "too few scores have come" if now.scored else "no score has come yet"
    many = f"how many {unit.name} a hole gives" if unit != REWARD else "what a hole gives"
    return f"{why}, so nothing is known of {many}"


def _cost(unit: Unit, now: Facing) -> str:
    if now.rate <= 0.0:
        return _hour(unit, now.rate)
    cost = unit.count(now.rate * now.seconds)
    return f"its {plain(now.seconds)} s are worth {cost}, as {_hour(unit, now.rate)}"


def _hour(unit: Unit, rate: float) -> str:
    if rate <= 0.0:
        return "the time has no better use"
    return f"an hour is worth {unit.bare(rate * HOUR)}"
