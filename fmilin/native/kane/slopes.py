"""Peterson's procedure at one point, as :func:`fmilin.linearize` takes it: all slopes for any choice of states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from fmilin.ground.errors import NumericalError
from fmilin.model.interface import Evaluation, ExactSlopes, Tangent
from fmilin.native.kane.form import KaneForm
from fmilin.native.kane.functions import Expansion
from fmilin.native.kane.partition import Partition, dependence
from fmilin.native.kane.procedure import constraint_gradients, eliminate

if TYPE_CHECKING:
    from fmilin.ground.signals import FloatArray
    from fmilin.native.kane.numeric import OutputSlopes

__all__ = ["KaneSlopes", "are_smooth"]

_KINKED = (
    sympy.Abs, sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.Mod, sympy.Piecewise,
    sympy.Min, sympy.Max,
)  # fmt: skip


@lru_cache(maxsize=16)
def are_smooth(expressions: tuple[Any, ...]) -> bool:
    """Whether no function in sympy expressions has a kink: no absolute values, signs or case distinctions."""
    stack, seen = list(expressions), set()
    while stack:  # what expressions share is looked at once
        e = stack.pop()
        if isinstance(e, _KINKED):
            return False
        if e not in seen:
            seen.add(e)
            stack.extend(e.args)
    return True


class KaneSlopes(ExactSlopes):
    """The equations and their gradients at a point, ready for a choice of states.

    Shapes: scales (N,), sizes of the states. ``input_columns``: where the inputs stand among the columns of J.
    ``outputs``: what the constraints observe may follow the outputs. ``smooth``: whether all functions in the equations
    and outputs are.
    """

    def __init__(
        self,
        form: KaneForm,
        expansion: Expansion,
        input_columns: list[int],
        outputs: OutputSlopes,
        values: Evaluation,
        *,
        scales: FloatArray,
        smooth: bool,
    ) -> None:
        self._form, self._expansion, self._input_columns = form, expansion, input_columns
        self._seen, self._scales = outputs, scales
        self.values, self.smooth = values, smooth

    def rate_gradient(self) -> FloatArray:
        """Return d(q', u')/d(q, u), shape (N, N)."""
        form, count = self._form, len(self._form.f_c) + len(self._form.velocity)
        n, o = len(form.q), len(form.u)
        J = self._expansion.J[:, count:]
        A = -np.concatenate((J[:, :, 1 : 1 + n], J[:, :, 1 + 2 * n : 1 + 2 * n + o]), axis=2)
        gradient: FloatArray = self._expansion.solve(A)[0, : n + o]
        return gradient

    def along(self, independent: Sequence[int]) -> Tangent:
        """Return A', B', C and D with these states kept, in this order."""
        form, inputs = self._form, self._input_columns
        n, o = len(form.q), len(form.u)
        partition = Partition.keeping([i for i in independent if i < n], [i - n for i in independent if i >= n], n, o)
        if (len(partition.q_d), len(partition.u_d)) != (len(form.f_c), len(form.velocity)):
            raise NumericalError("The kept states are no partition of coordinates and speeds of their own.")
        C = dependence(constraint_gradients(form, self._expansion.J, inputs), partition, self._scales)
        if not np.isfinite(C.condition_number[0]):
            raise NumericalError("The kept states do not determine the others.", condition_number=np.inf)
        [found] = eliminate(form, self._expansion, inputs, partition, C)
        place = {state: i for i, state in enumerate(partition.states)}
        order = [place[i] for i in independent]
        T, T_u, A_prime, B_prime = found.T[:, order], found.T_u, found.A_prime[:, order], found.B_prime
        c, ny = self._seen, len(self.values.outputs)
        along_states = c.x[:ny] @ T + c.w[:ny] @ A_prime
        along_inputs = c.r[:ny] + c.x[:ny] @ T_u + c.w[:ny] @ B_prime
        return Tangent(
            T=T,
            T_u=T_u,
            derivatives=np.hstack((A_prime[: n + o], B_prime[: n + o])),
            outputs=np.hstack((along_states, along_inputs)),
        )
