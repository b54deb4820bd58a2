"""The procedure: a model, a point on its manifold, independent coordinates, and the slopes along them.

With y = R (x - x0) and x = Psi(y) (Spencer sections 2.2 and 4.1), at any consistent point:

    A = R f_x DPsi,  B = R f_u,  C = c_x DPsi,  D = c_u,  T = DPsi,  f0 = R f(t0, x0, u0)

Nonlinear coordinates y = rho(x) have R = D rho(x0) and one more term, d(D rho(x) f0)/dx DPsi in A, from y' = D rho x'.
Inputs that prescribe a motion move the manifold: x = Psi(y, u), and Psi_u adds f_x Psi_u to B and c_x Psi_u to D.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from fmilin.derivatives.differences import Differences, EventCrossingError
from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearModel, Method, Point
from fmilin.linearization.dependence import with_remark_on_dependence
from fmilin.linearization.singular import linearize_at_singularity, singularity_of
from fmilin.linearization.verified_facts import verified_facts_of
from fmilin.manifold.frame import Frame, frame_at
from fmilin.manifold.neighbourhood import Neighbourhood, Tangent
from fmilin.manifold.operating_points import model_at, operating_point
from fmilin.manifold.selection import DOUBTFUL, Selection
from fmilin.manifold.slopes import TangentSlopes, measure
from fmilin.model.counting import CountedModel
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Stepped, Stepping
from fmilin.remarks import Remark, held_remarks
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.formulations.options import Formulation

__all__ = ["linearize", "linearize_along"]

EQUILIBRIUM = 1e-9
"""Rates below this, in sizes of the states per second, count as rest."""


def linearize(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    independent: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    coordinates: str = "partition",
    derivatives: str | Differences = "auto",
    one_sided: Literal["left", "right"] | None = None,
    at_singularity: bool = False,
    stepping: Stepping | None = None,
    formulation: str | Formulation | None = None,
    descriptor: bool = False,
) -> LinearModel:
    """Return the linear model of a constrained model in independent coordinates.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        On the manifold, from :func:`fmilin.operating_point`; where the model starts by default. No
        equilibrium is needed.
    independent : sequence of str, optional
        States to keep: P of them, or the positions of a second-order model.
    inputs, outputs : sequence of str, optional
        A choice and an order; ``der(x)`` and any continuous variable may be an output.
    coordinates : {"partition", "tangent"}
        How coordinates are chosen when none are named.
    derivatives : {"auto", "exact", "differences"} or Differences
        ``"auto"``: exact directional derivatives where the model has them, each column checked once
        against a difference. ``"exact"``: trust them. ``"differences"``: central differences on the
        manifold.
    one_sided : {"left", "right"}, optional
        Slopes on one side of the point, by differences: for points at a kink or an event.
    at_singularity : bool
        At a singular configuration: over the enlarged set of velocities (:mod:`fmilin.linearization.singular`).
    stepping : Stepping, optional
        For a model that brings its own solver (a co-simulation FMU): which way to go, which step to take, and
        whether the discrete model is wanted.
    formulation : {"mcs", "rcs", "ucs"}, or MCS, RCS, UCS, optional
        For a model of Lagrange's equations: by that formulation (:mod:`fmilin.formulations`, which also returns
        its spurious eigenvalues) in place of the general procedure.
    descriptor : bool
        Whether the linear model is to carry its descriptor system, which costs about one visit more. Where there is
        none (the model is not made of Lagrange's equations with constraints on positions, say), ``lin.descriptor`` is
        None; :func:`fmilin.descriptor` says why.

    Returns
    -------
    LinearModel

    Notes
    -----
    A second call with the same model object is several times faster, also at another point: what the first one has
    found to be true of the model is remembered (see
    :mod:`fmilin.linearization.verified_facts`): which states are the rates of others, that
    the motion keeps the constraints beside a point, and that all exact products agree with differences. Rank,
    conditioning, consistency, H f and H f_u at the point, and one direction of products against a difference are
    checked at every call; where one of them leaves doubt, everything is checked as in the first. The matrices are the
    same to the last bit; ``accuracy`` may show that fewer differences were compared.

    Raises
    ------
    UsageError, UnknownNameError
        When the request does not fit the model.
    ConstraintError
        When a constraint is inconsistent at the point or no invariant of the model.
    NumericalError
        When the coordinates are singular, the point is a singular configuration, the model returns NaN, or has
        a kink or an event at the point.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> lin = fl.linearize(cartesian_pendulum(length=1.0, gravity=4.0))
    >>> lin.A.shape
    (2, 2)
    >>> [complex(round(s.real, 9), round(s.imag, 9)) for s in lin.eigenvalues()]
    [-2j, 2j]
    """
    _check_choice(coordinates, derivatives)
    if one_sided is not None:
        derivatives = Differences(side=one_sided)
    if point is None:
        point = operating_point(model)
    model = model_at(model, point)
    if formulation is not None:
        from fmilin.formulations.procedure import linearized

        if coordinates != "partition" or derivatives not in ("auto", "exact") or stepping is not None:
            raise UsageError(
                "A formulation takes exact slopes and coordinates of its own: leave the other choices out."
            )
        return linearized(
            model,
            point,
            formulation,
            independent=independent or (),
            interface=(inputs, outputs),
            at_singularity=at_singularity,
            descriptor=descriptor,
        )
    if inputs is not None or outputs is not None:
        chosen = None if inputs is None else [model.inputs.index_of(name, "an input of the model") for name in inputs]
        if chosen is not None and len(set(chosen)) != len(chosen):
            raise UsageError(f"An input is named twice in {', '.join(inputs or ())}.")
        model = model if outputs is None else model.with_interface(None, outputs)
    choice = _Choice(independent, coordinates, derivatives, descriptor)
    if isinstance(model, Stepped) or (stepping is not None and stepping.lifted):
        from fmilin.identification.procedure import Task, linearize_stepped

        if at_singularity:
            raise UsageError("--at-singularity is for native models, not for models that are stepped.")

        def direct(kind: str | None) -> LinearModel:
            chosen = choice if kind is None else replace(choice, derivatives=kind)
            return _linearized(model, point, chosen, None)[0]

        asked = stepping or Stepping()
        if not isinstance(model, Stepped):
            from fmilin.identification.sampling import SampledModel

            model = SampledModel(model)
        task = Task(model, point, asked, independent, coordinates, direct)
        linear = linearize_stepped(task)
    elif at_singularity:
        linear = linearize_at_singularity(model, point, independent=independent or ())
    else:
        linear = _linearized(model, point, choice, None)[0]
    return linear if inputs is None else _with_inputs(linear, chosen or [])


def linearize_along(
    model: Model,
    points: Iterable[OperatingPoint],
    *,
    independent: Sequence[str] | None = None,
    coordinates: str = "partition",
    derivatives: str | Differences = "auto",
    descriptor: bool = False,
) -> list[LinearModel]:
    """Return one linear model per point of a path, in coordinates that do not jump.

    A partition is kept as long as it is well conditioned; a switch is a remark of kind
    ``"coordinates-switched"``. Tangent coordinates are carried on smoothly.

    Parameters
    ----------
    model : Model
    points : iterable of OperatingPoint
        Consistent, in the order of the path.
    independent, coordinates, derivatives, descriptor
        As in :func:`linearize`.

    Raises
    ------
    FmilinError
        As :func:`linearize`, at the first point that fails.
    """
    _check_choice(coordinates, derivatives)
    choice, previous, found = _Choice(independent, coordinates, derivatives, descriptor), None, []
    for point in points:
        linear, frame = _linearized(model, point, choice, previous)
        previous = None if independent else frame.selection
        found.append(linear)
    return found


@dataclass(frozen=True, slots=True)
class _Choice:
    independent: Sequence[str] | None
    coordinates: str
    derivatives: str | Differences
    descriptor: bool = False


def _linearized(
    model: Model, point: OperatingPoint, choice: _Choice, previous: Selection | None
) -> tuple[LinearModel, Frame]:
    visited = CountedModel(model)
    base = _base(visited, point)
    known = verified_facts_of(model, point, base)
    named = tuple(choice.independent) if choice.independent is not None else _recommended(model, choice.coordinates)
    if previous is not None and choice.independent is None:
        named = ()
    try:
        frame = frame_at(visited, point, named=named, kind=choice.coordinates, previous=previous, known=known)
    except FmilinError:
        if singular := singularity_of(model, point):  # whatever went wrong, this is why
            raise NumericalError(singular) from None
        raise
    try:
        slopes = measure(Neighbourhood(visited, _tangent(frame), point, base), choice.derivatives, known)
    except EventCrossingError:
        from fmilin.linearization.chattering import chattering_at

        if chattering := chattering_at(model, point):
            raise NumericalError(chattering) from None
        raise
    warnings = [*frame.warnings, *slopes.warnings, *_remarks(visited, frame, point, base)]
    linear = _assemble(visited, frame, point, base, slopes, warnings)
    if choice.descriptor and not frame.coordinates.curvature(point.states, base.derivatives).any():
        from fmilin.formulations.descriptor import with_descriptor

        linear = with_descriptor(linear, model, point, frame.coordinates.R)
    return linear if len(model.constraints) else with_remark_on_dependence(linear), frame


def _recommended(model: Model, kind: str) -> tuple[str, ...]:
    """Return the author's choice of coordinates, unless the constraints it was made for or that choice are unwanted."""
    return model.independent if kind == "partition" and len(model.constraints) else ()


def _check_choice(coordinates: str, derivatives: str | Differences) -> None:
    if coordinates not in ("partition", "tangent"):
        raise UsageError(f"'{coordinates}' is no way to choose coordinates: use partition or tangent.")
    if not isinstance(derivatives, Differences) and derivatives not in ("auto", "exact", "differences"):
        raise UsageError(f"'{derivatives}' is no way to take derivatives: use auto, exact or differences.")


def _tangent(frame: Frame) -> Tangent:
    psi = frame.parametrization
    return Tangent(
        coordinates=frame.signals,
        T=psi.derivative,
        T_error=psi.derivative_error,
        x_u=psi.along_inputs(),
        psi=lambda y, u: psi.psi(y, inputs=u),
        y0=psi.y0,
        scales=frame.y_scales,
        pairs=psi.invariants.pairs,
        connections=psi.invariants.connections,
        condition_number=frame.condition_number,
    )


@dataclass(frozen=True, slots=True)
class _Matrices:
    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray


def _assemble(
    model: CountedModel,
    frame: Frame,
    point: OperatingPoint,
    base: Evaluation,
    slopes: TangentSlopes,
    warnings: list[Remark],
) -> LinearModel:
    R = frame.coordinates.R
    T = frame.parametrization.derivative
    bend = frame.coordinates.curvature(point.states, base.derivatives)  # d(D rho f): zero for linear coordinates
    J = _Matrices(R @ slopes.f_y + bend @ T, R @ slopes.f_u + bend @ slopes.x_u, slopes.c_y, slopes.c_u)
    E = _Matrices(np.abs(R) @ slopes.f_y_error, np.abs(R) @ slopes.f_u_error, slopes.c_y_error, slopes.c_u_error)
    f0 = R @ base.derivatives
    accuracy = Accuracy(
        A=_relative(E.A, J.A),
        B=_relative(E.B, J.B),
        C=_relative(E.C, J.C),
        D=_relative(E.D, J.D),
        T=_relative(frame.parametrization.derivative_error, T),
        f0=0.0 if not f0.any() else float(np.finfo(float).eps),
        constraint_residual=frame.residual,
        conditioning=frame.condition_number,
    )
    names = model.states.names
    held = Point(
        time=point.time,
        states=dict(zip(names, point.states.tolist(), strict=True)),
        inputs=dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        outputs=dict(zip(model.outputs.names, base.outputs.tolist(), strict=True)),
        parameters=dict(point.parameters),
    )
    return LinearModel(
        A=J.A,
        B=J.B,
        C=J.C,
        D=J.D,
        T=T,
        f0=f0,
        states=frame.signals,
        full_states=model.states,
        inputs=model.inputs,
        outputs=model.outputs,
        y0=frame.parametrization.y0,
        point=held,
        accuracy=accuracy,
        method=Method(slopes.method, frame.kind, model.evaluations, model.directions),
        model=model.info,
        warnings=tuple(warnings),
        T_u=slopes.x_u,
        errors=EntryErrors(E.A, E.B, E.C, E.D, frame.parametrization.derivative_error),
    )


def _base(model: CountedModel, point: OperatingPoint) -> Evaluation:
    """Visit the point itself and refuse NaN by name."""
    try:
        base = model.evaluate(point.time, point.states, point.inputs)
    except NumericalError as error:
        singular = singularity_of(model, point)
        raise NumericalError(singular, condition_number=error.condition_number) if singular else error from None
    for values, signals, what in (
        (base.derivatives, model.states.names, "derivative of the state"),
        (base.outputs, model.outputs.names, "output"),
        (base.residuals, model.constraints.names, "constraint"),
    ):
        bad = [name for name, value in zip(signals, values, strict=True) if not np.isfinite(value)]
        if bad:
            raise NumericalError(
                f"The model returns no number for the {what} '{bad[0]}' at the point"
                + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else "")
                + ". The point may be outside the model's domain: choose another with --set.",
                variable=bad[0],
            )
    return base


def _remarks(model: CountedModel, frame: Frame, point: OperatingPoint, base: Evaluation) -> list[Remark]:
    """Say what a user should know: off equilibrium, doubtful coordinates, a model with memory, a moved point."""
    remarks = []
    again = model.evaluate(point.time, point.states, point.inputs)
    same = np.array_equal(again.derivatives, base.derivatives) and np.array_equal(again.outputs, base.outputs)
    if not same:
        change = float(np.max(np.abs(again.derivatives - base.derivatives), initial=0.0))
        remarks.append(
            Remark(
                "memory",
                f"The model does not repeat itself: evaluated again at the same point its derivatives differ by up to "
                f"{change:.3g}. It keeps memory between calls, and the error estimates do not cover that.",
            )
        )
    rates = np.abs(base.derivatives) / model.states.scales(point.states)
    if np.max(rates, initial=0.0) > EQUILIBRIUM:
        i = int(np.argmax(rates))
        remarks.append(
            Remark(
                "off-equilibrium",
                f"The point is no equilibrium: '{model.states.names[i]}' changes at {base.derivatives[i]:.6g} per "
                "second. f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates.",
            )
        )
    remarks += _prescribed(model, frame)
    if frame.condition_number > DOUBTFUL:
        remarks.append(
            Remark(
                "conditioning",
                f"The coordinates {', '.join(frame.signals.names)} are badly conditioned here (condition number "
                f"{frame.condition_number:.3g}); {frame.better} would be better.",
            )
        )
    remarks += held_remarks(model.source.held())
    remarks += [Remark("model", note) for note in getattr(model.source, "notes", ())]
    return remarks


def _prescribed(model: CountedModel, frame: Frame) -> list[Remark]:
    invariants = frame.parametrization.invariants
    if not invariants.prescribing:
        return []
    names = model.inputs.names
    driven = ", ".join(f"'{names[j]}'" for j in invariants.prescribing)
    rates = ", ".join(f"'{names[j]}'" for j in invariants.chain.values()) or "none"
    return [
        Remark(
            "prescribed-motion",
            f"The inputs {driven} prescribe a motion: dependent states follow them at once (T_u), their derivatives "
            f"({rates}) are inputs of their own. with_prescribed_states() makes states of all but the highest.",
        )
    ]


def _with_inputs(linear: LinearModel, chosen: Sequence[int]) -> LinearModel:
    """Return the linear model with some inputs, in the given order; the others stay at their values of the point."""
    columns, E, descriptor = list(chosen), linear.errors, linear.descriptor
    selected = linear.inputs.select(columns)
    B, D = linear.B[:, columns], linear.D[:, columns]
    errors = replace(E, B=E.B[:, columns], D=E.D[:, columns])
    accuracy = replace(linear.accuracy, B=_relative(errors.B, B), D=_relative(errors.D, D))
    return replace(
        linear,
        B=B,
        D=D,
        T_u=linear.T_u[:, columns],
        inputs=selected,
        errors=errors,
        accuracy=accuracy,
        descriptor=descriptor and descriptor.with_interface(selected.names, linear.outputs.names),
    )


def _relative(error: FloatArray, matrix: FloatArray) -> float:
    largest = float(np.max(np.abs(matrix), initial=0.0))
    worst = float(np.max(error, initial=0.0))
    return 0.0 if worst == 0.0 else worst / largest if largest > 0 else worst
