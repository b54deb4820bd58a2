"""How well a solution of equations is determined: one report for trimmed points, periodic orbits and starts of DAEs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.tolerances import TRIM_DISTANCE_TOLERANCE

NOTICEABLE_DISTANCE = 1e-8
"""Distance of the solution, in sizes of an unknown, from which tables show it."""


@dataclass(frozen=True, eq=False)
class CertifiedZero:
    """Bounds on the solution near a point with a small residual."""

    z: FloatArray  # (n,), the point, a few steps nearer
    distance: FloatArray  # (n,), how far the solution may be; infinite where nothing says that there is one
    step: FloatArray  # (n,), the last Newton step
    entry_sizes: FloatArray  # (m, n), how large the entries of the Jacobian are here or a little away
    multiple: tuple[int, ...] = ()  # unknowns that a multiple root leaves in doubt
    runs_away: bool = False
    is_isolated: bool = False  # whether there is exactly one solution within ``distance``
    empty_rows: NDArray[np.bool_] | None = None  # (m,), rows that no unknown changes by more than rounding

    @classmethod
    def without_certificate(cls, z: FloatArray, J: FloatArray) -> CertifiedZero:
        """Return what is known of a point with a residual that is not small: nothing."""
        return cls(z, np.full(len(z), np.inf), np.full(len(z), np.inf), np.abs(J))

    def is_close(self, sizes: FloatArray) -> bool:
        """Whether the solution is near relative to the ``sizes`` (n,) of the unknowns."""
        return bool((self.distance <= TRIM_DISTANCE_TOLERANCE * sizes).all())


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(TableRepr):
    """How well a solution is determined, for every unknown by name.

    The residual alone does not tell: where two solutions have just vanished it is small, and there is none.
    :mod:`fmilin.numerics.certification` explains the bounds.

    >>> import fmilin as fl
    >>> point = fl.trim(fl.systems.cartesian_pendulum())
    >>> point.report.certificate.distance["y"] < 1e-12
    True
    """

    _attributes = ".step, .distance, .sizes, .multiple"

    residual: float  #: the largest residual, compared with :attr:`residual_measure`
    step: Mapping[str, float] = field(default_factory=dict)  #: the next Newton step of each unknown, in its unit
    #: how far the solution may be, for each unknown and in its unit; in a family of solutions, the nearest one
    distance: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)  #: how large each unknown is, nominally, in its unit
    #: the smallest singular value of the equilibrated Jacobian over the largest: near zero where two solutions meet,
    #: and inside a family; NaN where it was not computed: of sparse equations, and of points that a preference
    #: determines, of which the equations alone leave a family
    regularity: float = np.nan
    multiple: tuple[str, ...] = ()  #: unknowns at which several solutions meet
    residual_measure: str = "in sizes of the states (per second)"  #: what the residual is compared with

    @implemented_in("fmilin.report.facts:show_certificate")
    def _print_table(self, page: Sheet) -> None: ...

    @classmethod
    def from_zero(
        cls,
        zero: CertifiedZero,
        names: Sequence[str],
        scales: FloatArray,
        sizes: Mapping[str, float],
        *,
        residual: float,
        regularity: float,
    ) -> Certificate:
        """Return the certificate of a zero in unknowns z = x / ``scales`` (n,) with these names."""
        return cls(
            residual=residual,
            step=_by_name(names, zero.step * scales),
            distance=_by_name(names, zero.distance * scales),
            sizes=sizes,
            regularity=regularity,
            multiple=tuple(names[i] for i in zero.multiple),
        )

    @property
    def largest_step(self) -> tuple[str, float] | None:
        """The unknown with the largest Newton step, and that step in its size; None without unknowns."""
        if not self.step:
            return None
        parts = {name: abs(step) / self.sizes.get(name, 1.0) for name, step in self.step.items()}
        name = max(parts, key=lambda name: parts[name])
        return name, parts[name]

    @property
    def noticeable_distances(self) -> dict[str, float]:
        """The distances that are not rounding relative to the sizes of their unknowns."""
        return {
            name: distance
            for name, distance in self.distance.items()
            if distance > NOTICEABLE_DISTANCE * self.sizes.get(name, 1.0)
        }


@runtime_checkable
class CertifiesStart(Protocol):
    """A model that solves equations at its start, as a DAE does for its rates and algebraic variables."""

    def certify_start(self) -> Certificate | None:
        """Return how well the equations determine their unknowns at the start; None where that takes too long."""


def _by_name(names: Sequence[str], values: FloatArray) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))
