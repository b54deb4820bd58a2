"""Do the constraints of a form belong together? f_v with d/dt f_c, and f_a with d/dt f_v, at points beside the start.

The constraints need not be derivatives of each other letter by letter, only equivalent on the manifold: where
f_c = 0 and f_v = 0 the motion must keep f_c, and the accelerations that f_a allows must be those that keep f_v.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fmilin.codegen.factorized import Factorized
from fmilin.codegen.program import Program
from fmilin.codegen.python_writer import PythonFunction
from fmilin.codegen.staged import leaf_names
from fmilin.errors import ConstraintError
from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.models.declaration import der
from fmilin.models.kane.blocks import AtomMatrix
from fmilin.models.kane.form import KaneForm
from fmilin.signals import FloatArray
from fmilin.tolerances import INVARIANT

__all__ = ["check_constraints"]

SAMPLES = 4
BESIDE = 0.1
"""How far from the start, in sizes of the states."""

ITERATIONS = 30


def check_constraints(form: KaneForm, system: SymbolicSystem) -> None:
    """Raise when f_c, f_v and f_a contradict each other; say nothing where no consistent point is found near the start.

    Raises
    ------
    ConstraintError
        With the residuals.
    """
    if not form.f_c and not form.velocity:
        return
    parts = _Parts(form)
    for point in _points(parts, system):
        _check(parts, form, point, system.name)


class _Parts:
    """Constraints, kinematic equations and acceleration constraints as functions of (t, q, u, r, p, q')."""

    def __init__(self, form: KaneForm) -> None:
        leaves = (form.time, *form.states, *form.inputs, *form.parameters, *form.q_dot)
        self.n, self.o = len(form.q), len(form.u)
        self.configuration, self.count = len(form.f_c), len(form.f_c) + len(form.velocity)
        self.columns = 1 + self.n + self.o + len(form.inputs)
        """Of (t, q, u, r): the first leaves."""
        self.size = len(leaves)
        program = Program(leaf_names(leaves))
        constraints = [program.add(e) for e in (*form.f_c, *form.f_v)]
        gradients = program.gradients(constraints, leaves[: self.columns])
        self._G = AtomMatrix(
            (self.count, self.columns), {(i, j): a for i, row in enumerate(gradients) for j, a in row.items()}
        )
        self._K = AtomMatrix.of_rows(program, form.kinematics, form.q_dot)
        self._M = AtomMatrix.of_rows(program, form.acceleration, form.u_dot)
        self._constraints = PythonFunction(program, [*constraints, *self._G.atoms])
        self._kinematics = PythonFunction(program, [*self._K.atoms, *(program.add(r.rest) for r in form.kinematics)])
        self._acceleration = PythonFunction(
            program, [*self._M.atoms, *(program.add(r.rest) for r in form.acceleration)]
        )

    def constraints(self, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (f_c, f_v) and the gradient for (t, q, u, r)."""
        values = self._constraints(s)
        return values[: self.count], self._G.filled(values[self.count :])

    def with_rates(self, s: FloatArray) -> FloatArray:
        """Return the leaves with q' as the kinematic equations say, NaN where they do not."""
        values = self._kinematics(s)
        size = len(self._K.atoms)
        K = Factorized(self._K.filled(values[:size]))
        s = s.copy()
        s[self.size - self.n :] = np.nan if K.is_singular else -K.solve(values[size:])
        return s

    def acceleration(self, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return M~uuc and the rest of f_a."""
        values = self._acceleration(s)
        size = len(self._M.atoms)
        return self._M.filled(values[:size]), values[size:]


def _points(parts: _Parts, system: SymbolicSystem) -> Iterator[FloatArray]:
    """Yield consistent points beside the start, with q'."""
    random = np.random.default_rng(2014)
    x0, r0 = system.state_signals.starts, system.input_signals.starts
    scales = system.state_signals.scales(x0)
    p = np.array(list(system.parameters.values()), dtype=np.float64)
    for k in range(SAMPLES):
        x = x0 + (BESIDE / 2**k) * scales * random.uniform(-1.0, 1.0, len(x0))
        r = r0 + (BESIDE / 2**k) * random.uniform(-1.0, 1.0, len(r0))
        s = np.concatenate(([random.uniform(0.0, 0.1)], x, r, p, np.zeros(parts.n)))
        s = parts.with_rates(_projected(parts, s, scales))
        if np.isfinite(s).all():
            yield s


def _projected(parts: _Parts, s: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the nearest point with f_c = 0 and f_v = 0, first q, then u; NaN where there is none."""
    n, first_v = parts.n, parts.configuration
    s = s.copy()
    q, u = slice(1, 1 + n), slice(1 + n, 1 + n + parts.o)
    for span, rows, D in ((q, slice(0, first_v), scales[:n]), (u, slice(first_v, None), scales[n:])):
        for _ in range(ITERATIONS):
            values, G = parts.constraints(s)
            if not (np.isfinite(values).all() and np.isfinite(G).all()):
                return np.full_like(s, np.nan)
            step = D * (np.linalg.pinv(G[rows, span] * D, rcond=1e-10) @ values[rows])
            s[span] -= step
            if np.max(np.abs(step) / D, initial=0.0) < 1e-13:
                break
        else:
            return np.full_like(s, np.nan)
    return s


def _check(parts: _Parts, form: KaneForm, s: FloatArray, name: str) -> None:
    n, o, first_v = parts.n, parts.o, parts.configuration
    _, G = parts.constraints(s)
    r = s[1 + n + o : parts.columns]
    moving = np.zeros(parts.columns)  # how (t, q, u, r) change, u' left out
    moving[0], moving[1 : 1 + n] = 1.0, s[parts.size - n :]
    inputs = list(form.inputs)
    moving[1 + n + o :] = [r[inputs.index(der(a))] if der(a) in inputs else 0.0 for a in inputs]
    drift = G @ moving
    size = np.abs(G) @ np.abs(moving) + 1e-3 * np.abs(G).sum(axis=1)
    if bad := _residuals(form.configuration_names, drift[:first_v], size[:first_v]):
        raise ConstraintError(
            f"The velocity constraints of '{name}' do not keep the configuration constraints: at a point with f_c = 0 "
            f"and f_v = 0, {_listed(bad)}. f_v must include the time derivative of each f_c (or equivalent equations), "
            "written in the speeds u.",
            residuals=bad,
        )
    B, (M, rest) = G[first_v:, 1 + n : 1 + n + o], parts.acceleration(s)
    if not (np.isfinite(M).all() and np.isfinite(rest).all()):
        return
    u_dot = -np.linalg.pinv(M, rcond=1e-10) @ rest
    free = np.eye(o) - np.linalg.pinv(M, rcond=1e-10) @ M
    missed = np.abs(B @ u_dot + drift[first_v:]) + np.abs(B @ free).sum(axis=1)
    largest = np.abs(B) @ (np.abs(u_dot) + 1.0) + size[first_v:]
    if bad := _residuals([row.name for row in form.velocity], missed, largest):
        raise ConstraintError(
            f"The acceleration constraints of '{name}' are not the time derivatives of the velocity constraints: for "
            f"accelerations with f_a = 0, {_listed(bad)}. Leave f_a out, and it is derived from f_v.",
            residuals=bad,
        )


def _residuals(names: list[str] | tuple[str, ...], values: FloatArray, sizes: FloatArray) -> dict[str, float]:
    relative = np.abs(values) / np.where(sizes > 0, sizes, 1.0)
    return {f"d/dt {name}": float(v) for name, v, q in zip(names, values, relative, strict=True) if q > INVARIANT}


def _listed(bad: dict[str, float]) -> str:
    return "; ".join(f"{name} is {value:.3g} instead of 0" for name, value in list(bad.items())[:6])
