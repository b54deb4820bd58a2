"""Zero dynamics: the motion that remains when inputs hold the outputs at their values of the point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError, join_first
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import EntryErrors, LinearModel
from fmilin.linear_model.system_zeros import build_pencil, select_channels
from fmilin.numerics.system_pencil import equilibrate, find_zero_motion
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import EPS, EQUILIBRIUM_RATE_TOLERANCE

MAX_NAMES = 4  # in a diagnostic


def find_zero_dynamics(
    linear: LinearModel, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> LinearModel:
    """Return the linear model of the motion that remains while the chosen inputs hold the chosen outputs.

    With x = V z and u = F z the outputs stay zero: A V + B F = V A_z and C V + D F = 0. Of the states those are z
    that determine the others best.
    """
    linear = select_channels(linear.with_prescribed_states(), inputs, outputs)
    scaled = equilibrate(build_pencil(linear))
    motion = find_zero_motion(scaled.pencil)
    n = len(linear.states)
    if motion.freedom:
        raise UsageError(
            f"The outputs do not determine the inputs: {motion.freedom} combination(s) of the {len(linear.inputs)} "
            "inputs can move states without effect on the outputs, so the zero dynamics are not unique. Name as many "
            "inputs as outputs, inputs=['NAME']."
        )
    V, F = scaled.columns[:n, None] * motion.space[:n], scaled.columns[n:, None] * motion.space[n:]
    positions = _choose_states(motion.space[:n])
    G = np.linalg.inv(V[positions])  # so that z are these states
    V, F = V @ G, F @ G
    # of the equations: left E [V; F] = I
    left_inverse = np.linalg.inv(G) @ motion.left_vectors.T * scaled.rows * scaled.unit
    _require_constant_outputs(linear, V)
    input_rows = scaled.columns[n:, None] * motion.input_rows * scaled.rows
    pencil = build_pencil(linear)
    space = np.vstack((V, F))
    error = (pencil.error + 4 * EPS * np.abs(pencil.S)) @ np.abs(space)
    text = (
        f"Zero dynamics: {join_first(linear.inputs.names, MAX_NAMES)} as the outputs here hold "
        f"{join_first(linear.outputs.names, MAX_NAMES)} at the values of the point."
    )
    result = replace(
        linear,
        A=left_inverse @ pencil.S @ space,
        B=np.zeros((len(positions), 0)),
        C=F,
        D=np.zeros((len(linear.inputs), 0)),
        T=linear.T @ V + linear.T_u @ F,
        T_u=np.zeros((len(linear.full_states), 0)),
        f0=linear.f0[positions],
        y0=linear.y0[positions],
        states=linear.states.select(positions),
        inputs=Signals(),
        outputs=linear.inputs,
        point=replace(
            linear.point, inputs={}, outputs={name: linear.point.inputs[name] for name in linear.inputs.names}
        ),
        descriptor=None,
        derivatives={},
        discrete=None,
        warnings=(*linear.warnings, Remark("zero-dynamics", text)),
    )
    E = linear.errors
    errors = EntryErrors(
        A=np.abs(left_inverse) @ error,
        B=result.B,
        C=np.abs(input_rows) @ error,
        D=result.D,
        T=E.T @ np.abs(V),
    )
    return with_errors(result, errors)


def _choose_states(V: FloatArray) -> list[int]:
    """Return the positions of as many states as V has columns, by which the others are determined best."""
    from scipy.linalg import qr

    if not V.shape[1]:
        return []
    pivots = qr(V.T, mode="r", pivoting=True)[1]
    return sorted(int(i) for i in pivots[: V.shape[1]])


def _require_constant_outputs(linear: LinearModel, V: FloatArray) -> None:
    """Raise UsageError if the constant rate at the point leaves the motion in which outputs stay."""
    sizes = linear.states.scales(linear.y0)
    rate, basis = linear.f0 / sizes, V / sizes[:, None]
    if not len(rate):
        return
    rest = rate - basis @ np.linalg.lstsq(basis, rate)[0] if basis.shape[1] else rate
    worst = int(np.abs(rest).argmax())
    if abs(rest[worst]) > EQUILIBRIUM_RATE_TOLERANCE:
        raise UsageError(
            f"The point moves: '{linear.states.names[worst]}' changes at {linear.f0[worst]:.6g} per second, and the "
            "outputs cannot be held at their values of the point without stopping it. Find the zero dynamics at an "
            "equilibrium (fl.trim), or of a steady motion along which these outputs are constant."
        )
