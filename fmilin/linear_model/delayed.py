"""Linear models with internal delays: a linear model between the delays, and the seconds of each channel.

The core has the inputs (u, w) and the outputs (y, z); ``w_i(t) = z_i(t - tau_i)`` closes it. The result is a
:class:`~fmilin.LinearModel` without matrices A, B, C and D of its own: code that is not made for delays reads them, and
is stopped with a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from fmilin.errors import UnknownNameError, UsageError
from fmilin.linear_model.model import WITHOUT_DELAYS, DelayedLinearModel, LinearModel
from fmilin.numerics.delay_form import DelayForm
from fmilin.signals import FloatArray


def make_delayed_model(core: LinearModel, channels: Sequence[str], delays: Sequence[float]) -> DelayedLinearModel:
    """Return the model that delays make of a core."""
    seconds = np.array(list(delays), dtype=np.float64)
    for name, value in zip(channels, seconds.tolist(), strict=True):
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"The delay of '{name}' is {value:g} s: a delay is finite and not negative.")
    m = len(seconds)
    if core.sample_time:
        raise UsageError(
            f"'{core.model.name}' is a sampled model, which has delays as states, one for each sample. "
            "Add the delay to the continuous model, then sample it."
        )
    nu, ny = len(core.inputs) - m, len(core.outputs) - m
    if core.T_u[:, nu:].any():
        raise UsageError(
            "A delay before an input that prescribes a motion moves dependent states with the delay, which this "
            "form cannot hold. Use with_prescribed_states() first."
        )
    model = object.__new__(DelayedLinearModel)
    shared = {f.name: getattr(core, f.name) for f in fields(LinearModel) if f.name not in WITHOUT_DELAYS}
    inputs, outputs = core.inputs.names[:nu], core.outputs.names[:ny]
    point = replace(
        core.point,
        inputs={name: core.point.inputs[name] for name in inputs},
        outputs={name: core.point.outputs[name] for name in outputs},
    )
    shared |= {
        "inputs": core.inputs[:nu],
        "outputs": core.outputs[:ny],
        "T_u": core.T_u[:, :nu],
        "point": point,
        "descriptor": None,
        "derivatives": {},
        "discrete": None,
    }
    model.__dict__.update(shared, core=core, _channels=tuple(channels), _seconds=seconds)
    return model


def replace_delays(model: DelayedLinearModel, delays: Mapping[str, float]) -> DelayedLinearModel:
    """Return the same model with other delays, by name."""
    seconds = dict(model.delays)
    for name, value in delays.items():
        if name not in seconds:
            raise UnknownNameError.among(name, seconds, "a delayed signal of this linear model")
        seconds[name] = value
    return make_delayed_model(model.core, list(seconds), list(seconds.values()))


def make_form(core: LinearModel, seconds: FloatArray) -> DelayForm:
    """Return the linear fractional form of a core of which the last inputs and outputs are delayed."""
    m = len(seconds)
    nu, ny = len(core.inputs) - m, len(core.outputs) - m
    E = core.errors
    return DelayForm(
        A=core.A,
        B1=core.B[:, :nu],
        B2=core.B[:, nu:],
        C1=core.C[:ny],
        C2=core.C[ny:],
        D11=core.D[:ny, :nu],
        D12=core.D[:ny, nu:],
        D21=core.D[ny:, :nu],
        D22=core.D[ny:, nu:],
        delays=seconds,
        errors=np.block([[E.A, E.B[:, nu:]], [E.C[ny:], E.D[ny:, nu:]]]),
    )


def get_form(linear: LinearModel) -> DelayForm:
    """Return the linear fractional form of a linear model, with its delays if it has some."""
    if isinstance(linear, DelayedLinearModel):
        return make_form(linear.core, np.array(list(linear.delays.values()), dtype=np.float64))
    return make_form(linear, np.empty(0))
