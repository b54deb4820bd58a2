"""A system as NumPy functions: values, and exact directional derivatives.

At one point W w = r is solved by an LU factorization with pivoting. Along directions ds = (dx, du)

    dw  = W^-1 (e_s ds),  e = r - W w with w held
    dx' = f_s ds + f_w dw
    dc  = c_s ds + c_w dw

with all partial derivatives exact and evaluated once per point, however many directions there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.numerics.codegen.evaluator import Evaluator
from fmilin.numerics.codegen.implicit import ImplicitSystem, jacobian
from fmilin.numerics.saddle_point.factors import DenseFactors, Factors, require_regular

__all__ = ["SystemFunctions"]


class SystemFunctions:
    """An :class:`~fmilin.numerics.codegen.implicit.ImplicitSystem` that can be evaluated; made when it is first needed.

    ``system``: its parameter values are not used: every call takes them. ``factors``: takes W apart; LU factors with
    pivoting unless another way suits its structure better.
    """

    def __init__(self, system: ImplicitSystem, factors: Callable[[FloatArray], Factors] = DenseFactors) -> None:
        self.system = system
        self._factors = factors

    def values(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x', shape (N,), and the outputs, shape (ny,); x (N,), u (nu,), p (np,)."""
        _, w = self._solved(t, x, u, p)
        f, c = self._right_sides(t, x, u, p, w)
        return f[:, 0], c[:, 0]

    def unknowns(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return w = W^-1 r, shape (nw,): accelerations and multipliers, in the order of ``system.unknowns``."""
        return self._solved(t, x, u, p)[1]

    def equations(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W, shape (nw, nw), and r, shape (nw,)."""
        W, r = self._equations(t, x, u, p)
        return W, r[:, 0]

    def partials(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], w: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return d(r - W w)/ds with w held, and the outputs' d/ds and d/dw, for s = (x, u) and any w.

        Returns shapes (nw, N + nu), (ny, N + nu) and (ny, nw).
        """
        e_s, _, _, c_s, c_w = self._partials(*point, w)
        return e_s, c_s, c_w

    def products(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of x', (N, k), and of the outputs, (ny, k), along the columns of (dx, du).

        Shapes: dx (N, k), du (nu, k). ``point``: t, x, u, p as in :meth:`values`.
        """
        W, w = self._solved(*point)
        e_s, f_s, f_w, c_s, c_w = self._partials(*point, w)
        ds = np.concatenate((dx, du))
        dw = W.solve(e_s @ ds)
        return f_s @ ds + f_w @ dw, c_s @ ds + c_w @ dw

    def _solved(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[Factors, FloatArray]:
        if not self.system.unknown_names:
            return _NOTHING
        W, r = self._equations(t, x, u, p)
        factors = self._factors(W)
        require_regular(factors, f"The equations of '{self.system.name}'", self.system.unknown_names, f"at time {t:g}")
        return factors, factors.solve(r[:, 0])

    @cached_property
    def _equations(self) -> Evaluator:
        s = self.system
        return Evaluator(s.arguments, [s.matrix, s.right_hand_side])

    @cached_property
    def _right_sides(self) -> Evaluator:
        s = self.system
        return Evaluator([*s.arguments, s.unknowns], [s.derivatives, s.outputs])

    @cached_property
    def _partials(self) -> Evaluator:
        s = self.system
        of_values = [jacobian(e, v) for e in (s.derivatives, s.outputs) for v in (s.motion, s.unknowns)]
        return Evaluator([*s.arguments, s.unknowns], [s.motion_slopes, *of_values])


_NOTHING = DenseFactors(np.empty((0, 0))), np.empty(0)
