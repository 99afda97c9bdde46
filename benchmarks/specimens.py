"""How well a hole finder does: specimens of every kind, and a judge that knows the truth."""

from dataclasses import dataclass

import numpy as np

from coaf.cryoem.images import Image
from coaf.cryoem.simulator.draw import Foil, Specimen, lay_holes, visible
from coaf.cryoem.vision.holes import FoundHoles

# Radius and spacing in µm of foils that are sold: R1.2/1.3, R2/1, R2/2, R1.2/0.6.
FOILS = ((0.6, 2.5), (1.0, 3.0), (1.0, 4.0), (0.6, 1.8))


def random_specimen(
    seed: int, *, size: float | None = None, foil: Foil | None = None, shade: float = 0.05
) -> Specimen:
    """A square with what goes wrong on real ones: ice of all kinds, tears, dirt, covered parts.

    Rotation, size (35 to 90 µm), hole pattern and foil are random where not given; `shade` is how
    much the beam's brightness changes to the side.
    """
    rng = np.random.default_rng([seed, 77])
    side = float(rng.uniform(35.0, 90.0))
    side = side if size is None else size
    radius, spacing = FOILS[rng.integers(len(FOILS))]
    angle = float(rng.uniform(-np.pi, np.pi))
    metal: Foil = "gold" if rng.random() < 0.5 else "carbon"
    metal = metal if foil is None else foil
    holes = lay_holes(size=side, spacing=spacing, radius=radius, angle=angle)
    holes = holes[rng.random(len(holes)) > 0.03] + rng.normal(0.0, 0.02 * spacing, 2)
    n = len(holes)
    slope = rng.normal(0.0, 25.0, 2) * 2.0 / side
    ice = 50.0 + rng.normal(0.0, 15.0) + holes @ slope + rng.normal(0.0, 15.0, n)
    ice = np.maximum(ice, 5.0)
    ice[rng.random(n) < 0.05] = 0.0
    ice[rng.random(n) < 0.05] += 150.0
    specks = int(rng.integers(0, 15))
    dirt = np.column_stack(
        [rng.uniform(-side / 2, side / 2, (specks, 2)), 0.2 + rng.exponential(0.8, specks)]
    )
    covered = np.zeros((0, 3))
    if rng.random() < 0.3:
        place = rng.uniform(-side / 2, side / 2, 2)
        covered = np.array([[*place, side * rng.uniform(0.15, 0.4)]])
    return Specimen(
        holes=holes,
        radius=np.full(n, radius),
        thickness=ice,
        tilt_of_ice=rng.normal(0.0, 8.0, (n, 2)),
        crystalline=rng.random(n) < 0.04,
        broken=rng.random(n) < 0.02,
        dirt=dirt,
        size=side,
        angle=angle,
        foil=metal,
        covered=covered,
        shade=rng.normal(0.0, shade, 2),
    )


@dataclass(frozen=True, slots=True)
class Marks:
    """How many holes were visible, how many of them found, how many places given, how many wrong.

    `error` is the median distance in µm of those found from where they are.
    """

    visible: int
    seen: int
    given: int
    wrong: int
    error: float

    @property
    def recall(self) -> float:
        """The share of visible holes that were found; 1 where there are none."""
        return self.seen / self.visible if self.visible else 1.0

    @property
    def precision(self) -> float:
        """The share of places given that are holes; 1 where none was given."""
        return 1.0 - self.wrong / self.given if self.given else 1.0


def mark(specimen: Specimen, image: Image, found: FoundHoles) -> Marks:
    """Compare what was found with what was drawn.

    A hole is found if a place is within half a radius. A place is wrong if no hole is that near, or
    the hole lies well under dirt or a cover. Holes that are torn or hard to see need not be found,
    and may be.
    """
    from scipy.spatial import cKDTree

    see = visible(specimen)
    if not len(found.holes) or not len(specimen.holes):
        return Marks(int(see.sum()), 0, len(found.holes), len(found.holes), 0.0)
    near = specimen.radius / 2.0
    places = image.to_stage(found.holes)
    away = cKDTree(places).query(specimen.holes)[0]
    seen = see & (away < near)
    buried = np.zeros(len(specimen.holes), dtype=np.bool_)
    for x, y, r in np.vstack([specimen.covered, specimen.dirt]):
        buried |= np.hypot(*(specimen.holes - [x, y]).T) < 0.6 * r - specimen.radius
    back, which = cKDTree(specimen.holes).query(places)
    # A tear has no centre: a place within the hole it began at is as good as any.
    wrong = (back > np.where(specimen.broken[which], 2.0, 1.0) * near[which]) | buried[which]
    error = float(np.median(away[seen])) if seen.any() else 0.0
    return Marks(int(see.sum()), int(seen.sum()), len(places), int(wrong.sum()), error)


def add(marks: list[Marks]) -> Marks:
    """The marks of many images as one."""
    return Marks(
        visible=sum(m.visible for m in marks),
        seen=sum(m.seen for m in marks),
        given=sum(m.given for m in marks),
        wrong=sum(m.wrong for m in marks),
        error=float(np.median([m.error for m in marks])),
    )
