"""CasADi: the double pendulum in two angles, Lagrange's equations by its automatic differentiation: ``... ROW``."""

from __future__ import annotations

import casadi as ca
import numpy as np

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell
from benchmarks.scoreboard.rows.pendulum_double_slow import L, M, below, g, m

q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
upper = ca.vertcat(L * ca.sin(q[0]), -L * ca.cos(q[0]))
lower = upper + ca.vertcat(below * ca.sin(q[1]), -below * ca.cos(q[1]))
speeds = [ca.jtimes(place, q, v) for place in (upper, lower)]
T = M * ca.dot(speeds[0], speeds[0]) / 2 + m * ca.dot(speeds[1], speeds[1]) / 2
lagrangian = T - g * (M * upper[1] + m * lower[1])
momenta = ca.gradient(lagrangian, v)
rates = ca.solve(ca.jacobian(momenta, v), ca.gradient(lagrangian, q) - ca.jtimes(momenta, q, v))
x = ca.vertcat(q, v)
A = np.array(ca.Function("A", [x], [ca.jacobian(ca.vertcat(v, rates), x)])(np.zeros(4)))
tell("casadi", nearest_of(np.linalg.eigvals(A), chosen_row().ROW.value), "CasADi")
