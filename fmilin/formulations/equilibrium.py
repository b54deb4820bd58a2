"""Static equilibria of models and of their penalized systems, with multipliers.

An equilibrium is a zero of f(q, 0, t, u) - Phi_q' lambda and Phi(q, t) - c lambda in the unknowns q and lambda, with
compliance c = 0. In a penalized system a violation Phi carries lambda, and c is 1/(alpha omega^2): its equilibrium is
displaced. The derivatives are, up to signs,

    [  K    Phi_q' ]
    [ Phi_q  -c I  ]

Where the matrix is singular Newton's method takes the shortest step: with redundant constraints, and at singular
configurations, where the multipliers are underdetermined and the configuration is not (González et al., section 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.formulations.form import find_rank
from fmilin.formulations.formulation import UCS
from fmilin.formulations.of_model import constraint_values, second_order
from fmilin.manifold.operating_points import operating_point
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.balanced import equilibrate_jacobian
from fmilin.numerics.certificate import Certificate
from fmilin.numerics.certification import UnboundedUnknowns, certify_zero
from fmilin.numerics.dense_system import DenseSystem
from fmilin.numerics.newton import IntArray, NewtonRules, find_zeros
from fmilin.signals import FloatArray
from fmilin.tolerances import STATIC_BALANCE_TOLERANCE

MAX_EQUILIBRIUM_DISTANCE = (
    0.1  # a penalized system that rests farther away than this, in sizes of the coordinates, is another system
)

MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A static equilibrium."""

    point: OperatingPoint  # at rest
    # (m,), lambda, in the order of the constraints; of least norm where ``rank`` is less than m
    multipliers: FloatArray
    rank: int  # how many constraints are independent there
    steps: int  # of Newton's method
    certificate: Certificate  # how well coordinates and multipliers are determined

    @property
    def is_determinate(self) -> bool:
        """Whether the multipliers are determined."""
        return self.rank == len(self.multipliers)


def equilibrium(
    model: Model, guess: Mapping[str, float] | OperatingPoint | None = None, *, time: float | None = None
) -> Equilibrium:
    """Return the static equilibrium, inputs held, near a guess, with multipliers, also of redundant constraints.

    >>> from fmilin.systems import four_bar
    >>> found = equilibrium(four_bar(), {"phi": 2.0})
    >>> round(float(found.point.states[4]), 9), found.rank, found.certificate.distance["phi"] < 1e-12
    (2.234331019, 4, True)
    """
    if model.constraints.time_dependent:
        raise UsageError(
            f"The constraints of '{model.info.name}' depend on time, so there is no static equilibrium. The "
            "formulations accept any consistent point: fl.operating_point(model, {'NAME': VALUE}, time=T)."
        )
    point = guess if isinstance(guess, OperatingPoint) else operating_point(model, guess, time=time)
    x = point.states.copy()
    x[second_order(model, point).velocities] = 0.0
    balance = StaticBalance(model, point.with_states(x))
    certificate = balance.solve()
    form, sizes = second_order(model, balance.point), balance.sizes
    rest = np.abs(form.accelerations) / sizes
    if not balance.is_solved or np.max(rest, initial=0.0) > STATIC_BALANCE_TOLERANCE * _stiffness(form, sizes):
        fastest = model.states.names[int(form.positions[int(np.argmax(rest))])]
        raise NumericalError(
            f"Near the guess no equilibrium of '{model.info.name}' was found: where the search ends, '{fastest}' "
            f"still accelerates at {np.max(np.abs(form.accelerations)):.3g}. Start nearer to an equilibrium, or keep "
            "the point: the formulations accept any consistent point."
        )
    rank = find_rank(form.G * sizes)
    return Equilibrium(balance.point, form.multipliers, rank, balance.system.steps, certificate)


def penalized_equilibrium(model: Model, point: OperatingPoint, options: UCS) -> OperatingPoint:
    """Return where the penalized system rests, f = alpha omega^2 Phi_q' Phi, near an equilibrium of the model."""
    balance = StaticBalance(model, point, compliance=1.0 / (options.alpha * options.omega**2))
    balance.solve()
    positions = balance.form.positions
    displaced = np.max(np.abs(balance.point.states - point.states)[positions] / balance.sizes, initial=0.0)
    if not (balance.is_solved and displaced <= MAX_EQUILIBRIUM_DISTANCE):
        raise NumericalError(
            f"The penalized system has no equilibrium near that of the model: alpha = {options.alpha:g} and omega = "
            f"{options.omega:g} are too small to keep the constraints. Use larger ones."
        )
    return balance.point


MAX_CERTIFIED_UNKNOWNS = 400
"""The bounds of a certificate need singular value decompositions, which take longer than the search beyond this."""


class StaticBalance:
    """The equations of an equilibrium near a point at rest, in unknowns z = (q / sizes, lambda / sizes of forces).

    Forces are divided by that of the stiffest displacement by the size of a coordinate, constraints by the length of
    their gradients.
    """

    moving = False
    measures_noise = True

    def __init__(self, model: Model, point: OperatingPoint, compliance: float = 0.0) -> None:
        self.model, self.point, self.compliance = model, point, compliance
        self.form = form = second_order(model, point)
        self.sizes = model.states.scales(point.states)[form.positions]
        n, m = len(self.sizes), len(form.G)
        forces = self.sizes * _compute_applied_forces(form)
        stiffness = self.sizes[:, None] * form.force_states[:, form.positions] * self.sizes
        force = max(float(np.max(np.abs(part), initial=0.0)) for part in (stiffness, forces)) or 1.0
        lengths = np.linalg.norm(form.G * self.sizes, axis=1)
        lengths = np.where(lengths > 0, lengths, 1.0)
        self._column_sizes = np.concatenate((self.sizes, force / lengths))
        self._row_factors = np.concatenate((self.sizes / force, 1.0 / lengths))
        self.unknowns = UnboundedUnknowns(n + m)
        self.first_order = np.ones(n + m, dtype=bool)
        self.is_solved = False
        self.system = _BalanceSystem(self)

    def solve(self) -> Certificate:
        """Move ``point`` to the equilibrium; return how well that is determined."""
        start = np.concatenate((self.point.states[self.form.positions], self.form.multipliers)) / self._column_sizes
        result = find_zeros(self.system, start[None], NewtonRules(iterations=MAX_STEPS))
        z = result.z[0]
        self.is_solved = bool(result.has_converged[0])
        names = [self.model.states.names[int(i)] for i in self.form.positions]
        names += [f"lambda[{k + 1}]" for k in range(len(self.form.G))]
        J = self.jacobian(z)[0]
        residual = self.values(z)
        if self.is_solved and len(z) <= MAX_CERTIFIED_UNKNOWNS:
            zero = certify_zero(self, z, J, self.system.allow(0, J, z), exact=True)
            z = zero.z
            certificate = Certificate.from_zero(
                zero,
                names,
                self._column_sizes,
                dict(zip(names, self._column_sizes.tolist(), strict=True)),
                residual=float(np.max(np.abs(self.values(z)), initial=0.0)),
                regularity=equilibrate_jacobian(J).regularity,
            )
        else:
            certificate = Certificate(float(np.max(np.abs(residual), initial=0.0)))
        self.point = self._make_point(z)
        return replace(certificate, residual_measure="in sizes of the forces and of the constraints' gradients")

    def values(self, z: FloatArray) -> FloatArray:
        """Return the residuals (n + m,); NaN where the equations are not defined."""
        n = len(self.sizes)
        point = self._make_point(z)
        multipliers = (z * self._column_sizes)[n:]
        try:
            form, Phi = second_order(self.model, point), constraint_values(self.model, point)
        except NumericalError:
            return np.full(len(z), np.nan)
        unbalanced = _compute_applied_forces(form) - form.G.T @ multipliers
        return self._row_factors * np.concatenate((unbalanced, Phi - self.compliance * multipliers))

    def jacobian(self, z: FloatArray, *, exact: bool = True, quick: bool = False) -> tuple[FloatArray, bool]:
        """Return the derivatives of :meth:`values`, exact where the multipliers are those of the form."""
        n = len(self.sizes)
        form = second_order(self.model, self._make_point(z))
        slopes = np.zeros((len(z), len(z)))
        slopes[:n, :n] = form.force_states[:, form.positions]
        slopes[:n, n:], slopes[n:, :n] = -form.G.T, form.G
        slopes[n:, n:] = -self.compliance * np.eye(len(form.G))
        return self._row_factors[:, None] * slopes * self._column_sizes, True

    def values_each(self, z: FloatArray) -> FloatArray:
        """Return the residuals (k, m) at several z (k, n)."""
        return np.array([self.values(row) for row in z])

    def entry_sizes(self, z: FloatArray) -> FloatArray:
        """Return how large the entries of the derivatives are near z."""
        return np.abs(self.jacobian(z)[0])

    def _make_point(self, z: FloatArray) -> OperatingPoint:
        x = self.point.states.copy()
        x[self.form.positions] = (z * self._column_sizes)[: len(self.sizes)]
        return self.point.with_states(x)


class _BalanceSystem(DenseSystem):
    """One equilibrium for Newton's method; the length of a step is that of its coordinates: multipliers follow."""

    def __init__(self, balance: StaticBalance) -> None:
        super().__init__(len(balance.unknowns.low))
        self._balance = balance
        self.steps = 0

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the residuals (1, n + m)."""
        return np.array([self._balance.values(row) for row in z])

    def jacobians(self, points: IntArray, z: FloatArray, r: FloatArray) -> FloatArray:
        """Return the derivatives (1, n + m, n + m)."""
        self.steps += len(z)
        return np.array([self._balance.jacobian(row)[0] for row in z])

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest change of a coordinate, in its size."""
        return np.asarray(np.max(np.abs(step[:, : len(self._balance.sizes)]), axis=1, initial=0.0))


def _compute_applied_forces(form: SecondOrderForm) -> FloatArray:
    """Return f (n,): M v' with the least-norm v' of the form is f - Phi_q' lambda, and Phi_q v' = 0 at rest."""
    return np.asarray(form.M @ form.accelerations + form.G.T @ form.multipliers)


def _stiffness(form: SecondOrderForm, sizes: FloatArray) -> float:
    """Return what accelerations come from a displacement by the size of a coordinate, in sizes per s^2; at least 1."""
    K = np.abs(form.force_states[:, form.positions]) * sizes
    mass = np.maximum(np.abs(np.diagonal(form.M)), 1e-12 * np.max(np.abs(form.M), initial=0.0))
    return float(np.max(np.max(K, axis=1, initial=0.0) / mass / sizes, initial=1.0))
