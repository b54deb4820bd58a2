"""Lagrange's equations without a singular matrix: the null space formulation of Spencer (thesis), chapter 3.

The accelerations of :class:`~fmilin.models.LagrangeModel` need independent constraints. Here the null space of G comes
from its singular value decomposition G = U S (V1 V2)', and the accelerations are those of eq. (3.5b),

    v' = V2 (V2' M V2)^-1 V2' (F + M G^+ Gdot v) - G^+ Gdot v,

which exist at singular configurations and with redundant constraints, too. Off these all formulations agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from fmilin.codegen.implicit import ImplicitSystem
from fmilin.codegen.system_functions import SystemFunctions
from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError
from fmilin.model.capabilities import HasBaumgarteStabilization, HasSecondOrderForm
from fmilin.model.equation_forms import SecondOrderForm, SymbolicSystem
from fmilin.models.symbolic import SymbolicModel, SystemEngine, is_lagrange
from fmilin.numerics.factors import Factors
from fmilin.numerics.null_space import MultiplierFactors, NullSpaceFactors
from fmilin.signals import FloatArray
from fmilin.support.kinds import kinds_checked
from fmilin.tolerances import PSEUDOINVERSE_TOLERANCE


@dataclass(frozen=True, slots=True)
class ConstraintRank:
    """How independent the constraints are at one configuration."""

    # (min(m, n),), of G, its columns times the nominal values of the coordinates; largest first
    singular_values: FloatArray
    rank: int  # how many of them are above the threshold

    @property
    def smallest(self) -> float:
        """sigma_m, the smallest singular value, below the threshold or not."""
        return float(self.singular_values[-1]) if self.singular_values.size else np.inf

    @property
    def condition_number(self) -> float:
        """The ratio kappa = sigma_1 / sigma_m (section 3.1): infinite at a singular configuration."""
        if not self.singular_values.size:
            return 1.0
        return float(self.singular_values[0] / self.smallest) if self.smallest > 0 else np.inf

    @property
    def gap(self) -> float:
        """The smallest singular value that was kept over the largest that was not; infinite when all were kept."""
        if not 0 < self.rank < self.singular_values.size:
            return np.inf
        rejected = float(self.singular_values[self.rank])
        return float(self.singular_values[self.rank - 1]) / rejected if rejected > 0 else np.inf


@dataclass(frozen=True, slots=True)
class Singularity:
    """How near a configuration is to a singular one, and how it is passed."""

    constraints: ConstraintRank  # singular values of G, their number above the threshold, the gap between the two kinds
    # |u_m' Gdot v| for the smallest singular value sigma_m (eq. 3.7), in units of the constraint per s^2. Where it
    # falls with sigma_m, the motion complies with the freedom that is lost; where it does not, the accelerations grow
    # like 1/sigma_m
    lock_up: float


class _SaddlePointEngine(SystemEngine):
    """W = [[M, G'], [G, 0]] solved in a particular way, with Baumgarte's attraction where that is asked for."""

    evaluation_seconds = 0.0  # compiled code solves in another way

    def __init__(self, system: SymbolicSystem, laws: Sequence[Constraint], factors: Any) -> None:
        super().__init__(system)
        self.factors = factors
        self._laws, self._plain = laws, system.right_hand_side

    def functions(self, system: ImplicitSystem) -> SystemFunctions:
        """Return functions that solve by these factors."""
        return SystemFunctions(system, self.factors)

    def with_stabilization(self, alpha: float, beta: float) -> Self:
        """Return the same engine with the right-hand side (F, -Gdot v - 2 alpha g' - beta^2 g) of eq. (3.9)."""
        right = _with_attraction(self.system, self._plain, self._laws, alpha, beta)
        other = self.with_system(replace(self.system, right_hand_side=right))
        other._variant = alpha, beta
        return other

    def without_stabilization(self) -> Self:
        """Return the same engine without any stabilization."""
        other = self.with_system(replace(self.system, right_hand_side=self._plain))
        other._variant = ()
        return other


class _SaddlePointModel(SymbolicModel, HasBaumgarteStabilization, HasSecondOrderForm):
    """M v' + G' lambda = F, G v' = -Gdot v, solved in a particular way."""

    engine: _SaddlePointEngine

    def __init__(self, model: SymbolicModel, factors: Callable[[FloatArray], Factors]) -> None:
        _require_lagrange(model)
        engine = _SaddlePointEngine(model.system, model.constraints.declared, factors)
        self._set_up(engine, model._choice)

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return the equations taken apart, without any stabilization: M, G and their derivatives are Lagrange's."""
        return super(_SaddlePointModel, self._unstabilized).second_order_form(t, x, u)

    @cached_property
    def _unstabilized(self) -> Self:
        return self._replace_choice(self.engine.without_stabilization())

    def with_stabilization(self, alpha: float, beta: float) -> Self:
        """Return the model with Baumgarte's stabilization, alpha and beta >= 0 in 1/s, eqs. (3.8) and (3.9).

        Constraints become 0 = g'' + 2 alpha g' + beta^2 g, those on velocities 0 = a' + 2 alpha a.
        """
        from fmilin.simulation.stabilizations import Baumgarte

        rates = Baumgarte(alpha, beta)  # rejects other values
        return self._replace_choice(self.engine.with_stabilization(rates.alpha, rates.beta))


@dataclass(frozen=True, eq=False)
class _ByNullSpace:
    threshold: float
    sizes: FloatArray  # nominal values of the coordinates, shape (n,)

    def __call__(self, W: FloatArray) -> NullSpaceFactors:
        n = len(self.sizes)
        return NullSpaceFactors(W[:n, :n], W[n:, :n], scales=self.sizes, threshold=self.threshold)


class NullSpaceModel(_SaddlePointModel):
    """Lagrange's equations through the null space of G: also where, or although, constraints depend on each other.

    States, inputs, outputs, constraints and parameters are those of ``model``. The multipliers ``lambda[1]``, ... are
    those of least norm. Exact directional derivatives hold as long as the rank of G does. Raises UsageError when the
    model is not of that form, or the threshold not between 0 and 1.

    Parameters
    ----------
    model : LagrangeModel
    threshold : float
        Singular values of G (its columns times the nominal values of the coordinates, 1 where there are none)
        below this fraction of the largest count as zero.

    Examples
    --------
    >>> from fmilin.systems import five_bar
    >>> model = NullSpaceModel(five_bar(singular=True))
    >>> model.singularity(0.0, model.start.states).constraints.rank
    1
    """

    @kinds_checked
    def __init__(self, model: SymbolicModel, *, threshold: float = PSEUDOINVERSE_TOLERANCE) -> None:
        if not 0 <= threshold < 1:
            raise UsageError(f"The threshold must be a fraction of the largest singular value, not {threshold:g}.")
        coordinates = model.states[: len(model.states) // 2]
        sizes = np.array([s.nominal or 1.0 for s in coordinates], dtype=np.float64)
        super().__init__(model, _ByNullSpace(threshold, sizes))

    @property
    def threshold(self) -> float:
        """Below which fraction of the largest a singular value counts as zero."""
        return float(self.engine.factors.threshold)

    def singularity(self, t: float, x: FloatArray, u: FloatArray | None = None) -> Singularity:
        """Return how near the configuration of the states ``x``, shape (N,), is to a singular one at ``t`` seconds."""
        inputs = self.start.inputs if u is None else u
        by_null_space: _ByNullSpace = self.engine.factors
        W, r = self._selection.numeric.equations(t, x, self._full(inputs), self.engine.p)
        n = len(by_null_space.sizes)
        G = W[n:, :n] * by_null_space.sizes
        factors = by_null_space(W)
        rank = ConstraintRank(factors.singular_values, int(factors.rank))
        if not len(G):
            return Singularity(rank, 0.0)
        U = np.linalg.svd(G)[0]
        worst = U[:, min(len(G), n) - 1]
        return Singularity(rank, abs(float(worst @ r[n:])))


class MultiplierModel(_SaddlePointModel):
    """Lagrange's equations through the multipliers of eq. (2.4), for comparison: fails where NullSpaceModel does not.

    Parameters
    ----------
    model : LagrangeModel
        With an invertible mass matrix; UsageError for a model of another form.
    """

    @kinds_checked
    def __init__(self, model: SymbolicModel) -> None:
        super().__init__(model, partial(_by_multipliers, n=len(model.states) // 2))


def _by_multipliers(W: FloatArray, n: int) -> MultiplierFactors:
    return MultiplierFactors(W[:n, :n], W[n:, :n])


def _require_lagrange(model: SymbolicModel) -> None:
    system = model.system
    multipliers = len(system.unknowns) - len(system.states) // 2
    if not is_lagrange(system.state_signals.names, [str(w) for w in system.unknowns]):
        raise UsageError(
            f"The model '{system.name}' is not made of Lagrange's equations with multipliers: build it as a "
            "LagrangeModel, with all its velocities among the states."
        )
    if len(model.constraints.declared) != multipliers:
        raise UsageError(
            f"The constraints of '{system.name}' were replaced and no longer belong to its {multipliers} multipliers: "
            "use the original model, and replace constraints afterwards."
        )


def _with_attraction(
    declared: SymbolicSystem, unstabilized: Sequence[Any], laws: Sequence[Constraint], alpha: float, beta: float
) -> tuple[Any, ...]:
    """Return the right-hand side (F, -Gdot v - 2 alpha g' - beta^2 g) of eq. (3.9)."""
    declared_symbols = (declared.time, *declared.states, *declared.inputs, *declared.parameters)
    symbols: dict[str, Any] = {str(s): s for s in declared_symbols}
    n = len(declared.unknowns) - len(laws)
    right = list(unstabilized)
    for k, law in enumerate(laws):
        expression = law.expression.to_sympy(symbols)
        if law.rate is None:
            right[n + k] -= 2 * alpha * expression
        else:
            right[n + k] -= 2 * alpha * law.rate.to_sympy(symbols) + beta**2 * expression
    return tuple(right)
