"""What all commands have in common: options refused before work, and output any terminal takes."""

import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from coaf.cli import app
from coaf.cli.terminal import plain, say
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator

runner = CliRunner()


def commands(group: typer.Typer, *before: str) -> Iterator[tuple[list[str], Any]]:
    """Every command: how it is called, and its function."""
    for command in group.registered_commands:
        assert command.callback is not None
        yield [*before, command.name or command.callback.__name__], command.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from commands(inner.typer_instance, *before, str(inner.name))


ALL = list(commands(app))
NAMES = [" ".join(name) for name, _ in ALL]


def options(function: Any, *kinds: type) -> list[str]:
    """The options of a command that take one of these kinds of values."""
    found = []
    for name in inspect.signature(function).parameters:
        kind, *about = get_args(get_type_hints(function, include_extras=True)[name])
        if {kind, *get_args(kind)} & set(kinds) and "Argument" not in type(about[0]).__name__:
            found.append(f"--{name.replace('_', '-')}")
    return found


NUMBERS = [
    (name, option, value)
    for name, function in ALL
    for kind, values in ((float, ("nan", "inf", "-1", "1e300")), (int, ("nan", "-1", "1" * 30)))
    for option in options(function, kind)
    for value in values
]
FOLDERS = [(name, option) for name, function in ALL for option in options(function, Path)]


def test_every_command_is_looked_at() -> None:
    assert set(NAMES) == {
        "bench",
        "replay",
        "run",
        "warm",
        "reproduce cryoem",
        "reproduce movielens",
    }
    assert len(NUMBERS) > 50
    assert sum(option == "--out" for _, option in FOLDERS) == 4


@pytest.mark.parametrize(("name", "option", "value"), NUMBERS)
def test_numbers_out_of_range_are_refused(name: list[str], option: str, value: str) -> None:
    result = runner.invoke(app, [*name, option, value])
    assert result.exit_code == 2, result.output
    assert f"'{option}'" in result.stderr
    assert not result.stdout


def told(text: str) -> str:
    """What a box holds, in one line and without spaces: paths are broken anywhere."""
    return "".join(re.sub(r"[│╭╮╰╯─]", "", text).split())


WITH_OUT = [name for name, option in FOLDERS if option == "--out"]


@pytest.mark.parametrize("name", WITH_OUT)
def test_results_need_a_folder(name: list[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    places = {
        file: "is a file; give a folder",
        tmp_path / "nowhere" / "new": "does not exist; give a folder",
        file / "new": "nothing can be written",
    }
    for place, said in places.items():
        result = runner.invoke(app, [*name, "--out", str(place)])
        assert result.exit_code == 2, result.output
        assert told(said) in told(result.stderr)
        assert told(str(tmp_path)) in told(result.stderr)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", WITH_OUT)
def test_results_need_a_folder_that_can_be_written(
    name: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**settings: Any) -> None:  # a superuser may write anywhere
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    result = runner.invoke(app, [*name, "--out", str(tmp_path)])
    assert result.exit_code == 2, result.output
    assert told("(Permission denied); give another folder.") in told(result.stderr)


def coaf(*line: str, **environment: str) -> tuple[str, str]:
    """What pipes get of a command in this environment, as stdout and stderr."""
    ours = {"PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "LC_CTYPE", "LANG", "COLUMNS"}
    kept = {key: value for key, value in os.environ.items() if key not in ours}
    done = subprocess.run(
        [sys.executable, "-m", "coaf.cli", *line],
        env=kept | environment,
        capture_output=True,
        check=True,
    )
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return done.stdout.decode(encoding), done.stderr.decode(encoding)


@pytest.mark.parametrize("name", ["", "reproduce", *NAMES])
def test_help_is_whole_in_fifty_columns(name: str) -> None:
    printed, _ = coaf(*name.split(), "--help", PYTHONIOENCODING="ascii", COLUMNS="50")
    assert "Usage: " in printed
    assert max(map(len, printed.splitlines())) <= 50
    assert "..." not in printed.replace("[ARGS]...", "")  # nothing was cut


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = record(Simulator(3, squares=2, pixels=False, prediction=True))
    return write_recording(recording, tmp_path_factory.mktemp("recording"))


def replayed(recording: Path, **environment: str) -> tuple[str, str]:
    line = ["replay", str(recording), "--orders", "1", "--workers", "1", "--policy", "take-all"]
    return coaf(*line, **environment)


@pytest.mark.parametrize(
    ("environment", "unit"),
    [
        ({"PYTHONIOENCODING": "ascii"}, "A"),
        ({"LANG": "C"}, "A"),
        ({"LC_ALL": "POSIX"}, "A"),
        ({"PYTHONIOENCODING": "cp1252"}, "Å"),
        ({"PYTHONIOENCODING": "utf-8"}, "Å"),
    ],
)
def test_tables_in_any_encoding(recording: Path, environment: dict[str, str], unit: str) -> None:
    printed, said = replayed(recording, **environment)
    assert f"good below 3.8 {unit}" in printed
    assert printed.isascii() == (unit == "A")
    assert "\x1b" not in printed + said  # a pipe gets no control codes
    assert said.splitlines().count("playing ...") == 1  # and no bars
    assert "%" not in said


def test_a_narrow_table_loses_no_number(recording: Path) -> None:
    wide, _ = replayed(recording, PYTHONIOENCODING="utf-8", COLUMNS="100")
    usual, _ = replayed(recording, PYTHONIOENCODING="utf-8", COLUMNS="80")
    narrow, _ = replayed(recording, PYTHONIOENCODING="utf-8", COLUMNS="50")
    assert "┃ pilot" in wide
    assert max(map(len, narrow.splitlines())) <= 50
    numbers = r"\d+\.\d+"
    assert re.findall(numbers, narrow) == re.findall(numbers, usual) == re.findall(numbers, wide)
    assert re.search(r"^take-all +\d+\.\d +– +\d+\.\d", usual, re.MULTILINE), "a row is a line"
    assert re.search(r"take-all\n  good per hour   \d+\.\d\n  standard error  –\n", narrow)


def test_sentences_are_wrapped_in_a_terminal_alone() -> None:
    path = "/a/path/that/must/not/be/broken-anywhere/report.html"
    for terminal in (True, False):
        held = io.StringIO()
        to = Console(file=held, force_terminal=terminal, width=30, color_system=None)
        say(f"What was finished is kept in {path} for good.", to=to)
        assert path in held.getvalue()
        lines = held.getvalue().splitlines()
        assert len(lines) == (3 if terminal else 1)
        assert path in lines[1 if terminal else 0]


def test_letters_that_ascii_lacks() -> None:
    assert plain("μ ± 2 σ ≤ Γ*, “naïve” – 3 Å…") == 'mu +- 2 ? <= Gamma*, "naive" - 3 A...'
    assert plain("e\u0301 \udcff") == "e ?"
