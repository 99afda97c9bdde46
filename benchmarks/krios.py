"""A real session on a Krios as a recording: 2,380 micrographs, seven shots a hole.

    python benchmarks/krios.py FOLDER [--data FILE]

Writes the recording into FOLDER, where `coaf.cryoem.read_recording` finds it. FILE is the session's
`exposures.csv`, that of `../shared/data/eminsight-krios` (or $COAF_DATA) unless given.
"""

import argparse
import csv
import os
from dataclasses import replace
from pathlib import Path

from coaf.cryoem.recorded.build import HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, Column
from coaf.cryoem.recorded.folder import write_recording
from coaf.cryoem.recorded.pace import measured_seconds
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import GoodBelow

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
EXPOSURES = Path(os.environ.get("COAF_DATA", SHARED)) / "eminsight-krios" / "exposures.csv"
COLUMNS = {
    "order": Column("shot", "", "which of the hole's shots it was, in time, from 0"),
    "area": Column("shot", "", "the template's shot area, by its number"),
    **MEASURED,
    "early_motion": Column("measured", "Å", "motion in the first frames"),
    "total_motion": Column("measured", "Å", "motion in all frames"),
}
OF = {
    "order": "order_in_hole",
    "area": "shot_id",
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
    shots = [
        ShotRow(
            row["hole"],
            int(row["order_in_hole"]),
            float(row["t_name_s"]),  # t_xml_s lags where a cluster ends
            {name: float(row[column]) for name, column in OF.items()},
        )
        for row in rows
    ]
    told = {"source": "kylelmorris/EMinsight (BSD-3), session of 2023-09-19", "seconds": "medians"}
    found = from_rows(
        "krios", holes.values(), shots, COLUMNS, Seconds(), provenance=told, files=(path,)
    )
    return replace(found, seconds=measured_seconds(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=EXPOSURES)
    given = parser.parse_args()
    recording = read_krios(given.data)
    write_recording(recording, given.folder)
    good = recording.worth(GoodBelow(3.8)).rewards.sum()
    print(
        f"{given.folder}: {len(recording.shots)} shots of {len(recording.holes)} holes in "
        f"{len(recording.patches)} patches, {good:.0f} below 3.8 Å; {recording.seconds}"
    )


if __name__ == "__main__":
    main()
