"""Reports as pages: what they say, and how a real Chromium shows, sorts and prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import ModelInfo, Remark
from fmilin.linear_model.modal import modal_analysis
from fmilin.report.web import report_html
from fmilin.report.web.of_linear import ill_moved
from fmilin.systems import bicycle, cartesian_pendulum
from tests.browser import Browser, browsing, needs_chromium
from tests.families.plants import oscillator
from tests.hand_made import pendulum, sized
from tests.systems.linkages import four_bar_mechanism

EVIL = '<script>alert(1)</script> & "x"'
POINTS = 200


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with linear.html, verified, and family.html of 200 points."""
    folder = tmp_path_factory.mktemp("pages")
    model = cartesian_pendulum()
    linear = fl.linearize(model)
    linear.save_report(folder / "linear.html", verification=linear.verify(model, horizon=0.2), model=model)
    family = fl.sweep(oscillator(), {"k": np.linspace(1, 9, 20), "d": np.linspace(-0.5, 5, POINTS // 20)})
    family.save_report(folder / "family.html")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports whose pictures are drawn, and not painted: that takes most of the time, and other tests look at it."""
    monkeypatch.setattr("fmilin.report.web.blocks.render_figure", lambda *_: b"picture")


def words(page: str) -> str:
    """A page without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("<main>")[1]))


def test_a_report_says_what_the_model_is(pages: Path) -> None:
    said = words((pages / "linear.html").read_text("utf-8"))
    for part in (
        "2 independent states out of 4", "Operating point", "2 independent relations hold",
        "chosen among the states", "±3.132092 i", "swings without decay", "Participation factors in percent",
        "Which input moves which mode", "Entry by entry, the least certain first",
        "right to first order in all",
    ):  # fmt: skip
        assert part in said, part


def test_a_mode_that_an_input_cannot_move_is_named() -> None:
    linear = fl.linearize(bicycle())
    said = list(ill_moved(linear, modal_analysis(linear)))
    assert "Mode 2 (-0.62121273 1/s) cannot be moved by rear_torque alone." in said
    assert "Mode 3 (-0.3779662 ± 3.8728419 i 1/s) is not seen in speed alone." in said
    (multiple,) = (sentence for sentence in said if sentence.endswith("of its 6 motions cannot be moved by any input."))
    assert multiple.startswith("Mode 1 (0 (6 times")
    assert ": 2 of its 6 motions" in multiple


@pytest.mark.usefixtures("unpainted")
def test_a_family_says_where_it_grows_and_why_points_are_missing() -> None:
    said = words(report_html(fl.sweep(cartesian_pendulum(), {"x": [0.0, 0.3, 1.4], "F": [0.0, 1.0]})))
    assert "4 of 6 linear models, order 2, grid 3 x 2" in said
    assert "Why points have no linear model" in said
    assert "failed" in said
    said = words(report_html(fl.sweep(oscillator(), {"d": [-1.0, 1.0]})))
    assert "d = -1" in said


@pytest.mark.usefixtures("unpainted")
def test_a_mechanism_is_drawn() -> None:
    model = four_bar_mechanism()
    page = report_html(fl.linearize(model), model=model)
    assert 'alt="The mechanism and its modes"' in page


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("shape", [(0, 0, 0, 0), (3, 1, 0, 2), (9, 4, 2, 0)])
def test_any_size_has_a_report(shape: tuple[int, int, int, int]) -> None:
    assert report_html(sized(*shape)).count("<h2>") >= 6


def test_a_family_without_any_model_has_a_report() -> None:
    said = words(report_html(fl.sweep(cartesian_pendulum(), {"x": [2.0, 3.0]})))
    assert "0 of 2 linear models" in said


@pytest.mark.usefixtures("unpainted")
def test_names_from_a_model_run_nothing() -> None:
    linear = replace(pendulum(), model=ModelInfo(EVIL), warnings=(Remark("rank", EVIL),))
    page = report_html(linear)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<script>") == 1


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fl.UsageError, match=r"end in \.html"):
        pendulum().save_report(tmp_path / "report.pdf")
    with pytest.raises(fl.UsageError, match="folder"):
        pendulum().save_report(tmp_path / "nowhere" / "report.html")


def test_a_family_of_many_points_stays_small(pages: Path) -> None:
    size = (pages / "family.html").stat().st_size
    assert size < 10_000_000 * POINTS / 1000
    assert (pages / "family.html").read_text("utf-8").count("<tr>") > POINTS


@needs_chromium
@pytest.mark.parametrize("name", ["linear.html", "family.html"])
def test_chromium_has_nothing_to_complain_about_and_loads_nothing_else(
    browser: Browser, pages: Path, name: str
) -> None:
    browser.open(pages / name)
    pictures = "Array.from(document.images, i => i.naturalWidth * i.naturalHeight)"
    assert min(browser.evaluate(pictures)) > 10_000
    assert browser.evaluate("document.querySelectorAll('h2').length") > 5
    assert browser.said == []
    assert browser.requested == [(pages / name).as_uri()]


COLUMN = """Array.from(
  Array.from(document.querySelectorAll('table')).find(t => t.ariaLabel.startsWith('Every point')).tBodies[0].rows,
  r => r.cells[%d].textContent)"""
HEAD = """Array.from(document.querySelectorAll('table')).find(t => t.ariaLabel.startsWith('Every point'))
  .querySelectorAll('th button')[%d]"""


@needs_chromium
def test_tables_sort_as_numbers_and_back(browser: Browser, pages: Path) -> None:
    browser.open(pages / "family.html")
    before = browser.evaluate(COLUMN % 1)
    browser.evaluate(f"{HEAD % 1}.click()")
    rising = [float(v) for v in browser.evaluate(COLUMN % 1)]
    assert rising == sorted(float(v) for v in before)
    assert [float(v) for v in browser.evaluate(COLUMN % 0)][:20] == sorted(
        float(v) for v in browser.evaluate(COLUMN % 0)[:20]
    )
    assert browser.evaluate(f"{HEAD % 1}.parentElement.ariaSort") == "ascending"
    browser.evaluate(f"{HEAD % 1}.click()")
    assert [float(v) for v in browser.evaluate(COLUMN % 1)] == rising[::-1]
    browser.evaluate(f"{HEAD % 5}.click()")  # damping ratios, empty where nothing swings
    ratios = browser.evaluate(COLUMN % 5)
    there = [float(v) for v in ratios if v]
    assert there == sorted(there)
    assert ratios[len(there) :] == [""] * (POINTS - len(there)) != []
    assert browser.said == []


@needs_chromium
def test_the_page_prints(browser: Browser, pages: Path) -> None:
    browser.open(pages / "linear.html")
    content = browser.pdf()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 3


def test_tables_of_a_family_number_pairs_as_its_pictures_do(unpainted: None) -> None:
    del unpainted
    two = fl.models.OdeModel("two", {"x": "v", "v": "-k*x", "y": "w", "w": "-9*k*y"}, parameters={"k": 1.0})
    report = report_html(fl.sweep(two, {"k": [1.0, 2.0]}))
    table = report[report.index("Modes followed over the grid") :].split("</table>")[0]
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in table.split("<tr>")[2:]]
    assert [row[0] for row in rows] == ["1", "2"]
