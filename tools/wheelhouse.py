"""Gather the wheels of coaf and of all it needs, to install where there is no internet.

`python tools/wheelhouse.py` needs nothing but pip and its index. The wheels are those for the
Python and the system that run it: use the same as where they will be installed.
"""

import argparse
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WANTED = "coaf[experiments,cryoem]"

INSTALL = """\
{coaf} and all that {wanted} needs, for Python {python} on {system}.
Copy this folder to the machine without internet. In this folder there, on Linux and macOS:

    python{python} -m venv ~/coaf
    ~/coaf/bin/python -m pip install --no-index --find-links . "{wanted}"
    ~/coaf/bin/coaf --version
    ~/coaf/bin/coaf warm

and on Windows:

    py -{python} -m venv %USERPROFILE%\\coaf
    %USERPROFILE%\\coaf\\Scripts\\python -m pip install --no-index --find-links . "{wanted}"
    %USERPROFILE%\\coaf\\Scripts\\coaf --version
    %USERPROFILE%\\coaf\\Scripts\\coaf warm

The last line compiles ahead what the first decision would wait for.
"""


def gather(folder: Path) -> None:
    """Fill a folder, which must be new or empty, with wheels at the versions of the lock file."""
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty; old wheels beside new ones would be installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    where = ["--wheel-dir", str(folder), "--constraint", str(ROOT / "requirements.lock")]
    subprocess.run([*pip, *where, WANTED.replace("coaf", str(ROOT), 1)], check=True)
    (wheel,) = folder.glob("coaf-*.whl")
    text = INSTALL.format(
        coaf=" ".join(wheel.name.split("-")[:2]),
        wanted=WANTED,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        system=f"{platform.system()} {platform.machine()}",
    )
    (folder / "INSTALL.txt").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("wheelhouse"))
    folder = parser.parse_args().folder
    gather(folder)
    wheels = list(folder.glob("*.whl"))
    size = sum(wheel.stat().st_size for wheel in wheels) / 1e6
    print(f"{folder}: {len(wheels)} wheels, {size:.0f} MB; INSTALL.txt in it says how to use them")


if __name__ == "__main__":
    main()
