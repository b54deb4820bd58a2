"""The flexible double pendulum against published frequencies, quadrature, differences of its energies, and limits."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import linalg
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline

import fmilin as fl
from fmilin import UnknownNameError, UsageError
from fmilin.models.sparse import NumericModel
from fmilin.numerics.eigenvalue_errors import compute_eigenvalue_errors
from fmilin.signals import FloatArray
from fmilin.systems import flexible_double_pendulum
from fmilin.systems.flexible_link import FlexibleLink, LinkMotion, Rod
from fmilin.systems.flexible_pendulum import GRAVITY, FlexibleDoublePendulum
from tests.exact import form_of

PUBLISHED = (1.33593155834248, 3.531082271144686, 9.705195842688476, 25.30224732821966)
STIFFENED = (1.338727312976, 3.554338414641, 15.3525880538, 25.39771147261)
ROD = Rod()


def frequencies(model: NumericModel, count: int = 4) -> FloatArray:
    """The slowest frequencies from the mass and stiffness matrices on an orthonormal null space, in rad/s."""
    form = form_of(model)
    N = linalg.null_space(form.G)
    K = -N.T @ form.force_states[:, form.positions] @ N
    values = linalg.eigh(N.T @ form.M @ N, (K + K.T) / 2, eigvals_only=True)
    return 1 / np.sqrt(values[::-1][:count])


def bent(model: NumericModel, seed: int = 3) -> tuple[FloatArray, FloatArray]:
    """Any q and v beside the start: on no constraint, since the equations hold everywhere."""
    random, n = np.random.default_rng(seed), model.equations.n
    x, sizes = model.start.states, model.states.scales()
    q = x[:n] + 0.3 * sizes[:n] * random.uniform(-1, 1, n)
    return q, 0.5 * sizes[n:] * random.uniform(-1, 1, n)


# ---------------------------------------------------------------------- published numbers


def test_the_published_frequencies_with_one_element() -> None:
    np.testing.assert_allclose(frequencies(flexible_double_pendulum(elements=1)), PUBLISHED, rtol=1e-12)


def test_the_general_linearizer_finds_them_too() -> None:
    linear = fl.linearize(flexible_double_pendulum(elements=1))
    found = linear.eigenvalues()
    assert linear.method.derivatives == "exact"
    assert linear.A.shape == (16, 16)
    np.testing.assert_allclose(np.sort(found.imag[found.imag > 0])[:4], PUBLISHED, rtol=1e-11)
    np.testing.assert_allclose(found.real, 0.0, atol=1e-11)


def test_more_elements_and_stiffening_converge_to_the_published_limits() -> None:
    coarse, fine = (frequencies(flexible_double_pendulum(n, geometric_stiffening=True)) for n in (16, 32))
    assert (np.abs(fine - STIFFENED) < np.abs(coarse - STIFFENED) / 14).all()  # fourth order
    np.testing.assert_allclose(fine + (fine - coarse) / 15, STIFFENED, rtol=5e-9)


def test_stiffening_raises_the_third_frequency_by_63_percent() -> None:
    without, stiff = (frequencies(flexible_double_pendulum(6, flag))[2] for flag in (False, True))
    assert round(stiff / without, 2) == 1.63


@pytest.mark.parametrize("elements", [1, 4])
def test_its_sizes(elements: int) -> None:
    model = flexible_double_pendulum(elements)
    assert model.equations.n == 6 * elements + 12
    assert len(model.states) == 2 * (6 * elements + 12)
    assert len(model.constraints) == model.equations.m == 10


@pytest.mark.parametrize("stiffened", [False, True])
@pytest.mark.parametrize("elements", [1, 5, 30])
def test_it_starts_at_an_equilibrium(elements: int, stiffened: bool) -> None:
    model = flexible_double_pendulum(elements, geometric_stiffening=stiffened)
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    np.testing.assert_allclose(at.derivatives, 0.0, atol=1e-9)
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-14)
    # it hangs stretched by its own weight: (W/2 + W) L/EA and W/2 L/EA
    stretch = 0.0 if stiffened else 2 * ROD.mu * ROD.length * GRAVITY * ROD.length / ROD.EA
    np.testing.assert_allclose(at.outputs, [0.0, -8.0 - stretch], atol=1e-12)


def test_the_joints_carry_the_weight() -> None:
    model = flexible_double_pendulum(3).with_interface(None, [f"lambda[{k + 1}]" for k in range(10)])
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    weight = ROD.mu * ROD.length * GRAVITY
    np.testing.assert_allclose(at.outputs[[7, 9]], [-2 * weight, weight], rtol=1e-12)
    np.testing.assert_allclose(np.delete(at.outputs, [0, 3, 7, 9]), 0.0, atol=1e-9)  # the pins along carry some, too


# ---------------------------------------------------------------------- a second way to the equations


@cache
def motion(elements: int = 2) -> LinkMotion:
    return LinkMotion(FlexibleLink(ROD, elements, pull=0.0, gravity=GRAVITY, stiffened=False))


def fields(q: FloatArray, s: FloatArray, elements: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Place r (2, k) of points s of the link, u', w'' and w', by interpolation that is not the link's own."""
    nodes, d = np.linspace(0, ROD.length, elements + 1), q[3:].reshape(-1, 3)
    w = CubicHermiteSpline(nodes, d[:, 1], d[:, 2])
    u = np.interp(s, nodes, d[:, 0])
    stretch = np.diff(d[:, 0])[np.clip(np.searchsorted(nodes, s) - 1, 0, elements - 1)] / (ROD.length / elements)
    c, si = np.cos(q[2]), np.sin(q[2])
    r = q[:2, None] + np.array([[c, -si], [si, c]]) @ np.array([s + u, w(s)])
    return r, stretch, w(s, 2), w(s, 1)


def energies(q: FloatArray, v: FloatArray, elements: int = 2) -> tuple[float, float]:
    """T and V of one link by Gauss quadrature, velocities by a difference of places."""
    points, weights = np.polynomial.legendre.leggauss(6)
    h = ROD.length / elements
    s = np.concatenate([h * (i + (points + 1) / 2) for i in range(elements)])
    ds = np.tile(weights * h / 2, elements)
    step = 1e-5
    velocity = (fields(q + step * v, s, elements)[0] - fields(q - step * v, s, elements)[0]) / (2 * step)
    r, stretch, curvature, _ = fields(q, s, elements)
    T = ROD.mu / 2 * np.sum(velocity**2 @ ds)
    V = np.sum((ROD.EA * stretch**2 + ROD.EI * curvature**2) / 2 * ds) + ROD.mu * GRAVITY * r[1] @ ds
    return float(T), float(V)


def any_place(seed: int) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    q = np.concatenate((random.uniform(-1, 1, 3), 0.1 * random.uniform(-1, 1, 9)))
    return q, random.uniform(-1, 1, 12)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_energy_of_a_link_by_quadrature(seed: int) -> None:
    q, v = any_place(seed)
    T, V = energies(q, v)
    M = motion().pattern_M.dense(motion().mass(q))
    np.testing.assert_allclose(v @ M @ v / 2, T, rtol=1e-9)
    np.testing.assert_allclose(motion().energy(q, v), T + V, rtol=1e-9)
    np.testing.assert_array_equal(M, M.T)
    # frame and elements can both be shifted: two motions without inertia until the frame is pinned to the first node
    inertia = linalg.eigvalsh(M)
    assert (np.abs(inertia[:2]) < 1e-12 * inertia[-1]).all()
    assert inertia[2] > 1e-9 * inertia[-1]


def test_the_forces_of_a_link_are_those_of_lagrange() -> None:
    """f = T_q - V_q - (d/dt M) v, all slopes by differences of the energies by quadrature and of M."""
    q, v = any_place(4)
    n, step = len(q), 1e-5
    still = np.zeros(n)
    slope = np.empty(n)
    for i, e in enumerate(np.eye(n) * step):
        plus, minus = (energies(q + sign * e, v)[0] - energies(q + sign * e, still)[1] for sign in (1, -1))
        slope[i] = (plus - minus) / (2 * step)
    M = [motion().pattern_M.dense(motion().mass(q + sign * step * v)) for sign in (1, -1)]
    expected = slope - (M[0] - M[1]) @ v / (2 * step)
    np.testing.assert_allclose(motion().forces(q, v), expected, atol=1e-6 * np.max(np.abs(expected)))


def test_stiffening_is_the_energy_of_the_initial_pull() -> None:
    stiff, soft = (FlexibleLink(ROD, 2, pull=5e3, gravity=GRAVITY, stiffened=flag) for flag in (True, False))
    q, _ = any_place(5)
    points, weights = np.polynomial.legendre.leggauss(8)
    s = np.concatenate([2.0 * i + (points + 1) for i in range(2)])
    _, stretch, _, slope = fields(q, s, 2)
    N0 = 5e3 + ROD.mu * GRAVITY * (ROD.length - s)
    expected = np.sum(N0 * (stretch + slope**2 / 2) * np.tile(weights, 2))
    np.testing.assert_allclose(stiff.elastic_energy(q[3:]) - soft.elastic_energy(q[3:]), expected, rtol=1e-12)


def test_a_free_motion_keeps_its_energy() -> None:
    model = flexible_double_pendulum(1, angle=1.0, rate=0.5).with_interface([], ["energy"])
    n, x0 = model.equations.n, model.start.states.copy()

    def rates(t: float, x: FloatArray) -> FloatArray:
        return model.evaluate(t, x, np.empty(0)).derivatives

    run = solve_ivp(rates, (0.0, 0.3), x0, method="DOP853", rtol=1e-9, atol=1e-11)
    first, last = (model.evaluate(0.0, x, np.empty(0)) for x in (x0, run.y[:, -1]))
    assert np.linalg.norm(run.y[:n, -1] - x0[:n]) > 0.1  # it did move, and bend
    assert abs(run.y[7, -1]) > 1e-3
    np.testing.assert_allclose(last.outputs, first.outputs, rtol=1e-8)
    np.testing.assert_allclose(last.residuals, 0.0, atol=1e-8)


def test_stiff_links_swing_like_rigid_rods() -> None:
    """Two uniform rods: K - w^2 M is singular for M = m L^2 [[4/3, 1/2], [1/2, 1/3]], K = m g L diag(3/2, 1/2)."""
    model = NumericModel(FlexibleDoublePendulum(2, rod=Rod(modulus=1e13)))
    M = ROD.length * np.array([[4 / 3, 1 / 2], [1 / 2, 1 / 3]])
    expected = np.sqrt(linalg.eigh(GRAVITY * np.diag([1.5, 0.5]), M, eigvals_only=True))
    np.testing.assert_allclose(frequencies(model, 2), expected, rtol=1e-6)


# ---------------------------------------------------------------------- slopes


@pytest.mark.parametrize("stiffened", [False, True])
def test_exact_slopes_far_from_the_constraints(stiffened: bool) -> None:
    outputs = ["tip.x", "tip.y", "energy", "lambda[9]", "der(link2.vw[2])", "der(link1.theta)", "link1.w[2]", "torque2"]
    model = flexible_double_pendulum(1, geometric_stiffening=stiffened).with_interface(None, outputs)
    q, v = bent(model)
    x, u = np.concatenate((q, v)), np.array([300.0, -200.0])
    sizes = np.concatenate((model.states.scales(), [1e3, 1e3]))
    J = model.products(0.0, x, u, *np.split(np.diag(sizes), [len(x)]))
    for j, size in enumerate(sizes):
        e = np.zeros(len(sizes))
        e[j] = 1e-5 * size
        plus, minus = (model.evaluate(0.0, x + s * e[: len(x)], u + s * e[len(x) :]) for s in (1, -1))
        for part in ("derivatives", "outputs", "residuals"):
            measured = (getattr(plus, part) - getattr(minus, part)) / 2e-5
            exact = getattr(J, part)
            np.testing.assert_allclose(exact[:, j], measured, atol=2e-8 * (1 + np.max(np.abs(exact))))


def test_in_motion_the_linear_model_is_that_of_differences() -> None:
    model = flexible_double_pendulum(1, angle=0.7, rate=1.5)
    exact, measured = (fl.linearize(model, derivatives=kind) for kind in ("exact", "differences"))
    for name in "ABCD":
        reference = getattr(exact, name)
        np.testing.assert_allclose(getattr(measured, name), reference, atol=1e-6 * np.max(np.abs(reference)))
    assert np.linalg.norm(exact.f0) > 1


def test_a_batch_is_the_points_one_by_one() -> None:
    model = flexible_double_pendulum(1)
    X = np.array([np.concatenate(bent(model, seed)) for seed in (1, 2, 3)])
    U = np.array([[1.0, 2.0], [0.0, 0.0], [-5.0, 3.0]])
    together = model.evaluate_points(np.zeros(3), X, U)
    assert model.batches
    for k in range(3):
        alone = model.evaluate(0.0, X[k], U[k])
        for part in ("derivatives", "outputs", "residuals"):
            np.testing.assert_array_equal(getattr(together, part)[k], getattr(alone, part))


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize("elements", [0, -1, 2.5, True])
def test_elements_are_counted(elements: int) -> None:
    with pytest.raises(UsageError, match="1 finite element or more"):
        flexible_double_pendulum(elements)


def test_a_start_that_is_no_number() -> None:
    with pytest.raises(UsageError, match="finite angle and rate"):
        flexible_double_pendulum(1, angle=float("nan"))


def test_unknown_names_come_with_the_nearest() -> None:
    model = flexible_double_pendulum(1)
    with pytest.raises(UnknownNameError, match=r"tip\.z"):
        model.with_interface(None, ["tip.z"])
    with pytest.raises(UnknownNameError, match=r"lambda\[11\]"):
        model.with_interface(None, ["lambda[11]"])
    with pytest.raises(UnknownNameError, match="torque1"):
        model.with_interface(["torque"], None)


def test_full_matrices_of_thousands_of_states_are_refused() -> None:
    model = flexible_double_pendulum(700)
    with pytest.raises(UsageError, match=r"a full matrix of 8424 states.*fmilin\.formulations\.sparse"):
        model.second_order_form(0.0, model.start.states, model.start.inputs)


# ---------------------------------------------------------------------- many elements: stiff, and not singular


@pytest.mark.parametrize("elements", [2, 5, 10, 20, 40])
def test_its_equilibrium_and_its_spectrum_with_many_elements(elements: int) -> None:
    """The oracle takes no A: the largest eigenvalues of K^-1 M, whose small frequencies keep their digits."""
    model = flexible_double_pendulum(elements)
    point = fl.trim(model)
    assert not {"multiple", "family"} & {remark.kind for remark in point.report.remarks}
    assert all(distance < 1e-6 for distance in point.report.distance.values())
    linear = fl.linearize(model, point)
    found = linear.eigenvalues()
    # The entries of A are of the size of the square of the fastest frequency, and have so many digits.
    expected = frequencies(model)
    loss = 16 * np.finfo(float).eps * (np.abs(found).max() / expected) ** 2
    slowest = np.sort(found.imag[found.imag > 0])[:4]
    assert (np.abs(slowest / expected - 1) < loss + 1e-12).all()
    # Errors are stated that cover what is wrong, and leave the slow modes known.
    errors = compute_eigenvalue_errors(linear.A, linear.errors.A, found)
    stated = np.array([errors[np.argmin(np.abs(found - 1j * frequency))] for frequency in slowest])
    assert (np.abs(slowest - expected) < stated).all()
    assert (stated < 0.1 * expected).all()


def test_it_hangs_at_the_same_place_where_it_is_let_go_bent() -> None:
    model = flexible_double_pendulum(20)
    point = fl.trim(model, guess={"link1.theta": -1.4, "link2.w[10]": 0.02})
    np.testing.assert_allclose(point.states, model.start.states, atol=1e-9)
    assert point.report.unstable == 0


@pytest.mark.parametrize("elements", [4, 20, 60])
def test_a_motor_holds_it_aslant(elements: int) -> None:
    """The torque is that of the weight. Few elements have dense equations, with M^-1 in them; many have sparse ones."""
    model = flexible_double_pendulum(elements)
    point = fl.trim(model, fixed={"link1.theta": -1.5}, free=["torque1"])
    assert not {"multiple", "family"} & {remark.kind for remark in point.report.remarks}
    x = dict(zip(model.states.names, point.states, strict=True))
    moment = sum(_compute_moment(x, k, elements) for k in (1, 2))
    torque = point.inputs[0]
    np.testing.assert_allclose(torque, moment, rtol=1e-6)


def _compute_moment(x: dict[str, float], k: int, n: int) -> float:
    """The moment of the weight of link k about the ground joint, from the places of its nodes and its slopes."""
    theta = x[f"link{k}.theta"]
    s = np.linspace(0, ROD.length, n + 1)
    u, w, slope = (np.array([x[f"link{k}.{c}[{i + 1}]"] for i in range(n + 1)]) for c in ("u", "w", "phi"))
    along = np.trapezoid(s + u, s)
    across = CubicHermiteSpline(s, w, slope).integrate(0.0, ROD.length)
    mean = (x[f"link{k}.x"] * ROD.length + np.cos(theta) * along - np.sin(theta) * across) * ROD.mu
    return float(GRAVITY * mean)
