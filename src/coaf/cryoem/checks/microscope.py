"""The contract of a microscope: run it in the tests of your own."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from coaf.bandit.checks.contract import ContractError, close, require
from coaf.cryoem.grid import Hole, Patch, Square, check_unique
from coaf.cryoem.microscope import Autoloader, Microscope, Rehearsal, Score, Survey, upkeep_of
from coaf.cryoem.timing import HOUR, Timing

_PARTS = (
    *("timing", "feature_names", "clock", "upkeep"),
    *("squares", "survey", "move", "expose", "collect", "wait"),
)
_MORE = ("again", "peek", "worth", "first_visit")  # of a `Rehearsal`
_LONG = 30 * 24 * HOUR  # after a month every score that will come has come
_SLACK = 1e-6  # seconds that adding up may lose


def check_microscope(make: Callable[[], Microscope]) -> None:
    """Check the promises of `Microscope`. `make` gives a new one each time, all alike.

    Of one that can be played again, the promises of `Rehearsal` are checked, too; of one that loads
    grids those of `Autoloader`, and then all others on its first grid. It must have at least one
    square with a patch of two holes. A broken promise raises `ContractError`, which says what was
    seen.

    Examples
    --------
    >>> from coaf.cryoem.simulator.simulator import Simulator
    >>> check_microscope(lambda: Simulator(seed=1, squares=2, pixels=False))
    """
    rehearses = _has_all(make())
    if isinstance(make(), Autoloader):
        grids_are_loaded(make)
        rehearses, make = False, partial(_with_a_grid, make)
    for check in (
        it_says_what_to_expect,
        squares_are_stable,
        surveys_are_paid_once,
        surveys_fit_together,
        verbs_move_the_clock,
        maintenance_is_counted,
        order_is_enforced,
        unknown_names_are_refused,
        waiting_is_forward,
        scores_follow_exposures,
        the_same_again,
    ):
        check(make)
    if not rehearses:
        return

    def another() -> Rehearsal:
        made = make()
        assert isinstance(made, Rehearsal)
        return made

    for more in (again_starts_anew, peeking_is_free, worth_is_of_exposures, first_visits_are_known):
        more(another)


def _has_all(microscope: Microscope) -> bool:
    """Require all that a microscope has, and all of a `Rehearsal` or no `again`: which of them."""
    lacks = [part for part in _PARTS if not hasattr(microscope, part)]
    require(not lacks, microscope, f"lacks {', '.join(lacks)}")
    lacks = [part for part in _MORE if not hasattr(microscope, part)]
    partly = "again" not in lacks and lacks
    require(not partly, microscope, f"can be played again, but lacks {', '.join(lacks)}")
    found = microscope.upkeep
    require(isinstance(found, Mapping), microscope, f"upkeep is {found!r}; give seconds by kind")
    return not lacks


def _with_a_grid(make: Callable[[], Microscope]) -> Microscope:
    """A new one with its first grid loaded, and the atlas seen."""
    loader = make()
    assert isinstance(loader, Autoloader)
    loader.load(loader.grids[0])
    loader.squares()
    return loader


def grids_are_loaded(make: Callable[[], Microscope]) -> None:
    loader = make()
    assert isinstance(loader, Autoloader)
    grids = loader.grids
    right = isinstance(grids, tuple) and all(isinstance(name, str) and name for name in grids)
    require(
        right and grids, loader, f"grids is {grids!r}; it must be a tuple of names, at least one"
    )
    check_unique("grid", grids)
    atlas: dict[str, list[str]] = {}
    for name in (*grids, grids[0]):
        before = loader.clock
        said = loader.load(name)
        took = loader.clock - before
        told = math.isfinite(said) and said >= 0.0 and abs(took - said) <= _SLACK
        require(told, loader, f"load returned {said!r} s, but the clock moved by {took:g} s")
        seen = [square.name for square in loader.squares()]
        same = seen == atlas.setdefault(name, seen)
        require(same, loader, f"grid {name!r} has other squares when it is loaded again")
    check_unique("square", (square for seen in atlas.values() for square in seen))
    require(loader.grids == grids, loader, "grids changed on the way")
    none = "no such name"
    _refuses(loader, "loading an unknown grid", lambda: loader.load(none), naming=none)


def _patches(microscope: Microscope, least: int = 1) -> Iterable[Patch]:
    for square in microscope.squares():
        for patch in microscope.survey(square.name).patches:
            if len(patch.holes) >= least:
                yield patch


def _patch(microscope: Microscope) -> Patch:
    """The first patch that has two holes, its square surveyed."""
    found = next(iter(_patches(microscope, 2)), None)
    if found is None:
        raise ValueError("check_microscope needs a grid with a patch of at least two holes")
    return found


def _refuses(
    microscope: Microscope, what: str, action: Callable[[], object], *, naming: str = ""
) -> None:
    """Require a KeyError or ValueError that names the culprit, at no cost."""
    before, raised, said = microscope.clock, "nothing", ""
    try:
        action()
    except Exception as error:
        raised, said = type(error).__name__, str(error)
    allowed = raised in ("ValueError", "KeyError")
    require(allowed, microscope, f"{what} must raise ValueError or KeyError, raised {raised}")
    require(
        naming in said, microscope, f"refusing {what}, the message must name {naming!r}: {said}"
    )
    require(microscope.clock == before, microscope, f"refusing {what} moved the clock")


def it_says_what_to_expect(make: Callable[[], Microscope]) -> None:
    microscope = make()
    timing, names = microscope.timing, microscope.feature_names
    right = isinstance(timing, Timing)
    require(right, microscope, f"timing is {timing!r}; it must be a coaf.cryoem.Timing")
    right = isinstance(names, tuple) and all(isinstance(name, str) and name for name in names)
    require(right, microscope, f"feature_names is {names!r}; it must be a tuple of names")
    twice = [name for name, count in Counter(names).items() if count > 1]
    require(not twice, microscope, f"feature_names has {twice[:1]} twice")
    patch = _patch(microscope)
    microscope.move(patch)
    microscope.expose(patch.holes[0])
    same = microscope.timing == timing
    require(same, microscope, "timing changed; it is what to expect before anything was measured")
    require(microscope.feature_names == names, microscope, "feature_names changed on the way")


def squares_are_stable(make: Callable[[], Microscope]) -> None:
    microscope = make()
    before = [square.name for square in microscope.squares()]
    check_unique("square", before)
    start = microscope.clock
    require(start >= 0.0, microscope, f"the clock starts at {start:g}; it starts at 0 or later")
    again = [square.name for square in microscope.squares()]
    require(again == before, microscope, "squares() changed from one call to the next")
    require(
        microscope.clock == start, microscope, "squares() took time; the atlas is there already"
    )
    _patch(microscope)
    again = [square.name for square in microscope.squares()]
    require(again == before, microscope, "squares() changed when a square was surveyed")


def surveys_are_paid_once(make: Callable[[], Microscope]) -> None:
    microscope = make()
    square = _patch(microscope).square
    paid = microscope.clock
    first, again = microscope.survey(square), microscope.survey(square)
    require(microscope.clock == paid, microscope, "a second survey of a square took time")
    same = [p.name for p in first.patches] == [p.name for p in again.patches]
    require(same, microscope, "a second survey of a square shows other patches")


def surveys_fit_together(make: Callable[[], Microscope]) -> None:
    microscope = make()
    holes: list[str] = []
    patches: list[str] = []
    for square in list(microscope.squares())[:4]:
        survey = microscope.survey(square.name)
        _fits(microscope, square, survey)
        patches += [patch.name for patch in survey.patches]
        holes += [hole.name for patch in survey.patches for hole in patch.holes]
    check_unique("patch", patches)
    check_unique("hole", holes)


def _fits(microscope: Microscope, square: Square, survey: Survey) -> None:
    require(survey.square == square.name, microscope, "a survey is of another square than asked")
    named = {patch.name for patch in survey.patches}
    require(set(survey.features) == named, microscope, "features must have one entry per patch")
    columns = len(microscope.feature_names)
    for patch in survey.patches:
        rows = survey.features[patch.name]
        right = rows.ndim == 2 and len(rows) == len(patch.holes) and bool(np.isfinite(rows).all())
        require(right, microscope, f"features of {patch.name!r} need one finite row per hole")
        require(patch.square == square.name, microscope, f"{patch.name!r} is of another square")
        require(
            rows.shape[1] == columns,
            microscope,
            f"features of {patch.name!r} have {rows.shape[1]} columns, feature_names {columns}",
        )


def verbs_move_the_clock(make: Callable[[], Microscope]) -> None:
    microscope = make()
    patch = _patch(microscope)
    for hole in (None, *patch.holes[:2]):
        verb, before = "expose" if hole else "move", microscope.clock
        said = microscope.expose(hole) if hole else microscope.move(patch)
        took = microscope.clock - before
        require(took >= 0.0, microscope, f"{verb} moved the clock back by {-took:g} s")
        told = math.isfinite(said) and abs(took - said) <= _SLACK
        require(told, microscope, f"{verb} returned {said!r} s, but the clock moved by {took:g} s")
        require(took > 0.0, microscope, f"{verb} took no time")
    before = microscope.clock
    microscope.collect()
    require(microscope.clock == before, microscope, "collect() took time; it only asks")


def maintenance_is_counted(make: Callable[[], Microscope]) -> None:
    microscope = make()
    for patch in list(_patches(microscope))[:3]:
        for hole in (None, *patch.holes):
            before, kept = microscope.clock, upkeep_of(microscope)
            if hole is None:
                microscope.move(patch)
            else:
                microscope.expose(hole)
            spent, upkeep = microscope.clock - before, upkeep_of(microscope) - kept
            within, verb = 0.0 <= upkeep <= spent + _SLACK, "an exposure" if hole else "a move"
            require(within, microscope, f"upkeep grew by {upkeep:g} s in {verb} of {spent:g} s")
        microscope.wait(8 * HOUR)
    require(upkeep_of(microscope) <= microscope.clock, microscope, "upkeep is more than the clock")


def order_is_enforced(make: Callable[[], Microscope]) -> None:
    microscope = make()
    patch = _patch(microscope)
    first, second = patch.holes[:2]
    expose = microscope.expose
    _refuses(microscope, "exposing before moving", lambda: expose(first), naming=first.name)
    microscope.move(patch)
    expose(first)
    _refuses(microscope, "exposing a hole twice", lambda: expose(first), naming=first.name)
    other = next((p for p in _patches(microscope) if p.name != patch.name), None)
    if other is not None:
        microscope.move(other)
        away = "exposing a hole of the patch that was left"
        _refuses(microscope, away, lambda: expose(second), naming=second.name)


def unknown_names_are_refused(make: Callable[[], Microscope]) -> None:
    microscope = make()
    patch = _patch(microscope)
    none = "no such name"
    survey, move = microscope.survey, microscope.move
    _refuses(microscope, "surveying an unknown square", lambda: survey(none), naming=none)
    lost = replace(patch, name=none)
    _refuses(microscope, "moving to an unknown patch", lambda: move(lost), naming=none)
    move(patch)
    ghost = Hole(none, patch.x, patch.y)
    _refuses(microscope, "exposing an unknown hole", lambda: microscope.expose(ghost), naming=none)


def waiting_is_forward(make: Callable[[], Microscope]) -> None:
    microscope = make()
    before = microscope.clock
    microscope.wait(10.0)
    passed = microscope.clock - before
    require(abs(passed - 10.0) <= _SLACK, microscope, f"wait(10) moved the clock by {passed:g} s")
    for wrong in (-1.0, math.nan, math.inf):
        _refuses(microscope, f"wait({wrong})", lambda wrong=wrong: microscope.wait(wrong))  # type: ignore[misc]


def _work(microscope: Microscope) -> tuple[dict[tuple[str, int], float], list[Score]]:
    """Expose half of the holes of three patches, and collect on the way and at the end."""
    taken: dict[tuple[str, int], float] = {}
    scores: list[Score] = []
    for patch in list(_patches(microscope))[:3]:
        microscope.move(patch)
        for hole in patch.holes[: (len(patch.holes) + 1) // 2]:
            before = microscope.clock
            microscope.expose(hole)
            taken.update({(hole.name, shot): before for shot in range(hole.shots)})
            new = microscope.collect()
            late = [score for score in new if score.arrived_at > microscope.clock + _SLACK]
            require(not late, microscope, f"{late[:1]} was collected before it arrived")
            scores += new
    microscope.wait(_LONG)
    scores += microscope.collect()
    require(not microscope.collect(), microscope, "collect() gave again what it gave before")
    return taken, scores


def scores_follow_exposures(make: Callable[[], Microscope]) -> None:
    microscope = make()
    require(not microscope.collect(), microscope, "there are scores before anything was exposed")
    taken, scores = _work(microscope)
    seen: set[tuple[str, int]] = set()
    arrivals = [score.arrived_at for score in scores]
    require(arrivals == sorted(arrivals), microscope, "scores must come oldest first")
    for score in scores:
        shot = (score.hole, score.shot)
        require(shot in taken, microscope, f"{shot} has a score, but was not exposed")
        require(shot not in seen, microscope, f"{shot} was scored twice")
        seen.add(shot)
        require(
            taken[shot] <= score.exposed_at <= score.arrived_at,
            microscope,
            f"{shot} was exposed after {taken[shot]:g} s by the clock, its score says exposed at "
            f"{score.exposed_at:g} s and arrived at {score.arrived_at:g} s",
        )
        fit = score.ctf is None or 0.0 < score.ctf < 1000.0
        require(fit, microscope, f"{shot} has a ctf of {score.ctf!r}; Å, or None without a fit")
    require(scores, microscope, f"no score of {len(taken)} shots ever arrived")


def the_same_again(make: Callable[[], Microscope]) -> None:
    one, other = make(), make()
    same = _work(one) == _work(other) and one.clock == other.clock
    require(same, one, "the same calls on two made alike gave other times or scores")


def _one(_: Score) -> float:
    return 1.0


def _none(_: Score) -> None:
    return None


def _fine(score: Score) -> float | None:
    """A reward that tells scores apart."""
    return None if score.ctf is None else 1.0 / score.ctf


def again_starts_anew(make: Callable[[], Rehearsal]) -> None:
    microscope = make()
    first = _work(microscope), microscope.clock
    left = microscope.clock, microscope.worth(_one)
    fresh = microscope.again()
    clocks = fresh.clock, upkeep_of(fresh)
    require(clocks == (0.0, 0.0), microscope, f"again() starts with clock and upkeep {clocks}")
    bare = not fresh.collect() and not fresh.worth(_one)
    require(bare, microscope, "again() starts with something exposed")
    try:
        second = _work(fresh), fresh.clock
    except (KeyError, ValueError) as error:
        name = type(microscope).__name__
        raise ContractError(f"{name}: again() does not start anew: {error}") from error
    require(second == first, microscope, "again() gave other times or scores than the first time")
    kept = (microscope.clock, microscope.worth(_one)) == left
    require(kept, microscope, "what was done with again() changed the one that it came from")


def peeking_is_free(make: Callable[[], Rehearsal]) -> None:
    plain, microscope = make(), make()
    last = _patch(plain)
    none = "no such name"
    _refuses(microscope, "peeking at an unknown square", lambda: microscope.peek(none), naming=none)
    for square in microscope.squares():
        before = microscope.clock, upkeep_of(microscope)
        seen = microscope.peek(square.name)
        free = (microscope.clock, upkeep_of(microscope)) == before
        require(free, microscope, "peek() took time; it is what a survey would show")
        if square.name == last.square:
            only = "moving to a patch of a square only peeked at"
            _refuses(microscope, only, lambda: microscope.move(last), naming=last.square)
        shown = microscope.survey(square.name)
        require(_alike(seen, shown), microscope, "peek() shows something else than survey()")
        if square.name == last.square:
            break
    paid = microscope.clock == plain.clock
    require(paid, microscope, "a square that was peeked at takes another time to survey")


def _alike(one: Survey, other: Survey) -> bool:
    return (
        (one.square, one.patches, one.excluded) == (other.square, other.patches, other.excluded)
        and one.features.keys() == other.features.keys()
        and all(np.array_equal(rows, other.features[name]) for name, rows in one.features.items())
    )


def worth_is_of_exposures(make: Callable[[], Rehearsal]) -> None:
    microscope = make()
    require(not microscope.worth(_one), microscope, "worth() knows holes before any was exposed")
    taken, scores = _work(microscope)
    shots = Counter(hole for hole, _ in taken)
    by_hole = microscope.worth(_one) == shots
    require(by_hole, microscope, "worth() must have each hole exposed, and add up its shots")
    missing = microscope.worth(_none) == dict.fromkeys(shots, 0.0)
    require(missing, microscope, "worth() must count a reward that is None as 0")
    worth = microscope.worth(_fine)
    scored = Counter(score.hole for score in scores)
    for hole in (hole for hole in shots if scored[hole] == shots[hole]):
        told = sum(_fine(score) or 0.0 for score in scores if score.hole == hole)
        same = close(worth[hole], told)
        require(same, microscope, f"{hole!r} is worth {worth[hole]}, and its scores say {told}")


def first_visits_are_known(make: Callable[[], Rehearsal]) -> None:
    microscope = make()
    patch = _patch(microscope)
    hole, before, none = patch.holes[0], microscope.clock, "no such name"
    shots = microscope.first_visit(_one, hole.name)
    added = shots == hole.shots
    require(added, microscope, f"first_visit() of 1 a shot is {shots}, of {hole.shots} shots")
    missing = microscope.first_visit(_none, hole.name) == 0.0
    require(missing, microscope, "first_visit() must count a reward that is None as 0")
    value = microscope.first_visit(_fine, hole.name)
    require(math.isfinite(value), microscope, f"a first visit of {hole.name!r} gives {value}")
    bare = microscope.clock == before and not microscope.worth(_one)
    require(bare, microscope, "first_visit() took time, or exposed something; it only asks")
    unknown = "the first visit of an unknown hole"
    _refuses(microscope, unknown, lambda: microscope.first_visit(_fine, none), naming=none)
    microscope.move(patch)
    microscope.expose(hole)
    for one in (microscope, microscope.again()):
        same = one.first_visit(_fine, hole.name) == value
        require(same, microscope, "what a first visit gives changed, by exposing or by again()")
