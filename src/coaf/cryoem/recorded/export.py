"""A session as a recording: what was seen, taken and measured."""

from coaf.cryoem.recorded.build import build_recording
from coaf.cryoem.recorded.columns import SHOT, Column
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.events import Exposed


def recording_of(engine: Engine, name: str) -> Recording:
    """The recording of a session so far, which can be written, read and replayed.

    It holds every hole that was seen. Shots without a score are left out, as nobody knows what they
    gave; scores are those known last. Times are what the session has learned of them.

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
    book, timing, settings = engine.book, engine.timing, engine.settings
    known = (name for event in engine.events if isinstance(event, Exposed) for name in event.known)
    opened = {name: entry for name, entry in book.squares.items() if entry.opened}
    return build_recording(
        name,
        [book.survey(square, entry.patches) for square, entry in opened.items()],
        [engine.learning.score(shot) for shot in engine.learning.values],
        columns=() if settings is None else settings.columns,
        seconds=Seconds(timing.survey, timing.enter, timing.expose, timing.shot),
        described={column: SHOT.get(column, Column("shot")) for column in known},
        grids={square: entry.grid or name for square, entry in opened.items()},
        provenance={} if settings is None else {"pilot": settings.pilot, "reward": settings.reward},
    )
