"""The commands, as a user calls them."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import coaf
from coaf.cli import app
from coaf.cryoem.pilots.catalogue import GRID_RULES, OTHERS, PILOTS
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.replay import PLAYED
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator

# Before 8.2, click's runner mixes stderr into stdout unless told not to; later ones cannot be told.
OLD = "mix_stderr" in inspect.signature(CliRunner).parameters
APART: dict[str, Any] = {"mix_stderr": False} if OLD else {}
runner = CliRunner(**APART)

SMALL = ["--squares", "2", "--hours", "0.3", "--seed", "3"]


def test_run_prints_json_and_writes_a_report(tmp_path: Path) -> None:
    result = runner.invoke(app, ["run", *SMALL, "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert set(summary["policies"]) == {"coaf", *OTHERS}
    assert summary["session"]["policy"] == "coaf"
    assert summary["session"]["hours"] <= 0.3
    files = {Path(f).name for f in summary["files"]}
    assert {"report.html", "session.json", "collected.png"} <= files
    assert all(Path(f).stat().st_size > 0 for f in summary["files"])
    events = json.loads((tmp_path / "session.json").read_text())
    assert events["summary"] == summary["session"]


def test_run_works_through_a_cassette_and_begins_with_what_was_learned(tmp_path: Path) -> None:
    cassette = ["run", "--grids", "2", "--squares", "2", "--hours", "0.6", "--seed", "3"]
    result = runner.invoke(app, [*cassette, "--out", str(tmp_path / "first"), "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert set(summary["policies"]) == {"coaf", *GRID_RULES}
    assert summary["grids"][0] == ["grid 1", 240.0 / 3600.0]
    assert (tmp_path / "first" / "knowledge.json").is_file()
    after = ["--from", str(tmp_path / "first"), "--out", str(tmp_path / "second")]
    result = runner.invoke(app, [*cassette, *after])
    assert result.exit_code == 0, result.output
    assert "equal-time: grid 1 at 0.1 h" in result.output
    result = runner.invoke(app, [*cassette, *after, "--good-below", "5"])
    assert result.exit_code != 0
    assert "session for ctf<5 by columns" in " ".join(result.stderr.split())
    result = runner.invoke(app, ["run", "--seeds", "2", *after])
    assert result.exit_code == 2


def test_run_prints_a_table(tmp_path: Path) -> None:
    chosen = ["--policy", "window", "--explore", "0", "--regime", "slow"]
    result = runner.invoke(app, ["run", *SMALL, *chosen, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    first = next(line for line in lines if "window" in line or "coaf" in line)
    assert "window" in first
    assert "report.html" in result.output


@pytest.mark.parametrize("seeds", [[], ["--seeds", "2", "--workers", "1"]])
def test_run_can_be_after_particles(tmp_path: Path, seeds: list[str]) -> None:
    chosen = ["--policy", "take-all", "--reward", "particles", *seeds]
    result = runner.invoke(app, ["run", *SMALL, *chosen, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "particles in 0.3 hours" in result.output
    assert "good" not in result.output.replace("\n", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "best"], "'--policy': there is no pilot 'best'; there are coaf, "),
        (["--reward", "dust"], "Error: cannot read the reward 'dust'"),
        (["--reward", "dust", "--seeds", "2"], "Error: cannot read the reward 'dust'"),
        (["--explore", "1.5"], "'--explore': it is 1.5; give a number, 0 to 1."),
        (["--good-below", "0"], "'--good-below': it is 0.0; give a number, above 0"),
        (["--policy", "in-turn"], "in-turn is a rule for cassettes: give --grids, too."),
        (["--workers", "2"], "--workers and --dask are for many grids: give --seeds"),
    ],
)
def test_run_says_what_was_wrong(tmp_path: Path, options: list[str], said: str) -> None:
    result = runner.invoke(app, ["run", *options, "--out", str(tmp_path)])
    assert result.exit_code == (1 if said.startswith("Error") else 2)
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = record(Simulator(3, squares=2, pixels=False, prediction=True))
    return write_recording(recording, tmp_path_factory.mktemp("recording"))


def test_replay_prints_json(recording: Path) -> None:
    options = ["--orders", "2", "--workers", "1", "--good-below", "6", "--json"]
    policies = ["--policy", "coaf", "--policy", "take-all"]
    result = runner.invoke(app, ["replay", str(recording), *options, *policies])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["policies"]) == {"coaf", "take-all"}
    assert {"good_per_hour", "good", "exposed", "hours"} <= set(found["policies"]["coaf"])
    assert {"clairvoyant", "best_fixed_cut"} <= set(found["yardsticks"])


def test_replay_finds_the_recording_of_a_session(tmp_path: Path) -> None:
    session = runner.invoke(app, ["run", *SMALL, "--out", str(tmp_path)])
    assert session.exit_code == 0, session.output
    options = ["--orders", "1", "--workers", "1", "--policy", "take-all", "--json"]
    whole, inside = (
        runner.invoke(app, ["replay", str(folder), *options])
        for folder in (tmp_path, tmp_path / "recording")
    )
    assert whole.exit_code == 0, whole.output
    assert whole.stdout == inside.stdout


def test_replay_prints_a_table(recording: Path) -> None:
    options = ["--orders", "2", "--workers", "1", "--feedback-delay", "measured"]
    result = runner.invoke(app, ["replay", str(recording), *options, "--policy", "take-all"])
    assert result.exit_code == 0, result.output
    assert "take-all" in result.output
    assert "clairvoyant" in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--feedback-delay", "soon"], "'--feedback-delay': it is soon; give seconds"),
        (["--feedback-delay", "nan"], "'--feedback-delay': it is nan; give seconds"),
        (["--policy", "best"], "'--policy': there is no pilot 'best'; there are coaf, "),
        (["--expose", "-1"], "'--expose': it is -1.0; give a number, above 0"),
        (["--truth", "nowhere.csv"], "'nowhere.csv' does not exist"),
    ],
)
def test_replay_says_what_was_wrong(recording: Path, options: list[str], said: str) -> None:
    result = runner.invoke(app, ["replay", str(recording), "--workers", "1", *options])
    assert result.exit_code == (1 if said.startswith("Error") else 2), result.output
    assert said in result.stderr


def test_replay_of_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    result = runner.invoke(app, ["replay", str(tmp_path)])
    assert result.exit_code == 1
    assert str(tmp_path) in result.stderr.replace("\n", "")


def test_a_wrong_option_is_an_error() -> None:
    assert runner.invoke(app, ["run", "--squares", "0"]).exit_code == 2
    assert runner.invoke(app, ["run", "--regime", "medium"]).exit_code == 2
    assert runner.invoke(app, ["bench", "--limit", "nowhere.c"]).exit_code == 2


@pytest.mark.parametrize(("command", "pilots"), [("run", PILOTS), ("replay", PLAYED)])
def test_help_names_all_pilots(command: str, pilots: tuple[str, ...]) -> None:
    said = runner.invoke(app, [command, "--help"], env={"COLUMNS": "60"}).output
    for pilot in pilots:
        assert re.search(rf"(?<![\w-]){pilot}(?![\w-])", said), pilot


def test_version() -> None:
    assert runner.invoke(app, ["--version"]).stdout.strip() == coaf.__version__


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["run"],
        ["replay"],
        ["bench"],
        ["reproduce"],
        ["reproduce", "movielens"],
        ["reproduce", "cryoem"],
    ],
)
def test_help_says_what_it_does(command: list[str]) -> None:
    result = runner.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output
