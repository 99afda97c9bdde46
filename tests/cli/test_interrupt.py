"""Ctrl-C: a sentence on what was kept and how to go on, 130, and nobody left behind."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaf.bandit.kept import place
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.simulator.record import record
from coaf.cryoem.simulator.simulator import Simulator

pytestmark = pytest.mark.skipif(
    not hasattr(os, "killpg"), reason="Ctrl-C is sent in another way on this system"
)

LONG_ENOUGH = 300.0  # seconds after which all is killed, so that a failure does not hang


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """A shell lets what it runs in the background ignore Ctrl-C, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(*command: str, after: str, times: int = 1) -> tuple[int, str, str]:
    """Press Ctrl-C once a line was said so many times on stderr: exit code, stdout and stderr.

    The key reaches the whole group of processes, as in a terminal. Both pipes end only when every
    process that holds them has ended, so that returning at all says that nobody was left behind.
    The code is what a shell would say: a Python that meets the key inside an `exec` of text, as
    dataclasses and numba do them, ends itself by the signal however the key was answered.
    """
    with subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        guard = threading.Timer(LONG_ENOUGH, os.killpg, (process.pid, signal.SIGKILL))
        guard.start()
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if sum(text.startswith(after) for text in said) == times:
                os.killpg(process.pid, signal.SIGINT)
                break
        said += process.stderr.readlines()
        printed = process.stdout.read()
        code = process.wait()
        guard.cancel()
    return code if code >= 0 else 128 - code, printed, "".join(said)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = record(Simulator(3, squares=2, pixels=False, prediction=True))
    return write_recording(recording, tmp_path_factory.mktemp("recording"))


PRESSED = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
{start}
"""
SCRIPT = "from coaf.cli import app; sys.exit(app())"
MODULE = "runpy.run_module('coaf.cli', run_name='__main__', alter_sys=True)"


@pytest.mark.parametrize("start", [SCRIPT, MODULE])
@pytest.mark.parametrize("module", ["numpy", "typer", "coaf.bandit.select", "coaf.cli.warm"])
def test_while_the_command_line_loads(module: str, start: str) -> None:
    command = [sys.executable, "-c", PRESSED.format(start=start), module]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode in (130, -signal.SIGINT)  # what a shell calls 130, too
    assert (ended.stdout, ended.stderr) == ("", "Stopped. No work was under way.\n")


BEGIN_AGAIN = (
    "Stopped. Nothing was finished, and nothing was written. "
    "The same command starts from the beginning.\n"
)


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("run --out OUT --hours 1000", "drawing"),
        ("replay RECORDING --orders 2000 --workers 2", "playing"),
        ("replay RECORDING --orders 2000 --workers 1", "playing"),
        ("reproduce cryoem --out OUT --hours 1000 --workers 2", "playing"),
        ("reproduce cryoem --out OUT --hours 1000 --workers 1", "playing"),
        ("bench --growth", "measuring"),
    ],
)
def test_nothing_was_kept(command: str, after: str, recording: Path, tmp_path: Path) -> None:
    line = command.replace("OUT", str(tmp_path)).replace("RECORDING", str(recording))
    code, printed, said = interrupt("-m", "coaf.cli", *line.split(), after=after)
    assert (code, printed) == (130, "")
    assert said.endswith(BEGIN_AGAIN)
    assert "Traceback" not in said
    assert "Error" not in said
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_session_is_kept_though_its_rivals_are_not_over(tmp_path: Path) -> None:
    line = f"run --out {tmp_path} --policy take-all --hours 3 --squares 6"
    code, printed, said = interrupt("-m", "coaf.cli", *line.split(), after="coaf-paper")
    assert (code, printed) == (130, "")
    assert said.endswith(
        f"Stopped. Written to {tmp_path}: session.json. "
        "The same command starts from the beginning.\n"
    )
    assert read_recording(tmp_path).shots


def test_what_was_finished_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiled code is taken from where it lies; films are prepared elsewhere.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(place.candidates()[0].parents[1]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = tmp_path / "u.data"
    ratings = ((user, film, 1 + (user * film) % 5) for user in range(60) for film in range(60))
    data.write_text("".join(f"{user}\t{film}\t{rating}\t0\n" for user, film, rating in ratings))
    line = f"reproduce movielens --data {data} --out {tmp_path} --rounds 40 --replicates 6"
    code, printed, said = interrupt("-m", "coaf.cli", *line.split(), after="sensitivity")
    assert (code, printed) == (130, "")
    folder = tmp_path / "unfinished"
    parts = list(folder.rglob("*.npy"))
    assert parts
    assert said.endswith(
        f"Stopped. What was finished is kept in {folder} ({len(parts)} files). "
        "The same command goes on from there.\n"
    )
    assert "Traceback" not in said


def test_warm_keeps_what_was_compiled() -> None:
    code, printed, said = interrupt("-m", "coaf.cli", "warm", after="Compiling")
    assert (code, printed) == (130, "")
    assert "Stopped. " in said
    assert "Traceback" not in said


WAITING = """
import os, sys, threading
from coaf.worlds.cluster import processes

def stay(number):
    os.write(2, b"up\\n")  # at once, so that two processes do not mix
    threading.Event().wait()

if __name__ == "__main__":
    try:
        with processes(2, fresh={fresh}) as pool:
            list(pool.map(stay, range(8)))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
"""


@pytest.mark.parametrize("fresh", [True, False])
def test_worker_processes_end_at_once(fresh: bool, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WAITING.format(fresh=fresh))
    code, _, said = interrupt(str(script), after="up", times=2)
    assert (code, said) == (0, "up\nup\ninterrupted\n")
