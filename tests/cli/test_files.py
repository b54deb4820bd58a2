"""No command writes to a file that it reads, whatever the file is called there, and none writes one file twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
import pytest

from fmilin.cli.command import Command
from fmilin.cli.main import COMMANDS
from fmilin.cli.options import NewFile
from tests.cli.conftest import Run

LINKS: dict[str, Callable[[Path, Path], object]] = {
    "itself": lambda source, name: source.rename(name),
    "symbolic link": lambda source, name: name.symlink_to(source.name),
    "hard link": os.link,
}
OUTPUTS = {"-o", "--output", "--plot", "--sparsity"}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    ("read", "written", "arguments"),
    [
        ("in.fmu", "out.fmu", ("linearize", "in.fmu", "-o", "out.fmu")),
        ("in.toml", "out.json", ("linearize", "four_bar.fmu", "--constraints", "in.toml", "-o", "out.json")),
        ("in.toml", "out.json", ("linearize", "four_bar.fmu", "--point", "in.toml", "-o", "new.mat", "-o", "out.json")),
        ("in.json", "out.json", ("linearize", "x.fmu", "--point", "in.json", "--snapshots=0.5", "-o", "out.json")),
        ("in.mo", "out_t0.5.mo", ("linearize", "x.fmu", "--constraints", "in.mo", "--snapshots=0.5", "-o", "out.mo")),
        ("in.py", "out.mat", ("linearize", "in.py:crane", "-o", "out.mat")),
        ("in.toml", "out.json", ("linearize", "in.toml", "-o", "out.json")),
        ("in.json", "out.mat", ("convert", "in.json", "-o", "out.mat")),
        ("in.json", "out.json", ("convert", "first.json", "in.json", "-o", "new.m", "-o", "out.json")),
        ("in.csv", "out.csv", ("simulate", "four_bar.fmu", "--stop-time", "1", "--input", "in.csv", "-o", "out.csv")),
        ("in.mat", "out.png", ("simulate", "x.fmu", "--stop-time", "1", "--against", "in.mat", "--plot", "out.png")),
        ("in.py", "out.fmu", ("build", "in.py:crane(loops=2)", "-o", "out.fmu")),
        ("in.toml", "out.toml", ("trim", "four_bar.fmu", "--constraints", "in.toml", "-o", "out.toml")),
        ("in.urdf", "out.json", ("trim", "pinocchio:in.urdf", "-o", "out.json")),
        ("in.mat", "out.png", ("verify", "four_bar.fmu", "in.mat", "--plot", "out.png")),
        ("in.py", "out.png", ("spectrum", "in.py:crane", "--sparsity", "out.png")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_no_output_is_an_input(
    read: str, written: str, arguments: tuple[str, ...], link: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / read).write_bytes(b"mine")
    LINKS[link](tmp_path / read, tmp_path / written)
    if link == "itself":
        arguments = tuple(argument.replace(read, written) for argument in arguments)
    done = run(*arguments)
    assert done.status == 2, done.err
    assert done.is_one_paragraph()
    assert "would overwrite" in done.err
    assert (tmp_path / written).read_bytes() == b"mine"


def test_no_output_is_the_constraints_file_beside_the_model(run: Run, tmp_path: Path) -> None:
    (tmp_path / "crane.fmilin.toml").write_bytes(b"mine")
    (tmp_path / "out.json").symlink_to("crane.fmilin.toml")
    done = run("linearize", "crane.fmu", "-o", "out.json")
    assert done.status == 2
    assert "would overwrite" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("linearize", "four_bar.fmu", "-o", "a.mat", "-o", "b.mat"),
        ("simulate", "four_bar.fmu", "--stop-time", "1", "-o", "a.csv", "--plot", "b.png"),
        ("trim", "four_bar.fmu", "-o", "a.json", "-o", "b.json"),
        ("convert", "plant.json", "-o", "a.mat", "-o", "b.mat"),
        ("linearize", "four_bar.fmu", "--snapshots", "0.1,0.10000001", "-o", "a.mo"),
    ],
)
def test_one_file_is_not_written_twice(arguments: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    first, second = (next((a for a in arguments if a.startswith(letter)), "") for letter in "ab")
    (tmp_path / first).write_bytes(b"yesterday")
    if second:
        (tmp_path / second).symlink_to(first)
    done = run(*arguments)
    assert done.status == 2, done.err
    assert "same file twice" in done.err
    assert (tmp_path / first).read_bytes() == b"yesterday"


def test_other_files_of_the_same_name_may_be_written(run: Run, fmus: Path, tmp_path: Path) -> None:
    shutil.copyfile(fmus / "four_bar.fmu", tmp_path / "in.fmu")
    (tmp_path / "deeper").mkdir()
    assert run("linearize", "in.fmu", "-o", "deeper/in.fmu").status == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_looks_at_its_files(name: str) -> None:
    """All commands are of the class that does it, and options that name a new file are of the type that says so."""
    command = import_module(f"fmilin.cli.{name}").command
    assert isinstance(command, Command)
    for parameter in command.params:
        if OUTPUTS & set(parameter.opts) and parameter.metavar != "NAME":  # one of the model's outputs
            assert isinstance(parameter.type, NewFile), parameter.opts
        elif "FILE" in (getattr(parameter, "metavar", "") or "") or (
            parameter.name in ("linear", "against") and parameter.metavar != "MODEL"  # a model may be no file
        ):
            assert isinstance(parameter.type, click.Path), parameter.opts
            assert not isinstance(parameter.type, NewFile)
