"""Reading CryoRL's files: what is read, and what is said of files that cannot be."""

import math
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coaf.cryoem.recorded.columns import RecordingError
from coaf.cryoem.recorded.reading import read_recording
from coaf.cryoem.recorded.recording import Recording
from coaf.cryoem.reward import GoodBelow
from cryoem.recorded.recordings import mutated


def name(square: int, patch: int, hole: int, grid: str = "g_00001gr") -> str:
    return f"{grid}_{square:05d}sq_v01_{patch:05d}hl_v01_{hole:05d}en-a"


NAMES = [name(2, 1, 1), name(1, 7, 2), name(1, 7, 1), name(1, 3, 1)]


def row(hole: str, ctf: object = 4.5) -> str:
    return f"{hole},10.5,-3,{ctf},0.9"


def ctf(recording: Recording) -> list[float]:
    return list(recording.shots.values["ctf"])


def predicted(recording: Recording) -> list[float]:
    return list(recording.column("prediction"))


def good(recording: Recording, cut: float) -> list[float]:
    return list(recording.worth(GoodBelow(cut)).rewards)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four holes of three patches in two squares; rows of other levels stand among them."""
    (tmp_path / "a_by_hl.txt").write_text("".join(f"{n} {4.0 + k}\n" for k, n in enumerate(NAMES)))
    rows = ["g_00001gr,5,0,-1,-1", *(row(n, 3.0 + k) for k, n in enumerate(NAMES)), ""]
    (tmp_path / "truth.csv").write_text("\n".join(rows))
    return tmp_path


def holes(folder: Path, text: str, encoding: str = "utf-8") -> None:
    (folder / "a_by_hl.txt").write_text(text, encoding=encoding)


def truth(folder: Path, *rows: str, file: str = "truth.csv") -> None:
    (folder / file).write_text("\n".join(rows) + "\n")


def test_holes_stand_patch_after_patch(folder: Path) -> None:
    recording = read_recording(folder)
    assert recording.holes == (NAMES[3], NAMES[2], NAMES[1], NAMES[0])
    assert predicted(recording) == [7.0, 6.0, 5.0, 4.0]
    assert ctf(recording) == [6.0, 5.0, 4.0, 3.0]
    assert recording.x.tolist() == pytest.approx([0.105, 100.105, 100.105, 200.105])
    assert recording.y.tolist() == pytest.approx([-0.03] * 4)
    assert (recording.name, recording.columns) == ("a", ("prediction",))
    assert recording.starts.tolist() == [0, 1, 3, 4]
    assert len(set(recording.squares)) == 2
    assert recording.squares[0] == recording.squares[1] != recording.squares[2]
    assert [path.name for path in recording.files] == ["a_by_hl.txt", "truth.csv"]
    assert good(recording, 4.5) == [0.0, 0.0, 1.0, 1.0]
    assert good(recording, 4.0) == [0.0, 0.0, 0.0, 1.0], "good is below the cut"


def test_some_patches_are_a_recording_of_their_own(folder: Path) -> None:
    part = read_recording(folder).part([2, 1])
    assert part.holes == (NAMES[0], NAMES[2], NAMES[1])
    assert part.starts.tolist() == [0, 1, 3]
    assert ctf(part) == [3.0, 5.0, 4.0]
    assert len(part.patches) == len(part.squares) == 2


def test_the_same_number_elsewhere_is_another_square_and_patch(folder: Path) -> None:
    both = [name(1, 1, 1, "g_00001gr"), name(1, 1, 1, "g_00002gr")]
    holes(folder, f"{both[0]} 4\n{both[1]} 5\n")
    truth(folder, *map(row, both))
    recording = read_recording(folder)
    assert len(set(recording.patches)) == len(set(recording.squares)) == 2


@pytest.mark.parametrize("text", ["100000", "100000.0", "nan", "NaN", "inf", "", " ", "1e6"])
def test_a_hole_without_a_fit_is_counted_and_not_good(folder: Path, text: str) -> None:
    truth(folder, row(NAMES[0], text), *map(row, NAMES[1:]))
    recording = read_recording(folder)
    assert recording.failed == 1
    assert math.isnan(ctf(recording)[3])
    assert good(recording, 1e9) == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-3.5", r"truth\.csv, line 2: CTFMaxRes is -3\.5 Å; it must be above 0"),
        ("0", r"truth\.csv, line 2: CTFMaxRes is 0 Å; it must be above 0"),
        ("-inf", r"line 2: CTFMaxRes is -inf Å; it must be above 0"),
        ("good", r"truth\.csv, line 2, CTFMaxRes: 'good' is not a number"),
    ],
)
def test_a_ctf_that_cannot_be(folder: Path, text: str, message: str) -> None:
    truth(folder, "other,1,2,3,4", row(NAMES[0], text), *map(row, NAMES[1:]))
    for chosen in (None, folder / "truth.csv"):
        with pytest.raises(RecordingError, match=message):
            read_recording(folder, truth=chosen)


def test_rows_of_the_truth_that_cannot_be(folder: Path) -> None:
    path = folder / "truth.csv"
    truth(folder, f"{NAMES[0]},1,2")
    with pytest.raises(RecordingError, match=r"line 1: expected name, x, y, CTFMaxRes, confidence"):
        read_recording(folder, truth=path)
    truth(folder, f"{NAMES[0]},1,left,3,4")
    with pytest.raises(RecordingError, match=r"line 1, a position: 'left' is not a number"):
        read_recording(folder, truth=path)
    truth(folder, f"{NAMES[0]},1,inf,3,4")
    with pytest.raises(RecordingError, match=r"line 1: the position is .*; it must be finite"):
        read_recording(folder, truth=path)
    truth(folder, *map(row, NAMES), "", row(NAMES[1]))
    with pytest.raises(RecordingError, match=rf"line 6: hole {NAMES[1]} is there a second time"):
        read_recording(folder, truth=path)


def test_a_hole_without_truth_is_named(folder: Path) -> None:
    truth(folder, *map(row, NAMES[:2]))
    told = f"does not have the truth of 2 of 4 holes listed: {NAMES[2]} for one"
    with pytest.raises(RecordingError, match=told):
        read_recording(folder, truth=folder / "truth.csv")
    with pytest.raises(RecordingError, match=r"truth\.csv has the truth of 2 of 4 holes"):
        read_recording(folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("justaname", r"line 3: expected a name and a prediction, got 'justaname'"),
        (f"{NAMES[1]} 3 4", r"line 3: expected a name and a prediction"),
        (f"{NAMES[1]} good", r"line 3, the prediction: 'good' is not a number"),
        (f"{NAMES[1]} nan", r"line 3, the prediction: 'nan' is not a number"),
        (f"{NAMES[1]} inf", r"line 3: the prediction is inf Å; it must be finite"),
        (f"{NAMES[1]} 0", r"line 3: the prediction is 0\.0 Å; it must be finite and above 0"),
        (f"{NAMES[1]} -2", r"line 3: the prediction is -2\.0 Å; it must be finite and above 0"),
        (f"{NAMES[0]} 5", rf"line 3: hole {NAMES[0]} is there a second time"),
        ("FoilHole_123_Data_4 5", r"line 3: 'FoilHole_123_Data_4' does not name a square, patch"),
        (
            "g_00001sq_v01_00002hl 5",
            r"line 3: .* exposure, as \.\.\._00023sq_v01_00006hl_v01_00005en",
        ),
    ],
)
def test_lines_of_the_list_that_cannot_be(folder: Path, line: str, message: str) -> None:
    holes(folder, f"{NAMES[0]} 4.0\n\n{line}\n")
    with pytest.raises(RecordingError, match=r"a_by_hl\.txt, " + message):
        read_recording(folder)


def test_what_other_programs_write(folder: Path) -> None:
    """A mark at the beginning, Windows' line ends, tabs and blank lines."""
    text = "\r\n".join(f"{n}\t{4.0 + k}" for k, n in enumerate(NAMES))
    (folder / "a_by_hl.txt").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n")
    rows = "\r\n".join(map(row, NAMES))
    (folder / "truth.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    assert predicted(read_recording(folder)) == [7.0, 6.0, 5.0, 4.0]


def test_a_file_that_is_no_text(folder: Path) -> None:
    (folder / "a_by_hl.txt").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(RecordingError, match=r"cannot read .*a_by_hl\.txt"):
        read_recording(folder)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_list(folder: Path, text: str) -> None:
    holes(folder, text)
    with pytest.raises(RecordingError, match=r"a_by_hl\.txt lists no holes"):
        read_recording(folder)


def test_folders_that_are_not_as_they_should_be(folder: Path) -> None:
    with pytest.raises(RecordingError, match="nowhere is not a folder"):
        read_recording(folder / "nowhere")
    with pytest.raises(RecordingError, match="is not a folder"):
        read_recording(folder / "truth.csv")
    with pytest.raises(RecordingError, match="give a folder, or the files with holes and truth"):
        read_recording()
    with pytest.raises(RecordingError, match="give a folder, or the file with the truth"):
        read_recording(holes=folder / "a_by_hl.txt")
    with pytest.raises(RecordingError, match=r"cannot read .*missing\.txt"):
        read_recording(folder, holes=folder / "missing.txt")
    with pytest.raises(RecordingError, match=r"cannot read .*missing\.csv"):
        read_recording(folder, truth=folder / "missing.csv")
    (folder / "b_by_hl.txt").write_text(f"{NAMES[0]} 9\n")
    two = r"should hold one \*_by_hl\.txt, and has: a_by_hl\.txt, b_by_hl\.txt; name it: holes"
    with pytest.raises(RecordingError, match=two):
        read_recording(folder)
    assert predicted(read_recording(folder, holes=folder / "b_by_hl.txt")) == [9.0]
    (folder / "a_by_hl.txt").unlink()
    (folder / "b_by_hl.txt").unlink()
    neither = r"holds no recording: there is neither a recording\.toml nor a \*_by_hl\.txt"
    with pytest.raises(RecordingError, match=neither):
        read_recording(folder)
    with pytest.raises(RecordingError, match="and has: none"):
        read_recording(folder, truth=folder / "truth.csv")


def test_without_a_csv(folder: Path) -> None:
    (folder / "truth.csv").unlink()
    with pytest.raises(RecordingError, match="the truth of all holes: it has no CSV"):
        read_recording(folder)


def test_two_tables_may_agree_and_may_not_differ(folder: Path) -> None:
    rows = [row(NAMES[0], "nan"), *map(row, NAMES[1:])]
    truth(folder, *rows)
    truth(folder, *reversed(rows), "more,1,2,3,4", file="other.csv")
    truth(folder, f"{NAMES[0]},2021-03-02 11:51:50", file="zz_timestamps.csv")
    assert read_recording(folder).failed == 1
    truth(folder, row(NAMES[0], 9.0), *rows[1:], file="other.csv")
    with pytest.raises(RecordingError, match=r"other\.csv and truth\.csv in .* differ; name one"):
        read_recording(folder)
    chosen = read_recording(folder, truth=folder / "other.csv")
    assert ctf(chosen)[3] == 9.0
    assert chosen.failed == 0


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(luck=st.randoms(use_true_random=True), file=st.sampled_from(["a_by_hl.txt", "truth.csv"]))
def test_whatever_is_wrong_is_an_error_of_recordings(folder: Path, luck: Random, file: str) -> None:
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(mutated(whole, luck))
    said = file
    try:
        read_recording(folder)
    except RecordingError as error:
        said = str(error)
    (folder / file).write_bytes(whole)
    assert "a_by_hl.txt" in said or "truth.csv" in said
