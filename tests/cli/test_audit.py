"""``fmilin audit``: files and models, the document, and status 5 where a number disagrees."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.systems import four_bar
from tests.cli.conftest import Run

FOUR_BAR = "fmilin.systems:four_bar"


def save_linear_model(name: str, *, spoiled: bool = False) -> Path:
    model = four_bar()
    linear = fl.linearize(model, fl.trim(model))
    if spoiled:
        A = linear.A.copy()
        A[1, 0] *= 1.001
        linear = replace(linear, A=A)
    linear.save(name)
    return Path(name)


@pytest.mark.parametrize("suffix", ["json", "mat", "npz"])
def test_a_file_of_a_linear_model_is_audited(run: Run, suffix: str) -> None:
    path = save_linear_model(f"plant.{suffix}")
    done = run("audit", path, "--json")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["ok"] is True
    assert all(row["agrees"] for row in document["rows"])


def test_a_spoiled_file_ends_with_status_5(run: Run) -> None:
    path = save_linear_model("spoiled.json", spoiled=True)
    done = run("audit", path, "--against", FOUR_BAR, "--json")
    assert done.status == 5
    document = json.loads(done.out)
    assert any(row["quantity"].startswith("A[") and not row["agrees"] for row in document["rows"])
    assert "disagree with their second method" in done.err


@pytest.mark.parametrize("kind", ["linear model", "family"])
def test_a_file_whose_matrix_was_changed_by_hand_is_caught_by_its_eigenvalues(run: Run, kind: str) -> None:
    if kind == "family":
        fl.sweep(four_bar(), {"phi": [1.0, 1.2]}).save("plant.json")
    else:
        save_linear_model("plant.json")
    document = json.loads(Path("plant.json").read_text())
    part = document["points"][1] if kind == "family" else document
    part["A"][1][0] *= 1.001
    Path("plant.json").write_text(json.dumps(document))
    done = run("audit", "plant.json", "--json")
    assert done.status == 5
    wrong = [row["quantity"] for row in json.loads(done.out)["rows"] if not row["agrees"]]
    assert any("in the file" in quantity for quantity in wrong)


@pytest.mark.parametrize("suffix", ["npz", "mat", "json", "nc"])
def test_every_format_of_a_family_is_audited(run: Run, suffix: str) -> None:
    fl.sweep(four_bar(), {"phi": [1.0, 1.2], "w": [0.0, 0.1]}).save(f"family.{suffix}")
    done = run("audit", f"family.{suffix}", "--json")
    assert done.status == 0, done.out
    assert len(json.loads(done.out)["rows"]) > 5


def test_a_model_is_trimmed_linearized_and_audited(run: Run) -> None:
    done = run("audit", FOUR_BAR, "--trim")
    assert done.status == 0, done.err
    assert "quantities agree" in done.out
    assert "Newton" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_family_and_a_periodic_motion_are_audited(run: Run) -> None:
    fl.sweep(four_bar(), {"phi": [1.0, 1.2]}).save("family.json")
    done = run("audit", "family.json", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["kind"] == "family"
    model = fl.models.OdeModel("vdp", {"x": "v", "v": "(1 - x^2)*v - x"}, start={"x": 2.0})
    fl.linearize_periodic(model, fl.periodic_orbit(model)).save("motion.json")
    done = run("audit", "motion.json", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["kind"] == "periodic model"


def test_what_does_not_go_together_is_refused(run: Run) -> None:
    assert run("audit", FOUR_BAR, "--against", FOUR_BAR).status == 2
    assert run("audit", save_linear_model("plant.json"), "--trim").status == 2
