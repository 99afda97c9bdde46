"""`coaf warm`."""

import json

import typer

from coaf.cli.base import JsonFlag, app, console, errors


@app.command()
def warm(as_json: JsonFlag = False) -> None:
    """Compile everything ahead, so that no decision waits for it. For images of containers.

    The code is kept in the user's cache folder; XDG_CACHE_HOME or NUMBA_CACHE_DIR names another.
    Leaves with 1 if it could not be kept, as every start would compile it again.
    """
    from coaf.worlds.warm import warm as whole  # loads numba

    if not as_json:
        errors.print("Compiling, which takes about a minute the first time.")
    done = whole()
    if as_json:
        folder = None if done.folder is None else str(done.folder)
        found = {"folder": folder, "compiled": done.compiled, "seconds": done.seconds}
        typer.echo(json.dumps({**found, "kept": not done.lost, "lost": done.lost}))
    elif not done.lost:
        console.print(str(done), markup=False, highlight=False, soft_wrap=True)
    if done.lost:
        errors.print(str(done), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1)
