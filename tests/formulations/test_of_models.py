"""Formulations of models: at rest and in motion they agree with the general procedure, outputs and names included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import ConstraintError, Model, NumericalError, OperatingPoint, UnknownNameError, UsageError
from fmilin.formulations import MCS, RCS, UCS, Formulation, Spectrum, form_of, spectra, spectrum
from fmilin.models import LagrangeModel, NullSpaceModel, SymbolicConstraint
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, five_bar, flexible_double_pendulum, four_bar, four_bar_form, rolling_disk
from tests.formulations.hand_made import closed_pair, posture, springs_in_line, swung_pivot

EXACT: list[Formulation] = [MCS(), RCS(), RCS("zero")]
TANGENT = [MCS("svd"), MCS("qr"), MCS("zero-eigenvalue"), MCS("gram-schmidt")]


def moving_linkage(loops: int = 1) -> tuple[Model, OperatingPoint]:
    return four_bar(loops, 0.8), OperatingPoint(0.0, posture(loops, 2.0, 0.7), np.array([0.3]))


def moving_five_bar() -> tuple[Model, OperatingPoint]:
    model = five_bar()
    return model, fl.operating_point(model, {"q1": 1.2, "v1": 1.3, "v2": -0.4})


def swinging_beams() -> tuple[Model, OperatingPoint]:
    model = flexible_double_pendulum(2, angle=0.6, rate=1.0)
    return model, model.start


def carried_pendulum() -> tuple[Model, OperatingPoint]:
    model = swung_pivot()
    return model, fl.operating_point(model, {"x": 0.8, "vx": 0.4}, time=0.35)


PLACES: dict[str, Callable[[], tuple[Model, OperatingPoint]]] = {
    "four-bar": moving_linkage,
    "three loops": lambda: moving_linkage(3),
    "five-bar": moving_five_bar,
    "flexible": swinging_beams,
    "moved by time": carried_pendulum,
    "at rest": lambda: (four_bar(damping=1.0), four_bar().start),
}


def close(found: FloatArray, wanted: FloatArray, most: float) -> None:
    size = np.max(np.abs(wanted), initial=1.0)
    np.testing.assert_allclose(found / size, wanted / size, atol=most)


@pytest.mark.parametrize("place", PLACES)
def test_all_three_agree_with_the_general_procedure_at_any_consistent_point(place: str) -> None:
    model, point = PLACES[place]()
    every = ["der(" + model.states.names[len(model.states) // 2] + ")", "lambda[1]", model.states.names[0]]
    reference = fl.linearize(model, point, derivatives="exact", outputs=every)
    positions = reference.states.names[: len(reference.states) // 2]
    penalty = UCS(1e8 if place == "flexible" else 1e6)
    tried: list[tuple[Formulation, float]] = [*((f, 1e-9) for f in EXACT), (penalty, 2e-4)]
    for formulation, most in tried:
        found = spectrum(model, point, formulation, independent=positions, interface=(None, every))
        lin = found.linear
        assert lin is not None
        assert lin.states.names == reference.states.names
        assert lin.outputs.names == tuple(every)
        for name in ("A", "B", "C", "D", "f0"):
            close(getattr(lin, name), getattr(reference, name), most)
        close(lin.T, reference.T, 100 * most)
        np.testing.assert_allclose(lin.y0, reference.y0)
        assert lin.point.states == reference.point.states
        np.testing.assert_allclose(found.true, lin.eigenvalues()[_matched(found.true, lin.eigenvalues())], rtol=1e-6)
        assert any(r.kind == "off-equilibrium" for r in found.remarks) == (place != "at rest")


def _matched(values: Any, others: Any) -> list[int]:
    return [int(np.argmin(np.abs(others - s))) for s in values]


@pytest.mark.parametrize("place", ["four-bar", "five-bar", "flexible", "moved by time"])
def test_orthonormal_bases_belong_to_the_tangent_coordinates(place: str) -> None:
    """In motion the spectrum depends on the coordinates: that of an orthonormal basis is that of the tangent space."""
    model, point = PLACES[place]()
    tangent = fl.linearize(model, point, coordinates="tangent", derivatives="exact").eigenvalues()
    named = fl.linearize(model, point, derivatives="exact").eigenvalues()
    size = np.max(np.abs(tangent))
    for formulation in TANGENT:
        found = spectrum(model, point, formulation)
        assert np.max(np.abs(found.nearest(tangent) - tangent)) < 1e-9 * size
    if place in ("five-bar", "flexible"):
        assert np.max(np.abs(found.nearest(named) - named)) > 1e-5 * size


def test_orthonormal_coordinates_have_names_and_a_linear_model() -> None:
    model, point = moving_linkage(2)
    lin = spectrum(model, point, MCS("qr")).linear
    assert lin is not None
    assert lin.states.names == ("qr[1]", "der(qr[1])")
    close(lin.T @ lin.f0, model.evaluate(0.0, point.states, point.inputs).derivatives, 1e1)
    assert fl.linearize(model, point, formulation=MCS("qr")).A.tolist() == lin.A.tolist()


@pytest.mark.parametrize("loops", [1, 2, 4])
@pytest.mark.parametrize("damping", [0.0, 1.0])
@pytest.mark.parametrize("branch", ["upper", "hanging"])
def test_the_linkage_at_its_equilibria(loops: int, damping: float, branch: Any) -> None:
    model = four_bar(loops, damping, branch=branch)
    A = closed_pair(loops, damping, float(model.start.states[2 * loops + 2]))
    for found in spectra(model):
        lin = found.linear
        assert lin is not None
        assert lin.states.names == ("phi", "w")
        most = 1e-12 if found.formulation != "ucs" else 3e-6
        close(lin.A, A, most)
        close(lin.B, np.array([[0.0], [3 / (4 * loops + 1)]]), most)
        np.testing.assert_allclose(lin.C[:2], np.eye(2), atol=1e-12)
        off = np.abs(lin.eigenvalues()[:, None] - np.linalg.eigvals(A)).min(axis=0)
        assert np.max(off) < 10 * lin.accuracy.A


def test_the_numeric_linkage_is_the_symbolic_one() -> None:
    for loops, angle, speed in ((1, None, 0.0), (3, None, 0.0), (3, 2.0, 0.7), (2, 1.1, -1.3)):
        model = four_bar(loops, 0.8)
        point = model.start if angle is None else OperatingPoint(0.0, posture(loops, angle, speed), np.zeros(1))
        one, other = form_of(model, point), four_bar_form(loops, 0.8, angle=angle, speed=speed).dense()
        for name in ("M", "C", "K", "Phi_q", "B", "multipliers"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-12)
        assert one.is_equilibrium == other.is_equilibrium == (angle is None)
        if one.motion is not None:
            assert other.motion is not None
            for name in ("velocities", "accelerations", "Phi_q_dot", "gamma_q", "gamma_v"):
                np.testing.assert_allclose(getattr(one.motion, name), getattr(other.motion, name), atol=1e-12)
        assert one.names == other.names


def test_a_displaced_penalty_is_at_its_own_equilibrium() -> None:
    """The stiffer the penalty, the nearer both are; displaced it is farther away, and both say how far they may be."""
    model = four_bar()
    exact = spectrum(model).true
    for alpha in (1e4, 1e6):
        off = {}
        for displaced in (False, True):
            found = spectrum(model, None, UCS(alpha, displaced=displaced))
            off[displaced] = np.max(np.abs(found.nearest(exact) - exact)) / np.abs(exact[0])
            assert found.linear is not None
            assert off[displaced] < 3 * found.linear.accuracy.A
        assert 1e-3 < off[True] * alpha < 3
        assert 1e-3 < off[False] * alpha < 3
        assert abs(off[True] - off[False]) > 0.1 * off[False]


def test_inputs_and_outputs_are_chosen_and_ordered() -> None:
    model = flexible_double_pendulum(1)
    names = model.inputs.names
    reference = fl.linearize(model, derivatives="exact", inputs=[names[1]], outputs=["der(link1.vtheta)"])
    positions = reference.states.names[: len(reference.states) // 2]
    lin = fl.linearize(
        model, formulation="rcs", independent=positions, inputs=[names[1]], outputs=["der(link1.vtheta)"]
    )
    assert lin.inputs.names == (names[1],)
    for name in ("B", "C", "D"):
        close(getattr(lin, name), getattr(reference, name), 1e-8)
    with pytest.raises(UsageError, match="An input is named twice"):
        fl.linearize(model, formulation="rcs", inputs=[names[1], names[1]])
    with pytest.raises(UnknownNameError, match="'motor9' is not an input"):
        fl.linearize(model, formulation="rcs", inputs=["motor9"])


def test_a_stabilized_model_has_the_equations_without_stabilization() -> None:
    model, point = moving_linkage()
    assert isinstance(model, LagrangeModel)
    plain = spectrum(model, point, "rcs").true
    stabilized = spectrum(NullSpaceModel(model).with_stabilization(20.0, 20.0), point, "rcs").true
    np.testing.assert_allclose(stabilized, plain, rtol=1e-12)


@pytest.mark.parametrize("formulation", [MCS(), MCS("svd"), RCS()])
def test_linear_models_of_formulations_have_their_descriptor_system(formulation: Formulation) -> None:
    for model, point in (moving_linkage(), swinging_beams(), (four_bar(2), four_bar(2).start)):
        lin = fl.linearize(model, point, formulation=formulation, descriptor=True)
        assert lin.descriptor is not None
        assert lin.descriptor.difference < 1e-9
    assert fl.linearize(four_bar(), formulation="ucs", descriptor=True).descriptor is None


def test_redundant_constraints_count_once() -> None:
    model = springs_in_line(redundant=True)
    point = OperatingPoint(0.0, np.array([0.125, 0.125, 0, 0]), np.array([1.0]))
    for found, spurious in zip(spectra(model, point), (0, 3, 2), strict=True):
        np.testing.assert_allclose(np.abs(found.true), np.sqrt(8 / 3), rtol=1e-6)
        assert len(found.spurious) == spurious
        assert found.sizes["rank"] == 1
        assert found.linear is not None
        np.testing.assert_allclose(found.linear.B.ravel(), [0, 1 / 3], atol=1e-6)


def conical_pendulum(angle: float) -> tuple[LagrangeModel, float]:
    """A spherical pendulum of 1 m in cylindrical coordinates, where it circles steadily; and its rate."""
    rate = np.sqrt(9.81 / np.cos(angle))
    model = LagrangeModel(
        "conical_pendulum",
        {"r": "vr", "phi": "w", "z": "vz"},
        [[2, 0, 0], [0, "2*r^2", 0], [0, 0, 2]],
        ["2*r*w^2", "-4*r*vr*w", "-2*9.81"],
        constraints=["(r^2 + z^2 - 1)/2"],
        start={"r": np.sin(angle), "z": -np.cos(angle), "w": rate},
    )
    return model, float(rate)


@pytest.mark.parametrize("formulation", [*EXACT, *TANGENT, UCS(1e7)])
def test_a_steady_motion_has_its_own_frequencies(formulation: Formulation) -> None:
    """Circling at the rate W and angle a, a pendulum nods with W sqrt(1 + 3 cos(a)^2); two zeros: it may circle on."""
    angle = 0.7
    model, rate = conical_pendulum(angle)
    found = spectrum(model, None, formulation)
    nodding = rate * np.sqrt(1 + 3 * np.cos(angle) ** 2)
    most = 1e-5 if isinstance(formulation, UCS) else 1e-7  # a double zero moves like the root of rounding
    np.testing.assert_allclose(np.abs(found.true), [0, 0, nodding, nodding], atol=most)
    np.testing.assert_allclose(np.abs(found.true[2:]), nodding, rtol=1e-6 if isinstance(formulation, UCS) else 1e-12)
    assert any(r.kind == "off-equilibrium" for r in found.remarks)


# ---------------------------------------------------------------------- singular configurations


@pytest.mark.parametrize("formulation", [RCS(), RCS("zero"), UCS(), MCS(), MCS("svd")])
def test_the_published_pairs_at_the_singular_configuration(formulation: Any) -> None:
    """González et al., section 5.1: w^2 = 6g/5 and 2g; MCS needs to be asked for the enlarged set of velocities."""
    found = spectrum(four_bar(singular=True), None, formulation, at_singularity=isinstance(formulation, MCS))
    most = 1e-6 if isinstance(formulation, UCS) else 1e-12
    np.testing.assert_allclose(np.abs(found.true) ** 2, 9.81 * np.array([1.2, 1.2, 2, 2]), rtol=most)
    assert found.sizes["rank"] == 3
    (remark,) = [r for r in found.remarks if r.kind == "singular"]
    assert "Intrinsic along branch 1" in str(remark)
    assert found.linear is not None
    assert found.linear.method.coordinates == "enlarged"


@pytest.mark.parametrize("loops", [2, 4])
def test_more_loops_fold_with_more_freedoms(loops: int) -> None:
    """All three against the general procedure over the enlarged set of velocities."""
    model = four_bar(loops, singular=True)
    wanted = fl.linearize(model, OperatingPoint(0.0, model.start.states, np.zeros(1)), at_singularity=True)
    for formulation, most in ((MCS(), 1e-10), (RCS(), 1e-10), (UCS(), 1e-6)):
        found = spectrum(model, None, formulation, at_singularity=True)
        assert len(found.true) == len(wanted.states) > 2
        np.testing.assert_allclose(found.nearest(wanted.eigenvalues()), wanted.eigenvalues(), atol=most)


def test_plain_mcs_refuses_a_singular_configuration() -> None:
    with pytest.raises(NumericalError, match=r"3 constraints are independent here, 4 near .* rcs and ucs need no"):
        spectrum(four_bar(singular=True))


def test_no_formulation_helps_at_a_singular_configuration_in_motion() -> None:
    model = four_bar(singular=True)
    with pytest.raises(NumericalError, match="No formulation helps in motion"):
        spectrum(model, OperatingPoint(0.0, posture(1, 0.0, 0.5), np.zeros(1)), "rcs")


# ---------------------------------------------------------------------- refusals


def test_models_of_other_forms_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'rolling_disk' has no accessible mass matrix .* Leave formulation= out"):
        spectrum(rolling_disk())


def test_nonholonomic_constraints_are_refused() -> None:
    knife = LagrangeModel(
        "knife",
        {"x": "vx", "y": "vy", "a": "va"},
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [0, 0, 0],
        constraints=[SymbolicConstraint("vx*sin(a) - vy*cos(a)", name="edge", level="velocity")],
    )
    with pytest.raises(UsageError, match="The constraint 'edge' of 'knife' is one on velocities"):
        spectrum(knife)


def test_prescribed_motions_are_refused() -> None:
    driven = LagrangeModel(
        "driven", {"x": "vx", "y": "vy"}, [[1, 0], [0, 1]], ["-x", "-y"], constraints=["x - s"], inputs=["s"]
    )
    with pytest.raises(UsageError, match="Inputs of 'driven' prescribe a motion"):
        spectrum(driven)


def test_replaced_constraints_are_refused() -> None:
    with pytest.raises(UsageError, match="no longer belong to its 1 multipliers"):
        spectrum(cartesian_pendulum().with_constraints([]))


def test_a_point_off_the_constraints_is_refused() -> None:
    model = four_bar()
    x = model.start.states.copy()
    x[0] += 0.01
    with pytest.raises(ConstraintError, match=r"not on the manifold: 'rod A0B0' is .* instead of 0") as caught:
        spectrum(model, OperatingPoint(0.0, x, np.zeros(1)))
    assert "rod A0B0" in caught.value.residuals
    x = model.start.states.copy()
    x[-1] = 0.5
    with pytest.raises(ConstraintError, match="rate of "):
        spectrum(model, OperatingPoint(0.0, x, np.zeros(1)))
    flexible = flexible_double_pendulum(1)
    x = flexible.start.states.copy()
    x[len(x) // 2] = 0.5
    with pytest.raises(ConstraintError, match="rate of "):
        spectrum(flexible, OperatingPoint(0.0, x, flexible.start.inputs))


def test_a_velocity_goes_with_its_position() -> None:
    lin = fl.linearize(four_bar(), formulation="mcs", independent=["w", "phi"])
    assert lin.states.names == ("phi", "w")
    with pytest.raises(UsageError, match="'vx0' is the rate of 'x0', which is not among the independent"):
        spectrum(four_bar(), independent=["phi", "vx0"])


def test_a_linkage_without_matrices_is_refused() -> None:
    with pytest.raises(UsageError, match="has 1 loop or more, not 0"):
        four_bar_form(0)
    with pytest.raises(UsageError, match=r"all rods of the linkage lie on one line.*four_bar\(singular=True\)"):
        four_bar_form(2, angle=np.pi)


def test_a_formulation_goes_with_its_own_coordinates_and_slopes() -> None:
    for other in ({"coordinates": "tangent"}, {"derivatives": "differences"}, {"one_sided": "left"}):
        with pytest.raises(UsageError, match="A formulation takes exact derivatives and coordinates of its own"):
            fl.linearize(four_bar(), formulation="rcs", **other)  # type: ignore[arg-type]


def test_a_penalty_without_a_linear_model_says_why() -> None:
    """Far too large, it leaves nothing of the system to make a linear model of."""
    found: Spectrum = spectrum(four_bar(), None, UCS(1e9))
    assert found.linear is not None
    assert any(r.kind == "penalty" for r in found.linear.warnings)
