"""The N-loop four-bar linkage with springs along its diagonals, heavily constrained: one degree of freedom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import Any, Literal

import numpy as np
import sympy
from scipy.optimize import brentq

from fmilin.ground.errors import UsageError
from fmilin.native.declaration import Labels, SymbolicConstraint
from fmilin.native.lagrange import LagrangeModel

__all__ = ["equilibrium_angle", "four_bar"]

GRAVITY = 9.81
STIFFNESS = 25.0
NATURAL_LENGTH = sqrt(2.0)

Vector = tuple[Any, Any]  # of sympy expressions: products of sympy matrices would take most of the time of large ones


def four_bar(
    loops: int = 1, damping: float = 0.0, *, singular: bool = False, branch: Literal["upper", "hanging"] = "upper"
) -> LagrangeModel:
    """Return the N-loop four-bar linkage of González et al.: 4N + 6 states, of which 2 are independent.

    Points A_i = (i, 0) are on the ground, i = 0..N; points B_i = (x_i, y_i) are free. Rods A_i B_i and
    B_(i-1) B_i are uniform, 1 m and 1 kg each, with mass matrix m/6 [[2I, I], [I, 2I]] in the coordinates of
    their ends. Spring i joins B_i and A_(i-1): k = 25 N/m, natural length l0 = sqrt(2) m, with a damper c in
    parallel. Gravity points to -y. The coordinates are x_0, y_0, .., x_N, y_N and the angle phi of the last rod
    A_N B_N, which has no inertia of its own; the constraints are (d^2 - 1)/2 = 0 for the length d of every rod,
    and y_N = sin(phi), or x_N - N = cos(phi) where |sin(phi)| > |cos(phi)|.

    The input is a ``torque`` on the last rod, in N m, positive in the direction of phi. The outputs are ``phi``,
    ``w`` and ``coupler.y``, the height of the middle of the last coupler in m.

    loops: N, at least 1.
    damping: c in Ns/m.
    singular: instead of the springs (k = 0) gravity along +x holds the linkage at phi = 0, where all rods lie on one
        line and the constraints depend on each other: the accelerations are not determined there, and evaluating the
        model raises NumericalError.
    branch: which of the two stable equilibria it starts at.

    All rods A_i B_i stay parallel, so that with J = (4N + 1)/3

        J phi'' = torque - g (3N + 1)/2 cos(phi) + N k (s - l0) sin(phi/2) - N c sin(phi/2)^2 phi',

    s = 2 cos(phi/2) being the length of the springs: the eigenvalues are +- 2.147676638502278 i (N = 1, upper).

    >>> model = four_bar()
    >>> model.states.names
    ('x0', 'y0', 'x1', 'y1', 'phi', 'vx0', 'vy0', 'vx1', 'vy1', 'w')
    """
    if loops < 1 or int(loops) != loops:
        raise UsageError(f"A four-bar linkage has 1 loop or more, not {loops}.")
    if branch not in ("upper", "hanging"):
        raise UsageError(f"'{branch}' is no equilibrium of the four-bar linkage; choose 'upper' or 'hanging'.")
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
    """Return phi where the springs carry the weight: g (3N + 1)/2 cos(phi) = N k (s - l0) sin(phi/2), s = 2 cos(phi/2).

    Hanging, the springs are at their natural length and phi = -pi/2.
    """
    if branch == "hanging":
        return -pi / 2

    def moment(phi: float) -> float:
        spring = loops * STIFFNESS * (2 * cos(phi / 2) - NATURAL_LENGTH) * sin(phi / 2)
        return spring - GRAVITY * (3 * loops + 1) / 2 * cos(phi)

    # phi = pi/2, the lower end, is an equilibrium, too: unstable, with springs at their natural length
    return float(brentq(moment, pi / 2 + 0.1, pi, xtol=1e-15, rtol=4 * np.finfo(np.float64).eps))


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
