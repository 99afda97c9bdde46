"""Ratings come from a path, a word, or the generator where nothing else is to be had."""

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from coaf.worlds.movielens import download, source
from coaf.worlds.movielens.download import UnreachableError
from coaf.worlds.movielens.generator import generate
from coaf.worlds.movielens.ratings import DataError, Ratings
from coaf.worlds.movielens.source import obtain

TEXT = "1::2::3::4\n1::3::5::4\n2::2::1::4\n"


def small() -> Ratings:
    return generate(users=30, films=20, ratings=200, seed=0)


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, a server that is not there, and a generator that is quick."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "URL", (tmp_path / "server").as_uri() + "/ml-{name}.zip")
    monkeypatch.setattr(source, "generate", small)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server with an archive for each name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ml-1m/ratings.dat", TEXT)
    folder = tmp_path / "server"
    folder.mkdir()
    for name in download.CHECKSUMS:
        (folder / f"ml-{name}.zip").write_bytes(packed.getvalue())
        monkeypatch.setitem(download.CHECKSUMS, name, hashlib.sha256(packed.getvalue()).hexdigest())
    return folder


@pytest.mark.parametrize("data", [None, "1m", "100k", "latest-small", "1M"])
def test_a_word_is_fetched_and_then_kept(served: Path, data: str | None) -> None:
    seen: list[int] = []
    first = obtain(data, progress=lambda done, total: seen.append(done))
    name = (data or "1m").lower()
    assert first.source == f"ratings read from ml-{name}.zip"
    assert seen
    (served / f"ml-{name}.zip").unlink()
    assert obtain(data).digest == first.digest


def test_a_word_that_cannot_be_fetched_is_an_error() -> None:
    with pytest.raises(UnreachableError, match="pass --data PATH"):
        obtain("100k")


def test_without_network_generated_data_say_so() -> None:
    notes: list[str] = []
    ratings = obtain(None, note=notes.append)
    assert ratings.digest == small().digest
    assert ratings.source == (
        "generated, not real: 200 ratings of 20 films by 30 users, seed 0; "
        "used because the network could not be reached"
    )
    assert len(notes) == 1
    assert "so generated data are used" in notes[0]


def test_a_changed_archive_is_not_taken_for_the_real_one(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(download.CHECKSUMS, "1m", "0" * 64)
    assert "generated, not real" in obtain(None).source
    assert "may have changed" in obtain(None).source
    with pytest.raises(DataError, match="may have changed"):
        obtain("1m")


def test_a_path_wins_over_a_word(tmp_path: Path) -> None:
    assert obtain("generated").digest == small().digest
    for name in ("1m", "generated"):
        (tmp_path / name).write_text(TEXT)
        assert obtain(name).source == f"ratings read from {name}"
    assert len(obtain(tmp_path / "1m").values) == 3


def test_neither_path_nor_word_is_an_error() -> None:
    with pytest.raises(
        DataError, match=r"no file or folder 2m; .*1m, 100k, latest-small, generated"
    ):
        obtain("2m")
