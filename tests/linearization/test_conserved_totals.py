"""Linear models on the set of states with the same conserved totals: ``keep_totals=True``, ``--keep-totals``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.models import DaeModel, DiscreteModel, OdeModel
from tests.command_line import main

K1, K2 = 2.0, 3.0


def isomers() -> OdeModel:
    """A <-> B: the total A + B is constant, and the only motion that is left decays with k1 + k2."""
    rates = {"A": "-k1*A + k2*B", "B": "k1*A - k2*B"}
    return OdeModel("isomers", rates, parameters={"k1": K1, "k2": K2}, start={"A": 1.0, "B": 0.5})


def enzyme() -> OdeModel:
    """Michaelis and Menten's reaction in a closed vessel: E + S <-> C -> E + P."""
    rates = {
        "E": "-k1*E*S + (km + k2)*C",
        "S": "-k1*E*S + km*C",
        "C": "k1*E*S - (km + k2)*C",
        "P": "k2*C",
    }
    parameters = {"k1": 2.0, "km": 1.0, "k2": 0.5}
    return OdeModel("enzyme", rates, parameters=parameters, start={"E": 0.3, "S": 0.0, "C": 0.0, "P": 1.0})


def tanks_in_a_loop(*, feed: bool = False) -> OdeModel:
    """Four equal tanks in a ring: n areas of 1, flows h_i - h_(i+1)."""
    rates = {f"h{i}": f"h{(i - 1) % 4} - 2*h{i} + h{(i + 1) % 4}" for i in range(4)}
    rates["h0"] += " + feed" * feed
    return OdeModel("ring", rates, inputs=["feed"] if feed else [], start={f"h{i}": 1.0 for i in range(4)})


def test_two_isomers_relax_with_the_sum_of_the_rate_constants() -> None:
    model = isomers()
    linear = fl.linearize(model, fl.trim(model), keep_totals=True)
    np.testing.assert_allclose(linear.eigenvalues(), [-(K1 + K2)], rtol=1e-13)
    assert linear.full_states.names == ("A", "B")
    np.testing.assert_allclose(linear.T.sum(axis=0), 0.0, atol=1e-15)
    (note,) = [warning for warning in linear.warnings if warning.kind == "conserved"]
    assert "A + B = 1.5." in note.message


def test_an_enzyme_in_a_closed_vessel_has_two_motions() -> None:
    """At the end S and C vanish, and E and P are what the totals leave: the eigenvalues are those of S and C."""
    model = enzyme()
    linear = fl.linearize(model, keep_totals=True)
    E, k1, km, k2 = 0.3, 2.0, 1.0, 0.5
    expected = np.linalg.eigvals([[-k1 * E, km], [k1 * E, -(km + k2)]])
    np.testing.assert_allclose(linear.eigenvalues(), np.sort(expected), rtol=1e-12)
    everything = fl.linearize(model).eigenvalues()
    assert np.count_nonzero(np.abs(everything) < 1e-12) == 2
    np.testing.assert_allclose(everything[np.abs(everything) > 1e-12], linear.eigenvalues(), rtol=1e-12)


def test_tanks_in_a_ring_lose_the_eigenvalue_of_their_content() -> None:
    """The Laplacian of a ring has the eigenvalues 2 - 2 cos(2 pi k / n)."""
    linear = fl.linearize(tanks_in_a_loop(), keep_totals=True)
    np.testing.assert_allclose(linear.eigenvalues(), [-4.0, -2.0, -2.0], rtol=1e-12)
    assert linear.is_equilibrium
    assert "stable: deviations die out" in repr(linear)


def test_an_input_that_fills_a_tank_keeps_the_content_among_the_states() -> None:
    linear = fl.linearize(tanks_in_a_loop(feed=True), keep_totals=True)
    assert len(linear.states) == 4
    assert any("keep_totals=True changed nothing" in warning.message for warning in linear.warnings)


def test_a_rate_that_vanishes_at_the_time_of_the_point_alone_conserves_nothing() -> None:
    model = OdeModel("switch", {"x": "-time*x", "y": "-y + u"}, inputs=["u"], start={"x": 1.0, "y": 1.0})
    linear = fl.linearize(model, keep_totals=True)
    assert linear.states.names == ("x", "y")
    point = fl.trim(model, fixed={"u": 1.0})
    assert "conserved" not in {remark.kind for remark in point.report.remarks}


def test_momentum_and_with_it_the_centre_of_mass_are_totals() -> None:
    pull = "(5*(x1 - x2) + 0.1*(v1 - v2))"
    model = OdeModel("bodies", {"x1": "v1", "x2": "v2", "v1": f"-{pull}", "v2": f"{pull}/3"})
    linear = fl.linearize(model, keep_totals=True)
    mass = 3 / 4
    np.testing.assert_allclose(linear.eigenvalues(), np.sort(np.roots([mass, 0.1, 5.0])), rtol=1e-10)


def test_totals_are_found_beside_algebraic_equations() -> None:
    """The flow between two tanks is algebraic; a third state is none of their content."""
    model = DaeModel(
        "pipe",
        ["der(h1) = -q", "der(h2) = q", "q = 2*(h1 - h2)", "der(c) = -c", "d = 2*c"],
        start={"h1": 1.0, "h2": 1.0, "c": 0.0},
    )
    np.testing.assert_allclose(fl.linearize(model, keep_totals=True).eigenvalues(), [-4.0, -1.0], rtol=1e-10)


def test_the_totals_of_an_fmu_are_kept(tmp_path: Path) -> None:
    expected = fl.linearize(enzyme(), keep_totals=True).eigenvalues()
    with fl.load(build_fmu(enzyme(), tmp_path / "enzyme.fmu", fmi_version="3.0")) as model:
        linear = fl.linearize(model, keep_totals=True)
        np.testing.assert_allclose(linear.eigenvalues(), expected, rtol=1e-8)
        assert fl.verify(model, linear).passed
        assert fl.audit(linear, model=model).ok


def test_a_sweep_has_at_each_point_the_totals_of_that_point() -> None:
    """A + A <-> B: the rate constant of what is left, 4 k1 A + k2, depends on the point."""
    rates = {"A": "-2*k1*A^2 + 2*k2*B", "B": "k1*A^2 - k2*B"}
    model = OdeModel("dimer", rates, parameters={"k1": K1, "k2": K2}, start={"A": 1.0, "B": 1.0})
    values = np.array([0.5, 1.0, 2.0, 4.0, 5.0])
    family = fl.sweep(model, {"A": values}, keep_totals=True)
    np.testing.assert_allclose(family.eigenvalues[:, 0], -(4 * K1 * values + K2), rtol=1e-12)
    points = [fl.operating_point(model, {"A": float(value)}) for value in values]
    np.testing.assert_allclose(fl.linearize_along(model, points, keep_totals=True).A, family.A, rtol=1e-12)


def test_a_map_without_the_direction_of_its_total() -> None:
    """Shares of two compartments: what leaves one enters the other in each sample."""
    model = DiscreteModel("shares", {"a": "0.9*a + 0.2*b", "b": "0.1*a + 0.8*b"}, sample_time=1.0)
    linear = fl.linearize(model, keep_totals=True)
    np.testing.assert_allclose(linear.eigenvalues(), [0.7], rtol=1e-12)
    assert linear.sample_time == 1.0


def test_the_command_line_keeps_totals_and_verifies_what_it_saved(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, saved = build_fmu(isomers(), tmp_path / "isomers.fmu"), tmp_path / "linear.json"
    assert main(["linearize", str(file), "--trim", "--keep-totals", "--json", "-o", str(saved)]) == 0
    np.testing.assert_allclose(json.loads(capfd.readouterr().out)["eigenvalues"], [[-5.0, 0.0]], atol=1e-8)
    assert main(["verify", str(file), str(saved)]) == 0
    capfd.readouterr()
    assert main(["linearize", str(file), "--interface", "cs", "--keep-totals"]) == 2
    assert "--keep-totals needs the rates of the model at many points" in capfd.readouterr().err
