"""Forces that hold a posture, against virtual work: affine in the force, and solved for at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fmilin as fl
from fmilin import Evaluation, TrimRequest, trim
from fmilin.errors import NumericalError
from fmilin.model.evaluator import PointEvaluator
from fmilin.models import OdeModel
from fmilin.numerics.balanced import equilibrate_jacobian
from fmilin.signals import FloatArray
from fmilin.systems import slider_crank
from fmilin.trimming.failures import TrimError
from fmilin.trimming.search_algorithm import search
from fmilin.trimming.solution_family import _smallest_wrenches
from tests.by_hand import FunctionModel, pendulum
from tests.trimming.machines import boom_and_cylinder, boom_force, excavator, excavator_forces


@pytest.mark.parametrize("stiffness", [1e4, 100.0, 0.0, 1e7])
def test_a_cylinder_holds_a_boom(stiffness: float) -> None:
    point = trim(boom_and_cylinder(stiffness), fixed={"pin.q": 0.5}, free=["force"])
    assert point.inputs[0] == pytest.approx(boom_force(0.5, stiffness), rel=1e-11)
    assert point.report.free_directions == ()
    if stiffness == 1e4:
        assert point.inputs[0] == pytest.approx(72276.19, abs=5e-3)


@pytest.mark.parametrize("stiffness", [(0.0, 0.0), (8e6, 6e6)])
@pytest.mark.parametrize("posture", [(0.5, -1.6), (0.2, -1.1), (0.7, -2.0), (-0.1, -1.4), (0.9, -0.9)])
def test_two_cylinders_hold_an_excavator(posture: tuple[float, float], stiffness: tuple[float, float]) -> None:
    fixed = dict(zip(("boom_pin.q", "stick_pin.q"), posture, strict=True))
    point = trim(excavator(stiffness), fixed=fixed, free=["boom_force", "stick_force"])
    forces = excavator_forces(*posture, stiffness)
    np.testing.assert_allclose(point.inputs, forces, atol=1e-10 * max(np.abs(forces).max(), *stiffness))
    assert point.report.free_directions == ()
    is_unstable = bool(np.max(fl.linearize(excavator(stiffness), point).eigenvalues().real) > 1e-3)
    said = [remark.kind for remark in point.report.remarks if remark.kind != "moved"]  # the file's cylinders are open
    assert said == ["unstable"] * is_unstable


def test_the_forces_of_one_posture_are_found_again_with_the_posture_free() -> None:
    """With its preload the machine rests in the posture that the forces hold, found from another one."""
    machine = excavator((8e6, 6e6))
    boom, stick = excavator_forces(0.5, -1.6, (8e6, 6e6))
    point = trim(machine, fixed={"boom_force": boom, "stick_force": stick}, guess={"boom_pin.q": 0.4})
    names = machine.states.positions
    assert point.states[names["boom_pin.q"]] == pytest.approx(0.5, abs=1e-9)
    assert point.states[names["stick_pin.q"]] == pytest.approx(-1.6, abs=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e6, 1e12])
def test_no_unit_of_a_force_changes_what_is_found(unit: float) -> None:
    """x rests where 3 sin(x) = unit F: with x held F is one number, with both free a family, in every unit."""
    model = OdeModel("held", {"x": "v", "v": "u*F - 3*sin(x) - v"}, inputs=["F"], parameters={"u": unit})
    point = trim(model, fixed={"x": 0.4}, free=["F"])
    assert point.inputs[0] == pytest.approx(3 * np.sin(0.4) / unit, rel=1e-12)
    assert point.report.free_directions == ()
    family = trim(model, guess={"x": 0.4}, free=["F"])
    (direction,) = family.report.free_directions
    slope = 3 * np.cos(float(family.states[0])) / unit  # dF/dx
    assert direction.along[next(iter(direction.along))] == pytest.approx(
        slope if direction.name == "x" else 1 / slope, rel=1e-6
    )


def test_what_cannot_be_held_is_said_with_what_was_tried() -> None:
    """One cylinder cannot hold both angles."""
    with pytest.raises(
        TrimError, match=r"no equilibrium was found\. Tried: the free inputs .* linear solve"
    ) as failure:
        trim(excavator(), fixed={"boom_pin.q": 0.5, "stick_pin.q": -1.6}, free=["boom_force"])
    assert "There is no" not in str(failure.value)
    assert "'stick_force'" in str(failure.value)


def test_a_search_that_stalls_is_started_again() -> None:
    """x^3 - 2 x + 2 has a dead end at sqrt(2/3), where a search from 0.7 stops; the zero is at -1.77."""
    point = trim(OdeModel("dead end", {"x": "x^3 - 2*x + 2"}, start={"x": 0.7}))
    assert point.states[0] == pytest.approx(-1.7692923542386314, rel=1e-13)


def test_a_homotopy_passes_folds() -> None:
    """What holds the guess is taken away along a path that turns back twice."""
    from fmilin.trimming.damped_newton import release_guess
    from fmilin.trimming.equilibrium_equations import Equations
    from fmilin.trimming.unknowns import Candidate, Unknowns

    model = OdeModel("fold", {"x": "x^3 - 2*x + 2"}, start={"x": 0.7})
    start = model.start
    unknowns = Unknowns(Candidate(PointEvaluator(model), 0.0, start.states, start.inputs, {}), TrimRequest())
    end = release_guess(Equations(unknowns, [0], {}, moving=False), unknowns.z0, exact=True)
    assert end is not None
    assert end[0] == pytest.approx(-1.769, abs=0.3)


class Narrow(FunctionModel):
    """A pendulum that can be evaluated near its constraint only."""

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        if abs(x[0] ** 2 + x[1] ** 2 - 1.69) > 0.3:
            raise NumericalError("The rod is torn.")
        return super().evaluate(t, x, u)


@pytest.mark.parametrize("angle", [-0.4, 0.2, 0.3])
def test_a_homotopy_holds_by_forces_and_never_by_leaving_the_manifold(angle: float) -> None:
    from fmilin.trimming.damped_newton import release_guess
    from fmilin.trimming.equilibrium_equations import Equations
    from fmilin.trimming.unknowns import Candidate, Unknowns

    model = Narrow(pendulum(angle=angle).parts)
    unknowns = Unknowns(
        Candidate(PointEvaluator(model), 0.0, model.start.states, model.start.inputs, {}), TrimRequest()
    )
    equations = Equations(unknowns, list(range(4)), {0: 2, 1: 3}, moving=False)
    end = release_guess(equations, unknowns.z0, exact=False)
    assert end is not None
    assert abs(end[0]) < 0.02  # it hangs


def test_redundant_inputs_are_those_with_the_smallest_forces_then_the_smallest() -> None:
    """z1 + z2 + 2 z3 stays what it is, z1 = z2 presses least, and z = (1, 1, 2) is the smallest then."""

    def pressed(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        bent = z[0] + z[1] + 2 * z[2] + 1e-3 * (z[2] - 3) ** 2
        return np.array([bent - 5.999]), np.array([z[0] - z[1]]), np.empty(0)

    for start in ([0.0, 0.0, 3.0], [3.0, -3.0, 3.0]):
        z, choices = _smallest_wrenches(pressed, np.array(start))
        assert choices == 2
        np.testing.assert_allclose(pressed(z)[0], pressed(np.array(start))[0], rtol=1e-6)
        np.testing.assert_allclose(z, [1.0, 1.0, 2.0], atol=1e-3)


def test_ranks_of_balanced_matrices_need_a_gap() -> None:
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    clear = rotation @ np.diag([1.0, 0.5, 0.2, 1e-13]) @ rotation.T
    assert equilibrate_jacobian(clear).rank(1e-8) == 3
    doubtful = rotation @ np.diag([1.0, 1e-4, 1e-7, 1e-9]) @ rotation.T
    assert equilibrate_jacobian(doubtful).rank(1e-8) == 4
    units = np.diag(10.0 ** np.arange(-9.0, 7.0, 4.0))
    assert equilibrate_jacobian(units @ clear @ units[::-1, ::-1]).rank(1e-8) == 3


def test_a_mechanism_is_trimmed_on_the_branch_that_it_starts_on() -> None:
    point = trim(slider_crank(), fixed={"phi": 0.7}, free=["torque"])
    assert point.states[2] == pytest.approx(0.3694856448589392, rel=1e-12)


def test_a_neighbour_starts_from_its_solution_and_a_fold_shows() -> None:
    """x^2 = F: two rests that meet at F = 0, where the Jacobian is singular."""
    model = OdeModel("fold", {"x": "v", "v": "F - x^2 - v"}, inputs=["F"], start={"x": 1.0})
    previous = trim(model, fixed={"F": 1.0})
    regularity = [previous.report.regularity]
    for F in (0.5, 0.1, 0.01, 1e-4, 1e-6):
        request = TrimRequest({"F": F}).check(model)
        previous = search(model, request, dict(zip(model.states.names, previous.states.tolist(), strict=True)))
        assert previous.states[0] == pytest.approx(np.sqrt(F), rel=1e-7)
        regularity.append(previous.report.regularity)
    assert regularity[0] > 0.1
    assert all(b < a for a, b in pairwise(regularity))
    assert regularity[-1] < 0.2 * regularity[0]


def test_postures_beside_each_other_lead_on_to_each_other() -> None:
    machine = excavator()
    request = TrimRequest({"boom_pin.q": 0.5, "stick_pin.q": -1.6}, free=["boom_force", "stick_force"]).check(machine)
    previous = search(machine, request, {})
    for stick in (-1.5, -1.3, -1.0):
        request = replace(request, fixed={"boom_pin.q": 0.5, "stick_pin.q": stick})
        names, values = (*machine.states.names, *machine.inputs.names), (*previous.states, *previous.inputs)
        guess = {n: float(v) for n, v in zip(names, values, strict=True) if n not in request.fixed}
        previous = search(machine, request, guess)
        forces = excavator_forces(0.5, stick)
        np.testing.assert_allclose(previous.inputs, forces, atol=1e-9 * np.abs(forces).max())
