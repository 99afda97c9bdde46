"""What people download: the wheel, the source archive, and how to cite them."""

import datetime
import email
import email.message
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import coaf

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
WHEEL_BYTES, SDIST_BYTES = 750_000, 600_000  # they have 0.65 and 0.50 MB

# What the Citation File Format 1.2.0 asks for, and what an entry of `references` needs besides.
CITED = {"cff-version", "message", "title", "authors"}
REFERRED = {"type", "title", "authors"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both as a release does: sdist from the checkout, wheel from the sdist."""
    pytest.importorskip("hatchling", reason="hatchling builds the package")
    pytest.importorskip(
        "hatch_fancy_pypi_readme", reason="it makes the links of the README absolute"
    )
    folder = tmp_path_factory.mktemp("dist")
    python = [sys.executable, "-m"]
    build = [*python, "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*python, "pip", "wheel", *offline, sdist], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    name = f"coaf-{coaf.__version__}.dist-info/METADATA"
    return email.message_from_bytes(wheel.read(name))


def sources() -> set[str]:
    package = ROOT / "src" / "coaf"
    found = [*package.rglob("*.py"), package / "py.typed"]
    return {path.relative_to(ROOT / "src").as_posix() for path in found}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    about = f"coaf-{coaf.__version__}.dist-info"
    files = ("METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE", "RECORD")
    assert set(wheel.namelist()) == sources() | {f"{about}/{name}" for name in files}
    assert wheel.filename is not None
    assert Path(wheel.filename).stat().st_size < WHEEL_BYTES


def test_the_sdist_holds_what_builds_it(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    beside = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"}
    made = {"PKG-INFO", ".gitignore"}  # hatchling's own: the metadata, and what it leaves out
    assert names == {f"src/{name}" for name in sources()} | beside | made
    assert path.stat().st_size < SDIST_BYTES


def test_links_of_the_long_description_work_on_an_index(metadata: email.message.Message) -> None:
    markdown = pytest.importorskip("markdown_it", reason="rich brings it")
    text = metadata.get_payload()
    tokens = [
        inner for token in markdown.MarkdownIt().parse(text) for inner in (token.children or [])
    ]
    links = {str(t.attrs.get("href", t.attrs.get("src"))) for t in tokens if t.attrs}
    assert any(link.startswith(f"{SOURCE}/blob/v{coaf.__version__}/") for link in links)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    # They lead to files that exist.
    inside = [link.partition(f"/v{coaf.__version__}/")[2] for link in links if SOURCE in link]
    assert [link for link in inside if not (ROOT / link.partition("#")[0]).exists()] == []


def test_every_address_begins_with_that_of_the_source(metadata: email.message.Message) -> None:
    urls = dict(entry.split(", ") for entry in metadata.get_all("Project-URL", []))
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues"}
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    stated = re.findall(r"https://github\.com/[^\"'\s]*", text)
    assert len(stated) > len(urls)
    assert [url for url in stated if not f"{url}/".startswith(f"{SOURCE}/")] == []
    for url in urls.values():
        file = url.partition("/blob/main/")[2]
        assert (ROOT / file).exists()


def test_classifiers_are_known_to_the_index(metadata: email.message.Message) -> None:
    known = pytest.importorskip("trove_classifiers", reason="hatchling brings it")
    assert set(metadata.get_all("Classifier", [])) <= known.classifiers


def test_there_is_one_version() -> None:
    """It is stated in `coaf/version.py`; the changelog and the citation follow."""
    assert "version" in PROJECT["dynamic"]
    assert citation()["version"] == coaf.__version__
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    released = [tuple(map(int, h.split()[0].split("."))) for h in headings if h != "Unreleased"]
    assert released == sorted(set(released), reverse=True)
    number, dev, _ = coaf.__version__.partition(".dev")
    this = tuple(map(int, number.split(".")))
    if headings[0] == "Unreleased":
        assert dev, "what is unreleased has a version of development, as 0.2.0.dev0"
        assert this > released[0]
    else:
        assert not dev, "a version of development stands under the heading Unreleased"
        assert this == released[0]


def citation() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the citation")
    cited: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return cited


def test_the_citation_has_what_readers_of_it_need() -> None:
    cited = citation()
    assert set(cited) >= CITED
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert cited["license"] == PROJECT["license"]
    assert cited["repository-code"] == SOURCE
    assert cited["keywords"] == PROJECT["keywords"]
    assert [person["name"] for person in cited["authors"]] == [
        person["name"] for person in PROJECT["authors"]
    ]
    if "date-released" in cited:
        assert isinstance(cited["date-released"], datetime.date)
    (paper,) = cited["references"]
    assert set(paper) >= REFERRED
    assert [person["family-names"] for person in paper["authors"]] == [
        "Wei",
        "Tewari",
        "Cianfrocco",
    ]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert paper["title"] in text
