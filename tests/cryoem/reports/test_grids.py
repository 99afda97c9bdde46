"""Pilots on many grids: what is counted, and that it does not matter where they are played."""

import json
from pathlib import Path
from typing import Any

import pytest

from coaf.cryoem.reports.grids import run_grids


def test_leads_are_paired_and_workers_do_not_matter(tmp_path: Path) -> None:
    same: dict[str, Any] = {"seeds": range(2), "hours": 0.2, "squares": 2, "policy": "take-all"}
    one = run_grids(**same, workers=1, out=tmp_path / "one")
    two = run_grids(**same, workers=2, out=tmp_path / "two")
    assert one.pop("files") != two.pop("files")
    assert one == two
    assert json.loads((tmp_path / "one" / "summary.json").read_text()) == one
    ours = one["policies"]["take-all"]
    assert ours["lead"] is None
    for name, found in one["policies"].items():
        if name != "take-all":
            ahead = ours["good"]["value"] - found["good"]["value"]
            assert found["lead"]["value"] == pytest.approx(ahead)
    assert "lead of take-all" in (tmp_path / "one" / "report.html").read_text()


def test_one_grid_has_no_interval(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="intervals need at least 2"):
        run_grids(seeds=[0], out=tmp_path)
    with pytest.raises(ValueError, match="policy is 'best'"):
        run_grids(seeds=range(2), policy="best", out=tmp_path)
