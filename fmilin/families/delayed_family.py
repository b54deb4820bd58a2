"""Linear models with delays over a grid of delays and operating points: rightmost eigenvalues in place of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import NumericalError
from fmilin.families.grid import Grid
from fmilin.linear_model.delay_sweep_record import StabilityChange
from fmilin.linear_model.model import DelayedLinearModel
from fmilin.signals import FloatArray
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class DelayedPoint:
    """A point of the grid: its linear model and the rightmost eigenvalues, or the reason why there is none."""

    linear: DelayedLinearModel | None
    eigenvalues: NDArray[np.complex128]  # (count,), sorted by real part; NaN where there are fewer
    errors: FloatArray  # (count,)
    unstable: int | None  # how many eigenvalues grow; None where there is no linear model
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class DelayedFamily(TableRepr, Sequence[DelayedLinearModel]):
    r"""Linear models with delays of one plant, of ``fl.sweep(model, delays={"u": [...]})``.

    As a sequence it has one linear model per point, in the order of the grid, the last axis fastest.

    >>> import numpy as np
    >>> import fmilin as fl
    >>> tank = fl.models.OdeModel("tank", {"h": "-2*delay(h, T)"}, parameters={"T": 0.1})
    >>> family = fl.sweep(tank, {"T": [0.5, 1.0]}, delays={})
    >>> family.unstable.tolist(), family[1].delays
    ([0, 2], {'h': 1.0})
    """

    _attributes = ".ok, .eigenvalues, .errors, .unstable, .changes; family[k] is a model"

    name: str  #: of the model
    grid: Grid  #: where the points lie
    delay_names: tuple[str, ...]  #: the axes that are delays; the others are parameters, states and inputs
    points: tuple[DelayedPoint, ...]  #: in the order of the grid
    #: along the last axis, where it is a delay or all are varied together and are delays: where the number of
    #: eigenvalues that grow changes
    changes: tuple[StabilityChange, ...]

    @implemented_in("fmilin.report.delay_family:show_delayed_family")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def axes(self) -> Mapping[str, FloatArray]:
        """The varied quantities: values by name; delays in seconds."""
        return self.grid.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the grid."""
        return self.grid.shape

    @property
    def ok(self) -> NDArray[np.bool_]:
        r"""Where there is a linear model, shape (\*shape)."""
        return np.array([point.linear is not None for point in self.points]).reshape(self.shape)

    @property
    def reasons(self) -> NDArray[np.object_]:
        r"""Why there is none, else empty, shape (\*shape)."""
        texts = np.array([point.reason for point in self.points], dtype=object)
        return texts.reshape(self.shape)

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        r"""The rightmost eigenvalues in 1/s, sorted by real part, shape (\*shape, count); NaN where there are fewer."""
        return np.array([point.eigenvalues for point in self.points]).reshape(*self.shape, -1)

    @cached_property
    def errors(self) -> FloatArray:
        r"""How far each eigenvalue may be off, in 1/s, shape (\*shape, count)."""
        return np.array([point.errors for point in self.points]).reshape(*self.shape, -1)

    @property
    def unstable(self) -> NDArray[np.int64]:
        r"""How many eigenvalues grow, shape (\*shape); -1 where there is no linear model."""
        numbers = [-1 if point.unstable is None else point.unstable for point in self.points]
        return np.array(numbers, dtype=np.int64).reshape(self.shape)

    def __len__(self) -> int:
        return len(self.points)

    @overload
    def __getitem__(self, key: int) -> DelayedLinearModel: ...
    @overload
    def __getitem__(self, key: tuple[int, ...]) -> DelayedLinearModel: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[DelayedLinearModel]: ...
    def __getitem__(self, key: int | tuple[int, ...] | slice) -> DelayedLinearModel | Sequence[DelayedLinearModel]:
        if isinstance(key, slice):
            return [self[number] for number in range(len(self))[key]]
        number = int(np.ravel_multi_index(key, self.shape)) if isinstance(key, tuple) else range(len(self))[key]
        point = self.points[number]
        if point.linear is None:
            at = ", ".join(f"{name} = {value:g}" for name, value in self.grid.values(number).items())
            raise NumericalError(f"There is no linear model at {at}: {point.reason}")
        return point.linear

    @implemented_in("fmilin.report.delay_family:draw_root_locus")
    def root_locus(self) -> Figure:
        """Return how the rightmost eigenvalues move through the complex plane, coloured by the last axis."""
        ...

    @implemented_in("fmilin.export.delayed_family_record:to_record")
    def to_record(self) -> dict[str, object]:
        """Return the family as names, numbers and texts: the format ``fmilin-delay-family/1``."""
        ...

    @implemented_in("fmilin.export.delayed_family_record:save_family")
    def save(self, path: str | Path) -> None:
        """Write a .json file of :meth:`to_record` to ``path``. UsageError of other suffixes."""
        ...
