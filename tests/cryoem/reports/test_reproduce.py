"""The paper's cryo-EM experiments, small."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.reports.patch_figure import DecidedPatch, decided_patch, figure3a
from coaf.cryoem.reports.reproduce import (
    COMPARED,
    Curves,
    ends,
    lead,
    play_grid,
    reproduce,
    seconds_spent,
)
from coaf.cryoem.reward import GoodBelow
from coaf.cryoem.session.collect import collect
from coaf.cryoem.simulator.simulator import Simulator
from coaf.cryoem.timing import FAST


def test_what_is_reported_is_what_was_played(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need coaf[experiments]")
    summary = reproduce(out=tmp_path, seeds=2, hours=0.2, seed=7, workers=1)
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    assert all(Path(file).stat().st_size > 0 for file in summary["files"])
    for name, result in summary["experiments"].items():
        again = play_grid(name, 8, 0.2)
        assert list(result["grids"][1].values()) == again.collected[:, -1].tolist()
        for policy in COMPARED:
            mean = np.mean([grid[policy] for grid in result["grids"]])
            assert result["policies"][policy]["collected"]["value"] == pytest.approx(mean)
    told = [(claim["policy"], claim["experiment"], claim["rival"]) for claim in summary["claims"]]
    assert told == [
        (policy, experiment, rival)
        for policy in ("coaf-paper", "coaf")
        for experiment in ("good", "particles")
        for rival in ("microscopist", "take-all")
    ]
    assert {Path(file).name for file in summary["files"]} >= {"figure3a.png", "figure3.svg"}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(claim["evidence"] in page for claim in summary["claims"])


def curves(**collected: list[float]) -> list[Curves]:
    """What was collected in the end, by policy; the others collect nothing."""
    made = []
    for k in range(len(next(iter(collected.values())))):
        last = [collected.get(name.replace("-", "_"), [0.0] * 9)[k] for name in COMPARED]
        rows = np.column_stack([np.zeros(len(COMPARED)), last])
        n = len(COMPARED)
        made.append(Curves(rows, np.zeros(n), np.zeros((n, 3)), np.zeros((n, 4))))
    return made


def test_the_lead_is_paired() -> None:
    # Grids differ far more than policies do, and always in the same direction.
    held = curves(coaf=[10.0, 110.0, 1011.0], microscopist=[8.0, 108.0, 1008.0])
    more = lead(held, "coaf", "microscopist")
    assert more.value == pytest.approx(7.0 / 3.0)
    assert more.low > 0.0
    assert lead(held, "coaf-paper", "microscopist").value == pytest.approx(-1124.0 / 3.0)
    assert ends(held)[:, COMPARED.index("coaf")].tolist() == [10.0, 110.0, 1011.0]


def test_times_are_drawn_around_the_means_of_the_paper() -> None:
    seconds, counts = np.zeros(3), np.zeros(3)
    for seed in range(8):
        simulator = Simulator(seed, squares=10, pixels=False)
        session = collect(simulator, "take-all", hours=2.0, explore=0.0)
        spent, many = seconds_spent(session)
        seconds, counts = seconds + spent, counts + many[:3]
        patches = [len(survey.patches) for survey in session.surveys.values()]
        assert (many[0], many[3]) == (len(patches), sum(patches))
    # A square is the survey of seven patches; one way in sixteen takes minutes.
    square, move, expose = (seconds / counts).tolist()
    assert square == pytest.approx(7 * 12.09, rel=0.03)
    assert move == pytest.approx(51.99, rel=0.08)
    assert expose == pytest.approx(6.66, rel=0.02)


def test_what_is_kept_of_a_grid_is_all_of_it() -> None:
    rng = np.random.default_rng(0)
    n = len(COMPARED)
    made = Curves(rng.random((n, 5)), rng.random(n), rng.random((n, 3)), rng.random((n, 4)))
    again = Curves.restore(made.plain())
    for name in ("collected", "exposed", "seconds", "counts"):
        assert np.array_equal(getattr(again, name), getattr(made, name))


def test_the_patch_shows_what_the_algorithm_would_take() -> None:
    pytest.importorskip("matplotlib", reason="figures need coaf[experiments]")
    shown = decided_patch(seed=7, hours=0.3, reward=GoodBelow(3.8))
    decision = shown.decision
    assert len(shown.patch.holes) == len(decision.estimates)
    # Holes are taken alone if their hope is worth their seconds, once the way is paid.
    worth = decision.estimates > decision.rate * FAST.expose
    if decision.chosen.any():
        assert (decision.chosen == worth).all()
    axes = figure3a(shown).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts == [f"{estimate:.2f}" for estimate in decision.estimates]
    # Each number is at the top right of its hole; rows of an image go down.
    for text, place in zip(axes.texts, shown.image.to_pixels(_places(shown)), strict=True):
        x, y = text.get_position()
        assert x > place[0]
        assert y < place[1]
    widths = [line.get_linewidth() for line in axes.lines]
    assert [width > 2.0 for width in widths] == decision.chosen.tolist()


def _places(shown: DecidedPatch) -> list[tuple[float, float]]:
    return [(hole.x, hole.y) for hole in shown.patch.holes]


def test_one_grid_has_no_interval(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seeds is 1"):
        reproduce(out=tmp_path, seeds=1)


def test_interrupted_it_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need coaf[experiments]")

    def stop(stage: str, count: int, total: int | None) -> None:
        if count == 1:
            raise KeyboardInterrupt

    done: list[int] = []
    settings: dict[str, Any] = {"seeds": 2, "hours": 0.05, "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        reproduce(out=tmp_path, **settings, watch=stop)
    assert len(list(tmp_path.rglob("unfinished/*/*.npy"))) == 1
    summary = reproduce(
        out=tmp_path, **settings, watch=lambda stage, count, total: done.append(count)
    )
    assert done == [1, 2, 3, 4]
    assert not (tmp_path / "unfinished").exists()
    whole = reproduce(out=tmp_path / "whole", **settings)
    for key in ("claims", "experiments"):
        assert summary[key] == whole[key]
    two = reproduce(out=tmp_path / "two", **(settings | {"workers": 2}))
    assert two["experiments"] == whole["experiments"], "it does not matter where it is played"
