"""Vacuum is found from empty holes: with the beam's slope where they tell it, else constant."""

import numpy as np
import pytest

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.vision.vacuum import vacuum_at, vacuum_of

LIGHT = 80.0  # the brightness of vacuum in the middle
SIDE = 12  # holes along a side


class Holes:
    """A square of holes under a beam whose ln brightness changes by `slope` from middle to rim.

    Most have ice that leaves 60 % of the light; `empty` of them have none, and `thin` have some
    that leaves 74 to 92 %. Noise is 0.5 %.
    """

    def __init__(self, slope: tuple[float, float], *, empty: int, thin: int = 0) -> None:
        rng = np.random.default_rng(3)
        n = SIDE**2
        line = np.linspace(-1.0, 1.0, SIDE)
        where = np.stack(np.meshgrid(line, line), axis=-1).reshape(n, 2)
        ice = np.full(n, -np.log(0.6))
        order = rng.permutation(n)
        ice[order[:empty]] = 0.0
        ice[order[empty : empty + thin]] = rng.uniform(0.08, 0.3, thin)
        self.places = 20.0 * where + np.array([300.0, -40.0])
        self.light: FloatArray = LIGHT * np.exp(where @ np.array(slope))
        self.means: FloatArray = self.light * np.exp(-ice + rng.normal(0.0, 0.005, n))
        self.foil: FloatArray = 0.4 * self.light

    def vacuum(self) -> FloatArray:
        return vacuum_at(self.places, self.means, self.foil)


def constant(found: FloatArray, holes: Holes) -> bool:
    return bool((found == vacuum_of(holes.means)).all())


@pytest.mark.parametrize("thin", [0, 20])
def test_empty_holes_among_thin_ones_tell_the_slope(thin: int) -> None:
    """To less than the noise of one hole: they are averaged."""
    holes = Holes((0.12, -0.08), empty=14, thin=thin)
    np.testing.assert_allclose(holes.vacuum(), holes.light, rtol=0.01)


def test_a_beam_without_slope_is_seen_as_such() -> None:
    holes = Holes((0.0, 0.0), empty=14)
    assert constant(holes.vacuum(), holes)
    assert holes.vacuum()[0] == pytest.approx(LIGHT, rel=0.01)


def test_no_beam_is_as_uneven_as_ice_can_be() -> None:
    holes = Holes((0.4, 0.1), empty=14)
    assert constant(holes.vacuum(), holes)


def test_a_few_of_many_that_stand_out_tell_no_slope() -> None:
    """Eight on a plane are enough of sixteen, and not of 32: ice can look like that."""
    some, many = (Holes((0.15, 0.1), empty=8, thin=thin) for thin in (8, 24))
    np.testing.assert_allclose(some.vacuum(), some.light, rtol=0.01)
    assert constant(many.vacuum(), many)


def test_few_empty_holes_tell_no_slope() -> None:
    holes = Holes((0.12, -0.08), empty=4)
    assert constant(holes.vacuum(), holes)


def test_dark_holes_are_no_vacuum() -> None:
    with pytest.raises(ValueError, match="no brightness above 0"):
        vacuum_of(np.zeros(5))
