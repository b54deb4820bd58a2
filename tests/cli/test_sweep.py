"""``fmilin sweep``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.cli.sweep import read_axes
from fmilin.families.store import Store
from tests.cli.conftest import Run
from tests.file_contents import without_checksum

PENDULUM = "fmilin.systems:cartesian_pendulum(length=1.0)"
FOUR_BAR = "fmilin.systems:four_bar"


def test_json_on_standard_output(run: Run) -> None:
    done = run("sweep", PENDULUM, "--vary", "x=[0.2,0.5,1.5]", "--json")
    assert done.status == 0
    document = json.loads(done.out)
    assert document["format"] == "fmilin-family/1"
    assert [p["ok"] for p in document["points"]] == [True, True, False]
    assert done.err.startswith("fmilin: 1 of 3 points failed, the first at x = 1.5.")


def test_a_table_for_a_person(run: Run) -> None:
    done = run("sweep", PENDULUM, "--vary", "x=0:0.9:7")
    assert (done.status, done.err) == (0, "")
    assert "7 of 7 linear models, order 2, grid 7" in done.out
    assert "Coordinates  x, vx" in done.out
    assert "coalescence of modes 1 and 2" in done.out
    assert "and 36 more" in run("sweep", PENDULUM, "--vary", "x=0:0.5:60").out


def test_pairs_that_meet_are_counted_as_modes(run: Run, tmp_path: Path) -> None:
    """Of two oscillators the pairs are the eigenvalues 3 and 4, with their mirror images 1 and 2: modes 1 and 2."""
    rates = "{'a': 'va', 'b': 'vb', 'va': '-k*a', 'vb': '-4*b'}"
    file = tmp_path / "two.py"
    file.write_text(f"import fmilin as fl\nmodel = fl.models.OdeModel('two', {rates}, parameters={{'k': 1.0}})\n")
    done = run("sweep", f"{file}:model", "--vary", "k=3.5:4.5:11")
    assert "crossing of modes 1 and 2 between k = 3.9 and k = 4.1" in done.out


def test_status_5_when_none_is_good_or_one_is_bad_and_that_matters(run: Run) -> None:
    done = run("sweep", PENDULUM, "--vary", "x=[2,3]")
    assert done.status == 5
    assert "2 of 2 points failed" in done.err
    assert run("sweep", PENDULUM, "--vary", "x=[0.5,3]").status == 0
    strict = run("sweep", PENDULUM, "--vary", "x=[0.5,3]", "--strict", "-o", "family.npz")
    assert strict.status == 5
    assert fl.LinearFamily.load("family.npz").ok.tolist() == [True, False]


def test_reasons_that_differ_in_numbers_are_counted_together(run: Run) -> None:
    done = run("sweep", PENDULUM, "--vary", "x=2:3:4")
    assert done.status == 5
    assert done.is_one_paragraph()
    assert done.err.count("of them, such as: The constraints cannot be satisfied with x held") == 1


def test_no_good_point_and_a_format_that_needs_one(run: Run) -> None:
    done = run("sweep", PENDULUM, "--vary", "x=[2,3]", "-o", "all.m", "-o", "all.json")
    assert done.status == 5
    assert "2 of 2 points failed" in done.err
    assert [p.name for p in Path.cwd().iterdir()] == ["all.json"]
    assert not fl.LinearFamily.load("all.json").ok.any()


def test_what_a_format_cannot_hold_goes_into_another(run: Run) -> None:
    asked = ["sweep", PENDULUM, "--vary", "x=[-0.999999999,0,0.999999999]", "-o", "all.m"]
    done = run(*asked)
    assert done.status == 2
    assert done.is_one_paragraph()
    assert (
        "All 3 points are stored: continue with --resume, and give another output file (-o) after this one" in done.err
    )
    done = run(*asked, "-o", "all.nc", "--resume")
    assert done.status == 2
    assert "do not have the same states" in done.err
    assert [p.name for p in Path.cwd().iterdir()] == ["all.nc"]
    assert fl.LinearFamily.load("all.nc").switches


def test_trimmed_points_of_an_fmu_by_two_processes(run: Run) -> None:
    done = run(
        "sweep",
        "four_bar.fmu",
        "--vary",
        "phi=0.5:2.5:5",
        "--trim",
        "--free",
        "torque",
        "--jobs",
        2,
        "-o",
        "f.nc",
        "-o",
        "f.m",
    )
    assert done.status == 0, done.err
    family = fl.LinearFamily.load("f.nc")
    phi = family.axes["phi"]
    torque = 19.62 * np.cos(phi) - 25 * (2 * np.cos(phi / 2) - np.sqrt(2)) * np.sin(phi / 2)
    np.testing.assert_allclose(family.u0[:, 0], torque, rtol=1e-8, atol=1e-8)
    assert sorted(p.name for p in Path.cwd().iterdir()) == ["f.m", "f.nc"]


def test_a_dependent_state_that_is_fixed_at_the_same_time(run: Run) -> None:
    done = run("sweep", FOUR_BAR, "--vary", "phi=[1,1.2]", "--trim", "--free", "torque", "--fix", "x0=0.3")
    assert done.status == 5
    assert "2 of 2 points failed" in done.err
    assert done.err.count("\n") == 1
    good = run(
        "sweep", FOUR_BAR, "--vary", "phi=[1,1.2]", "--trim", "--free", "torque", "--fix", "c=0.3", "-o", "f.npz"
    )
    assert good.status == 0
    assert fl.LinearFamily.load("f.npz")[0].point.parameters["c"] == 0.3


def test_lists_together_with_values_of_all_points(run: Run) -> None:
    done = run(
        "sweep", FOUR_BAR, "--vary", "phi=[1,2]", "--vary", "torque=[0,3]", "--zip", "--set", "c=0.5", "-o", "f.json"
    )
    assert done.status == 0, done.err
    family = fl.LinearFamily.load("f.json")
    assert family.shape == (2,)
    assert family[1].point.inputs["torque"] == 3.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--vary", "x"], "is not of the form NAME=FROM:TO:COUNT"),
        (["--vary", "x=1:0:5"], "the range runs backwards. Write 0:1:5"),
        (["--vary", "x=0:1:0"], "a range has 1 to"),
        (["--vary", "x=0:1:1"], "do not form an axis"),
        (["--vary", "x=0:1"], "a range is FROM:TO:COUNT"),
        (["--vary", "x=0::3"], "a number is missing"),
        (["--vary", "x=[]"], "the list is empty"),
        (["--vary", "x=[1,nan]"], "must be finite"),
        (["--vary", "x=[1,a]"], "fmilin: --vary 'x=[1,a]': 'a' is not a number"),
        (["--vary", "x=[1]", "--vary", "x=[2]"], "varies 'x' twice"),
        (["--vary", "xx=[1]"], "'xx' is not a state, an input or a parameter"),
        (["--vary", "x=[0.1]", "--free", "F"], "add --trim"),
        (["--vary", "x=[0.1]", "--trim", "--fix", "x=2"], "varied and fixed"),
        (["--vary", "x=[0.1]", "--set", "x=2"], "varied and set"),
        (["--vary", "x=[0.1]", "--trim", "--free", "x"], "varied and free"),
        (["--vary", "x=[0.1]", "--trim", "--free", "xx"], "'xx' is not a state, an input or a parameter"),
        (["--vary", "x=[0.1]", "--scheduler", "nonsense"], "No Dask scheduler answers at 'nonsense'"),
        (["--vary", "x=[0.1]", "--jobs", "0"], "0 is not possible"),
        (["--vary", "x=[0.1]", "-o", "nowhere/a.nc"], "no folder"),
        (["--vary", "x=[0.1]", "--trim", "--guess", "x=2"], "no guess"),
        (["--vary", "x=[0.1]", "--trim", "--guess", "y=2", "--guess", "y=1"], "one guess"),
        (["--vary", "x=[0.1]", "--resume"], "--resume requires --output: add --output"),
        (["--vary", "x=[0.1]", "-o", "a.fmu"], "as a family: it has the suffix '.fmu'"),
        (["--vary", "x=[0.1]", "-o", "a.npz", "-o", "a.npz"], "the same file twice"),
        (["--vary", "x=[0.1]", "--independent", "z"], "'z' is not a state"),
    ],
)
def test_bad_input_is_one_paragraph_and_leaves_nothing(run: Run, arguments: list[str], text: str) -> None:
    done = run("sweep", PENDULUM, *arguments)
    assert done.status == 2
    assert text in done.err
    assert done.is_one_paragraph()
    assert not list(Path.cwd().iterdir())


def test_a_parameter_of_an_fmu_that_is_none(run: Run) -> None:
    done = run("sweep", "four_bar.fmu", "--vary", "phii=[0,1]")
    assert done.status == 2
    assert "phi" in done.err


def test_a_killed_sweep_goes_on(run: Run, tmp_path: Path) -> None:
    asked = ["sweep", PENDULUM, "--vary", "x=-0.9:0.9:151", "--independent", "x,vx", "--derivatives", "differences"]
    asked += ["-o", "family.nc"]
    process = subprocess.Popen([sys.executable, "-m", "fmilin", *asked], cwd=tmp_path, stderr=subprocess.DEVNULL)
    journal = tmp_path / "family.nc.sweep" / "points.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.is_file() and journal.stat().st_size > 3000):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = sum(len(json.loads(line).get("points", ())) for line in journal.read_text().splitlines()[:-1])
    assert done > 2
    assert not (tmp_path / "family.nc").exists()
    refused = run(*asked)
    assert (refused.status, "Continue it with --resume" in refused.err) == (2, True)
    other = run(*asked, "--vary", "F=[0,1]", "--resume")
    assert (other.status, "differs in its axes" in other.err) == (2, True)
    assert run(*asked, "--resume").status == 0
    assert [p.name for p in tmp_path.iterdir()] == ["family.nc"]
    family = fl.LinearFamily.load(tmp_path / "family.nc")
    assert family.ok.all()
    x = family.axes["x"]
    np.testing.assert_allclose(family.A[:, 1, 0], -9.81 * (1 - 2 * x**2) / np.sqrt(1 - x**2), atol=1e-6)


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the memory of a child is asked by wait4()")
def test_many_points_take_little_memory(tmp_path: Path) -> None:
    """Rows lie in a file, and what was read of them is let go: 20,000 points of 1 kB each."""
    script = "import sys; from fmilin.cli.main import main; main(sys.argv[1:])"
    peaks = []
    for count in (100, 20_000):
        asked = ["sweep", "fmilin.systems:furuta_pendulum", "--vary", f"pendulum.q=0.1:3:{count}", "-o", f"{count}.nc"]
        child = subprocess.Popen([sys.executable, "-c", script, *asked], cwd=tmp_path, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        peaks.append(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    assert (tmp_path / "20000.nc").stat().st_size > 20e6
    assert peaks[1] - peaks[0] < 25e6


def test_what_is_kept_is_not_computed_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["sweep", PENDULUM, "--vary", "x=[0.1,0.2,1.5,0.4,0.5]", "-o", "family.npz"]
    add_all = Store.add_all

    def interrupted(self: Store, outcomes: object) -> None:
        add_all(self, outcomes)  # type: ignore[arg-type]
        if self.done.sum() == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "add_all", interrupted)
        done = run(*asked)
    assert done.status == 130
    assert "3 of 5 points of 'family.npz' are stored: continue with --resume" in done.err
    added: list[int] = []

    def noted(self: Store, outcomes: object) -> None:
        given = list(outcomes)  # type: ignore[call-overload]
        added.extend(o.number for o in given)
        add_all(self, given)

    monkeypatch.setattr(Store, "add_all", noted)
    with Path("family.npz.sweep/points.jsonl").open("a") as file:
        file.write('{"points": [[3')  # a line that was cut off
    assert run(*asked, "--resume").status == 0
    assert added == [3, 4]
    family = fl.LinearFamily.load("family.npz")
    whole = fl.sweep(PENDULUM, {"x": [0.1, 0.2, 1.5, 0.4, 0.5]})
    np.testing.assert_allclose(family.A, whole.A, rtol=1e-9)
    assert family.reasons.tolist() == whole.reasons.tolist()
    assert [p.name for p in Path.cwd().iterdir()] == ["family.npz"]


def test_a_full_disk_keeps_what_is_done(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write, count = os.write, [0]

    def full(file: int, data: memoryview) -> int:
        is_row = len(data) > 64 and bytes(data[:1]) != b"{"  # the journal has lines of JSON
        count[0] += is_row
        if is_row and count[0] > 1:  # rows of several points are written at once, those of the first point alone
            raise OSError(28, "No space left on device")
        return write(file, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        done = run("sweep", PENDULUM, "--vary", "x=[0.1,0.2,0.3,0.4]", "-o", "family.nc")
    assert done.status == 2
    assert done.is_one_paragraph()
    assert "No space left on device. 1 of 4 points are stored" in done.err
    assert run("sweep", PENDULUM, "--vary", "x=[0.1,0.2,0.3,0.4]", "-o", "family.nc", "--resume").status == 0
    assert fl.LinearFamily.load("family.nc").ok.all()


def test_ranges() -> None:
    assert read_axes(["`a b`=0:1:3", "q[1]=[1, 2.5]"]) == {"a b": [0.0, 0.5, 1.0], "q[1]": [1.0, 2.5]}
    assert read_axes(["a=0.1:0.3:3"])["a"][-1] == 0.3
    assert read_axes(["a=2:2:1"]) == {"a": [2.0]}


def test_parameters_that_cannot_be_changed(run: Run) -> None:
    done = run("sweep", "fmilin.systems:stewart_platform", "--vary", "table.stiffness[4]=[1,2]")
    assert done.status == 5
    assert "2 of 2 points failed" in done.err
    assert "cannot have a stiffness" in done.err
    assert done.is_one_paragraph()


def test_a_family_file_of_another_version(run: Run) -> None:
    assert run("sweep", PENDULUM, "--vary", "x=[0.1,0.2]", "-o", "f.json", "-o", "f.mat", "-o", "f.npz").status == 0
    content = without_checksum(Path("f.json").read_bytes(), ".json")
    Path("f.json").write_bytes(content.replace(b"fmilin-family/1", b"fmilin-family/7"))
    done = run("convert", "f.json", "-o", "new.nc")
    assert (done.status, "'fmilin-family/7' instead of 'fmilin-family/1'" in done.err) == (3, True)
    done = run("convert", "f.mat", "f.npz", "-o", "new.nc")
    assert (done.status, "'f.mat' holds a family already: convert it alone" in done.err) == (2, True)
    assert sorted(p.name for p in Path.cwd().iterdir()) == ["f.json", "f.mat", "f.npz"]


@pytest.mark.parametrize("suffix", ["nc", "mat", "npz", "json"])
def test_no_room_for_the_file_at_the_end(run: Run, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All points are done; then the family does not fit on the disk."""
    from fmilin.support import files

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    asked = ["sweep", PENDULUM, "--vary", "x=0.1:0.9:5", "-o", f"family.{suffix}"]
    with monkeypatch.context() as patched:
        patched.setattr(files, "_fill", full)
        patched.setattr("fmilin.export.netcdf_file._write", full)
        done = run(*asked)
    assert done.status == 2
    assert "No space left on device" in done.err
    assert "All 5 points are stored: continue with --resume" in done.err
    assert [p.name for p in Path.cwd().iterdir()] == [f"family.{suffix}.sweep"]
    assert run(*asked, "--resume").status == 0
    assert [p.name for p in Path.cwd().iterdir()] == [f"family.{suffix}"]
