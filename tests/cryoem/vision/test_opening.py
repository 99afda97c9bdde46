"""The opening of a square: bars are told from foil, however they are lit."""

import numpy as np
import pytest

from coaf.cryoem.images import Image
from coaf.cryoem.vision.opening import find_opening


def square(side: int, lit: int = 0, *, size: int = 200) -> Image:
    """A bright square amid dark bars, of which the upper one catches some light."""
    pixels = np.random.default_rng(0).normal(5.0, 0.5, (size, size)).astype(np.float32)
    pixels[:lit] = 12.0
    first = (size - side) // 2 + lit // 2
    pixels[first : first + side, first : first + side] = 100.0
    return Image(pixels, 0.5)


def test_what_is_bright_amid_bars_is_open() -> None:
    opening = find_opening(square(120))
    assert opening.side == pytest.approx(60.0, abs=1.0)
    assert opening.centre == pytest.approx([0.0, 0.0], abs=0.5)
    assert opening.edge_distance(np.zeros((1, 2)))[0] == pytest.approx(30.0, abs=1.0)


def test_a_bar_in_the_light_is_not_open_however_small_the_square_is() -> None:
    """What is usual is judged among what is open, which here is less than a quarter of it."""
    image = square(98, lit=24)
    opening = find_opening(image)
    assert not opening.mask[:24].any()
    assert opening.side == pytest.approx(49.0, abs=1.0)


def test_without_bars_all_is_open_and_the_border_is_no_bar() -> None:
    opening = find_opening(Image(np.full((64, 64), 50.0, np.float32), 1.0))
    assert opening.mask.all()
    assert opening.edge_distance(np.zeros((1, 2)))[0] > 64.0
