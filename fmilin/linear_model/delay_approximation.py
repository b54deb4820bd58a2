"""Linear models without delays: Padé approximations in the places of the delays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import DEFAULT_PADE_ORDER, DelayedLinearModel, EntryErrors, LinearModel, relative_error
from fmilin.numerics.pade import ApproximateForm, approximate_form, find_largest_angle
from fmilin.signals import Signal, Signals
from fmilin.tolerances import EPS

PADE_ERROR = 0.01  # of the response of a delay, of which the modulus is 1
MAX_PADE_ORDER = 100
ROUNDING_FACTOR = 4.0  # units of eps in the products of the approximation


def find_pade_range(model: DelayedLinearModel, order: int) -> float:
    """Return up to which frequency in rad/s the approximation of each delay is off by less than 1 percent."""
    longest = max(model.delays.values(), default=0.0)
    return find_largest_angle(order, PADE_ERROR) / longest if longest > 0 else float("inf")


def approximate_by_pade(model: DelayedLinearModel, order: int = DEFAULT_PADE_ORDER) -> LinearModel:
    """Return the model with every delay replaced by its [order/order] approximation."""
    if not 1 <= order <= MAX_PADE_ORDER:
        raise UsageError(f"A Padé approximation of order {order} is not possible: take 1 to {MAX_PADE_ORDER}.")
    form = model.form
    approximation = approximate_form(form, order)
    if approximation is None:
        raise NumericalError(
            f"With Padé approximations of order {order} the delays close an algebraic loop without a solution. Take "
            "another order, odd instead of even."
        )
    core, system = model.core, approximation.system
    count = len(system.A) - len(form.A)
    channels = [name for name, seconds in model.delays.items() if seconds > 0]
    ladder = [Signal(f"delay of {name} [{k + 1}]") for name in channels for k in range(order)]
    limit = find_pade_range(model, order)
    text = (
        f"Delays ({', '.join(f'{name} by {seconds:g} s' for name, seconds in model.delays.items())}) were replaced by "
        f"Padé approximations of order {order}: each is off by less than 1 % up to {limit:.4g} rad/s."
    )
    matrices = {"A": system.A, "B": system.B, "C": system.C, "D": system.D}
    N = len(core.T)
    T = np.block([[core.T, np.zeros((N, count))], [np.zeros((count, core.T.shape[1])), np.eye(count)]])
    errors = _spread_errors(model, approximation)
    accuracy = replace(core.accuracy, **{n: relative_error(getattr(errors, n), m) for n, m in matrices.items()})
    return LinearModel(
        A=system.A,
        B=system.B,
        C=system.C,
        D=system.D,
        T=T,
        f0=np.concatenate((core.f0, np.zeros(count))),
        states=Signals([*core.states, *ladder]),
        full_states=Signals([*core.full_states, *ladder]),
        inputs=model.inputs,
        outputs=model.outputs,
        y0=np.concatenate((core.y0, np.zeros(count))),
        point=replace(model.point, states={**model.point.states, **{s.name: 0.0 for s in ladder}}),
        accuracy=accuracy,
        method=core.method,
        model=core.model,
        warnings=(*model.warnings, Remark("delays", text)),
        T_u=np.vstack((model.T_u, np.zeros((count, len(model.inputs))))),
        errors=errors,
    )


def _spread_errors(model: DelayedLinearModel, approximation: ApproximateForm) -> EntryErrors:
    """Return the errors of the entries: those of the core, where they come through the delays, too, and rounding."""
    from scipy.linalg import block_diag

    E, core, system = model.core.errors, model.core, approximation.system
    n, nu, ny = len(core.A), len(model.inputs), len(model.outputs)
    ladder = np.zeros((len(E.A) + len(E.C), len(system.A) - n))
    direct = np.vstack((np.hstack((E.A, ladder[:n], E.B[:, :nu])), np.hstack((E.C, ladder[n:], E.D[:, :nu]))))
    from_w = np.vstack((E.B[:, nu:], E.D[:, nu:])) @ np.abs(approximation.w)
    rows = direct + from_w
    into_z = rows[n + ny :]
    through = np.vstack((core.B[:, nu:], core.D[:ny, nu:])) @ approximation.through
    top = rows[: n + ny] + np.abs(through) @ into_z
    ladder_rows = np.abs(approximation.into) @ into_z
    size = len(system.A)
    entries = np.vstack((top[:n], ladder_rows, top[n:]))
    entries += ROUNDING_FACTOR * EPS * np.abs(np.block([[system.A, system.B], [system.C, system.D]]))
    return EntryErrors(
        A=entries[:size, :size],
        B=entries[:size, size:],
        C=entries[size:, :size],
        D=entries[size:, size:],
        T=block_diag(E.T, np.zeros((len(system.A) - n, len(system.A) - n))),
    )
