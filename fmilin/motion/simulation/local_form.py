"""The local state-space form y' = R f(t, Psi(t, y)): Spencer eqs. (2.13) to (2.16).

Every state that is ever evaluated lies on the manifold. No choice of coordinates is good everywhere: when
their condition number grows (section 2.3.3.1, remark 1), others are chosen and the integration goes on in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.manifold.coordinates import conditioning
from fmilin.manifold.frame import frame_at
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.selection import require_kind
from fmilin.motion.simulation.plant import Plant
from fmilin.motion.simulation.projector import Projector
from fmilin.motion.simulation.stabilization import IntegratedCoordinates, Moved, Stabilization, Switch

__all__ = ["LocalForm"]

WORTH_IT = 0.5
"""Other coordinates are taken when their condition number is this much smaller."""


@dataclass(frozen=True, slots=True)
class LocalForm(Stabilization):
    """Integrate independent coordinates y alone, and switch them when they degrade."""

    coordinates: str = "partition"  # how coordinates are chosen, at the start and later
    # coordinates to start with, as for :func:`fmilin.linearize`; kept as long as they are good
    independent: Sequence[str] = ()
    limit: float = 10.0  # condition number of (R; H) above which others are looked for

    def __post_init__(self) -> None:
        require_kind(self.coordinates)
        if not self.limit > 1:
            raise UsageError(f"The limit for the condition number is more than 1, not {self.limit:g}.")

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        return _Local(plant, self)


class _Local(IntegratedCoordinates):
    def __init__(self, plant: Plant, options: LocalForm) -> None:
        super().__init__(plant)
        self._options = options
        self._names: tuple[str, ...] = ()
        self._map: LocalParametrization | None = None
        self._project = Projector(plant)

    @property
    def sizes(self) -> FloatArray:
        psi = self._psi
        return np.abs(psi.coordinates.R) @ psi.scales

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        x = self._project(t, x)
        if self._map is None:
            self._map, self._names = self._chosen(t, x, self._options.independent)
        else:
            self._map = self._centred(t, x)
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
                f"The local state-space form cannot go on at t = {t:.9g} s with the coordinates "
                f"{', '.join(self._names)} (condition number {self._psi.condition_number:.3g} at the step before). "
                f"{error}"
            ) from None

    def accepted(self, t: float, z: FloatArray) -> Moved | None:
        x = self.states(t, z)
        self._map = self._centred(t, x)
        return Moved(self._psi.y0, is_small=False) if self._improve(t, x) else None

    def rescue(self, t: float, z: FloatArray) -> Moved | None:
        x = self.states(t, z)
        switched = self._improve(t, x, limit=1.0)
        return Moved(self._psi.y0, is_small=False) if switched else None

    # -- the parts ---------------------------------------------------------------------------------

    @property
    def _psi(self) -> LocalParametrization:
        assert self._map is not None  # noqa: S101 - begin() comes first
        return self._map

    def _centred(self, t: float, x: FloatArray) -> LocalParametrization:
        """Return Psi in the same coordinates around another point: Newton's iteration starts from there."""
        old = self._psi
        self.plant.invariants.inputs = self.plant.u(t)
        return LocalParametrization(old.invariants, old.rows, old.coordinates, t, x)

    def _chosen(
        self, t: float, x: FloatArray, named: Sequence[str] = ()
    ) -> tuple[LocalParametrization, tuple[str, ...]]:
        frame = frame_at(self.plant.model, self.plant.point(t, x), named=named, kind=self._options.coordinates)
        return frame.parametrization, frame.signals.names

    def _condition(self, psi: LocalParametrization, x: FloatArray) -> float:
        """Return the condition number of (R; H) in sizes of the states as they are now."""
        scales = self.plant.model.states.scales(x)
        return conditioning(psi.coordinates.jacobian(x), psi.gradient.H[psi.rows], scales)

    def _improve(self, t: float, x: FloatArray, limit: float | None = None) -> bool:
        """Take other coordinates when the present ones are bad here and there are better ones."""
        present = self._condition(self._psi, x)
        if present <= (self._options.limit if limit is None else limit):
            return False
        try:
            other, names = self._chosen(t, x)
        except NumericalError:
            return False  # nothing is regular here; the present ones still may carry across
        condition = self._condition(other, x)
        if not condition <= WORTH_IT * present:
            return False
        self.switches.append(Switch(float(t), self._names, names, present, condition))
        self._map, self._names = other, names
        return True
