"""Runs `coaf bench --growth` beside yardstick and peers, and writes docs/speed_results.md."""

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
YARDSTICK = ROOT.parent / "shared" / "limit" / "coaf.c"


def measure() -> dict[str, Any]:
    command = [sys.executable, "-m", "coaf.cli", "bench", "--growth", "--json"]
    if YARDSTICK.exists():
        command += ["--limit", str(YARDSTICK)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def page(found: dict[str, Any]) -> str:
    rows = [
        ("compiled replicates, the yardstick's work", f"{found['compiled_us_per_round']:.2f} µs")
    ]
    if "ratio" in found:
        rows += [
            ("the C yardstick, same rounds, turn by turn", f"{found['limit_us_per_round']:.2f} µs"),
            ("ratio", f"{found['ratio']:.2f}"),
            ("ratio of the default policy", f"{found['default_ratio']:.2f}"),
        ]
    rows += [
        ("compiled replicates, the default policy", f"{found['default_us_per_round']:.2f} µs"),
        ("compiled replicates, the paper's ball", f"{found['paper_us_per_round']:.1f} µs"),
        ("drawing a round of the world", f"{found['draw_us_per_round']:.2f} µs"),
        (
            "live: Round, decide, commit, learn; the same work",
            f"{found['live_us_per_round']:.0f} µs",
        ),
        ("live, the default policy", f"{found['live_default_us_per_round']:.0f} µs"),
        ("plain NumPy, one inverse a round", f"{found['numpy_us_per_round']:.0f} µs"),
    ]
    rows += [(f"{n}, one pick a round", f"{v:.0f} µs") for n, v in found["peers"].items()]
    rows += [
        (f"live, d = {g['dim']}, n = {g['arms']}", f"{g['us']:.0f} µs") for g in found["growth"]
    ]
    rows.append(("live, d = 1000, one pick", f"{found['one_pick_at_1000_features']:.0f} µs"))
    rows += [
        (f"{n}, d = 1000, one pick", f"{v:.0f} µs")
        for n, v in found["peers_at_1000_features"].items()
    ]
    rows += [
        ("10,000 learners of d = 10", f"{found['mb_for_10000_learners']:.0f} MB"),
        ("`import coaf`", f"{found['import_seconds']:.2f} s"),
    ]
    lines = [
        f"Measured in one run on {platform.machine()}, Python {platform.python_version()}:",
        "",
    ]
    lines += ["| what | measured |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "speed_results.md").write_text(page(measure()))
