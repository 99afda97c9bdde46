"""MovieLens files are read as they are, and what is wrong with one is said by line."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coaf.worlds.movielens import ratings as module
from coaf.worlds.movielens.ratings import DataError, Ratings, read

HEADER = "userId,movieId,rating,timestamp"
SEPARATORS = {"ratings.dat": "::", "u.data": "\t", "ratings.csv": ","}
Row = tuple[int, int, float]

pairs = st.dictionaries(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
    st.integers(1, 5),
    min_size=1,
    max_size=30,
)
formats = st.sampled_from(sorted(SEPARATORS))


def written(rows: list[Row], name: str) -> list[str]:
    separator = SEPARATORS[name]
    shown = [f"{r:.1f}" if name == "ratings.csv" else f"{r:g}" for _, _, r in rows]
    lines = [
        separator.join([str(u), str(f), s, "978300760"])
        for (u, f, _), s in zip(rows, shown, strict=True)
    ]
    return [HEADER, *lines] if name == "ratings.csv" else lines


def rows_of(ratings: Ratings) -> list[Row]:
    users, films = ratings.user_ids[ratings.users], ratings.film_ids[ratings.films]
    return list(zip(users.tolist(), films.tolist(), ratings.values.tolist(), strict=True))


def save(folder: Path, text: str | bytes, name: str = "data") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ratings")


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    table=pairs,
    name=formats,
    end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    last=st.sampled_from(["", "end", "end end"]),
    half=st.booleans(),
)
def test_what_was_written_is_read(
    folder: Path,
    table: dict[tuple[int, int], int],
    name: str,
    end: str,
    bom: bool,
    last: str,
    half: bool,
) -> None:
    less = 0.5 if half and name == "ratings.csv" else 0.0
    rows = [(user, film, stars - less) for (user, film), stars in table.items()]
    text = end.join(written(rows, name)) + last.replace("end", end).replace(" ", "")
    ratings = read(save(folder, b"\xef\xbb\xbf" * bom + text.encode()))
    assert rows_of(ratings) == rows
    assert ratings.users.dtype == ratings.films.dtype == np.int32
    assert ratings.shape == (len({u for u, _, _ in rows}), len({f for _, f, _ in rows}))
    assert ratings.source == "ratings read from data"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(table=pairs, name=formats, data=st.data())
def test_a_bad_line_is_named(
    folder: Path, table: dict[tuple[int, int], int], name: str, data: st.DataObject
) -> None:
    rows = [(user, film, float(stars)) for (user, film), stars in table.items()]
    lines, separator = written(rows, name), SEPARATORS[name]
    at = data.draw(st.integers(len(lines) - len(rows), len(lines) - 1))
    fields = lines[at].split(separator)
    which = data.draw(st.integers(0, 3))
    wrong = ["x", "", "1e1", "nan", "0x1", "1 2", "٣", "1" * 30, "\x00"]
    wrong += [["-1", "1.5"], ["-1", "1.5"], ["-1", "0", "6", "3.7"], ["1.5"]][which]
    fields[which] = data.draw(st.sampled_from(wrong))
    lines[at] = separator.join(fields)
    with pytest.raises(DataError, match=f"data, line {at + 1}: "):
        read(save(folder, "\n".join(lines) + "\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; give MovieLens ratings: ratings.dat, u.data, ratings.csv, the folder"),
        ("\r\n \n", "is empty"),
        (HEADER + "\n", "has a header and no ratings"),
        ("hello\nworld\n", "line 1: the format is not known; .* The line is 'hello'"),
        ("1,2,3.0,4\n", f"line 1: the header must be {HEADER}. The line is '1,2,3.0,4'"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not text"),
        ("1\t2\t3\t4\n".encode("utf-16"), "is not text"),
        ("1::2::3::4\n1::3::3\n1::4::3::4\n", r"line 2: 3 field\(s\), and there must be 4: user"),
        ("1::2::3::4\n\n1::4::3::4\n", r"line 2: 1 field\(s\).* The line is ''"),
        ("x::2::3::4\n", "line 1: the user is 'x'; it must be a number of at most 15 digits"),
        ("1::-2::3::4\n", "line 1: the film is -2; it must not be negative"),
        ("1::2::3::4\n1::3::6::4\n", "line 2: the rating must be one of 1, 2 ... 5"),
        ("1::2::0.5::4\n", "line 1: the rating must be one of 1, 2 ... 5"),
        (f"{HEADER}\n1,2,0.5,4\n1,3,0,4\n", "line 3: the rating must be one of 0.5, 1 ... 5"),
        (f"{HEADER}\n1,2,3.7,4\n", "line 2: the rating must be one of 0.5, 1 ... 5"),
        ("1\t2\t3\t4\n1\t3\t", "line 2: the last line is cut short; the file is not complete"),
        ("1\t2\t3\t4\n1\t3\t3\t", "line 2: the last line is cut short"),
        ("1\t2\t3\t4\n1\t3", "line 2: the last line is cut short"),
        ("1\t2\t3\t4\n1\t3\n", r"line 2: 2 field\(s\)"),
        (b"1\t2\t3\t4\n" + b"\x00" * 40 + b"\n", "line 2: this is not text"),
        (
            "1::2::3::4\r\r\n1::3::3::4\n",
            "line 1: the line must read 'user::film::rating::timestamp'",
        ),
        (
            "1::2::3::4\n1::3::3::4\n2::2::3::4\n1::3::4::5\n1::2::1::1\n",
            "line 4: this user rated this film already in line 2; once is allowed. "
            "The line is '1::3::4::5'",
        ),
        (f"{HEADER}\n1,2,3.0,4\n1,2,3.0,4\n", "line 3: this user .* already in line 2"),
    ],
)
def test_the_error_says_what_is_wrong(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = save(tmp_path, text)
    with pytest.raises(DataError, match=message) as raised:
        read(path)
    assert str(path) in str(raised.value)


def test_a_long_line_is_shortened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape("...'")) as raised:
        read(save(tmp_path, "1::2::3::4\n" + "9" * 10_000 + "\n"))
    assert len(str(raised.value)) < 300 + len(str(tmp_path))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*nowhere; give MovieLens ratings"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize("place", ["u.data", "ml-1m/ratings.dat", "ml-latest-small/ratings.csv"])
def test_a_folder_or_an_archive_is_searched(tmp_path: Path, place: str) -> None:
    rows = [(3, 8, 4.0), (3, 9, 1.0), (1, 8, 5.0)]
    path = tmp_path / "here" / place
    path.parent.mkdir(parents=True)
    text = "\n".join(written(rows, path.name)) + "\n"
    path.write_text(text)
    assert rows_of(read(tmp_path / "here")) == rows
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(place, text)
        archive.writestr("README", "words")
    ratings = read(str(packed))
    assert rows_of(ratings) == rows
    assert ratings.source == "ratings read from packed.zip"


def test_a_line_in_an_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("ml-1m/ratings.dat", "1::2::3::4\n1::x::3::4\n")
    with pytest.raises(DataError, match=r"a\.zip \(ml-1m/ratings\.dat\), line 2: the film is 'x'"):
        read(tmp_path / "a.zip")


def test_none_or_several_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must hold one of .*, and holds none"):
        read(tmp_path)
    for name in SEPARATORS:
        save(tmp_path, "\n".join(written([(1, 1, 1.0)], name)), name)
    with pytest.raises(DataError, match=r"and holds ratings\.dat, u\.data, ratings\.csv"):
        read(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("README", "words")
    with pytest.raises(DataError, match=r"a\.zip must hold one of .*, and holds none"):
        read(tmp_path / "a.zip")


def test_a_damaged_archive_is_said(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("ratings.dat", "1::2::3::4\n" * 100)
    whole = (tmp_path / "a.zip").read_bytes()
    changed = whole.replace(b"1::2::3::4\n1::2", b"1::2::3::4\n1::5", 1)
    for damaged in (whole[:400], changed):
        with pytest.raises(DataError, match=r"is a damaged archive: .*; download it again"):
            read(save(tmp_path, damaged))


def test_published_sets_are_called_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._PUBLISHED[6040, 1_000_209] == "MovieLens 1M"
    monkeypatch.setitem(module._PUBLISHED, (2, 3), "MovieLens tiny")
    path = save(tmp_path, "1\t1\t1\t1\n1\t2\t1\t1\n2\t1\t1\t1\n", "u.data")
    assert read(path).source == "MovieLens tiny, read from u.data"


def test_frequent_films_are_counted_once_and_renumbered() -> None:
    ratings = Ratings.of([5, 5, 6, 7, 8], [1, 2, 2, 9, 9], [1, 2, 3, 4, 5], source="five")
    twice = ratings.frequent(2)
    assert rows_of(twice) == [(5, 2, 2.0), (6, 2, 3.0), (7, 9, 4.0), (8, 9, 5.0)]
    assert twice.shape == (4, 2)
    assert twice.source == "five; films with at least 2 ratings"
    sparse = Ratings.of([5, 6, 7], [1, 2, 2], [1, 2, 3], source="three").frequent(2)
    assert sparse.user_ids.tolist() == [6, 7]
    with pytest.raises(DataError, match="no film has 3 ratings; the one with the most has 2"):
        ratings.frequent(3)


def test_figures_of_a_small_set() -> None:
    ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 3], [0.5, 5, 5, 5], source="four")
    assert ratings.density == pytest.approx(4 / 6)
    assert ratings.histogram() == {0.5: 0.25, 5.0: 0.75}


def test_the_digest_is_that_of_the_ratings() -> None:
    first = Ratings.of([1, 2], [1, 2], [3, 4], source="a")
    assert first.digest == Ratings.of([1, 2], [1, 2], [3, 4], source="b").digest
    others = (
        Ratings.of([1, 3], [1, 2], [3, 4], source="a"),
        Ratings.of([1, 2], [1, 3], [3, 4], source="a"),
        Ratings.of([1, 2], [2, 1], [3, 4], source="a"),
        Ratings.of([1, 2], [1, 2], [3, 5], source="a"),
    )
    assert len({first.digest, *(other.digest for other in others)}) == 5


def test_ratings_that_do_not_fit_together_are_refused() -> None:
    def build(users: list[int], films: list[int], ids: list[int]) -> Ratings:
        values, codes = np.ones(2), (np.array(users, np.int32), np.array(films, np.int32))
        return Ratings(*codes, values, np.array(ids), np.array([1, 2]), "none")

    with pytest.raises(ValueError, match="they must be the same"):
        build([0], [0, 1], [1, 2])
    with pytest.raises(ValueError, match="users goes from 0 to 2; it must stay in 0 to 1"):
        build([0, 2], [0, 1], [1, 2])
    with pytest.raises(ValueError, match="ids of users must ascend"):
        build([0, 1], [0, 1], [2, 1])
    with pytest.raises(ValueError, match="read-only"):
        build([0, 1], [0, 1], [1, 2]).values[0] = 3.0
