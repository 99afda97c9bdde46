"""A real session on a Krios as a recording: 2,380 micrographs, seven shots a hole.

    python benchmarks/krios.py FOLDER [--data FILE] [--orders 20]

Writes the recording into FOLDER, where `coaf.cryoem.read_recording` finds it, and with orders of
its patches what is collected in them into docs/krios_results.md. FILE is the session's
`exposures.csv`, that of `../shared/data/eminsight-krios` (or $COAF_DATA) unless given. The table
has no defocus; the session cycled through five, hole by hole and anew in each square, which is what
the recording has.
"""

import argparse
import csv
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from coaf.cryoem.recorded.build import HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, SHOT, Column
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.pace import measured_seconds
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.replay import Pass, play_orders, summarise
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.recorded.yardsticks import clairvoyant_rate
from coaf.cryoem.reward import GoodBelow, Reward, parse_reward
from coaf.cryoem.timing import HOUR
from coaf.worlds.statistics import mean

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "krios_results.md"
POLICIES = ("take-all", "coaf-paper", "coaf-tuned", "coaf")
REWARDS = ("ctf<3.8", "ctf<5", "particles/100")
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
EXPOSURES = Path(os.environ.get("COAF_DATA", SHARED)) / "eminsight-krios" / "exposures.csv"
DEFOCI = (-2.5, -2.0, -1.5, -1.0, -0.5)
COLUMNS = {
    "order": SHOT["order"],
    "place": Column("shot", "", "the template's shot areas in the order of their numbers"),
    "defocus": Column("shot", "µm", "inferred from the order of holes in a square"),
    **MEASURED,
    "early_motion": Column("measured", "Å", "motion in the first frames"),
    "total_motion": Column("measured", "Å", "motion in all frames"),
}
OF = {
    "order": "order_in_hole",
    "ctf": "ctf_A",
    "particles": "n_particles",
    "early_motion": "early_motion_A",
    "total_motion": "total_motion_A",
}


def read_krios(path: Path = EXPOSURES) -> Recording:
    """The session; nothing was known of its holes before they were exposed."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    holes = {
        row["hole"]: HoleRow(
            row["hole"],
            f"{row['square']}/{row['afis_cluster_inferred']}",
            row["square"],
            "krios",
        )
        for row in rows
    }
    areas = sorted({row["shot_id"] for row in rows})
    turns = _turns(rows)
    shots = [
        ShotRow(
            row["hole"],
            int(row["order_in_hole"]),
            float(row["t_name_s"]),  # t_xml_s lags where a cluster ends
            {
                "place": areas.index(row["shot_id"]),
                "defocus": DEFOCI[turns[row["hole"]] % len(DEFOCI)],
                **{name: float(row[column]) for name, column in OF.items()},
            },
        )
        for row in rows
    ]
    told = {"source": "kylelmorris/EMinsight (BSD-3), session of 2023-09-19", "seconds": "medians"}
    found = from_rows(
        "krios", holes.values(), shots, COLUMNS, Seconds(), provenance=told, files=(path,)
    )
    return replace(found, seconds=measured_seconds(found))


def _turns(rows: list[dict[str, str]]) -> dict[str, int]:
    """By hole, how many were taken before it in its square."""
    first = {row["hole"]: row["square"] for row in sorted(rows, key=lambda r: float(r["t_name_s"]))}
    count: dict[str, int] = {}
    turns = {}
    for hole, square in first.items():
        turns[hole] = count.get(square, 0)
        count[square] = turns[hole] + 1
    return turns


def rates(recording: Recording, orders: int) -> str:
    """Good an hour by each pilot, and by how much COAF leads one who takes all."""
    heads = ["reward", *(f"`{name}`" for name in POLICIES), "clairvoyant", "`coaf` − `take-all`"]
    lines = [
        f"{orders} random orders of the {len(recording.patches)} patches, each shown once; scores "
        "at once, nothing known before exposure. Rewards an hour with standard errors; the "
        "difference is paired, in percent, with a 95 % interval. The clairvoyant knows all holes.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    with ProcessPoolExecutor() as pool:
        for text in REWARDS:
            reward = parse_reward(text)
            play = partial(_pass, recording, reward)
            tasks = [(name, k) for name in POLICIES for k in range(orders)]
            found = list(pool.map(play, *zip(*tasks, strict=True)))
            passes = [found[i : i + orders] for i in range(0, len(found), orders)]
            told = {name: summarise(of) for name, of in zip(POLICIES, passes, strict=True)}
            cells = [f"{t['good_per_hour']:.1f} ± {t['standard_error']:.1f}" for t in told.values()]
            cells.append(f"{HOUR * clairvoyant_rate(recording, reward):.1f}")
            coaf, everything = (
                np.array([one.good / one.seconds for one in passes[POLICIES.index(name)]])
                for name in ("coaf", "take-all")
            )
            lead = mean(100.0 * (coaf / everything - 1.0))
            cells.append(f"{lead.value:+.1f} [{lead.low:+.1f}, {lead.high:+.1f}]")
            lines.append(f"| {text} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _pass(recording: Recording, reward: Reward, name: str, order: int) -> Pass:
    return play_orders(recording, name, [order], seed=0, reward=reward)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=EXPOSURES)
    parser.add_argument("--orders", type=int, default=0)
    given = parser.parse_args()
    recording = read_krios(given.data)
    write_recording(recording, given.folder)
    good = recording.worth(GoodBelow(3.8)).rewards.sum()
    print(
        f"{given.folder}: {len(recording.shots)} shots of {len(recording.holes)} holes in "
        f"{len(recording.patches)} patches, {good:.0f} below 3.8 Å; {recording.seconds}"
    )
    if given.orders:
        RESULTS.write_text(rates(recording, given.orders), "utf-8")
        print(RESULTS.read_text("utf-8"))


if __name__ == "__main__":
    main()
