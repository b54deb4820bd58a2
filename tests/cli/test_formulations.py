"""``fmilin linearize --formulation``: spectra with their spurious eigenvalues, comparisons, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from tests.cli.conftest import Run

FOUR_BAR = "fmilin.systems:four_bar"
SINGULAR = "fmilin.systems:four_bar(singular=True)"

BAD_MODELS = """
from fmilin.models import LagrangeModel

def massless():
    return LagrangeModel("massless", {"x": "vx", "y": "vy"}, [[1, 0], [0, 0]], ["-x", "-y"])

def negative():
    return LagrangeModel("negative", {"x": "vx", "y": "vy"}, [[1, 0], [0, -1]], ["-x", "-y"])

def asymmetric():
    return LagrangeModel("asymmetric", {"x": "vx", "y": "vy"}, [[1, 0.3], [0, 2]], ["-x", "-y"])

def pushed():
    return LagrangeModel("pushed", {"x": "vx", "y": "vy"}, [[1, 0], [0, 1]], [2, "-y"], constraints=["y"])
"""


@pytest.mark.parametrize(
    ("formulation", "said"),
    [
        ("mcs", "2 true, no spurious ones"),
        ("rcs", "2 true, 12 spurious (infinite)"),
        ("ucs", "2 true, 8 spurious (moduli 10 to 10 1/s)"),
    ],
)
def test_one_formulation_prints_the_linear_model_and_its_spurious_eigenvalues(
    run: Run, formulation: str, said: str
) -> None:
    done = run("linearize", FOUR_BAR, "--formulation", formulation)
    assert (done.status, done.err) == (0, "")
    assert said in done.out
    assert "2.14767" in done.out
    assert f"formulation {formulation}" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_all_three_in_one_table(run: Run) -> None:
    done = run("linearize", FOUR_BAR, "--formulation", "all", "--penalty", "1e6,1,10")
    assert (done.status, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    sizes = {row[0]: row[1:4] for row in rows if row and row[0] in ("MCS", "RCS", "UCS") and row[1].isdigit()}
    assert sizes == {"MCS": ["2", "2", "0"], "RCS": ["14", "2", "12"], "UCS": ["10", "2", "8"]}
    (pair,) = [row for row in rows if row and row[0] == "±2.1476766"]
    assert float(pair[2]) < 1e-12  # RCS
    assert 1e-8 < float(pair[3]) < 3e-6  # UCS
    assert max(map(len, done.out.splitlines())) <= 80


def test_all_three_as_json(run: Run) -> None:
    done = run("linearize", FOUR_BAR, "--formulation", "all", "--json", "--spurious", "zero", "--basis", "qr")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    assert document["format"] == "fmilin-spectra/1"
    mcs, rcs, ucs = document["spectra"]
    assert mcs["method"] == "QR decomposition"
    assert [len(s["eigenvalues"]) for s in (mcs, rcs, ucs)] == [2, 14, 10]
    for s in (mcs, rcs, ucs):
        true = [z for z, label in zip(s["eigenvalues"], s["labels"], strict=True) if label == "true"]
        np.testing.assert_allclose([abs(z[1]) for z in true], 2.147676638502278, rtol=2e-6)
    assert max(abs(complex(*z)) for z in rcs["eigenvalues"][:12]) < 1e-3
    infinite = json.loads(run("linearize", FOUR_BAR, "--formulation", "all", "--json").out)["spectra"][1]
    assert infinite["eigenvalues"].count(None) + sum(abs(complex(*z)) > 1e3 for z in infinite["eigenvalues"] if z) == 12


def test_a_linear_model_of_a_formulation_is_saved_and_read_back(run: Run, tmp_path: Path) -> None:
    outputs = "phi,der(w),lambda[1]"
    done = run(
        "linearize", FOUR_BAR, "--formulation", "rcs", "--outputs", outputs, "-o", "plant.mat", "-o", "plant.json"
    )
    assert (done.status, done.out) == (0, "")
    for name in ("plant.mat", "plant.json"):
        lin = fl.LinearModel.load(tmp_path / name)
        assert lin.method.derivatives == "exact, formulation rcs (QZ, spurious eigenvalues infinite)"
        assert lin.outputs.names == ("phi", "der(w)", "lambda[1]")
        np.testing.assert_allclose(np.abs(lin.eigenvalues()), 2.147676638502278, rtol=1e-12)


def test_in_motion_the_general_equations_are_used_and_it_is_said(run: Run) -> None:
    done = run("linearize", FOUR_BAR, "--formulation", "all", "--set", "phi=2.0", "--set", "w=0.7")
    assert done.status == 0, done.err
    text = " ".join(done.out.split())
    assert "The point is not an equilibrium" in text
    assert "The static equations of the formulation are not valid here; the general ones were used" in text


def test_the_equilibrium_is_found_with_its_multipliers(run: Run) -> None:
    done = run("linearize", FOUR_BAR, "--formulation", "rcs", "--trim", "--set", "phi=2.0")
    assert done.status == 0, done.err
    assert "±2.1476766 i" in done.out
    assert done.err.startswith("Equilibrium found; multipliers: -12.4521, 2.88653, 7.6693, ")
    done = run("linearize", SINGULAR, "--formulation", "rcs", "--trim")
    assert "multipliers (of least norm: 3 constraints are independent): 9.81, 9.81, " in done.err


def test_singular_configurations(run: Run) -> None:
    done = run("linearize", SINGULAR, "--formulation", "mcs")
    assert done.status == 5
    assert done.is_one_paragraph()
    assert "The formulations rcs and ucs need no choice of velocities" in done.err
    done = run("linearize", SINGULAR, "--formulation", "mcs", "--at-singularity")
    assert (done.status, done.err) == (0, "")
    assert "±3.4310348 i" in done.out
    assert "±4.4294469 i" in done.out
    done = run("linearize", SINGULAR, "--formulation", "all")
    assert done.status == 0
    assert done.err.startswith("Without mcs: The point is a singular configuration")
    assert "±3.4310348 i" in done.out


def test_a_swamping_penalty_is_warned_of(run: Run) -> None:
    done = run("linearize", FOUR_BAR, "--formulation", "ucs", "--penalty", "1e12,1,10")
    assert done.status == 0
    assert "The penalty alpha = 1e+12 exceeds double precision" in done.out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--formulation", "abc"], 2, "'abc' is not one of 'mcs', 'rcs', 'ucs', 'all'"),
        (["--basis", "svd"], 2, "--basis requires --formulation mcs (or all)"),
        (["--formulation", "rcs", "--basis", "svd"], 2, "--basis requires --formulation mcs (or all)"),
        (["--formulation", "mcs", "--spurious", "zero"], 2, "--spurious requires --formulation rcs (or all)"),
        (["--formulation", "mcs", "--penalty", "1,1,1"], 2, "--penalty requires --formulation ucs (or all)"),
        (["--formulation", "ucs", "--penalty", "1e6"], 2, "is not ALPHA,XI,OMEGA: three numbers"),
        (["--formulation", "ucs", "--penalty", "0,1,10"], 2, "The penalty's alpha must be positive"),
        (["--formulation", "ucs", "--penalty", "1e6,1,nan"], 2, "The penalty's omega must be positive"),
        (["--formulation", "all", "-o", "x.mat"], 2, "makes no linear model. Choose mcs, rcs or ucs for --output"),
        (["--formulation", "all", "--snapshots", "1,2"], 2, "Choose mcs, rcs or ucs for --output, --snapshots"),
        (["--formulation", "rcs", "--derivatives", "differences"], 2, "exclude each other"),
        (["--formulation", "rcs", "--one-sided", "left"], 2, "exclude each other"),
        (["--formulation", "mcs", "--coordinates", "tangent"], 2, "coordinates of its own"),
        (["--formulation", "rcs", "--no-constraints"], 2, "--formulation and --no-constraints exclude each other"),
        (["--formulation", "rcs", "--independent", "ph"], 2, "'ph' is not a position of the model"),
        (["--formulation", "rcs", "--independent", "x0,y0"], 2, "leave 1. For example: "),
        (["--formulation", "all", "--reduce", "1"], 2, "--formulation all prints a comparison"),
    ],
)
def test_what_does_not_go_together(run: Run, arguments: list[str], status: int, said: str) -> None:
    done = run("linearize", FOUR_BAR, *arguments)
    assert done.status == status
    assert done.is_one_paragraph(), done
    assert said in done.err


@pytest.mark.parametrize(
    ("name", "arguments", "status", "said"),
    [
        ("massless", [], 5, "the motion of y has the inertia 0 "),
        ("negative", [], 5, "the motion of y has the inertia -1 "),
        ("asymmetric", [], 3, "the mass matrix is not symmetric: entries [1, 0] and [0, 1] differ"),
        ("pushed", ["--trim"], 5, "'x' still accelerates at 2"),
    ],
)
@pytest.mark.parametrize("formulation", ["mcs", "rcs", "ucs", "all"])
def test_bad_models(run: Run, name: str, arguments: list[str], status: int, said: str, formulation: str) -> None:
    Path("bad.py").write_text(BAD_MODELS)
    done = run("linearize", f"bad.py:{name}", "--formulation", formulation, *arguments)
    assert done.status == status
    assert done.is_one_paragraph(), done
    assert said in done.err


def test_other_forms_of_equations(run: Run) -> None:
    for source in ("fmilin.systems:rolling_disk", "four_bar.fmu"):
        done = run("linearize", source, "--formulation", "rcs")
        assert done.status == 2
        assert "has no accessible mass matrix and constraints" in done.err
