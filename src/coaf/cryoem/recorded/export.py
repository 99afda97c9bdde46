"""A session as a recording: what was seen, taken and measured."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from coaf.bandit.arrays import FloatArray
from coaf.cryoem.microscope import Score, Survey
from coaf.cryoem.recorded.build import build_recording
from coaf.cryoem.recorded.columns import MEASURED, RESERVED, SHOT, Column, impossible
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.session.book import Book
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.events import Exposed


def recording_of(engine: Engine, name: str) -> Recording:
    """The recording of a session so far, which can be written, read and replayed.

    It holds every hole that was seen, but for those that turned out to be none. Shots without a
    score, or with one that cannot be, are left out, as nobody knows what they gave; scores are
    those known last. Times are what the session has learned of them. Features that the session has
    no names for are called "feature 1" and so on, and names that a file cannot hold, or that mean
    something else there, are changed a little.

    Parameters
    ----------
    engine
        Of the session.
    name
        Of the recording.

    Examples
    --------
    >>> from coaf.cryoem.session.collect import collect
    >>> from coaf.cryoem.simulator.simulator import Simulator
    >>> session = collect(Simulator(seed=3, squares=4, pixels=False), "take-all", hours=0.5)
    >>> recording = recording_of(session.engine, "an afternoon")
    >>> len(set(recording.shots.hole.tolist())) == session.summary()["exposed"] - (
    ...     session.summary()["unscored"]
    ... )
    True
    """
    book, settings = engine.book, engine.situation.settings
    known = {name for event in engine.events if isinstance(event, Exposed) for name in event.known}
    opened = {name: entry for name, entry in book.squares.items() if entry.opened}
    surveys, columns = _of_one_width(
        [_holes_of(book.survey(square, entry.patches), book) for square, entry in opened.items()],
        settings.columns,
    )
    grids = {square: entry.grid or entry.square.grid or name for square, entry in opened.items()}
    several = len(set(grids.values())) > 1
    scores = [
        score for shot in engine.learning.values if _can_be(score := engine.learning.score(shot))
    ]
    there = {hole.name for survey in surveys for patch in survey.patches for hole in patch.holes}
    called = _Names(surveys, [score for score in scores if score.hole in there], columns)
    tiles = {
        square: f"{grids[square]}/{tile}" if several else tile
        for square, entry in opened.items()
        if (tile := entry.square.tile)
    }
    return build_recording(
        name,
        called.surveys,
        called.scores,
        columns=called.columns,
        seconds=Seconds.of(engine.timing),
        described={
            called.values.get(c, c): SHOT.get(c, Column("shot")) for c in known - set(MEASURED)
        },
        grids={called.squares[square]: grid for square, grid in grids.items()},
        tiles={called.squares[square]: tile for square, tile in tiles.items()},
        provenance={"pilot": settings.pilot, "reward": settings.reward},
    )


class _Names:
    """What was seen and scored, by names that a recording can have."""

    def __init__(
        self, surveys: Sequence[Survey], scores: Sequence[Score], columns: Sequence[str]
    ) -> None:
        patches = [patch for survey in surveys for patch in survey.patches]
        self.squares = _written(survey.square for survey in surveys)
        self._patches = _written(patch.name for patch in patches)
        self._holes = _written(hole.name for patch in patches for hole in patch.holes)
        self.columns = tuple(_written(columns, (*RESERVED, *MEASURED)).values())
        self.values = _written({name: None for score in scores for name in score.more})
        self.surveys = [self._survey(survey) for survey in surveys]
        self.scores = [
            replace(
                score,
                hole=self._holes[score.hole],
                more={self.values[name]: value for name, value in score.more.items()},
            )
            for score in scores
        ]

    def _survey(self, survey: Survey) -> Survey:
        square = self.squares[survey.square]
        patches = tuple(
            replace(
                patch,
                name=self._patches[patch.name],
                square=square,
                holes=tuple(replace(hole, name=self._holes[hole.name]) for hole in patch.holes),
            )
            for patch in survey.patches
        )
        features = {self._patches[name]: rows for name, rows in survey.features.items()}
        return replace(survey, square=square, patches=patches, features=features)


def _written(names: Iterable[str], others: Iterable[str] = ()) -> dict[str, str]:
    """Each name as a recording can have it, all different, and none of `others`.

    Examples
    --------
    >>> _written(["a b", "a b ", "x"], others=["x"])
    {'a b': 'a b', 'a b ': "a b'", 'x': "x'"}
    """
    used, found = set(others), dict[str, str]()
    for name in names:
        text = "".join(c if c.isprintable() else " " for c in name).strip() or "?"
        while text in used:
            text += "'"
        found[name] = text
        used.add(text)
    return found


def _holes_of(survey: Survey, book: Book) -> Survey:
    """What is a hole of a survey."""
    patches, features = [], {}
    for patch in survey.patches:
        are = np.array([book.hole(hole.name).state != "deleted" for hole in patch.holes])
        if are.any():
            holes = tuple(hole for hole, is_one in zip(patch.holes, are, strict=True) if is_one)
            patches.append(replace(patch, holes=holes))
            features[patch.name] = survey.features[patch.name][are]
    return replace(survey, patches=tuple(patches), features=features)


def _can_be(score: Score) -> bool:
    """Whether what was measured may stand in a recording: sessions refuse it only when asked."""
    told = {"ctf": score.ctf, "particles": score.particles}
    return not any(value is not None and impossible(name, value) for name, value in told.items())


def _of_one_width(
    surveys: Sequence[Survey], columns: Sequence[str]
) -> tuple[list[Survey], tuple[str, ...]]:
    """With features as many as the widest has, where a session did not name them."""
    every = (rows for survey in surveys for rows in survey.features.values())
    width = max((rows.shape[1] for rows in every), default=0)
    if columns or not width:
        return list(surveys), tuple(columns)

    def widened(rows: FloatArray) -> FloatArray:
        return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=np.nan)

    found = [
        replace(one, features={name: widened(rows) for name, rows in one.features.items()})
        for one in surveys
    ]
    return found, tuple(f"feature {k}" for k in range(1, width + 1))
