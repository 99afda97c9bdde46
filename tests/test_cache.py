"""Compiled code is kept between runs, also where the package cannot be written to."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import coaf

CODE = """
import numpy as np
from coaf.bandit import guards
guards.first_bad(np.eye(2), 2.0, np.ones(2))
print(sum(guards.first_bad.stats.cache_hits.values()))
"""


def test_the_cache_moves_to_the_user_where_the_package_is_read_only(tmp_path: Path) -> None:
    package = tmp_path / "site" / "coaf"
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(coaf.__file__).parent, package, ignore=skip)
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (
            folder / "__pycache__"
        ).touch()  # a file in the way: nobody, not even root, can write there
    settings = {
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home" / ".cache"),
        "PATH": os.environ["PATH"],
    }
    hits = [
        subprocess.run(
            [sys.executable, "-c", CODE], env=settings, capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert hits == ["0", "1"]
    assert list((tmp_path / "home").rglob("*.nbi"))
