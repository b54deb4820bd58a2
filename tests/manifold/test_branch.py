"""Points with other values of held states: on the branch of the start, or with a word about it."""

from __future__ import annotations

from math import asin, cos, pi, sin, sqrt

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import FunctionModel, OdeModel
from fmilin.models.mechanism import Body, Joint, Loop, Mechanism, MechanismDescription, Placement
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, loader, slider_crank, stewart_platform
from tests.systems.linkages import four_bar_mechanism


def test_the_slider_stays_on_its_side() -> None:
    """Crank 0.1 m, rod 0.3 m: the slider at 0.1 cos(phi) + sqrt(0.09 - 0.01 sin^2(phi)), not at the other root."""
    model = slider_crank()
    for phi in (0.7, 2.0, -3.0, 5.0):
        point = fl.operating_point(model, {"phi": phi})
        at = 0.1 * cos(phi) + sqrt(0.3**2 - (0.1 * sin(phi)) ** 2)
        assert point.states[2] == pytest.approx(at, rel=1e-12)
        assert point.states[1] == pytest.approx(-phi - asin(0.1 * sin(phi) / 0.3), abs=1e-12)
        assert point.remarks == ()


@pytest.mark.parametrize("phi", [-2.4, 1.0, 3.0, -7.0])
def test_a_parallelogram_stays_one_through_its_folded_postures(phi: float) -> None:
    point = fl.operating_point(four_bar_mechanism(), {"phi": phi})
    np.testing.assert_allclose(point.states[:3], [phi, -phi, phi], atol=1e-9)
    x = fl.operating_point(four_bar(), {"phi": phi}).states
    np.testing.assert_allclose(x[:4], [cos(phi), sin(phi), 1 + cos(phi), sin(phi)], atol=1e-9)


def test_a_turning_point_is_remarked() -> None:
    """Hanging, y is lowest: y = -0.5 is reached to the left and to the right."""
    point = fl.operating_point(cartesian_pendulum(), {"y": -0.5})
    assert abs(point.states[0]) == pytest.approx(sqrt(0.75))
    assert [r.kind for r in point.remarks] == ["branch"]
    assert "turning point of y" in point.remarks[0].message
    assert "branch" in [w.kind for w in fl.linearize(cartesian_pendulum(), point).warnings]


def test_an_angle_of_many_turns_may_have_been_meant_in_degrees() -> None:
    (remark,) = fl.operating_point(slider_crank(), {"phi": 28.6}).remarks
    assert remark.kind == "unit"
    assert "is in rad" in remark.message
    assert "0.499" in remark.message
    rods = [Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1)) for name in ("left", "right")]
    joints = [
        Joint("a", "revolute", "ground", "left", position=pi / 3),
        Joint("b", "revolute", "left", "right", Placement((1, 0, 0)), position=-2 * pi / 3),
    ]
    eye = Loop("eye", "point_on_line", "ground", "right", Placement((1, 0, 0)), Placement((1, 0, 0)))
    triangle = Mechanism(MechanismDescription("triangle", rods, joints, [eye]))
    with pytest.raises(
        fl.ConstraintError, match=r"'a\.q' is in rad: 28\.6 is 4\.55 turns\. 28\.6 degrees would be 0\.499"
    ):
        fl.operating_point(triangle, {"a.q": 28.6})


class AskedOnTheManifoldOnly(FunctionModel):
    """A model that, like an FMU with a linear system inside, refuses to be evaluated far off its manifold."""

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> fl.Evaluation:
        """Refuse a rope that is shorter or longer than it is."""
        if abs(x[0] ** 2 + x[1] ** 2 - 1.0) > 1e-4:
            raise fl.NumericalError("The linear system for the accelerations is singular.")
        return super().evaluate(t, x, u)


def test_expressions_are_solved_before_the_model_is_asked() -> None:
    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        x, z, vx, vz = s
        tension = (vx**2 + vz**2 - 9.81 * z) / (x**2 + z**2)
        return np.array([vx, vz, -tension * x, -9.81 - tension * z])

    start = {"px": sin(0.3), "pz": -cos(0.3), "vx": 0.0, "vz": 0.0}
    model = AskedOnTheManifoldOnly("crane", start, rates).with_constraints([fl.Constraint.from_text("px^2 + pz^2 = 1")])
    point = fl.operating_point(model, {"pz": 0.0})
    np.testing.assert_allclose(point.states, [1.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_positions_alone_name_the_coordinates_of_a_model_without_constraints() -> None:
    model = OdeModel("swing", {"q": "v", "v": "-sin(q)"})
    assert fl.linearize(model, independent=["q"]).states.names == ("q", "v")
    with pytest.raises(fl.UsageError, match="2 "):
        fl.linearize(OdeModel("one", {"a": "b - a", "b": "-b"}), independent=["a"])


@pytest.mark.parametrize("moving", [False, True])
def test_gaps_and_their_slopes_without_dynamics_are_those_with(moving: bool) -> None:
    for model in (loader(), stewart_platform(), slider_crank()):
        x = model.start.states + 0.05 * np.random.default_rng(7).normal(size=len(model.states))
        if not moving:
            x[len(x) // 2 :] = 0.0
        constraints = model.constraint_gradient(0.0, x, model.start.inputs)
        procedure = model.exact_slopes(0.0, x, model.start.inputs)
        assert constraints is not None
        assert procedure is not None
        assert procedure.constraint_gradient is not None
        np.testing.assert_allclose(constraints[0], procedure.values.residuals, atol=1e-14)
        np.testing.assert_allclose(constraints[1], procedure.constraint_gradient, atol=1e-13)


def test_many_points_are_those_found_one_by_one() -> None:
    model = loader()
    angles = np.linspace(-0.2, 0.3, 7) + model.start.states[0]
    points = fl.operating_points(model, {"boom.q": angles, "lift_force": 3.0})
    assert len(points) == 7
    for k, point in enumerate(points):
        alone = fl.operating_point(model, {"boom.q": float(angles[k]), "lift_force": 3.0})
        np.testing.assert_allclose(point.states, alone.states, atol=1e-12)
        np.testing.assert_array_equal(point.inputs, alone.inputs)


@pytest.mark.parametrize("model", [four_bar_mechanism(), four_bar()], ids=["in batches", "one by one"])
def test_many_points_stay_on_their_branch(model: fl.Model) -> None:
    phi = np.linspace(2.2, -2.4, 30)
    points = fl.operating_points(model, {"phi": phi})
    y = [model.with_interface(None, ["coupler.y"]).evaluate(0.0, p.states, p.inputs).outputs[0] for p in points]
    np.testing.assert_allclose(y, np.sin(phi), atol=1e-9)


def test_a_point_that_cannot_be_assembled_is_named_among_many() -> None:
    with pytest.raises(fl.ConstraintError, match=r"Point 2 of 3 \(x = 1\.5\): .*cannot be satisfied"):
        fl.operating_points(cartesian_pendulum(angle=0.3), {"x": [0.5, 1.5, 0.2]})
    with pytest.raises(fl.UsageError, match="arrays of one length"):
        fl.operating_points(cartesian_pendulum(), {"x": [0.1, 0.2], "vx": [0.1]})
    assert fl.operating_points(OdeModel("free", {"x": "-x"}), {"x": [0.5, 1.0]})[1].states == [1.0]
