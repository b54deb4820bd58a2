"""The invariants h(t, x) = 0 of a model: what is declared, closed under the motion.

A position-level constraint g(t, x) = 0 brings a hidden one, its derivative along the motion
(Spencer eqs. 2.2 and 2.7; here for any states, not only positions):

    L_f g = g_t + g_x f(t, x, u)

Where the derivative of a state is itself a state the rate is read off instead of asked for, so that for
mechanics in (q, v) the hidden constraint G(q) v costs no visit to the model. Gradients are exact where g is
an expression and f has exact products; what remains is differenced, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fmilin.derivatives.differences import jacobian_by_differences
from fmilin.model import Evaluation, Model
from fmilin.signals import FloatArray

__all__ = ["Gradient", "Invariants"]


@dataclass(frozen=True, slots=True)
class Gradient:
    """H = Dh with an error estimate.

    Attributes
    ----------
    H : array, shape (m, N)
    error : array, shape (m, N)
        Estimated absolute error of each entry; 0 where exact.
    reference : array, shape (m,)
        The size of the terms that a row was summed from, in units of the row, with states scaled.
    """

    H: FloatArray
    error: FloatArray
    reference: FloatArray


class Invariants:
    """h(t, x): the residuals that a model declares, then the hidden ones.

    Parameters
    ----------
    model : Model
    inputs : array, shape (nu,)
        Held while the states move.
    pairs : mapping of int to int
        States whose derivative is another state (:func:`fmilin.manifold.kinematics.kinematic_pairs`).
    scales : array, shape (N,)
        Sizes of the states.
    """

    def __init__(self, model: Model, inputs: FloatArray, pairs: Mapping[int, int], scales: FloatArray) -> None:
        self.model = model
        self.inputs = inputs
        self.pairs = dict(pairs)
        self.scales = scales
        constraints = model.constraints
        self.declared = len(constraints)
        self.hidden = [i for i, row in enumerate(constraints.rows) if row.needs_rate]
        self.names = (*constraints.names, *(f"hidden rate of {constraints.names[i]}" for i in self.hidden))
        self._paired = np.array(sorted(self.pairs), dtype=np.intp)
        self._partners = np.array([self.pairs[i] for i in sorted(self.pairs)], dtype=np.intp)
        self._analytic = bool(constraints.analytic.all())
        structure = constraints.structure[self.hidden]
        unpaired = np.ones(len(scales), dtype=bool)
        unpaired[self._paired] = False
        self._kinematic = self._analytic and not structure[:, unpaired].any()
        """Whether h can be computed from the states alone, without a visit to the model."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def is_position_level(self) -> list[bool]:
        """Whether each row constrains positions (and has or needs a rate row)."""
        rows = self.model.constraints.rows
        return [row.level == "position" for row in rows] + [False] * len(self.hidden)

    def values(self, t: float, x: FloatArray) -> FloatArray:
        """Return h, shape (m,), in the units of each constraint."""
        constraints = self.model.constraints
        if not len(self):
            return np.empty(0)
        visit = None if self._kinematic else self.model.evaluate(t, x, self.inputs)
        if self._analytic:
            g = constraints.residuals(t, x, self.inputs, np.empty(0))
        else:
            assert visit is not None  # noqa: S101 - for the type checker: not analytic implies a visit
            g = visit.residuals
        if not self.hidden:
            return g
        return np.concatenate((g, self._rates(t, x, self._velocity(x, visit))))

    def gradient(self, t: float, x: FloatArray) -> Gradient:
        """Return H = dh/dx at a point, shape (m, N)."""
        n = len(self.scales)
        if not len(self):
            return Gradient(np.empty((0, n)), np.empty((0, n)), np.empty(0))
        G, error = self._residual_gradient(t, x)
        reference = np.abs(G) @ self.scales
        if not self.hidden:
            return Gradient(G, error, reference)
        visit = None if self._kinematic else self.model.evaluate(t, x, self.inputs)
        w = self._velocity(x, visit)
        W, W_error = self._velocity_gradient(t, x)
        rows = self.hidden
        curvature, curvature_error = self._curvature(t, x, w)
        H2 = curvature + G[rows] @ W
        error2 = curvature_error + np.abs(G[rows]) @ W_error + error[rows] @ np.abs(W)
        reference2 = np.abs(curvature) @ self.scales + np.abs(G[rows]) @ np.abs(W) @ self.scales
        return Gradient(np.vstack((G, H2)), np.vstack((error, error2)), np.concatenate((reference, reference2)))

    def time_derivative(self, t: float, x: FloatArray) -> FloatArray:
        """Return the partial derivative of h with respect to time, shape (m,); by differences, for checks only."""
        if not self.model.constraints.time_dependent:
            return np.zeros(len(self))
        step = 1e-4 * max(abs(t), 1.0)
        return (self.values(t + step, x) - self.values(t - step, x)) / (2 * step)

    # -- the parts ---------------------------------------------------------------------------------

    def _velocity(self, x: FloatArray, visit: Evaluation | None) -> FloatArray:
        """Return w = x': state partners where they are known, else what the model said; shape (N,)."""
        w = np.zeros_like(x) if visit is None else visit.derivatives.copy()
        w[self._paired] = x[self._partners]
        return w

    def _rates(self, t: float, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return L_f g = g_t + g_x w for the rows that need it."""
        if self._analytic:
            partials = self.model.constraints.partials(t, x, self.inputs, np.empty(0))
            return (partials.time + partials.states @ w)[self.hidden]
        exact = self.model.products(t, x, self.inputs, w[:, None], np.zeros((len(self.inputs), 1)))
        rates = np.full(self.declared, np.nan) if exact is None else exact.residuals[:, 0]
        if self.model.constraints.time_dependent or not np.isfinite(rates[self.hidden]).all():
            size = float(np.max(np.abs(w) / self.scales, initial=0.0))
            h = 1e-4 / max(size, 1e-3)
            ahead = self.model.evaluate(t + h, x + h * w, self.inputs).residuals
            behind = self.model.evaluate(t - h, x - h * w, self.inputs).residuals
            rates = np.where(np.isfinite(rates), rates, (ahead - behind) / (2 * h))
        return rates[self.hidden]

    def _residual_gradient(self, t: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return G = dg/dx of all declared rows with its error, each (m, N)."""
        constraints = self.model.constraints
        if self._analytic:
            G = constraints.partials(t, x, self.inputs, np.empty(0)).states
            return G, np.zeros_like(G)
        return self._exact_or_measured(t, x, "residuals")

    def _velocity_gradient(self, t: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dw/dx with its error, each (N, N)."""
        n = len(x)
        W, error = np.zeros((n, n)), np.zeros((n, n))
        if not self._kinematic:
            W, error = self._exact_or_measured(t, x, "derivatives")
        W[self._paired] = 0.0
        error[self._paired] = 0.0
        W[self._paired, self._partners] = 1.0
        return W, error

    def _curvature(self, t: float, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return d/dx (g_t + g_x w), w held, of the hidden rows, with its error."""
        exact = self.model.constraints.curvature(t, x, self.inputs, w)[self.hidden]
        if np.isfinite(exact).all():
            return exact, np.zeros_like(exact)
        measured, error = jacobian_by_differences(lambda s: self._rates(t, s, w), x, self.scales)
        known = np.isfinite(exact)
        return np.where(known, exact, measured), np.where(known, 0.0, error)

    def _exact_or_measured(self, t: float, x: FloatArray, what: str) -> tuple[FloatArray, FloatArray]:
        n = len(x)
        exact = self.model.products(t, x, self.inputs, np.eye(n), np.zeros((len(self.inputs), n)))
        known: FloatArray | None = None if exact is None else getattr(exact, what)
        if known is not None and np.isfinite(known).all():
            return known, np.zeros_like(known)
        measured, error = jacobian_by_differences(
            lambda s: getattr(self.model.evaluate(t, s, self.inputs), what), x, self.scales
        )
        if known is None:
            return measured, error
        finite = np.isfinite(known)
        return np.where(finite, known, measured), np.where(finite, 0.0, error)
