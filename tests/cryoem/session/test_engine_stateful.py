"""A microscope that does what it is told, or fails, forgets and does as it likes; and people."""

import json
from dataclasses import replace
from typing import Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coaf.cryoem.session import events as ev
from coaf.cryoem.session.instructions import Instruction
from coaf.cryoem.timing import HOUR
from cryoem.session.hand import Hand, again, known, squares, survey

NAMES = ("s1", "s2", "s3")
HOLES = tuple(f"{s}p{p}h{h}" for s in NAMES for p in (1, 2) for h in (0, 1, 2))
PLAN_HOURS = 0.1


class Microscope(RuleBasedStateMachine):
    """Keeps by itself what must not be told, and holds the engine to it."""

    def __init__(self) -> None:
        super().__init__()
        self.maybe: set[str] = set()  # told, and not settled
        self.taken: set[str] = set()
        self.barred: set[str] = set()
        self.planned: dict[str, tuple[set[str], float]] = {}
        self.told: Instruction | None = None
        self.ended = False
        self.snapshots: list[Any] = []

    @initialize(
        pilot=st.sampled_from(["take-all", "microscopist", "coaf"]),
        column=st.sampled_from(["ice", "prediction"]),
        tries=st.integers(1, 3),
        shots=st.sampled_from([1, 1, 3]),
    )
    def start(self, pilot: str, column: str, tries: int, shots: int) -> None:
        self.shots = shots
        chosen: dict[str, Any] = {"pilot": pilot, "columns": (column,), "tries": tries}
        self.hand = Hand(hours=4.0, plan_hours=PLAN_HOURS, explore=0.2, **chosen)
        self.hand.tell(ev.AtlasSeen, squares=squares(*NAMES))

    # What is asked for

    def _settle(self, hole: str) -> None:
        self.maybe.discard(hole)
        self.told = None if self.told is not None and self.told.name == hole else self.told

    def _out_of_play(self) -> set[str]:
        now = self.hand.clock
        plans = {p: v for p, v in self.planned.items() if now <= v[1] + PLAN_HOURS * HOUR}
        self.planned = plans
        listed = {hole for holes, _ in plans.values() for hole in holes}
        return self.maybe | self.taken | self.barred | listed

    def _check(self, told: Instruction) -> None:
        book = self.hand.engine.book
        if self.ended:
            assert told.do == "stop"
        names: dict[str, Any] = {
            "square": book.squares,
            "patch": book.patches,
            "hole": book.holes,
        }
        assert told.level is None or told.name in names[told.level]
        assert told.why
        assert 0.0 < told.propensity <= 1.0
        if told.do == "open square":
            assert not book.square(str(told.name)).opened
        if told.do == "expose":
            name = str(told.name)
            assert name not in self._out_of_play(), (name, self.hand.states(name))
            assert book.hole(name).patch == self.hand.engine.at
            self.maybe.add(name)

    @rule(wait=st.sampled_from([0.0, 5.0, 100.0]))
    def ask(self, wait: float) -> None:
        self.hand.clock += wait
        self.told = self.hand.next()
        self._check(self.told)
        assert self.hand.engine.last == self.told

    @rule(
        scope=st.sampled_from([None, "patch", "square"]), k=st.integers(0, 5), advice=st.booleans()
    )
    def plan(self, scope: Literal["patch", "square"] | None, k: int, advice: bool) -> None:
        engine = self.hand.engine
        names = list(engine.book.patches if scope == "patch" else engine.book.squares)
        if scope == "patch" and not names:
            return
        out = self.maybe | self.taken | self.barred
        where = None if scope is None else names[k % len(names)]
        plan = engine.plan(self.hand.clock, where, advice=advice)
        gone = {e.plan for e in engine.events if isinstance(e, ev.PlanSuperseded)}
        self.planned = {p: v for p, v in self.planned.items() if p not in gone}
        assert len(set(plan.holes)) == len(plan.holes)
        assert not set(plan.holes) & (out | self._out_of_play())
        self.planned[plan.id] = (set(plan.holes), engine.now)

    # What is done

    @precondition(lambda self: self.told is not None)
    @rule(end=st.sampled_from(["done", "done", "done", "off", "unknown", "silence"]))
    def obey(self, end: Literal["done", "off", "unknown", "silence"]) -> None:
        told, self.told = self.told, None
        assert told is not None
        name, hand = str(told.name), self.hand
        what = {"open square": "square", "go": "move", "expose": "exposure"}.get(told.do)
        opened = told.do == "open square" and bool(hand.engine.book.square(name).patches)
        if end == "silence" or opened:
            return
        if end == "done" and told.do == "open square":
            hand.tell(ev.SquareOpened, survey=survey(name, shots=self.shots))
        elif end == "done" or what is None:
            hand.obey(told)
            if told.do == "expose":
                self.taken.add(name)
                self._settle(name)
        else:
            hand.tell(ev.Failed, what=what, name=name, beam=end, why="it did not work")
            if what == "exposure" and end == "off":
                self._settle(name)

    @rule(
        hole=st.sampled_from(HOLES), move=st.booleans(), shots=st.sampled_from([None, None, 1, 4])
    )
    def expose_unasked(self, hole: str, move: bool, shots: int | None) -> None:
        if hole in self.hand.engine.book.holes:
            if move:
                self.hand.tell(ev.Moved, patch=hole[:4], seconds=30.0)
            self.hand.tell(ev.Exposed, hole=hole, seconds=9.0, shots=shots)
            self.taken.add(hole)
            self._settle(hole)

    @rule(hole=st.sampled_from(HOLES), taken=st.booleans())
    def reconcile(self, hole: str, taken: bool) -> None:
        if hole in self.maybe:
            self.hand.tell(ev.Reconciled, hole=hole, taken=taken)
            if taken:
                self.taken.add(hole)
            self._settle(hole)

    @rule(seconds=st.sampled_from([1.0, 400.0]))
    def pass_time(self, seconds: float) -> None:
        self.hand.clock += seconds
        self.hand.tell(ev.Upkeep, seconds=seconds)

    # Scores

    @rule(
        hole=st.sampled_from(HOLES),
        shot=st.sampled_from([0, 0, 0, 1, 3]),
        ctf=st.sampled_from([3.0, 9.0, None, -1.0]),
    )
    def score(self, hole: str, shot: int, ctf: float | None) -> None:
        if hole in self.hand.engine.book.holes:
            may = self.hand.states(hole)[0] != "deleted"
            self.hand.tell(ev.ScoreCame, hole=hole, shot=shot, values={"ctf": ctf})
            if may:
                self.taken.add(hole)
                self._settle(hole)

    @rule(hole=st.sampled_from(HOLES), shot=st.sampled_from([0, 1, 3]))
    def lose(self, hole: str, shot: int) -> None:
        if hole in self.hand.engine.book.holes:
            self.hand.tell(ev.ScoreLost, hole=hole, shot=shot)

    @rule(hole=st.sampled_from(HOLES), ctf=st.sampled_from([3.0, 9.0]))
    def correct(self, hole: str, ctf: float) -> None:
        if hole in self.taken:
            self.hand.tell(ev.ScoreCorrected, hole=hole, values={"ctf": ctf})

    @rule(reward=st.sampled_from(["ctf<3.8", "ctf<10", "ctf 3..8"]))
    def aim(self, reward: str) -> None:
        self.hand.tell(ev.TargetChanged, reward=reward)

    # People

    @rule(
        do=st.sampled_from(["exclude", "force", "return"]),
        what=st.sampled_from(["hole", "patch", "square"]),
        hole=st.sampled_from(HOLES),
    )
    def override(self, do: str, what: str, hole: str) -> None:
        name = {"hole": hole, "patch": hole[:4], "square": hole[:2]}[what]
        book = self.hand.engine.book
        if name not in {*book.holes, *book.patches, *book.squares}:
            return
        self.hand.tell(ev.Overridden, who="Ada", do=do, what=what, name=name)
        holes = set(book.named(what, name))
        if do == "exclude":
            self.barred |= holes
        else:
            self.barred -= holes - self.deleted()
        if do != "return":  # out of its plan
            self.planned = {p: (held - holes, t) for p, (held, t) in self.planned.items()}

    def deleted(self) -> set[str]:
        told = [e.holes for e in self.hand.engine.events if isinstance(e, ev.HolesDeleted)]
        return {hole for holes in told for hole in holes}

    @rule(hole=st.sampled_from(HOLES))
    def delete(self, hole: str) -> None:
        if hole in self.hand.engine.book.holes:
            self.hand.tell(ev.HolesDeleted, holes=(hole,))
            self.barred.add(hole)

    @rule(hole=st.sampled_from(HOLES), x=st.floats(-5, 5))
    def shift(self, hole: str, x: float) -> None:
        if hole in self.hand.engine.book.holes:
            self.hand.tell(ev.HoleMoved, hole=hole, x=x, y=0.0)

    @rule(k=st.integers(0, 3))
    def close(self, k: int) -> None:
        given = [e.plan.id for e in self.hand.engine.events if isinstance(e, ev.PlanGiven)]
        if given:
            plan = given[k % len(given)]
            self.hand.tell(ev.PlanClosed, plan=plan)
            self.planned.pop(plan, None)

    @rule(kind=st.sampled_from([ev.Paused, ev.Resumed, ev.Resumed, ev.FaultAcknowledged]))
    def interrupt(self, kind: Any) -> None:
        self.hand.tell(kind, who="Ada")

    @rule(square=st.sampled_from(NAMES))
    def open_unasked(self, square: str) -> None:
        book = self.hand.engine.book
        if not book.square(square).opened and not book.square(square).patches:
            self.hand.tell(ev.SquareOpened, survey=survey(square, shots=self.shots), seconds=60.0)

    @rule(square=st.sampled_from(NAMES), patch=st.sampled_from([1, 2]))
    def add(self, square: str, patch: int) -> None:
        name, book = f"{square}p{patch}", self.hand.engine.book
        if f"{name}h2" in book.holes:
            return
        whole = survey(square, {name: 3}, shots=self.shots)
        new = whole.patches[0].holes[2 if name in book.patches else 0 :]
        one = replace(whole.patches[0], holes=new)
        rows = {name: whole.features[name][-len(new) :]}
        self.hand.tell(ev.HolesAdded, survey=replace(whole, patches=(one,), features=rows))
        if book.square(square).excluded or book.patch(name).excluded:
            self.barred |= {hole.name for hole in new}

    @rule(grid=st.sampled_from(["g1", "g1", "g2"]))
    def load(self, grid: str) -> None:
        self.hand.tell(ev.GridLoaded, grid=grid, seconds=90.0)

    @rule(hours=st.sampled_from([0.2, 4.0, 9.0, None]))
    def budget(self, hours: float | None) -> None:
        self.hand.tell(ev.BudgetChanged, hours=hours)

    @precondition(lambda self: len(self.hand.engine.events) > 25)
    @rule()
    def end(self) -> None:
        self.hand.tell(ev.Ended)
        self.ended = True

    # What always holds

    @rule()
    def save(self) -> None:
        self.snapshots.append(json.loads(json.dumps(self.hand.engine.snapshot(), allow_nan=False)))

    @invariant()
    def states_are_as_they_must_be(self) -> None:
        if not hasattr(self, "hand"):
            return
        book = self.hand.engine.book
        for name, entry in book.holes.items():
            assert (entry.state == "taken") == (name in self.taken), (name, entry)
            assert (entry.state in ("told", "unknown")) >= (name in self.maybe), (name, entry)
            assert entry.state != "free" or name not in self.barred, (name, entry)

    def teardown(self) -> None:
        if not hasattr(self, "hand"):
            return
        engine = self.hand.engine
        assert known(again(engine)) == known(engine)
        for snapshot in self.snapshots[-2:]:
            assert known(again(engine, snapshot)) == known(engine)
        other = again(engine)
        assert other.next(engine.now) == engine.next(engine.now)


TestMicroscope = Microscope.TestCase
TestMicroscope.settings = settings(
    max_examples=60, stateful_step_count=45, deadline=None, derandomize=True
)
