"""What a microscope is told to do next, and what a client is told to do in a whole list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Do = Literal["load grid", "open square", "go", "expose", "leave", "wait", "alarm", "stop"]
Level = Literal["grid", "square", "patch", "hole"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One thing to do, and why.

    Attributes
    ----------
    id
        Unique in the session: what happens is reported under it.
    do
        "load grid", "open square", "go" (to a patch), "expose" (a hole of the patch gone to),
        "leave" (a patch, entered or not, or the rest of a square: nothing to do but to ask again),
        "wait", "alarm" (call a person), "stop".
    name, level
        Of the grid, square, patch or hole, and which of these it is; None where it is about none.
    why
        A sentence a person can disagree with.
    estimate
        The reward expected of it, where there is one; of leaving a patch, of the best hole left.
    rate
        What a second was worth (reward per second), by what the pilot said last; 0 for pilots that
        do not know.
    propensity
        The probability with which it was chosen: 1 but where the choice was random.
    seconds
        How long to wait; how long anything else should take.
    reward
        What estimates and rate are counted in, as `parse_reward` reads it.
    estimates
        Of a patch gone to or left: what is expected of each hole in play there.
    unfinished
        Of a patch left: whether that is for something else, and work goes on there.
    check
        Of a patch gone to: whether that is to compare scores that are suspect.
    again
        Of waiting: whether what was given up while nothing worked is tried again then.
    """

    id: str
    do: Do
    name: str | None = None
    why: str = ""
    estimate: float | None = None
    rate: float = 0.0
    propensity: float = 1.0
    seconds: float = 0.0
    reward: str = ""
    estimates: Mapping[str, float] = field(default_factory=dict)
    level: Level | None = None
    unfinished: bool = False
    check: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Holes to take, in order, decided before any of their scores is known.

    Attributes
    ----------
    id
        Unique in the session.
    scope
        The patch or square that it is for; None for all that is open.
    steps
        Going to patches, exposing and leaving, as they would be instructed one by one.
    advice
        Whether it is for someone who takes no instructions, and may follow it or not.
    """

    id: str
    scope: str | None
    steps: tuple[Instruction, ...]
    advice: bool = False

    @property
    def holes(self) -> tuple[str, ...]:
        """The holes to take, in order."""
        return tuple(str(step.name) for step in self.steps if step.do == "expose")
