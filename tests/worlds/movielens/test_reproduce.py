"""`coaf reproduce movielens` from ratings to report."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

from coaf.cli import app
from coaf.worlds.movielens import films as films_module
from coaf.worlds.movielens import reproduce as module
from coaf.worlds.movielens import sensitivity
from coaf.worlds.movielens.experiment import DEFAULT, PAPER
from coaf.worlds.movielens.films import Films
from coaf.worlds.movielens.ratings import Ratings
from coaf.worlds.movielens.reproduce import reproduce

runner = CliRunner()
SMALL = ["--rounds", "40", "--replicates", "6"]


@pytest.fixture(autouse=True, scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Few cases of sensitivity, and a cache of its own."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(films_module, "cache_folder", lambda: cache)
        patch.setattr(sensitivity, "SWEEPS", {"xi": (0.5, 1.0), "survey": (0.3, 1.0)})
        yield


@pytest.fixture(scope="module")
def data(ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ratings as 100K has them."""
    path = tmp_path_factory.mktemp("data") / "u.data"
    users, films = ratings.user_ids[ratings.users], ratings.film_ids[ratings.films]
    rows = zip(users, films, ratings.values, strict=True)
    path.write_text("".join(f"{u}\t{f}\t{int(r)}\t0\n" for u, f, r in rows))
    return path


def call(*options: str) -> Any:
    return runner.invoke(app, ["reproduce", "movielens", *SMALL, *options])


@pytest.fixture(scope="module")
def out(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a finished run leaves."""
    folder = tmp_path_factory.mktemp("out")
    said = call("--data", str(data), "--out", str(folder), "--json", "--workers", "1")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout) == json.loads((folder / "summary.json").read_text())
    return folder


def numbers(folder: Path) -> str:
    """All that does not depend on when and where it was computed."""
    summary = json.loads((folder / "summary.json").read_text())
    del summary["seconds"], summary["files"], summary["tasks_of_an_earlier_run"]
    for row in summary["policies"].values():
        del row["microseconds_per_round"]
    return json.dumps(summary)


def test_summary(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    assert "u.data" in summary["data"]
    assert summary["gamma_star"] > 1.0
    assert set(summary["policies"]) == {*PAPER, DEFAULT}
    assert [set(c) for c in summary["claims"]] == [{"claim", "held", "evidence"}] * 5
    assert all(Path(f).stat().st_size > 1000 for f in summary["files"])
    assert {Path(f).suffix for f in summary["files"]} == {".html", ".png", ".svg", ".nc"}
    assert not (out / "unfinished").exists()


def test_report(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "http" not in page
    drawings = [base64.b64decode(part.split('"')[0]) for part in page.split("base64,")[1:]]
    assert len(drawings) == 5
    for drawing in drawings:  # names of XML dialects are no requests
        links = re.findall(rb'(?:href|src)="([^"]*)"', drawing)
        assert all(link.startswith((b"#", b"data:")) for link in links)
    world = summary["world"]
    for number in (summary["gamma_star"], world["norm_bound"], world["noise"]):
        assert f"{number:.4f}" in page
    assert summary["data"] in page
    assert page.count("<img ") == 5


def test_traces(out: Path) -> None:
    summary = json.loads((out / "summary.json").read_text())
    with xarray.open_dataset(out / "traces.nc", engine="scipy") as traces:
        assert dict(traces.sizes) == {"policy": 5, "replicate": 6, "round": 40}
        last = traces.paired.sel(policy=DEFAULT).isel(round=-1)
        expected = summary["policies"][DEFAULT]["paired"]["value"]
        assert float(last.mean()) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_a_table_for_people_and_the_same_numbers_for_any_workers(
    data: Path, out: Path, tmp_path: Path
) -> None:
    said = call("--data", str(data), "--out", str(tmp_path), "--workers", "3")
    assert said.exit_code == 0, said.output
    assert "Data: " in said.output
    assert "UCB estimates beat Thompson sampling" in said.output
    assert "report.html" in said.output.replace("\n", "")
    assert numbers(tmp_path) == numbers(out)


def test_interrupted_it_goes_on(data: Path, out: Path, tmp_path: Path) -> None:
    done: list[int] = []

    def stop(stage: str, count: int, total: int | None) -> None:
        if stage == "playing" and count == 1:
            raise KeyboardInterrupt

    def watch(stage: str, count: int, total: int | None) -> None:
        if stage == "playing":
            done.append(count)

    with pytest.raises(KeyboardInterrupt):
        reproduce(data, out=tmp_path, rounds=40, replicates=6, watch=stop)
    assert (tmp_path / "unfinished").exists()
    reproduce(data, out=tmp_path, rounds=40, replicates=6, watch=watch)
    assert done == [1, 2, 3, 4, 5, 6]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["tasks_of_an_earlier_run"] == 1
    assert "1 parts in an earlier run" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not (tmp_path / "unfinished").exists()
    assert numbers(tmp_path) == numbers(out)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\t2\t3\t4\n1\t3\tfive\t4\n", "line 2"),
        ("1\t2\t3\t4\n1\t3\n", "line 2"),
        ("", "empty"),
    ],
)
def test_malformed_data_is_an_error_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "u.data"
    path.write_text(text)
    result = call("--data", str(path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert said in result.output.replace("\n", " ")
    assert "Traceback" not in result.output


def test_missing_data_and_two_places_to_play_are_errors(tmp_path: Path) -> None:
    result = call("--data", str(tmp_path / "nowhere.dat"), "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "nowhere.dat" in result.output.replace("\n", "")
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    with pytest.raises(ValueError, match="the folder for results"):
        reproduce("generated", out=occupied)
    with pytest.raises(ValueError, match="at least 2"):
        reproduce("generated", out=tmp_path, replicates=1)
    result = call("--workers", "2", "--dask", "tcp://127.0.0.1:9", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "not both" in result.output


def test_the_real_films_end_with_a_report(
    real_films: Films, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real: Ratings
) -> None:
    monkeypatch.setattr(module, "obtain", lambda *_args, **_settings: real)
    monkeypatch.setattr(module, "prepare", lambda *_args, **_settings: real_films)
    summary = reproduce(None, out=tmp_path, rounds=2000, replicates=8)
    held = {c["claim"]: c["held"] for c in summary["claims"]}
    assert held["UCB estimates beat Thompson sampling"]
    assert held["COAF has sublinear regret"]
    assert summary["thresholds"]["reached_by_1.75"] > 0.999
    last = {name: row["paired"]["value"] for name, row in summary["policies"].items()}
    assert last[DEFAULT] < last["COAF"] < last["COAF-TS"]
    rates = [row["gamma_star"] for row in summary["sensitivity"] if row["parameter"] == "xi"]
    assert np.ptp(rates) == 0.0
