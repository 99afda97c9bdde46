"""Recordings for tests: one by hand, and any that hypothesis can think of."""

from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from coaf.cryoem.recorded.build import HoleRow, ShotRow, from_rows
from coaf.cryoem.recorded.columns import MEASURED, RESERVED, ROLES, Column
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.recorded.seconds import Seconds

NAN = float("nan")
NAMES = st.text(
    st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6
) | st.sampled_from(["a b", 'say "so"', "x,y", "=1+1", "#1", "1", "none", "[a]", "d'accord"])
COLUMNS = NAMES.filter(lambda name: name not in (*RESERVED, *MEASURED))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.floats(allow_infinity=False)


def small() -> Recording:
    """Two squares, three patches, five holes: of three, two, one, no and one shots."""
    described = {
        "ice": Column("before", "nm", "thickness of the ice"),
        "defocus": Column("shot", "µm"),
        **MEASURED,
    }
    holes = [
        HoleRow("h1", "p1", "s1", "g", 0.0, 0.0, [20.0]),
        HoleRow("h2", "p1", "s1", "g", 2.0, 0.0, [30.0]),
        HoleRow("h3", "p2", "s1", "g", 9.0, 9.0, [25.0]),
        HoleRow("h4", "p2", "s1", "g", 11.0, 9.0, [90.0]),
        HoleRow("h5", "p3", "s2", "g", 500.0, 0.0, [NAN]),
    ]
    shots = [
        _shot("h1", 0, 10.0, 3.0, 100.0),
        _shot("h1", 1, 14.0, 5.0, 50.0),
        _shot("h1", 2, 18.0, NAN, NAN),
        _shot("h2", 1, 25.0, 3.5, 80.0),
        _shot("h2", 3, 29.0, 3.6, NAN),
        _shot("h3", 0, 90.0, 6.0, 10.0),
        _shot("h5", 0, 300.0, 4.0, 20.0),
    ]
    seconds = Seconds(12.0, 50.0, 6.0, 4.0)
    return from_rows("small", holes, shots, described, seconds, provenance={"by": "hand"})


def _shot(hole: str, number: int, when: float, ctf: float, particles: float) -> ShotRow:
    return ShotRow(hole, number, when, {"defocus": -1.5, "ctf": ctf, "particles": particles})


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Any recording of a few holes."""
    names = draw(st.lists(COLUMNS, max_size=4, unique=True))
    roles = st.sampled_from(ROLES)
    described: dict[str, Column] = {
        name: Column(draw(roles), draw(TEXTS), draw(TEXTS)) for name in names
    }
    described |= draw(st.sampled_from([{}, MEASURED, {"ctf": MEASURED["ctf"]}]))
    known = sum(told.role == "before" for told in described.values())
    places = draw(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=4))
    lies_in: dict[str, Any] = {patch: (patch, square) for patch, square, _ in places}
    grid_of = {square: grid for _, square, grid in places}
    holes = [
        HoleRow(
            hole,
            patch,
            square,
            grid_of[square],
            draw(VALUES),
            draw(VALUES),
            draw(st.lists(VALUES, min_size=known, max_size=known)),
        )
        for hole in draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
        for patch, square in [lies_in[draw(st.sampled_from(sorted(lies_in)))]]
    ]
    each = st.tuples(st.sampled_from([row.hole for row in holes]), st.integers(0, 10**18 - 1))
    shots = [
        ShotRow(hole, number, draw(_least(0.0)), _values(draw, described))
        for hole, number in draw(st.lists(each, max_size=5, unique=True))
    ]
    seconds = Seconds(*(draw(st.floats(0.001, 1e9)) for _ in Seconds._fields))
    told = draw(st.dictionaries(NAMES, TEXTS, max_size=2))
    return from_rows(draw(NAMES), holes, shots, described, seconds, provenance=told)


def _least(low: float) -> st.SearchStrategy[float]:
    return st.just(NAN) | st.floats(low, 99_999.0, exclude_min=low == 0.0)


def _values(draw: st.DrawFn, described: dict[str, Column]) -> dict[str, float]:
    columns = [name for name, told in described.items() if told.role != "before"]
    return {name: draw(_least(0.0) if name in MEASURED else VALUES) for name in columns}


def same(one: Recording, other: Recording) -> bool:
    """All but the files they come from."""
    for name in ("name", "holes", "patches", "squares", "grids", "described", "seconds"):
        if getattr(one, name) != getattr(other, name):
            return False
    if one.provenance != other.provenance or list(one.described) != list(other.described):
        return False
    pairs = [(getattr(one, n), getattr(other, n)) for n in ("starts", "x", "y", "known")]
    pairs += [(getattr(one.shots, n), getattr(other.shots, n)) for n in ("hole", "number", "when")]
    pairs += [(values, other.shots.values[n]) for n, values in one.shots.values.items()]
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


BYTES = [
    b"",
    b",",
    b'"',
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b"[",
    b"]",
    b"=",
    b"nan",
    b"inf",
    b"1e999",
]
BYTES += [b"-1", b"0", b"999999999999999999999", b"\xef\xbb\xbf", b"\xe2\x80\x8b", b"'''", b"{"]


def mutated(data: bytes, luck: Random) -> bytes:
    """A few bytes or lines taken out, doubled, swapped or replaced."""
    for _ in range(luck.randint(1, 3)):
        if luck.random() < 0.5:
            parts = data.splitlines(keepends=True)
            at, other = luck.randrange(len(parts) + 1), luck.randrange(len(parts) + 1)
            if luck.random() < 0.5:
                parts[at : at + 1] = parts[other : other + 1]
            else:
                parts[at:other] = []
            data = b"".join(parts)
        else:
            at = luck.randrange(len(data) + 1)
            data = data[:at] + luck.choice(BYTES) + data[at + luck.randint(0, 3) :]
    return data
