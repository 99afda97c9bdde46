"""Archives are fetched once, kept only when whole, and a failure is a sentence."""

import hashlib
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from coaf.bandit.cache import cache_folder
from coaf.worlds.movielens import download
from coaf.worlds.movielens.download import UnreachableError, fetch
from coaf.worlds.movielens.ratings import DataError

ARCHIVE = bytes(range(256)) * 1000


class Server(BaseHTTPRequestHandler):
    """Answers as the path says, and counts the questions."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        kind = self.path.split("/")[1]
        if kind == "missing":
            self.send_error(404)
            return
        self.send_response(200)
        if kind != "silent":
            self.send_header("Content-Length", str(len(ARCHIVE)))
        self.end_headers()
        self.wfile.write(ARCHIVE[: len(ARCHIVE) // 2] if kind == "short" else ARCHIVE)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy between us and ourselves, and checksums of our own archive."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setitem(download.CHECKSUMS, "100k", hashlib.sha256(ARCHIVE).hexdigest())
    Server.asked.clear()


def use(monkeypatch: pytest.MonkeyPatch, address: str, kind: str) -> None:
    monkeypatch.setattr(download, "URL", f"{address}/{kind}/ml-{{name}}.zip")


def test_an_archive_is_fetched_once(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, address, "whole")
    seen: list[tuple[int, int | None]] = []
    path = fetch("100k", folder=tmp_path / "new", progress=lambda *now: seen.append(now))
    assert path == tmp_path / "new" / "ml-100k.zip"
    assert path.read_bytes() == ARCHIVE
    assert seen[-1] == (len(ARCHIVE), len(ARCHIVE))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) > 1
    assert fetch("100k", folder=tmp_path / "new") == path
    assert Server.asked == ["/whole/ml-100k.zip"]
    assert list(path.parent.iterdir()) == [path]


def test_a_server_that_does_not_say_how_much_will_do(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, address, "silent")
    seen: list[tuple[int, int | None]] = []
    fetch("100k", folder=tmp_path, progress=lambda *now: seen.append(now))
    assert seen[-1] == (len(ARCHIVE), None)


def test_a_spoiled_copy_is_fetched_again(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, address, "whole")
    (tmp_path / "ml-100k.zip").write_bytes(ARCHIVE[:-1])
    assert fetch("100k", folder=tmp_path).read_bytes() == ARCHIVE


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("missing", r"it answered 404 Not Found"),
        ("short", r"128,000 of 256,000|128000"),  # the second is what newer Pythons say
    ],
)
def test_a_server_that_fails_is_said(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, kind: str, why: str
) -> None:
    use(monkeypatch, address, kind)
    with pytest.raises(UnreachableError, match=rf"({why}).*pass --data PATH"):
        fetch("100k", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_server_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: nothing can answer there
        use(monkeypatch, f"http://127.0.0.1:{unused.getsockname()[1]}", "whole")
        with pytest.raises(UnreachableError, match=r"could not be fetched .*pass --data PATH"):
            fetch("100k", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # connections are taken by the system, and never answered
        use(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}", "whole")
        with pytest.raises(UnreachableError, match="timed out"):
            fetch("100k", folder=tmp_path)


def test_a_wrong_checksum_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ml-1m.zip").write_bytes(b"something else")
    monkeypatch.setattr(download, "URL", tmp_path.as_uri() + "/ml-{name}.zip")
    got = hashlib.sha256(b"something else").hexdigest()
    expected = download.CHECKSUMS["1m"]
    message = rf"has SHA-256 {got}, and {expected} was expected.*may have changed or been cut short"
    with pytest.raises(DataError, match=message):
        fetch("1m", folder=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_caller_who_stops_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ml-1m.zip").write_bytes(ARCHIVE)
    monkeypatch.setattr(download, "URL", tmp_path.as_uri() + "/ml-{name}.zip")

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("1m", folder=tmp_path / "cache", progress=stop)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot be written to .*set XDG_CACHE_HOME"):
        fetch("1m", folder=tmp_path / "file" / "movielens")


def test_an_unknown_name_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no archive '20m'; there are 1m, 100k, latest-small"):
        fetch("20m", folder=tmp_path)


@pytest.mark.parametrize(
    ("platform", "settings", "place"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x", "LOCALAPPDATA": "/l"}, "/x/coaf"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/coaf"),
        ("darwin", {}, "/home/me/Library/Caches/coaf"),
        ("linux", {}, "/home/me/.cache/coaf"),
    ],
)
def test_the_cache_is_where_the_platform_has_it(
    monkeypatch: pytest.MonkeyPatch, platform: str, settings: dict[str, str], place: str
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert cache_folder() == Path(place)
