"""A linear model in other coordinates z of its states, y - y0 = V (z - z0), z - z0 = W (y - y0), or as samples show it.

With fewer columns in V than there are states this is a projection: whoever calls says what it leaves out. Between
samples inputs are held (zoh), run in straight lines (foh; the state is y - G2 (u - u0)), or s = 2/h (z - 1)/(z + 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import EntryErrors, LinearModel
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.tolerances import EPS, EQUILIBRIUM_RATE_TOLERANCE


def transform(
    linear: LinearModel,
    V: FloatArray,
    W: FloatArray,
    states: Signals,
    *,
    z0: FloatArray | None = None,
    coordinates: str = "",
    remarks: Sequence[Remark] = (),
) -> LinearModel:
    """Return the linear model in the coordinates z = W y with y = V z, V (P, r), and z0 as values at the point."""
    E = linear.errors
    V_, W_ = np.abs(V), np.abs(W)

    def propagate_error(
        error: FloatArray, matrix: FloatArray, left_factor: FloatArray | None, right_factor: FloatArray | None
    ) -> FloatArray:
        total = error + 4 * EPS * np.abs(matrix)  # what was estimated, and the rounding of the products
        total = total if left_factor is None else left_factor @ total
        return total if right_factor is None else total @ right_factor

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
        discrete=None,
    )
    errors = EntryErrors(
        A=propagate_error(E.A, linear.A, W_, V_),
        B=propagate_error(E.B, linear.B, W_, None),
        C=propagate_error(E.C, linear.C, None, V_),
        D=E.D,
        T=propagate_error(E.T, linear.T, None, V_),
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
    return np.array([nominal or 1.0 for nominal in _list_nominals(signals)])


def _list_nominals(signals: Signals) -> list[float | None]:
    return [s.nominal if s.nominal and 0 < s.nominal < np.inf else None for s in signals]


def is_at_rest(linear: LinearModel) -> bool:
    """Whether f0 is zero for all practical purposes: otherwise it drives the model as an input would."""
    return bool(np.all(np.abs(linear.f0) <= EQUILIBRIUM_RATE_TOLERANCE * linear.states.scales(linear.y0)))


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
    states = Signals(map(_scale_signal, linear.states, s.tolist()))
    kind = "scaled states" if np.any(s != 1) else ""
    return transform(linear, np.diag(s), np.diag(1 / s), states, z0=linear.y0 / s, coordinates=kind)


def _scales(linear: LinearModel, by: str) -> FloatArray:
    if by == "norms":
        from scipy.linalg import matrix_balance

        if not len(linear.states):
            return np.ones(0)
        return np.asarray(matrix_balance(linear.A, permute=False, separate=True)[1][0], dtype=np.float64)
    if by != "nominals":
        raise UsageError(f"'{by}' is not a way to balance a linear model: use nominals or norms.")
    declared = _list_nominals(linear.states)
    if declared and not any(declared):
        raise UsageError(
            "No state of this linear model has a nominal value. Balance by norms instead: "
            "fl.reduction.balance(linear, 'norms')."
        )
    return sizes(linear.states)


def _scale_signal(signal: Signal, size: float) -> Signal:
    if size == 1.0:
        return signal
    text = f"{size:g}" if float(f"{size:g}") == size else repr(size)
    nominal = 1.0 if signal.nominal is None else signal.nominal / size
    description = f"{signal.description} in {text} {signal.unit}".strip()
    return Signal(f"{signal.name}/{text}", nominal=nominal, start=signal.start / size, description=description)


Hold = Literal["zoh", "foh", "tustin"]
_SCIPY: dict[str, Literal["zoh", "foh", "bilinear"]] = {"zoh": "zoh", "foh": "foh", "tustin": "bilinear"}
_Matrices = dict[str, Any]


def discretize(linear: LinearModel, sample_time: float, hold: Hold = "zoh") -> LinearModel:
    """Return the sampled linear model, with a diagnostic on oscillations above half the sampling frequency.

    States of foh and tustin are not states of the model any more: their names say so, and ``T`` and ``T_u`` lead
    back.
    """
    if linear.sample_time > 0:
        raise UsageError(
            f"This linear model is sampled already, every {linear.sample_time:g} s. Sample the continuous one."
        )
    if not (np.isfinite(sample_time) and sample_time > 0):
        raise UsageError(f"A sample time of {sample_time:g} s is not possible: give a positive one, in seconds.")
    if hold not in _SCIPY:
        raise UsageError(f"'{hold}' is not a method of discretization: use zoh, foh or tustin.")
    sampled = _sample_matrices(_matrices(linear, linear.errors, 0.0), sample_time, hold)
    moved = _sample_matrices(_matrices(linear, linear.errors, 1.0), sample_time, hold)
    if not all(np.isfinite(m).all() for m in sampled.values()):
        raise NumericalError(
            f"The model cannot be sampled every {sample_time:g} s by {hold}: a motion overflows within one sample, or "
            "2/h is an eigenvalue. Use a shorter sample time."
        )
    errors = {name: np.abs(moved[name] - m) + 4 * EPS * np.abs(m) for name, m in sampled.items()}
    same = hold == "zoh"
    named = [s if same else replace(s, name=f"{s.name} ({hold})", aliases=()) for s in linear.states]
    result = replace(
        linear,
        **sampled,
        states=Signals(named),
        sample_time=float(sample_time),
        descriptor=None,
        derivatives={},
        warnings=(*linear.warnings, *_check_aliasing(linear, sample_time)),
    )
    return with_errors(result, EntryErrors(**{name: errors[name] for name in ("A", "B", "C", "D", "T")}))


def _matrices(linear: LinearModel, E: EntryErrors, share: float) -> _Matrices:
    """Return the continuous matrices, moved by a share of their estimated errors."""
    pairs = {name: (getattr(linear, name), getattr(E, name)) for name in ("A", "B", "C", "D", "T")}
    return {name: m + share * e for name, (m, e) in pairs.items()} | {"T_u": linear.T_u, "f0": linear.f0}


def _sample_matrices(m: _Matrices, h: float, hold: Hold) -> _Matrices:
    """Return the sampled matrices: outputs and all states together are the rows of one C."""
    n, n_y = len(m["A"]), len(m["C"])
    C, D = np.vstack((m["C"], m["T"])), np.vstack((m["D"], m["T_u"]))
    A, B, C, D = _by_scipy((m["A"], m["B"], C, D), h, hold)
    # f0 is held, whatever the input does. Trapezoids add h f0 in their own state, which is y - h/2 (A dy + B du).
    f0 = h * m["f0"]
    if hold != "tustin":
        f0 = _by_scipy((m["A"], m["f0"][:, None], np.eye(n), np.zeros((n, 1))), h, "zoh")[1][:, 0]
    return {"A": A, "B": B, "C": C[:n_y], "D": D[:n_y], "T": C[n_y:], "T_u": D[n_y:], "f0": f0}


def _by_scipy(system: tuple[FloatArray, ...], h: float, hold: str) -> tuple[FloatArray, ...]:
    A, B, C, D = system
    if not len(A):
        return system
    from scipy.signal import cont2discrete

    width = B.shape[1]
    if not width:  # SciPy wants an input
        B, D = np.zeros((len(A), 1)), np.zeros((len(C), 1))
    if not len(C):
        C, D = np.zeros((1, len(A))), np.zeros((1, B.shape[1]))
    with np.errstate(all="ignore"):
        try:
            a, b, c, d, _ = cont2discrete((A, B, C, D), h, method=_SCIPY[hold])
        except np.linalg.LinAlgError:
            a = b = c = d = np.full((1, 1), np.nan)
            return a, b, c, d
    rows = len(system[2])
    return a, b[:, :width], c[:rows], d[:rows, :width]


def _check_aliasing(linear: LinearModel, h: float) -> list[Remark]:
    fastest = float(np.abs(linear.eigenvalues().imag).max(initial=0.0))
    text = (
        f"A motion of {fastest:.5g} rad/s is faster than half the sampling frequency ({np.pi / h:.5g} rad/s): in the "
        "samples it appears as a slower one."
    )
    return [] if fastest * h < np.pi else [Remark("aliasing", text)]
