"""Singular configurations: refused in words, or linearized over the enlarged set of velocities on request."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fmilin as fl
from fmilin.manifold.rank import branch_frequencies
from fmilin.models import NullSpaceModel, SymbolicModel
from fmilin.models.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement
from fmilin.systems import cartesian_pendulum, five_bar, four_bar, furuta_pendulum
from tests.by_hand import pendulum

G = 9.81


def folded(loops: int = 1) -> tuple[SymbolicModel, fl.OperatingPoint]:
    model = four_bar(loops=loops, singular=True)
    return model, fl.OperatingPoint(0.0, model.start.states, model.start.inputs)


def test_the_published_pairs_of_the_one_loop_linkage() -> None:
    """González et al., section 5.1: 3.4310 i and 4.4294 i; w^2 = 6g/5 and 2g."""
    model, point = folded()
    lin = fl.linearize(model, point, at_singularity=True)
    squares = np.unique(np.round(np.abs(lin.eigenvalues()) ** 2, 9))
    np.testing.assert_allclose(squares, [6 * G / 5, 2 * G], rtol=1e-12)
    np.testing.assert_allclose(np.unique(np.round(np.abs(lin.eigenvalues()), 4)), [3.4310, 4.4294])
    assert lin.method.coordinates == "enlarged"


def test_the_frequencies_along_the_branches_are_intrinsic_ones() -> None:
    """The parallelogram has w^2 = 3g(3N+1)/(2(4N+1)), the folding rod 3g(3j-1)/(2(4j-2)), N = j = 1."""
    model, point = folded()
    form = model.second_order_form(0.0, point.states, point.inputs)
    assert form is not None
    squares = sorted(w2 for _, w2 in branch_frequencies(form))
    np.testing.assert_allclose(squares, sorted([3 * G * 4 / 10, 3 * G * 2 / 4]), rtol=1e-12)
    (remark,) = fl.linearize(model, point, at_singularity=True).warnings
    assert remark.kind == "singular"
    assert "3.836013556 rad/s" in str(remark)
    assert "3.431034829 rad/s" in str(remark)


def test_the_parallelogram_branch_is_where_the_linkage_really_swings() -> None:
    """Beside the posture the linkage is regular: its linearization there tends to the intrinsic frequency."""
    model, _ = folded()
    found = []
    for angle in (0.02, 0.01):
        c, s = np.cos(angle), np.sin(angle)
        values = {"x0": c, "y0": s, "x1": 1 + c, "y1": s, "phi": angle}
        point = fl.operating_point(model, values)
        lin = fl.linearize(model, point, independent=["phi"])
        found.append(-lin.A[1, 0])  # theta'' = -w^2 sin(theta): the slope is w^2 cos(theta)
    np.testing.assert_allclose(found, np.array([np.cos(0.02), np.cos(0.01)]) * 12 * G / 10, rtol=1e-6)


@pytest.mark.parametrize("loops", [1, 2, 4])
def test_without_the_flag_it_is_refused_with_what_to_do(loops: int) -> None:
    model, point = folded(loops)
    with pytest.raises(
        fl.NumericalError, match=rf"singular configuration: {loops + 2} constraints .* at_singularity=True"
    ):
        fl.linearize(model, point)
    assert len(fl.linearize(model, point, at_singularity=True).states) == 2 * (loops + 1)


def test_at_a_regular_point_both_ways_agree() -> None:
    model = four_bar()
    regular = fl.linearize(model, independent=["phi"], outputs=["phi", "der(w)", "coupler.y"])
    chosen = model.with_interface(outputs=["phi", "der(w)", "coupler.y"])
    enlarged = fl.linearize(chosen, fl.operating_point(model), at_singularity=True, independent=["phi"])
    for name in "ABCDT":
        np.testing.assert_allclose(getattr(enlarged, name), getattr(regular, name), atol=1e-11)


def test_a_regular_point_is_not_called_singular_with_constraints_and_without_any() -> None:
    for model in (four_bar(), furuta_pendulum()):
        regular, enlarged = fl.linearize(model), fl.linearize(model, at_singularity=True)
        assert "singular" not in [warning.kind for warning in enlarged.warnings]
        np.testing.assert_allclose(enlarged.eigenvalues(), regular.eigenvalues(), atol=1e-7)


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(fl.UsageError, match="has no accessible mass matrix"):
        fl.linearize(pendulum(), at_singularity=True)
    moving = cartesian_pendulum(angle=0.3, rate=1.0)
    with pytest.raises(fl.NumericalError, match="must be an equilibrium"):
        fl.linearize(moving, at_singularity=True)
    model, point = folded()
    with pytest.raises(fl.UsageError, match="2 independent positions are needed"):
        fl.linearize(model, point, at_singularity=True, independent=["phi"])
    with pytest.raises(fl.NumericalError, match="do not determine the others"):
        fl.linearize(model, point, at_singularity=True, independent=["phi", "x0"])


@pytest.mark.parametrize("model", [NullSpaceModel(four_bar(singular=True)), five_bar(singular=True)])
def test_models_that_can_be_evaluated_there_are_refused_for_the_same_reason(model: SymbolicModel) -> None:
    with pytest.raises(fl.NumericalError, match=r"is a singular configuration: .* at_singularity=True"):
        fl.linearize(model, fl.OperatingPoint(0.0, model.start.states, model.start.inputs))


@pytest.mark.parametrize("angle", [0.0, 1e-16, 1e-10])
def test_a_parallelogram_that_lies_flat_is_singular_and_nothing_else(angle: float) -> None:
    """The row across is sin(pi): rounding, seen by its size beside the point. A torque pushes off what is left."""
    bars = [Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1)) for name in ("crank", "coupler", "rocker")]
    at_end = Placement((1.0, 0.0, 0.0))
    joints = [
        Joint("a", "revolute", "ground", "crank", position=angle),
        Joint("b", "revolute", "crank", "coupler", at_end, position=-angle),
        Joint("c", "revolute", "coupler", "rocker", at_end, position=np.pi + angle),
    ]
    pin = Loop("pin", "point_on_line", "ground", "rocker", at_end, at_end)
    flat = MechanismDescription("flat", bars, joints, [pin], inputs=[JointForce("torque", "a")], gravity=(0, -9.81, 0))
    with pytest.raises(fl.NumericalError, match=r"The point is a singular configuration: 1 .*, 2 near it"):
        fl.linearize(Mechanism(flat))


@pytest.mark.parametrize("stresses", [0, 1, 2])
def test_two_branches_cross_where_there_is_one_self_stress(stresses: int) -> None:
    """x = 0 and y z = 0, so many times, with springs of 1, 2 and 3 on unit masses: along y w^2 = 2, along z w^2 = 3."""
    form = SimpleNamespace(
        G=np.vstack((np.eye(3)[:1], np.zeros((stresses, 3)))),
        bend=lambda v: np.concatenate(([0.0], np.full(stresses, 2 * v[1] * v[2]))),
        M=np.eye(3),
        force_states=-np.diag([1.0, 2.0, 3.0]),
        positions=[0, 1, 2],
    )
    found = branch_frequencies(form)  # type: ignore[arg-type]
    assert len(found) == (2 if stresses == 1 else 0)
    for direction, square in found:
        along = int(np.argmax(np.abs(direction)))
        np.testing.assert_allclose(np.abs(direction), np.eye(3)[along], atol=1e-12)
        assert square == pytest.approx(along + 1.0)
    assert sorted(round(square) for _, square in found) == ([2, 3] if found else [])
