"""What was expected, and what scores made of it, is said."""

from pathlib import Path

import numpy as np

from coaf.bandit.beliefs.mixture import Mixture
from coaf.bandit.beliefs.nested.nested import Nested
from coaf.cryoem.pilot import guess_of
from coaf.cryoem.pilots.baselines import EveryHole
from coaf.cryoem.pilots.catalogue import pilot_for
from coaf.cryoem.pilots.exploring import Exploring
from coaf.cryoem.pilots.guess import guessed
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.reports import session as session_report
from coaf.cryoem.session.collect import collect
from coaf.cryoem.session.events import Settings
from coaf.cryoem.simulator.simulator import Simulator


def test_trust_moves_with_scores() -> None:
    right, wrong = (Nested(1, centre=(c, 0.0), scale=0.2, variances="fixed") for c in (3.0, -3.0))
    belief = Mixture([right, wrong], weights=[0.6, 0.4])
    rows = np.tile([[1.0], [-1.0]], (30, 1))
    belief.learn(rows, (rows[:, 0] > 0.0).astype(float))
    said = guessed(belief, ())
    assert "60 % to grids where what is seen of holes means what it usually does" in said
    assert said.endswith("After 60 scores it is more than 99 % and less than 1 %.")


def test_earlier_grids_are_counted_together() -> None:
    one = Knowledge("ctf<3.8", ("a",), (0.0, 0.0), (1.0, 1.0), (0.5, 0.5), 0.5, scores=100)
    belief = Mixture([Nested(1, scale=1.0) for _ in range(4)], weights=[0.1, 0.2, 0.4, 0.3])
    assert "so: 30 % to grids like the earlier ones, 40 % to grids where" in guessed(
        belief, (one, one)
    )


def test_who_expects_nothing_says_so() -> None:
    nothing = pilot_for(Settings(pilot="coaf", columns=("strange",)))
    assert guess_of(nothing).endswith("it is learned, and no score has come.")
    assert guess_of(Exploring(nothing, 0.1)) == guess_of(nothing)
    assert guess_of(EveryHole()) == guess_of(Exploring(EveryHole(), 0.1)) == ""


def test_the_report_says_it(tmp_path: Path) -> None:
    grid = Simulator(3, squares=2, pixels=False, prediction=True)
    session = collect(grid, "coaf", hours=0.3)
    session_report.write([session], tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Expected, and learned" in page
    assert session.engine is not None
    assert guess_of(session.engine.learning.pilot) in page
