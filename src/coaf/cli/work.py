"""Work that commands do: its progress, and what is said when it fails or is interrupted."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from coaf.cli.base import fail
from coaf.cli.stopped import INTERRUPTED
from coaf.cli.terminal import errors, say
from coaf.worlds.progress import Tell

# What bad input raises, told in a sentence. Anything else is a fault of ours, and shows where.
BAD_INPUT = (OSError, ValueError, KeyError, ModuleNotFoundError)


@contextmanager
def work(*, quiet: bool, out: Path | None = None, resume: Path | None = None) -> Iterator[Tell]:
    """Show the progress of the block; leave with a sentence if it fails or is interrupted.

    Parameters
    ----------
    quiet
        Show no progress.
    out
        The folder for results.
    resume
        The folder that holds what is finished, where the same command can go on from it.
    """
    before = _files(out)
    try:
        with progress(quiet=quiet) as watch:
            yield watch
    except KeyboardInterrupt:
        written = sorted(
            path.name for path, time in _files(out).items() if before.get(path) != time
        )
        say(_stopped(out, written, resume), to=errors)
        raise typer.Exit(INTERRUPTED) from None
    except BAD_INPUT as error:
        fail(error)


def _files(folder: Path | None) -> dict[Path, int]:
    """The files of a folder, and when they were written."""
    if folder is None or not folder.is_dir():
        return {}
    return {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}


def _stopped(out: Path | None, written: list[str], resume: Path | None) -> str:
    parts = [] if resume is None else [p for p in resume.rglob("*") if _whole(p)]
    said = ["Stopped."]
    if written:
        said.append(f"Written to {out}: {', '.join(written)}.")
    if parts:
        said.append(f"What was finished is kept in {resume} ({len(parts)} files).")
        said.append("The same command goes on from there.")
    else:
        said.append("The same command starts from the beginning.")
        if not written:
            said.insert(1, "Nothing was finished, and nothing was written.")
    return " ".join(said)


def _whole(path: Path) -> bool:
    return path.is_file() and path.suffix != ".part"


@contextmanager
def progress(*, quiet: bool) -> Iterator[Tell]:
    """A bar for each stage, or where there is no terminal, a line when it begins."""
    if quiet:
        yield lambda stage, done, total: None
    elif errors.is_terminal:
        with _bars() as bars:
            yield _on(bars)
    else:
        yield _in_lines()


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description:12}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
    )


def _on(bars: Progress) -> Tell:
    tasks: dict[str, TaskID] = {}

    def watch(stage: str, done: int, total: int | None) -> None:
        if stage not in tasks:  # what an earlier run had finished does not count as speed
            tasks[stage] = bars.add_task(stage, completed=done, total=total)
        bars.update(tasks[stage], completed=done, total=total)

    return watch


def _in_lines() -> Tell:
    begun: set[str] = set()

    def watch(stage: str, done: int, total: int | None) -> None:
        if stage not in begun:
            begun.add(stage)
            say(f"{stage} ...", to=errors)

    return watch
