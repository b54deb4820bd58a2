"""A linear model in other coordinates z of its independent states: y - y0 = V (z - z0), z - z0 = W (y - y0), W V = I.

With fewer columns in V than there are states this is a projection: whoever calls says what it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.ground.tolerances import EQUILIBRIUM
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import EntryErrors, LinearModel

_EPS = float(np.finfo(float).eps)


def transformed(
    linear: LinearModel,
    V: FloatArray,
    W: FloatArray,
    states: Signals,
    *,
    z0: FloatArray | None = None,
    coordinates: str = "",
    remarks: Sequence[Remark] = (),
) -> LinearModel:
    """Return the linear model in the coordinates z = W y with y = V z, V (P, r), whose values at the point are z0."""
    E = linear.errors
    V_, W_ = np.abs(V), np.abs(W)

    def carried(error: FloatArray, matrix: FloatArray, left: FloatArray | None, right: FloatArray | None) -> FloatArray:
        total = error + 4 * _EPS * np.abs(matrix)  # what was estimated, and the rounding of the products
        total = total if left is None else left @ total
        return total if right is None else total @ right

    changed = replace(
        linear,
        A=W @ linear.A @ V,
        B=W @ linear.B,
        C=linear.C @ V,
        T=linear.T @ V,
        f0=W @ linear.f0,
        y0=np.zeros(V.shape[1]) if z0 is None else z0,
        states=states,
        method=replace(linear.method, coordinates=coordinates or linear.method.coordinates),
        warnings=(*linear.warnings, *remarks),
        descriptor=linear.descriptor if V.shape[0] == V.shape[1] else None,  # has the modes of all states
        derivatives={},
    )
    errors = EntryErrors(
        A=carried(E.A, linear.A, W_, V_),
        B=carried(E.B, linear.B, W_, None),
        C=carried(E.C, linear.C, None, V_),
        D=E.D,
        T=carried(E.T, linear.T, None, V_),
    )
    return with_errors(changed, errors)


def new_states(names: Sequence[str], descriptions: Sequence[str], linear: LinearModel) -> Signals:
    """Return signals of size 1 without units; a name that the model uses already gets an underscore."""
    groups = (linear.full_states, linear.inputs, linear.outputs)
    taken = {name for group in groups for name in group.names}
    described = zip(names, descriptions, strict=True)
    return Signals(Signal(_free(name, taken), description=text, nominal=1.0) for name, text in described)


def sizes(signals: Signals) -> FloatArray:
    """Return the declared nominal values, and 1 where there is none, shape (n,)."""
    return np.array([nominal or 1.0 for nominal in _declared(signals)])


def _declared(signals: Signals) -> list[float | None]:
    return [s.nominal if s.nominal and 0 < s.nominal < np.inf else None for s in signals]


def is_at_rest(linear: LinearModel) -> bool:
    """Whether f0 is zero for all practical purposes: otherwise it drives the model as an input would."""
    return bool(np.all(np.abs(linear.f0) <= EQUILIBRIUM * linear.states.scales(linear.y0)))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def balance(linear: LinearModel, by: Literal["nominals", "norms"] = "nominals") -> LinearModel:
    """Return the linear model with states divided by declared nominal values, or by powers of two (LAPACK ``gebal``).

    These make rows and columns of A equally large and cost not a single rounding; ``p`` by 100000 is called
    ``p/100000``.
    """
    s = _scales(linear, by)
    states = Signals(map(_scaled, linear.states, s.tolist()))
    kind = "scaled states" if np.any(s != 1) else ""
    return transformed(linear, np.diag(s), np.diag(1 / s), states, z0=linear.y0 / s, coordinates=kind)


def _scales(linear: LinearModel, by: str) -> FloatArray:
    if by == "norms":
        from scipy.linalg import matrix_balance

        if not len(linear.states):
            return np.ones(0)
        return np.asarray(matrix_balance(linear.A, permute=False, separate=True)[1][0], dtype=np.float64)
    if by != "nominals":
        raise UsageError(f"'{by}' is no way to balance a linear model: use nominals or norms.")
    declared = _declared(linear.states)
    if declared and not any(declared):
        raise UsageError(
            "No state of this linear model has a nominal value to be divided by. Balance by norms instead "
            "(--balance norms)."
        )
    return sizes(linear.states)


def _scaled(signal: Signal, size: float) -> Signal:
    if size == 1.0:
        return signal
    text = f"{size:g}" if float(f"{size:g}") == size else repr(size)
    nominal = 1.0 if signal.nominal is None else signal.nominal / size
    description = f"{signal.description} in {text} {signal.unit}".strip()
    return Signal(f"{signal.name}/{text}", nominal=nominal, start=signal.start / size, description=description)
