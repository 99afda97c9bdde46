"""Where data lies that is not part of the project: tests use it where it is."""

import os
from pathlib import Path

_SHARED = Path(__file__).resolve().parents[2] / "shared"

DATA = Path(os.environ.get("COAF_DATA", _SHARED / "data"))
SAMPLES = Path(os.environ.get("COAF_SAMPLES", _SHARED / "samples"))
YARDSTICK = _SHARED / "limit" / "coaf.c"
