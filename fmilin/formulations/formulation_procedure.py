"""The procedure: a model, a point and a formulation give a labelled spectrum and a linear model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from fmilin.diagnostics import Remark, off_equilibrium
from fmilin.errors import NumericalError, UsageError
from fmilin.formulations.dense import solve_minimal, solve_redundant, solve_unconstrained
from fmilin.formulations.descriptor_system import with_descriptor
from fmilin.formulations.equilibrium import penalized_equilibrium
from fmilin.formulations.form import Basis, ConstrainedForm, basis_of, find_rank
from fmilin.formulations.formulation import MCS, UCS, Formulation, ReducedSystem, Spectrum, formulation_named
from fmilin.formulations.of_model import (
    FormulationPoint,
    is_at_rest,
    linear_model,
    numeric_form,
    require_consistent,
    second_order,
)
from fmilin.linear_model.builder import find_inputs, with_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.manifold.rank import describe_singularity, explanation
from fmilin.model.interface import Model, OperatingPoint

ALL = ("mcs", "rcs", "ucs")

MAX_DENSE_COORDINATES = 2500  # coordinates up to which all eigenvalues are computed, from dense matrices

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
    model = apply_point_parameters(model, point)
    inputs, outputs = interface
    if outputs is not None:
        model = model.with_interface(None, outputs)
    source = _source(model, point)
    if source.singular:
        _require_choice(source, options, at_singularity=at_singularity)
    basis = _basis(source, options, independent)
    if isinstance(options, UCS) and options.displaced and source.form.is_equilibrium:
        bare, reduced = solve_unconstrained(_settle_form(source, options), basis, options, origin=source.form)
    else:
        bare, reduced = _solve(source.form, basis, options)
    bare = replace(bare, remarks=(*bare.remarks, *_remarks(source, bare, reduced, options)))
    if reduced is None:
        return bare
    linear = linear_model(source, reduced, f"{bare.formulation} ({bare.method})", bare.remarks)
    if inputs is not None:
        linear = with_inputs(linear, find_inputs(linear.inputs, inputs))
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
    if form.n > MAX_DENSE_COORDINATES:
        raise UsageError(
            f"All eigenvalues of {form.n} coordinates would need full matrices of {2 * form.n + form.m} rows. Compute "
            "a few instead: fmilin.formulations.sparse.eigenvalues_near keeps everything sparse."
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
    dependent = find_rank(form.Phi_q * sizes) < form.m
    return FormulationPoint(model, point, taken, form, singular=dependent and bool(describe_singularity(model, point)))


def _require_choice(source: FormulationPoint, options: Formulation, *, at_singularity: bool) -> None:
    """Reject plain MCS at a singular configuration, and any formulation there in motion."""
    text = describe_singularity(source.model, source.point)
    if not source.form.is_equilibrium:
        raise NumericalError(
            f"{text} No formulation helps in motion: the branches have different velocities there.",
            condition_number=np.inf,
        )
    if isinstance(options, MCS) and not at_singularity:
        raise NumericalError(
            f"{text} The formulations rcs and ucs need no choice of velocities: they return the spectrum over the "
            "enlarged set.",
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
        if len(recommended) == form.n - find_rank(form.Phi_q * sizes):
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


def _settle_form(source: FormulationPoint, options: UCS) -> ConstrainedForm:
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
                "The static equations of the formulation are not valid here; the general ones were used, with the "
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
