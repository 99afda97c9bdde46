"""`coaf warm`."""

import json

import typer

from coaf.cli.base import JsonFlag, app
from coaf.cli.terminal import errors, say
from coaf.cli.work import work


@app.command()
def warm(as_json: JsonFlag = False) -> None:
    """Compile everything ahead, so that no decision waits for it. For images of containers.

    The code is kept in the user's cache folder; XDG_CACHE_HOME or NUMBA_CACHE_DIR names another.
    Leaves with 1 if it could not be kept, as every start would compile it again.
    """
    from coaf.bandit.kept.place import place

    if not as_json:
        say("Compiling, which takes about a minute the first time.", to=errors)
    kept = place()
    with work(quiet=True, resume=None if kept is None else kept.folder):
        from coaf.worlds.warm import warm as whole  # loads numba

        done = whole()
    if as_json:
        folder = None if done.folder is None else str(done.folder)
        found = {"folder": folder, "compiled": done.compiled, "seconds": done.seconds}
        typer.echo(json.dumps({**found, "kept": not done.lost, "lost": done.lost}))
    elif not done.lost:
        say(str(done))
    if done.lost:
        say(str(done), to=errors)
        raise typer.Exit(1)
