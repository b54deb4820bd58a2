"""Whether constraints belong together: f_v to d/dt f_c, f_a to d/dt f_v.

The constraints need not be derivatives of each other letter by letter, only equivalent on the manifold: where
f_c = 0 and f_v = 0 the motion must keep f_c, and the accelerations that f_a allows must be those that keep f_v.
That is tested at points near the start.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fmilin.ground.errors import ConstraintError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INVARIANT
from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.native.declaration import der
from fmilin.native.kane.functions import KaneFunctions

SAMPLES = 4
RADIUS = 0.1  # how far from the start, in sizes of the states

ITERATIONS = 30


def check_constraints(functions: KaneFunctions, system: SymbolicSystem) -> None:
    """Raise when f_c, f_v and f_a contradict each other; say nothing where no consistent point is near the start."""
    if not functions.form.f_c and not functions.form.velocity:
        return
    for arguments, q_dot in _points(functions, system):
        _check(functions, arguments, q_dot, system.name)


def _points(functions: KaneFunctions, system: SymbolicSystem) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield consistent points beside the start, with q'."""
    random = np.random.default_rng(2014)
    x0, r0 = system.state_signals.starts, system.input_signals.starts
    scales = system.state_signals.scales(x0)
    p = np.array(list(system.parameters.values()), dtype=np.float64)
    for k in range(SAMPLES):
        x = x0 + (RADIUS / 2**k) * scales * random.uniform(-1.0, 1.0, len(x0))
        r = r0 + (RADIUS / 2**k) * random.uniform(-1.0, 1.0, len(r0))
        arguments = np.concatenate(([random.uniform(0.0, 0.1)], x, r, p))
        if _project(functions, arguments, scales):
            q_dot = functions.coordinate_rates(arguments)
            if np.isfinite(q_dot).all():
                yield arguments, q_dot


def _project(functions: KaneFunctions, arguments: FloatArray, scales: FloatArray) -> bool:
    """Move to the nearest point with f_c = 0 and f_v = 0, first q, then u; return whether there is one."""
    n, o, first_v = len(functions.form.q), len(functions.form.u), len(functions.form.f_c)
    for span, columns, rows, D in (
        (slice(1, 1 + n), slice(1, 1 + n), slice(0, first_v), scales[:n]),
        (slice(1 + n, 1 + n + o), slice(1 + 2 * n, 1 + 2 * n + o), slice(first_v, None), scales[n:]),
    ):
        for _ in range(ITERATIONS):
            values, G = functions.constraints(arguments)
            if not (np.isfinite(values).all() and np.isfinite(G).all()):
                return False
            step = D * (np.linalg.pinv(G[rows, columns] * D, rcond=1e-10) @ values[rows])
            arguments[span] -= step
            if np.max(np.abs(step) / D, initial=0.0) < 1e-13:
                break
        else:
            return False
    return True


def _check(functions: KaneFunctions, arguments: FloatArray, q_dot: FloatArray, name: str) -> None:
    form = functions.form
    n, o, first_v, inputs = len(form.q), len(form.u), len(form.f_c), list(form.inputs)
    _, G = functions.constraints(arguments)
    r = arguments[1 + n + o : 1 + n + o + len(inputs)]
    r_dot = [r[inputs.index(der(a))] if der(a) in inputs else 0.0 for a in inputs]
    moving = np.concatenate(([1.0], q_dot, np.zeros(n + o), r_dot))  # how (t, q, q', u, r) change, u' left out
    drift = G @ moving
    size = np.abs(G) @ np.abs(moving) + 1e-3 * np.abs(G).sum(axis=1)
    if bad := _residuals(form.configuration_names, drift[:first_v], size[:first_v]):
        raise ConstraintError(
            f"The velocity constraints of '{name}' do not keep the configuration constraints: at a point with f_c = 0 "
            f"and f_v = 0, {_listed(bad)}. f_v must include the time derivative of each f_c (or equivalent equations), "
            "written in the speeds u.",
            residuals=bad,
        )
    B, (M, rest) = G[first_v:, 1 + 2 * n : 1 + 2 * n + o], functions.acceleration_constraints(arguments, q_dot)
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
