"""Connected systems of smaller members: each is reduced by what matters in the closed system, the wiring is kept.

The diagonal blocks of the closed system's Gramians are balanced (Vandendorpe and Van Dooren, Model reduction of
interconnected systems, 2008).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

import numpy as np
from scipy.linalg import block_diag

from fmilin.composition.hybrid_system import build_system
from fmilin.composition.linear_member import HeldMember, SampledMember, from_linear
from fmilin.composition.sampled_loop import continuous_law
from fmilin.composition.system import ConnectedModel
from fmilin.composition.system_declaration import in_member
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import lyapunov
from fmilin.linearization.linearize import linearize, linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import AccuracyOptions, takes_linearization
from fmilin.reduction.gramians import balance_gramians, peak_gain
from fmilin.reduction.modal_reduction import error_bound, in_sizes
from fmilin.reduction.transformation import new_states, transform
from fmilin.signals import FloatArray

MIN_DECAY_RATIO = 1e-9  # decay, relative to the largest eigenvalue, below which the closed system has no Gramians


@one_at_a_time
@takes_linearization
def reduce_members(
    system: Model,
    orders: Mapping[str, int],
    point: OperatingPoint | None = None,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[AccuracyOptions],
) -> Model:
    """Return a connected system of linear members at a point, some of smaller order, wired as before.

    Its notes say by how much the responses of the whole differ at most (:func:`fmilin.reduction.error_bound`). Raises
    UsageError or UnknownNameError when this is not a connected system, a member is unknown, one to be reduced is
    sampled, or an order is not valid; NumericalError when the closed system is not stable, or is not with these orders.

    Parameters
    ----------
    system : Model
        Of :func:`fmilin.connect`, or of an SSP file; stable as it is closed. Members may be unstable alone.
    orders : mapping of str to int
        The new order of each member that is reduced.
    point : OperatingPoint, optional
        Of the closed system, where it starts by default.
    linearization : Linearization, optional
        How members are linearized; its options may be keywords instead.
    """
    request = Request.of("reduce_members", linearization, options)
    if not isinstance(system, ConnectedModel):
        raise UsageError("Members can be reduced only in a connected system (fl.connect, or an SSP file).")
    if unknown := [name for name in orders if name not in system.members]:
        raise UnknownNameError.among(unknown[0], system.members, "a member")
    sampled_members = {name: member for name, member in system.members.items() if isinstance(member, HeldMember)}
    if irreducible := [
        n for n, member in sampled_members.items() if n in orders or not isinstance(member, SampledMember)
    ]:
        raise UsageError(f"The member '{irreducible[0]}' is sampled: reduce it by itself (fl.reduction).")
    members = _linear_members(system, operating_point(system) if point is None else point, request)
    closed = linearize(_connect_linear(system, members))
    if not _is_stable(closed):
        raise NumericalError(
            "The closed system is not stable, so the importance of its members' states is not defined. Reduce each "
            "member by itself (fl.reduction), or close the loops that stabilize it."
        )
    scaled = [in_sizes(linear, linear) for linear in members.values()]
    B, C = block_diag(*(part.B for part in scaled)), block_diag(*(part.C for part in scaled))
    P, Q = lyapunov(closed.A, B @ B.T, sampled=False), lyapunov(closed.A.T, C.T @ C, sampled=False)
    ends = np.cumsum([0, *(len(part.A) for part in scaled)]).tolist()
    blocks = {name: slice(i, j) for name, i, j in zip(members, ends, ends[1:], strict=False)}
    small = {
        name: _reduce_member(name, members[name], P[blocks[name], blocks[name]], Q[blocks[name], blocks[name]], order)
        for name, order in orders.items()
    }
    result = _connect_linear(system, members | small)
    reduced = linearize(result)
    words = ", ".join(f"{name} to {order} of {len(members[name].states)}" for name, order in orders.items())
    if not _is_stable(reduced):
        raise NumericalError(
            f"With the members reduced ({words}) the closed system is unstable: request higher orders."
        )
    text = f"Members are reduced by the closed system's Hankel singular values: {words}."
    if sampled_members:
        names = ", ".join(sampled_members)
        text += f" Sampled members ({names}) stay as they are, and count in a continuous approximation."
    if len(closed.inputs) and len(closed.outputs):
        peak, largest = error_bound(closed, reduced), peak_gain(in_sizes(closed, closed)).attained
        text += (
            f" No frequency response of the whole differs by more than {peak.bound:.3g} (largest gain {largest:.3g})."
        )
    all_members: dict[str, Model] = {**result.members, **sampled_members}
    return build_system(replace(result.declaration, members=all_members, notes=(*system.declaration.notes, text)))


def _linear_members(system: ConnectedModel, point: OperatingPoint, request: Request) -> dict[str, LinearModel]:
    """Return the linear model of each member at the point, with its outputs and what wires read of it."""
    at = apply_point_parameters(system, point)
    assert isinstance(at, ConnectedModel)  # noqa: S101 - a view of it
    linear = {}
    evaluated = at.coupling.compute_member_points(point.time, point.states, point.inputs)
    for part, (x, v) in zip(at.coupling.parts, evaluated, strict=True):
        member = at.members[part.name]
        if isinstance(member, SampledMember):
            linear[part.name] = continuous_law(member.linear)
            continue
        names = tuple(dict.fromkeys((*member.outputs.names, *part.model.outputs.names)))
        with in_member(part.name):
            linear[part.name] = linearize_request(
                member, OperatingPoint(point.time, x, v), replace(request, outputs=names)
            )
    return linear


def _connect_linear(system: ConnectedModel, members: Mapping[str, LinearModel]) -> ConnectedModel:
    models = {name: from_linear(linear) for name, linear in members.items()}
    return build_system(replace(system.declaration, members=models, constraints=None))


def _is_stable(linear: LinearModel) -> bool:
    values = linear.eigenvalues()
    return bool((values.real < -MIN_DECAY_RATIO * np.abs(values).max(initial=0.0)).all())


def _reduce_member(name: str, linear: LinearModel, P: FloatArray, Q: FloatArray, order: int) -> LinearModel:
    if not 0 <= order <= len(linear.states):
        raise UsageError(f"The member '{name}' has order {len(linear.states)}, and cannot be reduced to {order}.")
    (V, W), values = balance_gramians(P, Q)
    names, words = [f"balanced[{i + 1}]" for i in range(order)], [f"value {s:.4g}" for s in values[:order]]
    return transform(linear, V[:, :order], W[:order], new_states(names, words, linear), coordinates="balanced")
