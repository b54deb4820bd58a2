"""Slopes of rates and outputs along the manifold: exact products where the model has them, differences elsewhere.

Exact directional derivatives are a claim, not a truth: each column is compared once with a central difference
on the manifold. What is known without asking (an output that is a state, the rate of a position) is written down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fmilin.derivatives.differences import Differences, Slopes, slopes
from fmilin.errors import NumericalError, UsageError
from fmilin.model import Evaluation, Model, OperatingPoint
from fmilin.remarks import Remark
from fmilin.signals import FloatArray, Signals

__all__ = ["Tangent", "TangentSlopes", "measure"]

AGREEMENT = 1e-7
"""Relative disagreement that is put down to the model's own accuracy rather than to a wrong derivative."""


@dataclass(frozen=True)
class Tangent:
    """The directions to measure along: P independent coordinates on the manifold, then the inputs.

    Attributes
    ----------
    coordinates : Signals
    T : array, shape (N, P)
        DPsi at the point.
    T_error : array, shape (N, P)
    x_u : array, shape (N, nu)
        dPsi/du: how the manifold moves with the inputs; zero unless they prescribe a motion.
    psi : callable
        (y, inputs) -> x (N,) on the manifold.
    y0, scales : array, shape (P,)
    pairs : dict of int to int
        States whose derivative is another state.
    condition_number : float
    """

    coordinates: Signals
    T: FloatArray
    T_error: FloatArray
    x_u: FloatArray
    psi: Callable[[FloatArray, FloatArray], FloatArray]
    y0: FloatArray
    scales: FloatArray
    pairs: dict[int, int]
    condition_number: float


@dataclass(frozen=True)
class TangentSlopes:
    """Slopes of x' and of the outputs, with estimated absolute errors."""

    x_u: FloatArray
    f_y: FloatArray
    f_u: FloatArray
    c_y: FloatArray
    c_u: FloatArray
    f_y_error: FloatArray
    f_u_error: FloatArray
    c_y_error: FloatArray
    c_u_error: FloatArray
    method: str
    warnings: tuple[Remark, ...] = field(default=())


def measure(
    model: Model, tangent: Tangent, point: OperatingPoint, base: Evaluation, derivatives: str | Differences
) -> TangentSlopes:
    """Return the slopes at ``point`` along every coordinate and every input.

    Parameters
    ----------
    model : Model
    tangent : Tangent
    point : OperatingPoint
    base : Evaluation
        The model at the point.
    derivatives : {"auto", "exact", "differences"} or Differences

    Raises
    ------
    UsageError
        When exact derivatives are demanded and the model has none.
    NumericalError
        When the model cannot be evaluated around the point.
    """
    measured = _Measured(model, tangent, point, base)
    if isinstance(derivatives, Differences) or derivatives == "differences":
        options = derivatives if isinstance(derivatives, Differences) else Differences()
        return measured.split(measured.by_differences(options), "differences", ())
    exact = measured.exact()
    if exact is None:
        if derivatives == "exact":
            raise UsageError(
                f"The model '{model.info.name}' provides no exact directional derivatives: use --derivatives auto or "
                "differences."
            )
        return measured.split(measured.by_differences(Differences()), "differences", ())
    known = np.isfinite(exact.J)
    if not known.all():
        by_differences = measured.by_differences(Differences())
        exact = _merged(exact, by_differences, known)
    if derivatives == "exact":
        return measured.split(exact, "exact" if known.all() else "mixed", ())
    checked, kept, warnings = measured.check(exact, known)
    return measured.split(checked, "exact" if kept.all() else "mixed", tuple(warnings))


class _Measured:
    """All columns of one point in one matrix: rows are N rates, ny outputs; columns P coordinates, nu inputs."""

    def __init__(self, model: Model, tangent: Tangent, point: OperatingPoint, base: Evaluation) -> None:
        self.model, self.tangent, self.point = model, tangent, point
        self.base = np.concatenate((base.derivatives, base.outputs))
        self.n, self.p, self.k = len(model.states), len(tangent.y0), len(point.inputs)
        self.scales = np.concatenate((tangent.scales, model.inputs.scales(point.inputs)))
        self.moves = tangent.x_u.any(axis=0)
        """Inputs that move the manifold."""
        self.columns = (*tangent.coordinates.names, *model.inputs.names)
        self.rows = (*(f"der({name})" for name in model.states.names), *model.outputs.names)

    def line(self, j: int, s: float) -> FloatArray:
        """Return rates and outputs at displacement s along column j, on the manifold."""
        t, x, u = self.point.time, self.point.states, self.point.inputs
        y = self.tangent.y0.copy()
        if j < self.p:
            y[j] += s
        else:
            u = u.copy()
            u[j - self.p] += s
        if j < self.p or self.moves[j - self.p]:
            x = self.tangent.psi(y, u)
        visit = self.model.evaluate(t, x, u)
        return np.concatenate((visit.derivatives, visit.outputs))

    def by_differences(self, options: Differences, columns: list[int] | None = None) -> Slopes:
        """Difference all columns, or some."""
        chosen = list(range(self.p + self.k)) if columns is None else columns
        try:
            found = slopes(lambda c, s: self.line(chosen[c], s), self.base, self.scales[chosen], options)
        except NumericalError as error:
            name = self.columns[chosen[int(error.variable or 0)]]
            raise NumericalError(f"{error} The variable that was moved is '{name}'.", variable=name) from None
        if columns is None:
            return self.written_down(found)
        return found

    def exact(self) -> Slopes | None:
        """Ask the model for exact products along T and along each input."""
        p, k = self.p, self.k
        dx = np.hstack((self.tangent.T, self.tangent.x_u))
        du = np.hstack((np.zeros((k, p)), np.eye(k)))
        if p + k == 0:
            return Slopes(np.zeros((len(self.rows), 0)), np.zeros((len(self.rows), 0)))
        answer = self.model.products(self.point.time, self.point.states, self.point.inputs, dx, du)
        if answer is None:
            return None
        J = np.vstack((answer.derivatives, answer.outputs))
        relative = 8 * np.finfo(float).eps * self.tangent.condition_number
        size = np.max(np.abs(self.tangent.T), initial=1e-300)
        relative += float(np.max(self.tangent.T_error, initial=0.0)) / size
        return self.written_down(Slopes(J, relative * self._row_sizes(J)))

    def written_down(self, found: Slopes) -> Slopes:
        """Replace rows that are known: rates of positions, outputs that are states or inputs."""
        J, error = found.J.copy(), found.error.copy()
        T, T_error = self.tangent.T, self.tangent.T_error
        states = [(i, j) for i, j in self.tangent.pairs.items()]
        states += [(self.n + row, copy.index) for row, copy in self.model.copies.items() if copy.kind == "state"]
        for row, state in states:
            J[row, : self.p], error[row, : self.p] = T[state], T_error[state]
            J[row, self.p :], error[row, self.p :] = self.tangent.x_u[state], 0.0
        for row, copy in self.model.copies.items():
            if copy.kind == "input":
                J[self.n + row], error[self.n + row] = 0.0, 0.0
                J[self.n + row, self.p + copy.index] = 1.0
        return Slopes(J, error)

    def check(self, exact: Slopes, known: np.ndarray) -> tuple[Slopes, np.ndarray, list[Remark]]:
        """Compare each exact column with a difference; return what to use, what of it is exact, and remarks."""
        quick = self.by_differences(Differences(order=2, retries=2))
        allowed = AGREEMENT * self._row_sizes(exact.J)
        deviation = np.abs(exact.J - quick.J)
        suspicious = (deviation > 10 * quick.error + allowed) & known
        J, error, kept, warnings = exact.J.copy(), exact.error.copy(), known.copy(), []
        visible = (deviation > 10 * quick.error) & known & ~suspicious
        error[visible] = np.maximum(error[visible], deviation[visible])
        columns = np.flatnonzero(suspicious.any(axis=0)).tolist()
        if columns:
            careful = self.by_differences(Differences(), columns)
            for c, j in enumerate(columns):
                gap = np.abs(exact.J[:, j] - careful.J[:, c])
                wrong = (gap > 10 * careful.error[:, c] + allowed[:, j]) & suspicious[:, j]
                error[:, j] = np.where(suspicious[:, j], np.maximum(error[:, j], gap), error[:, j])
                if wrong.any():
                    rows = suspicious[:, j] & known[:, j]
                    J[rows, j], error[rows, j], kept[rows, j] = careful.J[rows, c], careful.error[rows, c], False
                    warnings.append(
                        self._disagreement(j, int(np.argmax(np.where(wrong, gap, 0.0))), exact.J, careful, c)
                    )
        return Slopes(J, error), kept, warnings

    def _disagreement(self, j: int, row: int, exact: FloatArray, careful: Slopes, c: int) -> Remark:
        return Remark(
            "directional-derivative",
            f"The model's directional derivative with respect to '{self.columns[j]}' is wrong: d {self.rows[row]} / "
            f"d {self.columns[j]} is said to be {exact[row, j]:.9g}, a difference on the manifold gives "
            f"{careful.J[row, c]:.9g} +- {careful.error[row, c]:.2g}. The difference is used.",
        )

    def _row_sizes(self, J: FloatArray) -> FloatArray:
        """Return the largest slope of each row, compared in scaled columns, in units of each entry; same shape as J."""
        finite = np.nan_to_num(np.abs(J), nan=0.0, posinf=0.0)
        return np.max(finite * self.scales, axis=1, keepdims=True, initial=0.0) / self.scales

    def split(self, found: Slopes, method: str, warnings: tuple[Remark, ...]) -> TangentSlopes:
        """Cut the matrix into the four blocks."""
        J, E, n, p = found.J, found.error, self.n, self.p
        blocks = [
            M[rows, columns]
            for M in (J, E)
            for rows in (slice(n), slice(n, None))
            for columns in (slice(p), slice(p, None))
        ]
        return TangentSlopes(self.tangent.x_u, *blocks, method=method, warnings=warnings)


def _merged(exact: Slopes, measured: Slopes, known: np.ndarray) -> Slopes:
    return Slopes(np.where(known, exact.J, measured.J), np.where(known, exact.error, measured.error))
