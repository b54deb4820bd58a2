"""The IEEE 300-bus network with a classical machine at each generator: 738 algebraic variables, and an independent A.

Buses, lines, loads and dispatch are those of the published case (PYPOWER's ``case300``); its power flow gives the
point; the machines' reactances and inertias are ours. Loads draw constant power, so that the network is nonlinear. The
independent computation uses arrays alone: the derivatives of each bus' current balance in polar terms of complex
numbers, and their Schur complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin import LinearModel, Signal, Signals
from fmilin.models import DaeGraph

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
REACTANCE, INERTIA, DAMPING = 0.25, 8.0, 2.0  # in p.u. of the machine; 2 H in s; p.u. of power per p.u. of speed
SPEED = 2 * np.pi * 60  # rad/s


@dataclass(frozen=True, eq=False)
class PowerSystem:
    """A network of n buses with m machines, at its power flow, in p.u."""

    Y: Complex  # shape (n, n)
    V: Complex  # shape (n,)
    load: Complex  # power drawn, shape (n,)
    at: NDArray[np.intp]  # buses of the machines, shape (m,)
    x: Array  # reactances, shape (m,)
    M: Array  # inertias, shape (m,)
    D: Array  # shape (m,)
    E: Complex  # voltages behind the reactances, shape (m,)

    def error(self, lin: LinearModel) -> float:
        """Return the largest difference of A and B from the independent computation, of the largest entry."""
        A, B = self._independent()
        m, names = len(self.at), lin.full_states.names
        order = [names.index(name) for name in lin.states.names]
        assert len(order) == 2 * m
        wrong = max(np.abs(lin.A - A[np.ix_(order, order)]).max(), np.abs(lin.B - B[order]).max())
        return float(wrong / np.abs(A).max())

    def _independent(self) -> tuple[Array, Array]:
        """Return A and B over the angles, then the speeds."""
        n, m = len(self.V), len(self.at)
        y = 1 / (1j * self.x)
        whole = self.Y.copy()
        whole[self.at, self.at] += y
        # conj(S / V) changes by -conj(S) / conj(V)^2 conj(dV)
        mirrored = np.diag(-np.conj(self.load) / np.conj(self.V) ** 2)
        J = np.block(
            [[(whole + mirrored).real, (-whole + mirrored).imag], [(whole + mirrored).imag, (whole - mirrored).real]]
        )
        pushed = np.zeros((n, m), dtype=complex)
        pushed[self.at, np.arange(m)] = y * 1j * self.E
        dV = np.linalg.solve(J, np.vstack((pushed.real, pushed.imag)))
        dV = dV[:n] + 1j * dV[n:]
        current = (self.E - self.V[self.at]) * y
        changes = y[:, None] * (np.diag(1j * self.E) - dV[self.at])
        P = np.real(np.conj(current)[:, None] * np.diag(1j * self.E) + self.E[:, None] * np.conj(changes))
        A = np.zeros((2 * m, 2 * m))
        A[:m, m:] = SPEED * np.eye(m)
        A[m:, :m], A[m:, m:] = -P / self.M[:, None], -np.diag(self.D / self.M)
        B = np.zeros((2 * m, 1))
        B[m] = 1 / self.M[0]
        return A, B

    @cached_property
    def graph(self) -> DaeGraph:
        """The equations: swing equations, currents of machines, and the current balance of each bus."""
        n, m = len(self.V), len(self.at)
        d, w, a, b, u = (ca.SX.sym(s, k) for s, k in (("d", m), ("w", m), ("a", n), ("b", n), ("u", 1)))
        re, im, dd, dw = (ca.SX.sym(s, m) for s in ("ir", "ii", "dd", "dw"))
        G, S = ca.DM(self.Y.real), ca.DM(self.Y.imag)
        G, S = ca.sparsify(G), ca.sparsify(S)
        P, Q, size = ca.DM(self.load.real), ca.DM(self.load.imag), a**2 + b**2
        drawn = (P * a + Q * b) / size, (P * b - Q * a) / size
        balance = [ca.mtimes(G, a) - ca.mtimes(S, b) + drawn[0], ca.mtimes(S, a) + ca.mtimes(G, b) + drawn[1]]
        fed = ca.DM(*_entries(self.at, n))
        balance = [balance[0] - ca.mtimes(fed, re), balance[1] - ca.mtimes(fed, im)]
        E, x, at = ca.DM(np.abs(self.E)), ca.DM(self.x), self.at.tolist()
        sent = (E * ca.cos(d), E * ca.sin(d))
        start = np.conj((self.E - self.V[self.at]) / (1j * self.x)) * self.E
        first = ca.vertcat(u, ca.SX.zeros(m - 1, 1))
        swings = self.M * dw - (start.real + first - sent[0] * re - sent[1] * im - ca.DM(self.D) * w)
        machines = [sent[0] - a[at] + x * im, sent[1] - b[at] - x * re]
        current = (self.E - self.V[self.at]) / (1j * self.x)
        starts = np.concatenate((self.V.real, self.V.imag, current.real, current.imag))
        names = [f"{s}[{k + 1}]" for s, c in (("vr", n), ("vi", n), ("ir", m), ("ii", m)) for k in range(c)]
        angles = np.angle(self.E)
        return DaeGraph(
            name="ieee300",
            residuals=ca.vertcat(dd - SPEED * w, swings, *machines, *balance),
            x=ca.vertcat(d, w), dx=ca.vertcat(dd, dw), z=ca.vertcat(a, b, re, im), u=u,
            states=Signals([*(Signal(f"delta[{k + 1}]", "rad", start=angles[k]) for k in range(m)),
                            *(Signal(f"w[{k + 1}]", "1") for k in range(m))]),
            algebraic=Signals(Signal(name, "1", start=float(v)) for name, v in zip(names, starts, strict=True)),
            inputs=Signals([Signal("u", "1")]),
        )  # fmt: skip


def _entries(at: NDArray[np.intp], n: int) -> tuple[Any, Any]:
    """Return the pattern and the values of the matrix that puts machines on their buses."""
    m = len(at)
    return ca.Sparsity.triplet(n, m, at.tolist(), list(range(m))), np.ones(m)


def ieee_300() -> PowerSystem:
    """Return the network at its power flow; ImportError without PYPOWER."""
    from pypower.api import case300, ext2int, makeYbus, ppoption, runpf

    solved, converged = runpf(case300(), ppoption(VERBOSE=0, OUT_ALL=0))
    assert converged
    case = ext2int(solved)
    bus, gen, base = case["bus"], case["gen"], case["baseMVA"]
    Y = makeYbus(base, bus, case["branch"])[0].toarray()
    V = bus[:, 7] * np.exp(1j * np.radians(bus[:, 8]))
    at = gen[:, 0].astype(np.intp)
    rating = np.maximum(np.abs(gen[:, 1]), 50.0) / base
    current = Y @ V + np.conj((bus[:, 2] + 1j * bus[:, 3]) / base / V)
    x = REACTANCE / rating
    assert len(set(at.tolist())) == len(at)
    others = np.setdiff1d(np.arange(len(V)), at)
    assert np.abs(current[others]).max() < 1e-6  # the power flow's own tolerance: its residual is drawn by the load
    load = (bus[:, 2] + 1j * bus[:, 3]) / base
    load[others] = -V[others] * np.conj(Y @ V)[others]
    E = V[at] + 1j * x * current[at]
    return PowerSystem(Y, V, load, at, x, INERTIA * rating, DAMPING * rating, E)
