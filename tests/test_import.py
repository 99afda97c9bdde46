"""What `import coaf` brings, and what it leaves for later."""

import subprocess
import sys

import pytest

import coaf


def loaded(code: str, *modules: str) -> list[str]:
    """Which of these modules a new process has loaded after this."""
    code += f"; import sys; print(*(m for m in {modules} if m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_heavy_modules_load_on_first_use() -> None:
    heavy = ("numba", "scipy", "xarray", "threadpoolctl")
    assert loaded("import coaf", "numpy", "coaf.bandit", *heavy) == []
    assert loaded("import coaf; coaf.COAF", "numpy", *heavy) == ["numpy"]


def test_rooms_are_there_without_being_imported() -> None:
    rooms = ("coaf.bandit", "coaf.worlds", "coaf.cryoem")
    for room in rooms:
        assert room in loaded(f"import coaf; {room}", *rooms)


def test_what_there_is_not_is_no_attribute() -> None:
    assert set(coaf.__all__) <= set(dir(coaf))
    with pytest.raises(AttributeError, match="module 'coaf' has no attribute 'coal'"):
        _ = coaf.coal


def test_everything_promised_is_there() -> None:
    for name in coaf.__all__:
        assert getattr(coaf, name) is not None
