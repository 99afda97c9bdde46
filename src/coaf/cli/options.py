"""Options that are checked before any work: numbers in their ranges, and folders for results."""

import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

SEEDS = 2**32 - 1


def number(
    text: str,
    *,
    metavar: str = "N",
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
) -> Any:
    """An option that takes finite numbers of a range only, and says which in its help."""
    allowed = _range(low, above, high)
    return typer.Option(
        metavar=metavar, help=f"{text} ({allowed}).", callback=_check(allowed, low, above, high)
    )


def _range(low: float | None, above: float | None, high: float | None) -> str:
    least = f"above {above}" if low is None else f"{low} or more"
    if high is None:
        return least
    return f"{least}, up to {high}" if low is None else f"{low} to {high}"


def _check(
    allowed: str, low: float | None, above: float | None, high: float | None
) -> Callable[[float | None], float | None]:
    def check(value: float | None) -> float | None:
        if value is None:  # not given
            return None
        fits = (
            math.isfinite(value)
            and (low is None or value >= low)
            and (above is None or value > above)
            and (high is None or value <= high)
        )
        if not fits:
            raise typer.BadParameter(f"it is {value}; give a number, {allowed}.")
        return value

    return check


def delay(value: str) -> str:
    """Check that it is a number of seconds, or `measured`."""
    try:
        fits = value == "measured" or 0.0 <= float(value) < math.inf
    except ValueError:
        fits = False
    if not fits:
        raise typer.BadParameter(f"it is {value}; give seconds, 0 or more, or the word measured.")
    return value


def check_pilots(named: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a pilot that is not among those known, which take too long to load for an option."""
    for name in named:
        if name not in known:
            raise typer.BadParameter(
                f"there is no pilot {name!r}; there are {', '.join(known)}.",
                param_hint="'--policy'",
            )


def folder(text: str) -> Any:
    """An option that names a folder for results, which is made if it is not there."""
    return typer.Option(metavar="FOLDER", help=text, callback=_writable)


def _writable(ctx: typer.Context, param: typer.CallbackParam, value: Path | None) -> Path | None:
    if value is None:  # not given
        return None
    if value.exists() and not value.is_dir():
        raise typer.BadParameter(f"{value} is a file; give a folder, or a name for a new one.")
    chosen = value != Path(str(param.get_default(ctx)))
    if chosen and not value.absolute().parent.exists():
        raise typer.BadParameter(
            f"{value.parent} does not exist; give a folder, or a name for a new one in a folder "
            "that exists."
        )
    here = next(place for place in (value, *value.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=here):
            pass
    except OSError as error:
        raise typer.BadParameter(
            f"nothing can be written in {here} ({error.strerror}); give another folder."
        ) from None
    return value
