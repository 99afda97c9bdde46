"""What the quickstart shows is what happens."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "quickstart.md"


def test_the_quickstart_prints_what_it_says() -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (first, code), (second, expected) = blocks
    assert (first, second) == ("python", "text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == expected
