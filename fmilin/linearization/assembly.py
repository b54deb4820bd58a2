"""From slopes to matrices, at one point or in a stack, and whether every entry is known well enough to be handed out.

An entry's estimate counts against the largest entry of its row of [A B] or [C D], in sizes of the variables; a row that
is nothing but error is compared with the size of its terms: zero is known well when noise makes 1e-8 of it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.linear_model.accuracy import comparable_sizes, matrix_and_errors, require_parts
from fmilin.linear_model.builder import IndependentCoordinates, Slopes, built, point_of
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import is_connected, path_to_an_output
from fmilin.manifold.frame import Frame
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.slopes import TangentSlopes
from fmilin.manifold.stack import PointBatch, StackGeometry
from fmilin.manifold.verification import VerifiedFacts
from fmilin.model.interface import Evaluation, Model, OperatingPoint, TangentBatch
from fmilin.model.visits import CountedModel
from fmilin.numerics.differences.sweep import StepSweep, step_sweep
from fmilin.signals import FloatArray

# With y = R (x - x0) and x = Psi(y) (Spencer sections 2.2 and 4.1), at any consistent point:
#     A = R f_x DPsi,  B = R f_u,  C = c_x DPsi,  D = c_u,  T = DPsi,  f0 = R f(t0, x0, u0)
# Nonlinear coordinates y = rho(x) have R = D rho(x0) and d(D rho(x) f0)/dx DPsi in A besides, from y' = D rho x'.
# Inputs that prescribe a motion move the manifold: x = Psi(y, u), and Psi_u adds f_x Psi_u to B and c_x Psi_u to D.


def assembled(
    model: CountedModel,
    point: OperatingPoint,
    base: Evaluation,
    frame: Frame,
    slopes: TangentSlopes,
    remarks: Sequence[Remark],
) -> LinearModel:
    """Return the linear model in the coordinates of a frame; ``base`` is what the model says at the point."""
    R, T = frame.coordinates.R, frame.T
    A, B, size = R @ slopes.f_y, R @ slopes.f_u, np.abs(R)
    if not frame.coordinates.is_linear:
        bend = frame.coordinates.curvature(point.states, base.derivatives)  # d(D rho f)
        A, B = A + bend @ T, B + bend @ slopes.x_u
    chosen, geometry = frame.selection, frame.parametrization
    coordinates = IndependentCoordinates(
        chosen.signals, model.states, frame.y0, T, geometry.derivative_error, chosen.kind, chosen.condition_number,
        frame.residual, T_u=slopes.x_u,
    )  # fmt: skip
    errors = size @ slopes.f_y_error, size @ slopes.f_u_error, slopes.c_y_error, slopes.c_u_error
    own = Slopes(A, B, slopes.c_y, slopes.c_u, R @ base.derivatives, *errors)
    method = slopes.method, model.evaluations, model.directions
    return built(model, coordinates, own, point_of(model, point, base.outputs), method, remarks)


SHOWN = 6  # scales of steps at which slopes are listed


def require_accuracy(linear: LinearModel, nearby: Neighbourhood, *, keep: bool) -> LinearModel:
    """Return the linear model with a remark where an entry is doubtful; refuse it there unless it is to be kept."""
    J, E = matrix_and_errors(linear)
    if not J.size:
        return linear
    scaled = E * nearby.scales
    largest = (np.abs(J) * nearby.scales).max(axis=1)
    sizes = comparable_sizes(largest, scaled.max(axis=1), _terms(linear, nearby, largest))
    part = np.where(scaled > 0, scaled / np.where(sizes > 0, sizes, 1.0)[:, None], 0.0)
    return require_parts(linear, part, lambda i, j: _what_was_found(nearby, i, j), keep=keep)


def _terms(linear: LinearModel, nearby: Neighbourhood, largest: FloatArray) -> FloatArray:
    """Return the size of what each row sums, shape (P + ny,): rates by the fastest one, outputs by their own sizes."""
    p = nearby.p
    sizes = nearby.scales[:p]
    fastest = max(1.0, float(np.max(np.maximum(largest[:p], np.abs(linear.f0)) / sizes, initial=0.0)))
    return np.concatenate((sizes * fastest, linear.outputs.scales(nearby.base[nearby.n :])))


def _what_was_found(nearby: Neighbourhood, row: int, j: int) -> str:
    """Say what was found at each scale of steps, and what to do."""
    unit = np.eye(len(nearby.scales))[j]
    with np.errstate(all="ignore"):
        value = float(np.concatenate((nearby.frame.y0, nearby.point.inputs))[j])
        sweep = step_sweep(lambda s: nearby.at(s * unit), nearby.base, float(nearby.scales[j]), value)
    slopes = "" if sweep is None else f" The slope found at steps of {_scales(nearby, sweep, row)}."
    if nearby.revisited and (change := float(np.max(nearby.revisit_change, initial=0.0))):
        slopes += f" Evaluated again at the same point the model differs by up to {change:.2g}: it keeps memory."
    return (
        f"{slopes} A slope that changes with the step means friction, a deadzone, a switch, rounding or noise in the "
        f"model: give '{nearby.columns[j]}' a nominal value of the size at which the model is smooth, tighten the "
        "tolerance of solvers inside, provide exact derivatives, or move the point."
    )


def _scales(nearby: Neighbourhood, sweep: StepSweep, row: int) -> str:
    """List the slopes of one row of [A; C] at some of the steps."""
    p, D = nearby.p, sweep.D
    slopes = D[:, : nearby.n] @ nearby.frame.coordinates.R[row] if row < p else D[:, nearby.n + row - p]
    steps: Sequence[int] = np.unique(np.linspace(0, len(D) - 1, SHOWN).round().astype(int)).tolist()
    return ", ".join(f"{sweep.h[k]:.1g} is {slopes[k]:.4g}" for k in steps)


EPS = float(np.finfo(np.float64).eps)

Mask = NDArray[np.bool_]
Parts = Mapping[str, FloatArray]


def write_stack(
    parts: Parts,
    model: Model,
    facts: VerifiedFacts,
    points: PointBatch,
    tangents: TangentBatch,
    geometry: StackGeometry,
    *,
    errors: FloatArray,
    zeros: Mask,
) -> None:
    """Write the matrices of a stack by name; an entry's error is that of its row over the size of its column.

    Entries that are zero by the structure of the model, ``zeros`` (N + ny, P + nu), have no error.
    """
    t, kept, p = tangents, list(tangents.kept), len(tangents.kept)
    matrices = {name: getattr(t, name) for name in "ABCDT"}
    values = {"f0": t.rates[:, kept], "y0": points.states[:, kept], "x0": points.states, "u0": points.inputs}
    for name, array in (matrices | values | {"out0": t.values, "time": points.time}).items():
        parts[name][...] = array
    y, u = geometry.y_sizes, geometry.u_sizes
    largest, seen = geometry.slopes.largest, geometry.output_slopes.largest
    rows = _row_errors(model, dict(facts.pairs or {}), kept, geometry.row_errors_of_T, errors)
    columns = {"A": y, "B": u, "C": y, "D": u, "T": y}
    kept_zeros, output_zeros = zeros[kept], zeros[len(model.states) :]
    structural = {
        "A": kept_zeros[:, :p], "B": kept_zeros[:, p:], "C": output_zeros[:, :p], "D": output_zeros[:, p:]
    }  # fmt: skip
    entries = largest[:, :p], largest[:, p:], seen[:, :p], seen[:, p:], geometry.largest_of_T[:, None]
    for number, (name, entry) in enumerate(zip(columns, entries, strict=True)):
        error = parts[f"error_{name}"]
        np.divide(rows[name][..., None], columns[name][:, None], out=error)
        if name in structural:
            error[structural[name] & (matrices[name] == 0)] = 0.0
        parts["accuracy"][:, number] = relative_to(entry.max(axis=1, initial=0.0), error.max(axis=(1, 2), initial=0.0))
    parts["accuracy"][:, 5] = np.where(parts["f0"].any(axis=1), EPS, 0.0)
    parts["accuracy"][:, 6], parts["accuracy"][:, 7] = geometry.distance, geometry.condition_number


def _row_errors(
    model: Model, pairs: Mapping[int, int], kept: list[int], of_T: FloatArray, errors: FloatArray
) -> dict[str, FloatArray]:
    """Return what rows of matrices may be off by; what is known without asking is as good as T (k, N), or exact."""
    along_y, seen_y = errors[:, kept], errors[:, len(model.states) :].copy()
    along_u, seen_u = along_y.copy(), seen_y.copy()
    for row, i in enumerate(kept):
        if i in pairs:
            along_y[:, row], along_u[:, row] = of_T[:, pairs[i]], 0.0
    for row, copy in model.copies.items():
        seen_y[:, row], seen_u[:, row] = of_T[:, copy.index] if copy.kind == "state" else 0.0, 0.0
    return {"A": along_y, "B": along_u, "C": seen_y, "D": seen_u, "T": of_T}


def relative_to(largest: FloatArray, worst: FloatArray) -> FloatArray:
    """Return the largest error over the largest entry at each point; the error itself where all entries are zero."""
    return np.asarray(np.where(largest > 0, worst / np.where(largest > 0, largest, 1.0), worst))


def connected_points(parts: Parts) -> Mask:
    """Say where inputs reach outputs by entries larger than their errors, or there are none, shape (k,)."""
    k, inputs, outputs = len(parts["f0"]), parts["D"].shape[2], parts["D"].shape[1]
    if not inputs or not outputs:
        return np.ones(k, dtype=bool)
    path = path_to_an_output(*(_visible(parts, name, 0) for name in "ABCD"))
    connected = np.full(k, path is not None)
    for name, i, j in path or ():
        connected &= np.abs(parts[name][:, i, j]) > parts[f"error_{name}"][:, i, j]
    for point in np.flatnonzero(~connected).tolist():
        connected[point] = is_connected(*(_visible(parts, name, point) for name in "ABCD"))
    return connected


def _visible(parts: Parts, name: str, point: int) -> Mask:
    return np.asarray(np.abs(parts[name][point]) > parts[f"error_{name}"][point])
