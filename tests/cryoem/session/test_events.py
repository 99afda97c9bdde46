"""Events go to JSON and back; what does not fit is named, and nothing else is raised."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from math import inf, nan
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.cryoem.grid import Patch
from coaf.cryoem.images import Image
from coaf.cryoem.microscope import Survey
from coaf.cryoem.pilots.knowledge import Knowledge
from coaf.cryoem.session import events as ev
from coaf.cryoem.session.instructions import Instruction, Plan
from cryoem.session.hand import survey

NUMBERS = st.floats(1.0, 1e12) | st.integers(1, 10**6).map(float)


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type, by its hints."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is NoneType:
        return st.none()
    if origin in (Union, UnionType):
        return st.one_of([strategy(one) for one in inner if one is not Image])
    if origin is Literal:
        return st.sampled_from(inner)
    if kind is float:
        return NUMBERS
    if kind is int:
        return st.integers(1, 9)
    if kind is str:
        return st.text(min_size=1)
    if kind is bool:
        return st.booleans()
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(strategy(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(strategy, inner))
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(strategy(inner[0]), strategy(inner[1]), max_size=3)
    if kind is Survey:
        return surveys()
    if kind is Knowledge:
        return st.builds(replace, st.just(LEARNED), scores=st.integers(1, 9), near=NUMBERS)
    assert is_dataclass(kind), kind
    return made(kind)


def made(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{one.name: strategy(hints[one.name]) for one in fields(kind)})


@st.composite
def surveys(draw: st.DrawFn) -> Survey:
    names = draw(st.lists(st.text(), max_size=3, unique=True))
    sizes = {name: draw(st.integers(1, 3)) for name in names}
    columns = draw(st.integers(0, 2))
    shown = survey("sq", sizes, shots=draw(st.integers(1, 3)))
    value = st.floats(-1e9, 1e9)
    rows = {
        name: np.array(draw(st.lists(value, min_size=columns * n, max_size=columns * n))).reshape(
            n, columns
        )
        for name, n in sizes.items()
    }
    focus = draw(st.none() | st.tuples(value, value))
    patches = tuple(replace(patch, focus=focus) for patch in shown.patches)
    excluded = draw(st.dictionaries(st.text(), st.integers(0, 9), max_size=2))
    return Survey("sq", patches, rows, excluded=excluded)


def through(event: ev.Event) -> ev.Event:
    return ev.from_json(json.loads(json.dumps(ev.to_json(event), allow_nan=False)))


LEARNED = Knowledge("ctf<3.8", ("prediction",), (-4.0, 0.5), (0.5, 0.1), (0.4, 0.8), 0.7, 9)
KINDS = sorted(ev.EVENTS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_from_json_as_it_was(kind: str) -> None:
    cls = ev.EVENTS[kind]

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(made(cls))
    def check(event: ev.Event) -> None:
        back = through(event)
        assert type(back) is cls
        assert ev.to_json(back) == ev.to_json(event)
        if not hasattr(event, "survey"):  # surveys hold arrays, which have no one equality
            assert back == event
        else:
            one, other = getattr(event, "survey"), getattr(back, "survey")  # noqa: B009
            assert (one.square, one.patches, one.excluded) == (
                other.square,
                other.patches,
                other.excluded,
            )
            assert all(np.array_equal(rows, other.features[p]) for p, rows in one.features.items())
            assert all(rows.shape == other.features[p].shape for p, rows in one.features.items())

    check()


def test_all_that_a_session_may_hear_is_there() -> None:
    assert set(KINDS) == {
        *("started", "time passed", "upkeep", "paused", "resumed", "target changed"),
        *("budget changed", "fault acknowledged", "ended", "grid loaded", "atlas seen"),
        *("square opened", "square refused", "patch offered", "holes added", "hole moved"),
        *("holes deleted", "instructed", "plan given", "plan superseded", "plan closed"),
        *("moved", "exposed", "failed", "reconciled", "overridden", "scored", "corrected", "lost"),
    }


def examples() -> list[dict[str, Any]]:
    """One event of each kind, as JSON, with every entry."""
    go = Instruction("i1", "go", "p1", "why", 0.5, 0.01, 1.0, 50.0, "ctf<3.8", {"h1": 0.5}, "patch")
    values: dict[str, Any] = {
        "settings": ev.Settings(hours=2.0, grids=("a", "b"), plan_hours=1.0),
        "instruction": "i1",
        "plan": "plan 1",
        "survey": survey(),
        "squares": (),
        "holes": ("h1",),
        "what": "hole",
        "do": "force",
        "beam": "off",
        "taken": True,
        "shot": 0,
        "shots": 2,
        "values": {"ctf": 3.2, "particles": None},
        "known": {"defocus": 1.2},
    }
    found = []
    for kind, cls in ev.EVENTS.items():
        names = {one.name for one in fields(cls)} - {"id", "time"}
        numbers = dict.fromkeys(("x", "y", "seconds", "hours"), 1.5)
        given_ = {name: {**numbers, **values}.get(name, "some text") for name in names}
        if kind == "instructed":
            given_["instruction"] = go
        if kind == "plan given":
            given_["plan"] = Plan("plan 1", None, (go,))
        if kind == "failed":
            given_["what"] = "move"
        found.append(ev.to_json(cls(id="e1", time=3.0, **given_)))
    return found


WRONG: list[Any] = [None, True, "text", 3, -1, 2.5, 10**400, [], ["x"], {}, {"x": 1}, [[1], [2, 3]]]


def places(given: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where anything is in a JSON value."""
    if isinstance(given, dict):
        inner = [places(one, (*path, name)) for name, one in given.items()]
    elif isinstance(given, list):
        inner = [places(one, (*path, k)) for k, one in enumerate(given)]
    else:
        inner = []
    return [path, *(one for found in inner for one in found)]


def put(given: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = json.loads(json.dumps(given))
    inside = changed
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    return changed


@pytest.mark.parametrize("told", examples(), ids=lambda told: told["event"])
def test_a_wrong_entry_anywhere_is_a_value_error_at_worst(told: dict[str, Any]) -> None:
    """Each entry in turn is something else, and the whole is read again or refused."""
    refused = 0
    for path in places(told):
        for value in WRONG:
            try:
                event = ev.from_json(put(told, path, value))
            except ValueError as error:
                refused += bool(str(error))
            else:
                assert ev.to_json(through(event)) == ev.to_json(event)
    assert refused > len(WRONG)


@pytest.mark.parametrize("told", examples(), ids=lambda told: told["event"])
def test_missing_and_unknown_entries_are_named(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="has no 'colour'"):
        ev.from_json(told | {"colour": "red"})
    for name in ("id", "time"):
        with pytest.raises(ValueError, match=f"'{name}'"):
            ev.from_json({key: value for key, value in told.items() if key != name})
    for version in (None, 0, 2, "1"):
        with pytest.raises(ValueError, match=f"has version {version!r}; this release reads 1"):
            ev.from_json(told | {"version": version})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"time": "soon"}, "time of a 'moved' event is 'soon'; it must be a float"),
        ({"time": -1.0}, "time of event 'e1' is -1.0; it must be at least 0"),
        ({"time": 1e400}, "time of a 'moved' event is inf"),
        ({"seconds": -2.0}, "seconds of event 'e1' is -2.0"),
        ({"patch": 7}, "patch of a 'moved' event is 7; it must be a str"),
        ({"id": ""}, "id of a 'moved' event is ''"),
        ({"event": "danced"}, "'event' must be one of started"),
        ({"event": ["moved"]}, "'event' must be one of started"),
    ],
)
def test_the_wrong_entry_is_named(change: dict[str, Any], said: str) -> None:
    moved = ev.to_json(ev.Moved(id="e1", time=1.0, patch="p1"))
    with pytest.raises(ValueError, match=said.replace("(", r"\(").replace("[", r"\[")):
        ev.from_json(moved | change)


@pytest.mark.parametrize("given_", [None, [], "moved", 3, {}])
def test_what_is_no_event_is_refused(given_: Any) -> None:
    with pytest.raises(ValueError, match="no event"):
        ev.from_json(given_)


def test_inside_of_a_survey_the_place_is_named() -> None:
    told = ev.to_json(ev.SquareOpened(id="e1", time=0.0, survey=survey()))
    told["survey"]["patches"][0]["holes"][1]["x"] = "left"
    with pytest.raises(ValueError, match=r"x of holes of .*\[1\] is 'left'|x of .*\[1\].*'left'"):
        ev.from_json(told)
    told = ev.to_json(ev.SquareOpened(id="e1", time=0.0, survey=survey()))
    told["survey"]["features"]["s1p1"] = [[1.0], [1.0, 2.0]]
    with pytest.raises(ValueError, match="rows of numbers of one length"):
        ev.from_json(told)


def test_numbers_that_are_none_and_images_are_not_kept() -> None:
    """So that what an engine heard is what one hears that reads it again."""
    score = ev.ScoreCame(id="e1", time=0.0, hole="h", values={"ctf": nan, "particles": -inf})
    assert score.values == {"ctf": None, "particles": None}
    assert through(score) == score
    shown = ev.Exposed(id="e2", time=0.0, hole="h", known={"defocus": inf}, shots=2)
    assert through(shown) == shown
    drawn = replace(survey(), image=Image(np.zeros((16, 16), np.float32), 0.1))
    assert ev.SquareOpened(id="e3", time=0.0, survey=drawn).survey.image is None
    rows = {"s1p1": np.array([[nan], [1.0]]), "s1p2": np.ones((2, 1))}
    holed = ev.SquareOpened(id="e4", time=0.0, survey=replace(survey(), features=rows))
    assert np.isnan(through(holed).survey.features["s1p1"][0, 0])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ev.HoleMoved(id="e", time=0.0, hole="h", x=nan, y=0.0), "x of event 'e' is nan"),
        (lambda: ev.Exposed(id="e", time=0.0, hole="h", shots=0), "shots of event 'e' is 0"),
        (lambda: ev.BudgetChanged(id="e", time=0.0, hours=0.0), "hours of event 'e' is 0"),
        (lambda: ev.TimePassed(id="e", time=nan), "time of event 'e' is nan"),
        (lambda: ev.Settings(hours=-1.0), "hours is -1"),
        (lambda: ev.Settings(tries=0), "tries is 0"),
        (lambda: Patch("p", "s", (), 0.0, 0.0), "patch 'p' has no holes"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_made(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_a_cassette_holds_twelve_grids_that_have_names_of_their_own() -> None:
    names = tuple(f"grid {k}" for k in range(13))
    assert ev.Settings(grids=names[:12]).grids == names[:12]
    with pytest.raises(ValueError, match="13 grids; a cassette holds 12"):
        ev.Settings(grids=names)
    with pytest.raises(ValueError, match="grid 'a' is there more than once"):
        ev.Settings(grids=("a", "b", "a"))
