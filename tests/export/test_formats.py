"""Formats are found by their files: one new file, or one registered class, is a format everywhere."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.shell_completion import ShellComplete

import fmilin as fl
import fmilin.export.codecs
from fmilin import formats
from fmilin.errors import UsageError
from fmilin.export.files import check_output, is_family, load_result
from fmilin.formats import (
    AnyCodec,
    Codec,
    Holds,
    Writing,
    register,
    registered_codecs,
    require_codec,
    suffixes,
)
from fmilin.report.figures import Picture
from tests.documentation.scripts import script
from tests.hand_made import differences, pendulum

DOCS = Path(__file__).parents[2] / "docs"
NEW_FILE = """
from fmilin.export.codecs.json_text import Json
from fmilin.export.container import Content, register_container


@register_container
class Toy(Json):
    suffix = ".toy"
    contents = (Content("linear model", 1000, "children", "strict JSON under another name"),)
"""


@pytest.fixture
def page() -> ModuleType:
    """The script that writes the tables of the documentation."""
    return script("formats")


@pytest.fixture
def new_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A format that was added by one file; the command line is imported afresh, as by another run."""
    folder = tmp_path / "codecs"
    folder.mkdir()
    (folder / "toy.py").write_text(NEW_FILE, encoding="utf-8")
    monkeypatch.setattr(formats, "_codecs", list(registered_codecs()))
    monkeypatch.setattr(fmilin.export.codecs, "__path__", [*fmilin.export.codecs.__path__, str(folder)])
    importlib.invalidate_caches()
    fmilin.export.codecs.import_codecs()
    with new_commands():
        yield
    sys.modules.pop("fmilin.export.codecs.toy")


@contextmanager
def new_commands() -> Iterator[None]:
    """Import the command line afresh: its options list the suffixes that are registered when they are made."""
    before = without_commands()
    try:
        yield
    finally:
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


@pytest.mark.usefixtures("new_file")
def test_an_added_format_is_written_read_and_drawn(tmp_path: Path) -> None:
    pendulum().save(tmp_path / "plant.toy")
    assert differences(pendulum(), fl.LinearModel.load(tmp_path / "plant.toy")) == []
    read = load_result(str(tmp_path / "plant.toy"))
    assert isinstance(read, fl.LinearModel)
    check_output(tmp_path / "other.toy")
    assert not is_family(tmp_path / "plant.toy")
    with pytest.raises(UsageError, match=r"Known are \.mat .*, \.toy \(children\)"):
        pendulum().save(tmp_path / "plant.slx")
    with pytest.raises(UsageError, match=r"Save the linear model as \.mat, \.npz, \.json or \.toy, a family as"):
        load_result(str(tmp_path / "plant.m"))


@pytest.mark.usefixtures("new_file")
@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            "linearize",
            ".mat .npz .json .fmu .m .c .mo .tex .txt .toy, _simulink.m (Simulink), dslin.mat (Dymola)",
        ),
        ("convert", "between .mat, .npz, .json and .toy. LINEAR is a .mat, .npz, .json, .fmu, .lin or .toy;"),
        ("verify", "LINEAR is a linear model of MODEL: .mat, .npz, .json or .toy."),
        ("simulate", "Compare with a linear model: .mat .npz .json .toy"),
        ("plot", "MODEL is a file of a linear model (.mat .npz .json .toy, .fmu of one), of a family"),
        ("report", "MODEL is a file of a linear model (.mat .npz .json .toy, .fmu of one), of a family"),
    ],
)
def test_an_added_format_is_in_the_help(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text in helped(command, capsys)


@pytest.mark.usefixtures("new_file")
def test_an_added_format_is_completed_and_documented(page: ModuleType) -> None:
    assert completed("convert", "plant.mat", "-o", "new.t") == ["new.tex", "new.txt", "new.toy"]
    assert "- `.toy` for children: strict JSON under another name\n" in page.page()


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
    named = set(re.findall(r"(?:dslin|_simulink)?\.(?:[a-z]+)\b", verb.__doc__ or ""))
    assert set(suffixes(holds, readable=readable)) <= named


@pytest.mark.parametrize("codec", registered_codecs(), ids=lambda codec: f"{codec.holds} {codec.suffix}")
def test_a_codec_does_what_it_says(codec: AnyCodec) -> None:
    kind = type(codec)
    assert codec.is_writable == (kind.dumps is not Codec.dumps)
    assert codec.is_readable == (kind.loads is not Codec.loads)
    assert not (codec.is_complete and not codec.is_readable)
    assert not (codec.description and codec.is_readable)
    assert set(codec.choices) <= set(Writing.__dataclass_fields__)


def test_a_format_of_ones_own_is_registered_by_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_codecs", list(registered_codecs()))

    @register
    class OrderText(Codec[fl.LinearModel]):
        holds = "linear model"
        suffix = ".order"
        audience = "people"
        content = "the order"

        def dumps(self, result: fl.LinearModel, writing: Writing) -> bytes:
            return f"{writing.name} has {len(result.states)} states".encode()

    pendulum().save(tmp_path / "plant.order")
    assert (tmp_path / "plant.order").read_text("utf-8") == "plant has 2 states"
    with pytest.raises(UsageError, match=r"Cannot read .* as a linear model: it has the suffix '\.order'"):
        fl.LinearModel.load(tmp_path / "plant.order")
    with pytest.raises(ValueError, match=r"A format for '\.order' files with a linear model is registered already"):
        register(OrderText)


def test_a_new_format_of_pictures_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(formats, "_codecs", list(registered_codecs()))

    @register
    class SizeText(Codec[Picture]):
        holds = "picture"
        suffix = ".size"
        audience = "programs"
        content = "the size of the figure"

        def dumps(self, result: Picture, writing: Writing) -> bytes:
            return f"{result.figure.get_figwidth():g} inches".encode()

    pendulum().save(tmp_path / "plant.mat")
    arguments = ["plot", str(tmp_path / "plant.mat"), "--kind", "eigenvalues", "-o", str(tmp_path / "plant.size")]
    with new_commands():
        program().main(arguments, prog_name="fmilin", standalone_mode=False)
    assert capsys.readouterr().out == f"{tmp_path / 'plant.size'}\n"
    assert (tmp_path / "plant.size").read_text("utf-8").endswith(" inches")


def test_codecs_are_imported_without_numpy() -> None:
    code = "import sys, fmilin.cli.main, fmilin.export; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_signals_are_not_a_result_that_a_file_can_hold() -> None:
    assert formats.identify_kind(pendulum()) == "linear model"
    with pytest.raises(UsageError, match="An object of the type 'Signals' is not a result that can be saved"):
        formats.identify_kind(pendulum().states)


def test_a_whole_name_goes_before_its_suffix() -> None:
    assert require_codec("a.dslin.mat", "linear model").audience == "Dymola"
    assert require_codec("A.MAT", "linear model").is_complete
    with pytest.raises(UsageError, match=r"as a family: it has the suffix '\.mat'"):
        require_codec("dslin.mat", "family")
