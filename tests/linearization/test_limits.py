"""What is just not believed any more, and what just is: each limit that guards a number is met from both sides.

The cases lie a factor of thirty or more beside a limit, so that no rounding decides them, and less than a thousand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, systems
from fmilin.manifold.verified_frame import build_frame
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts, pendulum
from tests.lyapunov.double_pendulum import in_cartesian_coordinates
from tests.systems import linkages

SYSTEMS: dict[str, Callable[[], fl.Model]] = {
    "by hand": lambda: pendulum(angle=0.7),
    "Lagrange's equations": lambda: systems.cartesian_pendulum(angle=0.7),
    "a mechanism": linkages.four_bar_mechanism,
    "Kane's equations": systems.rolling_disk,
}


def kinds(lin: fl.LinearModel) -> list[str]:
    return [w.kind for w in lin.warnings]


# -- the point -------------------------------------------------------------------------------------


def off_the_manifold(model: fl.Model, distance: float) -> fl.OperatingPoint:
    """Return the start moved by ``distance``, in sizes of the states, across the first constraint on positions."""
    start = model.start
    step = 1e-6
    gaps = [
        (model.evaluate(start.time, start.states + s * e, start.inputs).residuals[0], s, e)
        for e in np.eye(len(start.states))
        for s in (step, -step)
    ]
    slopes = np.array(
        [(ahead[0] - behind[0]) / (2 * step) for ahead, behind in zip(gaps[::2], gaps[1::2], strict=True)]
    )
    scales = model.states.scales(start.states)
    across = scales**2 * slopes / np.linalg.norm(scales * slopes)
    return start.with_states(start.states + distance * across)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6, 3e-7])
def test_a_point_beside_the_manifold_is_refused(name: str, distance: float) -> None:
    model = SYSTEMS[name]()
    with pytest.raises(fl.ConstraintError, match=r"not on the manifold|do(es)? not satisfy"):
        fl.linearize(model, off_the_manifold(model, distance))


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_point_that_rounding_put_beside_the_manifold_is_accepted(name: str) -> None:
    model = SYSTEMS[name]()
    lin = fl.linearize(model, off_the_manifold(model, 1e-10))
    assert 1e-11 < lin.accuracy.constraint_residual < 1e-9
    np.testing.assert_allclose(lin.A, fl.linearize(SYSTEMS[name]()).A, atol=1e-7)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 3e-5])
def test_start_values_that_miss_the_constraints_are_no_rounding(gap: float) -> None:
    parts = pendulum(angle=0.7).parts
    parts.start = [parts.start[0] + gap, *parts.start[1:]]
    with pytest.raises(fl.ConstraintError, match="start values do not satisfy"):
        fl.operating_point(FunctionModel(parts))


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-7])
def test_constraints_that_contradict_each_other_are_satisfied_nowhere(gap: float) -> None:
    """Halfway between x = 1 and x = 1 + gap nothing can be better, and nothing is good."""
    levels = [Constraint.from_text(f"x - 1 - {part!r}", level="velocity") for part in (0.0, gap)]
    model = FunctionModel(Parts(["x", "y"], [1.0, 0.5], lambda t, s, u: np.array([0.0, -s[1]]), constraints=levels))
    with pytest.raises(fl.ConstraintError, match="cannot be satisfied with y held"):
        fl.operating_point(model, {"y": 2.0})


@pytest.mark.parametrize(("angle", "said"), [(1e-2, True), (1e-6, True), (1e-8, True), (1e-12, False), (0.0, False)])
def test_a_point_that_moves_is_said_to_move(angle: float, *, said: bool) -> None:
    assert ("off-equilibrium" in kinds(fl.linearize(pendulum(angle=angle)))) == said


# -- coordinates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["x", "a = x"], ids=["a state", "an expression"])
@pytest.mark.parametrize("beside", [0.0, 1e-12, 3e-10])
def test_coordinates_that_determine_nothing_are_refused(named: str, beside: float) -> None:
    """x of a pendulum held out horizontally: all motions are along y."""
    with pytest.raises(fl.NumericalError, match=r"condition number"):
        fl.linearize(pendulum(angle=np.pi / 2 - beside), independent=[named])


@pytest.mark.parametrize("beside", [0.0, 3e-10])
@pytest.mark.parametrize("kind", ["Lagrange's equations", "Kane's equations"])
def test_coordinates_of_native_models_that_determine_nothing_are_refused(kind: str, beside: float) -> None:
    held_out = np.pi / 2 - beside
    models: dict[str, Callable[[], fl.Model]] = {
        "Lagrange's equations": lambda: systems.cartesian_pendulum(angle=held_out),
        "Kane's equations": lambda: in_cartesian_coordinates(held_out, 0.3),
    }
    model = models[kind]()
    named = ["x1", "x2"] if "x1" in model.states.names else ["x"]
    with pytest.raises(fl.NumericalError, match="condition number"):
        fl.linearize(model, independent=named)


@pytest.mark.parametrize(("beside", "doubtful"), [(1e-1, False), (1e-3, False), (1e-5, True), (1e-6, True)])
def test_coordinates_that_determine_little_are_remarked_on(beside: float, *, doubtful: bool) -> None:
    """Exactly: the circle ends too soon for differences along x."""
    angle = np.pi / 2 - beside
    parts = pendulum(angle=angle, exact=True).parts

    def jacobians(t: float, s: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        assert parts.jacobians is not None
        return parts.jacobians(t, s, np.zeros(1))[0][:4], np.zeros((4, 0))

    free = dataclasses.replace(parts, inputs=(), outputs=(), output=None, jacobians=jacobians)
    lin = fl.linearize(FunctionModel(free), independent=["x"], derivatives="exact")
    assert ("conditioning" in kinds(lin)) == doubtful
    assert lin.T[1, 0] == pytest.approx(np.tan(angle), rel=1e-14 * lin.accuracy.conditioning)


def nearly_parallel(*parts: float, measured: bool = False) -> FunctionModel:
    """States a, b, ..., z with z' = -z; a = 0, and a + part b = 0, a + part c = 0, ... for all parts."""
    names = [chr(ord("a") + i) for i in range(len(parts) + 1)]

    def sum_of(i: int) -> str:
        return f"{names[0]} + {parts[i]!r}*{names[i + 1]}"

    texts = [names[0], *map(sum_of, range(len(parts)))]
    observed = {
        f"g{i}": lambda t, s, u, i=i: float(s[0] + (parts[i - 1] * s[i] if i else 0.0)) for i in range(len(texts))
    }
    return FunctionModel(
        Parts(
            [*names, "z"],
            [0.0] * len(names) + [1.0],
            lambda t, s, u: np.array([*np.zeros(len(names)), -s[-1]]),
            constraints=[Constraint.from_text(c, level="velocity") for c in (observed if measured else texts)],
            observed=observed if measured else None,
        )
    )


@pytest.mark.parametrize(("part", "order"), [(1.0, 1), (1e-3, 1), (3e-7, 1), (1e-11, 2), (0.0, 2)])
def test_constraints_that_are_nearly_the_same_are_two_or_one(part: float, order: int) -> None:
    """The smaller singular value over the larger is half of ``part``: rounding cannot make 1e-7, nor unmake it.

    Between what rounding makes and the limit of rank they count as one, and that is said.
    """
    lin = fl.linearize(nearly_parallel(part))
    assert len(lin.states) == order
    assert ("rank" in kinds(lin)) == (part == 1e-11)


@pytest.mark.parametrize(("part", "order"), [(1.0, 1), (3e-3, 1), (1e-8, 2), (0.0, 2)])
def test_measured_constraints_that_are_nearly_the_same_are_two_or_one(part: float, order: int) -> None:
    assert len(fl.linearize(nearly_parallel(part, measured=True)).states) == order


def test_a_rank_that_could_be_another_is_remarked_on() -> None:
    """Singular values of about 1, 2e-7 and 5e-9: the third is a zero, but not by far."""
    lin = fl.linearize(nearly_parallel(4e-7, 1e-8))
    assert len(lin.states) == 2
    assert "rank" in kinds(lin)


@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-8])
def test_a_measured_row_of_errors_takes_no_freedom_away(noise: float) -> None:
    """The rate of a^2 + b^2 is zero however the point turns: what differences leave of its gradient is their error."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        rough = noise * np.sin(1e9 * (s[0] + s[1]))
        return np.array([-s[1] * s[2], s[0] * s[2], -s[0] + rough])

    turning = FunctionModel(
        Parts(
            ["a", "b", "u"],
            [np.cos(0.4), np.sin(0.4), 0.8],
            rates,
            constraints=["gap"],
            observed={"gap": lambda t, s, u: float(s[0] ** 2 + s[1] ** 2 - 1)},
        )
    )
    lin = fl.linearize(turning)
    assert lin.states.names == ("b", "u")
    np.testing.assert_allclose(lin.A[0], [-np.tan(0.4) * 0.8, np.cos(0.4)], atol=1e-6)


# -- the motion keeps the constraints ---------------------------------------------------------------


@pytest.mark.parametrize("measured", [False, True], ids=["written", "inside the model"])
@pytest.mark.parametrize("part", [1e-2, 3e-3, 3e-5])
def test_a_quantity_that_hardly_changes_is_no_constraint(part: float, *, measured: bool) -> None:
    """An ellipse for the circle: terms cancel up to ``part``. Where they are differenced 1e-4 is what can be told."""
    if measured and part < 1e-4:
        part *= 30
    parts = pendulum(angle=0.7, rate=1.5).parts
    x, y, _, _ = parts.start
    weight = 1 + part

    def ellipse(t: float, s: FloatArray, u: FloatArray) -> float:
        return float(s[0] ** 2 + weight * s[1] ** 2 - x**2 - weight * y**2)

    parts.parameters = {"start": x**2 + weight * y**2}
    text = f"x^2 + {weight!r}*y^2 - start" if not measured else "ellipse"
    parts.observed = {"ellipse": ellipse} if measured else None
    parts.constraints = [Constraint.from_text(text, level="velocity")]
    with pytest.raises(fl.ConstraintError, match="motion does not keep"):
        fl.linearize(FunctionModel(parts))


@pytest.mark.parametrize("part", [1e-2, 3e-5])
def test_an_input_that_hardly_lifts_the_model_off_is_refused(part: float) -> None:
    right = pendulum(angle=0.7)

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        lifted: FloatArray = right.parts.rates(t, s, u) + part * u[0] * np.array([0.0, 0.0, s[0], s[1]])
        return lifted

    with pytest.raises(fl.ConstraintError, match="The input 'F' moves the model off"):
        fl.linearize(FunctionModel(dataclasses.replace(right.parts, rates=rates)))


@pytest.mark.parametrize("gravity", [0.0, 9.81])
@pytest.mark.parametrize("beside", [1e-3, 1e-5, 1e-6, 3e-7, 1e-8])
@pytest.mark.parametrize("exact", [False, True], ids=["measured", "exact"])
def test_an_input_that_the_rod_nearly_cancels_is_one(beside: float, gravity: float, *, exact: bool) -> None:
    """Held out horizontally, the rod takes F up but for sin(beside): what rounding leaves moves nothing off."""
    model = pendulum(angle=np.pi / 2 - beside, gravity=gravity, exact=exact)
    build_frame(model, model.start)  # slopes of the inputs alone, as verification and simulation ask for them
    lin = fl.linearize(model)
    assert lin.states.names == ("y", "vy")
    np.testing.assert_allclose(lin.B[:, 0], [0.0, np.sin(2 * beside) / 4], rtol=1e-3, atol=1e-15)


@pytest.mark.parametrize(("part", "beside"), [(1.0, 0.0), (1e-9, 0.0), (1e-9, 1e-8), (1e-9, 1e-6), (1e-6, 1e-3)])
def test_an_input_along_the_rod_is_refused_where_the_rod_cancels_another(part: float, beside: float) -> None:
    right = pendulum(angle=np.pi / 2 - beside, gravity=0.0)

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        pulled: FloatArray = right.parts.rates(t, s, u) + part * u[0] * np.array([0.0, 0.0, s[0], s[1]])
        return pulled

    with pytest.raises(fl.ConstraintError, match="The input 'F' moves the model off"):
        fl.linearize(FunctionModel(dataclasses.replace(right.parts, rates=rates)))


@pytest.mark.parametrize("strength", [1.0, 1e6, 1e10])
def test_an_input_that_does_much_elsewhere_is_refused_all_the_same(strength: float) -> None:
    """The heater is strong, and pushes along the rod as well."""
    right = pendulum(angle=0.7)

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        moved = right.parts.rates(t, s[:4], np.zeros(1)) + u[0] * np.array([0.0, 0.0, s[0], s[1]])
        return np.append(moved, strength * u[0] - s[4])

    parts = dataclasses.replace(
        right.parts, states=["x", "y", "vx", "vy", "heat"], start=[*right.parts.start, 1.0], rates=rates,
        outputs=(), output=None,
    )  # fmt: skip
    with pytest.raises(fl.ConstraintError, match="The input 'F' moves the model off"):
        fl.linearize(FunctionModel(parts))


@pytest.mark.parametrize("part", [1e-6, 1e-13])
def test_noise_excuses_no_pull_that_is_larger_than_noise_can_be(part: float) -> None:
    """Slopes of F are known to 1e-16 here: ten times that would be excused."""
    right = pendulum(angle=np.pi / 2, gravity=0.0, exact=True)
    exact = right.parts.jacobians
    assert exact is not None

    def jacobians(t: float, s: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        Jx, Ju = exact(t, s, u)
        return Jx, Ju + part * np.array([[0.0], [0.0], [s[0]], [s[1]], [0.0]])

    pulled = FunctionModel(dataclasses.replace(right.parts, jacobians=jacobians))
    with pytest.raises(fl.ConstraintError, match="The input 'F' moves the model off"):
        build_frame(pulled, pulled.start)
