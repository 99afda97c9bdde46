"""What a reward counts, in words for people."""

from dataclasses import dataclass

from coaf.cryoem.reward import Particles, Reward


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted.

    Attributes
    ----------
    short, what
        In a table's heading, and in a sentence.
    unit
        How many of them a reward of 1 is.
    """

    short: str
    what: str
    unit: float = 1.0

    @property
    def per_hour(self) -> str:
        """The heading of what an hour brings."""
        return f"{self.short} an hour"


def counted(reward: Reward) -> Counted:
    """What a reward counts: particles, good micrographs, or the reward itself.

    Examples
    --------
    >>> counted(Particles(100.0)).per_hour, counted(Particles(100.0)).unit
    ('particles an hour', 100.0)
    """
    if isinstance(reward, Particles):
        return Counted("particles", "particles", reward.scale)
    if reward.family == "logistic":
        return Counted("good", "good micrographs")
    return Counted("reward", "reward")


def shown(value: float) -> str:
    """A count for people: whole where it is large.

    Examples
    --------
    >>> shown(54029.7), shown(7.256)
    ('54,030', '7.26')
    """
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
