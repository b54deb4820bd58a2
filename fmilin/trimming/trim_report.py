"""The result of a search for an operating point: the point, with a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.linear_model.stability import Stability, judge_stability
from fmilin.model.interface import OperatingPoint
from fmilin.numerics.certificate import Certificate
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.trimming.trim_request import TrimRequest


@dataclass(frozen=True)
class FreeDirection:
    """A way to move through a whole family of solutions, to first order."""

    name: str  # the quantity that leads; when it moves by one, the others that lead stay
    along: dict[str, float]  # how far the quantities that follow move, in their units per unit of the leading one


@dataclass(frozen=True, eq=False)
class Instability:
    """Whether deviations from a point grow, and how many eigenvalues certainly have positive real parts.

    It is judged when it is first asked for: that takes as long as the search for the equilibrium of a small model.
    """

    A: FloatArray  # (P, P), of the linear model at the point
    errors: FloatArray  # (P, P), of its entries
    slope_changes: FloatArray | None = None  # (N, N), of the rates, over the distance within which the point is known
    sampled: bool = False  # whether A is that of a map, and the limit is the unit circle

    @cached_property
    def stability(self) -> Stability:
        """The verdict on deviations."""
        return judge_stability(self.A, self.errors, sampled=self.sampled)

    @property
    def count(self) -> int:
        """How many eigenvalues certainly have positive real parts."""
        return self.stability.unstable

    @property
    def text(self) -> str:
        """The verdict, as the predicate of a sentence."""
        verdict = self.stability.text
        if verdict.startswith("cannot be determined: "):
            return f"may be stable or not: {verdict.removeprefix('cannot be determined: ')}"
        return f"is {verdict}"


@dataclass(frozen=True, eq=False, repr=False)
class TrimReport(TableRepr):
    """The report of a search for an operating point, in addition to the point."""

    _attributes = ".rates, .moving, .free_directions, .remarks"

    states: Signals  # of the model
    inputs: Signals  # of the model
    # (N,), derivatives of all states at the point, in their units per second. Rounding where the state rests
    rates: FloatArray
    certificate: Certificate  # how well the point is determined: residual, Newton step, regularity, distances
    exact: bool  # False when the residual is above 1e-10 and only the model's own noise or rounding explains it
    changes: FloatArray | None = None  # (N,), in a steady motion, the derivatives of the rates at the point
    moving: tuple[str, ...] = ()  # states that move, some of them perhaps only later
    # those among them with a rate that is not constant, because they follow other states that move
    varying: tuple[str, ...] = ()
    dragged: tuple[str, ...] = ()  # those among them that were not listed: the constraints take them along
    free_directions: tuple[FreeDirection, ...] = ()  # empty when the solution is isolated
    is_nearest: bool = False  # of a family, whether no move along it leads nearer to the states of the guess
    at_bounds: tuple[str, ...] = ()  # quantities that lie on one of their bounds
    search_remarks: tuple[Remark, ...] = ()  # all but what is said of stability
    instability: Instability | None = None  # None where not examined
    targets: Mapping[str, float] = field(default_factory=dict)  # what came out, where that was asked for
    missed: Mapping[str, float] = field(default_factory=dict)  # by how much it is off what was wished for
    preferred: float | None = None  # the least value of what was to be minimized, or as near as possible
    # by how much that would change per unit of each target and of each bound that binds
    multipliers: Mapping[str, float] = field(default_factory=dict)

    @implemented_in("fmilin.report.result_tables:show_report")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def residual(self) -> float:
        """The largest residual, in sizes of the states (per second)."""
        return self.certificate.residual

    @property
    def regularity(self) -> float:
        """How regular the equations are: near zero at a fold, where two solutions meet, and inside a family."""
        return self.certificate.regularity

    @property
    def distance(self) -> Mapping[str, float]:
        """How far the solution may be from the point, for every unknown and in its unit."""
        return self.certificate.distance

    @property
    def multiple(self) -> tuple[str, ...]:
        """Unknowns at which several solutions meet."""
        return self.certificate.multiple

    @property
    def stability(self) -> Stability | None:
        """The verdict on deviations; None where not examined."""
        return None if self.instability is None else self.instability.stability

    @property
    def unstable(self) -> int | None:
        """How many eigenvalues have a positive real part, whatever rounding does; None where not examined."""
        return None if self.instability is None else self.instability.count

    @property
    def eigenvalues(self) -> NDArray[np.complex128] | None:
        """Those on the manifold, (P,), in 1/s; None where not examined."""
        return None if self.stability is None else self.stability.eigenvalues

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Diagnostics of the search, and a warning where deviations grow."""
        # Where nothing grows exponentially another start helps nothing: a mass that floats freely drifts everywhere.
        if self.instability is None or self.stable is not False:
            return self.search_remarks
        subject = "motion" if self.moving else "equilibrium"
        text = f"The {subject} {self.instability.text}."
        return (*self.search_remarks, Remark("unstable" if self.instability.count else "drift", text))

    @property
    def is_equilibrium(self) -> bool:
        """Whether nothing moves."""
        return not self.moving

    @property
    def summary(self) -> str:
        """The result in words: ``"an equilibrium"``."""
        return "an equilibrium" if self.is_equilibrium else f"a steady motion of {', '.join(self.moving)}"

    @property
    def said(self) -> dict[str, int | bool | str | Mapping[str, float] | None]:
        """The entries of a file of the point, except rates and distances."""
        groups = {"targets": self.targets, "missed": self.missed, "multipliers": self.multipliers}
        entries: dict[str, int | bool | str | Mapping[str, float] | None] = {
            n: group for n, group in groups.items() if group
        }
        if self.stability is not None:
            entries |= {"unstable": self.unstable, "stable": self.stable, "stability": self.stability.text}
        return entries

    @property
    def stable(self) -> bool | None:
        """Whether no small deviation grows; None where that is undecided or was not examined."""
        return None if self.stability is None else self.stability.stable

    @property
    def is_stable(self) -> bool:
        """Whether it is certain that no small deviation grows."""
        return self.stable is True

    def rate(self, name: str) -> float:
        """Return the rate of the state ``name``, in its unit per second."""
        return float(self.rates[self.states.index_of(name, "a state of the model")])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrimmedPoint(OperatingPoint):
    """An :class:`fmilin.OperatingPoint` from :func:`fmilin.trim`; ``parameters`` are those fixed or solved for."""

    _attributes = ".states, .inputs, .parameters"

    report: TrimReport  #: rates, free directions, stability: what was found near the point
    request: TrimRequest | None = None  #: what was fixed, free and steady: the point moves with parameters as it has it

    @implemented_in("fmilin.report.result_tables:show_point")
    def _print_table(self, page: Sheet) -> None: ...

    def same_place(self, other: TrimmedPoint) -> bool:
        """Whether the ``other`` point is the same solution, up to what two searches may differ by."""
        values, other_values = _everything(self), _everything(other)
        return bool(np.all(np.abs(values - other_values) <= 1e-6 * np.maximum(np.abs(values), 1.0)))


def _everything(point: TrimmedPoint) -> FloatArray:
    parameters = np.array([value for _, value in sorted(point.parameters.items())], dtype=np.float64)
    return np.concatenate((point.states, point.inputs, parameters))
