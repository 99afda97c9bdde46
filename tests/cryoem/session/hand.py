"""A session driven by hand: small surveys, and a clock."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from coaf.cryoem.grid import Hole, Patch, Square
from coaf.cryoem.microscope import Survey
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.engine import Engine
from coaf.cryoem.session.instructions import Instruction

COLUMNS = ("prediction",)


def survey(
    square: str = "s1", patches: Mapping[str, int] | None = None, *, shots: int = 1
) -> Survey:
    """Patches with so many holes, named after them; predictions from 3 Å on, in steps of 1."""
    sizes = {f"{square}p1": 2, f"{square}p2": 2} if patches is None else patches
    holes = {
        name: tuple(Hole(f"{name}h{i}", float(i), 0.0, shots=shots) for i in range(n))
        for name, n in sizes.items()
    }
    made = [Patch(name, square, holes[name], 0.0, 0.0) for name in sizes]
    rows = {patch.name: 3.0 + np.arange(float(len(patch.holes)))[:, None] for patch in made}
    return Survey(square, tuple(made), rows)


def squares(*names: str) -> tuple[Square, ...]:
    return tuple(
        Square(name, 100.0 * k, 0.0, features=(0.5, 0.1, 0.9)) for k, name in enumerate(names)
    )


class Hand:
    """Tells an engine what happens, one second apart, and does what it says."""

    def __init__(self, engine: Engine | None = None, **settings: Any) -> None:
        self.engine, self.clock = engine or Engine(), 0.0
        given: dict[str, Any] = {"pilot": "take-all", "columns": COLUMNS, "hours": 8.0} | settings
        self.tell(ev.Started, settings=ev.Settings(**given))

    def tell(self, kind: type[ev.Event], **known: Any) -> None:
        event = kind(id=f"hand {len(self.engine.events)}", time=self.clock, **known)
        self.engine.tell(event)
        self.clock += 1.0

    def next(self) -> Instruction:
        return self.engine.next(self.clock)

    def open(self, *names: str) -> None:
        """Squares were seen, and opened."""
        self.tell(ev.AtlasSeen, squares=squares(*names))
        for name in names:
            self.tell(ev.SquareOpened, survey=survey(name))

    def obey(self, told: Instruction) -> None:
        """Do it, in no time to speak of."""
        name = str(told.name)
        match told.do:
            case "load grid":
                self.tell(ev.GridLoaded, grid=name)
            case "open square":
                self.tell(ev.SquareOpened, survey=survey(name))
            case "go":
                self.tell(ev.Moved, patch=name, instruction=told.id)
            case "expose":
                self.tell(ev.Exposed, hole=name, instruction=told.id)
            case "wait":
                self.clock += told.seconds

    def until(self, *do: str) -> Instruction:
        """Obey until this is told, which is not obeyed."""
        for _ in range(200):
            told = self.next()
            if told.do in do:
                return told
            self.obey(told)
        raise AssertionError(f"never told to {do}")

    def exposures(self) -> list[str]:
        """Holes that were told to be exposed, in order."""
        told = [e.instruction for e in self.engine.events if isinstance(e, ev.Instructed)]
        return [str(one.name) for one in told if one.do == "expose"]

    def states(self, *holes: str) -> list[str]:
        return [self.engine.book.hole(hole).state for hole in holes]


def text(engine: Engine) -> str:
    """All of an engine, as JSON."""
    return json.dumps(engine.state(), sort_keys=True, allow_nan=False)


def known(engine: Engine) -> tuple[object, ...]:
    """All that an engine knows and shows."""
    book = engine.book
    patches = {
        name: (p.entered, p.explored, p.failures, p.lost, p.gone)
        for name, p in book.patches.items()
    }
    squares_ = {name: (s.opened, s.refused, s.forced, s.grid) for name, s in book.squares.items()}
    return (
        text(engine),
        engine.left(),
        tuple(engine.notes),
        json.dumps(engine.guard.state()),
        repr(book.holes),
        patches,
        squares_,
        (
            engine.at,
            engine.grid,
            engine.last,
            engine.paused,
            engine.ended,
            engine.plans,
            engine.now,
        ),
    )


def again(engine: Engine, snapshot: Mapping[str, Any] | None = None) -> Engine:
    """The engine told the same events, which went through JSON, from a snapshot if given."""
    told = json.loads(json.dumps([ev.to_json(event) for event in engine.events], allow_nan=False))
    saved = None if snapshot is None else json.loads(json.dumps(snapshot, allow_nan=False))
    return Engine.replay([ev.from_json(event) for event in told], saved)
