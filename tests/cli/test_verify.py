"""``fmilin verify``, and ``--point`` and ``--trim`` of ``fmilin linearize``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fmilin import LinearModel
from tests.cli.conftest import Run, shell

FOUR_BAR = "fmilin.systems:four_bar"
PENDULUM = "fmilin.systems:cartesian_pendulum"
ROD = ("--constraint", "x^2 + y^2 - L^2", "--no-isolation")


def linear_file(name: str = "pendulum.json", **changes: np.ndarray) -> Path:
    """A saved linear model of the pendulum, with some matrices replaced."""
    from dataclasses import replace

    import fmilin as fl
    from fmilin.systems import cartesian_pendulum

    linear = fl.linearize(cartesian_pendulum())
    replace(linear, **changes).save(name)  # type: ignore[arg-type]
    return Path(name)


def test_a_right_linear_model_passes(run: Run) -> None:
    done = run("verify", PENDULUM, linear_file(), "--horizon", 1, "--plot", "picture.png")
    assert done.status == 0, done.err
    assert done.err == "picture.png: both responses of each channel, and the range of validity of each\n"
    assert "right to first order in all 7 channels" in done.out
    assert "Failed" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert Path("picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("suffix", ["mat", "npz"])
def test_every_format_can_be_verified(run: Run, suffix: str) -> None:
    done = run("verify", PENDULUM, linear_file(f"linear.{suffix}"), "--horizon", 0.3, "--json")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["passed"] is True
    assert document["horizon"] == 0.3


def test_a_wrong_linear_model_ends_with_status_5_after_its_table(run: Run) -> None:
    done = run("verify", PENDULUM, linear_file(A=np.array([[0.0, 1.0], [9.81, 0.0]])), "--horizon", 1)
    assert done.status == 5
    assert "WRONG in 6 of 7 channels" in done.out
    assert "FAIL" in done.out
    assert done.err.startswith("fmilin: The linear model is wrong to first order in 6 of 7 channels: offset of x; ")
    assert done.err.count("\n") == 1
    as_json = run("verify", PENDULUM, "pendulum.json", "--horizon", 1, "--json")
    assert as_json.status == 5
    assert json.loads(as_json.out)["passed"] is False


def test_an_fmu_against_its_linear_model(run: Run, fmus: Path, tmp_path: Path) -> None:
    """Its process included."""
    made = run("linearize", "four_bar.fmu", "-o", "four_bar.mat")
    assert made.status == 0, made.err
    done = shell(["verify", fmus / "four_bar.fmu", "four_bar.mat", "--horizon", "0.5", "--plot", "p.png"], tmp_path)
    assert done.status == 0, done.err
    assert "right to first order" in done.out
    assert (tmp_path / "p.png").stat().st_size > 20_000


def test_constraints_and_parameters_of_the_linear_model_are_needed_again(run: Run) -> None:
    assert run("linearize", "pendulum.fmu", *ROD, "--set", "L=3", "--set", "y=-3", "-o", "long.json").status == 0
    assert LinearModel.load("long.json").point.parameters == {"L": 3.0}
    done = run("verify", "pendulum.fmu", "long.json", *ROD, "--horizon", 0.5)
    assert done.status == 0, done.err  # the parameter comes from the file
    forgotten = run("verify", "pendulum.fmu", "long.json", "--no-isolation")
    assert forgotten.status == 2
    assert "Declare them again" in forgotten.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([PENDULUM, "none.json"], 3, "Cannot read the linear model 'none.json'"),
        ([PENDULUM, "none.txt"], 2, "none.txt"),
        ([FOUR_BAR, "pendulum.json"], 2, "not a linear model of 'four_bar': 'x' is not a state"),
        (["fmilin.systems:cartesian_pendulum(length=1.2)", "pendulum.json"], 4, "not on the manifold"),
        ([PENDULUM, "pendulum.json", "--plot", "picture.pdf"], 2, "has to end in .png"),
        ([PENDULUM, "pendulum.json", "--plot", "nowhere/a.png"], 2, "there is no folder"),
        ([PENDULUM, "pendulum.json", "--horizon", "-1"], 2, "The horizon must be a positive number"),
        ([PENDULUM, "pendulum.json", "--horizon", "nan"], 2, "must be finite"),
        ([PENDULUM, "pendulum.json", "--no-constraints", "--constraint", "x"], 2, "exclude each other"),
        ([PENDULUM, "pendulum.json", "--no-constraints"], 2, "Declare them again"),
    ],
)
def test_mistakes_are_one_paragraph_each(run: Run, arguments: list[str], status: int, message: str) -> None:
    linear_file()
    done = run("verify", *arguments)
    assert done.status == status
    assert done.is_one_paragraph(), done
    assert message in done.err


def test_linearize_finds_the_equilibrium_first(run: Run) -> None:
    done = run("linearize", FOUR_BAR, "--set", "phi=2.0", "--trim", "-o", "four_bar.json")
    assert done.status == 0, done.err
    linear = LinearModel.load("four_bar.json")
    assert linear.eigenvalues()[1].imag == pytest.approx(2.147676638502278, abs=1e-11)
    assert not [w for w in linear.warnings if w.kind == "off-equilibrium"]
    held = run("linearize", PENDULUM, "--set", "F=9.81", "--trim", "--json")
    point = json.loads(held.out)["point"]
    assert point["inputs"] == {"F": 9.81}
    assert point["states"]["x"] == pytest.approx(np.sqrt(0.5))


def test_linearize_at_a_saved_point(run: Run) -> None:
    assert run("trim", PENDULUM, "--fix", "x=0.5", "--free", "F", "--fix", "L=2", "-o", "point.toml").status == 0
    done = run("linearize", PENDULUM, "--point", "point.toml", "--json")
    document = json.loads(done.out)
    assert document["point"]["states"]["x"] == 0.5
    assert document["point"]["parameters"] == {"L": 2.0}
    assert document["point"]["inputs"]["F"] == pytest.approx(9.81 * 0.5 / np.sqrt(3.75))
    moved = json.loads(run("linearize", PENDULUM, "--point", "point.toml", "--set", "F=0", "--json").out)
    assert moved["point"]["inputs"]["F"] == 0.0
    assert max(map(abs, moved["f0"])) > 0.1
    trimmed = json.loads(run("linearize", PENDULUM, "--point", "point.toml", "--set", "F=0", "--trim", "--json").out)
    assert trimmed["point"]["states"]["y"] == pytest.approx(-2.0)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--point", "none.toml"], 3, "Cannot read the point"),
        (["--point", "point.csv"], 2, "must end with .toml or .json"),
        (["--point", "point.toml", "--set", "x=0.1"], 2, "--set x contradicts --point"),
        (["--point", "other.toml"], 2, "'phi' is not a state of the model, as the saved point says"),
        (["--point", "off.toml"], 4, "not on the manifold"),
    ],
)
def test_points_that_do_not_fit(run: Run, arguments: list[str], status: int, message: str) -> None:
    head = 'format = "fmilin-point/1"\ntime = 0.0\n[states]\n'
    Path("point.toml").write_text(head + "x = 0.0\ny = -1.0\n", encoding="utf-8")
    Path("off.toml").write_text(head + "x = 0.1\ny = -1.0\n", encoding="utf-8")
    Path("other.toml").write_text(head + "phi = 1.0\n", encoding="utf-8")
    done = run("linearize", PENDULUM, *arguments)
    assert done.status == status
    assert done.is_one_paragraph(), done
    assert message in done.err


def test_trim_without_a_solution_ends_with_status_5(run: Run) -> None:
    text = 'from fmilin.models.ode import OdeModel\nmodel = OdeModel("runaway", {"x": "v", "v": "1 + x^2"})\n'
    Path("runaway.py").write_text(text, encoding="utf-8")
    for command in (["linearize", "runaway.py:model", "--trim"], ["trim", "runaway.py:model"]):
        done = run(*command)
        assert done.status == 5
        assert done.is_one_paragraph(), done
        assert "no equilibrium was found" in done.err
        assert "The smallest residual leaves der(v) = 1" in done.err
