"""Pilots on many grids: what is counted, and that it does not matter where they are played."""

import json
from pathlib import Path
from typing import Any

import pytest

from coaf.cryoem.pilots.catalogue import OTHERS
from coaf.cryoem.reports.grids import run_grids
from coaf.cryoem.reward import Particles


def test_leads_are_paired_and_workers_do_not_matter(tmp_path: Path) -> None:
    same: dict[str, Any] = {"seeds": range(2), "hours": 0.2, "squares": 2, "policy": "take-all"}
    one = run_grids(**same, workers=1, out=tmp_path / "one")
    two = run_grids(**same, workers=2, out=tmp_path / "two")
    assert one.pop("files") != two.pop("files")
    assert one == two
    assert json.loads((tmp_path / "one" / "summary.json").read_text()) == one
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
    ) as started:
        there = run_grids(**same, dask=started.scheduler_address, out=tmp_path / "there")
    assert there.pop("files")
    assert there == one
    ours = one["policies"]["take-all"]
    assert ours["lead"] is None
    for name, found in one["policies"].items():
        if name != "take-all":
            ahead = ours["good"]["value"] - found["good"]["value"]
            assert found["lead"]["value"] == pytest.approx(ahead)
    assert "lead of take-all" in (tmp_path / "one" / "report.html").read_text()


def test_particles_are_counted_as_such(tmp_path: Path) -> None:
    same: dict[str, Any] = {"seeds": range(2), "hours": 0.2, "squares": 2, "policy": "take-all"}
    every = run_grids(**same, reward=Particles(100.0), workers=1, out=tmp_path / "hundreds")
    each = run_grids(**same, reward=Particles(1.0), workers=1, out=tmp_path / "ones")
    assert every["counted"] == "particles"
    ours, theirs = (found["policies"]["take-all"] for found in (every, each))
    assert ours["good"]["value"] == pytest.approx(theirs["good"]["value"])
    assert ours["good"]["value"] > 100.0
    assert set(every["policies"]) == {"coaf", *OTHERS}
    page = (tmp_path / "hundreds" / "report.html").read_text(encoding="utf-8")
    assert "particles an hour" in page
    assert "good" not in page.lower().split("<body")[1]


def test_one_grid_has_no_interval(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="intervals need at least 2"):
        run_grids(seeds=[0], out=tmp_path)
    with pytest.raises(ValueError, match="policy is 'best'"):
        run_grids(seeds=range(2), policy="best", out=tmp_path)
