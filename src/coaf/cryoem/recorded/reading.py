"""Reading a recorded grid, whoever wrote it."""

from pathlib import Path

from coaf.cryoem.recorded.columns import RecordingError
from coaf.cryoem.recorded.cryorl import HOLE_LIST, read_cryorl
from coaf.cryoem.recorded.folder import DESCRIPTION, read_folder
from coaf.cryoem.recorded.recording import Recording

SESSION = "recording"  # the folder, in that of a session, with its recording


def read_recording(
    folder: Path | None = None, *, holes: Path | None = None, truth: Path | None = None
) -> Recording:
    """Read a recorded grid.

    Parameters
    ----------
    folder
        Holds `recording.toml`, `holes.csv` and `shots.csv`, or is the folder of a session that
        has these in `recording`; or holds CryoRL's two files, one `*_by_hl.txt` and one CSV with
        the truth of all the holes it lists.
    holes, truth
        CryoRL's files, where the folder has more than one of a kind, or other names.
    """
    if folder is not None and not Path(folder).is_dir():
        raise RecordingError(f"{folder} is not a folder")
    if holes is not None or truth is not None or folder is None:
        return read_cryorl(folder, holes=holes, truth=truth)
    if (Path(folder) / DESCRIPTION).exists():
        return read_folder(folder)
    if any(Path(folder).glob(HOLE_LIST)):
        return read_cryorl(folder)
    if (Path(folder) / SESSION / DESCRIPTION).exists():
        return read_folder(Path(folder) / SESSION)
    raise RecordingError(
        f"{folder} holds no recording: there is neither a {DESCRIPTION} nor a {HOLE_LIST}"
    )
