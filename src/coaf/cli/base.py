"""What the commands share: the application, and how it fails."""

from importlib.util import find_spec
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

import coaf
from coaf.cli.stopped import stopped_with_a_sentence
from coaf.cli.terminal import errors, never_fail_to_encode, say

ROOM_FOR_BOXES = 70  # columns; in fewer, boxes around help cut its words


class App(typer.Typer):
    """The application: Ctrl-C ends it with a sentence before it knows which command is meant."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run, as from a shell."""
        with stopped_with_a_sentence():
            return super().__call__(*args, **kwargs)


class Commands(TyperGroup):
    """All commands: they print on any terminal, and Ctrl-C ends them with a sentence."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command, as from a shell."""
        never_fail_to_encode()
        if Console().width < ROOM_FOR_BOXES:
            _without_boxes(self)
        return super().main(*args, **kwargs)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read a command's line."""
        with stopped_with_a_sentence():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run a command whose line was read."""
        with stopped_with_a_sentence():  # outside of `work`, which has more to say
            return super().invoke(ctx)


def _without_boxes(group: TyperGroup) -> None:
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            _without_boxes(command)
        elif isinstance(command, TyperCommand):
            command.rich_markup_mode = None


app = App(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Decide, while the clock runs, which options are worth their time.",
)
reproduce = typer.Typer(
    no_args_is_help=True, help="The paper's experiments: numbers, figures, a report."
)
app.add_typer(reproduce, name="reproduce")

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


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
    say(text if isinstance(error, str) else f"Error: {text}", to=errors)
    raise typer.Exit(1)
