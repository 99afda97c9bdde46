"""Recordings from rows, and from what a session saw and scored."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.recorded.columns import MEASURED, RESERVED, SHOT, Column, RecordingError
from coaf.cryoem.recorded.recording import Recording, Shots
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.reward import fit_of

NAN = float("nan")
APART = 100.0  # µm: where positions are not known, patches stand in a row


class HoleRow(NamedTuple):
    """A hole, where it lies, and what is known of it before exposure."""

    hole: str
    patch: str
    square: str
    grid: str
    x: float = NAN
    y: float = NAN
    known: Sequence[float] = ()
    tile: str = ""  # the whole grid unless given


class ShotRow(NamedTuple):
    """A shot of a hole, and its columns."""

    hole: str
    number: int
    when: float = NAN
    values: Mapping[str, float] = {}


def from_rows(
    name: str,
    holes: Iterable[HoleRow],
    shots: Iterable[ShotRow],
    described: Mapping[str, Column],
    seconds: Seconds,
    *,
    provenance: Mapping[str, str] | None = None,
    files: tuple[Path, ...] = (),
) -> Recording:
    """The recording of these rows: patches in the order they first appear, holes as they stand."""
    members: dict[str, list[HoleRow]] = {}
    for row in holes:
        first = members.setdefault(row.patch, [row])[0]
        if row is first:
            continue
        if (row.square, row.tile, row.grid) != (first.square, first.tile, first.grid):
            raise RecordingError(
                f"patch {row.patch!r} is in squares {first.square!r} and {row.square!r}; it lies "
                f"in one: give patches names of their own, such as {f'{row.square}/{row.patch}'!r}"
            )
        members[row.patch].append(row)
    rows = [row for patch in members.values() for row in patch]
    index = {row.hole: i for i, row in enumerate(rows)}
    taken = [(_index_of(shot.hole, index), shot.number, shot) for shot in shots]
    taken.sort(key=lambda one: one[:2])
    for (hole, number, shot), (next_hole, next_number, _) in pairwise(taken):
        if (hole, number) == (next_hole, next_number):
            raise RecordingError(f"shot {number} of hole {shot.hole!r} is there twice")
    columns = [column for column, told in described.items() if told.role != "before"]
    width = sum(told.role == "before" for told in described.values())
    firsts = [patch[0] for patch in members.values()]
    tiled = any(row.tile for row in firsts)
    return Recording(
        name,
        tuple(row.hole for row in rows),
        np.cumsum([0, *map(len, members.values())]),
        tuple(members),
        tuple(row.square for row in firsts),
        tuple(row.grid for row in firsts),
        np.array([row.x for row in rows]),
        np.array([row.y for row in rows]),
        dict(described),
        np.array([row.known for row in rows], dtype=np.float64).reshape(len(rows), width),
        Shots(
            np.array([at for at, _, _ in taken], dtype=np.int64),
            np.array([number for _, number, _ in taken], dtype=np.int64),
            np.array([shot.when for _, _, shot in taken], dtype=np.float64),
            {
                c: np.array([shot.values.get(c, NAN) for _, _, shot in taken], dtype=np.float64)
                for c in columns
            },
        ),
        seconds,
        dict(provenance or {}),
        files,
        tuple(row.tile or row.grid for row in firsts if tiled),
    )


def _index_of(hole: str, index: Mapping[str, int]) -> int:
    if hole not in index:
        raise RecordingError(f"a shot is of hole {hole!r}, which is not among the holes")
    return index[hole]


def build_recording(
    name: str,
    surveys: Iterable[Survey],
    scores: Iterable[Score],
    *,
    columns: Sequence[str],
    seconds: Seconds,
    described: Mapping[str, Column] | None = None,
    grids: Mapping[str, str] | None = None,
    tiles: Mapping[str, str] | None = None,
    provenance: Mapping[str, str] | None = None,
) -> Recording:
    """The recording of a session, from what it saw and what was scored.

    Holes that were surveyed and not exposed are part of it; they have no shots.

    Parameters
    ----------
    name
        Of the recording.
    surveys
        Of the squares opened. Where a square comes twice, the last survey counts.
    scores
        Of the shots taken; `exposed_at` is when. Where a shot comes twice, the last score counts.
    columns
        Names of the surveys' features. What scores have under one of these, or under a name that
        means something else in every recording, is called "... of the shot".
    seconds
        What things took.
    described
        What columns mean, where there is something to say. Of the others, features are known
        before exposure, and what scores have in `more` was measured, but for what shots are taken
        under (`coaf.cryoem.circumstances`).
    grids
        The grid that each square lies in; squares that are not here lie in one called `name`.
    tiles
        The tile of the atlas that each square lies in, where that is known.
    provenance
        Where it comes from.
    """
    grids, tiles, told = grids or {}, tiles or {}, dict(described or {})
    last = {(score.hole, score.shot): score for score in scores}
    found = list(dict.fromkeys(name for score in last.values() for name in _values(score)))
    called = {c: f"{c} of the shot" if c in (*columns, *RESERVED) else c for c in found}
    of_shots = {c: told.get(c, (MEASURED | SHOT).get(c, Column("measured"))) for c in found}
    every = {
        **{c: Column("before") if c in found else told.get(c, Column("before")) for c in columns},
        **{called[c]: column for c, column in of_shots.items()},
    }
    opened = {survey.square: survey for survey in surveys}
    for survey in opened.values():
        _check_width(survey, columns)
    holes = [
        HoleRow(
            *(hole.name, patch.name, square, grids.get(square, name)),
            *((hole.x, hole.y) if survey.placed else (NAN, NAN)),
            known,
            tile=tiles.get(square, ""),
        )
        for square, survey in opened.items()
        for patch in survey.patches
        for hole, known in zip(patch.holes, survey.features[patch.name].tolist(), strict=True)
    ]
    shots = (
        ShotRow(s.hole, s.shot, s.exposed_at, {called[c]: v for c, v in _values(s).items()})
        for s in last.values()
    )
    return from_rows(name, holes, shots, every, seconds, provenance=provenance)


def _check_width(survey: Survey, columns: Sequence[str]) -> None:
    for patch in survey.patches:
        width = survey.features[patch.name].shape[1]
        if width != len(columns):
            raise RecordingError(
                f"holes of patch {patch.name!r} have {width} features, and {len(columns)} columns "
                f"are named: {', '.join(columns) or 'none'}"
            )


def _values(score: Score) -> dict[str, float]:
    """The columns of a shot; where a fit failed there is a column all the same."""
    fit, count = fit_of(score), score.particles
    picked = {} if count is None else {"particles": count}
    return {"ctf": NAN if fit is None else fit, **picked, **score.more}
