"""Reports are one file that asks for nothing, and say what they were given."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from coaf.worlds.report import Page, save, svg


class Reader(HTMLParser):
    """Checks that what is opened is closed, and collects text and addresses."""

    void = frozenset({"meta", "img", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.void:
            self.open.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def drawn() -> Figure:
    figure = Figure()
    figure.subplots().plot([1, 2], [3, 4])
    return figure


def whole() -> Page:
    report = Page("A <b>title</b> & more", lead="Lead.")
    report.section("First")
    report.text("2 < 3 & 5 > 4")
    report.table(
        ["name", "value", "held", "count"],
        [["<script>", 0.123456, True, 12345], ["b", None, False, 2]],
        caption="A caption.",
    )
    report.table(["a"], [], folded="Nothing to see")
    report.section("Second")
    report.figure(svg(drawn()), caption="A line.", alt='A "line"')
    report.footer("The end.")
    return report


def read(report: Page) -> Reader:
    reader = Reader()
    reader.feed(report.html())
    assert reader.open == []
    return reader


def test_text_is_text() -> None:
    words = read(whole()).words
    for said in ("A <b>title</b> & more", "2 < 3 & 5 > 4", "<script>", "Lead.", "The end."):
        assert said in words


def test_numbers_and_answers() -> None:
    words = read(whole()).words
    for said in ("0.1235", "–", "yes", "no", "12,345"):
        assert said in words


def test_nothing_is_asked_of_the_network() -> None:
    report = whole()
    assert all(a.startswith(("data:", "#s")) for a in read(report).addresses)
    assert "http" not in report.html()


def test_sections_are_linked() -> None:
    assert [a for a in read(whole()).addresses if a.startswith("#")] == ["#s1", "#s2"]


def test_written(tmp_path: Path) -> None:
    path = whole().write(tmp_path / "deep" / "report.html")
    assert path.read_text(encoding="utf-8") == whole().html()


def test_a_row_that_is_too_short() -> None:
    with pytest.raises((IndexError, ValueError)):
        Page("t").table(["a", "b"], [["only one"]])


def test_figures_are_saved_as_both_and_the_same_each_time(tmp_path: Path) -> None:
    png, vector = save(drawn(), tmp_path, "line")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert vector.read_bytes() == svg(drawn())
