"""What the commands share: the application, where they print, and how they fail."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import coaf

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Decide, while the clock runs, which options are worth their time.",
)
reproduce = typer.Typer(
    no_args_is_help=True, help="The paper's experiments: numbers, figures, a report."
)
app.add_typer(reproduce, name="reproduce")

console = Console()
errors = Console(stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

# What bad input raises, told in a sentence. Anything else is a fault of ours, and shows where.
BAD_INPUT = (OSError, ValueError, KeyError, ModuleNotFoundError)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(coaf.__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Decide, while the clock runs, which options are worth their time."""


def needs(*modules: str, extra: str = "experiments") -> None:
    """Leave with a sentence where an extra is not installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        fail(f"This needs {' and '.join(missing)}: pip install 'coaf[{extra}]'")


def fail(error: str | Exception) -> NoReturn:
    """Say what was wrong, and leave with 1."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    message = text if isinstance(error, str) else f"Error: {text}"
    errors.print(message, markup=False, highlight=False)
    raise typer.Exit(1)


@contextmanager
def bars(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for each stage. What an earlier run had finished does not count as speed."""
    with Progress(
        TextColumn("{task.description:12}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
        disable=quiet,
        transient=True,
    ) as shown:
        tasks: dict[str, TaskID] = {}

        def watch(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = shown.add_task(stage, completed=done, total=total)
            shown.update(tasks[stage], completed=done, total=total)

        yield watch
