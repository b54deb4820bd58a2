"""Points where there is no linear model of both sides, and columns that are moved together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal
from unittest.mock import patch

import numpy as np
import pytest

import fmilin as fl
from fmilin import Differences
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.evaluator import PointEvaluator
from fmilin.numerics.differences.coloring import column_groups, tangent_pattern
from fmilin.numerics.differences.differences import EventCrossingError, slopes
from fmilin.signals import FloatArray, Signals
from fmilin.systems import cartesian_pendulum, rolling_disk
from tests.by_hand import FunctionModel, Parts, lags, pendulum


def kinked(k_left: float, k_right: float, *, at: float = 0.0, exact: bool = False) -> FunctionModel:
    """A mass between two different springs, x'' = -k(x) (x - at) - x^2, started at x = 0."""

    def stiffness(x: float) -> float:
        return k_left if x < at else k_right

    def jacobians(t: float, s: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([[0.0, 1.0], [-stiffness(s[0]) - 2 * s[0], 0.0]]), np.zeros((2, 0))

    return FunctionModel(
        Parts(
            ["x", "v"],
            [0.0, 0.0],
            lambda t, s, u: np.array([s[1], -stiffness(s[0]) * (s[0] - at) - s[0] ** 2]),
            jacobians=jacobians if exact else None,
        )
    )


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("left", "right"), [(1.0, 3.0), (2.0, 2.2), (5.0, 0.0), (-1.0, 1.0)])
def test_a_kink_is_named_with_both_slopes(exact: bool, left: float, right: float) -> None:
    with pytest.raises(fl.NumericalError, match=r"kink at the point: d der\(v\) / d x is .* one_sided=") as caught:
        fl.linearize(kinked(left, right, exact=exact))
    assert caught.value.variable == "x"
    assert f"{-left:.3g}" in str(caught.value)


@pytest.mark.parametrize(("side", "expected"), [("left", -1.0), ("right", -3.0)])
def test_one_side_may_be_chosen(side: str, expected: float) -> None:
    lin = fl.linearize(kinked(1.0, 3.0), one_sided=side)  # type: ignore[arg-type]
    assert lin.A[1, 0] == pytest.approx(expected, abs=1e-9)
    assert abs(lin.A[1, 0] - expected) <= 10 * lin.accuracy.A * 3.0


def test_beside_the_kink_there_is_none() -> None:
    lin = fl.linearize(kinked(1.0, 3.0, at=1e-4))
    assert lin.A[1, 0] == pytest.approx(-1.0, abs=1e-6)


@pytest.mark.parametrize("power", [2, 3, 4, 5])
def test_smooth_functions_are_no_kinks(power: int) -> None:
    result = slopes(lambda j, s: np.array([s**power, 1 + s + s**power]), np.array([0.0, 1.0]), np.ones(1))
    assert not result.jump.any()
    np.testing.assert_allclose(result.J[:, 0], [0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize("derivatives", ["auto", "differences"])
def test_a_jump_by_one_turn_is_neither_a_kink_nor_a_slope_of_1e14(derivatives: str) -> None:
    """The angle of a pendulum that stands upright lies on the cut of atan2; its derivative exists."""
    model = cartesian_pendulum(angle=np.pi)
    linear = fl.linearize(model, derivatives=derivatives)
    assert linear.C[0] == pytest.approx([-1.0, 0.0], abs=1e-8)
    exact = fl.linearize(model, derivatives="exact")
    assert exact.C[0] == pytest.approx([-1.0, 0.0], abs=1e-12)
    without = fl.linearize(model, outputs=["ax"], derivatives=derivatives)
    np.testing.assert_allclose(without.D, [[1.0]], rtol=1e-9)


@pytest.mark.parametrize("derivatives", ["auto", "differences"])
@pytest.mark.parametrize("coordinates", ["partition", "tangent"])
@pytest.mark.parametrize(("speed", "radius", "gravity"), [(2.7, 1.0, 1.0), (3.0, 0.3, 9.81), (3.0, 0.1, 9.81)])
def test_a_row_of_rounding_is_neither_a_kink_nor_a_wrong_derivative(
    derivatives: str, coordinates: str, speed: float, radius: float, gravity: float
) -> None:
    """All terms of the spin acceleration of an upright disk cancel: what is left of its slopes is 1e-16 or nothing."""
    model = rolling_disk(speed, radius=radius, gravity=gravity)
    lin = fl.linearize(model, derivatives=derivatives, coordinates=coordinates)
    assert [w.kind for w in lin.warnings] == ["steady" if coordinates == "partition" else "off-equilibrium"]


def test_a_row_of_rounding_beside_fast_rows_hides_no_wrong_derivative() -> None:
    """Nine decades between the fastest rate and the row whose directional derivative is zero with success."""
    A = np.array([[-1e6, 0.0], [1e-3, -1e-3]])
    said = np.array([[-1e6, 0.0], [0.0, 0.0]])
    model = FunctionModel(
        Parts(["fast", "slow"], [1.0, 1.0], lambda t, s, u: A @ s, jacobians=lambda t, s, u: (said, np.zeros((2, 0))))
    )
    lin = fl.linearize(model)
    np.testing.assert_allclose(lin.A, A, rtol=1e-6)
    assert [w.kind for w in lin.warnings].count("directional-derivative") == 2


@pytest.mark.parametrize(("constant", "count"), [(0.0, 0), (3e-9, 1)])
def test_rounding_of_a_derivative_that_cancels_is_not_wrong_but_a_constant_is(constant: float, count: int) -> None:
    """The zero current of a balanced machine: terms of 1e5 cancel in its derivative, in all bits but the last ones."""

    def jacobians(t: float, s: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        rounding = 1e5 * sum(np.cos(s[0] + 2 * np.pi / 3 * phase) for phase in (0, 1, 2))
        return np.array([[-1.0, 0.0], [rounding + constant, 0.0]]), np.zeros((2, 0))

    parts = Parts(["angle", "zero"], [0.4, 0.0], lambda t, s, u: np.array([-s[0], 0.0]), jacobians=jacobians)
    assert abs(jacobians(0.0, np.array([0.4, 0.0]), np.zeros(0))[0][1, 0]) > 1e-12
    lin = fl.linearize(FunctionModel(parts))
    np.testing.assert_allclose(lin.A, [[-1.0, 0.0], [0.0, 0.0]], atol=1e-10)
    assert [w.kind for w in lin.warnings].count("directional-derivative") == count


def test_the_step_of_a_difference_that_passes_for_exact_is_seen_on_a_manifold() -> None:
    """Far below the size of its row, and above what solving for the constraint leaves of our own differences."""
    A = -np.eye(3)
    said = A.copy()
    said[2, 0] = 2.4e-8
    parts = Parts(["a", "b", "c"], [1.0, 1.0, 1.0], lambda t, s, u: A @ s, constraints=["a - b"])
    parts.jacobians = lambda t, s, u: (said, np.zeros((3, 0)))
    lin = fl.linearize(FunctionModel(parts), independent=["a", "c"])
    np.testing.assert_allclose(lin.A, -np.eye(2), atol=1e-9)
    assert [w.kind for w in lin.warnings].count("directional-derivative") == 1


def test_outputs_that_cancel_do_not_spoil_the_estimates_of_others() -> None:
    """Residuals as outputs: on the manifold they are zero but for rounding, wherever the coordinates go."""
    model = pendulum(angle=0.7, rate=0.3)
    model.outputs = Signals(["ax", "residual", "residual_rate"])
    rates = model.parts.output
    assert rates is not None
    model.parts.output = lambda t, s, u: np.array(
        [*rates(t, s, u), s[0] ** 2 + s[1] ** 2 - 1.3**2, s[0] * s[2] + s[1] * s[3]]
    )
    for coordinates in ("partition", "tangent"):
        lin = fl.linearize(model, coordinates=coordinates, derivatives="differences")
        assert max(lin.accuracy.A, lin.accuracy.C) <= 1e-9
        np.testing.assert_allclose(lin.C[1:], 0, atol=1e-12)


class Switching(FunctionModel):
    """x' = -x with an event where x = surface; the equations of the other side are never seen."""

    surface = 1.0

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([1.0, x[0] - self.surface])


def switching(surface: float) -> FunctionModel:
    model = Switching(Parts(["x"], [1.0], lambda t, s, u: -(s**2)))
    model.surface = surface
    return model


def test_an_event_at_the_point_is_refused_by_name() -> None:
    with pytest.raises(fl.NumericalError, match="event indicator 2 changes sign as soon as 'x' moves to the right"):
        fl.linearize(switching(1.0))


def test_an_event_is_of_those_that_it_belongs_to() -> None:
    """Four rooms that are moved together, each with a thermostat, of which one switches at the point."""
    model = Switching(Parts(["hall", "study", "kitchen", "attic"], [1.0, 2.0, 3.0, 4.0], lambda t, s, u: -s))
    model.structure = np.eye(4, dtype=bool)
    model.event_indicators = lambda t, x, u: x - [0.5, 1.0, 3.0, 2.0]  # type: ignore[method-assign]
    with pytest.raises(fl.NumericalError, match="event indicator 3 changes sign as soon as 'kitchen' moves to the"):
        fl.linearize(model)


def test_an_event_beside_the_point_shortens_the_step() -> None:
    lin = fl.linearize(switching(1.0 + 1e-5))
    assert lin.A[0, 0] == pytest.approx(-2.0, rel=1e-7)


@pytest.mark.parametrize(("surface", "most"), [(50.0, 40), (1.0 + 1e-3, 70)])
def test_event_indicators_are_read_where_a_step_could_cross(surface: float, most: int) -> None:
    """Along the common direction, and once for each of twelve states; along the one with an event beside it always."""
    model = Switching(Parts([f"x{i}" for i in range(12)], [1.0] * 12, lambda t, s, u: -(s**2)))
    model.surface = surface
    with patch.object(Switching, "event_indicators", autospec=True, side_effect=Switching.event_indicators) as reads:
        lin = fl.linearize(model)
    np.testing.assert_allclose(lin.A, -2.0 * np.eye(12), atol=1e-8)
    assert 12 <= reads.call_count <= most < lin.method.evaluations


def test_an_event_indicator_that_stands_still_at_first_is_read_farther_away() -> None:
    """It stays at -0.1 up to x = 1.9 and is 0 at x = 2, beyond which the rate jumps: a step of 1 lies there."""
    model = Switching(Parts(["x"], [1.0], lambda t, s, u: -(s**2) + 10.0 * (s > 2.0)))
    model.event_indicators = lambda t, x, u: np.maximum(x - 2.0, -0.1)  # type: ignore[method-assign]
    point = model.start
    base = model.evaluate(point.time, point.states, point.inputs)
    nearby = Neighbourhood(PointEvaluator(model), build_frame(model, point), point, base)
    nearby.at(np.array([1e-3]))
    with pytest.raises(EventCrossingError):
        nearby.at(np.array([1.5]))
    nearby.at(np.array([0.5]))


def test_the_side_without_the_event_may_be_chosen() -> None:
    lin = fl.linearize(switching(1.0), one_sided="left")
    assert lin.A[0, 0] == pytest.approx(-2.0, rel=1e-8)


def test_the_side_with_the_event_is_not_advised_again() -> None:
    with pytest.raises(fl.NumericalError, match=r"the requested side\. .*one_sided='left', .*hold_modes=True"):
        fl.linearize(switching(1.0), one_sided="right")


class Stuck(Switching):
    """An event as soon as x moves to either side."""

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([x[0] - self.surface, self.surface - x[0]])


def test_between_two_events_the_present_mode_is_what_can_be_had() -> None:
    model = Stuck(Parts(["x"], [1.0], lambda t, s, u: -(s**2)))
    for side in (None, "left", "right"):
        with pytest.raises(fl.NumericalError, match=r"Events lie on both sides.*hold_modes=True") as refusal:
            fl.linearize(model, one_sided=side)
        assert "one_sided=" not in str(refusal.value)
    lin = fl.linearize(model, hold_modes=True)
    assert lin.A[0, 0] == pytest.approx(-2.0, rel=1e-8)
    (remark,) = [w for w in lin.warnings if w.kind == "held"]
    assert "indicators: 1, 2" in str(remark)


# -- grouping ---------------------------------------------------------------------------------------


def chain(n: int, *, declared: bool = True, lie: bool = False) -> FunctionModel:
    """n independent pendulums in Cartesian coordinates side by side, each with its own rod."""
    one = pendulum(angle=0.7, rate=1.5)

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        parts = [one.parts.rates(t, s[4 * i : 4 * i + 4], np.zeros(1)) for i in range(n)]
        if lie:
            parts[0][2] += 0.5 * s[4]
        return np.concatenate(parts)

    model = FunctionModel(
        Parts(
            [f"{name}{i}" for i in range(n) for name in ("x", "y", "vx", "vy")],
            one.start.states.tolist() * n,
            rates,
            constraints=[f"x{i}^2 + y{i}^2 - 1.69" for i in range(n)],
        )
    )
    if declared:
        model.structure = np.kron(np.eye(n), np.ones((4, 4))).astype(bool)
    return model


def test_separate_mechanisms_share_their_perturbations() -> None:
    together, apart = fl.linearize(chain(5)), fl.linearize(chain(5, declared=False))
    np.testing.assert_allclose(together.A, apart.A, atol=1e-9)
    one = fl.linearize(chain(1))
    np.testing.assert_allclose(np.diag(together.A, 1)[::2], 1.0)
    assert together.method.evaluations < apart.method.evaluations - 20
    turning = 2 * (len(together.states) - len(one.states))  # A further on, asked for twice, column by column
    assert together.method.evaluations <= one.method.evaluations + 10 + turning


def test_smooth_columns_that_move_together_are_as_smooth_as_each_alone() -> None:
    """Few evaluations tell: whether slopes hold far away is compared along the direction in which the groups move."""
    few, many = fl.linearize(lags(9)), fl.linearize(lags(90))
    assert many.method.evaluations <= few.method.evaluations + 2
    assert many.method.evaluations <= 60
    x = np.array(lags(90).start.states)
    pulls = np.cos(np.diff(x))
    expected = np.diag(pulls, 1) + np.diag(pulls, -1)
    expected += np.diag(-1 - 9 * x**2 - expected.sum(axis=1))
    np.testing.assert_allclose(many.A, expected, atol=1e-9)


def test_a_false_declaration_of_independence_is_found_out() -> None:
    parts = dataclasses.replace(chain(2, lie=True).parts, constraints=[])
    honest = FunctionModel(parts)
    liar = FunctionModel(parts)
    liar.structure = np.kron(np.eye(2), np.ones((4, 4))).astype(bool)
    np.testing.assert_allclose(fl.linearize(liar).A, fl.linearize(honest).A, atol=1e-9)


def test_the_coloring_is_kept_with_the_model_and_follows_its_structure() -> None:
    model = chain(3)
    with patch("fmilin.manifold.tangent_patterns.tangent_pattern", wraps=tangent_pattern) as computed:
        first = fl.linearize(model)
        count = computed.call_count
        again = fl.linearize(model)
        assert count > 0
        assert computed.call_count == count
        model.structure = np.ones((12, 12), dtype=bool)
        apart = fl.linearize(model)
        assert computed.call_count > count
    np.testing.assert_array_equal(first.A, again.A)
    assert apart.method.evaluations > first.method.evaluations
    np.testing.assert_allclose(apart.A, first.A, atol=1e-9)


def test_groups_have_disjoint_rows() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        pattern = random.random((12, 9)) < 0.25
        groups = column_groups(pattern)
        assert sorted(j for g in groups for j in g) == list(range(9))
        for group in groups:
            assert (pattern[:, group].sum(axis=1) <= 1).all()


@pytest.mark.parametrize("options", [None, "left", "right"])
@pytest.mark.parametrize("strength", [1e-1, 1e-4])
def test_an_undeclared_dependency_is_found_out_where_it_is_a_small_part_of_its_row(
    options: Literal["left", "right"] | None, strength: float
) -> None:
    """Its column moves together with one on which the row depends."""
    honest, n = lags(12), 12
    plain = honest.parts.rates

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        answer = plain(t, s, u)
        answer[3] += strength * s[9]
        return answer

    liar = FunctionModel(dataclasses.replace(honest.parts, rates=rates))
    liar.structure = honest.structure
    lin = fl.linearize(liar, one_sided=options)
    assert lin.A[3, 9] == pytest.approx(strength, abs=1e-6 * strength + 1e-8)
    assert lin.method.evaluations > fl.linearize(honest, one_sided=options).method.evaluations + n


@pytest.mark.parametrize(
    "row",
    [
        lambda x: np.round(x / 1e-7) * 1e-7,
        lambda x: abs(x - 0.1001),
        lambda x: float(x > 0.101),
        lambda x: 1e-3 * np.tanh((x - 0.1) / 1e-4),
    ],
    ids=["stairs", "a kink beside the point", "a jump beside the point", "friction"],
)
def test_a_rough_row_leaves_the_groups_and_the_other_rows_as_they_are(row: Callable[[float], float]) -> None:
    smooth = lags(20)
    plain = smooth.parts.rates

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        answer = plain(t, s, u)
        answer[7] += row(s[8])
        return answer

    rough = FunctionModel(dataclasses.replace(smooth.parts, rates=rates))
    apart = fl.linearize(rough, keep_inaccurate=True)
    rough.structure = smooth.structure
    together = fl.linearize(rough, keep_inaccurate=True)
    assert together.method.evaluations < 600
    assert (np.abs(together.A - apart.A) <= 10 * (together.errors.A + apart.errors.A)).all()
    others = np.delete(together.errors.A, 7, axis=0)
    assert others.max() < 1e-9


def test_groups_are_as_few_as_a_band_allows() -> None:
    """One row depends on three columns, so that three groups are the least; the greedy order by fullness takes four."""
    i = np.arange(60)
    band = np.abs(i[:, None] - i) <= 1
    assert len(column_groups(np.vstack((band, i == 30)))) == 3


@pytest.mark.parametrize("states", [40, 250])  # with full matrices, and with sparse ones
@pytest.mark.parametrize("density", [0.004, 0.3])
def test_patterns_are_those_of_walks_along_the_entries(states: int, density: float) -> None:
    random = np.random.default_rng(7)
    structure = random.random((states + 3, states + 2)) < density
    T, x_u = (random.random((states, width)) < 0.02 for width in (7, 2))
    for constraints in (random.random((0, states)) < 0.5, random.random((9, states)) < 3 / states):
        linked = {i: {i} for i in range(states)}
        for row in constraints:
            joined = set().union(*(linked[i] for i in np.flatnonzero(row).tolist()))
            for i in joined:
                linked[i] = joined
        expected = np.zeros((states + 3, 9), dtype=bool)
        expected[:, 7:] = structure[:, states:]
        for column, moved in enumerate(np.hstack((T, x_u)).T):
            reached = set().union(*(linked[i] for i in np.flatnonzero(moved).tolist()))
            expected[:, column] |= structure[:, sorted(reached)].any(axis=1)
        actual = tangent_pattern(structure, constraints, T.astype(float), x_u.astype(float))
        np.testing.assert_array_equal(actual, expected)


def test_constraints_connect_states() -> None:
    structure = np.eye(3, dtype=bool)
    connected = tangent_pattern(
        structure, np.array([[True, True, False]]), np.array([[1.0], [0.0], [0.0]]), np.zeros((3, 0))
    )
    assert connected[:, 0].tolist() == [True, True, False]


@pytest.mark.parametrize("tied", [False, True])
def test_which_rows_depend_on_which_coordinates_and_inputs(tied: bool) -> None:
    """Rows of x0 and u1, of x2, of x3 and u0; y0 moves x1, y1 moves x3, u0 moves x2; x0 and x1 are tied, or nothing."""
    structure = np.array([[1, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]], dtype=bool)
    T, x_u = np.zeros((4, 2)), np.zeros((4, 2))
    T[1, 0], T[3, 1], x_u[2, 0] = -0.5, 1.0, 3.0
    result = tangent_pattern(structure, np.array([[tied, tied, False, False]]), T, x_u)
    np.testing.assert_array_equal(result, [[tied, 0, 0, 1], [0, 0, 1, 0], [0, 1, 1, 0]])
    alone = tangent_pattern(structure, np.array([[tied, tied, False, False]]), np.eye(4), np.zeros((4, 2)))
    np.testing.assert_array_equal(alone[0], [1, tied, 0, 0, 0, 1])


def test_plain_differences_keep_to_their_bound() -> None:
    """2 P + 2 nu evaluations and a constant: at every size."""
    counts = []
    for n in (2, 6):
        lin = fl.linearize(chain(n, declared=False), derivatives=Differences(order=2, retries=0))
        counts.append(lin.method.evaluations - 2 * len(lin.states))
    assert counts[0] == counts[1]
    assert counts[0] <= 25
