"""The descriptor system of a model at a point, in names, and what it says about a linear model: a second way to A."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import ConstraintError, FmilinError, NumericalError, UsageError
from fmilin.formulations.dense import descriptor_pencil
from fmilin.formulations.form import Basis, ConstrainedForm, basis_of, combinations_of_rows
from fmilin.formulations.formulation_matrices import MotionTerms, compute_motion_terms
from fmilin.formulations.of_model import form_of, second_order
from fmilin.linear_model.descriptor import Descriptor, LazyDescriptor
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.model.capabilities import HasDescriptorForm
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.models.dae.dae_model import DaeModel
from fmilin.numerics.staircase import deflate, is_order_doubtful
from fmilin.signals import FloatArray
from fmilin.tolerances import DESCRIPTOR_RESIDUAL_TOLERANCE, EQUILIBRIUM_RATE_TOLERANCE

MAX_SVD_UNKNOWNS = (
    150  # unknowns up to which a least-squares problem takes milliseconds by an SVD; it grows with their cube
)
SPARSE_ENTRIES_FRACTION = (
    0.1  # part of the entries of a matrix that are not zero, up to which sparse factors are quicker
)
ROWS_AGREE = 1e-9
"""Rows of R on positions and on their velocities that differ by less, relative to each entry, belong together."""


@one_at_a_time
def descriptor(model: Model, at: OperatingPoint | LinearModel | None = None) -> Descriptor:
    """Return ``E z' = f0 + A z + B (u - u0)``: Lagrange's equations with their constraints left in, or DAEs as written.

    Parameters
    ----------
    model : Model
    at : OperatingPoint or LinearModel, optional
        A consistent point; where the model starts by default. With a linear model of ``model``: at its point, in its
        coordinates (they matter in motion only), with its inputs and outputs; ``difference`` then says how well its
        modes solve the descriptor system.

    Raises
    ------
    UsageError
        When the model is of another form; in motion, when the coordinates of the linear model are not positions of the
        model followed by their velocities: ``linearize(..., descriptor=True)`` knows more of them.
    ConstraintError, NumericalError
        When the point is not consistent.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import four_bar
    >>> fl.descriptor(four_bar()).A.shape
    (14, 14)
    """
    if not isinstance(at, LinearModel):
        point = operating_point(model) if at is None else at
        return make_descriptor(apply_point_parameters(model, point), point)
    point = OperatingPoint(
        at.point.time,
        np.array([at.point.states[name] for name in model.states.names]),
        np.array(
            [at.point.inputs.get(name, u) for name, u in zip(model.inputs.names, model.start.inputs, strict=True)]
        ),
        at.point.parameters,
    )
    plant = apply_point_parameters(model, point).with_interface(None, at.outputs.names)
    positions = plant.states.positions
    named = all(name in positions for name in at.states.names)
    R = (
        np.eye(len(plant.states))[[positions[name] for name in at.states.names]]
        if named
        else np.zeros((0, len(plant.states)))
    )
    return _compare_system(at, make_descriptor(plant, point, coordinates=R))


def with_descriptor(linear: LinearModel, model: Model, point: OperatingPoint, R: FloatArray) -> LinearModel:
    """Return ``linear`` with its descriptor system for y = R x, R (P, N); models of another form have none."""
    try:
        return replace(linear, descriptor=_compare_system(linear, make_descriptor(model, point, coordinates=R)))
    except FmilinError:
        return linear


def with_lazy_descriptor(linear: LinearModel, model: Model, point: OperatingPoint, R: FloatArray) -> LinearModel:
    """Return ``linear`` with its descriptor system for y = R x, computed when it is first asked for."""

    def compute() -> Descriptor:
        return _compare_system(linear, make_descriptor(model, point, coordinates=R))

    return replace(linear, descriptor=LazyDescriptor(compute))


def lazy_descriptor(model: Model, linear: LinearModel) -> LazyDescriptor:
    """Return the descriptor system of ``model`` at the point of a linear model, computed when it is first asked for."""
    return LazyDescriptor(lambda: descriptor(model, linear))


def _compare_system(linear: LinearModel, system: Descriptor) -> Descriptor:
    """Return the descriptor system with the inputs and outputs of ``linear``, compared with it."""
    chosen = system.with_interface(linear.inputs.names, linear.outputs.names)
    return replace(chosen, difference=compute_difference(linear, chosen))


def make_descriptor(model: Model, point: OperatingPoint, *, coordinates: FloatArray | None = None) -> Descriptor:
    """Return the descriptor system at a consistent point; in motion its eigenvalues depend on y = R x, R (P, N)."""
    written = None
    if isinstance(model, HasDescriptorForm):
        written = model.descriptor_form(point.time, point.states, point.inputs)
    if written is not None:
        return Descriptor(**asdict(written), inputs=model.inputs.names, outputs=model.outputs.names)
    form, taken = form_of(model, point), second_order(model, point)
    sizes = model.states.scales(point.states)[taken.positions]
    basis = basis_of(form.Phi_q, sizes=sizes, names=form.names)
    if form.motion is not None and coordinates is not None:
        basis = _basis(form, taken, coordinates, sizes)
    terms = compute_motion_terms(form, basis.lift(form.Phi_q))
    pencil = descriptor_pencil(form, terms)
    U = combinations_of_rows(form.Phi_q)
    n, r = form.n, U.shape[1]
    state_outputs = np.hstack((taken.output_states[:, taken.positions], taken.output_states[:, taken.velocities]))
    by_a, by_lambda = taken.output_unknowns[:, :n], taken.output_unknowns[:, n:]
    C = np.hstack((state_outputs, by_lambda @ U))
    f0 = np.zeros(2 * n + r)
    if form.motion is not None:
        f0[:n], f0[n : 2 * n] = form.motion.velocities, form.M @ form.motion.accelerations
    names = model.states.names
    speeds = [names[int(i)] for i in taken.velocities]
    multipliers = [f"lambda[{i + 1}]" if r == form.m else f"lambda*[{i + 1}]" for i in range(r)]
    system = Descriptor(
        E=pencil.E,
        A=pencil.A,
        B=pencil.B,
        C=C,
        D=taken.output_inputs,
        f0=f0,
        states=(*form.names, *speeds, *multipliers),
        inputs=model.inputs.names,
        outputs=model.outputs.names,
        order=2 * (n - r),
    )
    needed = np.flatnonzero(np.any(by_a != 0, axis=0))
    return system if not len(needed) else _with_accelerations(system, form, terms, needed.tolist(), by_a)


def compute_difference(linear: LinearModel, system: Descriptor) -> float:
    """Return how well ``linear`` solves ``s E z = A z``: modes move states by T y, algebraic ones by least squares."""
    if not len(linear.A) or not len(system.A):
        return 0.0
    if not (np.isfinite(system.A).all() and np.isfinite(system.E).all()):
        return float("nan")  # an algebraic variable without a slope at the point, as sqrt(x) at 0: nothing to compare
    s, Y = np.linalg.eig(linear.A)
    moved = dict(zip(linear.full_states.names, (linear.T @ Y), strict=True))
    of_model = [i for i, name in enumerate(system.states) if name in moved]
    rest = [i for i in range(len(system.states)) if i not in set(of_model)]
    Z = np.zeros((len(system.states), len(s)), dtype=np.complex128)
    Z[of_model] = [moved[system.states[i]] for i in of_model]
    scale = np.maximum(np.max(np.abs(system.A), axis=1), np.max(np.abs(system.E), axis=1))
    A, E = system.A / scale[:, None], system.E / scale[:, None]
    mismatch = E @ Z * s - A @ Z  # what the algebraic states have to make up for
    if rest:
        Z[rest] = _least_squares(A[:, rest], mismatch)
    residual = np.abs(A @ Z - E @ Z * s)
    terms = np.abs(A) @ np.abs(Z) + np.abs(E) @ np.abs(Z) * np.abs(s)
    worst, size = np.max(residual, axis=0), np.max(terms, axis=0)
    return float(np.max(np.divide(worst, size, out=np.zeros_like(worst), where=size > 0)))  # 0/0 where nothing acts


def _least_squares(M: FloatArray, right: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the x of least |M x - right|, by sparse factors of a large sparse M of full rank, else by an SVD."""
    rows, columns = M.shape
    if columns > MAX_SVD_UNKNOWNS and np.count_nonzero(M) < SPARSE_ENTRIES_FRACTION * M.size:
        from scipy.sparse import block_array, csc_array, eye_array
        from scipy.sparse.linalg import splu

        # The saddle point system (Björck, Numerical Methods for Least Squares Problems, 1996, section 1.1.4): r = b -
        # M x, M' r = 0. Its condition is that of M, not of M' M.
        sparse = csc_array(M)
        system = block_array([[eye_array(rows), sparse], [sparse.T, None]], format="csc")
        right_sides = np.vstack((np.hstack((right.real, right.imag)), np.zeros((columns, 2 * right.shape[1]))))
        with suppress(RuntimeError):  # splu's word for a singular matrix: M has not full rank
            factors = splu(system)
            solution = factors.solve(right_sides)
            solution += factors.solve(right_sides - system @ solution)
            if np.isfinite(solution).all():
                real, imaginary = np.hsplit(solution[rows:], 2)
                return np.asarray(real + 1j * imaginary)
    return np.asarray(np.linalg.lstsq(M, right, rcond=None)[0], dtype=np.complex128)


def _basis(form: ConstrainedForm, taken: SecondOrderForm, R: FloatArray, sizes: FloatArray) -> Basis:
    """Return the basis that belongs to the coordinates y = R x = (S q, S v), in any order of their rows."""
    on_q, on_v = R[:, taken.positions], R[:, taken.velocities]
    first, second = np.flatnonzero(on_q.any(axis=1)), np.flatnonzero(on_v.any(axis=1))
    S, Sv = on_q[first], on_v[second]
    same = basis_of(form.Phi_q, "svd", sizes=sizes)
    fitting = len(S) == len(Sv) == same.R.shape[1] and not set(first) & set(second)
    if not fitting or not np.allclose(S, Sv, rtol=ROWS_AGREE, atol=0.0):
        raise UsageError(
            "There is no descriptor system for these coordinates: in motion the eigenvalues depend on the "
            "coordinates, which must be positions followed by their velocities."
        )
    # S N = 0 and S R = I for any S that is regular on the tangent space
    tangent = same.R @ np.linalg.inv(S @ same.R)
    complement = np.linalg.svd(S)[2][len(S) :].T if len(S) else np.eye(form.n)
    return Basis("given", tangent, S, complement)


def _with_accelerations(
    system: Descriptor, form: ConstrainedForm, terms: MotionTerms, needed: Sequence[int], by_a: FloatArray
) -> Descriptor:
    """Return the system with the accelerations of the coordinates ``needed`` as algebraic states: v' is a there."""
    n, k, j = form.n, len(system.A), len(needed)
    E, A = np.zeros((k + j, k + j)), np.zeros((k + j, k + j))
    E[:k, :k], A[:k, :k] = system.E, system.A
    for row, i in enumerate(needed):
        E[k + row, n + i] = A[k + row, k + row] = 1.0  # dv' = a - N (Q dq + W dv)
        A[k + row, :n], A[k + row, n : 2 * n] = -terms.NQ[i], -terms.NW[i]
    f0 = np.zeros(j) if form.motion is None else form.motion.accelerations[list(needed)]
    speeds = system.states[n : 2 * n]
    B, C = np.vstack((system.B, np.zeros((j, system.B.shape[1])))), np.hstack((system.C, by_a[:, list(needed)]))
    states = (*system.states, *(f"der({speeds[i]})" for i in needed))
    return replace(system, E=E, A=A, B=B, C=C, f0=np.concatenate((system.f0, f0)), states=states)


MAX_COMPARED_VARIABLES = 80  # variables of a descriptor system that is compared each time: some milliseconds


@dataclass(frozen=True)
class DescriptorComparison:
    """The comparison of the reduced equations with their pencil s E - A."""

    order: int  # of the linear model
    # finite eigenvalues of the pencil; None where they cannot be distinguished from infinite ones
    pencil_order: int | None
    pencil_index: int | None
    difference: float  # how well the modes of the linear model solve (s E - A) z = 0, relative to the terms

    @property
    def agrees(self) -> bool:
        """Whether the two ways lead to the same."""
        same_order = self.pencil_order is None or self.pencil_order == self.order
        return same_order and not self.difference > DESCRIPTOR_RESIDUAL_TOLERANCE

    def __str__(self) -> str:
        if self.pencil_order is not None and self.pencil_order != self.order:
            return (
                f"The order is {self.order}, but the pencil s E - A of the equations as they are written has "
                f"{self.pencil_order} finite eigenvalues."
            )
        return f"The modes of A have a relative residual of {self.difference:.1e} in the equations as written."


def compare_with_descriptor(linear: LinearModel) -> DescriptorComparison | None:
    """Return how a linear model agrees with its descriptor system; None where it has none.

    Both have the same finite eigenvalues at an equilibrium, and everywhere where the equations are linear.
    """
    if linear.descriptor is None:
        return None
    system = linear.descriptor
    if isinstance(system, LazyDescriptor):
        system = system.compute()
    deflation = deflate(system.E, system.A)
    if deflation is not None and deflation.order != len(linear.A) and is_order_doubtful(system.E, system.A):
        deflation = None  # small coefficients may be meant: the reduction, which knows the nominal values, decides
    return DescriptorComparison(
        order=len(linear.A),
        pencil_order=None if deflation is None else deflation.order,
        pencil_index=None if deflation is None else deflation.index,
        difference=system.difference,
    )


def check_descriptor(linear: LinearModel, model: Model, point: OperatingPoint, rates: FloatArray) -> tuple[Remark, ...]:
    """Return a diagnostic if the descriptor system of a small DAE contradicts its linear model.

    Raises NumericalError if the order differs for equations that are linear: rounding decides it then.
    """
    if not isinstance(model, DaeModel) or linear.descriptor is None:
        return ()
    graph = model.engine.graph
    if graph.residuals.numel() > MAX_COMPARED_VARIABLES:
        return ()
    is_linear = model.engine.is_linear
    is_at_rest = (
        bool((np.abs(rates) <= EQUILIBRIUM_RATE_TOLERANCE * model.states.scales(point.states)).all())
        and model.autonomous
    )
    if not (is_linear or is_at_rest):
        return ()
    try:
        comparison = compare_with_descriptor(linear)
    except (FmilinError, np.linalg.LinAlgError):  # no second way at this point
        return ()
    if comparison is None or comparison.agrees:
        return ()
    if is_linear and comparison.pencil_order not in (None, comparison.order):
        raise NumericalError(
            f"Rounding determines the order of '{graph.name}'. {comparison} Scale the equations, and write 0 for "
            "coefficients that remain where larger numbers cancel."
        )
    return (Remark("descriptor", str(comparison)),)


def explain_lost_invariants(error: ConstraintError, model: Model) -> NumericalError | None:
    """Return what to say where linear equations do not keep what their own differentiation gave; None elsewhere.

    In exact arithmetic they do: a sum of terms that cancel but for rounding has decided about index and order.
    """
    if not (isinstance(model, DaeModel) and error.residuals and model.engine.is_linear):
        return None
    invariants = model.engine.reduced.invariants
    names = {row.name for row in invariants}
    found_here = {name for name in error.residuals if name.removeprefix("rate of ") in names}
    if found_here != set(error.residuals):
        return None  # one that was declared may be wrong
    smallest = _find_smallest_coefficient(model)
    return NumericalError(
        f"Rounding determines the order of '{model.engine.graph.name}': the motion does not satisfy the "
        "differentiated equations, so a sum of coefficients that should cancel was not zero, or a nonzero one was. "
        f"The smallest relative coefficient in its equation is {smallest}. Multiply out products of numbers, scale "
        "the equations, and write 0 for coefficients that remain where larger numbers cancel."
    )


def _find_smallest_coefficient(model: DaeModel) -> str:
    """Name the coefficient that is smallest relative to the largest one of its equation."""
    form = model.descriptor_form(model.start.time, model.start.states, model.start.inputs)
    if form is None:
        return "the smallest one"
    both = np.abs(np.hstack((form.E, form.A)))
    parts = both / np.maximum(both.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    row, column = np.unravel_index(int(np.argmin(np.where(parts > 0, parts, np.inf))), parts.shape)
    k = len(form.states)
    variable = f"der({form.states[column]})" if column < k else form.states[int(column) - k]
    value = form.E[row, column] if column < k else -form.A[row, int(column) - k]
    return f"{value:.3g}, that of '{variable}' in '{model.engine.graph.equation_names[int(row)]}'"
