"""Pilots by name: COAF, what it is compared with, and the limit."""

from coaf.cryoem.microscope import Microscope, Rehearsal
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.baselines import FixedCut, IntensityWindow, ScoreOrder, TakeAll
from coaf.cryoem.pilots.clairvoyant import Clairvoyant
from coaf.cryoem.pilots.microscopist import Microscopist
from coaf.cryoem.reward import Reward
from coaf.cryoem.timing import HOUR

OTHERS = ("take-all", "window", "fixed-cut", "score-order", "microscopist", "clairvoyant")
POLICIES = ("coaf", *OTHERS)

_BY_ICE = ("window", "microscopist")
_BY_PREDICTION = ("fixed-cut", "score-order")


def rivals(microscope: Rehearsal) -> list[str]:
    """What a session on this microscope can be compared with: all whose columns it has."""
    needs = dict.fromkeys(_BY_ICE, "ice") | dict.fromkeys(_BY_PREDICTION, "prediction")
    return [name for name in OTHERS if needs.get(name) in (None, *microscope.feature_names)]


def check_policy_name(name: str) -> None:
    """Refuse a name that no policy has."""
    if name not in POLICIES:
        raise ValueError(f"policy is {name!r}; there are {', '.join(POLICIES)}")


def make_pilot(
    name: str, microscope: Microscope, *, hours: float, reward: Reward, seed: int = 0
) -> Pilot:
    """The pilot of that name, for a session on this microscope.

    The rules of a fixed cut and of score order go by the column "prediction"; without one a
    microscope has no score, and they are refused.
    """
    check_policy_name(name)
    columns, timing = microscope.feature_names, microscope.timing
    if name == "coaf":
        from coaf.cryoem.pilots.coaf import CoafPilot  # loads numba

        return CoafPilot(timing, reward=reward, columns=columns, seed=seed)
    if name == "take-all":
        return TakeAll()
    if name in _BY_ICE:
        if "ice" not in columns:
            raise ValueError(
                f"policy {name} goes by the ice, and the features are {', '.join(columns)}"
            )
        grey = columns.index("ice")
        return IntensityWindow(grey) if name == "window" else Microscopist(grey)
    if name in _BY_PREDICTION:
        if "prediction" not in columns:
            raise ValueError(
                f"policy {name} goes by a prediction, and the features are {', '.join(columns)}; "
                "a Simulator has one with prediction=True"
            )
        column = columns.index("prediction")
        return FixedCut(column) if name == "fixed-cut" else ScoreOrder(column)
    if not isinstance(microscope, Rehearsal):
        raise ValueError(
            f"the clairvoyant goes by the truth, which a {type(microscope).__name__} does not "
            "know; a Rehearsal does, as a Simulator is"
        )
    surveys = [microscope.peek(square.name) for square in microscope.squares()]
    worth = {
        hole.name: microscope.first_visit(reward, hole.name)
        for survey in surveys
        for patch in survey.patches
        for hole in patch.holes
    }
    return Clairvoyant(worth, surveys, timing, hours * HOUR)
