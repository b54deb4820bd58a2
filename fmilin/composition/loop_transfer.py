"""The loop transfer function L at a wire, and the sensitivity to a disturbance: S = 1/(1 - L).

A wire bears the name of the input at which it ends; the name of an output means all wires that begin there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from fmilin.composition.algebraic_loops import require_solvable
from fmilin.composition.delayed_system import DelayedSystem, WireDelay, make_delayed_system
from fmilin.composition.linear_member import HeldMember, SampledMember
from fmilin.composition.sampled_loop import approximate_loop, linearize_sampled_loop
from fmilin.composition.sampled_system import SampledSystem
from fmilin.composition.system import ConnectedModel
from fmilin.composition.wires import cut_wires, find_wire, name_wire_output
from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.linear_model.model import DelayedLinearModel, EntryErrors, LinearModel, relative_error
from fmilin.linear_model.sparse import change_fields
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.model.capabilities import delay_wires
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import ClosedLoopOptions, LoopOptions, OpenedOptions, takes_linearization
from fmilin.signals import Signals

Wires = str | Sequence[str]
AS_WIRED = "signs are as wired, so that S = 1/(1 - L), T = 1 - S, and the critical point of L is +1"


@one_at_a_time
@takes_linearization
def loop_transfer(
    system: Model,
    wires: Wires,
    point: OperatingPoint | None = None,
    *,
    opened: Sequence[str] = (),
    continuous: bool = False,
    linearization: Linearization | None = None,
    **options: Unpack[LoopOptions],
) -> LinearModel:
    """Return L: what comes back at a wire for what is sent from it, with the wire cut there.

    Raises UsageError or UnknownNameError when this is not a connected system, or there is no such wire; NumericalError
    when the system has no solution without the wire.

    Parameters
    ----------
    system : Model
        Of :func:`fmilin.connect`, or of an SSP file.
    wires : str or sequence of str
        ``"plant.u"``, the input at which a wire ends, or an output: all wires that begin there. Several are cut at
        once, and L has a row and a column for each. In a system that is a member of another the name goes on:
        ``"inner.plant.u"``.
    point : OperatingPoint, optional
        Of the closed system, where it starts by default. Cutting moves nothing: each wire goes on carrying its value.
    opened : sequence of str
        Further wires that are cut for this question, carrying what they carry at the point.
    continuous : bool
        Of sampled members a continuous approximation: Tustin's rule, and a delay of half a sample; a diagnostic says
        so.
    linearization : Linearization, optional
        How the system with the wires cut is linearized; its options may be keywords instead.

    Returns
    -------
    LinearModel
        With an input and an output of the name of each wire. Signs are as wired: S = 1/(1 - L), T = 1 - S; a loop with
        negative feedback has its minus sign in L. With sampled members it is discrete, from sample to sample
        (:func:`fmilin.sampled_loop`): what is sent is held over a sample, which is the truth at wires from and to
        regulators, and a diagnostic says where it is not.

    Examples
    --------
    >>> import control, fmilin as fl
    >>> plant, law = control.tf([1.0], [1.0, 1.0]), control.tf([3.0], [1.0])
    >>> members = {n: control.ss(s, inputs="u", outputs="y") for n, s in (("plant", plant), ("law", law))}
    >>> system = fl.connect(members, [("plant.y", "law.u", -1.0), ("law.y", "plant.u")])
    >>> L = fl.loop_transfer(system, "plant.u")
    >>> round(float(L.to_control()(0).real), 9)
    -3.0
    """
    request = Request.of("loop_transfer", linearization, options)
    return linearize_loop_transfer(system, wires, point, request, opened=opened, continuous=continuous)


def linearize_loop_transfer(
    system: Model,
    wires: Wires,
    point: OperatingPoint | None,
    request: Request,
    *,
    opened: Sequence[str] = (),
    continuous: bool = False,
) -> LinearModel:
    """Return the loop that a request describes, without its choice of signals; see :func:`loop_transfer`."""
    names, linear = _linear(system, wires, point, request, opened=opened, continuous=continuous)
    text = f"L at {names}: the returned signal per signal sent; {AS_WIRED}."
    return change_fields(linear, warnings=(Remark("loop", text), *linear.warnings))


@one_at_a_time
@takes_linearization
def sensitivity(
    system: Model,
    wires: Wires,
    point: OperatingPoint | None = None,
    *,
    opened: Sequence[str] = (),
    continuous: bool = False,
    linearization: Linearization | None = None,
    **options: Unpack[ClosedLoopOptions],
) -> LinearModel:
    """Return S = 1/(1 - L), from what is added on a wire of the closed loop to what the wire then carries.

    ``system``, ``wires``, ``point``, ``opened``, ``continuous``, ``linearization``, signs and errors are those of
    :func:`loop_transfer`.
    Regulators with different sample times are rejected: over their common period a signal on the wire would be held,
    which the closed loop does not do.
    """
    request = Request.of("sensitivity", linearization, options)
    names, L = _linear(system, wires, point, request, opened=opened, closed=True, continuous=continuous)
    text = f"S at {names}, from a signal added on the wire to the total signal on it; {AS_WIRED}."
    return _add_remark(_close_loop(L), text)


@one_at_a_time
@takes_linearization
def complementary_sensitivity(
    system: Model,
    wires: Wires,
    point: OperatingPoint | None = None,
    *,
    opened: Sequence[str] = (),
    continuous: bool = False,
    linearization: Linearization | None = None,
    **options: Unpack[ClosedLoopOptions],
) -> LinearModel:
    """Return T = 1 - S = -L/(1 - L): minus what comes back at a wire, in the closed loop, for what is added there.

    ``system``, ``wires``, ``point``, ``opened``, ``continuous``, ``linearization``, signs and errors are those of
    :func:`sensitivity`.
    """
    request = Request.of("complementary_sensitivity", linearization, options)
    names, L = _linear(system, wires, point, request, opened=opened, closed=True, continuous=continuous)
    count = len(L.inputs)
    T = change_core(_close_loop(L), lambda S: _complement(S, count))
    return _add_remark(T, f"T at {names}: minus the returned signal per signal added on the wire; {AS_WIRED}.")


@one_at_a_time
@takes_linearization
def opened(
    system: Model,
    wires: Wires,
    point: OperatingPoint | None = None,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[OpenedOptions],
) -> LinearModel:
    """Return the linear model of a system with wires cut: each is an input of its name, in addition to the system's.

    ``system``, ``wires``, ``point``, ``linearization`` and the errors are those of :func:`loop_transfer`. The outputs
    are those of the system by default.
    """
    request = Request.of("opened", linearization, options)
    system, request = _delay_system(system, request)
    model, point, names = _system(system, wires, point)
    cut = cut_wires(model, point, names)
    outside, _ = _split_delays(system, model, names, ())
    between = _add_wire_delays(cut.model.with_interface(None, model.outputs.names), outside)
    linear = _linearize_cut(between, cut.point, request)
    return _add_remark(linear, f"Opened at {', '.join(names)}: the signal of each cut wire is now an input.")


def require_wires(system: Model, names: Sequence[str]) -> None:
    """Reject names that are not wires of a system, before anything is computed."""
    for name in names:
        if isinstance(system, ConnectedModel):
            find_wire(system, name)
        else:
            _system(system, name, None)


def _delay_system(system: Model, request: Request) -> tuple[Model, Request]:
    """Return a system with the delays of a request on its wires, and the request without them."""
    if not request.delays:
        return system, request
    system, signal_delays = delay_wires(system, request.delays)
    for name in signal_delays:
        raise UsageError(
            f"'{name}' is not an input of a member of '{system.info.name}': delays of loops are on wires, which are "
            "named by the inputs of members at which they end."
        )
    return system, replace(request, delays={})


def _system(
    system: Model, wires: Wires, point: OperatingPoint | None
) -> tuple[ConnectedModel, OperatingPoint, list[str]]:
    system = system.system if isinstance(system, DelayedSystem) else system
    if not isinstance(system, ConnectedModel):
        name = system.info.name if isinstance(system, Model) else str(system)
        raise UsageError(
            f"'{name}' has no wires: loops are cut in systems of several members (fl.connect, or an SSP file)."
        )
    names = [wires] if isinstance(wires, str) else list(wires)
    if not names:
        raise UsageError("Name a wire by the input at which it ends, as 'plant.u'.")
    point = operating_point(system) if point is None else point
    model = apply_point_parameters(system, point)
    if isinstance(model, SampledSystem):
        held_system, held_point = model.hold_linear_maps(point, Request())
        return held_system, held_point, names
    assert isinstance(model, ConnectedModel)  # noqa: S101 - a view of it
    return model, point, names


def _linear(
    system: Model,
    wires: Wires,
    point: OperatingPoint | None,
    request: Request,
    *,
    opened: Sequence[str] = (),
    closed: bool = False,
    continuous: bool = False,
) -> tuple[str, LinearModel]:
    """Return the wires in words, and L there; ``closed``: to be closed again."""
    system, request = _delay_system(system, request)
    model, point, names = _system(system, wires, point)
    uncut = model
    if opened:
        model, point = cut_wires(model, point, opened)
    times = {m.linear.sample_time for m in model.members.values() if isinstance(m, SampledMember)}
    if closed and len(times) > 1 and not continuous:
        raise UsageError(
            f"The regulators of '{model.info.name}' have different sample times "
            f"({', '.join(f'{t:g} s' for t in sorted(times))}): only L can be computed. Use one sample time, or "
            "take a continuous approximation (continuous=True)."
        )
    cut, at = cut_wires(model, point, names)
    outside, on_wires = _split_delays(system, uncut, names, opened)
    if on_wires and times and not continuous:
        raise UsageError(
            f"The wire to {next(iter(on_wires))} has a delay, and L goes from sample to sample: name a wire of the "
            "loop without a delay, or take the closed loop (fl.linearize)."
        )
    between = cut.with_interface(names, [name_wire_output(name) for name in names])
    at = replace(at, inputs=at.inputs[len(model.inputs) :])
    request = replace(request, inputs=None, outputs=None)
    linear = _linearize_cut(_add_wire_delays(between, outside), at, request, continuous=continuous)
    if on_wires:
        linear = linear.with_delays(outputs={name_wire_output(name): T for name, T in on_wires.items()})
    linear = change_core(linear, lambda core: _name_outputs(core, names))
    words = ", ".join(names) + (f" (with {', '.join(opened)} open)" if opened else "")
    return words, linear if continuous else _with_remark_on_holding(linear, model, names)


def _close_loop(L: LinearModel) -> LinearModel:
    """Return S: with w = r + C x + D w on the wire, w = M (r + C x), M = (1 - D)^-1."""
    if isinstance(L, DelayedLinearModel):
        count = len(L.inputs)
        return change_core(L, lambda core: _close_wires(core, count))
    return _close_wires(L, len(L.inputs))


def _close_wires(L: LinearModel, count: int) -> LinearModel:
    """Return S of the first inputs and outputs; with delays the others are w and z.

    The wires carry v = r + C_v x + D_vv v + D_vw w, so that v = M (r + C_v x + D_vw w).
    """
    k = count
    require_solvable(L.D[:k, :k], L.inputs.names[:k])
    M = np.asarray(np.linalg.inv(np.eye(k) - L.D[:k, :k]), dtype=np.float64)
    E, size = L.errors, np.abs(M)
    # v = V (x, r, w), and everything else follows from v
    P, m = len(L.A), len(L.inputs) - k
    V = np.hstack((M @ L.C[:k], M, M @ L.D[:k, k:]))
    direct = np.block([[L.A, np.zeros((P, k)), L.B[:, k:]], [L.C[k:], np.zeros((m, k)), L.D[k:, k:]]])
    direct_error = np.block([[E.A, np.zeros((P, k)), E.B[:, k:]], [E.C[k:], np.zeros((m, k)), E.D[k:, k:]]])
    from_v, from_v_error = np.vstack((L.B[:, :k], L.D[k:, :k])), np.vstack((E.B[:, :k], E.D[k:, :k]))
    V_error = size @ (np.hstack((E.C[:k], np.zeros((k, k)), E.D[:k, k:])) + E.D[:k, :k] @ np.abs(V))
    rows, rows_error = direct + from_v @ V, direct_error + np.abs(from_v) @ V_error + from_v_error @ np.abs(V)
    C, C_error = np.vstack((V, rows[P:])), np.vstack((V_error, rows_error[P:]))
    errors = EntryErrors(A=rows_error[:P, :P], B=rows_error[:P, P:], C=C_error[:, :P], D=C_error[:, P:], T=E.T + 0.0)
    MC, T_r = V[:, :P], L.T_u[:, :k] @ V[:, P:]
    matrices: dict[str, Any] = {"A": rows[:P, :P], "B": rows[:P, P:], "C": C[:, :P], "D": C[:, P:]}
    accuracy = replace(L.accuracy, **{n: relative_error(getattr(errors, n), m) for n, m in matrices.items()})
    T_w = np.hstack((np.zeros((len(L.T_u), k)), L.T_u[:, k:]))
    matrices |= {"T": L.T + L.T_u[:, :k] @ MC, "T_u": T_r + T_w}
    return replace(L, **matrices, errors=errors, accuracy=accuracy, descriptor=None, derivatives={}, discrete=None)


def _complement(S: LinearModel, count: int) -> LinearModel:
    """Return T = 1 - S of the first inputs and outputs."""
    C, D = S.C.copy(), S.D.copy()
    C[:count] = -C[:count]
    D[:count] = np.eye(count, D.shape[1]) - D[:count]
    names = S.outputs.names[:count]
    outputs = {name: -value if name in names else value for name, value in S.point.outputs.items()}
    return replace(S, C=C, D=D, point=replace(S.point, outputs=outputs))


def change_core(linear: LinearModel, change: Callable[[LinearModel], LinearModel]) -> LinearModel:
    """Return what a function makes of a linear model, or of the core of one with delays."""
    if not isinstance(linear, DelayedLinearModel):
        return change(linear)
    return DelayedLinearModel.of_core(change(linear.core), list(linear.delays), list(linear.delays.values()))


def _split_delays(
    system: Model, model: ConnectedModel, names: Sequence[str], opened: Sequence[str]
) -> tuple[dict[tuple[str, str], WireDelay], dict[str, float]]:
    """Return the delays of wires that are not cut, and those of wires that are, by name.

    What is sent from the end of a wire comes back there behind its delay. A wire that is named by an output begins
    before the delays at its ends.
    """
    if not isinstance(system, DelayedSystem):
        return {}, {}
    outside, on_wires = dict(system.wire_delays), {}
    for name in (*names, *opened):
        wire = find_wire(model, name)
        if wire.inside is not None:
            continue
        for link in wire.links:
            if link.target not in outside or (wire.at_source and name not in opened):
                continue
            delay = outside.pop(link.target)
            if name in names:
                on_wires[name] = delay.seconds
    return outside, on_wires


def _add_wire_delays(model: ConnectedModel, delays: dict[tuple[str, str], WireDelay]) -> ConnectedModel | DelayedSystem:
    """Return a system with delays; without them as it is."""
    return make_delayed_system(model, delays) if delays else model


def _name_outputs(linear: LinearModel, names: Sequence[str]) -> LinearModel:
    """Give the outputs the names of their wires."""
    first, remaining_outputs = linear.outputs[: len(names)], linear.outputs[len(names) :]
    renamed = [replace(s, name=name, aliases=()) for s, name in zip(first, names, strict=True)]
    outputs = Signals([*renamed, *remaining_outputs])
    values = {s.name: linear.point.outputs[old.name] for s, old in zip(outputs, linear.outputs, strict=True)}
    return replace(linear, outputs=outputs, point=replace(linear.point, outputs=values))


def _linearize_cut(
    model: ConnectedModel | DelayedSystem, point: OperatingPoint, request: Request, *, continuous: bool = False
) -> LinearModel:
    if isinstance(model, DelayedSystem):
        return linearize_request(model, point, request)
    members = model.members
    held_members = [name for name, member in members.items() if isinstance(member, HeldMember)]
    if not held_members:
        return linearize_request(model, point, request)
    if nonlinear := [name for name in held_members if not isinstance(model.members[name], SampledMember)]:
        raise UsageError(
            f"'{nonlinear[0]}' is a sampled regulator that is not a linear system: connect its linear model instead."
        )
    if not continuous:
        return linearize_sampled_loop(model, point, request)
    step = max(m.linear.sample_time for m in model.members.values() if isinstance(m, SampledMember))
    text = (
        f"A continuous approximation of {', '.join(held_members)} (Tustin's rule; a hold counts as a delay of half a "
        f"sample): good for frequencies well below {np.pi / step:.4g} rad/s."
    )
    return _add_remark(approximate_loop(model, point, request), text)


def _with_remark_on_holding(linear: LinearModel, model: ConnectedModel, names: Sequence[str]) -> LinearModel:
    """Say where a wire between continuous members is cut in a sampled loop: what is sent there is held."""
    sampled = {name for name, member in model.members.items() if isinstance(member, SampledMember)}
    ends = {name: {m for k in find_wire(model, name).links for m in (k.source[0], k.target[0])} for name in names}
    continuous = [name for name in names if not ends[name] & sampled]
    if not sampled or not continuous:
        return linear
    text = (
        f"The signal sent at {', '.join(continuous)} is held over {linear.sample_time:g} s, and the returned signal "
        "is read at the end. Between continuous members this is an approximation, good for frequencies well below "
        f"{np.pi / linear.sample_time:.4g} rad/s."
    )
    return _add_remark(linear, text)


def _add_remark(linear: LinearModel, text: str) -> LinearModel:
    return change_fields(linear, warnings=(Remark("wire", text), *linear.warnings))
