"""The commands, as a user calls them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import coaf
from coaf.cli import app

runner = CliRunner()


def test_run_prints_json_and_writes_figures(tmp_path: Path) -> None:
    options = ["--rounds", "60", "--replicates", "2", "--dim", "3", "--out", str(tmp_path)]
    result = runner.invoke(app, ["run", *options, "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert {Path(f).name for f in summary["figures"]} == {"regret.png", "regret.svg"}
    assert all(Path(f).stat().st_size > 0 for f in summary["figures"])
    shares = {name: row["share_of_optimum"] for name, row in summary["policies"].items()}
    assert shares["oracle (true means)"] > shares["take all"]
    assert all(row["regret"] >= 0.0 for row in summary["policies"].values())


def test_run_prints_a_table(tmp_path: Path) -> None:
    options = ["--rounds", "30", "--replicates", "1", "--dim", "2", "--out", str(tmp_path)]
    result = runner.invoke(app, ["run", *options])
    assert result.exit_code == 0, result.output
    assert "reward per second" in result.output
    assert "regret.png" in result.output


def test_a_wrong_option_is_an_error() -> None:
    assert runner.invoke(app, ["run", "--rounds", "0"]).exit_code == 2
    assert runner.invoke(app, ["bench", "--limit", "nowhere.c"]).exit_code == 2


def test_version() -> None:
    assert runner.invoke(app, ["--version"]).stdout.strip() == coaf.__version__


@pytest.mark.parametrize(
    "command", [[], ["run"], ["bench"], ["reproduce"], ["reproduce", "movielens"]]
)
def test_help_says_what_it_does(command: list[str]) -> None:
    result = runner.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output
