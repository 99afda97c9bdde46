"""Ratings of films by users, and the files that MovieLens keeps them in."""

import hashlib
import io
import re
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coaf.bandit.arrays import FloatArray, IntArray

CodeArray = npt.NDArray[np.int32]

# Users and ratings tell the published sets apart; newer ones keep growing and stay without a name.
_PUBLISHED = {
    (6040, 1_000_209): "MovieLens 1M",
    (943, 100_000): "MovieLens 100K",
    (610, 100_836): "MovieLens latest-small",
}
_FILES = ("ratings.dat", "u.data", "ratings.csv")
_FOLDERS = ("", "ml-1m", "ml-100k", "ml-latest-small")
_HEADER = b"userId,movieId,rating,timestamp"
_FIELDS = ("user", "film", "rating", "timestamp")
_FIRST_LINES = 5  # of which one must be whole for the format to be recognised


class DataError(ValueError):
    """What was to be read is not there, or not what it should be."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Who rated which film how: three columns of the same length, and the ids behind the codes.

    Parameters
    ----------
    users, films
        Of each rating, the place of its user in `user_ids` and of its film in `film_ids`.
    values
        The ratings.
    user_ids, film_ids
        The ids of the source, ascending.
    source
        Which data this is, in words.

    Examples
    --------
    >>> ratings = Ratings.of([7, 7, 9], [1, 30, 30], [5, 3, 5], source="three ratings")
    >>> ratings.shape, ratings.density
    ((2, 2), 0.75)
    >>> ratings.frequent(2).film_ids
    array([30])
    """

    users: CodeArray
    films: CodeArray
    values: FloatArray
    user_ids: IntArray
    film_ids: IntArray
    source: str

    def __post_init__(self) -> None:
        kinds = {"users": np.int32, "films": np.int32, "values": np.float64}
        for name, kind in {**kinds, "user_ids": np.int64, "film_ids": np.int64}.items():
            array = np.array(getattr(self, name), dtype=kind, ndmin=1)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not self.users.shape == self.films.shape == self.values.shape:
            sizes = self.users.shape, self.films.shape, self.values.shape
            raise ValueError(f"users, films and values have shapes {sizes}; they must be the same")
        columns = ("users", self.users, self.user_ids), ("films", self.films, self.film_ids)
        for name, codes, ids in columns:
            if codes.size and not 0 <= codes.min() <= codes.max() < len(ids):
                extremes = f"{codes.min()} to {codes.max()}"
                raise ValueError(
                    f"{name} goes from {extremes}; it must stay in 0 to {len(ids) - 1}"
                )
            if (np.diff(ids) <= 0).any():
                raise ValueError(f"the ids of {name} must ascend without repeats")

    @classmethod
    def of(
        cls,
        user_ids: npt.ArrayLike,
        film_ids: npt.ArrayLike,
        values: npt.ArrayLike,
        *,
        source: str,
    ) -> "Ratings":
        """Build from the ids of each rating."""
        known_users, users = np.unique(np.asarray(user_ids, dtype=np.int64), return_inverse=True)
        known_films, films = np.unique(np.asarray(film_ids, dtype=np.int64), return_inverse=True)
        codes = users.astype(np.int32), films.astype(np.int32)
        return cls(*codes, np.asarray(values, dtype=np.float64), known_users, known_films, source)

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and how many films."""
        return len(self.user_ids), len(self.film_ids)

    @property
    def density(self) -> float:
        """Share of all pairs of a user and a film that are rated."""
        return len(self.values) / max(1, len(self.user_ids) * len(self.film_ids))

    @property
    def digest(self) -> str:
        """SHA-256 of the arrays: the same for the same ratings, whatever their source is called."""
        sha = hashlib.sha256()
        for array in (self.users, self.films, self.values, self.user_ids, self.film_ids):
            sha.update(f"{len(array)} ".encode())
            sha.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return sha.hexdigest()

    def histogram(self) -> dict[float, float]:
        """The share of each rating, from the lowest."""
        values, counts = np.unique(self.values, return_counts=True)
        shares = counts / max(1, len(self.values))
        return dict(zip(values.tolist(), shares.tolist(), strict=True))

    def frequent(self, least: int) -> "Ratings":
        """Only the films with at least `least` ratings, and the users who rated one of them."""
        counts = np.bincount(self.films, minlength=len(self.film_ids))
        kept = counts[self.films] >= least
        if not kept.any():
            most = counts.max(initial=0)
            raise DataError(f"no film has {least} ratings; the one with the most has {most}")
        return Ratings.of(
            self.user_ids[self.users[kept]],
            self.film_ids[self.films[kept]],
            self.values[kept],
            source=f"{self.source}; films with at least {least} ratings",
        )


@dataclass(frozen=True)
class _Format:
    separator: str
    header: bool
    low: float
    step: float

    def lines(self) -> re.Pattern[bytes]:
        """Match lines for as long as they are whole: the end of the match is the first bad one."""
        # Possessive throughout, so that nothing is kept to come back to: a million lines are quick.
        fields = rb"\d{1,15}+", rb"\d{1,15}+", rb"\d{1,3}+(?:\.\d{1,6}+)?+", rb"-?\d{1,18}+"
        return re.compile(rb"(?:" + self.separator.encode().join(fields) + rb"\r?\n)*+")


_CSV = _Format(",", True, 0.5, 0.5)
_FORMATS = (_Format("::", False, 1.0, 1.0), _Format("\t", False, 1.0, 1.0), _CSV)


def read(path: str | Path) -> Ratings:
    """Read MovieLens ratings: a file, the folder it is in, or the archive as published.

    `ratings.dat` (1M), `u.data` (100K) and `ratings.csv` (latest) are told apart by what is in
    them. Anything amiss is a `DataError` that names the line.
    """
    try:
        given = Path(path).expanduser()
    except RuntimeError as error:
        raise DataError(f"there is no {path}: {error}") from error
    place = _inside(given) if given.is_dir() else given
    name = str(place)
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        raise DataError(f"there is no file {name}; {_WANTED}") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    if data.startswith(b"PK"):
        data, member = _member(data, name)
        name = f"{name} ({member})"
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise DataError(f"{name} is empty; {_WANTED}")
    return _parse(data, name, f"read from {place.name}")


_WANTED = f"give MovieLens ratings: {', '.join(_FILES)}, the folder they are in, or the zip archive"


def _inside(folder: Path) -> Path:
    found = [path for sub in _FOLDERS for name in _FILES if (path := folder / sub / name).is_file()]
    if len(found) == 1:
        return found[0]
    what = ", ".join(str(path.relative_to(folder)) for path in found) or "none"
    raise DataError(f"{folder} must hold one of {', '.join(_FILES)}, and holds {what}")


def _member(archive: bytes, name: str) -> tuple[bytes, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            found = [entry for entry in opened.namelist() if Path(entry).name in _FILES]
            if len(found) == 1:
                return opened.read(found[0]), found[0]
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise DataError(f"{name} is a damaged archive: {error}; download it again") from error
    what = ", ".join(found) or "none"
    raise DataError(f"{name} must hold one of {', '.join(_FILES)}, and holds {what}")


def _parse(data: bytes, name: str, origin: str) -> Ratings:
    style = _recognise(data, name)
    body = data.rstrip(b"\r\n") + b"\n"
    start = body.index(b"\n") + 1 if style.header else 0
    if style.header and body[:start].strip().lower() != _HEADER.lower():
        raise _error(name, body, 1, f"the header must be {_HEADER.decode()}")
    if start == len(body):
        raise DataError(f"{name} has a header and no ratings")
    matched = style.lines().match(body, start)
    end = matched.end() if matched else start
    if end < len(body):
        line = body[end : body.index(b"\n", end)]
        last = end + len(line) + 1 == len(body) and not data.endswith(b"\n")
        why = _complaint(line, style, last=last)
        raise _error(name, body, body.count(b"\n", 0, end) + 1, why)
    numbers = body[start:].replace(style.separator.encode(), b" ").decode("ascii")
    table = np.fromstring(numbers, sep=" ").reshape(-1, len(_FIELDS))
    values = table[:, 2]
    allowed = (values >= style.low) & (values <= 5.0) & (values % style.step == 0.0)
    first = style.header + 1  # line of the first rating
    if not allowed.all():
        steps = f"{style.low:g}, {style.low + style.step:g} ... 5"
        raise _error(
            name, body, int(np.argmin(allowed)) + first, f"the rating must be one of {steps}"
        )
    ratings = Ratings.of(table[:, 0], table[:, 1], values, source=f"ratings {origin}")
    if (twice := _repeat(ratings)) is not None:
        why = f"this user rated this film already in line {twice[0] + first}; once is allowed"
        raise _error(name, body, twice[1] + first, why)
    published = _PUBLISHED.get((ratings.shape[0], len(values)))
    return replace(ratings, source=f"{published}, {origin}") if published else ratings


def _repeat(ratings: Ratings) -> tuple[int, int] | None:
    """The first rating that repeats a user and a film, after the one it repeats."""
    pairs = ratings.users.astype(np.int64) * len(ratings.film_ids) + ratings.films
    order = np.argsort(pairs, kind="stable")
    later = np.where(pairs[order[1:]] == pairs[order[:-1]], order[1:], len(order))
    if later.min(initial=len(order)) == len(order):
        return None
    at = int(np.argmin(later))
    return int(order[at]), int(later[at])


def _recognise(data: bytes, name: str) -> _Format:
    first = data.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]
    if first[0].strip().lower() == _HEADER.lower():
        return _CSV
    whole = [s for s in _FORMATS for line in first if s.lines().fullmatch(line.strip() + b"\n")]
    split = [s for s in _FORMATS[:2] if s.separator.encode() in first[0]]
    for style in whole + split:
        return style
    if not _text(b"\n".join(first)):
        raise DataError(f"{name} is not text; {_WANTED}")
    expected = f"user::film::rating::timestamp, that with tabs, or the header {_HEADER.decode()}"
    raise _error(name, data, 1, f"the format is not known; the file must begin with {expected}")


def _complaint(line: bytes, style: _Format, *, last: bool) -> str:
    """What is wrong with a line that is not whole."""
    if not _text(line):
        return "this is not text"
    fields = line.decode().rstrip("\r").split(style.separator)
    if last and (len(fields) < len(_FIELDS) or not fields[-1]):
        return "the last line is cut short; the file is not complete"
    if len(fields) != len(_FIELDS):
        return f"{len(fields)} field(s), and there must be {len(_FIELDS)}: {', '.join(_FIELDS)}"
    for what, field in zip(_FIELDS, fields, strict=True):
        decimals = r"(?:\.\d{1,6})?" if what == "rating" else ""
        if re.fullmatch(rf"-\d+{decimals}", field) and what != "timestamp":
            return f"the {what} is {field}; it must not be negative"
        sign, digits = ("-?", 18) if what == "timestamp" else ("", 3 if what == "rating" else 15)
        if not re.fullmatch(rf"{sign}\d{{1,{digits}}}{decimals}", field, re.ASCII):
            return f"the {what} is {_shown(field)}; it must be a number of at most {digits} digits"
    return f"the line must read {style.separator.join(_FIELDS)!r}"


def _text(data: bytes) -> bool:
    try:
        return all(c.isprintable() or c in "\t\r\n" for c in data.decode())
    except UnicodeDecodeError:
        return False


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _error(name: str, body: bytes, number: int, why: str) -> DataError:
    line = body.split(b"\n", number)[number - 1].strip(b"\r")
    text = _shown(line.decode("utf-8", "replace"))
    return DataError(f"{name}, line {number}: {why}. The line is {text}")
