"""SymPy's LagrangesMethod with multipliers for the double pendulum in x and y: ``... ROW``."""

from __future__ import annotations

import numpy as np
from sympy import Matrix, Rational
from sympy.physics.mechanics import LagrangesMethod, Lagrangian, Particle, Point, ReferenceFrame, dynamicsymbols

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell
from benchmarks.scoreboard.rows.pendulum_double_slow import L, M, below, g, m

M, m, L, below, g = (Rational(str(value)) for value in (M, m, L, below, g))
x1, y1, x2, y2 = dynamicsymbols("x1 y1 x2 y2")
N, origin, particles = ReferenceFrame("N"), Point("O"), []
origin.set_vel(N, 0)
for mass, (x, y) in ((M, (x1, y1)), (m, (x2, y2))):
    place = origin.locatenew(f"P{mass}", x * N.x + y * N.y)
    place.set_vel(N, place.pos_from(origin).dt(N))
    particles.append(Particle(f"p{mass}", place, mass))
    particles[-1].potential_energy = mass * g * y
strings = [x1**2 + y1**2 - L**2, (x2 - x1) ** 2 + (y2 - y1) ** 2 - below**2]
method = LagrangesMethod(Lagrangian(N, *particles), [x1, y1, x2, y2], hol_coneqs=strings, frame=N)
method.form_lagranges_equations()
hanging = {x1: 0, y1: -L, x2: 0, y2: -L - below}
multipliers = [(M + m) * g / (2 * L), m * g / (2 * below)]
point = hanging | {q.diff(): 0 for q in hanging} | dict(zip(method.lam_vec, multipliers, strict=True))
lagrange = method.linearize(
    q_ind=[x1, x2],
    qd_ind=[x1.diff(), x2.diff()],
    q_dep=[y1, y2],
    qd_dep=[y1.diff(), y2.diff()],
    op_point=point,
    A_and_B=True,
)
A = np.array(Matrix(lagrange[0]).evalf(), dtype=float)
tell("sympy", nearest_of(np.linalg.eigvals(A), chosen_row().ROW.value), "SymPy")
