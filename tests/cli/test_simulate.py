"""``fmilin simulate``, and ``linearize`` on the way: files, summaries, comparisons, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.cli.linear_models import name_file, snapshot_times
from fmilin.systems import four_bar
from tests.cli.conftest import Run, shell

PENDULUM = "fmilin.systems:cartesian_pendulum(angle=1.0)"


def columns(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return dict(zip(head, np.array(rows, dtype=float).T, strict=True))


def test_csv_of_the_contract(run: Run, tmp_path: Path) -> None:
    """The first column is time; then every state and every output by name, inputs behind them."""
    done = run("simulate", "four_bar.fmu", "--stop-time", "1", "--step", "0.25", "-o", "run.csv", "--set", "phi=2.0",
               "--no-isolation")  # fmt: skip
    assert (done.status, done.out) == (0, "")
    found = columns(tmp_path / "run.csv")
    native = four_bar()
    assert list(found) == ["time", *native.states.names, "coupler.y", "torque"]
    np.testing.assert_array_equal(found["time"], [0.0, 0.25, 0.5, 0.75, 1.0])
    expected = fl.simulate(native, fl.operating_point(native, {"phi": 2.0}), stop_time=1.0, step=0.25)
    np.testing.assert_allclose(found["phi"], expected["phi"], atol=1e-8)
    np.testing.assert_allclose(found["coupler.y"], expected["coupler.y"], atol=1e-8)


def test_summary_for_a_person(run: Run) -> None:
    energy = "vx^2/2 + vy^2/2 + g*y"
    done = run("simulate", PENDULUM, "--stop-time", "3", "--stabilization", "local", "--energy", energy)
    assert done.status == 0
    assert done.err == ""
    assert "Model        cartesian_pendulum" in done.out
    assert "0 s to 3 s, 501 samples" in done.out
    assert "LocalForm, DOP853" in done.out
    assert "Drift" in done.out
    assert "Energy       -5.3003656 at the start" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_picture_and_comparison(run: Run, tmp_path: Path) -> None:
    assert run("linearize", "four_bar.fmu", "-o", "lin.json").status == 0
    done = run("simulate", "four_bar.fmu", "--stop-time", "2", "--set", "phi=2.24", "--plot", "run.png", "--against",
               "lin.json", "--no-isolation")  # fmt: skip
    assert done.status == 0
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert "Against" in done.out
    row = next(line for line in done.out.splitlines() if line.startswith("phi "))
    assert 0 < float(row.split()[-2]) < 2  # percent


def test_inputs_from_a_file_and_outputs_by_choice(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("time,F\n0,0\n1,2\n")
    done = run("simulate", "fmilin.systems:cartesian_pendulum()", "--stop-time", "1", "--step", "0.5", "--input",
               "in.csv", "--outputs", "der(vx),F", "-o", "run.csv")  # fmt: skip
    assert done.status == 0, done.err
    found = columns(tmp_path / "run.csv")
    assert list(found) == ["time", "x", "y", "vx", "vy", "der(vx)", "F"]
    np.testing.assert_allclose(found["F"], [0.0, 1.0, 2.0])
    np.testing.assert_allclose(found["der(vx)"][0], 0.0, atol=1e-12)


def test_methods_and_stabilizations(run: Run, tmp_path: Path) -> None:
    reference = fl.simulate(fl.systems.cartesian_pendulum(angle=1.0), stop_time=1.0, step=1.0)
    for extra in (
        ["--method", "RK4", "--longest-step", "0.005"],
        ["--method", "RK4", "--step", "0.01"],
        ["--method", "Radau", "--tolerance", "1e-7"],
        ["--stabilization", "baumgarte"],
        ["--formulation", "none"],
        ["--energy", "vx^2/2 + vy^2/2 + g*y", "--keep-energy"],
    ):
        done = run("simulate", PENDULUM, "--stop-time", "1", "-o", "run.csv", *extra)
        assert done.status == 0, done.err
        np.testing.assert_allclose(columns(tmp_path / "run.csv")["angle"][-1], reference["angle"][-1], atol=1e-5)


def test_a_start_time_and_a_saved_point(run: Run, tmp_path: Path) -> None:
    assert run("trim", "four_bar.fmu", "-o", "there.toml", "--no-isolation").status == 0
    done = run("simulate", "four_bar.fmu", "--point", "there.toml", "--start-time", "2", "--stop-time", "3", "--step",
               "0.5", "-o", "run.csv", "--no-isolation")  # fmt: skip
    assert done.status == 0, done.err
    found = columns(tmp_path / "run.csv")
    np.testing.assert_array_equal(found["time"], [2.0, 2.5, 3.0])
    np.testing.assert_allclose(found["phi"], 2.234331019017586, atol=1e-8)


def test_as_a_person_does(run: Run, fmus: Path, tmp_path: Path) -> None:
    """In a child process, with nothing on standard error that is no terminal."""
    done = shell(["simulate", fmus / "four_bar.fmu", "--stop-time", "0.5", "-o", "run.csv"], tmp_path)
    assert (done.status, done.out, done.err) == (0, "", "")
    assert len(columns(tmp_path / "run.csv")["time"]) == 501


def test_a_model_that_ends_early_says_so(run: Run, zoo: object, tmp_path: Path) -> None:
    path = zoo("interrupts")  # type: ignore[operator]
    done = run("simulate", path, "--stop-time", "9", "-o", "run.csv", "--no-isolation", "--longest-step", "0.1")
    assert done.status == 0
    assert "requested the end of the simulation" in done.err
    done = run("simulate", path, "--stop-time", "9", "--no-isolation", "--longest-step", "0.1")
    assert "Remark" in done.out
    assert "(step)" in done.out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "Missing option '--stop-time'"),
        (["--stop-time", "soon"], 2, "valid float"),
        (["--stop-time", "nan"], 2, "finite"),
        (["--stop-time=-1"], 2, "cannot stop at -1 s"),
        (["--stop-time", "1", "--step", "0"], 2, "positive number of seconds"),
        (["--stop-time", "1", "-o", "run.txt"], 2, "has to end in .csv"),
        (["--stop-time", "1", "-o", "nowhere/run.csv"], 2, "no folder"),
        (["--stop-time", "1", "--plot", "run.pdf"], 2, "has to end in .png"),
        (["--stop-time", "1", "--input", "in.csv"], 2, "Cannot read the inputs"),
        (["--stop-time", "1", "--method", "RK4"], 2, "RK4 has no step size control"),
        (["--stop-time", "1", "--tolerance", "1e-20"], 2, "cannot be reached"),
        (["--stop-time", "1", "--energy", "nothing"], 2, "'nothing' is not a variable"),
        (["--stop-time", "1", "--keep-energy"], 2, "needs its value"),
        (["--stop-time", "1", "--keep-energy", "--stabilization", "local"], 2, "Leave one of them out"),
        (["--stop-time", "1", "--outputs", "nothing"], 2, "'nothing' is not"),
        (["--stop-time", "1", "--set", "nothing=1"], 2, "'nothing' is not"),
        (["--stop-time", "1", "--constraint", "nothing"], 4, "'nothing' is not"),
        (["--stop-time", "1", "--constraint", "x - 0.8414709848078965"], 4, "does not keep these constraints"),
        (["--stop-time", "1", "--constraint", "x^2 + y^2 - 2"], 4, "do not satisfy the constraints"),
        (["--stop-time", "1", "--against", "lin.mat"], 3, "lin.mat"),
        (["--stop-time", "1", "--no-constraints", "--constraint", "x"], 2, "exclude each other"),
    ],
)
def test_what_is_refused(run: Run, tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    old = tmp_path / "run.csv"
    old.write_text("old")
    done = run("simulate", PENDULUM, *arguments)
    assert done.status == status
    assert done.is_one_paragraph()
    assert words in done.err
    assert old.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.csv"]


def test_a_numerical_failure_leaves_the_old_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        'from fmilin.models import OdeModel\nrunaway = OdeModel("runaway", {"x": "x^2"}, start={"x": 1})\n'
    )
    (tmp_path / "run.csv").write_text("old")
    done = run("simulate", "model.py:runaway", "--stop-time", "2", "-o", "run.csv")
    assert done.status == 5
    assert done.is_one_paragraph()
    assert "cannot continue at t = " in done.err
    assert (tmp_path / "run.csv").read_text() == "old"


# -- linearize on the way ----------------------------------------------------------------------------


def test_linearize_where_the_motion_is_at_a_time(run: Run) -> None:
    done = run("linearize", "four_bar.fmu", "--set", "phi=2.0", "--simulate-to", "1.5", "--json")
    document = json.loads(done.out)
    native = four_bar()
    there = fl.simulate(native, fl.operating_point(native, {"phi": 2.0}), stop_time=1.5).point()
    expected = fl.linearize(native, there)
    assert document["point"]["time"] == 1.5
    np.testing.assert_allclose(document["A"], expected.A, atol=1e-7)
    np.testing.assert_allclose(document["f0"], expected.f0, atol=1e-7)


def test_snapshots_are_a_family_over_time(run: Run, tmp_path: Path) -> None:
    suffixes = ("nc", "mat", "npz", "json")
    files = [argument for suffix in (*suffixes, "m", "txt") for argument in ("-o", f"s.{suffix}")]
    done = run("linearize", "four_bar.fmu", "--set", "phi=2.0", "--snapshots", "0,0.5,1.5", *files,
               "--outputs", "w,der(w)", "--inputs", "torque")  # fmt: skip
    assert (done.status, done.out) == (0, "")
    written = {*(f"s.{suffix}" for suffix in (*suffixes, "m")), *(f"s_t{t}.txt" for t in ("0", "0.5", "1.5"))}
    assert {p.name for p in tmp_path.glob("s*")} == written
    native = four_bar()
    start = fl.operating_point(native, {"phi": 2.0})
    families = [fl.LinearFamily.load(tmp_path / f"s.{suffix}") for suffix in suffixes]
    for family in families:
        assert {name: values.tolist() for name, values in family.axes.items()} == {"time": [0.0, 0.5, 1.5]}
        assert family.outputs.names == ("w", "der(w)")
        for name in family.layout.shapes:
            np.testing.assert_array_equal(family.array(name), families[0].array(name), err_msg=name)
    for t, lin in zip((0.0, 0.5, 1.5), families[0], strict=True):
        assert lin.point.time == t
        point = fl.simulate(native, start, stop_time=t).point() if t else start
        np.testing.assert_allclose(lin.A, fl.linearize(native, point).A, atol=1e-7)


def test_snapshots_as_json_and_as_tables(run: Run) -> None:
    document = json.loads(run("linearize", PENDULUM, "--snapshots", "0.1,0.2", "--json").out)
    assert document["format"] == "fmilin-family/1"
    assert document["axes"] == {"time": [0.1, 0.2]}
    assert [point["time"] for point in document["points"]] == [0.1, 0.2]
    tables = run("linearize", PENDULUM, "--snapshots", "0.1,0.2", "--inputs", "").out
    assert "At t = 0.1 s" in tables
    assert "At t = 0.2 s" in tables


@pytest.mark.parametrize("text", ["", "a", "1,0.5", "1,,2", "nan", "1,1"])
def test_times_that_do_not_increase(run: Run, text: str) -> None:
    done = run("linearize", PENDULUM, "--snapshots", text)
    assert done.status == 2
    assert "not times that increase" in done.err
    assert done.is_one_paragraph()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--snapshots", "1", "--simulate-to", "2"], "--snapshots and --simulate-to exclude"),
        (["--snapshots", "1", "--lifted"], "so there is no base period to lift it over"),
        (["--snapshots=-1"], "none before the start"),
        (["--simulate-to=-1"], "Give a later time"),
        (["--snapshots", "1", "-o", "nowhere/a.mat"], "no folder"),
        (["--snapshots", "1", "-o", "nowhere/a.mo"], "no folder"),
        (["--snapshots", "1", "-o", "a.slx"], "suffix '.slx'"),
    ],
)
def test_what_does_not_go_together(run: Run, arguments: list[str], words: str) -> None:
    done = run("linearize", PENDULUM, *arguments)
    assert done.status == 2
    assert words in done.err
    assert done.is_one_paragraph()


def test_names_of_snapshot_files() -> None:
    assert name_file(Path("a/plant.mat"), 0.5) == Path("a/plant_t0.5.mat")
    assert snapshot_times("0.5, 1,2e1") == (0.5, 1.0, 20.0)
    assert snapshot_times(None) == ()


def test_inputs_over_time_lead_to_snapshots(run: Run, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("time,F\n0,0\n0.4,2\n")
    command = ("linearize", "fmilin.systems:cartesian_pendulum", "--snapshots", "0.2,0.4", "--input", "u.csv", "--json")
    found = json.loads(run(*command).out)
    assert [point["u0"] for point in found["points"]] == [pytest.approx([1.0]), pytest.approx([2.0])]
    assert found["points"][1]["x0"][0] > 0.01


def test_an_equation_is_a_constraint(run: Run) -> None:
    arguments = ("linearize", "pendulum.fmu", "--json", "--constraint")
    equation, difference = (json.loads(run(*arguments, text).out) for text in ("x^2 + y^2 = L^2", "x^2 + y^2 - L^2"))
    assert equation["A"] == difference["A"]
    assert len(equation["states"]) == 2


def test_positions_alone_name_the_coordinates_of_an_open_chain(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(
        'name = "chain"\ngravity = [0, -9.81, 0]\n[[body]]\nname = "arm"\nmass = 1.0\ncenter = [0.5, 0, 0]\n'
        '[[joint]]\nname = "swing"\ntype = "revolute"\nparent = "ground"\nchild = "arm"\n'
    )
    found = json.loads(run("linearize", "chain.toml", "--independent", "swing.q", "--json").out)
    assert found["states"] == ["swing.q", "swing.v"]
