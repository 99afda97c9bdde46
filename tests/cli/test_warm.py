"""`coaf.warm` compiles all there is, and compiled files are compiled in one way."""

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import coaf
from coaf.bandit.compiled.products import WIDE
from coaf.bandit.kept.place import PACKAGE, sources
from coaf.cli import app
from coaf.worlds import warm as warming
from coaf.worlds.warm import Warmed

TESTS = Path(__file__).parents[1]
ONE_WAY = PACKAGE / "bandit" / "compiled" / "simd.py"
MAKERS = ("njit", "jit", "vectorize", "guvectorize", "cfunc", "stencil", "jitclass")

WARM = """
import json
import coaf
done = coaf.warm()
from coaf.bandit.kept import files
idle = [files.name_of(f) for f in files.FUNCTIONS if not f.overloads]
print(json.dumps({"folder": str(done.folder), "count": done.compiled, "lost": done.lost,
                  "idle": idle}))
"""

FRESH = """
import json
import numpy as np
import coaf
from bandit.checks.plays import rounds_for, teach
from bandit.checks.subjects import BELIEFS, LATENCIES, ORACLES, POLICIES

def play(policy):
    rounds = rounds_for(policy)
    teach(policy, rounds[:3])
    for one in rounds[3:]:
        policy.decide(one)
    return policy

for make in (*POLICIES.values(), *ORACLES.values()):
    play(make())
for make in BELIEFS.values():
    for index in (coaf.Upper(), coaf.Thompson(), coaf.Mean()):
        policy = play(coaf.COAF(belief=make(), index=index, draws=1))
        policy.belief.forget(0.5)
        policy.belief.settle()
        coaf.COAF.restore(policy.state()).refit(rounds_for(policy)[0].features, np.zeros(3))
X = np.full((4, 3), 0.3)
for latency in LATENCIES.values():
    coaf.COAF(3).decide(coaf.Round(X, latency))
for actions in (coaf.AtMost(2), coaf.Capped(6.5, coaf.AnySubset())):
    coaf.COAF(3).decide(coaf.Round(X, coaf.Additive(5.0, [1.0, 1.0, 2.0, 2.0]), actions))
policies = {
    "coaf": coaf.COAF(3),
    "paper": coaf.COAF.paper(3),
    "thompson": coaf.COAF.paper(3, index="thompson"),
    "threshold": coaf.Threshold(0.3),
    "all": coaf.TakeAll(),
}
coaf.compare(policies, coaf.worlds.Synthetic(3), rounds=5, replicates=2)
from coaf.bandit.kept import files
print(json.dumps(files.misses()))
"""

# While a place is looked for, not even root can write to a file, as in an image that is read-only.
NO_WRITING = """
import resource
from coaf.bandit.kept.place import place
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
assert not place().writable
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def found_by(code: str, home: Path) -> Any:
    settings = {
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(TESTS)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "PATH": os.environ["PATH"],
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "coaf compiles" not in done.stderr
    return json.loads(done.stdout)


def test_afterwards_nothing_is_compiled_even_where_nothing_can_be_written(tmp_path: Path) -> None:
    warmed = found_by(WARM, tmp_path)
    assert Path(warmed["folder"]).parent == tmp_path / "coaf"
    assert warmed["count"] > 50
    assert warmed["lost"] == ""
    # Older releases of numba do not compile what this machine's registers never reach.
    unneeded = {"coaf.bandit.compiled.products._add4"} if WIDE else set()
    assert set(warmed["idle"]) <= unneeded, "never called: add a rehearsal to coaf/worlds/warm.py"
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for code in (FRESH, NO_WRITING + FRESH):
        missing = found_by(code, tmp_path)
        assert missing == {}, "compiled after all: add a rehearsal to coaf/worlds/warm.py"
    again = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert {path: again[path] for path in files if path.is_file()} == {
        path: age for path, age in files.items() if path.is_file()
    }


FILES = sorted(PACKAGE.rglob("*.py"))


def names_in(path: Path) -> set[str]:
    """What a file imports, and every attribute that it mentions, as `numba.njit`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{node.value.id}.{node.attr}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_compile_in_one_way(path: Path) -> None:
    names = names_in(path)
    if path != ONE_WAY and any(name.partition(".")[0] == "numba" for name in names):
        direct = {name for name in names if name.rpartition(".")[2] in MAKERS}
        assert not direct, "use `compiled` of coaf.bandit.compiled.simd, which keeps the code"
    if "coaf.bandit.compiled.simd.compiled" in names:
        assert path in sources(), "add it to ELSEWHERE in coaf/bandit/kept/place.py"


def test_every_compiled_function_is_in_a_file_whose_change_is_noticed() -> None:
    for path in sources():
        importlib.import_module(warming._module(path))
    from coaf.bandit.kept.files import FUNCTIONS, name_of

    known = {str(path) for path in sources()}
    for function in FUNCTIONS:
        assert function.py_func.__code__.co_filename in known, (
            f"{name_of(function)}: add its file to ELSEWHERE in coaf/bandit/kept/place.py"
        )


@pytest.mark.parametrize(
    ("lost", "code"), [("", 0), ("/opt/cache cannot be written to", 1)], ids=["kept", "lost"]
)
def test_the_command_says_where_and_fails_if_nothing_was_kept(
    lost: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Warmed(Path("/opt/cache"), compiled=80, seconds=31.2, lost=lost)
    monkeypatch.setattr(warming, "warm", lambda: done)
    plain, as_json = (CliRunner().invoke(app, ["warm", *more]) for more in ([], ["--json"]))
    assert (plain.exit_code, as_json.exit_code) == (code, code)
    assert "80 functions compiled in 31 s" in plain.output
    assert "/opt/cache" in plain.output
    # Older releases of click have stderr in there as well.
    assert json.loads(as_json.stdout.splitlines()[0]) == {
        "folder": "/opt/cache",
        "compiled": 80,
        "seconds": 31.2,
        "kept": not lost,
        "lost": lost,
    }


def test_it_is_found_where_users_look() -> None:
    assert coaf.warm is warming.warm
