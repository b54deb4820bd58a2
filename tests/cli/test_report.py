"""``fmilin report``: a page from a linear model, a family or a model, and what has none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PENDULUM = "fmilin.systems:cartesian_pendulum"


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports whose pictures are drawn, and not painted, which other tests look at."""
    monkeypatch.setattr("fmilin.report.web.blocks.render_figure", lambda *_: b"picture")


@pytest.fixture
def files(run: Run, result_files: Path) -> Path:
    """Files of a linear model and of a family in the working directory."""
    del run
    for name in ("plant.mat", "line.nc"):
        shutil.copyfile(result_files / name, name)
    return Path()


@pytest.mark.usefixtures("files", "unpainted")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plant.mat"], "Entry by entry"),
        (["plant.mat", "--against", PENDULUM, "--horizon", "0.2"], "right to first order"),
        (["line.nc"], "Every point of the grid"),
        ([PENDULUM, "--set", "x=0.3", "--verify", "--horizon", "0.2", "--outputs", "angle"], "right to first order"),
    ],
    ids=["linear", "verified", "family", "model"],
)
def test_a_page_is_written_and_its_path_printed(run: Run, arguments: list[str], said: str) -> None:
    done = run("report", *arguments, "-o", "report.html")
    assert done.status == 0, done.err
    assert done.out == "report.html\n"
    page = Path("report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>")
    assert said in page


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("plant.mat -o a.pdf", 2, "has to end in .html"),
        ("plant.mat -o nowhere/a.html", 2, "nowhere"),
        ("none.mat -o a.html", 3, "There is no file 'none.mat'"),
        ("broken.nc -o a.html", 3, "broken.nc"),
        ("plant.m -o a.html", 2, "a .m file is a program"),
        ("plant.mat --trim -o a.html", 2, "'plant.mat' contains a linear model"),
        ("plant.mat --outputs angle -o a.html", 2, "'plant.mat' contains a linear model"),
        ("plant.mat --verify -o a.html", 2, "give --against MODEL instead"),
        ("plant.mat --horizon 2 -o a.html", 2, "--horizon is the duration of a verification"),
        (f"line.nc --against {PENDULUM} -o a.html", 2, "Leave out --verify, --against and --horizon"),
        ("line.nc --verify -o a.html", 2, "Leave out --verify, --against and --horizon"),
        (f"{PENDULUM} --against {PENDULUM} -o a.html", 2, "is a model itself"),
        ("plant.mat --against fmilin.systems:four_bar -o a.html", 2, "four_bar"),
        ("fmilin.systems:nothing -o a.html", 2, "nothing"),
    ],
)
def test_what_has_no_report_is_one_paragraph(run: Run, line: str, status: int, said: str) -> None:
    Path("broken.nc").write_bytes(b"\x89HDF\r\n nothing")
    done = run("report", *line.split())
    assert done.status == status, done.err
    assert done.is_one_paragraph(), done.err
    assert said in done.err
    assert not list(Path().glob("a.*"))
