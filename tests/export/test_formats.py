"""The table of formats: a line in it is a format everywhere."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.shell_completion import ShellComplete

import fmilin as fl
from fmilin import formats
from fmilin.errors import UsageError
from fmilin.export.files import check_output, is_family, load_result
from fmilin.formats import FORMATS, Format, Holds, format_of, function_of, suffixes
from tests.documentation.scripts import script
from tests.hand_made import differences, pendulum

DOCS = Path(__file__).parents[2] / "docs"
ADDED = Format(
    "linear model", ".toy", "children", "strict JSON under another name",
    ".export.document:dumps_json", ".export.document:loads_json", complete=True,
)  # fmt: skip


@pytest.fixture
def page() -> ModuleType:
    """The script that writes the tables of the documentation."""
    return script("formats")


@pytest.fixture
def one_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[Format]:
    """A format that was added by one line; the command line is imported afresh, as by another run."""
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, ADDED))
    before = without_commands()
    yield ADDED
    without_commands()
    sys.modules.update(before)
    if "fmilin.cli" in before:
        vars(fl)["cli"] = before["fmilin.cli"]


def without_commands() -> dict[str, ModuleType]:
    """Forget the modules of the command line, and return them."""
    names = [name for name in sys.modules if name.split(".")[:2] == ["fmilin", "cli"]]
    return {name: sys.modules.pop(name) for name in names}


def program() -> click.Command:
    main: ModuleType = importlib.import_module("fmilin.cli.main")
    command: click.Command = main.program
    return command


def completed(*words: str) -> list[str]:
    """Return what the shell offers for the last word."""
    shell = ShellComplete(program(), {}, "fmilin", "_FMILIN_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def helped(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    program().main([command, "--help"], prog_name="fmilin", standalone_mode=False)
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("one_more")
def test_an_added_format_is_written_read_and_drawn(tmp_path: Path) -> None:
    pendulum().save(tmp_path / "plant.toy")
    assert differences(pendulum(), fl.LinearModel.load(tmp_path / "plant.toy")) == []
    found = load_result(str(tmp_path / "plant.toy"))
    assert isinstance(found, fl.LinearModel)
    check_output(tmp_path / "other.toy")
    assert not is_family(tmp_path / "plant.toy")
    with pytest.raises(UsageError, match=r"Known are \.mat .*, \.toy \(children\)"):
        pendulum().save(tmp_path / "plant.slx")
    with pytest.raises(UsageError, match=r"Save the linear model as \.mat, \.npz, \.json or \.toy, a family as"):
        load_result(str(tmp_path / "plant.m"))


@pytest.mark.usefixtures("one_more")
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("linearize", "the format: .mat .npz .json .fmu .m .c .mo .tex .txt .toy, dslin.mat (Dymola)"),
        ("convert", "between .mat, .npz, .json and .toy. LINEAR is a .mat, .npz, .json, .fmu, .lin or .toy;"),
        ("verify", "LINEAR is a linear model of MODEL: .mat, .npz, .json or .toy."),
        ("simulate", "Compare with a linear model: .mat .npz .json .toy"),
        ("plot", "MODEL is a file of a linear model (.mat .npz .json .toy, .fmu of one), of a family"),
        ("report", "MODEL is a file of a linear model (.mat .npz .json .toy, .fmu of one), of a family"),
    ],
)
def test_an_added_format_is_in_the_help(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text in helped(command, capsys)


@pytest.mark.usefixtures("one_more")
def test_an_added_format_is_completed_and_documented(page: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("convert", "plant.mat", "-o", "new.t") == ["new.tex", "new.txt", "new.toy"]
    monkeypatch.setattr(page, "FORMATS", formats.FORMATS)
    assert "| linear model | `.toy` | children | strict JSON under another name |\n" in page.page()


def test_the_shell_completes_what_an_option_takes() -> None:
    assert completed("sweep", "plant.fmu", "-o", "a/family.n") == ["a/family.nc", "a/family.npz"]
    assert completed("plot", "plant.mat", "-o", "way.") == ["way.png", "way.svg", "way.gif"]
    assert completed("plot", "plant.mat", "-o", "way") == ["way"]  # the shell looks for files itself
    assert completed("plot", "plant.mat", "-o", "../way") == ["../way"]


def test_the_documentation_has_the_table_of_today(page: ModuleType) -> None:
    assert (DOCS / "howto" / "files.md").read_text(encoding="utf-8") == page.page()


@pytest.mark.parametrize(
    ("verb", "holds", "readable"),
    [
        (fl.LinearModel.save, "linear model", False),
        (fl.LinearModel.load, "linear model", True),
        (fl.LinearFamily.save, "family", False),
        (fl.LinearFamily.load, "family", True),
    ],
)
def test_the_reference_names_every_format(verb: object, holds: Holds, *, readable: bool) -> None:
    named = set(re.findall(r"(?:dslin)?\.(?:[a-z]+)\b", verb.__doc__ or ""))
    assert set(suffixes(holds, readable=readable)) <= named


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: f"{kind.holds} {kind.suffix}")
def test_whoever_writes_and_reads_is_there(kind: Format) -> None:
    for name in (kind.write, kind.read, kind.stream):
        if name:
            assert callable(function_of(name))


def test_a_whole_name_goes_before_its_suffix() -> None:
    assert format_of("a.dslin.mat", "linear model").audience == "Dymola"
    assert format_of("A.MAT", "linear model").complete
    with pytest.raises(UsageError, match=r"as a family: it has the suffix '\.mat'"):
        format_of("dslin.mat", "family")
