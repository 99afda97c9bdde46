"""Pilots by name: COAF, what it is compared with, and the limit."""

from collections.abc import Sequence
from functools import partial
from math import inf

from coaf.cryoem.microscope import Rehearsal
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.baselines import EveryHole, FixedCut, IntensityWindow, ScoreOrder
from coaf.cryoem.pilots.clairvoyant import Clairvoyant
from coaf.cryoem.pilots.cut_and_count import CutAndCount
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.pilots.grid_order import GridRule, InTurn, ScreenAll
from coaf.cryoem.pilots.microscopist import Microscopist
from coaf.cryoem.pilots.patch_order import PatchOrder
from coaf.cryoem.reward import Reward, RewardFrom, parse_reward
from coaf.cryoem.session.events import Settings
from coaf.cryoem.timing import HOUR

OTHERS = (
    "coaf-paper",
    "take-all",
    "window",
    "fixed-cut",
    "cut-and-count",
    "score-order",
    "microscopist",
    "clairvoyant",
)
# COAF on each grid of a cassette, which are loaded as people would: what `coaf` is compared with.
GRID_RULES = ("screen-all", "equal-time", "in-turn")
# The last goes from patch to patch of any square, which is for grids that are known ahead.
PILOTS = ("coaf", "coaf-tuned", *OTHERS, *GRID_RULES, "patch-order")

# The columns that a pilot can go by: the first of them that there is.
_GOES_BY = {
    "window": ("ice",),
    "microscopist": ("prediction", "ice"),
    "fixed-cut": ("prediction",),
    "cut-and-count": ("prediction",),
    "score-order": ("prediction",),
    "patch-order": ("prediction",),
}


def rivals(columns: Sequence[str]) -> list[str]:
    """What a session with these features can be compared with."""
    return [
        name
        for name in OTHERS
        if name not in _GOES_BY or not set(columns).isdisjoint(_GOES_BY[name])
    ]


def check_pilot_name(name: str) -> None:
    """Refuse a name that no pilot has."""
    if name not in PILOTS:
        raise ValueError(f"policy is {name!r}; there are {', '.join(PILOTS)}")


def pilot_for(settings: Settings, rewards: RewardFrom = parse_reward) -> Pilot:
    """The pilot that settings name, told nothing yet; it explores if they say so.

    `rewards` makes the reward from its text.
    """
    pilot = _named(settings, rewards(settings.reward))
    return Exploring(pilot, settings.explore, settings.seed) if settings.explore else pilot


def _named(settings: Settings, reward: Reward) -> Pilot:
    name, columns = settings.pilot, settings.columns
    check_pilot_name(name)
    known = [by for by in _GOES_BY.get(name, ()) if by in columns]
    if name in _GOES_BY and not known:
        told, asked = ", ".join(columns) or "none", " or ".join(map(repr, _GOES_BY[name]))
        raise ValueError(f"pilot {name} goes by {asked}, and the features are: {told}")
    if name.startswith("coaf") or name in GRID_RULES:
        from coaf.cryoem.pilots.cassette import CassettePilot  # loads numba, as do the next
        from coaf.cryoem.pilots.coaf import CoafPilot
        from coaf.cryoem.pilots.paper import paper_pilot

        if name == "coaf" or name in GRID_RULES:
            taught = settings.knowledge
            # A session that is given another target begins as one that was given it first.
            suits = taught is not None and taught.suits(columns, str(reward))
            earlier = (taught,) if taught is not None and suits else ()
            of_grid = partial(CoafPilot, settings.timing, reward=reward, columns=columns)
            if len(settings.grids) < 2:
                return of_grid(earlier=earlier)
            seconds = inf if settings.hours is None else settings.hours * HOUR
            rules: dict[str, GridRule] = {
                "screen-all": ScreenAll(),
                "equal-time": InTurn(seconds, len(settings.grids)),
                "in-turn": InTurn(inf, len(settings.grids)),
            }
            return CassettePilot(
                lambda these: of_grid(earlier=these), rules.get(name), earlier=earlier
            )
        return paper_pilot(columns, reward, scale=1.0 if name == "coaf-paper" else 0.1)
    if name == "clairvoyant":
        raise ValueError("the clairvoyant goes by the truth, which settings do not hold")
    kinds = {
        "window": IntensityWindow,
        "microscopist": Microscopist,
        "fixed-cut": FixedCut,
        "cut-and-count": CutAndCount,
        "score-order": ScoreOrder,
        "patch-order": PatchOrder,
    }
    return kinds[name](columns.index(known[0])) if name in kinds else EveryHole()


def clairvoyant(microscope: Rehearsal, *, hours: float, reward: Reward) -> Clairvoyant:
    """Who knows what each hole of this microscope's grid gives."""
    surveys = [microscope.peek(square.name) for square in microscope.squares()]
    worth = {
        hole.name: microscope.first_visit(reward, hole.name)
        for survey in surveys
        for patch in survey.patches
        for hole in patch.holes
    }
    return Clairvoyant(worth, surveys, microscope.timing, hours * HOUR)
