"""``fmilin plot`` and ``--plot``: pictures from the command line, and what cannot be drawn."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.systems import cartesian_pendulum
from tests.cli.conftest import Run
from tests.systems.linkages import FILE

PENDULUM = "fmilin.systems:cartesian_pendulum"
MECHANISM = f"{FILE}:four_bar_mechanism"


@pytest.fixture
def files(run: Run, result_files: Path) -> Path:
    """Files of a linear model and of families in the working directory."""
    del run
    for name in ("plant.mat", "line.nc", "grid.json"):
        shutil.copyfile(result_files / name, name)
    return Path()


def is_picture(path: str) -> bool:
    content = Path(path).read_bytes()
    return content.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".gif": b"GIF89a"}[Path(path).suffix])


KINDS = [
    ("plant.mat", "eigenvalues", ".svg", ()),
    ("plant.mat", "zeros", ".svg", ("--inputs", "F")),
    ("plant.mat", "modes", ".png", ("--mode", 1)),
    ("plant.mat", "participation", ".svg", ()),
    ("plant.mat", "bode", ".svg", ("--inputs", "F")),
    ("plant.mat", "nyquist", ".svg", ()),
    ("plant.mat", "step", ".svg", ("--amplitude", 0.2, "--stop-time", 1)),
    ("plant.mat", "step", ".svg", ("--against", PENDULUM, "--stop-time", 1)),
    ("plant.mat", "validity", ".svg", ("--against", PENDULUM, "--stop-time", 0.3)),
    ("plant.mat", "errors", ".svg", ()),
    ("plant.mat", "sparsity", ".svg", ()),
    ("plant.mat", "reduction", ".svg", ("--against", "plant.mat")),
    ("line.nc", "eigenvalues", ".svg", ()),
    ("line.nc", "root-locus", ".svg", ()),
    ("line.nc", "campbell", ".svg", ("--orders", "1,2", "--hertz")),
    ("grid.json", "surface", ".svg", ("--quantity", "A[v,q]")),
    (PENDULUM, "eigenvalues", ".svg", ("--set", "x=0.3")),
    (PENDULUM, "step", ".svg", ("--stop-time", 0.5)),
    (MECHANISM, "mechanism", ".svg", ("--set", "phi=0.4")),
    (MECHANISM, "shapes", ".svg", ()),
    (MECHANISM, "modes", ".gif", ()),
]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("source", "kind", "suffix", "more"), KINDS, ids=[f"{s}-{k}" for s, k, *_ in KINDS])
def test_every_kind_is_drawn_and_its_path_printed(
    run: Run, source: str, kind: str, suffix: str, more: tuple[object, ...]
) -> None:
    done = run("plot", source, "--kind", kind, "-o", f"picture{suffix}", *more)
    assert done.status == 0, done.err
    assert done.out == f"picture{suffix}\n"
    assert is_picture(f"picture{suffix}")


REFUSED = [
    ("plant.mat --kind bode -o a.pdf", 2, "has to end in .png or .svg or .gif"),
    ("plant.mat --kind bode -o a.gif", 2, "Only --kind modes"),
    ("plant.mat --kind modes -o a.gif", 2, "draws bodies and joints, and 'plant.mat' has none"),
    ("plant.mat --kind mechanism -o a.png", 2, "Name the mechanism"),
    ("plant.mat --kind root-locus -o a.png", 2, "fmilin sweep MODEL"),
    ("plant.mat --kind validity -o a.png", 2, "--against MODEL"),
    ("plant.mat --kind reduction -o a.png", 2, "--against full.mat"),
    ("plant.mat --kind modes --mode 0 -o a.png", 2, "counted from 1"),
    ("plant.mat --kind modes --mode 9 -o a.png", 2, "There is no mode 9"),
    ("plant.mat --kind bode --mode 1 -o a.png", 2, "--mode is for --kind modes"),
    ("plant.mat --kind bode --outputs nix -o a.png", 2, "'nix' is not an output"),
    ("plant.mat --kind bode --set x=1 -o a.png", 2, "'plant.mat' contains a linear model"),
    ("plant.mat --kind step --amplitude 0 -o a.png", 2, "amplitude of a step must not be 0"),
    ("plant.mat --kind step --against plant.mat -o a.png", 2, "plant.mat"),
    ("line.nc --kind bode -o a.png", 2, "is a family of 5 points"),
    ("line.nc --kind surface -o a.png", 2, "needs a grid of two axes"),
    ("line.nc --kind campbell --orders x -o a.png", 2, "are not numbers"),
    ("grid.json --kind surface --quantity size -o a.png", 2, "'size' is not a quantity"),
    ("none.mat --kind bode -o a.png", 3, "There is no file 'none.mat'"),
    ("broken.npz --kind bode -o a.png", 3, "broken.npz"),
    ("plant.m --kind bode -o a.png", 2, "a .m file is a program"),
    (f"{PENDULUM} --kind campbell -o a.png", 2, "fmilin sweep"),
    (f"{PENDULUM} --kind mechanism -o a.png", 2, "no bodies and joints"),
    (f"{PENDULUM} --kind step --against {PENDULUM} -o a.png", 2, "is a model itself"),
    ("four_bar.fmu --kind mechanism -o a.png", 2, "is an FMU"),
]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("line", "status", "said"), REFUSED, ids=[line for line, *_ in REFUSED])
def test_what_cannot_be_drawn_is_one_paragraph(run: Run, fmus: Path, line: str, status: int, said: str) -> None:
    Path("broken.npz").write_bytes(b"PK\x03\x04 nothing")
    done = run("plot", *line.replace("four_bar.fmu", str(fmus / "four_bar.fmu")).split())
    assert done.status == status, done.err
    assert done.is_one_paragraph(), done.err
    assert said in done.err
    assert not list(Path().glob("a.*"))


def test_an_fmu_is_linearized_or_read(run: Run, fmus: Path) -> None:
    done = run("plot", fmus / "four_bar.fmu", "--kind", "eigenvalues", "-o", "a.svg")
    assert done.status == 0, done.err
    fl.linearize(cartesian_pendulum()).save("linear.fmu")
    done = run("plot", "linear.fmu", "--kind", "bode", "-o", "b.svg")
    assert done.status == 0, done.err
    assert is_picture("a.svg")
    assert is_picture("b.svg")


def test_linearize_and_sweep_draw_what_they_found(run: Run) -> None:
    done = run("linearize", PENDULUM, "--plot", "e.svg", "--json")
    assert done.status == 0
    assert done.err == "e.svg: eigenvalues\n"
    assert is_picture("e.svg")
    done = run("sweep", PENDULUM, "--vary", "F=0:1:3", "--plot", "locus.png")
    assert done.status == 0
    assert "locus.png: root locus" in done.err
    assert is_picture("locus.png")
    done = run("linearize", PENDULUM, "--snapshots", "0,1", "--plot", "e.svg")
    assert done.status == 2
    assert "--snapshots and --plot exclude each other" in done.err


def test_a_loop_of_a_system_is_drawn_with_its_margins(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(
        "import control\nimport fmilin as fl\n\n"
        "def system():\n"
        "    plant = control.ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]], inputs='u', outputs='y')\n"
        "    law = control.ss([], [], [], [[2.0]], inputs='u', outputs='y')\n"
        "    members = {'plant': plant, 'law': law}\n"
        "    return fl.connect(members, [('plant.y', 'law.u', -1.0), ('law.y', 'plant.u')])\n",
        encoding="utf-8",
    )
    source = f"{tmp_path / 'loop.py'}:system"
    assert run("plot", source, "--kind", "margins", "--loop-at", "plant.u", "-o", "margins.svg").status == 0
    assert is_picture("margins.svg")
    without = run("plot", source, "--kind", "margins", "-o", "other.svg")
    assert "add --loop-at WIRE" in without.err
    wrong = run("plot", source, "--kind", "step", "--loop-at", "plant.u", "-o", "other.svg")
    assert "--loop-at is for --kind margins or bode or nyquist" in wrong.err
