"""The paper's Figure 3a: a patch, its holes, and the optimistic estimate beside each of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coaf.bandit.problem import Decision
from coaf.cryoem.grid import Patch
from coaf.cryoem.images import Image
from coaf.cryoem.pilot import Left, Open
from coaf.cryoem.pilots.paper import paper_pilot
from coaf.cryoem.reward import Reward
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import HOUR
from coaf.worlds.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKED = 4  # squares that are drawn to find a patch that shows something
_MARGIN = 2.0  # µm around the holes
_CHOSEN, _LEFT = COLOURS[2], COLOURS[0]


@dataclass(frozen=True, slots=True, eq=False)
class DecidedPatch:
    """A patch of a drawn square, and what the paper's algorithm would do there."""

    patch: Patch
    image: Image
    decision: Decision


def decided_patch(*, seed: int, hours: float, reward: Reward) -> DecidedPatch:
    """What `coaf-paper` decides after some hours on a simulated grid, in a square drawn for it.

    Of the patches of the next squares it would open that one is taken of whose holes most nearly
    half are chosen.
    """
    grid = {"squares": 40, "prediction": True}
    learning = Simulator(seed, pixels=False, **grid)  # type: ignore[arg-type]
    pilot = paper_pilot(learning.feature_names, reward)
    session = collect(learning, pilot, hours=hours, reward=reward, explore=0.0)
    drawn = Simulator(seed, **grid)  # type: ignore[arg-type]
    every = {square.name: square for square in drawn.squares()}
    new = [square for name, square in every.items() if name not in session.surveys]
    left, found = Left(HOUR, drawn.timing), []
    for _ in range(min(_LOOKED, len(new))):
        name = str(pilot.square(new, left).name)
        new.remove(every[name])
        survey = drawn.survey(name)
        assert survey.image is not None
        pilot.opened(survey, drawn.timing)
        for patch in survey.patches:
            decision = pilot.decide(Open(patch, tuple(range(len(patch.holes)))), left)
            found.append(DecidedPatch(patch, survey.image, decision))
    if not found:
        raise ValueError(f"{hours:g} hours leave no patch of grid {seed} to look at")
    return min(found, key=_telling)


def _telling(one: DecidedPatch) -> tuple[float, bool]:
    """Least where half of the holes are chosen; better all than none."""
    share = float(one.decision.chosen.mean())
    return abs(share - 0.5), share == 0.0


def figure3a(shown: DecidedPatch) -> "Figure":
    """The patch with its holes ringed, those chosen thicker, and estimates at their corners."""
    from matplotlib.figure import Figure  # an extra
    from matplotlib.lines import Line2D

    patch, image, decision = shown.patch, shown.image, shown.decision
    figure = Figure(figsize=(6.4, 6.6), layout="constrained")
    axes = figure.subplots()
    places = np.asarray(image.to_pixels([(hole.x, hole.y) for hole in patch.holes]))
    axes.imshow(image.pixels, cmap="gray", interpolation="nearest")
    for hole, (x, y), chosen, estimate in zip(
        patch.holes, places, decision.chosen, decision.estimates, strict=True
    ):
        radius = hole.radius / image.pixel_size
        angle = np.linspace(0.0, 2.0 * np.pi, 49)
        colour, width = (_CHOSEN, 2.4) if chosen else (_LEFT, 1.0)
        axes.plot(x + radius * np.cos(angle), y + radius * np.sin(angle), color=colour, lw=width)
        axes.text(
            x + 0.7 * radius,
            y - 0.7 * radius,
            f"{estimate:.2f}",
            fontsize=9,
            color="black",
            va="bottom",
            bbox={"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.8},
        )
    margin = _MARGIN / image.pixel_size
    low, high = places.min(axis=0) - margin, places.max(axis=0) + margin
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(high[1], low[1])
    axes.set_xticks([])
    axes.set_yticks([])
    handles = [
        Line2D([], [], color=colour, lw=width, label=label)
        for colour, width, label in ((_CHOSEN, 2.4, "chosen"), (_LEFT, 1.0, "left"))
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return figure
