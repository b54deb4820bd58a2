"""Points and coordinates that a formulation just does not take any more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg

import fmilin as fl
from fmilin import ConstraintError, NumericalError, OperatingPoint
from fmilin.formulations import ConstrainedForm, basis_of, equilibrium, form_of, spectrum_of_form
from fmilin.formulations.sparse import sparse_form_of
from fmilin.models import LagrangeModel
from fmilin.systems import cartesian_pendulum, flexible_double_pendulum, four_bar_form


def hanging(model: fl.Model, **states: float) -> OperatingPoint:
    """Return the pendulum at rest, hanging, with some states at other values."""
    x = np.array([0.0, -1.0, 0.0, 0.0])
    for name, value in states.items():
        x[model.states.index_of(name)] = value
    return OperatingPoint(0.0, x, np.zeros(len(model.inputs)))


@pytest.mark.parametrize(("speed", "moves"), [(1.0, True), (1e-4, True), (3e-8, True), (1e-11, False), (0.0, False)])
def test_a_slow_motion_keeps_its_terms(speed: float, *, moves: bool) -> None:
    model = cartesian_pendulum()
    assert (form_of(model, hanging(model, vx=speed)).motion is not None) == moves


@pytest.mark.parametrize("angle", [1e-2, 3e-9])
def test_what_is_pushed_away_from_rest_keeps_its_terms(angle: float) -> None:
    model = cartesian_pendulum()
    assert form_of(model, hanging(model, x=float(np.sin(angle)), y=-float(np.cos(angle)))).motion is not None


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 3e-5])
@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
def test_a_point_beside_the_constraints_is_refused(formulation: str, gap: float) -> None:
    model = cartesian_pendulum()
    with pytest.raises(ConstraintError, match=r"not on the manifold"):
        fl.linearize(model, hanging(model, y=-1.0 - gap), formulation=formulation)


@pytest.mark.parametrize("gap", [1e-2, 3e-5])
def test_a_rate_beside_the_constraints_is_refused(gap: float) -> None:
    model = cartesian_pendulum()
    with pytest.raises(ConstraintError, match="not on the manifold"):
        form_of(model, hanging(model, vy=gap))


@pytest.mark.parametrize(("rate", "moves"), [(1e-4, True), (3e-7, True), (1e-12, False), (0.0, False)])
def test_a_slow_motion_of_a_sparse_model_keeps_its_terms(rate: float, *, moves: bool) -> None:
    model = flexible_double_pendulum(elements=1, angle=0.0, rate=rate)
    assert (sparse_form_of(model, model.start).motion is not None) == moves


@pytest.mark.parametrize("gap", [1e-2, 3e-5])
def test_a_sparse_model_beside_its_constraints_is_refused(gap: float) -> None:
    model = flexible_double_pendulum(elements=1, angle=0.0)
    with pytest.raises(ConstraintError, match="not on the manifold"):
        sparse_form_of(model, model.start.with_states(model.start.states + gap * np.eye(len(model.states))[0]))


@pytest.mark.parametrize("part", [0.0, 1e-12, 1e-10])
def test_coordinates_that_hardly_determine_the_others_are_refused(part: float) -> None:
    Phi_q = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + part, 1.0]])
    with pytest.raises(NumericalError, match=r"The coordinates c do not determine"):
        basis_of(Phi_q, names="abc", independent=["c"])


@pytest.mark.parametrize("part", [1e-2, 1e-5, 1e-7])
def test_a_mass_matrix_that_is_nearly_symmetric_is_none(part: float) -> None:
    form = four_bar_form().dense()
    M = form.M.copy()
    M[0, 2] += part * np.abs(M).max()
    with pytest.raises(NumericalError, match="not symmetric"):
        spectrum_of_form(replace(form, M=M), "mcs")


@pytest.mark.parametrize(("force", "rests"), [(1e-2, False), (1e-5, False), (3e-8, False), (1e-12, True), (0.0, True)])
def test_a_slight_force_along_a_free_direction_leaves_no_equilibrium(force: float, *, rests: bool) -> None:
    """A body between springs, and another on a level rail that nothing holds."""
    model = LagrangeModel(
        "on a rail",
        {"x": "vx", "y": "vy", "s": "vs"},
        np.eye(3).tolist(),
        ["1 - 4*x", "-y", "F"],
        constraints=["y - x"],
        parameters={"F": force},
        start={"x": 0.0, "y": 0.0, "s": 0.3, "vx": 0.0, "vy": 0.0, "vs": 0.0},
    )
    if rests:
        np.testing.assert_allclose(equilibrium(model).point.states[:3], [0.2, 0.2, 0.3], atol=1e-12)
    else:
        with pytest.raises(NumericalError, match="no equilibrium of"):
            equilibrium(model)


@pytest.mark.parametrize(("part", "moves"), [(1.0, True), (1e-9, True), (1e-13, True), (1.8e-15, False), (0.0, False)])
def test_a_motion_that_hardly_has_an_inertia_has_none(part: float, *, moves: bool) -> None:
    """The smaller eigenvalue of M over the larger is a quarter of ``part``."""
    M, K, none = np.array([[1.0, 1.0], [1.0, 1.0 + part]]), np.eye(2), np.zeros((2, 2))
    form = ConstrainedForm(M, none, K, np.zeros((0, 2)), np.zeros((2, 0)), np.zeros(0), ("a", "b"))
    if moves:
        slow = np.min(np.abs(spectrum_of_form(form, "mcs").eigenvalues))
        assert slow == pytest.approx(np.sqrt(1 / linalg.eigvalsh(M)[-1]), rel=1e-2)
    else:
        with pytest.raises(NumericalError, match="not positive definite"):
            spectrum_of_form(form, "mcs")
