"""Charts of the stability of models with delays and periodic coefficients: the lobes of milling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.families.grid import build_grid
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model
from fmilin.periodic.delayed_floquet import DelayedFloquet, delayed_floquet
from fmilin.signals import FloatArray, RealArray
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUNDARY_TOLERANCE = 1e-9  # of the distance between two points of the grid

Parameters = Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class StabilityLobes(TableRepr):
    """Growth over a grid of parameters, and where stability changes; :func:`stability_lobes` makes it."""

    _attributes = ".growth, .stable, .boundary, .multipliers, .plot()"

    axes: Mapping[str, FloatArray]  #: the values of each parameter, in its unit
    multipliers: NDArray[np.complex128]  #: the largest at each point, shape of the grid; NaN where it failed
    growth: FloatArray  #: log|mu|/T in 1/s, shape of the grid: negative where it is stable
    decided: NDArray[np.bool_]  #: where the errors of the multipliers allow a verdict, shape of the grid
    boundary: FloatArray  #: shape (k, number of axes): where the largest multiplier has modulus 1, along the last axis
    name: str = ""  #: of the model
    remarks: tuple[Remark, ...] = ()  #: warnings

    @implemented_in("fmilin.report.delays:show_stability_lobes")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Where all multipliers are inside the unit circle beyond their errors, shape of the grid."""
        return np.asarray(self.decided & (self.growth < 0))

    @implemented_in("fmilin.report.delays:draw_stability_lobes")
    def plot(self) -> Figure:
        """Return the growth over two axes, with the boundary of stability."""
        ...


@kinds_checked
def stability_lobes(
    model: Model,
    vary: Mapping[str, Sequence[float] | RealArray],
    *,
    period: float | Callable[[Mapping[str, float]], float],
    breaks: Callable[[Mapping[str, float]], Sequence[float]] | None = None,
) -> StabilityLobes:
    """Return where a model with delays and periodic coefficients is stable, over a grid of its parameters.

    Between neighbours along the last axis of which one is stable, the parameter at which the largest multiplier has
    modulus 1 is found by Brent's method. Two changes between the same neighbours are not seen: give a finer grid there.

    Parameters
    ----------
    model : Model
        With delays; its start is an equilibrium at all parameters.
    vary : mapping of str to sequence of float
        Values of parameters by name, the last one for instance the depth of cut.
    period : float, in seconds, or callable
        A callable returns it for parameters by name, for instance from the speed of a spindle.
    breaks : callable, optional
        Returns the times within the period at which coefficients jump, in seconds, for parameters by name.

    Raises
    ------
    UsageError
        When a name is not a parameter, or as :func:`delayed_floquet`.
    NumericalError
        When the multipliers cannot be computed at any point.

    Examples
    --------
    >>> import fmilin as fl
    >>> hayes = fl.models.OdeModel("Hayes", {"x": "-k*delay(x, T)"}, parameters={"k": 1.0, "T": 1.0})
    >>> lobes = fl.stability_lobes(hayes, {"T": [1.0, 2.0], "k": [0.1, 3.0]}, period=1.0)
    >>> lobes.boundary.round(6).tolist()
    [[1.0, 1.570796], [2.0, 0.785398]]
    """
    grid = build_grid(vary)
    for name in grid.axes:
        if name not in model.parameters:
            raise UsageError(f"'{name}' is not a parameter of '{model.info.name}': {', '.join(model.parameters)}.")

    def evaluate(values: Parameters) -> DelayedFloquet:
        changed = model.with_parameters(dict(values))
        parameters = dict(changed.parameters)
        seconds = float(period(parameters)) if callable(period) else float(period)
        times = () if breaks is None else tuple(breaks(parameters))
        return delayed_floquet(changed, operating_point(changed), period=seconds, breaks=times, count=1)

    multipliers = np.full(grid.size, np.nan, dtype=np.complex128)
    growth, decided = np.full(grid.size, np.nan), np.zeros(grid.size, dtype=bool)
    failures: list[FmilinError] = []
    doubtful = 0
    for number in range(grid.size):
        try:
            result = evaluate(grid.values(number))
        except NumericalError as error:
            failures.append(error)
            continue
        multipliers[number], growth[number] = result.multipliers[0], result.exponents[0].real
        decided[number] = result.stable is not None
        doubtful += bool(result.remarks)
    if len(failures) == grid.size:
        raise failures[0]
    remarks = []
    if failures:
        text = f"{len(failures)} of {grid.size} points have no multipliers. The first says: {failures[0]}"
        remarks.append(Remark("accuracy", text))
    if doubtful:
        text = f"At {doubtful} of {grid.size} points the multipliers are in doubt: see fl.delayed_floquet there."
        remarks.append(Remark("accuracy", text))
    shape = grid.shape
    boundary = _find_boundary(grid.axes, growth.reshape(shape), lambda values: _measure_growth(evaluate(values)))
    return StabilityLobes(
        grid.axes, multipliers.reshape(shape), growth.reshape(shape), decided.reshape(shape), boundary,
        model.info.name, tuple(remarks),
    )  # fmt: skip


def _measure_growth(result: DelayedFloquet) -> float:
    return float(np.log(np.abs(result.multipliers[0])))


def _find_boundary(
    axes: Mapping[str, FloatArray], growth: FloatArray, measure: Callable[[Parameters], float]
) -> FloatArray:
    """Return the points at which growth is 0 along the last axis, shape (k, number of axes)."""
    names, values = list(axes), list(axes.values())
    points: list[list[float]] = []
    last = names[-1]
    for index in np.ndindex(growth.shape[:-1]):
        at = {name: float(values[i][k]) for i, (name, k) in enumerate(zip(names, index, strict=False))}
        line = growth[index]
        for k in range(len(line) - 1):
            # NaN, of points without multipliers, is not a change of sign.
            if not line[k] * line[k + 1] < 0:
                continue
            low, high = float(values[-1][k]), float(values[-1][k + 1])
            tolerance = BOUNDARY_TOLERANCE * abs(high - low)
            try:
                root = brentq(lambda value, at=at: measure({**at, last: value}), low, high, xtol=tolerance)
            except NumericalError:
                continue  # a point between has no multipliers: its neighbours stay on the chart
            points.append([*at.values(), float(root)])
    return np.array(points).reshape(-1, len(names))
