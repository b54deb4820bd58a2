"""``fmilin spectrum``: eigenvalues around a frequency, as a table and as JSON, with a picture, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fmilin.systems.four_bar_linkage import equilibrium_angle
from tests.command_line import main
from tests.formulations import hand_made
from tests.systems.test_four_bar import closed_form

PENDULUM = "fmilin.systems:flexible_double_pendulum(elements={})"


def test_a_table_of_thousands_of_coordinates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spectrum", "fmilin.systems:four_bar_form(loops=3000)", "--count", "1"]) == 0
    shown = capsys.readouterr().out
    assert "n = 6,003 coordinates, m = 6,002 constraints" in shown
    A, _ = closed_form(3000, 0.0, equilibrium_angle(3000, "upper"), 0.0)
    assert f"±{np.sqrt(-A[1, 0]):.8g} i" in shown
    assert "true" in shown
    assert "No warnings." in shown


@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
def test_json_has_the_published_frequencies(formulation: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spectrum", PENDULUM.format(1), "--formulation", formulation, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    values = np.array(found["eigenvalues"])
    published = [1.33593155834248, 3.531082271144686, 9.705195842688476, 25.30224732821966]
    np.testing.assert_allclose(np.sort(values[values[:, 1] > 0, 1]), published, rtol=1e-11)
    assert found["labels"] == ["true"] * 8
    assert found["sizes"]["n"] == 18


def test_spurious_eigenvalues_are_labelled_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--around", "9", "--count", "5", "--formulation", "ucs", "--penalty", "1e7,1,10"]
    assert main(["spectrum", PENDULUM.format(5), *arguments]) == 0
    shown = capsys.readouterr().out
    assert "spurious" in shown
    assert "the penalty's own" in " ".join(shown.replace("\n", " ").split())


def test_a_point_in_motion_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spectrum", "fmilin.systems:four_bar", "--set", "phi=2", "--set", "w=0.5", "--count", "1"]) == 0
    assert "The point is not an equilibrium" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--formulation", "mcs", "--at-singularity"]])
def test_a_singular_configuration_says_so(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spectrum", "fmilin.systems:four_bar(singular=True)", "--json", *more]) == 0
    found = json.loads(capsys.readouterr().out)
    values = sorted(im for _, im in found["eigenvalues"] if im > 0)
    np.testing.assert_allclose(np.square(values), [1.2 * 9.81, 2 * 9.81], rtol=1e-12)
    assert found["warnings"][0]["kind"] == "singular"


def test_minimal_coordinates_refuse_a_singular_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spectrum", "fmilin.systems:four_bar(loops=3,singular=True)", "--formulation", "mcs"]) == 5
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "The point is a singular configuration: 5 constraints are independent here, 8 near it" in captured.err
    assert "--at-singularity" in captured.err
    assert "rcs and ucs" in captured.err
    assert captured.err.count("\n") == 1


def test_constraints_written_twice_are_no_singular_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    source = f"{hand_made.__file__}:springs_in_line(redundant=True)"
    assert main(["spectrum", source, "--formulation", "mcs", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(np.abs(np.array(found["eigenvalues"])[:, 1]), np.sqrt(8 / 3), rtol=1e-12)


def test_a_picture_of_what_is_not_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spectrum", PENDULUM.format(3), "--sparsity", str(tmp_path / "mass.png")]) == 0
    assert (tmp_path / "mass.png").read_bytes().startswith(b"\x89PNG")
    assert "flexible_double_pendulum_3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["nothing.fmu"], 2, "'nothing.fmu' does not give its equations of motion"),
        (["fmilin.systems:rolling_disk"], 2, "has no accessible mass matrix"),
        (["fmilin.systems:four_bar_form", "--set", "phi=1"], 2, "--set cannot change it"),
        (["fmilin.systems:four_bar_form", "--independent", "x7"], 2, "'x7' is not a coordinate of the model"),
        (["fmilin.systems:four_bar_form", "--independent", "x0,phi", "--formulation", "mcs"], 5, "couples them"),
        (["fmilin.systems:four_bar_form", "--count", "0"], 2, "The number of eigenvalues must be 1 or more"),
        (["fmilin.systems:four_bar_form", "--around", "-1"], 2, "0 rad/s or more"),
        (["fmilin.systems:four_bar_form", "--penalty", "1,1,1"], 2, "--penalty requires --formulation ucs"),
        (["fmilin.systems:four_bar_form", "--sparsity", "mass.pdf"], 2, "has to end in .png"),
        ([PENDULUM.format(400), "--set", "link1.theta=0"], 2, "would be a full matrix of 4824 states"),
        ([PENDULUM.format(0)], 2, "1 finite element or more"),
    ],
)
def test_refusals(arguments: list[str], status: int, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spectrum", *arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
