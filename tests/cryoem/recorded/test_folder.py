"""Recordings as folders: what is written is read again, and what is wrong is found."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaf.cryoem.recorded.columns import RecordingError
from coaf.cryoem.recorded.folder import DESCRIPTION, HOLES, SHOTS, write_recording
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from cryoem.recorded.recordings import mutated, recordings, same, small

FILES = (DESCRIPTION, HOLES, SHOTS)
again = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_recording(small(), tmp_path / "small")


def edit(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text("utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), "utf-8")


@again
@given(held=recordings())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, held: Recording) -> None:
    folder = tmp_path_factory.mktemp("recording")
    write_recording(held, folder)
    found = read_recording(folder)
    assert same(found, held)
    assert found.files == tuple(folder / name for name in FILES)
    first = [path.read_bytes() for path in found.files]
    write_recording(found, folder)
    assert [path.read_bytes() for path in found.files] == first
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


@again
@given(luck=st.randoms(use_true_random=True), file=st.sampled_from(FILES))
def test_whatever_is_wrong_is_an_error_of_recordings(folder: Path, luck: Random, file: str) -> None:
    """A file with damage either is still a recording, or says why not, naming the file."""
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(mutated(whole, luck))
    said = file
    try:
        read_recording(folder)
    except RecordingError as error:
        said = str(error)
    (folder / file).write_bytes(whole)
    assert any(name in said for name in FILES)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (HOLES, "hole,patch", "name,patch", "holes.csv, line 1: there is no column 'hole'; there"),
        (HOLES, "hole,patch", "hole,area", "holes.csv, line 1: there is no column 'patch'"),
        (SHOTS, "hole,shot", "hole,n", "shots.csv, line 1: there is no column 'shot'"),
        (HOLES, "x,y", "x,x", "holes.csv, line 1: column 'x' is there twice"),
        (HOLES, "x,y", "x,", "holes.csv, line 1: column 6 has no name"),
        (HOLES, ",ice", ",fog", r"column 'fog': recording.toml does not say what it is; write th"),
        (HOLES, ",ice", ",when", "holes.csv, line 1, column 'when': it belongs into shots.csv"),
        (SHOTS, ",when", ",x", "shots.csv, line 1, column 'x': it belongs into holes.csv"),
        (HOLES, ",ice", ",ctf", "column 'ctf': its role is measured; columns here .* role before"),
        (SHOTS, ",defocus", ",ice", "column 'ice': its role is before; columns .* shot or measur"),
        (SHOTS, ",defocus", ",ctf2", "column 'ctf2': recording.toml does not say what it is"),
        (HOLES, ",0.0,20.0", ",0.0", "line 2: it has 6 cells, and the header 7: hole, patch"),
        (HOLES, ",0.0,20.0", ",0.0,20.0,1", "line 2: it has 8 cells, and the header 7"),
        (HOLES, "20.0", "thick", "line 2, column 'ice': 'thick' is not a number, such as 3.8"),
        (HOLES, "20.0", '"20,5"', "line 2, column 'ice': '20,5' is not a number"),
        (HOLES, "20.0", "nan", "line 2, column 'ice': 'nan' is not a number"),
        (HOLES, "20.0", "inf", "line 2, column 'ice': 'inf' is not finite; leave the cell empty"),
        (HOLES, "20.0", "1e999", "line 2, column 'ice': '1e999' is not finite"),
        (HOLES, "20.0", "1_0", "line 2, column 'ice': '1_0' is not a number"),
        (HOLES, "h2,p1", "h1,p1", "line 3, column 'hole': hole 'h1' is there a second time"),
        (HOLES, "h2,p1", ",p1", "line 3, column 'hole': a hole is called ''; a name is text"),
        (HOLES, "h2,p1", '"h\n2",p1', r"line 3, column 'hole': a hole is called 'h\\n2'"),
        (HOLES, "h3,p2,s1", "h3,p2,s9", "line 5, column 'patch': patch 'p2' is in square 's1', "
         "and on line 4 in 's9'; it lies in one, .* such as 's1/p2'"),
        (HOLES, "s2,g", "s1,G", "line 6, column 'square': square 's1' is in grid 'G'"),
        (HOLES, "h2", '"h2', "holes.csv, line 3: "),
        (SHOTS, "h3,0", "h9,0", "shots.csv, line 7, column 'hole': holes.csv has no hole 'h9'"),
        (SHOTS, "h1,1", "h1,0", "line 3, column 'shot': shot 0 of hole 'h1' is .*; line 2 has it"),
        (SHOTS, "h1,1", "h1,1.5", "line 3, column 'shot': '1.5' is not a whole number from 0 on"),
        (SHOTS, "h1,1", "h1,-1", "line 3, column 'shot': '-1' is not a whole number"),
        (SHOTS, "h1,1", "h1,9999999999999999999", "line 3, column 'shot': '9+' is not a whole"),
        (SHOTS, "14.0", "-14.0", "line 3, column 'when': it is -14; give seconds since the sess"),
        (SHOTS, "5.0,50.0", "-5.0,50.0", "line 3, column 'ctf': it is -5; a resolution is above"),
        (SHOTS, "5.0,50.0", "-inf,50.0", "line 3, column 'ctf': '-inf' is not finite"),
        (SHOTS, "5.0,50.0", "0,50.0", "line 3, column 'ctf': it is 0; a resolution is above 0 Å"),
        (SHOTS, "5.0,50.0", "bad,50.0", "line 3, column 'ctf': 'bad' is not a number"),
        (SHOTS, "5.0,50.0", "5.0,-5", "line 3, column 'particles': it is -5; give a count from"),
        (SHOTS, "5.0,50.0", "5.0,inf", "line 3, column 'particles': 'inf' is not finite"),
        (DESCRIPTION, "name =", "nam =", "recording.toml, line 2: there is no key nam; there"),
        (DESCRIPTION, 'name = "small"\n', "", "recording.toml, line 1: name is missing"),
        (DESCRIPTION, '"small"', "3", "recording.toml, line 2: name is 3; it must be text"),
        (DESCRIPTION, '"small"', '" "', "recording.toml, line 2: the recording is called ' '"),
        (DESCRIPTION, "format = 1", "format = 2", "line 1: format is 2; this version reads 1"),
        (DESCRIPTION, "[seconds]", "[times]", "line 4: there is no key times; there are"),
        (DESCRIPTION, "move = 50.0\n", "", "recording.toml, line 4: seconds.move is missing"),
        (DESCRIPTION, "move = 50.0", "move = -1", "line 6: seconds: move is -1.0; it must be"),
        (DESCRIPTION, "move = 50.0", "move = nan", "line 6: seconds: move is nan; it must be a"),
        (DESCRIPTION, "move = 50.0", "move = true", "line 6: seconds.move is True; it must be"),
        (DESCRIPTION, "move = 50.0", "move = 1" + "0" * 400, "line 6: seconds: move must be a"),
        (DESCRIPTION, "move = 50.0", "move = ", r"recording.toml is not TOML: .*\(at line 6, col"),
        (DESCRIPTION, "move = 50.0", "stage = 5", "line 6: there is no key seconds.stage;"),
        (DESCRIPTION, '"before"', '"after"', "line 11: .* column 'ice' is 'after'; there are"),
        (DESCRIPTION, 'role = "before"', "role = 1", "line 11: columns.ice.role is 1; it must be"),
        (DESCRIPTION, 'role = "before", ', "", "line 11: columns.ice.role is missing"),
        (DESCRIPTION, "[columns]", "[columns]\nfog = 3", "line 11: columns.fog is 3; it must be a"),
        (DESCRIPTION, "[columns]", '[columns]\nx = { role = "shot" }', "line 11: .* 'x' needs no"),
        (DESCRIPTION, "[columns]", '[columns]\nfog = { role = "before" }',
         "holes.csv, line 1: there is no column 'fog', which recording.toml describes; add it"),
        (DESCRIPTION, '"hand"', "[1]", r"line 17: provenance.by is \[1\]; give text"),
        (DESCRIPTION, "[provenance]", "provenance2 = 1", "there is no key columns.provenance2|is "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(folder: Path, file: str, old: str, new: str, message: str) -> None:
    edit(folder, file, old, new)
    with pytest.raises(RecordingError, match=message):
        read_recording(folder)


@pytest.mark.parametrize("file", FILES)
def test_files_that_are_no_text_or_not_there(folder: Path, file: str) -> None:
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(whole.replace(b"\n", b"\n\xe5", 1))
    with pytest.raises(RecordingError, match=rf"{file}: line 2 is not UTF-8 \(byte 0xe5\); save"):
        read_recording(folder)
    (folder / file).write_bytes("hole".encode("utf-16"))
    with pytest.raises(RecordingError, match=rf"{file}: line 1 is not UTF-8"):
        read_recording(folder)
    (folder / file).write_bytes(b"")
    with pytest.raises(
        RecordingError, match=rf"{file}( is empty; its first|, line 1: name is missing)"
    ):
        read_recording(folder)
    (folder / file).unlink()
    said = "holds no recording" if file == DESCRIPTION else f"cannot read .*{file}: No such file"
    with pytest.raises(RecordingError, match=said):
        read_recording(folder)


def test_a_list_of_no_holes(folder: Path) -> None:
    (folder / HOLES).write_text("hole,patch,ice\n\n,,\n")
    with pytest.raises(RecordingError, match=r"holes\.csv lists no holes"):
        read_recording(folder)


def test_other_marks_between_columns(folder: Path) -> None:
    (folder / HOLES).write_text("hole;patch;ice\nh1;p1;3\n")
    with pytest.raises(RecordingError, match="line 1: columns must be separated by commas: 'hole;"):
        read_recording(folder)


def test_one_place_needs_two_numbers(folder: Path) -> None:
    (folder / HOLES).write_text("hole,patch,x,ice\nh1,p1,0,3\n")
    with pytest.raises(RecordingError, match="line 1: there is only x of x and y"):
        read_recording(folder)


def test_what_other_programs_write(folder: Path) -> None:
    """A mark at the beginning, Windows' ends of lines, blank lines, spaces, empty last rows."""
    for file in FILES:
        text = (folder / file).read_text("utf-8").replace(",", ", " if file != DESCRIPTION else ",")
        more = "" if file == DESCRIPTION else "," * text.splitlines()[0].count(",") + "\n"
        data = (text + "\n" + more).replace("\n", "\r\n").encode()
        (folder / file).write_bytes(b"\xef\xbb\xbf" + data)
    assert same(read_recording(folder), small())


@pytest.mark.parametrize("text", ["", "nan", "NaN", "inf", "100000", "100000.0", "1e6", "1e999"])
def test_fits_that_failed_are_counted(folder: Path, text: str) -> None:
    edit(folder, SHOTS, "5.0,50.0", f"{text},50.0")
    found = read_recording(folder)
    assert found.failed == 2
    assert found.scores(0)[1].ctf is None
    assert found.scores(0)[1].particles == 50.0


def test_the_least_that_a_recording_is(tmp_path: Path) -> None:
    """Squares and grids that are not told are one, called as what they lie in."""
    (tmp_path / DESCRIPTION).write_text(
        'name = "least"\nseconds = { survey = 12, move = 50, expose = 6, shot = 4 }\n'
    )
    (tmp_path / HOLES).write_text("hole,patch\n1,a\n2,b\n3,a\n")
    (tmp_path / SHOTS).write_text("hole,shot,ctf\n3,0,4.2\n")
    found = read_recording(tmp_path)
    assert (found.holes, found.patches) == (("1", "3", "2"), ("a", "b"))
    assert set(found.squares) == set(found.grids) == {"least"}
    assert np.isnan([found.x, found.y]).all()
    assert found.known.shape == (3, 0)
    assert np.isnan(found.shots.when).all()
    assert found.scores(1)[0].ctf == 4.2
    (tmp_path / HOLES).write_text("hole,patch,grid\n1,a,g\n2,b,h\n3,a,g\n")
    found = read_recording(tmp_path)
    assert found.squares == found.grids == ("g", "h")


def test_provenance_may_be_dates_and_numbers(folder: Path) -> None:
    edit(folder, DESCRIPTION, '"hand"', '"hand"\non = 2023-09-19\nkv = 300')
    assert read_recording(folder).provenance == {"by": "hand", "on": "2023-09-19", "kv": "300"}


def test_another_recording_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    other = small().part([0])
    write_recording(other, folder)  # of the same name
    assert same(read_recording(folder), other)
    edit(folder, DESCRIPTION, '"small"', '"large"')
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(RecordingError, match="holds the recording 'large'; name another folder"):
        write_recording(small(), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / DESCRIPTION).unlink()
    with pytest.raises(RecordingError, match=r"holds holes\.csv and no recording\.toml"):
        write_recording(small(), folder)
    (folder / DESCRIPTION).write_text("what = 1")
    with pytest.raises(RecordingError, match="there is no key what"):
        write_recording(small(), folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match=r"cannot make the folder .*file"):
        write_recording(small(), tmp_path / "file")


def test_a_write_that_fails_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_recording(small().part([0]), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
