"""The paper's cryo-EM experiments, small."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaf.cryoem.reports.reproduce import POLICIES, Curves, ends, lead, play_grid, reproduce


def test_what_is_reported_is_what_was_played(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need coaf[experiments]")
    summary = reproduce(out=tmp_path, seeds=2, hours=0.2, seed=7, workers=1)
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    assert all(Path(file).stat().st_size > 0 for file in summary["files"])
    for name, result in summary["experiments"].items():
        again = play_grid(name, 8, 0.2)
        assert list(result["grids"][1].values()) == again.collected[:, -1].tolist()
        for policy in POLICIES:
            mean = np.mean([grid[policy] for grid in result["grids"]])
            assert result["policies"][policy]["collected"]["value"] == pytest.approx(mean)
    assert len(summary["claims"]) == 2
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(claim["evidence"] in page for claim in summary["claims"])


def curves(ours: list[float], theirs: list[float]) -> list[Curves]:
    made = []
    for a, b in zip(ours, theirs, strict=True):
        collected = np.array([[0.0, a], [0.0, b], [0.0, 0.0]])
        made.append(Curves(collected, np.zeros(3)))
    return made


def test_the_lead_is_paired() -> None:
    # Grids differ far more than policies do, and always in the same direction.
    held = curves([10.0, 110.0, 1011.0], [8.0, 108.0, 1008.0])
    more = lead(held, "microscopist")
    assert more.value == pytest.approx(7.0 / 3.0)
    assert more.low > 0.0
    assert ends(held)[:, 0].tolist() == [10.0, 110.0, 1011.0]


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
