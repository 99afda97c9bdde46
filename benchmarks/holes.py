"""How well and how quickly holes are found in drawn squares: prints a Markdown table.

`python benchmarks/holes.py --specimens 40`. Seconds are the median, and the slowest, of finding
alone. Memory is the peak of a process that reads one picture and finds its holes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from coaf.cryoem.images import Image
from coaf.cryoem.simulator.draw import draw_square
from coaf.cryoem.vision.holes import find_holes
from specimens import Marks, add, mark, random_specimen

# Pixels a side, electrons per pixel in vacuum, and the share of the specimens.
ROWS = ((512, 100.0, 1.0), (1024, 400.0, 1.0), (1024, 100.0, 1.0), (1024, 20.0, 1.0),
        (1024, 8.0, 1.0), (4096, 25.0, 0.15))  # fmt: skip


def measure(pixels: int, dose: float, specimens: int) -> dict[str, Any]:
    """Marks and seconds of one row."""
    marks: list[Marks] = []
    seconds = []
    for seed in range(specimens):
        specimen = random_specimen(seed)
        image = draw_square(specimen, pixels=pixels, dose=dose, seed=seed)
        begin = time.perf_counter()
        found = find_holes(image)
        seconds.append(time.perf_counter() - begin)
        marks.append(mark(specimen, image, found))
    total = add(marks)
    return {
        "recall": total.recall,
        "precision": total.precision,
        "worst_recall": min(m.recall for m in marks),
        "worst_precision": min(m.precision for m in marks),
        "error": total.error,
        "seconds": float(np.median(seconds)),
        "slowest": max(seconds),
    }


def memory(pixels: int, dose: float) -> float:
    """Peak memory in MB of reading one image and finding its holes, interpreter and all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "square.npy"
        image = draw_square(random_specimen(0), pixels=pixels, dose=dose, seed=0)
        np.save(path, image.pixels)
        command = [sys.executable, __file__, "--peak", str(path), str(image.pixel_size)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(run.stdout))


def peak(path: Path, pixel_size: float) -> float:
    """Find the holes of a saved image; the most memory, in MB, that this process ever had."""
    find_holes(Image(np.load(path), pixel_size))
    # Linux only, but honest: ru_maxrss of a new process begins at what its parent had.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specimens", type=int, default=40)
    parser.add_argument("--peak", nargs=2, metavar=("FILE", "PIXEL_SIZE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peak:
        print(json.dumps(peak(Path(asked.peak[0]), float(asked.peak[1]))))
        return
    print("| pixels | e/px | specimens | recall (worst) | precision (worst) | error µm | s | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for pixels, dose, share in ROWS:
        specimens = max(1, round(asked.specimens * share))
        row = measure(pixels, dose, specimens)
        print(
            f"| {pixels} | {dose:g} | {specimens} "
            f"| {row['recall']:.2%} ({row['worst_recall']:.1%}) "
            f"| {row['precision']:.2%} ({row['worst_precision']:.1%}) | {row['error']:.3f} "
            f"| {row['seconds']:.2f} ({row['slowest']:.2f}) | {memory(pixels, dose):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
