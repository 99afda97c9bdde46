"""A machine without internet installs coaf from a folder of wheels, and decides."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import coaf

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "wheelhouse.py"


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        command, cwd=cwd, env={**own, **more}, capture_output=True, text=True, check=False
    )


def gathered(folder: Path) -> Path:
    """Return the wheels that `make wheelhouse` has just gathered, or else gather them."""
    if "COAF_WHEELHOUSE" in os.environ:
        return Path(os.environ["COAF_WHEELHOUSE"])
    small = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "cycler"]
    if run(*small, cwd=folder).returncode != 0:
        pytest.skip("no package index can be reached")
    house = folder / "wheelhouse"
    done = run(sys.executable, TOOL, house, cwd=folder)
    assert done.returncode == 0, done.stderr
    return house


@pytest.mark.soak
def test_the_wheelhouse_is_all_it_needs(tmp_path: Path) -> None:
    house = gathered(tmp_path)
    wanted = 'pip install --no-index --find-links . "coaf[experiments,cryoem]"'
    assert wanted in (house / "INSTALL.txt").read_text(encoding="utf-8")

    venv.create(tmp_path / "empty", with_pip=True)
    commands = tmp_path / "empty" / ("Scripts" if sys.platform == "win32" else "bin")
    offline = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    install = ["-m", *wanted.replace('"', "").split()]
    done = run(commands / "python", *install, cwd=house, **offline)
    assert done.returncode == 0, done.stderr
    version = run(commands / "coaf", "--version", cwd=tmp_path)
    assert version.stdout.strip() == coaf.__version__
    place = run(commands / "python", "-c", "import coaf; print(coaf.__file__)", cwd=tmp_path)
    assert Path(place.stdout).is_relative_to(tmp_path / "empty")
    decided = run(commands / "python", ROOT / "examples" / "first_round.py", cwd=tmp_path)
    assert decided.returncode == 0, decided.stderr
    assert decided.stdout


def test_wheels_of_another_day_are_not_mixed_in(tmp_path: Path) -> None:
    (tmp_path / "coaf-0.1.0-py3-none-any.whl").touch()
    refused = run(sys.executable, TOOL, tmp_path, cwd=tmp_path)
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr
