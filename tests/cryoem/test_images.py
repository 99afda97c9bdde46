"""Images come back from disk as they went, and what is no image says so."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.cryoem.images import Image, read_image, read_mrc, write_mrc
from outside import SAMPLES

mrcfile = pytest.importorskip("mrcfile", reason="MRC files need the cryoem extra")


def picture(rows: int = 20, columns: int = 30) -> Image:
    pixels = np.random.default_rng(0).normal(100.0, 10.0, (rows, columns))
    return Image(pixels.astype(np.float32), 0.125, x=-40.0, y=7.0)


def test_mrc_keeps_pixels_and_their_size(tmp_path: Path) -> None:
    image = picture()
    write_mrc(image, tmp_path / "square.mrc")
    again = read_image(tmp_path / "square.mrc")
    np.testing.assert_array_equal(again.pixels, image.pixels)
    assert again.pixel_size == pytest.approx(0.125, rel=1e-6)
    assert read_mrc(tmp_path / "square.mrc", pixel_size=0.5).pixel_size == 0.5


def test_the_first_section_of_a_stack_is_read(tmp_path: Path) -> None:
    stack = np.arange(3 * 16 * 18, dtype=np.int16).reshape(3, 16, 18)
    with mrcfile.new(tmp_path / "stack.mrcs") as file:
        file.set_data(stack)
    np.testing.assert_array_equal(
        read_mrc(tmp_path / "stack.mrcs", pixel_size=1.0).pixels, stack[0]
    )


def test_mrc_without_a_pixel_size_asks_for_it(tmp_path: Path) -> None:
    with mrcfile.new(tmp_path / "plain.mrc") as file:
        file.set_data(np.zeros((16, 16), dtype=np.float32))
    with pytest.raises(ValueError, match="no pixel size; give pixel_size"):
        read_mrc(tmp_path / "plain.mrc")


@pytest.mark.parametrize("name", ["notes.mrc", "notes.jpg"])
def test_what_is_no_image_says_so(tmp_path: Path, name: str) -> None:
    if name.endswith("jpg"):
        pytest.importorskip("PIL")
    (tmp_path / name).write_text("a line of text, and not one pixel\n" * 100)
    with pytest.raises(ValueError, match=f"{name} is no .*image"):
        read_image(tmp_path / name, pixel_size=1.0)


def test_a_cut_short_mrc_says_so(tmp_path: Path) -> None:
    write_mrc(picture(), tmp_path / "whole.mrc")
    data = (tmp_path / "whole.mrc").read_bytes()
    (tmp_path / "part.mrc").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"part\.mrc"):
        read_image(tmp_path / "part.mrc")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.mrc"):
        read_image(tmp_path / "absent.mrc")


def test_pictures_need_a_pixel_size_and_lose_their_colours(tmp_path: Path) -> None:
    pil = pytest.importorskip("PIL.Image")
    colour = np.zeros((16, 20, 3), dtype=np.uint8)
    colour[..., 0], colour[..., 1] = 90, 30
    pil.fromarray(colour).save(tmp_path / "overlay.png")
    with pytest.raises(ValueError, match="give pixel_size"):
        read_image(tmp_path / "overlay.png")
    image = read_image(tmp_path / "overlay.png", pixel_size=0.3)
    assert image.pixels.shape == (16, 20)
    assert image.pixels.min() == image.pixels.max() == 40.0


@pytest.mark.parametrize(
    ("pixels", "says"),
    [
        (np.zeros((4, 4)), "at least 16"),
        (np.zeros((20, 20, 3)), "rows and columns"),
        (np.full((20, 20), np.nan), "not finite"),
        (np.full((20, 20), "a"), "numbers"),
    ],
)
def test_arrays_that_are_no_image_are_refused(pixels: np.ndarray, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Image(pixels, 1.0)


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=1, max_size=5),
    st.floats(1e-3, 10.0),
)
@settings(max_examples=50, deadline=None)
def test_stage_and_pixels_are_inverse(points: list[tuple[float, float]], size: float) -> None:
    image = Image(np.zeros((16, 40), dtype=np.float32), size, x=3.0, y=-8.0)
    np.testing.assert_allclose(image.to_pixels(image.to_stage(points)), points, atol=1e-6)


def test_a_real_jpg_is_read() -> None:
    path = SAMPLES / "epu" / "GridSquare_20250108_151151.jpg"
    if not path.exists():
        pytest.skip(f"no sample image at {path}")
    pytest.importorskip("PIL")
    image = read_image(path, pixel_size=0.4676)
    assert image.pixels.shape == (364, 512)
    assert image.pixels.max() > 200.0
