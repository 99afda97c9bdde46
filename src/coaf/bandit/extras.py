"""What comes with an extra, and is not always there."""

from importlib.util import find_spec


def require_extra(module: str, what: str, extra: str = "experiments") -> None:
    """An error that says how to install a module, unless it is there."""
    if find_spec(module) is None:
        name = {"sklearn": "scikit-learn"}.get(module, module)
        raise ModuleNotFoundError(f"{what} needs {name}: pip install 'coaf[{extra}]'", name=module)
