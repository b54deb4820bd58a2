"""Dead time before inputs and behind outputs of linear models: channels of a linear fractional form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.errors import UsageError
from fmilin.linear_model.builder import with_inputs
from fmilin.linear_model.model import DelayedLinearModel, EntryErrors, LinearModel
from fmilin.signals import FloatArray, Signal, Signals


def add_delays(
    linear: LinearModel, *, inputs: Mapping[str, float] | None = None, outputs: Mapping[str, float] | None = None
) -> DelayedLinearModel:
    """Return a linear model with dead time before inputs and behind outputs, by name, in seconds.

    Delays of a model that has some already are added behind these. UnknownNameError of other names.
    """
    is_delayed = isinstance(linear, DelayedLinearModel)
    core = linear.core if isinstance(linear, DelayedLinearModel) else linear
    channels = list(linear.delays)
    seconds = list(linear.delays.values())
    columns = {linear.inputs.index_of(n, "an input of the linear model"): float(T) for n, T in (inputs or {}).items()}
    rows = {linear.outputs.index_of(n, "an output of the linear model"): float(T) for n, T in (outputs or {}).items()}
    if not columns and not rows and not is_delayed:
        raise UsageError("No delay is given: name inputs= or outputs= with seconds, {'u': 0.1}.")
    for j, delay in columns.items():
        core, name = _delay_input(core, j, channels)
        channels.append(name)
        seconds.append(delay)
    for i, delay in rows.items():
        core, name = _delay_output(core, i, channels)
        channels.append(name)
        seconds.append(delay)
    return DelayedLinearModel.of_core(core, channels, seconds)


def add_shared_inputs(
    core: LinearModel, channels: Sequence[str], shared_inputs: Mapping[str, str]
) -> tuple[LinearModel, list[str]]:
    """Return a core with an output for each delayed input that it shares, and the channels that remain.

    The last inputs of the core are what the channels carry. An input that the core does not have is constant, and its
    channels with it.
    """
    constant = [channel for channel, name in shared_inputs.items() if not core.inputs.has(name)]
    gone = [core.inputs.index_of(name_ends(channel)[0]) for channel in constant]
    core = with_inputs(core, [j for j in range(len(core.inputs)) if j not in gone]) if gone else core
    for channel, name in shared_inputs.items():
        if channel not in constant:
            core = _show_input(core, core.inputs.index_of(name), name_ends(channel)[1])
    return core, [channel for channel in channels if channel not in constant]


def _show_input(core: LinearModel, j: int, name: str) -> LinearModel:
    """Return a core with an input as one more output."""
    E, P, k = core.errors, len(core.states), len(core.inputs)
    signal = core.inputs[j]
    return replace(
        core,
        C=np.vstack((core.C, np.zeros((1, P)))),
        D=np.vstack((core.D, np.eye(1, k, j))),
        errors=replace(E, C=np.vstack((E.C, np.zeros((1, P)))), D=np.vstack((E.D, np.zeros((1, k))))),
        outputs=Signals([*core.outputs, replace(signal, name=name, aliases=())]),
        point=replace(core.point, outputs={**core.point.outputs, name: core.point.inputs[signal.name]}),
        descriptor=None,
        derivatives={},
        discrete=None,
    )


def name_channel(name: str, names: Sequence[str]) -> str:
    """Return the name of a delayed signal, with a number where that name is taken."""
    taken = [other for other in names if other == name or other.startswith(f"{name} (")]
    return f"{name} ({len(taken) + 1})" if taken else name


def name_ends(channel: str) -> tuple[str, str]:
    """Return the names that the two ends of a delay have in the core: behind it and before it."""
    return f"delayed {channel}", f"{channel} before the delay"


def _delay_input(core: LinearModel, j: int, channels: Sequence[str]) -> tuple[LinearModel, str]:
    """Return a core in which the delayed signal takes the place of an input, which becomes what is delayed."""
    signal = core.inputs[j]
    name = name_channel(signal.name, channels)
    behind, before = name_ends(name)
    P, k = len(core.states), len(core.inputs)
    order = [*range(k), j]
    matrices = {"B": core.B[:, order], "D": core.D[:, order], "T_u": core.T_u[:, order]}
    errors = {"B": core.errors.B[:, order], "D": core.errors.D[:, order]}
    for matrix in (*matrices.values(), *errors.values()):
        matrix[:, j] = 0.0
    matrices["D"] = np.vstack((matrices["D"], np.eye(1, k + 1, j)))
    errors["D"] = np.vstack((errors["D"], np.zeros((1, k + 1))))
    value = core.point.inputs[signal.name]
    return (
        _extend(core, (signal, behind, before), value, matrices, errors, row=np.zeros((1, P))),
        name,
    )


def _delay_output(core: LinearModel, i: int, channels: Sequence[str]) -> tuple[LinearModel, str]:
    """Return a core in which an output is the delayed signal, and what it was is delayed."""
    signal = core.outputs[i]
    name = name_channel(signal.name, channels)
    behind, before = name_ends(name)
    P, k, N = len(core.states), len(core.inputs), len(core.outputs)
    wide = {"B": np.zeros((P, 1)), "T_u": np.zeros((len(core.T_u), 1))}
    matrices = {"B": np.hstack((core.B, wide["B"])), "T_u": np.hstack((core.T_u, wide["T_u"]))}
    errors = {"B": np.hstack((core.errors.B, wide["B"]))}
    D = np.zeros((N + 1, k + 1))
    D[:N, :k] = core.D
    D[N, :k] = core.D[i]
    D[i] = np.eye(1, k + 1, k)
    E = np.zeros((N + 1, k + 1))
    E[:N, :k] = core.errors.D
    E[N, :k] = core.errors.D[i]
    E[i] = 0.0
    matrices["D"], errors["D"] = D, E
    C, EC = core.C.copy(), core.errors.C.copy()
    row, error_row = C[[i]].copy(), EC[[i]].copy()
    C[i], EC[i] = 0.0, 0.0
    changed = replace(core, C=C, errors=replace(core.errors, C=EC))
    value = core.point.outputs[signal.name]
    return (
        _extend(changed, (signal, behind, before), value, matrices, errors, row=row, error_row=error_row),
        name,
    )


def _extend(
    core: LinearModel,
    ends: tuple[Signal, str, str],
    value: float,
    matrices: Mapping[str, FloatArray],
    errors: Mapping[str, FloatArray],
    *,
    row: FloatArray,
    error_row: FloatArray | None = None,
) -> LinearModel:
    """Return a core with one more input and output, which carry ``value`` at the point."""
    signal, behind, before = ends
    E = core.errors
    error_row = np.zeros_like(row) if error_row is None else error_row
    point = replace(
        core.point,
        inputs={**core.point.inputs, behind: value},
        outputs={**core.point.outputs, before: value},
    )
    return replace(
        core,
        B=matrices["B"],
        D=matrices["D"],
        T_u=matrices["T_u"],
        C=np.vstack((core.C, row)),
        inputs=Signals([*core.inputs, replace(signal, name=behind, aliases=())]),
        outputs=Signals([*core.outputs, replace(signal, name=before, aliases=())]),
        errors=EntryErrors(A=E.A, B=errors["B"], C=np.vstack((E.C, error_row)), D=errors["D"], T=E.T),
        point=point,
        descriptor=None,
        derivatives={},
        discrete=None,
    )
