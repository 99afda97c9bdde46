"""Compiled code is kept between runs, and never outlives a change of what it was compiled from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import coaf

CODE = """
import numpy as np
from coaf.bandit.compiled import guards
guards.first_bad(np.eye(2), 2.0, np.ones(2))
print(sum(guards.first_bad.stats.cache_hits.values()))
"""


def copy_package(folder: Path) -> Path:
    package = folder / "site" / "coaf"
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(coaf.__file__).parent, package, ignore=skip)
    return package


def block(package: Path) -> None:
    """Put files where folders would have to be: not even root can write there then."""
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").touch()


def hits(package: Path, home: Path) -> int:
    settings = {
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-c", CODE]
    run = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    return int(run.stdout)


def test_the_second_run_compiles_nothing_even_if_the_package_is_read_only(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    block(package)
    assert hits(package, tmp_path) == 0
    assert hits(package, tmp_path) == 1


def test_a_change_in_another_compiled_file_is_noticed(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    assert hits(package, tmp_path) == 0
    with (package / "bandit" / "compiled" / "products.py").open("a") as file:
        file.write("# changed\n")
    assert hits(package, tmp_path) == 0


def test_without_any_place_to_write_it_still_runs(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    block(package)
    home = tmp_path / "home"
    home.touch()
    assert hits(package, home) == 0
    assert hits(package, home) == 0
