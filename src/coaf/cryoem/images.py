"""Images with their scale: pixels that know where on the stage they are."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, number

Pixels = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A picture of a part of the grid.

    Parameters
    ----------
    pixels : (rows, columns)
        Brightness; more electrons are brighter.
    pixel_size
        µm from one pixel to the next.
    x, y
        Where on the stage its centre is, in µm.
    """

    pixels: Pixels
    pixel_size: float
    x: float = 0.0
    y: float = 0.0

    def __post_init__(self) -> None:
        pixels = np.asarray(self.pixels)
        if pixels.ndim != 2 or min(pixels.shape) < 16 or pixels.dtype.kind not in "buif":
            raise ValueError(
                f"an image has rows and columns of numbers, at least 16 of each; got an array of "
                f"{pixels.dtype} with shape {pixels.shape}"
            )
        pixels = np.ascontiguousarray(pixels, dtype=np.float32)
        if not np.isfinite(pixels).all():
            raise ValueError("the image has pixels that are not finite numbers")
        object.__setattr__(self, "pixels", pixels)
        number("pixel_size", self.pixel_size, above=0.0)

    def to_stage(self, points: npt.ArrayLike) -> FloatArray:
        """Stage positions (n, 2) of points (n, 2) given as (column, row) in pixels."""
        rows, columns = self.pixels.shape
        centre = np.array([(columns - 1) / 2.0, (rows - 1) / 2.0])
        away = (np.asarray(points, dtype=np.float64).reshape(-1, 2) - centre) * self.pixel_size
        result: FloatArray = away + np.array([self.x, self.y])
        return result

    def to_pixels(self, points: npt.ArrayLike) -> FloatArray:
        """Pixels (column, row) of stage positions: the inverse of `to_stage`."""
        rows, columns = self.pixels.shape
        centre = np.array([(columns - 1) / 2.0, (rows - 1) / 2.0])
        stage = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        result: FloatArray = (stage - np.array([self.x, self.y])) / self.pixel_size + centre
        return result


def binned(pixels: Pixels, step: int) -> Pixels:
    """Means of `step` by `step` pixels; the last rows and columns are repeated to fill up."""
    if step == 1:
        return pixels
    rows, columns = (-(-n // step) * step for n in pixels.shape)
    if (rows, columns) != pixels.shape:
        more = ((0, rows - pixels.shape[0]), (0, columns - pixels.shape[1]))
        pixels = np.pad(pixels, more, mode="edge")
    blocks = pixels.reshape(rows // step, step, columns // step, step)
    result: Pixels = blocks.mean(axis=(1, 3), dtype=np.float32)
    return result


def shrink(image: Image, step: int) -> Image:
    """The image binned by `step`, at its place on the stage."""
    if step == 1:
        return image
    pixels = binned(image.pixels, step)
    # Rows and columns that were added to fill the last bins move the centre.
    rows, columns = image.pixels.shape
    more = np.array([pixels.shape[1] * step - columns, pixels.shape[0] * step - rows]) / 2.0
    x, y = np.array([image.x, image.y]) + more * image.pixel_size
    return Image(pixels, image.pixel_size * step, float(x), float(y))


def read_mrc(path: Path, *, pixel_size: float | None = None) -> Image:
    """The first section of an MRC file, with the pixel size of its header unless one is given."""
    import mrcfile

    path = Path(path)
    try:
        # Permissive, and any complaint an error of ours: many programs write headers with slips
        # that do not touch the pixels, and a truncated file must not pass for a picture.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with mrcfile.open(path, permissive=True) as file:
                data = None if file.data is None else np.array(file.data)
                size = float(file.voxel_size.x) * 1e-4 if data is not None else 0.0
    except ValueError as error:
        raise ValueError(f"{path} is no MRC image: {error}") from None
    if data is None or data.size == 0:
        raise ValueError(f"{path} is no MRC image, or is cut short: no pixels could be read")
    while data.ndim > 2:
        data = data[0]
    if pixel_size is None and size <= 0.0:
        raise ValueError(f"the header of {path} has no pixel size; give pixel_size in µm")
    return _named(path, data, size if pixel_size is None else pixel_size)


def write_mrc(image: Image, path: Path) -> None:
    """Write an image as MRC, with its pixel size; its place on the stage is not kept."""
    import mrcfile

    with mrcfile.new(path, overwrite=True) as file:
        file.set_data(image.pixels)
        file.voxel_size = image.pixel_size * 1e4


def read_image(path: Path, *, pixel_size: float | None = None) -> Image:
    """Read an MRC file, or a jpg, png or tiff (which need a pixel size, in µm) through Pillow."""
    path = Path(path)
    if path.suffix.lower() in {".mrc", ".mrcs", ".map", ".st"}:
        return read_mrc(path, pixel_size=pixel_size)
    if pixel_size is None:
        raise ValueError(f"{path.name} does not say its pixel size; give pixel_size in µm")
    try:
        from PIL import Image as Picture
        from PIL import UnidentifiedImageError
    except ImportError:
        raise ImportError(
            f"reading {path.name} needs Pillow: pip install pillow; MRC files do without"
        ) from None
    try:
        with Picture.open(path) as picture:
            data = np.asarray(picture)
    except UnidentifiedImageError:
        raise ValueError(f"{path} is no image; jpg, png, tiff and MRC are read") from None
    except OSError as error:
        if error.errno is not None:  # no such file, no permission: these say enough themselves
            raise
        raise ValueError(f"{path} is an image that is cut short or damaged: {error}") from None
    if data.ndim == 3:
        data = data[..., :3].mean(axis=2)  # an overlay saved in colour is still a picture
    return _named(path, data, pixel_size)


def _named(path: Path, data: npt.NDArray[Any], pixel_size: float) -> Image:
    try:
        return Image(data, pixel_size)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
