"""Lagrange's equations without a singular matrix: the null space formulation of Spencer (thesis), chapter 3.

The same M, F, G and Gdot v as in :class:`~fmilin.models.LagrangeModel`, whose accelerations need the matrix
[[M, G'], [G, 0]] to be regular: independent constraints. Here the null space of G comes from its singular
value decomposition G = U S (V1 V2)', and the accelerations are those of eq. (3.5b),

    v' = V2 (V2' M V2)^-1 V2' (F + M G^+ Gdot v) - G^+ Gdot v,

which exist at singular configurations and with redundant constraints, too. :class:`MultiplierModel` is the
classical way to compare with, eqs. (2.4) and (2.5). Off the singular configurations all three agree.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from fmilin.codegen.functions import Factors, SystemFunctions
from fmilin.codegen.saddle_point import ConstraintRank, MultiplierFactors, NullSpaceFactors
from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError
from fmilin.model.interface import SecondOrderForm
from fmilin.models.declaration import der
from fmilin.models.second_order import second_order_form
from fmilin.models.symbolic import SymbolicModel, _Choice
from fmilin.models.symbolic_system import SymbolicSystem
from fmilin.signals import FloatArray

__all__ = ["THRESHOLD", "MultiplierModel", "NullSpaceModel", "Singularity"]

THRESHOLD = 1e-10
"""Singular values of G below this fraction of the largest count as zero."""


@dataclass(frozen=True, slots=True)
class Singularity:
    """How near a configuration is to a singular one, and how it is passed.

    Parameters
    ----------
    constraints : ConstraintRank
        Singular values of G, their number above the threshold, the gap between the two kinds.
    lock_up : float
        |u_m' Gdot v| for the smallest singular value sigma_m (eq. 3.7), in units of the constraint per s^2. Where
        it falls with sigma_m, the motion complies with the freedom that is lost; where it does not, the
        accelerations grow like 1/sigma_m.
    """

    constraints: ConstraintRank
    lock_up: float


class _SaddlePointModel(SymbolicModel):
    """M v' + G' lambda = F, G v' = -Gdot v, solved in a particular way."""

    def __init__(self, model: SymbolicModel) -> None:
        _require_lagrange(model)
        self._laws = model.system.constraints
        self._unstabilized = model.system.right_hand_side
        self._set_up(model._declared, model._choice)

    @abstractmethod
    def _factors(self, W: FloatArray) -> Factors:
        """Return W = [[M, G'], [G, 0]] prepared for solving."""

    @cached_property
    def _numeric(self) -> SystemFunctions:
        return SystemFunctions(self.system.in_graph(self._observed_expressions()), self._factors)

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return the equations taken apart, without any stabilization: M, G and their slopes are Lagrange's."""
        numeric = self._numeric if self.system.right_hand_side == self._unstabilized else self._plain
        return second_order_form(numeric, (t, x, u, self._p), len(self.outputs))

    @cached_property
    def _plain(self) -> SystemFunctions:
        return SystemFunctions(replace(self.system, right_hand_side=self._unstabilized).in_graph())

    def stabilized(self, alpha: float, beta: float) -> Self:
        """Return the same model with Baumgarte's stabilization, eqs. (3.8) and (3.9).

        The constraints on the accelerations become 0 = g'' + 2 alpha g' + beta^2 g. A constraint of level
        ``"velocity"``, a = 0, becomes 0 = a' + 2 alpha a.

        Parameters
        ----------
        alpha, beta : float
            In 1/s; not negative.

        Raises
        ------
        UsageError
            When one is negative or no finite number.
        """
        if not all(np.isfinite(c) and c >= 0 for c in (alpha, beta)):
            raise UsageError(f"Baumgarte's alpha and beta are rates, 0 or more, not {alpha:g} and {beta:g}.")
        right = _with_attraction(self._declared, self._unstabilized, self._laws, alpha, beta)
        return self._changed(replace(self._declared, right_hand_side=right), self._choice)

    def _changed(self, declared: SymbolicSystem, choice: _Choice) -> Self:
        model = type(self).__new__(type(self))
        kept = ("_laws", "_unstabilized", "threshold")
        model.__dict__.update({k: v for k, v in self.__dict__.items() if k in kept})
        model._set_up(declared, choice)
        return model


class NullSpaceModel(_SaddlePointModel):
    """Lagrange's equations through the null space of G: also where, or although, constraints depend on each other.

    States, inputs, outputs, constraints and parameters are those of ``model``. The multipliers ``lambda[1]``, ...
    are those of least norm. Exact directional derivatives hold as long as the rank of G does.

    Parameters
    ----------
    model : LagrangeModel
    threshold : float
        Singular values of G (its columns times the nominal values of the coordinates, 1 where there are none)
        below this fraction of the largest count as zero.

    Raises
    ------
    UsageError
        When the model is not of that form, or the threshold not between 0 and 1.

    Examples
    --------
    >>> from fmilin.systems import five_bar
    >>> model = NullSpaceModel(five_bar(singular=True))
    >>> model.singularity(0.0, model.start.states).constraints.rank
    1
    """

    def __init__(self, model: SymbolicModel, *, threshold: float = THRESHOLD) -> None:
        if not 0 <= threshold < 1:
            raise UsageError(f"The threshold is a fraction of the largest singular value, not {threshold:g}.")
        self.threshold = threshold
        super().__init__(model)

    @cached_property
    def _sizes(self) -> FloatArray:
        """Nominal values of the coordinates, shape (n,)."""
        coordinates = self.states[: len(self.states) // 2]
        return np.array([s.nominal or 1.0 for s in coordinates], dtype=np.float64)

    def _factors(self, W: FloatArray) -> NullSpaceFactors:
        return NullSpaceFactors(W, len(self._sizes), threshold=self.threshold, scales=self._sizes)

    def singularity(self, t: float, x: FloatArray, u: FloatArray | None = None) -> Singularity:
        """Say how near the configuration of the states ``x`` (N,) is to a singular one."""
        inputs = self.start.inputs if u is None else u
        W, r = self._numeric.equations(t, x, inputs, self._p)
        n = len(self._sizes)
        G = W[n:, :n] * self._sizes
        factors = self._factors(W)
        if not len(G):
            return Singularity(factors.rank, 0.0)
        U = np.linalg.svd(G)[0]
        worst = U[:, min(len(G), n) - 1]
        return Singularity(factors.rank, abs(float(worst @ r[n:])))


class MultiplierModel(_SaddlePointModel):
    """Lagrange's equations through the multipliers of eq. (2.4), for comparison: fails where NullSpaceModel does not.

    Parameters
    ----------
    model : LagrangeModel
        With an invertible mass matrix.

    Raises
    ------
    UsageError
        When the model is not of that form.
    """

    def _factors(self, W: FloatArray) -> MultiplierFactors:
        return MultiplierFactors(W, len(self.states) // 2)


def _require_lagrange(model: SymbolicModel) -> None:
    system = model.system
    n = len(system.states) // 2
    accelerations = [str(der(v)) for v in system.states[n:]]
    names = [str(w) for w in system.unknowns]
    multipliers = [f"lambda[{k + 1}]" for k in range(len(names) - n)]
    if 2 * n != len(system.states) or names != accelerations + multipliers:
        raise UsageError(
            f"The model '{system.name}' is not made of Lagrange's equations with multipliers: build it as a "
            "LagrangeModel, with all its velocities among the states."
        )
    if len(system.constraints) != len(multipliers):
        raise UsageError(
            f"The constraints of '{system.name}' were replaced and no longer belong to its {len(multipliers)} "
            "multipliers: take the model as it was built, and replace constraints afterwards."
        )


def _with_attraction(
    declared: SymbolicSystem, unstabilized: Sequence[Any], laws: Sequence[Constraint], alpha: float, beta: float
) -> tuple[Any, ...]:
    """Return the right-hand side (F, -Gdot v - 2 alpha g' - beta^2 g) of eq. (3.9)."""
    every = (declared.time, *declared.states, *declared.inputs, *declared.parameters)
    symbols: dict[str, Any] = {str(s): s for s in every}
    n = len(declared.unknowns) - len(laws)
    right = list(unstabilized)
    for k, law in enumerate(laws):
        expression = law.expression.to_sympy(symbols)
        if law.rate is None:
            right[n + k] -= 2 * alpha * expression
        else:
            right[n + k] -= 2 * alpha * law.rate.to_sympy(symbols) + beta**2 * expression
    return tuple(right)
