"""Commands that linearize have the same options, and each changes what the linear model of one point is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import fmilin as fl
from fmilin import Linearization
from fmilin.cli.linear_options import list_flags
from fmilin.cli.main import program
from fmilin.models import OdeModel
from fmilin.options import describe
from fmilin.options.function_options import WITHOUT_MEANING, WITHOUT_MEANING_IN_COMMANDS
from fmilin.systems import four_bar
from tests.cli.conftest import Run

FUNCTIONS = {
    "linearize": "linearize",
    "sweep": "sweep",
    "report": "report",
    "plot": "linearize",
    "audit": "audit",
    "spectrum": "spectrum",
    "discover": "discover",
    "explore": "explore",
    "floquet": "linearize_periodic",
    "explain": "explain",
}
"""The row of the table that each command has: the function that it calls, or its own."""

OWN_OPTIONS = {"floquet": {"--method", "--way", "--step"}, "sweep": {"--delay"}}
"""Options of commands with another meaning: the integrator, and axes of delays."""

ROWS = {**WITHOUT_MEANING, **WITHOUT_MEANING_IN_COMMANDS}

MODELS = """
from fmilin.models import FunctionModel, OdeModel

def count(t, x, u):
    return round(50 * x[0]) / 50

rectifier = OdeModel("rectifier", {"x": "-x + abs(u)"}, inputs=["u"], start={"x": 1.0})
encoder = FunctionModel("encoder", {"x": 0.3, "v": 0.0}, lambda t, x, u: [x[1], -2 * x[0]], outputs={"y": count})
kink = OdeModel("kink", {"x": "v", "v": "-k*x - 0.3*abs(v) + u"}, inputs=["u"], parameters={"k": 2.0})
mathieu = OdeModel("Mathieu", {"x": "v", "v": "-(1.2 + 0.3*cos(2*time))*x"})
"""


def list_options(command: str) -> set[str]:
    found = program.get_command(click.Context(program), command)
    assert found is not None
    return {name for parameter in found.params for name in parameter.opts}


@pytest.mark.parametrize(("command", "function"), FUNCTIONS.items())
def test_a_command_has_every_option_that_has_a_meaning_in_its_row(command: str, function: str) -> None:
    names = list_options(command)
    for described in describe(Linearization):
        if described.keyword == "descriptor":  # which the format of a file decides
            continue
        flags = set(list_flags(described.keyword))
        if described.keyword in ROWS[function]:
            own = OWN_OPTIONS.get(command, set())
            assert not (flags - own) & names
        else:
            # The sparse eigenvalues of mcs and rcs have no basis and no spurious ones to place.
            absent = {"--basis", "--spurious"} if command == "spectrum" else set()
            assert flags - absent <= names


@pytest.mark.parametrize(
    ("command", "option", "reason"),
    [
        ("floquet", "--lifted", "A motion is integrated; a stepped model is measured along it"),
        ("floquet", "--at-singularity", "A motion has no linear model at a singular configuration"),
        ("floquet", "--basis", "Formulations are of single points"),
        ("audit", "--one-sided", "The second method of an audit takes derivatives on both sides"),
        ("spectrum", "--outputs", "do not depend on the choice of inputs and outputs"),
        ("spectrum", "--one-sided", "of the equations as written"),
        ("discover", "--keep-inaccurate", "found from rates of the model"),
        ("discover", "--step", "found from rates of the model"),
        ("explain", "--parameters", "Whether a channel is zero does not depend on this option"),
        ("simulate", "--delay", "The integrators take models without delays"),
        ("verify", "--delay", "The nonlinear model is integrated without delays"),
        ("trim", "--delay", "Equilibria do not depend on delays"),
        ("explain", "--hold-modes", "Inaccurate entries and the present modes are always kept here"),
    ],
)
def test_an_option_without_meaning_is_rejected_with_the_reason(
    run: Run, command: str, option: str, reason: str
) -> None:
    done = run(command, "fmilin.systems:cartesian_pendulum", option)
    assert done.status == 2
    assert done.is_one_paragraph()
    assert f"{option} has no meaning in 'fmilin {command}'" in done.err
    assert reason in done.err


PENDULUM = "fmilin.systems:cartesian_pendulum"
LINKAGE = "fmilin.systems:four_bar"


@pytest.mark.parametrize(
    ("model", "name", "values", "options"),
    [
        ("models.py:kink", "x", [0.0, 0.5], ["--one-sided", "left"]),
        ("models.py:kink", "x", [0.0, 0.5], ["--one-sided", "right"]),
        ("models.py:encoder", "x", [0.301, 0.52], ["--keep-inaccurate"]),
        (LINKAGE, "phi", [1.0, 1.2], ["--coordinates", "tangent"]),
        (LINKAGE, "phi", [1.0, 1.2], ["--formulation", "mcs", "--basis", "svd"]),
        (LINKAGE, "phi", [1.0, 1.2], ["--hold-modes", "--derivatives", "exact"]),
    ],
)
def test_a_sweep_with_an_option_is_linearize_with_it_at_every_point(
    run: Run, model: str, name: str, values: list[float], options: list[str]
) -> None:
    Path("models.py").write_text(MODELS, encoding="utf-8")
    done = run("sweep", model, "--vary", f"{name}={values}", *options, "--json")
    assert done.status == 0, done.err
    for point, value in zip(json.loads(done.out)["points"], values, strict=True):
        single = run("linearize", model, "--set", f"{name}={value}", *options, "--json")
        assert single.status == 0, single.err
        expected = json.loads(single.out)
        assert point["ok"]
        eigenvalues = np.array(point["eigenvalues"]) @ [1, 1j]
        np.testing.assert_allclose(
            np.sort_complex(eigenvalues), np.sort_complex(np.array(expected["eigenvalues"]) @ [1, 1j]), atol=1e-9
        )
        if model.startswith("models.py"):  # the coordinates are the states
            for matrix in ("A", "B", "C", "D"):
                np.testing.assert_allclose(point[matrix], expected[matrix], atol=1e-9)


@pytest.mark.parametrize(("side", "damping"), [("left", 0.3), ("right", -0.3)])
def test_one_sided_derivatives_at_a_kink(run: Run, side: str, damping: float) -> None:
    """At v = 0 the damping of the model is -0.3 |v|: its derivative is 0.3 on the left and -0.3 on the right."""
    Path("models.py").write_text(MODELS, encoding="utf-8")
    A = [[0.0, 1.0], [-2.0, damping]]
    swept = json.loads(run("sweep", "models.py:kink", "--vary", "u=[0]", "--one-sided", side, "--json").out)
    np.testing.assert_allclose(swept["points"][0]["A"], A, atol=1e-8)
    single = json.loads(run("linearize", "models.py:kink", "--one-sided", side, "--json").out)
    np.testing.assert_allclose(single["A"], A, atol=1e-8)


def test_a_picture_is_drawn_of_an_inaccurate_linear_model_where_it_is_wanted(run: Run) -> None:
    Path("models.py").write_text(MODELS, encoding="utf-8")
    arguments = ["plot", "models.py:encoder", "--kind", "sparsity", "-o", "picture.svg"]
    assert run(*arguments).status == 5
    assert run(*arguments, "--keep-inaccurate").status == 0


def test_floquet_takes_the_options_of_linear_models_along_a_motion(run: Run) -> None:
    Path("models.py").write_text(MODELS, encoding="utf-8")
    arguments = ["floquet", "models.py:mathieu", "--period", "3.141592653589793", "--points", "16", "--json"]
    done = run(*arguments, "--derivatives", "differences")
    assert done.status == 0, done.err
    model = OdeModel("Mathieu", {"x": "v", "v": "-(1.2 + 0.3*cos(2*time))*x"})
    orbit = fl.periodic_orbit(model, period=np.pi)
    floquet = fl.linearize_periodic(model, orbit, points=16, derivatives="differences").floquet()
    multipliers = np.array(json.loads(done.out)["multipliers"]) @ [1, 1j]
    np.testing.assert_allclose(np.sort_complex(multipliers), np.sort_complex(floquet.multipliers), rtol=1e-9)


def test_the_tangent_space_takes_the_options_of_its_jacobian(run: Run) -> None:
    Path("models.py").write_text(MODELS, encoding="utf-8")
    arguments = ["linearize", "models.py:kink", "--tangent-only", "--json"]
    done = run(*arguments)
    assert done.status == 5
    assert "--one-sided left" in done.err
    for side, damping in (("left", 0.3), ("right", -0.3)):
        linear = json.loads(run(*arguments, "--one-sided", side, "--keep-inaccurate", "--hold-modes").out)
        np.testing.assert_allclose(linear["A"], [[0.0, 1.0], [-2.0, damping]], atol=1e-8)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--coordinates", "are states of the model"),
        ("--parameters", "Numbers at one point do not give the change of directions"),
    ],
)
def test_the_tangent_space_rejects_an_option_with_the_reason(run: Run, option: str, reason: str) -> None:
    Path("models.py").write_text(MODELS, encoding="utf-8")
    value = "tangent" if option == "--coordinates" else "k"
    done = run("linearize", "models.py:kink", "--tangent-only", option, value)
    assert done.status == 2
    assert f"{option} has no meaning with --tangent-only" in done.err
    assert reason in done.err


def rectifier() -> OdeModel:
    return OdeModel("rectifier", {"x": "-x + abs(u)"}, inputs=["u"], start={"x": 1.0})


def singular_linkage() -> fl.Model:
    return four_bar(singular=True)


@pytest.mark.parametrize(
    ("build_model", "source", "flags", "options"),
    [
        (rectifier, "models.py:rectifier", ["--one-sided", "left"], {"one_sided": "left"}),
        (rectifier, "models.py:rectifier", ["--one-sided", "right"], {"one_sided": "right"}),
        (four_bar, LINKAGE, ["--formulation", "mcs", "--basis", "svd"], {"formulation": fl.formulations.MCS("svd")}),
        (four_bar, LINKAGE, ["--formulation", "rcs"], {"formulation": "rcs"}),
        (singular_linkage, f"{LINKAGE}(singular=True)", ["--at-singularity"], {"at_singularity": True}),
        (four_bar, LINKAGE, ["--hold-modes", "--parameters", "gy"], {"hold_modes": True, "parameters": ["gy"]}),
    ],
)
def test_snapshots_with_an_option_are_those_of_python(
    run: Run, build_model: Callable[[], fl.Model], source: str, flags: list[str], options: dict[str, Any]
) -> None:
    Path("models.py").write_text(MODELS, encoding="utf-8")
    times = [0.0] if options == {"at_singularity": True} else [0.1, 0.2]
    arguments = ["--set", "w=0"] if source.startswith(LINKAGE) else []
    done = run("linearize", source, *arguments, "--snapshots", ",".join(map(str, times)), *flags, "-o", "way.npz")
    assert done.status == 0, done.err
    model = build_model()
    start = fl.operating_point(model, {"w": 0.0} if arguments else {})
    expected = fl.linearize_along(model, fl.snapshots(model, start, times=times), **options)
    family = fl.LinearFamily.load("way.npz")
    assert family.states.names == expected.states.names
    for matrix in ("A", "B", "C", "D"):
        np.testing.assert_allclose(getattr(family, matrix), getattr(expected, matrix), rtol=1e-9, atol=1e-9)
    for name in options.get("parameters", ()):
        np.testing.assert_allclose(family.derivatives[name].A, expected.derivatives[name].A, rtol=1e-9, atol=1e-9)


def test_snapshots_on_both_sides_of_a_kink_differ(run: Run) -> None:
    """d|u|/du at 0 is -1 on the left and +1 on the right."""
    Path("models.py").write_text(MODELS, encoding="utf-8")
    arguments = ["linearize", "models.py:rectifier", "--snapshots", "0.1,0.2", "--json"]
    assert run(*arguments).status == 5
    for side, sign in (("left", -1.0), ("right", 1.0)):
        points = json.loads(run(*arguments, "--one-sided", side).out)["points"]
        np.testing.assert_allclose([point["B"] for point in points], [[[sign]], [[sign]]], atol=1e-8)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--coordinates", "tangent", "--parameters", "k"], "leave one of them out, or give --independent"),
        (["--lifted"], "no base period to lift it over. Leave out --lifted"),
        (["--formulation", "mcs"], "has no accessible mass matrix"),
    ],
)
def test_a_sweep_rejects_before_its_first_point_what_suits_no_point(run: Run, options: list[str], reason: str) -> None:
    Path("models.py").write_text(MODELS, encoding="utf-8")
    for arguments in (["sweep", "models.py:kink", "--vary", "x=[0.1,0.2]"], ["linearize", "models.py:kink"]):
        done = run(*arguments, *options)
        assert done.status == 2
        assert reason in done.err
        assert done.is_one_paragraph()


@pytest.mark.parametrize("option", ["--inputs", "--outputs"])
def test_a_sweep_of_loops_rejects_a_choice_of_signals(run: Run, option: str) -> None:
    done = run("sweep", PENDULUM, "--vary", "x=[0.1]", "--loop-at", "F", option, "F")
    assert done.status == 2
    assert f"{option} has no meaning with --loop-at. The inputs and outputs of a loop are its wires." in done.err
