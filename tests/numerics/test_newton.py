"""One Newton solver for a batch of points: closed forms, verdicts, bounds, independence of the points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from fmilin.numerics.dense_system import DenseSystem
from fmilin.numerics.newton import NewtonResult, NewtonRules, Verdict, find_zeros, follow_zeros
from fmilin.signals import FloatArray

Function = Callable[[FloatArray], FloatArray]


class Functions(DenseSystem):
    """One function and its Jacobian for each point; counts how many points are evaluated together."""

    def __init__(
        self,
        values: Sequence[Function],
        slopes: Sequence[Function],
        low: FloatArray | None = None,
        high: FloatArray | None = None,
    ) -> None:
        super().__init__(1 if low is None else low.shape[-1], low, high)
        self.functions = values
        self.derivatives = slopes
        self.calls: list[int] = []

    def values(self, points: np.ndarray, z: FloatArray) -> FloatArray:
        self.calls.append(len(points))
        with np.errstate(invalid="ignore"):
            return np.array([self.functions[p](row) for p, row in zip(points, z, strict=True)])

    def jacobians(self, points: np.ndarray, z: FloatArray, r: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.array([self.derivatives[p](row) for p, row in zip(points, z, strict=True)])


def solve_one(
    value: Function, slope: Function, start: list[float], low: FloatArray | None = None, high: FloatArray | None = None
) -> NewtonResult:
    n = len(start)
    low = np.full(n, -np.inf) if low is None else low
    high = np.full(n, np.inf) if high is None else high
    return find_zeros(Functions([value], [slope], low, high), np.array([start]))


def make_quadratics(constants: list[float]) -> Functions:
    """Return x^2 + c = 0 for each c."""

    def make_value(constant: float) -> Function:
        return lambda z: z**2 + constant

    return Functions([make_value(c) for c in constants], [lambda z: 2.0 * z[:, None]] * len(constants))


def test_quadratics_with_a_root_with_none_and_with_a_double_root_are_told_apart_in_one_batch() -> None:
    result = find_zeros(make_quadratics([-4.0, 1.0, 0.0]), np.array([[3.0], [3.0], [3.0]]))
    assert result.verdicts[0] is Verdict.CONVERGED
    assert result.verdicts[1] in (Verdict.STALLED, Verdict.DIVERGED)
    assert result.verdicts[2] is Verdict.CONVERGED
    assert result.z[0, 0] == pytest.approx(2.0, rel=1e-15)
    assert result.r[1, 0] >= 1.0
    assert abs(result.z[2, 0]) < 1e-5  # a double root is known to the root of rounding


def test_points_of_a_batch_are_evaluated_together() -> None:
    system = make_quadratics([-1.0, -4.0, -9.0])
    find_zeros(system, np.array([[1.5], [2.5], [3.5]]))
    assert max(system.calls) == 3
    assert len(system.calls) < 10


@pytest.mark.parametrize("seed", range(5))
def test_each_point_of_a_random_batch_ends_where_it_ends_alone(seed: int) -> None:
    """Polynomial systems of three equations, regular and singular, with roots and without."""
    random = np.random.default_rng(seed)
    count, n = 12, 3
    A = random.standard_normal((count, n, n))
    A[::3, 2] = A[::3, 1]  # singular: two equations say the same, or contradict each other
    Q = 0.3 * random.standard_normal((count, n, n, n))
    b = random.standard_normal((count, n))

    def make_value(k: int) -> Function:
        return lambda z: np.asarray(A[k] @ z + Q[k] @ z @ z + b[k])

    def make_slope(k: int) -> Function:
        return lambda z: np.asarray(A[k] + (Q[k] + Q[k].transpose(0, 2, 1)) @ z)

    values = [make_value(k) for k in range(count)]
    slopes = [make_slope(k) for k in range(count)]
    starts = random.standard_normal((count, n))
    highs = random.uniform(1.0, 6.0, (count, n))
    lows = -highs[::-1]
    together = find_zeros(Functions(values, slopes, lows, highs), starts)
    assert together.has_converged.any()
    assert not together.has_converged.all()
    for k in range(count):
        alone = find_zeros(Functions([values[k]], [slopes[k]], lows[k], highs[k]), starts[k : k + 1])
        assert alone.verdicts[0] is together.verdicts[k]
        np.testing.assert_allclose(alone.z[0], together.z[k], rtol=1e-12, atol=1e-12)


def test_a_root_at_infinity_is_a_divergence() -> None:
    """x^(-1/4) = 0: every correction is four times as long as x."""
    result = solve_one(lambda z: z**-0.25, lambda z: (-0.25 * z**-1.25)[:, None], [1.0])
    assert result.verdicts[0] is Verdict.DIVERGED


def test_a_local_minimum_of_the_residual_is_a_stall() -> None:
    """x^3 - 2 x + 2 has a dead end at sqrt(2/3)."""
    result = solve_one(lambda z: z**3 - 2 * z + 2, lambda z: (3 * z**2 - 2)[:, None], [0.7])
    assert result.verdicts[0] is Verdict.STALLED
    assert result.z[0, 0] == pytest.approx(np.sqrt(2 / 3), abs=0.02)


def test_a_start_outside_of_the_domain_is_undefined_and_does_not_disturb_the_others() -> None:
    values = [np.log] * 2
    slopes = [lambda z: (1 / z)[:, None]] * 2
    result = find_zeros(Functions(values, slopes), np.array([[-1.0], [0.4]]))
    assert result.verdicts == (Verdict.UNDEFINED, Verdict.CONVERGED)
    assert result.z[1, 0] == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("solve", [find_zeros, follow_zeros])
def test_points_at_which_nothing_is_defined_end_at_once(solve: Callable[..., NewtonResult]) -> None:
    slopes = [lambda z: np.full((1, 1), np.nan)] * 2
    for value in (np.log, lambda z: z):  # the residual is undefined, or the Jacobian is
        result = solve(Functions([value] * 2, slopes), np.array([[-1.0], [-2.0]]), NewtonRules())
        assert result.verdicts == (Verdict.UNDEFINED, Verdict.UNDEFINED)
        np.testing.assert_array_equal(result.z, [[-1.0], [-2.0]])


def test_steps_that_leave_the_domain_are_shortened() -> None:
    """From 4 the first correction of log(x) leads to 4 - 4 log(4) < 0."""
    result = solve_one(np.log, lambda z: (1 / z)[:, None], [4.0])
    assert result.verdicts[0] is Verdict.CONVERGED


def test_without_damping_a_point_converges_by_full_steps_or_stalls() -> None:
    rules = NewtonRules(trust_radius=np.inf)
    near = follow_zeros(make_quadratics([-4.0]), np.array([[2.1]]), rules)
    none = follow_zeros(make_quadratics([1.0]), np.array([[2.1]]), rules)
    assert near.verdicts[0] is Verdict.CONVERGED
    assert none.verdicts[0] is Verdict.STALLED


def test_of_a_family_of_roots_the_nearest_in_equilibrated_unknowns_is_taken() -> None:
    result = solve_one(lambda z: np.array([z.sum() - 1.0]), lambda z: np.ones((1, 2)), [0.0, 0.4])
    np.testing.assert_allclose(result.z[0], [0.3, 0.7], rtol=1e-14)


def test_rows_of_very_different_sizes_are_solved_alike() -> None:
    scale = np.array([1e-3, 1.0, 1e9])
    result = solve_one(
        lambda z: scale * (z**3 + z - [0.2, -3.0, 10.0]), lambda z: np.diag(scale * (3 * z**2 + 1)), [0.0, 0.0, 0.0]
    )
    assert result.verdicts[0] is Verdict.CONVERGED
    np.testing.assert_allclose(result.z[0] ** 3 + result.z[0], [0.2, -3.0, 10.0], rtol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("total", [14.0, 40.0])
def test_what_saturated_thrusters_cannot_give_comes_from_the_one_that_can(sign: float, total: float) -> None:
    """Steps that share the force among ten would leave 1.5 % of it after 40 iterations."""
    limits = np.array([*[1.0] * 9, 100.0])
    start = [sign * 1.0] * 9 + [0.0]
    system = Functions(
        [lambda z: np.array([z.sum() - sign * total])], [lambda z: np.ones((1, len(z)))], -limits, limits
    )
    result = find_zeros(system, np.array([start]), NewtonRules(trust_radius=np.inf))
    np.testing.assert_allclose(result.z[0], sign * np.array([*[1.0] * 9, total - 9.0]), rtol=1e-14)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_unknown_that_starts_at_its_bound_comes_back_from_it(sign: float) -> None:
    result = solve_one(
        lambda z: z**3 + z - 0.2 * sign,
        lambda z: (3 * z**2 + 1.0)[:, None],
        [sign],
        np.array([-1.0]),
        np.array([1.0]),
    )
    roots = np.roots([1.0, 0.0, 1.0, -0.2])
    root = float(roots[np.abs(roots.imag) < 1e-12][0].real)
    assert result.z[0, 0] == pytest.approx(sign * root, rel=1e-14)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("at_bound", [1.0, -1.0])
def test_an_unknown_at_its_bound_does_not_hold_those_between_theirs(sign: float, at_bound: float) -> None:
    result = solve_one(
        lambda z: np.array([z[0] - at_bound, z[1] + z[1] ** 3 - 10.0 * sign]),
        lambda z: np.array([[1.0, 0.0], [0.0, 1.0 + 3.0 * z[1] ** 2]]),
        [at_bound, 0.0],
        np.array([-1.0, -100.0]),
        np.array([1.0, 100.0]),
    )
    np.testing.assert_allclose(result.z[0], [at_bound, 2.0 * sign], rtol=1e-14)


class Overshooting:
    """r(z) = z with corrections that are thirty times too long."""

    def clip(self, points: NDArray[np.intp], z: FloatArray) -> FloatArray:
        return z

    def values(self, points: NDArray[np.intp], z: FloatArray) -> FloatArray:
        return z.copy()

    def differentiate(self, points: NDArray[np.intp], z: FloatArray, r: FloatArray) -> NDArray[np.bool_]:
        return np.ones(len(points), dtype=bool)

    def correct(self, points: NDArray[np.intp], r: FloatArray) -> FloatArray:
        return 30.0 * r

    def measure(self, points: NDArray[np.intp], step: FloatArray) -> FloatArray:
        return np.asarray(np.abs(step).max(axis=1))

    def is_zero(self, points: NDArray[np.intp], z: FloatArray, r: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(np.abs(r[:, 0]) <= 1e-3)


@pytest.mark.parametrize("is_compared", [True, False])
def test_a_point_that_leaves_its_zero_has_not_converged(is_compared: bool) -> None:
    rules = NewtonRules(trust_radius=np.inf, polishing_steps=1, is_compared=is_compared)
    result = follow_zeros(Overshooting(), np.array([[1e-4]]), rules)
    assert result.has_converged[0] == (abs(result.r[0, 0]) <= 1e-3)
