"""Discretization (``scipy.signal.cont2discrete``), with f0 of a point that is no equilibrium, and errors of entries.

Inputs are held between samples (zoh), run in straight lines (foh; the state is y - G2 (u - u0)), or s = 2/h (z - 1)/(z
+ 1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import EntryErrors, LinearModel

Hold = Literal["zoh", "foh", "tustin"]
_SCIPY: dict[str, Literal["zoh", "foh", "bilinear"]] = {"zoh": "zoh", "foh": "foh", "tustin": "bilinear"}
_Matrices = dict[str, Any]


def discretize(linear: LinearModel, sample_time: float, hold: Hold = "zoh") -> LinearModel:
    """Return the sampled linear model, with a remark where oscillations are faster than half the sampling frequency.

    States of foh and tustin are no states of the model any more: their names say so, and ``T`` and ``T_u`` lead
    back.
    """
    if linear.sample_time > 0:
        raise UsageError(
            f"This linear model is sampled already, every {linear.sample_time:g} s. Sample the continuous one."
        )
    if not (np.isfinite(sample_time) and sample_time > 0):
        raise UsageError(f"A sample time of {sample_time:g} s does not exist: give a positive one, in seconds.")
    if hold not in _SCIPY:
        raise UsageError(f"'{hold}' is no method of discretization: use zoh, foh or tustin.")
    sampled = _sampled(_matrices(linear, linear.errors, 0.0), sample_time, hold)
    moved = _sampled(_matrices(linear, linear.errors, 1.0), sample_time, hold)
    if not all(np.isfinite(m).all() for m in sampled.values()):
        raise NumericalError(
            f"The model cannot be sampled every {sample_time:g} s by {hold}: a motion grows beyond all numbers within "
            "one sample, or 2/h is an eigenvalue. Take a shorter sample time."
        )
    eps = float(np.finfo(float).eps)
    errors = {name: np.abs(moved[name] - m) + 4 * eps * np.abs(m) for name, m in sampled.items()}
    same = hold == "zoh"
    named = [s if same else replace(s, name=f"{s.name} ({hold})", aliases=()) for s in linear.states]
    result = replace(
        linear,
        **sampled,
        states=Signals(named),
        sample_time=float(sample_time),
        descriptor=None,
        derivatives={},
        warnings=(*linear.warnings, *_aliasing(linear, sample_time)),
    )
    return with_errors(result, EntryErrors(**{name: errors[name] for name in ("A", "B", "C", "D", "T")}))


def _matrices(linear: LinearModel, E: EntryErrors, share: float) -> _Matrices:
    """Return the continuous matrices, moved by a share of their estimated errors."""
    pairs = {name: (getattr(linear, name), getattr(E, name)) for name in ("A", "B", "C", "D", "T")}
    return {name: m + share * e for name, (m, e) in pairs.items()} | {"T_u": linear.T_u, "f0": linear.f0}


def _sampled(m: _Matrices, h: float, hold: Hold) -> _Matrices:
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


def _aliasing(linear: LinearModel, h: float) -> list[Remark]:
    fastest = float(np.abs(linear.eigenvalues().imag).max(initial=0.0))
    text = (
        f"A motion of {fastest:.5g} rad/s is faster than half the sampling frequency ({np.pi / h:.5g} rad/s): samples "
        "show it as a slower one."
    )
    return [] if fastest * h < np.pi else [Remark("aliasing", text)]
