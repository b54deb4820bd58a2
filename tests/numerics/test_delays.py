"""Eigenvalues, responses and approximations of systems with delays against closed forms and high precision."""

from __future__ import annotations

from math import factorial

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import lambertw

from fmilin.errors import UsageError
from fmilin.linear_model.delay_spectrum import judge_delayed_stability
from fmilin.numerics.delay_counts import count_eigenvalues_right_of
from fmilin.numerics.delay_eigenvalues import find_rightmost_eigenvalues
from fmilin.numerics.delay_form import DelayForm
from fmilin.numerics.method_of_steps import PiecewiseInput, solve_delay_system
from fmilin.numerics.pade import approximate_delay, evaluate_approximation, find_largest_angle


def make_scalar(a: float, b: float, delay: float = 1.0) -> DelayForm:
    """Return x' = -a x - b x(t - delay) + u, y = x."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    return DelayForm(-a * one, one, -b * one, one, one, zero, zero, zero, zero, np.array([delay]))


def make_random(rng: np.random.Generator) -> DelayForm:
    """Return a system of order 1 to 5 with 1 to 3 delays, some of them in series."""
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    normal = rng.standard_normal
    D22 = np.triu(normal((m, m)), 1)
    delays = rng.uniform(0.1, 2.0, m)
    return DelayForm(normal((n, n)), normal((n, 1)), normal((n, m)), normal((1, n)), normal((m, n)),
                     normal((1, 1)), normal((1, m)), normal((m, 1)), D22, delays)  # fmt: skip


def solve_exactly(form: DelayForm, start: complex) -> complex:
    """Return the root of the characteristic equation near ``start`` with 40 digits, without this package's Newton."""
    A, B, C, D = (mpmath.matrix(M.tolist()) for M in (form.A, form.B2, form.C2, form.D22))
    n, m = len(form.A), len(form.delays)

    def determinant(s: mpmath.mpc) -> mpmath.mpc:
        E = mpmath.diag([mpmath.exp(s * delay) for delay in form.delays.tolist()])
        F = mpmath.zeros(n + m, n + m)
        for i in range(n):
            for j in range(n):
                F[i, j] = (s if i == j else 0) - A[i, j]
            for j in range(m):
                F[i, n + j], F[n + j, i] = -B[i, j], -C[j, i]
        for i in range(m):
            for j in range(m):
                F[n + i, n + j] = E[i, j] - D[i, j]
        return mpmath.det(F)

    with mpmath.workdps(40):
        start = mpmath.mpc(start)
        return complex(mpmath.findroot(determinant, (start, start * (1 + 1e-5) + 1e-5), solver="secant", tol=1e-60))


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, 3.0), (0.0, np.pi / 2), (0.0, 5.0), (2.0, -1.5)])
def test_rightmost_eigenvalues_of_a_scalar_equation_are_lamberts(a: float, b: float) -> None:
    result = find_rightmost_eigenvalues(make_scalar(a, b), 20)
    lambert = np.array([lambertw(-b * np.exp(a), k) - a for k in range(-40, 41)])
    rightmost = lambert[np.argsort(-lambert.real)][: len(result.values)]
    distances = np.abs(result.values[:, None] - rightmost).min(axis=1)
    assert (distances <= 1e-12).all()
    assert (distances <= result.errors).all()
    assert np.unique(np.abs(result.values[:, None] - rightmost).argmin(axis=1)).size == len(result.values)


def make_resonance(w0: float, damping: float, peak: float) -> DelayForm:
    """Return a slow lag beside a resonance, closed by a delay of 1 s."""
    A = np.array([[-1.0, 0, 0], [0, 0, 1], [0, -(w0**2), -2 * damping * w0]])
    zero = np.zeros((1, 1))
    B, C = np.array([[1.0], [0], [1]]), np.array([[-0.5, 0, 2 * peak * damping * w0]])
    return DelayForm(A, B, B, C, C, zero, zero, zero, zero, np.ones(1))


@pytest.mark.parametrize(
    ("w0", "damping", "peak", "unstable"), [(1000.0, 0.1, 2.0, 112), (500.0, 0.05, 3.0, 46), (200.0, 0.002, 0.6, 0)]
)
def test_rightmost_eigenvalues_of_high_frequency_are_found(
    w0: float, damping: float, peak: float, unstable: int
) -> None:
    form = make_resonance(w0, damping, peak)
    s = 0.5 + 1j * np.linspace(0.5 * w0, 1.5 * w0, 1200)  # Newton's method on the scalar characteristic equation
    width = 2 * damping * w0
    with np.errstate(all="ignore"):  # some starts run away
        for _ in range(40):
            quadratic = s**2 + width * s + w0**2
            G = -0.5 / (s + 1) + peak * width * s / quadratic
            slope = 0.5 / (s + 1) ** 2 + peak * width * (w0**2 - s**2) / quadratic**2
            step = (np.exp(s) - G) / (np.exp(s) - slope)
            s -= step
        rightmost = complex(s[np.argmax(np.where(np.abs(step) < 1e-9, s.real, -np.inf))])
    values = find_rightmost_eigenvalues(form, 4).values
    assert len(values) == 4
    assert abs(values[-1] - complex(rightmost.real, abs(rightmost.imag))) < 1e-11 * w0
    assert count_eigenvalues_right_of(form, 0.0) == unstable
    assert judge_delayed_stability(form).unstable == unstable


def test_counts_of_stiff_systems_need_no_fine_grid() -> None:
    # 1/(1 + s/1e7) behind the delayed integrator: the count of its slow eigenvalues, to five digits of the fast pole
    A, B = np.array([[0.0, 1.0], [0.0, -1e7]]), np.array([[0.0], [1e7]])
    C, zero = np.array([[-2.0, 0.0]]), np.zeros((1, 1))
    form = DelayForm(A, B, B, C, C, zero, zero, zero, zero, np.ones(1))
    values = find_rightmost_eigenvalues(form, 6).values
    lambert = np.array([lambertw(-2.0, k) for k in (-3, -2, -1, 0, 1, 2)])
    assert np.abs(values[:, None] - lambert).min(axis=1).max() < 1e-5
    assert count_eigenvalues_right_of(form, float(values.real.min()) - 1e-3) == 6


def test_a_double_eigenvalue_comes_twice_with_an_honest_error() -> None:
    result = find_rightmost_eigenvalues(make_scalar(0.0, np.exp(-1.0)), 4)
    double = result.values[-2:]
    assert (np.abs(double + 1.0) <= result.errors[-2:]).all()
    assert (result.errors[-2:] < 1e-5).all()
    assert result.values[-3].real < -2


def test_twenty_random_systems_agree_with_forty_digits() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        form = make_random(rng)
        result = find_rightmost_eigenvalues(form, 6)
        for value, error in zip(result.values[-2:].tolist(), result.errors[-2:].tolist(), strict=True):
            exact = solve_exactly(form, value)
            assert abs(value - exact) <= max(error, 1e-15)
            assert abs(value - exact) <= 1e-8 * max(1.0, abs(value))
            assert error <= 1e-8 * max(1.0, abs(value))
        leftmost = float(result.values.real.min())
        distance = 1e-7 * max(1.0, abs(leftmost))
        assert count_eigenvalues_right_of(form, leftmost - distance) == len(result.values)


def test_hayes_chart_of_stability() -> None:
    for a in (-0.8, 0.0, 0.7, 2.0, 5.0):
        theta = np.linspace(1e-9, np.pi - 1e-9, 200_001)  # stability limit: a = -theta cot theta, b = theta / sin theta
        limit = float(np.interp(a, -theta / np.tan(theta), theta / np.sin(theta)))
        for factor, unstable in ((0.999, 0), (1.001, 2)):
            form = make_scalar(a, factor * limit)
            growth = find_rightmost_eigenvalues(form, 4).values.real.max()
            assert bool(growth > 0) == bool(unstable)
            assert count_eigenvalues_right_of(form, 0.0) == unstable


def test_a_delay_on_no_loop_leaves_the_eigenvalues_of_the_states() -> None:
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    form = DelayForm(-2 * one, zero, one, one, zero, zero, zero, one, zero, np.array([0.3]))
    result = find_rightmost_eigenvalues(form, 5)
    assert result.is_complete
    assert result.values.tolist() == [-2.0]


def test_neutral_systems_are_rejected() -> None:
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    form = DelayForm(-one, one, one, one, one, zero, zero, zero, 0.5 * one, np.array([0.3]))
    with pytest.raises(UsageError, match=r"The system is neutral: the delays of 0\.3 s lie on a loop without a state"):
        find_rightmost_eigenvalues(form, 5)
    # (s + 1)(1 - E/2) = E has one solution to the right of 0, which is real: -1/2 at s = 0 and s at infinity
    assert count_eigenvalues_right_of(form, 0.0) == 1
    assert count_eigenvalues_right_of(form, -10.0) is None  # left of log(1/2)/0.3
    s = np.array([0.7j])
    E = np.exp(-0.3 * s)
    exact = 1 / (s + 1 - E / (1 - 0.5 * E))
    assert np.abs(form.evaluate(s)[:, 0, 0] - exact).max() < 1e-14


def test_a_delay_of_zero_closes_its_loop() -> None:
    result = find_rightmost_eigenvalues(make_scalar(1.0, 3.0, delay=0.0), 3)
    assert result.is_complete
    assert result.values.tolist() == [-4.0]


def test_transfer_matrices_of_random_systems_follow_their_definition() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        form = make_random(rng)
        s = np.asarray(1j * np.geomspace(0.01, 100, 7), dtype=np.complex128)
        for point, value in zip(s, form.evaluate(s), strict=True):
            E = np.diag(np.exp(-point * form.delays))
            closed = np.linalg.inv(np.eye(len(E)) - form.D22 @ E)
            A = form.A + form.B2 @ E @ closed @ form.C2
            B = form.B1 + form.B2 @ E @ closed @ form.D21
            C = form.C1 + form.D12 @ E @ closed @ form.C2
            D = form.D11 + form.D12 @ E @ closed @ form.D21
            exact = C @ np.linalg.inv(point * np.eye(len(A)) - A) @ B + D
            assert np.abs(value - exact).max() <= 1e-12 * max(1.0, np.abs(exact).max())


def follow_step(form: DelayForm, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first output after a unit step."""
    step = PiecewiseInput(times[:1], np.ones((1, 1)), np.zeros((1, 1)))
    return solve_delay_system(form, step, np.zeros(len(form.A)), times).outputs[:, 0]


def test_a_step_of_the_delayed_integrator_is_piecewise_polynomial() -> None:
    t = np.linspace(0.0, 6.0, 121)
    exact = sum((-1) ** k * np.where(t >= k, t - k, 0.0) ** (k + 1) / factorial(k + 1) for k in range(8))
    assert np.abs(follow_step(make_scalar(0.0, 1.0), t) - exact).max() < 1e-13


def test_a_step_of_a_random_system_has_the_transfer_function_as_its_transform() -> None:
    rng = np.random.default_rng(11)
    form = make_random(rng)
    growth = float(find_rightmost_eigenvalues(form, 4).values.real.max())
    s = max(growth, 0.0) + 3.0  # the Laplace transform of the step, s Y(s) = G(s), by Gauss-Legendre between jumps
    stop = 40.0 / 3.0
    edges = np.unique(np.concatenate([[0.0, stop], *(np.arange(1, 9) * d for d in form.delays), [form.delays.sum()]]))
    edges = edges[edges <= stop]
    edges = np.unique(np.concatenate([edges, np.linspace(0, stop, 150)]))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    t = (middle[:, None] + half[:, None] * nodes).ravel()
    y = follow_step(form, np.concatenate(([0.0], t, [stop])))[1:-1]
    integral = float(np.sum((half[:, None] * weights).ravel() * y * np.exp(-s * t)))
    assert abs(s * integral - form.evaluate(np.array([complex(s)]))[0, 0, 0]) < 1e-8


def test_a_small_state_beside_a_large_one_is_as_exact() -> None:
    # x1 in Pa and x2 in m: x1' = -x1 + 1e8 u with the delayed x1 in its loop, x2 = 1e-3 (1 - exp(-50 t)) for itself
    A, B1 = np.diag([-1.0, -50.0]), np.array([[1e8], [0.05]])
    B2, C2 = np.array([[-0.5], [0.0]]), np.array([[1.0, 0.0]])
    zero = np.zeros((2, 1))
    form = DelayForm(A, B1, B2, np.eye(2), C2, zero, zero, np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1))
    t = np.linspace(0.0, 3.0, 61)
    step = PiecewiseInput(t[:1], np.ones((1, 1)), np.zeros((1, 1)))
    solution = solve_delay_system(form, step, np.zeros(2), t)
    exact = 1e-3 * (1 - np.exp(-50 * t))
    assert np.abs(solution.outputs[:, 1] - exact).max() < 1e-14
    assert len(solution.outputs) == len(t)
    first = t <= 1.0
    assert np.abs(solution.outputs[first, 0] - 1e8 * (1 - np.exp(-t[first]))).max() < 1e-4


def test_pade_approximations_have_the_published_coefficients() -> None:
    s = 1j * np.array([0.3, 1.0, 4.0])
    second = (1 - s / 2 + s**2 / 12) / (1 + s / 2 + s**2 / 12)
    third = (1 - s / 2 + s**2 / 10 - s**3 / 120) / (1 + s / 2 + s**2 / 10 + s**3 / 120)
    for order, exact in ((2, second), (3, third)):
        system = approximate_delay(1.0, order)
        assert np.abs([system.response(point)[0, 0] for point in s] - exact).max() < 1e-14
        assert np.abs(evaluate_approximation(s.imag, order) - exact).max() < 1e-14
    for order in (1, 4, 9):
        angle = find_largest_angle(order, 0.01)
        values = evaluate_approximation(angle * np.array([0.99, 1.01]), order)
        errors = np.abs(values - np.exp(-1j * angle * np.array([0.99, 1.01])))
        assert errors[0] < 0.01 < errors[1]
