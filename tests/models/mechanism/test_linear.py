"""The exact linearization against the general one, complex steps and implicit differentiation of the whole system.

In motion and at rest, at equilibrium and not, with every kind of joint, loop and wheel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import splu

import fmilin as fl
from fmilin import LinearModel, OperatingPoint
from fmilin.manifold.frame import kept_states
from fmilin.models.mechanism import Mechanism
from fmilin.models.mechanism.independence import close_loops
from fmilin.models.mechanism.local_form import Choice, LocalFormMatrices
from fmilin.models.mechanism.recursions import coordinate_rates
from tests.general_way import hide_procedure
from tests.models.mechanism.builders import Floats, everything, five_bar_chain, four_bar_pins
from tests.models.mechanism.test_model import rolling

STEP = 1e-30


def moving(mechanism: Mechanism, seed: int = 3, *, speed: float = 1.0) -> OperatingPoint:
    """Return a point at the start positions with random velocities that obey the constraints."""
    n_q = mechanism.system.tree.n_q
    x, u = mechanism.start.states.copy(), mechanism.start.inputs
    x[:n_q] = close_loops(mechanism.system, x[:n_q])
    G = mechanism.solution(x, u).state.G[mechanism.independence.all]
    v = speed * np.random.default_rng(seed).normal(size=mechanism.system.tree.n)
    x[n_q:] = v - np.linalg.pinv(G) @ (G @ v)
    return OperatingPoint(0.0, x, u)


CASES: dict[str, Callable[[], tuple[Mechanism, OperatingPoint]]] = {
    "everything moving": lambda: pair(Mechanism(everything())),
    "everything at rest": lambda: pair(Mechanism(everything()), speed=0.0),
    "an open tree": lambda: pair(Mechanism(everything(closed=False))),
    "five-bar moving": lambda: pair(Mechanism(five_bar_chain())),
    "four-bar at equilibrium": lambda: pair(Mechanism(four_bar_pins(2.234331019017586)), speed=0.0),
    "four-bar moving": lambda: pair(Mechanism(four_bar_pins(1.7))),
    "a rolling disk": lambda: pair(rolling(1.3)),
}


def pair(mechanism: Mechanism, *, speed: float = 1.0) -> tuple[Mechanism, OperatingPoint]:
    return mechanism, moving(mechanism, speed=speed)


def relative(mine: Floats, theirs: Floats) -> float:
    return float(np.abs(mine - theirs).max(initial=0.0) / max(np.abs(theirs).max(initial=0.0), 1e-300))


@pytest.mark.parametrize("case", CASES)
def test_the_general_linearizer_finds_the_same(case: str) -> None:
    mechanism, point = CASES[case]()
    own = fl.linearize(mechanism, point)
    general = fl.linearize(hide_procedure(mechanism), point, independent=own.states.names, derivatives="exact")
    for name in "ABCDT":
        assert relative(getattr(own, name), getattr(general, name)) < 1e-9
    assert np.abs(own.f0 - general.f0).max() < 1e-12


def rates_by_kkt(mechanism: Mechanism, x: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Return x' and lambda from the saddle point matrix, by operations that are analytic."""
    n_q, used = mechanism.system.tree.n_q, mechanism.independence.all
    state = mechanism.system.state(x[:n_q], x[n_q:], u)
    G = state.G[used]
    KKT = np.block([[state.M, G.T], [G, np.zeros((len(used), len(used)))]])
    solved = np.linalg.solve(KKT, np.concatenate((state.F, -state.c[used])))
    n = mechanism.system.tree.n
    return np.concatenate((coordinate_rates(mechanism.system.tree, x[:n_q], x[n_q:]), solved[:n])), solved[n:]


@pytest.mark.parametrize("case", CASES)
def test_complex_steps_of_the_equations_of_motion(case: str) -> None:
    mechanism, point = CASES[case]()
    own = fl.linearize(mechanism, point)
    x, u = point.states, point.inputs
    along_y = [rates_by_kkt(mechanism, x + 1j * STEP * t, u)[0].imag / STEP for t in own.T.T]
    along_u = [rates_by_kkt(mechanism, x, u + 1j * STEP * e)[0].imag / STEP for e in np.eye(len(u))]
    rows = [mechanism.states.index_of(name) for name in own.states.names]
    assert relative(own.A, np.array(along_y).T[rows]) < 1e-12
    if len(u):
        assert relative(own.B, np.array(along_u).T[rows]) < 1e-12


@pytest.mark.parametrize("case", CASES)
def test_implicit_differentiation_of_the_sparse_system(case: str) -> None:
    """M dvdot + G' dlambda = -drho, G dvdot = -dc: one sparse factorization for all columns (González et al.)."""
    mechanism, point = CASES[case]()
    own = fl.linearize(mechanism, point)
    solution = mechanism.solution(point.states, point.inputs)
    columns = mechanism.system.columns(solution)
    n, used = mechanism.system.tree.n, mechanism.independence.all
    G = solution.state.G[used]
    KKT = sparse.csc_matrix(np.block([[solution.state.M, G.T], [G, np.zeros((len(used), len(used)))]]))
    n_q = mechanism.system.tree.n_q
    T_q, T_v = own.T[:n_q], own.T[n_q:]
    from fmilin.models.mechanism.recursions import compute_displacements

    theta = compute_displacements(mechanism.system.tree, point.states[:n_q], T_q)
    right = np.vstack(
        (-(columns.rho_q @ theta + columns.rho_v @ T_v), -(columns.c_q[used] @ theta + columns.c_v[used] @ T_v))
    )
    dv_dot = splu(KKT).solve(right)[:n]
    rows = [mechanism.states.index_of(name) for name in own.states.names]
    speeds = [r - n_q for r in rows if r >= n_q]
    assert relative(own.A[[i for i, r in enumerate(rows) if r >= n_q]], dv_dot[speeds]) < 1e-11


@pytest.mark.parametrize("case", ["everything moving", "an open tree"])
def test_outputs_along_the_tangent_are_their_differences(case: str) -> None:
    mechanism, point = CASES[case]()
    own = fl.linearize(mechanism, point)
    h = 1e-5
    for j in range(own.T.shape[1]):
        ahead, behind = (
            mechanism.evaluate(0.0, point.states + s * h * own.T[:, j], point.inputs).outputs for s in (1, -1)
        )
        scale = 1 + np.abs(own.C).max(axis=1)
        assert (np.abs((ahead - behind) / (2 * h) - own.C[:, j]) < 1e-6 * scale).all()


def test_the_blocks_have_the_form_of_the_thesis() -> None:
    """A = (0 1; A_21 A_22), and K, Kdot, Kddot are the derivatives of q, v and vdot along the positions."""
    mechanism, point = CASES["five-bar moving"]()
    x, u = point.states, point.inputs
    choice = Choice.of([0, 3, 4, 7], mechanism.system)
    form = LocalFormMatrices(mechanism.equations, mechanism.solution(x, u), choice)
    assert np.abs(form.matrices().A[:2] - np.eye(2, 4, 2)).max() < 1e-12
    h = 1e-6
    for j, name in enumerate(("q1", "q4")):
        values = {n: x[mechanism.states.index_of(n)] for n in ("q1", "q4", "v1", "v4")}
        ahead, behind = (
            fl.operating_point(mechanism, values | {name: values[name] + s * h}).states for s in (1.0, -1.0)
        )
        slope = (ahead - behind) / (2 * h)
        assert np.abs(slope[:4] - form.K_q[:, j]).max() < 1e-8
        assert np.abs(slope[4:] - form.K_dot[:, j]).max() < 1e-8


def test_spectra_off_equilibrium_depend_on_the_coordinates() -> None:
    mechanism = Mechanism(five_bar_chain())
    first = fl.linearize(mechanism, independent=["q1", "q4"])
    second = fl.linearize(mechanism, independent=["q2", "q3"])
    assert np.abs(first.eigenvalues() - second.eigenvalues()).max() > 0.1
    assert first.warnings[0].kind == "off-equilibrium"


def test_spectra_at_equilibrium_do_not() -> None:
    mechanism = Mechanism(four_bar_pins(2.234331019017586))
    spectra = [fl.linearize(mechanism, independent=[name]).eigenvalues() for name in ("pin0.q", "pin1.q", "top.q")]
    assert max(np.abs(s - spectra[0]).max() for s in spectra) < 1e-9


def test_many_points_at_once() -> None:
    mechanism = Mechanism(everything())
    points = [moving(mechanism, seed) for seed in range(4)]
    x, u = np.stack([p.states for p in points]), np.stack([p.inputs for p in points])
    choice = Choice.of(kept_states(mechanism, points[0], mechanism.independent), mechanism.system)
    whole = mechanism.matrices_along(points)
    for i in range(4):
        one = LocalFormMatrices(mechanism.equations, mechanism.solution(x[i], u[i]), choice).matrices()
        for name in ("A", "B", "C", "D", "T", "f0"):
            assert relative(getattr(whole, name)[i], getattr(one, name)) < 1e-11


def test_named_coordinates_keep_their_order() -> None:
    mechanism = Mechanism(five_bar_chain())
    one: LinearModel = fl.linearize(mechanism, independent=["v4", "q1", "v1", "q4"])
    other = fl.linearize(mechanism, independent=["q1", "q4", "v1", "v4"])
    assert one.states.names == ("v4", "q1", "v1", "q4")
    order = [other.states.names.index(name) for name in one.states.names]
    assert np.abs(one.A - other.A[np.ix_(order, order)]).max() < 1e-13
