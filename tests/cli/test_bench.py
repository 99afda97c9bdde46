"""The yardstick plays the same game: same rounds, same picks, same rate."""

import shutil

import numpy as np
import pytest

from coaf.worlds.bench import ROUNDS, Limit, preset
from coaf.worlds.compiled import coded, play_compiled
from coaf.worlds.synthetic import Synthetic
from outside import YARDSTICK


@pytest.mark.skipif(not YARDSTICK.exists(), reason="the C yardstick is not on this machine")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler on this machine")
def test_the_yardstick_and_the_compiled_loop_agree() -> None:
    world = Synthetic(dim=10, arms=(6, 20), base=(5.0, 10.0), seed=1)
    rate, picks = Limit(YARDSTICK).prepare(world.batch(ROUNDS, 0))()
    policy = preset()
    how = coded(policy, world)
    assert how is not None
    batch = world.batch(ROUNDS + 1, 0)  # the rate used in the round after is the last one learned
    trace = play_compiled(policy, how, batch)
    taken = np.round(trace[:-1, 1] - batch.base[:-1])  # one second each
    assert picks == taken.sum()
    assert rate == pytest.approx(trace[-1, 0], rel=1e-9)
