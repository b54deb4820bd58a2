"""``fmilin linearize`` on FMUs that can only be stepped."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from tests.cli.conftest import Run
from tests.fmus.stepped.make import Kind, build

MOTOR = np.array([[-2.0, -0.2, 0.0], [5.0, -5.0, 0.0], [0.0, 1.0, 0.0]])
"""A of the motor, in i, w and angle."""


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("motor", tmp_path_factory.mktemp("hidden"), Kind(hidden=True))


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("motor", tmp_path_factory.mktemp("declared"), Kind())


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("controller", tmp_path_factory.mktemp("controller"), Kind())


def test_it_just_works_and_says_what_it_did(run: Run, hidden: Path) -> None:
    done = run("linearize", hidden)
    assert done.status == 0, done.err
    assert "3 independent states out of 3" in done.out
    assert "-4.618034" in done.out
    assert "identified from responses to pulses" in done.out
    words = " ".join(done.out.split())
    assert "Held-out responses to random inputs" in words
    assert "The order 3 was chosen from the singular values" in words
    assert "No warnings." in done.out


def test_declared_states_have_their_names_and_start_where_they_are_set(run: Run, declared: Path) -> None:
    done = run("linearize", declared, "--set", "i=2", "--set", "V=1.5", "--json")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["states"] == ["i", "w", "angle"]
    assert document["point"]["states"]["i"] == 2.0
    assert document["point"]["inputs"]["V"] == 1.5
    np.testing.assert_allclose(document["A"], MOTOR, atol=1e-9)


@pytest.mark.parametrize("method", ["direct", "step", "response"])
def test_every_method_can_be_asked_for(run: Run, declared: Path, method: str) -> None:
    done = run("linearize", declared, "--method", method, "--independent", "i,w,angle", "--json")
    assert done.status == 0, done.err
    np.testing.assert_allclose(json.loads(done.out)["A"], MOTOR, atol=1e-7)


def test_a_sampled_controller_is_refused_and_lifted_on_request(run: Run, controller: Path, tmp_path: Path) -> None:
    refused = run("linearize", controller, "-o", "a.json")
    assert refused.status == 5
    assert refused.is_one_paragraph()
    assert "--lifted --step SECONDS" in refused.err
    assert not (tmp_path / "a.json").exists()
    lifted = run("linearize", controller, "--lifted", "--step", "0.02", "--json")
    assert lifted.status == 0, lifted.err
    document = json.loads(lifted.out)
    assert document["sample_time"] == 0.02
    np.testing.assert_allclose(sorted(np.linalg.eigvals(document["A"]).real), [0.3, 1.0], atol=1e-9)


def test_the_base_period_must_be_known(run: Run, controller: Path) -> None:
    done = run("linearize", controller, "--lifted")
    assert done.status == 2
    assert "give the base period with --step" in done.err


def test_a_point_on_the_way(run: Run, hidden: Path) -> None:
    done = run("linearize", hidden, "--set", "V=1", "--simulate-to", "1.5", "--json")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["point"]["time"] == pytest.approx(1.5)
    assert document["point"]["outputs"]["current"] > 0.5


def test_snapshots_of_one_motion(run: Run, declared: Path, tmp_path: Path) -> None:
    done = run("linearize", declared, "--set", "V=1", "--snapshots", "0.5,1", "-o", "plant.json")
    assert done.status == 0, done.err
    family = fl.LinearFamily.load(tmp_path / "plant.json")
    assert family.array("time") == pytest.approx([0.5, 1.0])


def test_info_says_how_it_can_be_stepped(run: Run, hidden: Path, controller: Path) -> None:
    assert "no declared states: the linear model is identified" in " ".join(run("info", hidden).out.split())
    assert "sampled in part: see --lifted" in " ".join(run("info", controller).out.split())
    assert json.loads(run("info", hidden, "--json").out)["stepping"][1] == "saves its state"


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--step", "-1"), 2, "communication step is -1 s"),
        (("--step", "nan"), 2, "--step nan: the value must be finite"),
        (("--order", "0"), 2, "order must be positive, not 0"),
        (("--order", "2", "--method", "direct"), 2, "--order is for models identified"),
        (("--way", "step"), 2, "It declares no states"),
        (("--method", "magic"), 2, "magic"),
        (("--interface", "me"), 2, "has no interface 'ModelExchange'"),
        (("--independent", "i"), 2, "'i' is not a declared state"),
        (("--at-singularity",), 2, "--at-singularity is for native models"),
        (("--simulate-to", "-1"), 2, "Give a later time"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_bad_requests_are_one_paragraph(
    run: Run, hidden: Path, options: tuple[str, ...], status: int, said: str
) -> None:
    done = run("linearize", hidden, *options)
    assert done.status == status, done.err
    assert done.is_one_paragraph(), done.err
    assert said in done.err


def test_what_is_not_done_with_such_fmus_is_said(run: Run, declared: Path) -> None:
    simulated = run("simulate", declared, "--stop-time", "1")
    assert (simulated.status, "has its own solver" in simulated.err) == (2, True)
    assert run("linearize", declared, "-o", "plant.json").status == 0
    verified = run("verify", declared, "plant.json")
    assert (verified.status, "compared with held-out responses" in verified.err) == (2, True)
    native = run("linearize", "fmilin.systems:cartesian_pendulum", "--interface", "cs")
    assert (native.status, "--interface is for FMUs" in native.err) == (2, True)


def test_a_wrong_number_of_coordinates_is_refused_not_gone_round(run: Run, declared: Path) -> None:
    done = run("linearize", declared, "--independent", "i")
    assert done.status == 2
    assert "3" in done.err
