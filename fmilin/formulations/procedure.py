"""The procedure: a model, a point and a formulation give a labelled spectrum and a linear model; and static equilibria.

Newton's method on (q, lambda) of f(q, 0, t, u) - Phi_q' lambda = 0, Phi(q, t) = 0,

    [  K    Phi_q' ] [   dq    ]   [ f - Phi_q' lambda ]
    [ Phi_q    0   ] [ dlambda ] = [       -Phi        ]

takes the least-norm solution where the matrix is singular: with redundant constraints, and at singular configurations,
where the multipliers are underdetermined and the posture is not (González et al., section 5.1). A penalized system
needs Phi = lambda/(alpha omega^2) to carry lambda: its equilibrium is displaced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import linalg

from fmilin.diagnostics import Remark, off_equilibrium
from fmilin.errors import NumericalError, UsageError
from fmilin.formulations.dense import solve_minimal, solve_redundant, solve_unconstrained
from fmilin.formulations.descriptor import with_descriptor
from fmilin.formulations.form import Basis, ConstrainedForm, basis_of, rank_of
from fmilin.formulations.formulation import MCS, UCS, Formulation, ReducedSystem, Spectrum, formulation_named
from fmilin.formulations.of_model import (
    FormulationPoint,
    constraint_values,
    is_at_rest,
    linear_model,
    numeric_form,
    require_consistent,
    second_order,
)
from fmilin.linear_model.builder import chosen_inputs, with_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.operating_points import model_at, operating_point
from fmilin.manifold.rank import explanation, singularity_of
from fmilin.model.equations import SecondOrderForm
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED, PSEUDO_INVERSE

TOLERANCE = 1e-12  # steps below this, in sizes of the coordinates, end the search
FARTHEST = 0.1  # A penalized system that rests farther away than this, in sizes of the coordinates, is another system

MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A static equilibrium."""

    point: OperatingPoint  # at rest
    # (m,), lambda, in the order of the constraints; of least norm where ``rank`` is less than m
    multipliers: FloatArray
    rank: int  # how many constraints are independent there
    steps: int  # of Newton's method

    @property
    def is_determinate(self) -> bool:
        """Whether the multipliers are determined."""
        return self.rank == len(self.multipliers)


def equilibrium(
    model: Model, guess: Mapping[str, float] | OperatingPoint | None = None, *, time: float | None = None
) -> Equilibrium:
    """Return the static equilibrium, inputs held, near a guess, with multipliers, also of redundant constraints.

    >>> from fmilin.systems import four_bar
    >>> found = equilibrium(four_bar(), {"phi": 2.0})
    >>> round(float(found.point.states[4]), 9), found.rank
    (2.234331019, 4)
    """
    if model.constraints.time_dependent:
        raise UsageError(
            f"The constraints of '{model.info.name}' contain time: they move, and there is no static equilibrium. The "
            "formulations take any consistent point; choose one: fl.operating_point(model, {'NAME': VALUE}, time=T)."
        )
    point = guess if isinstance(guess, OperatingPoint) else operating_point(model, guess, time=time)
    form, x = second_order(model, point), point.states.copy()
    x[form.velocities] = 0.0
    point = point.with_states(x)
    sizes = model.states.scales(x)[form.positions]
    step, converged = 0, False
    while not converged and step < MOST_STEPS:
        step += 1
        form, Phi = second_order(model, point), constraint_values(model, point)
        # M q'' with the least-norm q'' of the form is f - Phi_q' lambda, and Phi_q q'' = 0 at rest.
        unbalanced = form.M @ form.accelerations
        dq = _newton_step(form, np.concatenate((unbalanced, -Phi)), sizes)
        point = _moved(point, form, _damped(dq, sizes))
        converged = bool(np.max(np.abs(dq) / sizes, initial=0.0) < TOLERANCE)
    form = second_order(model, point)
    rest = np.abs(form.accelerations) / sizes
    if not converged or np.max(rest, initial=0.0) > BALANCED * _stiffness(form, sizes):
        fastest = model.states.names[int(form.positions[int(np.argmax(rest))])]
        raise NumericalError(
            f"Near the guess no equilibrium of '{model.info.name}' was found: where the search ends, '{fastest}' still "
            f"accelerates at {np.max(np.abs(form.accelerations)):.3g}. Start nearer to one with other values, or leave "
            "the point where it is: the formulations take any consistent point."
        )
    return Equilibrium(point, form.multipliers, rank_of(form.G * sizes), step)


def penalized_equilibrium(model: Model, point: OperatingPoint, options: UCS) -> OperatingPoint:
    """Return where the penalized system rests, f = alpha omega^2 Phi_q' Phi, next to an equilibrium of the model."""
    compliance = 1.0 / (options.alpha * options.omega**2)
    q0 = point.states[second_order(model, point).positions]
    sizes = model.states.scales(point.states)[second_order(model, point).positions]
    for _ in range(MOST_STEPS):
        form, Phi = second_order(model, point), constraint_values(model, point)
        # K dq + Phi_q' lambda_new = f + ..: with the form's own lambda, Phi = compliance lambda at the solution.
        upper = form.M @ form.accelerations + form.G.T @ (form.multipliers - Phi / compliance)
        right = np.concatenate((upper, np.zeros(len(Phi))))
        dq = _newton_step(form, right, sizes, compliance)
        point = _moved(point, form, _damped(dq, sizes))
        displaced = np.max(np.abs(point.states[form.positions] - q0) / sizes, initial=0.0)
        if displaced > FARTHEST:
            break
        if np.max(np.abs(dq) / sizes, initial=0.0) < TOLERANCE:
            return point
    raise NumericalError(
        f"The penalized system has no equilibrium near that of the model: alpha = {options.alpha:g} and omega = "
        f"{options.omega:g} are too small to hold it together. Take larger ones."
    )


def _newton_step(form: SecondOrderForm, right: FloatArray, sizes: FloatArray, compliance: float = 0.0) -> FloatArray:
    """Return dq of least norm, in sizes of the coordinates."""
    n, m = len(sizes), len(form.G)
    K, G = -form.force_states[:, form.positions], form.G * sizes
    force = max(float(np.max(np.abs(K), initial=0.0)), 1e-300)
    soft = 1.0 / np.sqrt(max(1.0, compliance * force))  # multipliers scaled so that they do not swamp K
    saddle = np.zeros((n + m, n + m))
    saddle[:n, :n] = sizes[:, None] * K * sizes / force
    saddle[:n, n:], saddle[n:, :n] = soft * G.T, soft * G
    saddle[n:, n:] = -compliance * force * soft**2 * np.eye(m)
    right = np.concatenate((sizes * right[:n] / force, soft * right[n:]))
    step: FloatArray = linalg.lstsq(saddle, right, cond=PSEUDO_INVERSE)[0][:n]
    return sizes * step


def _stiffness(form: SecondOrderForm, sizes: FloatArray) -> float:
    """Return what accelerations come from a displacement by the size of a coordinate, in sizes per s^2; at least 1."""
    K = np.abs(form.force_states[:, form.positions]) * sizes
    mass = np.maximum(np.abs(np.diagonal(form.M)), 1e-12 * np.max(np.abs(form.M), initial=0.0))
    return float(np.max(np.max(K, axis=1, initial=0.0) / mass / sizes, initial=1.0))


def _damped(dq: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the step, no longer than half the size of a coordinate."""
    longest = float(np.max(np.abs(dq) / sizes, initial=0.0))
    return dq if longest <= 0.5 else dq * (0.5 / longest)


def _moved(point: OperatingPoint, form: SecondOrderForm, dq: FloatArray) -> OperatingPoint:
    x = point.states.copy()
    x[form.positions] += dq
    return point.with_states(x)


ALL = ("mcs", "rcs", "ucs")

LARGEST = 2500  # coordinates up to which all eigenvalues are computed, from dense matrices

Interface = tuple[Sequence[str] | None, Sequence[str] | None]


def spectrum(
    model: Model,
    point: OperatingPoint | None = None,
    formulation: str | Formulation = "mcs",
    *,
    independent: Sequence[str] = (),
    interface: Interface = (None, None),
    at_singularity: bool = False,
    descriptor: bool = False,
) -> Spectrum:
    """Return the eigenvalues of a model by one formulation, labelled true or spurious, and the linear model.

    The equations are M(q) q'' + Phi_q' lambda = f, Phi(q, t) = 0. At an equilibrium they are those of González et
    al.; elsewhere with the terms of the motion, so that all formulations agree with :func:`fmilin.linearize`. The
    objects have options: ``MCS(basis="svd")``, ``RCS(spurious="zero")``, ``UCS(alpha=1e7, xi=1, omega=10)``.
    ``at_singularity`` is for MCS alone: over the enlarged set of velocities. UCS has no descriptor system.

    >>> from fmilin.systems import four_bar
    >>> found = spectrum(four_bar(), formulation="rcs")
    >>> len(found.true), len(found.spurious), round(float(abs(found.true[0])), 9)
    (2, 12, 2.147676639)
    """
    options = formulation_named(formulation)
    if point is None:
        point = operating_point(model)
    model = model_at(model, point)
    inputs, outputs = interface
    if outputs is not None:
        model = model.with_interface(None, outputs)
    source = _source(model, point)
    if source.singular:
        _require_choice(source, options, at_singularity=at_singularity)
    basis = _basis(source, options, independent)
    if isinstance(options, UCS) and options.displaced and source.form.is_equilibrium:
        bare, reduced = solve_unconstrained(_settled(source, options), basis, options, origin=source.form)
    else:
        bare, reduced = _solve(source.form, basis, options)
    bare = replace(bare, remarks=(*bare.remarks, *_remarks(source, bare, reduced, options)))
    if reduced is None:
        return bare
    linear = linear_model(source, reduced, f"{bare.formulation} ({bare.method})", bare.remarks)
    if inputs is not None:
        linear = with_inputs(linear, chosen_inputs(linear.inputs, inputs))
    if descriptor and not isinstance(options, UCS):
        linear = with_descriptor(linear, model, point, source.coordinates(reduced.basis.S))
    return replace(bare, linear=linear)


class FormulationOptions(Protocol):
    """The options of a linearization that a formulation takes."""

    @property
    def formulation(self) -> str | Formulation | None:
        """One of the formulations, or its name; MCS by default."""

    @property
    def independent(self) -> Sequence[str] | None:
        """Names of independent positions."""

    @property
    def at_singularity(self) -> bool:
        """Whether MCS takes the enlarged set of velocities at a singular configuration."""

    @property
    def descriptor(self) -> bool:
        """Whether the descriptor system comes along."""


def linearize_by_formulation(model: Model, point: OperatingPoint, options: FormulationOptions) -> LinearModel:
    """Return the linear model of one formulation, in place of the general algorithm."""
    result = spectrum(
        model,
        point,
        options.formulation or "mcs",
        independent=options.independent or (),
        at_singularity=options.at_singularity,
        descriptor=options.descriptor,
    )
    if result.linear is None:
        raise NumericalError(" ".join(str(remark) for remark in result.remarks))
    return result.linear


def spectra(
    model: Model,
    point: OperatingPoint | None = None,
    formulations: Sequence[str | Formulation] = ALL,
    *,
    independent: Sequence[str] = (),
    at_singularity: bool = False,
) -> tuple[Spectrum, ...]:
    """Return the spectra of several formulations at one point, side by side."""
    if point is None:
        point = operating_point(model)
    return tuple(
        spectrum(model, point, formulation, independent=independent, at_singularity=at_singularity)
        for formulation in formulations
    )


def spectrum_of_form(
    form: ConstrainedForm, formulation: str | Formulation = "mcs", *, independent: Sequence[str] = ()
) -> Spectrum:
    """Return the spectrum of numeric equations, made dense; no linear model, and no displacement by a penalty."""
    options = formulation_named(formulation)
    if form.n > LARGEST:
        raise UsageError(
            f"All eigenvalues of {form.n} coordinates would need full matrices of {2 * form.n + form.m} rows. Ask for "
            "a few: fmilin.formulations.sparse.eigenvalues_near keeps everything sparse."
        )
    form = form.dense()
    method = options.basis if isinstance(options, MCS) else "coordinates"
    basis = basis_of(form.Phi_q, method, names=form.names, independent=independent)
    return _solve(form, basis, options)[0]


def _solve(form: ConstrainedForm, basis: Basis, options: Formulation) -> tuple[Spectrum, ReducedSystem | None]:
    if isinstance(options, MCS):
        return solve_minimal(form, basis)
    if isinstance(options, UCS):
        return solve_unconstrained(form, basis, options)
    return solve_redundant(form, basis, options)


def _source(model: Model, point: OperatingPoint) -> FormulationPoint:
    taken = second_order(model, point)
    require_consistent(model, point, taken)
    form = numeric_form(model, point, taken)
    sizes = model.states.scales(point.states)[taken.positions]
    dependent = rank_of(form.Phi_q * sizes) < form.m
    return FormulationPoint(model, point, taken, form, singular=dependent and bool(singularity_of(model, point)))


def _require_choice(source: FormulationPoint, options: Formulation, *, at_singularity: bool) -> None:
    """Refuse plain MCS at a singular configuration, and any formulation there in motion."""
    text = singularity_of(source.model, source.point)
    if not source.form.is_equilibrium:
        raise NumericalError(
            f"{text} No formulation helps in motion: the branches have different velocities there.",
            condition_number=np.inf,
        )
    if isinstance(options, MCS) and not at_singularity:
        raise NumericalError(
            f"{text} The formulations rcs and ucs need no choice of velocities and return the spectrum over the "
            "enlarged set as they are.",
            condition_number=np.inf,
        )


def _basis(source: FormulationPoint, options: Formulation, independent: Sequence[str]) -> Basis:
    taken, form = source.second_order, source.form
    sizes = source.model.states.scales(source.point.states)[taken.positions]
    method = options.basis if isinstance(options, MCS) else "coordinates"
    names = list(form.names)
    positions = _positions(source, independent)
    if not positions and method == "coordinates" and not source.singular:
        recommended = [n for n in source.model.independent if n in names]
        if len(recommended) == form.n - rank_of(form.Phi_q * sizes):
            try:
                return basis_of(form.Phi_q, method, sizes=sizes, names=names, independent=recommended)
            except NumericalError:  # the author's choice does not hold here
                pass
    return basis_of(form.Phi_q, method, sizes=sizes, names=names, independent=positions)


def _positions(source: FormulationPoint, independent: Sequence[str]) -> list[str]:
    """Return the positions among the named coordinates; velocities may be named if they belong to these."""
    states, taken = source.model.states.names, source.second_order
    position_of = {states[int(v)]: states[int(q)] for q, v in zip(taken.positions, taken.velocities, strict=True)}
    positions = [name for name in independent if name not in position_of]
    for speed in set(independent) & set(position_of):
        if position_of[speed] not in positions:
            raise UsageError(
                f"'{speed}' is the rate of '{position_of[speed]}', which is not among the independent coordinates. In "
                "the formulations a velocity goes with its position: name positions only."
            )
    return positions


def _settled(source: FormulationPoint, options: UCS) -> ConstrainedForm:
    """Return the equations at the equilibrium of the penalized system."""
    point = penalized_equilibrium(source.model, source.point, options)
    return numeric_form(source.model, point, second_order(source.model, point))


def _remarks(
    source: FormulationPoint, bare: Spectrum, reduced: ReducedSystem | None, options: Formulation
) -> list[Remark]:
    remarks = []
    fastest = is_at_rest(source.model, source.point, source.second_order)
    if not fastest:
        remarks.append(
            off_equilibrium(
                f"'{fastest.name}' changes at {fastest.rate:.3g} of its size per second",
                "The static equations of the formulation do not hold here; the general ones were used, with the "
                "motion of the tangent space. f0 keeps the motion; A and its eigenvalues depend on the choice of "
                "coordinates.",
            )
        )
    if source.singular:
        remarks.append(explanation(source.model, source.second_order, source.form.n - bare.sizes["rank"]))
    if isinstance(options, UCS) and reduced is not None and reduced.error > 0:
        remarks.append(
            Remark(
                "penalty-approximation",
                f"The constraints were replaced by penalties: the true eigenvalues are off by about "
                f"{reduced.error:.1g} of their size.",
            )
        )
    return remarks
