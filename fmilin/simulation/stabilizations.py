"""The ways to integrate on the manifold, by name.

*Underlying*: the ODE x' = f(t, x) as it is (Spencer eq. 2.6). *Projection*: the same, every accepted step projected
onto the manifold (eqs. (3.10) and (3.11)). *Local form*: y' = R f(t, Psi(t, y)) (eqs. (2.13) to (2.16)), in other
coordinates where their condition number grows (section 2.3.3.1, diagnostic 1).

*Baumgarte* (eqs. (3.8) and (3.9)): where every state is a position or its velocity, 0 = g'' + 2 alpha g' + beta^2 g, of
a nonholonomic constraint 0 = a' + 2 alpha a. A model that can do this itself is asked to; any other one gets the
correction of least norm, v' = f_v - D (G D)^+ (2 alpha g' + beta^2 g), with D the sizes of the velocities. States of
other kinds are attracted at first order, x' = f - alpha D (H D)^+ h, so that h' = -alpha h.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.coordinates import conditioning
from fmilin.manifold.point_parametrization import PointParametrization
from fmilin.manifold.selection import require_kind
from fmilin.manifold.verified_frame import verify_frame
from fmilin.model.capabilities import HasBaumgarteStabilization
from fmilin.signals import FloatArray
from fmilin.simulation.projector import Projector
from fmilin.simulation.stabilization import CorrectedState, IntegratedCoordinates, Plant, Stabilization
from fmilin.simulation.trajectory import Switch
from fmilin.tolerances import RANK


@dataclass(frozen=True, slots=True)
class Underlying(Stabilization):
    """Integrate all states and do nothing about the invariants."""

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        return IntegratedCoordinates(plant)


@dataclass(frozen=True, slots=True)
class Projection(Stabilization):
    """Integrate all states; after every accepted step go to the nearest point of the manifold."""

    # whether the energy that :func:`fmilin.simulate` records is an invariant, too. Only for models that lose
    # and gain none
    keeps_energy: bool = False
    tolerance: float = 1e-13  # distance from the manifold, in sizes of the states, that is left alone

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise UsageError(
                f"The tolerance of the projection must be 0 or more and less than 1, not {self.tolerance:g}."
            )

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        if self.keeps_energy and plant.energy is None:
            raise UsageError("Conserving the energy needs its value: name an output or an expression with energy=...")
        return _Projected(plant, Projector(plant, self.tolerance, keeps_energy=self.keeps_energy))


class _Projected(IntegratedCoordinates):
    def __init__(self, plant: Plant, projector: Projector) -> None:
        super().__init__(plant)
        self._projector = projector
        self._last: tuple[float, FloatArray | None] = (np.nan, None)  # which was projected

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        return self._project(t, x)

    def states(self, t: float, z: FloatArray) -> FloatArray:
        return self._project(t, z)

    def _project(self, t: float, z: FloatArray) -> FloatArray:
        """Return the nearest point of the manifold; the point that was projected last is one, and stays."""
        time, last = self._last
        if z is last and t == time:
            return z
        x = self._projector(t, z)
        self._last = t, x
        return x

    def accept_step(self, t: float, z: FloatArray) -> CorrectedState | None:
        x = self._project(t, z)
        if x is z:
            return None
        self.projections += 1
        return CorrectedState(x, is_small=True)


@dataclass(frozen=True, slots=True)
class Baumgarte(Stabilization):
    """Integrate all states with rates that lead back to the manifold."""

    # alpha, beta: in 1/s. alpha = beta is critical damping; the thesis uses 10. Steps must resolve them
    alpha: float = 10.0
    beta: float = 10.0

    def __post_init__(self) -> None:
        if not all(np.isfinite(c) and c >= 0 for c in (self.alpha, self.beta)):
            raise UsageError(
                f"Baumgarte's alpha and beta must be rates, 0 or more, not {self.alpha:g} and {self.beta:g}."
            )

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        model = plant.model
        stabilized = (
            model.with_stabilization(self.alpha, self.beta) if isinstance(model, HasBaumgarteStabilization) else None
        )
        if stabilized is not None:
            plant.replace_dynamics(stabilized)
            return IntegratedCoordinates(plant)
        if 2 * len(plant.invariants.pairs) == len(plant.scales) and plant.scales.size:
            return _SecondOrder(plant, self)
        return _FirstOrder(plant, self)


class _FirstOrder(IntegratedCoordinates):
    def __init__(self, plant: Plant, options: Baumgarte) -> None:
        super().__init__(plant)
        self._alpha = options.alpha

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        f = self.plant.f(t, z)
        if not len(self.plant.invariants) or not np.isfinite(f).all():
            return f
        h, H = self.plant.h(t, z), self.plant.gradient(t, z).H
        return f - self._alpha * _least(H, self.plant.scales, h)


class _SecondOrder(IntegratedCoordinates):
    """Corrects the accelerations alone, by the rows of velocity level."""

    def __init__(self, plant: Plant, options: Baumgarte) -> None:
        super().__init__(plant)
        self._alpha, self._beta = options.alpha, options.beta
        invariants = plant.invariants
        rows = plant.model.constraints.rows
        declared = len(plant.model.constraints.declared)
        own_rates = iter(range(declared, len(rows)))
        hidden = iter(range(invariants.declared, len(invariants)))
        positions = [i for i, row in enumerate(rows[:declared]) if row.level == "position"]
        nonholonomic = [i for i, row in enumerate(rows[:declared]) if row.level == "velocity"]
        self._positions = positions  # the rows of g, and first among _rows those of their rates
        self._rows = [*(next(hidden if rows[i].needs_rate else own_rates) for i in positions), *nonholonomic]
        self._velocities = np.array(sorted(invariants.pairs.values()), dtype=np.intp)

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        f = self.plant.f(t, z)
        if not self._rows or not np.isfinite(f).all():
            return f
        h, H = self.plant.h(t, z), self.plant.gradient(t, z).H
        c = 2 * self._alpha * h[self._rows]
        c[: len(self._positions)] += self._beta**2 * h[self._positions]
        v = self._velocities
        f[v] -= _least(H[self._rows][:, v], self.plant.scales[v], c)
        return f


def _least(G: FloatArray, D: FloatArray, c: FloatArray) -> FloatArray:
    """Return the least D^-1 a with G a = c."""
    return D * (linalg.pinv(G * D, rtol=RANK, check_finite=False) @ c)


CONDITION_IMPROVEMENT_RATIO = 0.5  # other coordinates are taken when their condition number is this much smaller


@dataclass(frozen=True, slots=True)
class LocalForm(Stabilization):
    """Integrate independent coordinates y alone, and switch them when they degrade."""

    coordinates: str = "partition"  # how coordinates are chosen, at the start and later
    # coordinates to start with, as for :func:`fmilin.linearize`; kept as long as they are good
    independent: Sequence[str] = ()
    limit: float = 10.0  # condition number of (R; H) above which others are searched for

    def __post_init__(self) -> None:
        require_kind(self.coordinates)
        if not self.limit > 1:
            raise UsageError(f"The limit for the condition number must be more than 1, not {self.limit:g}.")

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        return _LocalIntegration(plant, self)


class _LocalIntegration(IntegratedCoordinates):
    def __init__(self, plant: Plant, options: LocalForm) -> None:
        super().__init__(plant)
        self._options = options
        self._names: tuple[str, ...] = ()
        self._map: PointParametrization | None = None
        self._project = Projector(plant)

    @property
    def sizes(self) -> FloatArray:
        psi = self._psi
        return np.abs(psi.coordinates.R) @ psi.scales

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        x = self._project(t, x)
        if self._map is None:
            self._map, self._names = self._choose_coordinates(t, x, self._options.independent)
        else:
            self._map = self._recenter(t, x)
            self._improve(t, x)
        return self._psi.y0

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        try:
            x = self._psi.psi(z, time=t, inputs=self.plant.u(t))
        except NumericalError as error:
            self.plant.trouble = error
            return np.full(len(z), np.nan)
        return self._psi.coordinates.jacobian(x) @ self.plant.f(t, x)

    def states(self, t: float, z: FloatArray) -> FloatArray:
        try:
            return self._psi.psi(z, time=t, inputs=self.plant.u(t))
        except NumericalError as error:
            raise NumericalError(
                f"The local state-space form cannot continue at t = {t:.9g} s with the coordinates "
                f"{', '.join(self._names)} (condition number {self._psi.condition_number:.3g} at the step before). "
                f"{error}"
            ) from None

    def accept_step(self, t: float, z: FloatArray) -> CorrectedState | None:
        x = self.states(t, z)
        self._map = self._recenter(t, x)
        return CorrectedState(self._psi.y0, is_small=False) if self._improve(t, x) else None

    def rescue(self, t: float, z: FloatArray) -> CorrectedState | None:
        switched = self._improve(t, self.states(t, z), limit=1.0)
        return CorrectedState(self._psi.y0, is_small=False) if switched else None

    @property
    def _psi(self) -> PointParametrization:
        assert self._map is not None  # noqa: S101 - begin() comes first
        return self._map

    def _recenter(self, t: float, x: FloatArray) -> PointParametrization:
        """Return Psi in the same coordinates around another point: Newton's iteration starts from there."""
        old = self._psi
        self.plant.invariants.inputs = self.plant.u(t)
        return PointParametrization(old.invariants, old.rows, old.coordinates, t, x)

    def _choose_coordinates(
        self, t: float, x: FloatArray, named: Sequence[str] = ()
    ) -> tuple[PointParametrization, tuple[str, ...]]:
        frame = verify_frame(self.plant.evaluator, self.plant.point(t, x), named=named, kind=self._options.coordinates)
        return frame.parametrization, frame.selection.signals.names

    def _condition(self, psi: PointParametrization, x: FloatArray) -> float:
        """Return the condition number of (R; H) in sizes of the states as they are now."""
        scales = self.plant.model.states.scales(x)
        return conditioning(psi.coordinates.jacobian(x), psi.gradient.H[psi.rows], scales)

    def _improve(self, t: float, x: FloatArray, limit: float | None = None) -> bool:
        """Take other coordinates when the present ones are bad here and there are better ones."""
        present = self._condition(self._psi, x)
        if present <= (self._options.limit if limit is None else limit):
            return False
        try:
            other, names = self._choose_coordinates(t, x)
        except NumericalError:
            return False  # nothing is regular here; the present ones still may carry across
        condition = self._condition(other, x)
        if not condition <= CONDITION_IMPROVEMENT_RATIO * present:
            return False
        self.switches.append(Switch(float(t), self._names, names, present, condition))
        self._map, self._names = other, names
        return True


STABILIZATIONS: Mapping[str, Stabilization] = {
    "projection": Projection(),
    "local": LocalForm(),
    "baumgarte": Baumgarte(),
    "none": Underlying(),
}


def stabilization_named(name: str) -> Stabilization:
    """Return the stabilization that the command line calls ``name``."""
    try:
        return STABILIZATIONS[name]
    except KeyError:
        raise UsageError(f"'{name}' is not a stabilization: use {', '.join(STABILIZATIONS)}.") from None
