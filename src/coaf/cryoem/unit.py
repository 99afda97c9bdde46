"""What a reward counts, in words for people."""

from dataclasses import dataclass

from coaf.cryoem.reward import Combined, Particles, Reward


@dataclass(frozen=True, slots=True)
class Unit:
    """What rewards are counted in.

    Parameters
    ----------
    name
        Of many of them: "good micrographs".
    scale
        How many a reward of 1 is.
    chance
        Whether a shot gives one or none, so that what is expected of it is a chance.

    Examples
    --------
    >>> Unit("particles", 100.0).count(0.94), Unit("particles", 100.0).per_hour
    ('94 particles', 'particles an hour')
    >>> MICROGRAPHS.heading, MICROGRAPHS.short
    ('good micrographs', 'good')
    """

    name: str
    scale: float = 1.0
    chance: bool = False

    @property
    def heading(self) -> str:
        """What many of them are called by themselves."""
        return self.name.removeprefix("of ")

    @property
    def short(self) -> str:
        """The same, for a table."""
        return "good" if self.chance else self.heading

    @property
    def per_hour(self) -> str:
        """What an hour brings, for a table."""
        return f"{self.short} an hour"

    def bare(self, reward: float) -> str:
        """How many, without their name."""
        return plain(reward * self.scale)

    def count(self, reward: float) -> str:
        """How many, and of what."""
        return f"{self.bare(reward)} {self.name}"

    def expected(self, estimate: float, shots: int = 1) -> str:
        """What is expected of a hole.

        Examples
        --------
        >>> MICROGRAPHS.expected(0.08)
        'expected to be good with 8 %'
        >>> MICROGRAPHS.expected(1.7, shots=4)
        'expected to give 1.7 good micrographs of 4'
        """
        if self.chance and shots == 1:
            return f"expected to be good with {percent(estimate)}"
        if estimate * self.scale < 0.005:
            return "expected to give nothing"
        of = f" of {shots}" if self.chance else ""
        return f"expected to give {self.count(estimate)}{of}"


MICROGRAPHS = Unit("good micrographs", chance=True)
REWARD = Unit("of reward")


def unit_of(reward: Reward) -> Unit:
    """What a reward counts.

    Examples
    --------
    >>> from coaf.cryoem.reward import parse_reward
    >>> unit_of(parse_reward("ctf<3.8")).name
    'good micrographs'
    >>> unit_of(parse_reward("ctf<3.8 * particles/100"))
    Unit(name='particles in good micrographs', scale=100.0, chance=False)
    >>> unit_of(parse_reward("ctf 3..8")).count(12.0)
    '12 of reward'
    """
    if reward.family == "logistic":
        return MICROGRAPHS
    if isinstance(reward, Particles):
        return Unit("particles", reward.scale)
    if isinstance(reward, Combined) and reward.weights is None:
        counts = [part for part in reward.parts if part.family != "logistic"]
        if len(counts) == 1 and isinstance(counts[0], Particles):
            return Unit("particles in good micrographs", counts[0].scale)
    return REWARD


def plain(value: float) -> str:
    """A number that is not negative, with as many digits as help.

    Examples
    --------
    >>> [plain(value) for value in (12345.6, 121.7, 4.04, 3.0, 0.2345, 0.001, 0.0)]
    ['12,346', '122', '4', '3', '0.23', 'less than 0.01', '0']
    """
    if 0.0 < value < 0.005:
        return "less than 0.01"
    digits = 0 if value >= 9.95 else 1 if value >= 0.995 else 2
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(chance: float) -> str:
    """A chance, in per cent; none is certain.

    Examples
    --------
    >>> percent(0.084), percent(0.001), percent(0.998)
    ('8 %', 'less than 1 %', 'more than 99 %')
    """
    if chance < 0.005:
        return "less than 1 %"
    return "more than 99 %" if chance > 0.995 else f"{100.0 * chance:.0f} %"
