"""Compiled code is kept between runs, and never outlives a change of what it was compiled from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import coaf
from coaf.bandit.kept import notice as notices
from coaf.bandit.kept.notice import Notice
from coaf.bandit.kept.place import Place, digest

CODE = """
import numpy as np
from coaf.bandit.compiled import guards
guards.first_bad(np.eye(2), 2.0, np.ones(2))
guards.all_within(np.ones(2), 2.0)
print(sum(sum(f.stats.cache_hits.values()) for f in (guards.first_bad, guards.all_within)))
"""
# Nobody, not even root, can write more than so many bytes to a file: a disk that is full.
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))\n"
SAID = "coaf compiles code for this machine"


class Run(NamedTuple):
    hits: int
    said: str


def copy_package(folder: Path) -> Path:
    package = folder / "site" / "coaf"
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(coaf.__file__).parent, package, ignore=skip)
    return package


def block(package: Path) -> None:
    """Put files where folders would have to be: not even root can write there then."""
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").touch()


def run(package: Path, home: Path, *, code: str = CODE, **more: str) -> Run:
    settings = {
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "error",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PATH": os.environ["PATH"],
        **more,
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    return Run(int(done.stdout), done.stderr)


def test_the_second_run_compiles_nothing_even_if_the_package_is_read_only(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    block(package)
    first = run(package, tmp_path)
    assert first.hits == 0
    assert first.said.count(SAID) == 1
    assert f"once: it is kept in {tmp_path / 'cache' / 'coaf'}" in first.said
    assert run(package, tmp_path) == (2, "")


def test_a_change_in_another_compiled_file_is_noticed(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    assert run(package, tmp_path).hits == 0
    with (package / "bandit" / "compiled" / "products.py").open("a") as file:
        file.write("# changed\n")
    assert run(package, tmp_path).hits == 0


def test_neither_age_nor_place_of_the_sources_matter(tmp_path: Path) -> None:
    """As when an image is built in one folder and run from another."""
    assert run(copy_package(tmp_path / "a"), tmp_path).hits == 0
    moved = copy_package(tmp_path / "b")
    for path in moved.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    assert run(moved, tmp_path).hits == 2


def test_numba_cache_dir_names_the_folder(tmp_path: Path) -> None:
    package, folder = copy_package(tmp_path), tmp_path / "named"
    assert str(folder) in run(package, tmp_path, NUMBA_CACHE_DIR=str(folder)).said
    assert run(package, tmp_path, NUMBA_CACHE_DIR=str(folder)).hits == 2
    assert not (tmp_path / "cache").exists()


def test_without_any_place_to_write_it_still_runs_and_says_so(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    block(package)
    home = tmp_path / "home"
    home.touch()
    for _ in range(2):
        found = run(package, home)
        assert found.hits == 0
        assert found.said.count(SAID) == 1
        assert "again at every start" in found.said
        assert "XDG_CACHE_HOME" in found.said


def test_beside_the_sources_if_nowhere_else(tmp_path: Path) -> None:
    package, home = copy_package(tmp_path), tmp_path / "home"
    home.touch()
    assert str(package / "__pycache__") in run(package, home).said
    assert run(package, home).hits == 2


def test_a_folder_that_cannot_be_written_to_is_still_read(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    block(package)
    run(package, tmp_path)
    assert run(package, tmp_path, code=FULL.format(0) + CODE) == (2, "")
    (kept,) = (tmp_path / "cache" / "coaf").iterdir()
    for path in kept.glob("guards.first_bad*"):
        path.unlink()
    found = run(package, tmp_path, code=FULL.format(0) + CODE)
    assert found.hits == 1
    assert f"{kept} lacks some of it, and cannot be written to" in found.said


def test_a_disk_that_fills_up_stops_nothing(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    block(package)
    assert run(package, tmp_path, code=FULL.format(64) + CODE).hits == 0
    assert run(package, tmp_path).hits == 0
    assert run(package, tmp_path).hits == 2


def test_files_that_were_cut_short_are_made_anew(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    run(package, tmp_path)
    (kept,) = (tmp_path / "cache" / "coaf").iterdir()
    for path in kept.glob("guards.first_bad*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    for path in kept.glob("guards.all_within*.nbi"):
        path.write_bytes(b"")
    assert run(package, tmp_path).hits == 0
    assert run(package, tmp_path).hits == 2


def test_the_notice_is_given_once_and_only_to_who_can_hear_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(notices, "place", lambda: Place(tmp_path / digest(), writable=True))
    notice = Notice()
    with notice.withheld():
        notice.give()
    notice.give()
    notice.give()
    out, err = capsys.readouterr()
    assert (out, err.count(SAID)) == ("", 1)
    monkeypatch.setattr(sys, "stderr", None)  # as without a console on Windows
    Notice().give()
    assert capsys.readouterr().out == ""
