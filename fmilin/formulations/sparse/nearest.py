"""A few eigenvalues around a frequency, by shift-invert Arnoldi and Lanczos iterations (ARPACK through SciPy).

The eigenvalues nearest to the shift sigma become the largest of (A - sigma E)^-1 E, infinite ones zeros. Only the block
[[sigma^2 M + sigma C + K, G'], [G, 0]] is factorized: z = (x, s x), and multipliers follow. Where M and K are symmetric
and nothing damps or turns, s^2 is real, and the Lanczos iteration finds it from (K - mu M)^-1 M, mu = -s^2, with the
last bits of a symmetric problem.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark, off_equilibrium, swamping_penalty
from fmilin.errors import UnknownNameError, UsageError
from fmilin.formulations.form import ConstrainedForm
from fmilin.formulations.formulation import (
    MCS,
    RCS,
    UCS,
    ComplexArray,
    Formulation,
    Spectrum,
    formulation_named,
    violations,
)
from fmilin.formulations.sparse.iterations import Around, Solutions, linear, quadratic
from fmilin.formulations.sparse.problem import minimal, motion_pencil, penalize_problem, redundant
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

__all__ = ["Around", "eigenvalues_near"]

MAX_UNREPORTED_LOSS = 1e-4  # A relative loss by rounding that is remarked on
SPURIOUS_INERTIA_FRACTION = (
    0.1  # A motion with more than this fraction of its penalized inertia in violated constraints is a spurious one
)


def eigenvalues_near(
    form: ConstrainedForm,
    formulation: str | Formulation = "rcs",
    *,
    around: Around | None = None,
    independent: Sequence[str] | None = None,
) -> Spectrum:
    """Return the eigenvalues of a sparse form nearest to a frequency, without dense matrices of its size.

    They come with their conjugates, labelled, the four slowest by default, without a linear model. MCS takes its R from
    elimination, whatever basis it names, and keeps the ``independent`` coordinates, to which A refers in motion.
    Spurious eigenvalues of RCS are at infinity and never appear.
    """
    around, chosen = around or Around(), formulation_named(formulation)
    form = form.sparse()
    independent_positions = None if independent is None else _indices(form, independent)
    sizes = {"n": form.n, "m": form.m}
    if isinstance(chosen, MCS):
        problem, Z = minimal(form, independent_positions)
        solutions, words = quadratic(problem, around), "elimination, "
        sizes |= {"rank": len(Z.dependent), "order": 2 * len(Z.independent)}
    elif isinstance(chosen, RCS) and form.motion is None:
        _require_infinite(chosen)
        problem, words = redundant(form), ""
        solutions = quadratic(problem, around)
        sizes |= {"rank": problem.G.shape[0], "order": 2 * form.n + problem.G.shape[0]}
    elif isinstance(chosen, RCS):
        _require_infinite(chosen)
        pencil, words = motion_pencil(form, independent_positions), "accelerations kept, "
        solutions = linear(pencil, around)
        sizes |= {"rank": pencil.A.shape[0] - 3 * form.n, "order": pencil.A.shape[0]}
    else:
        solutions = quadratic(penalize_problem(form, chosen, independent_positions), around)
        words = f"penalty, alpha = {chosen.alpha:g}, xi = {chosen.xi:g}, omega = {chosen.omega:g}, "
        sizes |= {"order": 2 * form.n}
    spectrum = _spectrum(form, chosen, solutions, sizes, f"{words}shift-invert around {around.frequency:g} rad/s")
    if isinstance(chosen, UCS):
        return replace(spectrum, remarks=(*spectrum.remarks, *_warn_swamped(form, chosen, spectrum)))
    return spectrum


def _spectrum(
    form: ConstrainedForm, chosen: Formulation, solutions: Solutions, sizes: dict[str, int], method: str
) -> Spectrum:
    order = np.lexsort((solutions.values.imag, np.abs(solutions.values)))
    values, vectors = solutions.values[order], solutions.vectors[:, order]
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(len(order))]
    vectors = vectors / np.where(largest == 0, 1.0, largest)
    is_true = np.ones(len(values), dtype=bool)
    if isinstance(chosen, UCS):
        is_true = _compute_penalty_inertia(form, chosen, vectors) < SPURIOUS_INERTIA_FRACTION
    return Spectrum(
        formulation=type(chosen).__name__.lower(),
        method=method,
        eigenvalues=values,
        is_true=is_true,
        vectors=vectors,
        violations=violations(form, vectors),
        errors=solutions.errors[order],
        sizes=sizes,
        remarks=tuple(_remarks(form, values, is_true, sizes.get("rank", form.m))),
    )


def _remarks(form: ConstrainedForm, values: ComplexArray, is_true: NDArray[np.bool_], rank: int) -> Iterator[Remark]:
    if rank < form.m:
        yield Remark(
            "singular",
            f"{form.m - rank} of the {form.m} constraints follow from others at this point and were left out. If this "
            "holds here only, the configuration is singular: the eigenvalues belong to an enlarged set of velocities, "
            "and to multipliers that are not determined there.",
        )
    if form.motion is not None:
        yield off_equilibrium(
            "the equations are those of the motion, and their eigenvalues depend on the choice of coordinates", ""
        )
    if not is_true.all():
        yield Remark(
            "labels",
            f"{np.count_nonzero(~is_true)} of the {len(values)} eigenvalues nearest to the frequency are spurious, "
            f"the penalty's own, of modulus {np.min(np.abs(values[~is_true])):.3g} 1/s and more. Search around the "
            "frequency of the motion that you want, or use the formulation mcs or rcs.",
        )


def _warn_swamped(form: ConstrainedForm, options: UCS, spectrum: Spectrum) -> tuple[Remark, ...]:
    """Warn of a penalty at which double precision loses the inertia, or too many digits of the eigenvalues."""
    weight = abs(form.Phi_q.T @ form.Phi_q).max() * options.alpha / abs(form.M).max() if form.m else 0.0
    sizes = np.abs(spectrum.eigenvalues)
    relative = (spectrum.errors / np.where(sizes > 0, sizes, 1.0))[np.asarray(spectrum.is_true, dtype=bool)]
    loss = max(float(np.nanmax(relative, initial=0.0)), float(weight) * EPS)
    if loss <= MAX_UNREPORTED_LOSS:
        return ()
    change = f"by {loss:.1g} of their size" if loss < 1 else "altogether"
    return (swamping_penalty(options.alpha, f"{change}. Take a smaller alpha, or the formulation mcs or rcs."),)


def _compute_penalty_inertia(form: ConstrainedForm, options: UCS, vectors: ComplexArray) -> FloatArray:
    """Return the part of v' M_p v that the penalty makes, for each eigenvector: near 0 or near 1."""
    dv = vectors[form.n :]
    penalty = options.alpha * np.sum(np.abs(form.constraint_rates(vectors)) ** 2, axis=0)
    inertia = np.abs(np.einsum("ij,ij->j", dv.conj(), form.M @ dv))
    part: FloatArray = penalty / np.maximum(penalty + inertia, np.finfo(float).tiny)
    return part


def _indices(form: ConstrainedForm, names: Sequence[str]) -> list[int]:
    positions = {name: i for i, name in enumerate(form.names)}
    for name in names:
        if name not in positions:
            raise UnknownNameError.among(name, positions, "a coordinate of the model")
    return [positions[name] for name in names]


def _require_infinite(options: RCS) -> None:
    if options.spurious != "infinite":
        raise UsageError(
            "Around a frequency the redundant formulation keeps its spurious eigenvalues infinite: with zeros in "
            "their place they would be the slowest eigenvalues. Use RCS(spurious='infinite')."
        )
