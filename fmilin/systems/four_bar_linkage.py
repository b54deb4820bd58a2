"""The N-loop four-bar linkage with springs along its diagonals, heavily constrained: one degree of freedom.

By Lagrange's equations, and as sparse matrices at any configuration of its parallelogram motion, its only one away from
singular configurations: every B_i moves like (cos(phi), sin(phi)).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import Any, Literal

import casadi as ca
import numpy as np
import sympy
from scipy import sparse
from scipy.optimize import brentq

from fmilin.errors import UsageError
from fmilin.formulations.form import ConstrainedForm, ConstraintMotion
from fmilin.models.declaration import SymbolicConstraint
from fmilin.models.labels import Labels
from fmilin.models.lagrange import LagrangeModel
from fmilin.models.large_equations import sparse_function
from fmilin.numerics.factors import SparseFactors
from fmilin.tolerances import EPS

GRAVITY = 9.81
STIFFNESS = 25.0
NATURAL_LENGTH = sqrt(2.0)

Vector = tuple[Any, Any]  # of sympy expressions: products of sympy matrices would take most of the time of large ones


def four_bar(
    loops: int = 1, damping: float = 0.0, *, singular: bool = False, branch: Literal["upper", "hanging"] = "upper"
) -> LagrangeModel:
    """Return the N-loop four-bar linkage of González et al.: 4N + 6 states, of which 2 are independent.

    Points A_i = (i, 0) are on the ground, i = 0..N; points B_i = (x_i, y_i) are free. Rods A_i B_i and B_(i-1) B_i
    are uniform, 1 m and 1 kg each, with mass matrix m/6 [[2I, I], [I, 2I]] in the coordinates of their ends. Spring
    i joins B_i and A_(i-1): k = 25 N/m, natural length l0 = sqrt(2) m, with a damper c in parallel. Gravity points
    to -y. The coordinates are x_0, y_0, .., x_N, y_N and the angle phi of the last rod A_N B_N, on which the
    ``torque`` acts; the constraints are (d^2 - 1)/2 = 0 for the length d of every rod, and y_N = sin(phi), or x_N -
    N = cos(phi) where ``|sin(phi)| > |cos(phi)|``. ``coupler.y`` is the middle of the last coupler.

    ``singular``: instead of the springs (k = 0) gravity along +x holds the linkage at phi = 0, where all rods lie
    on one line and the constraints depend on each other: the accelerations are not determined, and evaluating the
    model raises NumericalError. ``branch`` is one of two stable equilibria. All rods A_i B_i stay parallel, so that
    with J = (4N + 1)/3

        J phi'' = torque - g (3N + 1)/2 cos(phi) + N k (s - l0) sin(phi/2) - N c sin(phi/2)^2 phi',

    s = 2 cos(phi/2) being the length of the springs: the eigenvalues are +- 2.147676638502278 i (N = 1, upper).

    >>> model = four_bar()
    >>> model.states.names
    ('x0', 'y0', 'x1', 'y1', 'phi', 'vx0', 'vy0', 'vx1', 'vy1', 'w')
    """
    if loops < 1 or int(loops) != loops:
        raise UsageError(f"A four-bar linkage has 1 loop or more, not {loops}.")
    if branch not in ("upper", "hanging"):
        raise UsageError(f"'{branch}' is not an equilibrium of the four-bar linkage; choose 'upper' or 'hanging'.")
    loops = int(loops)
    angle = 0.0 if singular else equilibrium_angle(loops, branch)
    m, k, l0, c, gx, gy, phi, w, torque = sympy.symbols("m k l0 c gx gy phi w torque", real=True)
    B = [sympy.symbols(f"x{i} y{i}", real=True) for i in range(loops + 1)]
    v = [sympy.symbols(f"vx{i} vy{i}", real=True) for i in range(loops + 1)]
    A = [(i, 0) for i in range(loops + 1)]
    spring = _Spring(k, l0, c)
    forces = [[_weight(i, loops, m) * g for g in (gx, gy)] for i in range(loops + 1)]
    for i in range(1, loops + 1):
        pull = spring.force(_between(A[i - 1], B[i]), v[i])
        forces[i] = [weight + component for weight, component in zip(forces[i], pull, strict=True)]
    return LagrangeModel(
        "four_bar" if loops == 1 else f"four_bar_{loops}",
        dict(zip([*_flat(B), phi], [*_flat(v), w], strict=True)),
        _mass_matrix(loops, m),
        [*_flat(forces), torque],
        constraints=_constraints(A, B, phi, angle),
        inputs=[torque],
        parameters={
            m: 1.0,
            k: 0.0 if singular else STIFFNESS,
            l0: NATURAL_LENGTH,
            c: damping,
            gx: GRAVITY if singular else 0.0,
            gy: 0.0 if singular else -GRAVITY,
        },
        outputs={"phi": phi, "w": w, "coupler.y": (B[-1][1] + B[-2][1]) / 2},
        start=dict(zip(_flat(B), [e for i in range(loops + 1) for e in (i + cos(angle), sin(angle))], strict=True))
        | {phi: angle},
        labels=_labels(_flat(B), loops),
    )


@dataclass(frozen=True)
class _Spring:
    """A spring and a damper in parallel."""

    k: Any
    l0: Any
    c: Any

    def force(self, d: Vector, d_dot: Vector) -> Vector:
        """Return the force on the end at ``d`` from the other, fixed one: -(k (s - l0) + c s') d/s."""
        s = sympy.sqrt(_dot(d, d))
        pull = -(self.k * (s - self.l0) + self.c * _dot(d, d_dot) / s) / s
        return pull * d[0], pull * d[1]


def _between(a: Vector, b: Vector) -> Vector:
    return b[0] - a[0], b[1] - a[1]


def _dot(a: Vector, b: Vector) -> Any:
    return a[0] * b[0] + a[1] * b[1]


def _weight(i: int, loops: int, m: Any) -> Any:
    """Return the mass that B_i carries: half of each rod that ends there."""
    rods = 2 if i in (0, loops) else 3
    return m * sympy.Rational(rods, 2)


def _mass_matrix(loops: int, m: Any) -> dict[tuple[int, int], Any]:
    """Return M, (2N + 3) square, by its entries: m/3 for each end of a rod, m/6 between its ends; none for phi."""
    M = {(i, i): _weight(i // 2, loops, m) * sympy.Rational(2, 3) for i in range(2 * loops + 2)}
    for a in range(2 * loops):
        M[a, a + 2] = M[a + 2, a] = m / 6
    return M


def _constraints(A: Sequence[Vector], B: Sequence[Vector], phi: Any, angle: float) -> list[SymbolicConstraint]:
    """Return the lengths of the rods and the meaning of phi, in the form that is regular at ``angle``."""
    loops = len(A) - 1
    rods = {f"rod A{i}B{i}": _between(A[i], B[i]) for i in range(loops + 1)}
    rods |= {f"rod B{i - 1}B{i}": _between(B[i - 1], B[i]) for i in range(1, loops + 1)}
    along_y = abs(sin(angle)) > abs(cos(angle))
    meaning = B[-1][0] - loops - sympy.cos(phi) if along_y else B[-1][1] - sympy.sin(phi)
    lengths = [SymbolicConstraint((_dot(d, d) - 1) / 2, name=name) for name, d in rods.items()]
    return [*lengths, SymbolicConstraint(meaning, name="angle phi")]


def equilibrium_angle(loops: int, branch: str) -> float:
    """Return phi where g (3N + 1)/2 cos(phi) = N k (s - l0) sin(phi/2), s = 2 cos(phi/2): springs carry the weight."""
    if branch == "hanging":
        return -pi / 2

    def moment(phi: float) -> float:
        spring = loops * STIFFNESS * (2 * cos(phi / 2) - NATURAL_LENGTH) * sin(phi / 2)
        return spring - GRAVITY * (3 * loops + 1) / 2 * cos(phi)

    # phi = pi/2, the lower end, is an equilibrium, too: unstable, with springs at their natural length
    return float(brentq(moment, pi / 2 + 0.1, pi, xtol=1e-15, rtol=4 * EPS))


def _labels(positions: Sequence[Any], loops: int) -> Labels:
    return Labels(
        units=dict.fromkeys(positions, "m")
        | {"phi": "rad", "w": "rad/s", "torque": "N.m", "coupler.y": "m"}
        | {"m": "kg", "k": "N/m", "l0": "m", "c": "N.s/m", "gx": "m/s2", "gy": "m/s2"},
        nominals=dict.fromkeys(positions, 1.0),
        descriptions={
            "phi": "angle of the last rod from the x axis",
            "torque": "torque on the last rod",
            "m": "mass of each rod",
            "k": "stiffness of each spring",
            "l0": "natural length of each spring",
            "c": "coefficient of each damper",
            "coupler.y": "height of the middle of the last coupler",
        },
        independent=("phi", "w"),
        description=f"Planar linkage of {loops} four-bar loop(s) with diagonal springs, in Cartesian coordinates",
    )


def _flat(points: Sequence[Any]) -> list[Any]:
    """Return the components of all points in one list."""
    return [component for point in points for component in point]


def four_bar_form(
    loops: int = 1,
    damping: float = 0.0,
    *,
    branch: Literal["upper", "hanging"] = "upper",
    angle: float | None = None,
    speed: float = 0.0,
) -> ConstrainedForm:
    """Return the sparse form of the four-bar linkage under a torque: n = 2N + 3 coordinates, m = 2N + 2 constraints.

    ``angle`` is phi of any configuration, equilibrium or not; multiples of pi are singular.
    """
    if loops < 1 or int(loops) != loops:
        raise UsageError(f"A four-bar linkage has 1 loop or more, not {loops}.")
    phi = equilibrium_angle(loops, branch) if angle is None else float(angle)
    if abs(np.sin(phi)) < 1e-8:
        raise UsageError(
            f"At phi = {phi:g} all rods of the linkage lie on one line, and the constraints depend on each other: the "
            "multipliers are not determined. Choose another angle, or use fmilin.systems.four_bar(singular=True)."
        )
    N, at_rest, by_x = int(loops), angle is None and speed == 0.0, abs(sin(phi)) > abs(cos(phi))
    graph = _graph(N, damping, by_x=by_x, moving=not at_rest)
    along, across = np.array([cos(phi), sin(phi)]), np.array([-sin(phi), cos(phi)])
    start = np.append((np.c_[np.arange(N + 1.0), np.zeros(N + 1)] + along).ravel(), phi)
    z, none = np.append(np.tile(across, N + 1), 1.0), np.zeros(2 * N + 2)
    v, a = speed * z, np.append(np.tile(-(speed**2) * along, N + 1), 0.0)
    M, Phi_q, f, *_ = graph(start, v, a, none)
    if not at_rest:  # virtual power along phi, the torque left out
        a = a + z * float(z @ (f[:, 0] - M @ a) / (z @ (M @ z)))
    # lambda from M q'' + Phi_q' lambda = f, through the saddle point system: Phi_q' alone is not square
    saddle = sparse.block_array([[sparse.eye_array(2 * N + 3), Phi_q.T], [Phi_q, None]], format="csc")
    solved = SparseFactors(saddle, "the matrix of the multipliers").solve(np.append(f[:, 0] - M @ a, none))
    multipliers = solved[2 * N + 3 :]
    _, _, _, C, K, *rates = graph(start, v, a, multipliers)
    return ConstrainedForm(
        M=M.tocsr(),
        C=C.tocsr(),
        K=K.tocsr(),
        Phi_q=Phi_q.tocsr(),
        B=sparse.csr_array(([1.0], ([2 * N + 2], [0])), shape=(2 * N + 3, 1)),
        multipliers=multipliers,
        names=(*(f"{axis}{i}" for i in range(N + 1) for axis in "xy"), "phi"),
        motion=None if at_rest else ConstraintMotion(v, a, rates[0].tocsr(), rates[1].tocsr(), 2 * rates[0].tocsr()),
    )


def _graph(N: int, c: float, *, by_x: bool, moving: bool) -> Callable[..., list[Any]]:
    """Return (q, q', q'', lambda) -> M, Phi_q, f without the torque, C, K, and of what moves Phi_q_dot, gamma_q."""
    n = 2 * N + 3
    q, v, a, multipliers = (ca.SX.sym(name, size) for name, size in (("q", n), ("v", n), ("a", n), ("l", n - 1)))
    (x, y), (x_dot, y_dot) = ((p[0 : n - 1 : 2], p[1 : n - 1 : 2]) for p in (q, v))
    base, halves = ca.DM(range(N + 1)), ca.DM([1.0, *[1.5] * (N - 1), 1.0])  # halves of the rods that end in B_i, in kg
    meaning = x[N] - N - ca.cos(q[n - 1]) if by_x else y[N] - ca.sin(q[n - 1])
    rods, couplers = (x - base) ** 2 + y**2, (x[1:] - x[:-1]) ** 2 + (y[1:] - y[:-1]) ** 2
    Phi_q = ca.jacobian(ca.vertcat((rods - 1) / 2, (couplers - 1) / 2, meaning), q)
    dx, dy = x[1:] - base[:-1], y[1:]  # of the springs
    s = ca.sqrt(dx**2 + dy**2)
    pull = -(STIFFNESS * (s - NATURAL_LENGTH) + c * (dx * x_dot[1:] + dy * y_dot[1:]) / s) / s
    f_x, f_y = ca.vertcat(0, pull * dx), ca.vertcat(0, pull * dy) - GRAVITY * halves
    f = ca.vertcat(ca.vec(ca.horzcat(f_x, f_y).T), 0)
    energy = sum(ca.dot(halves, u**2) / 3 + ca.dot(u[1:], u[:-1]) / 6 for u in (x_dot, y_dot))
    K = ca.jacobian(ca.mtimes(Phi_q.T, multipliers) - f, q)
    results = [ca.jacobian(ca.gradient(energy, v), v), Phi_q, ca.densify(f), -ca.jacobian(f, v), K]
    if moving:
        Phi_q_dot = ca.jacobian(ca.mtimes(Phi_q, v), q)
        results += [Phi_q_dot, ca.jacobian(ca.mtimes(Phi_q, a) + ca.mtimes(Phi_q_dot, v), q)]
    return sparse_function([q, v, a, multipliers], results)
