"""Holes into patches: what one stage move reaches by beam shift, and where to focus there."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from coaf.bandit.arrays import FloatArray, IntArray, floats, number
from coaf.cryoem.grid import Hole, Patch, check_unique
from coaf.cryoem.vision.circles import smallest_circle

_SLACK = 1e-9  # a hole at the very rim of a patch belongs to it, whatever the rounding
_STEP = 0.25  # µm between the places tried for focusing
_MANY = 2000  # holes beyond which one angle of cutting must do
_ANGLES = np.radians(np.arange(0.0, 90.0, 15.0))  # cuts along and across, so 90 degrees repeat


@dataclass(frozen=True, slots=True)
class Grouping:
    """The patches of a square, and how many holes are in none of them, by reason."""

    patches: tuple[Patch, ...]
    excluded: dict[str, int] = field(default_factory=dict)


def group_holes(
    holes: Sequence[Hole],
    *,
    square: str,
    radius: float = 12.0,
    most: int = 25,
    exposed: Collection[str] = (),
    before: Sequence[Patch] = (),
    edges: npt.ArrayLike | None = None,
    margin: float = 1.0,
    beam: float = 0.6,
) -> Grouping:
    """Group the unexposed holes of a square into few and compact patches.

    The same holes in any order give the same patches. Given the patches of `before`, a hole stays
    in its patch, and a patch that still has holes keeps its name, its place and its focus; new
    holes join a patch that has room within reach, and only the rest makes new patches.

    Parameters
    ----------
    holes
        All holes of the square, exposed ones too: the focus must miss them all.
    square
        The square's name, with which the names of its patches begin.
    radius
        How far beam shift reaches from the centre of a patch, in µm.
    most
        The most holes in a patch.
    exposed
        Names of holes that were exposed. Names of other squares' holes do no harm.
    before
        The patches of the square as they were grouped last.
    edges : (n,)
        How far each hole's centre is from the nearest grid bar, in µm, where that is known.
    margin
        A hole is left out if its rim is nearer to a bar than this.
    beam
        Radius of the beam that focuses, in µm: it touches no hole, and lands within half the
        `radius` of the centre. Where there is no such place the focus is None.

    Examples
    --------
    >>> holes = [Hole(f"h{i}", x=2.5 * (i % 6), y=2.5 * (i // 6)) for i in range(36)]
    >>> found = group_holes(holes, square="s1", most=20, exposed={"h0"}, edges=[5.0] * 35 + [1.0])
    >>> [(patch.name, len(patch.holes), patch.focus) for patch in found.patches]
    [('s1@+7.5,+5.0', 17, (7.5, 3.75)), ('s1@+5.0,+7.5', 17, (5.0, 6.25))]
    >>> found.excluded
    {'exposed': 1, 'near a grid bar': 1}
    """
    radius, beam = number("radius", radius, above=0.0), number("beam", beam, low=0.0)
    margin = number("margin", margin)
    if int(most) != most or most < 1:
        raise ValueError(f"most is {most}; a patch has at least one hole")
    check_unique("hole", (hole.name for hole in holes))
    check_unique("hole of `before`", (hole.name for patch in before for hole in patch.holes))
    order = sorted(range(len(holes)), key=lambda i: (holes[i].y, holes[i].x, holes[i].name))
    near = _near_bar(holes, edges, margin)
    excluded: dict[str, int] = {}
    free: list[Hole] = []
    gone = frozenset(exposed)
    for i in order:
        reason = "exposed" if holes[i].name in gone else "near a grid bar" if near[i] else ""
        if reason:
            excluded[reason] = excluded.get(reason, 0) + 1
        else:
            free.append(holes[i])
    kept, rest = _keep(free, before, square, radius, most)
    made = _join(kept, rest, radius, most)
    if rest:
        places = np.array([(hole.x, hole.y) for hole in rest])
        taken = {patch.name for patch in before}
        for members in _partition(places, radius, most):
            (x, y), _ = smallest_circle(places[members])
            name = _name(square, (x, y), taken)
            taken.add(name)
            made.append(Patch(name, square, tuple(rest[i] for i in members), x, y))
    foil = _Foil(holes, beam, reach=radius / 2.0)
    return Grouping(tuple(replace(p, focus=foil.focus(p)) for p in made), excluded)


def _near_bar(holes: Sequence[Hole], edges: npt.ArrayLike | None, margin: float) -> list[bool]:
    if edges is None:
        return [False] * len(holes)
    away = floats("edges", edges, ndim=1)
    if len(away) != len(holes):
        raise ValueError(f"edges has {len(away)} distances for {len(holes)} holes")
    return [d - hole.radius < margin for d, hole in zip(away.tolist(), holes, strict=True)]


def _keep(
    free: list[Hole], before: Sequence[Patch], square: str, radius: float, most: int
) -> tuple[list[Patch], list[Hole]]:
    """The patches of before with the holes that are still theirs, and all other holes."""
    check_unique("patch", (patch.name for patch in before))
    by_name = {hole.name: hole for hole in free}
    kept = []
    for patch in before:
        if patch.square != square:
            raise ValueError(f"patch {patch.name!r} is of square {patch.square!r}, not {square!r}")
        there = [by_name[hole.name] for hole in patch.holes if hole.name in by_name]
        # A hole may have been found again elsewhere, and the limits may be others than before.
        near = sorted(
            (hole for hole in there if _apart(hole, patch) <= radius * (1.0 + _SLACK)),
            key=lambda hole: (_apart(hole, patch), hole.name),
        )[:most]
        names = {hole.name for hole in near}
        if near:
            kept.append(replace(patch, holes=tuple(h for h in there if h.name in names)))
            for name in names:
                del by_name[name]
    return kept, list(by_name.values())


def _apart(hole: Hole, patch: Patch) -> float:
    return sqrt((hole.x - patch.x) ** 2 + (hole.y - patch.y) ** 2)


def _join(kept: list[Patch], rest: list[Hole], radius: float, most: int) -> list[Patch]:
    """Let new holes into the nearest patch that has room and reach; they leave `rest`."""
    if not kept or not rest:
        return kept
    members = [list(patch.holes) for patch in kept]
    tree = KDTree([(patch.x, patch.y) for patch in kept])
    alone = []
    for hole in rest:
        near = tree.query_ball_point((hole.x, hole.y), radius)
        room = [j for j in near if len(members[j]) < most]
        if room:
            members[min(room, key=lambda j: (_apart(hole, kept[j]), j))].append(hole)
        else:
            alone.append(hole)
    rest[:] = alone
    return [replace(p, holes=tuple(m)) for p, m in zip(kept, members, strict=True)]


def _name(square: str, centre: tuple[float, float], taken: Collection[str]) -> str:
    """The square and the place in µm, with as many decimals as it needs to be the only one."""
    for decimals in range(1, 16):
        x, y = (round(c, decimals) + 0.0 for c in centre)  # no minus before a zero
        name = f"{square}@{x:+.{decimals}f},{y:+.{decimals}f}"
        if name not in taken:
            return name
    # Only holes on top of each other get here.
    return next(n for i in range(2, len(taken) + 3) if (n := f"{name} {i}") not in taken)


def _partition(places: FloatArray, radius: float, most: int) -> list[IntArray]:
    """Few and compact groups: cut in halves at several angles, join what fits, keep the best."""
    # Rounding far from the origin must not decide between holes in one row.
    middle = (places - places.min(axis=0)).round(7)
    found: list[IntArray] = []
    least = (np.inf, np.inf)
    for angle in _ANGLES if len(places) <= _MANY else _ANGLES[:1]:
        along = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        groups = list(_halves((middle @ along).round(7), middle, radius, most))
        groups = _merge(groups, middle, radius, most)
        spread = sum(float(np.square(middle[g] - middle[g].mean(axis=0)).sum()) for g in groups)
        # A turned cut must be better by more than rounding.
        if (len(groups), spread) < (least[0], least[1] * (1.0 - 1e-6)) or len(groups) < least[0]:
            found, least = groups, (len(groups), spread)
    return sorted(found, key=lambda g: int(g[0]))


def _halves(turned: FloatArray, places: FloatArray, radius: float, most: int) -> Iterator[IntArray]:
    """Cut across the longer side, each part in proportion to the patches it will need."""
    stack: list[IntArray] = [np.arange(len(places))]
    side = radius * sqrt(2.0)
    while stack:
        ids = stack.pop()
        n, size = len(ids), np.ptp(turned[ids], axis=0)
        if n <= most and _fits(places[ids], radius):
            yield ids
            continue
        axis = int(size[1] > size[0])
        parts = ceil(n / most)
        if parts < max(size.prod() / side**2, size[axis] / (2.0 * radius), 2.0):
            parts = max(ceil(size[axis] / side), 2)  # reach is scarcer than room
        cut = min(max(n * (parts // 2) // parts, 1), n - 1)
        ranked = ids[np.lexsort((ids, turned[ids, 1 - axis], turned[ids, axis]))]
        stack += [np.sort(ranked[cut:]), np.sort(ranked[:cut])]


def _merge(groups: list[IntArray], places: FloatArray, radius: float, most: int) -> list[IntArray]:
    """Join neighbours that fit in one patch, the closest first."""
    while len(groups) > 1:
        centres = np.array([places[g].mean(axis=0) for g in groups])
        sizes = np.array([len(g) for g in groups])
        pairs = KDTree(centres).query_pairs(2.0 * radius, output_type="ndarray")
        pairs = pairs[sizes[pairs].sum(axis=1) <= most]
        apart = np.square(centres[pairs[:, 0]] - centres[pairs[:, 1]]).sum(axis=1).round(6)
        joined: set[int] = set()
        made = []
        for i, j in pairs[np.lexsort((pairs[:, 1], pairs[:, 0], apart))].tolist():
            if i in joined or j in joined:
                continue
            both = np.sort(np.concatenate([groups[i], groups[j]]))
            if _fits(places[both], radius):
                made.append(both)
                joined |= {i, j}
        if not made:
            break
        groups = [g for i, g in enumerate(groups) if i not in joined] + made
    return groups


def _fits(places: FloatArray, radius: float) -> bool:
    if np.ptp(places, axis=0).max() > 2.0 * radius:
        return False
    return smallest_circle(places)[1] <= radius * (1.0 - _SLACK)


class _Foil:
    """Where a beam touches no hole."""

    def __init__(self, holes: Sequence[Hole], beam: float, reach: float) -> None:
        self.places = np.array([(hole.x, hole.y) for hole in holes]).reshape(-1, 2)
        self.away = np.array([hole.radius + beam for hole in holes])
        self.tree = KDTree(self.places)
        ticks = np.arange(-int(reach / _STEP), int(reach / _STEP) + 1) * _STEP
        tried = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        apart = np.square(tried).sum(axis=1)
        order = np.argsort(apart, kind="stable")
        self.tried = tried[order][apart[order] <= reach**2]

    def focus(self, patch: Patch) -> tuple[float, float] | None:
        """The one it has if it still misses, else the nearest to the centre that does."""
        if patch.focus is not None and self.clear(np.array(patch.focus)):
            return patch.focus
        for first in range(0, len(self.tried), 256):
            tried = self.tried[first : first + 256] + np.array([patch.x, patch.y])
            # Rules most out at once where holes are dense; the sizes of the others decide the rest.
            maybe = self.tree.query(tried)[0] >= self.away.min()
            for place in tried[maybe]:
                if self.clear(place):
                    x, y = place.tolist()
                    return x, y
        return None

    def clear(self, place: FloatArray) -> bool:
        near = self.tree.query_ball_point(place, self.away.max())
        apart = np.square(self.places[near] - place).sum(axis=1)
        return bool((apart >= np.square(self.away[near])).all())
