"""Pilots by name: COAF, what it is compared with, and the limit."""

from coaf.cryoem.microscope import Microscope
from coaf.cryoem.pilot import Pilot
from coaf.cryoem.pilots.baselines import FixedCut, IntensityWindow, ScoreOrder, TakeAll
from coaf.cryoem.pilots.clairvoyant import Clairvoyant
from coaf.cryoem.pilots.microscopist import Microscopist
from coaf.cryoem.reward import Reward
from coaf.cryoem.simulator.again import first_visit
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST
from coaf.cryoem.vision.features import HOLE_FEATURES

OTHERS = ("take-all", "window", "fixed-cut", "score-order", "microscopist", "clairvoyant")
POLICIES = ("coaf", *OTHERS)

_BY_PREDICTION = ("fixed-cut", "score-order")


def rivals(simulator: Simulator) -> list[str]:
    """What a session on this simulator can be compared with."""
    return [name for name in OTHERS if simulator.prediction or name not in _BY_PREDICTION]


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
    columns: tuple[str, ...] = getattr(microscope, "feature_names", HOLE_FEATURES)
    timing = getattr(microscope, "timing", FAST)
    if name == "coaf":
        from coaf.cryoem.pilots.coaf import CoafPilot  # loads numba

        return CoafPilot(timing, reward=reward, columns=columns, seed=seed)
    if name == "take-all":
        return TakeAll()
    if name in ("window", "microscopist"):
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
    if not isinstance(microscope, Simulator):
        raise ValueError("only a simulator knows the truth that the clairvoyant goes by")
    surveys = [microscope.peek(square.name) for square in microscope.squares()]
    worth = {
        hole.name: first_visit(microscope, reward, hole.name)
        for survey in surveys
        for patch in survey.patches
        for hole in patch.holes
    }
    return Clairvoyant(worth, surveys, timing, hours * 3600.0)
