"""What `import coaf` brings, and what it leaves for later."""

import subprocess
import sys

import coaf


def test_heavy_modules_load_on_first_use() -> None:
    heavy = ("numba", "scipy", "xarray", "threadpoolctl")
    code = f"import coaf, sys; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_everything_promised_is_there() -> None:
    for name in coaf.__all__:
        assert getattr(coaf, name) is not None
