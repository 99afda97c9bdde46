"""What shots were taken under: columns for what varies, and nothing learned of it as ice."""

import json
from copy import deepcopy

import numpy as np
import pytest

from coaf.bandit.beliefs.nested.variances import last_visit
from coaf.cryoem.pilot import Scored
from coaf.cryoem.pilots.shot_effects import ShotEffects

CYCLE = (-2.5, -2.0, -1.5, -1.0, -0.5)


def shots(count: int, **told: tuple[float, ...]) -> list[Scored]:
    """Shots under these circumstances, in turn."""
    return [
        Scored(f"h{k}", 0, 1.0, circumstances={n: v[k % len(v)] for n, v in told.items()})
        for k in range(count)
    ]


def test_what_nobody_says_or_all_say_alike_has_no_column() -> None:
    for told in ({}, {"defocus": (-1.5,)}, {"place": (3.0,), "tilt": (0.0,)}):
        effects, said = ShotEffects(), shots(30, **told)
        assert not effects.tell(said)
        assert effects.columns(said).shape == (30, 0)
        assert effects.said == ""


def test_columns_are_0_on_average_and_holes_are_judged_at_the_median() -> None:
    effects, said = ShotEffects(), shots(35, defocus=CYCLE, place=tuple(range(7)))
    assert effects.tell(said)
    effects.tell(())
    X = effects.columns(said)
    assert X.shape == (35, 2 + 7)
    first = effects.columns(said[: last_visit(35)])[:, :2]  # of which they were found
    np.testing.assert_allclose(first.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(first.std(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(effects.usual[:2], X[2, :2])  # −1.5 µm
    np.testing.assert_array_equal(effects.usual[2:], 0.0)
    assert effects.said == " Holes are judged at usual defocus and place."


def test_two_values_have_no_bend_and_odd_ones_no_weight() -> None:
    effects, said = ShotEffects(), shots(30, tilt=(0.0, 30.0))
    effects.tell(said)
    assert effects.columns(said).shape == (30, 1)
    wild = ShotEffects()
    wild.tell([*shots(90, defocus=CYCLE), *shots(1, defocus=(1e6,))] * 3)
    assert np.abs(wild.columns(shots(1, defocus=(1e9,)))).max() < 3.0


def test_a_shot_that_does_not_say_is_as_others_are_on_average() -> None:
    effects = ShotEffects()
    effects.tell([*shots(20, defocus=CYCLE), *shots(20)])
    np.testing.assert_array_equal(effects.columns(shots(1)), 0.0)


@pytest.mark.parametrize("pieces", [1, 7, 100])
def test_it_does_not_matter_in_which_pieces_scores_came(pieces: int) -> None:
    said = shots(100, defocus=CYCLE, order=(0.0, 1.0, 2.0))
    effects = ShotEffects()
    for first in range(0, 100, pieces):
        effects.tell(said[first : first + pieces])
    whole = ShotEffects()
    whole.tell(said)
    assert effects.curves == whole.curves
    for same in (ShotEffects.restore(json.loads(json.dumps(whole.state()))), deepcopy(whole)):
        assert same.curves == whole.curves
        np.testing.assert_array_equal(same.columns(said), whole.columns(said))


def test_a_state_without_scores_learns_nothing_of_circumstances() -> None:
    effects = ShotEffects.restore(None)
    assert not effects.tell(shots(40, defocus=CYCLE))
    assert effects.columns(shots(2, defocus=CYCLE)).shape == (2, 0)
