"""Floquet's multipliers over what varies: Campbell diagrams of rotors, stability charts of two parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fmilin.errors import FmilinError, NumericalError
from fmilin.families.grid import Grid, build_grid
from fmilin.linearization.request import Request
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import CoordinateOptions, takes_linearization
from fmilin.periodic.floquet import Floquet
from fmilin.periodic.fourier import ComplexArray
from fmilin.periodic.orbit import OrbitRequest
from fmilin.periodic.periodic_linearization import linearize_orbit
from fmilin.periodic.search import ORBIT_METHOD, find_orbit
from fmilin.signals import FloatArray, RealArray
from fmilin.simulation.inputs import Inputs
from fmilin.simulation.run import RunRequest
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class FloquetChart(TableRepr):
    """What Floquet's theory says at the points of a grid."""

    _attributes = ".axes, .multipliers, .stable, .margin, .campbell(), .stability()"

    axes: Mapping[str, FloatArray]  #: shape (n,); what varies, in its own unit
    period: FloatArray  #: shape (\*shape); in seconds; NaN where no periodic motion was found, as in all arrays
    multipliers: ComplexArray  #: shape (\*shape, P); a column is one mode, followed along the last axis
    exponents: ComplexArray  #: shape (\*shape, P); a column is one mode, followed along the last axis
    frequencies: FloatArray  #: shape (\*shape, P); at which each mode is mostly seen, in rad/s
    stable: NDArray[np.bool_]  #: shape (\*shape); where no distance from the path grows for certain
    margin: FloatArray  #: shape (\*shape); the largest real part of an exponent in 1/s, symmetries left out
    reasons: NDArray[np.object_]  #: shape (\*shape); why there is nothing; empty where there is something
    name: str = ""  #: of the model
    undecided: NDArray[np.bool_] | None = None  #: shape (\*shape); where the errors of the multipliers leave it open

    @implemented_in("fmilin.report.periodic:show_chart")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def unstable(self) -> NDArray[np.bool_]:
        r"""Where a deviation grows for certain, shape (\*shape)."""
        grows = self.ok & ~self.stable
        return np.asarray(grows if self.undecided is None else grows & ~self.undecided)

    @property
    def ok(self) -> NDArray[np.bool_]:
        r"""Where there is a periodic motion, shape (\*shape)."""
        return np.asarray(np.isfinite(self.period))

    @implemented_in("fmilin.report.periodic:campbell_figure")
    def campbell(self) -> Figure:
        """Return Campbell's diagram over the one axis: frequencies, harmonics' rays, growth where there is any."""
        ...

    @implemented_in("fmilin.report.periodic:stability_figure")
    def stability(self) -> Figure:
        """Return the stability chart over two axes."""
        ...


@one_at_a_time
@takes_linearization
def floquet_chart(
    model: Model,
    vary: Mapping[str, Sequence[float] | RealArray],
    start: Mapping[str, float] | OperatingPoint | None = None,
    *,
    period: float | None = None,
    turn: str | None = None,
    fixed: Mapping[str, float] | None = None,
    free: Sequence[str] = (),
    steady: Sequence[str] = (),
    inputs: Inputs | None = None,
    points: int = 64,
    linearization: Linearization | None = None,
    **options: Unpack[CoordinateOptions],
) -> FloquetChart:
    """Return Floquet's multipliers over a grid of parameters, inputs or states at the start of the period.

    Raises UsageError or UnknownNameError when the request does not fit the model; NumericalError when there is no
    periodic motion at any point.

    Parameters
    ----------
    model : Model
    vary : mapping of str to sequence of float
        Values by name; a grid in the order given. Each counts as fixed.
    start : mapping of str to float or OperatingPoint, optional
        Where the first search begins; each other one begins at the orbit before.
    period : float, optional
        In seconds, as the next five as for :func:`fmilin.periodic_orbit`.
    turn, fixed, free, steady, inputs
        What turns, what is held, solved for, may drift; inputs over time.
    points : int
        Phases of a period.
    linearization : Linearization, optional
        How each phase is linearized; its options may be keywords instead.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models import OdeModel
    >>> rate = {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}
    >>> mathieu = OdeModel("Mathieu", rate, parameters={"a": 1.0, "q": 0.1})
    >>> fl.floquet_chart(mathieu, {"a": [0.5, 1.0, 1.5]}, period=3.141592653589793).stable.tolist()
    [True, False, True]
    """
    run = RunRequest(inputs=inputs, method=ORBIT_METHOD)
    request = OrbitRequest(period, turn, fixed or {}, tuple(free), tuple(steady), start, run=run)
    return compute_chart(model, vary, request, Request.of("floquet_chart", linearization, options), points)


def compute_chart(
    model: Model,
    vary: Mapping[str, Sequence[float] | RealArray],
    request: OrbitRequest,
    how: Request,
    points: int = 64,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> FloquetChart:
    """Return the chart that a request describes; see :func:`floquet_chart`."""
    grid = build_grid(vary)
    results: dict[int, Floquet] = {}
    ends: dict[int, OperatingPoint] = {}
    reasons = np.full(grid.size, "", dtype=object)
    first: FmilinError | None = None
    for number in range(grid.size):
        before = grid.before(number)
        point_request = replace(request, fixed={**request.fixed, **grid.values(number)})
        near = ends.get(before) if before is not None else None
        # Where the search from the neighbour's orbit fails, that from the start of the request may not.
        for start in (near, request.start) if near is not None else (request.start,):
            try:
                orbit = find_orbit(model, replace(point_request, start=start), points)
                results[number] = linearize_orbit(model, orbit, how, points).floquet()
            except (NumericalError, ArithmeticError, ValueError) as error:
                # An unsuitable request (exit status 2) fails at the first point already, and is not a gap in the chart.
                if not isinstance(error, FmilinError) or (first is None and number == 0 and error.exit_status == 2):
                    raise
                reasons[number], first = str(error), first or error
                continue
            ends[number], reasons[number] = replace(orbit.start, parameters={}), ""
            break
        progress(number + 1, grid.size)
    if not results:
        assert first is not None  # noqa: S101 - a grid has a point
        raise first
    return _chart(grid, results, reasons)


def _chart(grid: Grid, results: Mapping[int, Floquet], reasons: NDArray[np.object_]) -> FloquetChart:
    count, order = grid.size, max(len(result.exponents) for result in results.values())
    values = np.full((3, count, order), np.nan, dtype=np.complex128)
    scalars, stable = np.full((2, count), np.nan), np.zeros(count, dtype=bool)
    undecided = np.zeros(count, dtype=bool)
    shapes: dict[int, ComplexArray] = {}
    for number, result in results.items():
        if len(result.exponents) != order:
            reasons[number] = "The number of independent states differs here."
            continue
        before = grid.before(number)
        sort = np.arange(order)
        if before is not None and before in shapes:
            sort = _match_modes(values[1:, before], shapes[before], result)
        rows = result.multipliers, result.exponents, result.frequencies
        for part, row in zip(values, rows, strict=True):
            part[number] = row[sort]
        shapes[number] = result.modes[0][:, sort]
        scalars[:, number] = result.period, result.margin
        # Of a rotor with a free speed neighbours drift along the path, which says nothing of where it is stable.
        stable[number] = result.orbitally_stable is True
        undecided[number] = result.orbitally_stable is None
    name = next(iter(results.values())).name
    multipliers, exponents, frequencies = (part.reshape(*grid.shape, order) for part in values)
    period, margin = (row.reshape(grid.shape) for row in scalars)
    return FloquetChart(
        grid.axes, period, multipliers, exponents, frequencies.real, stable.reshape(grid.shape), margin,
        reasons.reshape(grid.shape), name, undecided.reshape(grid.shape),
    )  # fmt: skip


def _match_modes(before: ComplexArray, shapes: ComplexArray, result: Floquet) -> NDArray[np.intp]:
    """Return which modes continue those of the point before: by exponents modulo a turn, where seen, and by shapes."""
    turn, (exponents, frequencies) = 2 * np.pi / result.period, before
    gaps = exponents[:, None] - result.exponents
    gaps = gaps - 1j * turn * np.round(gaps.imag / turn)
    new = np.nan_to_num(result.modes[0])
    lengths = np.linalg.norm(shapes, axis=0)[:, None] * np.linalg.norm(new, axis=0)
    # 1e-300: a mode without a shape is at a right angle to every other one.
    angle = 1 - np.abs(np.nan_to_num(shapes).conj().T @ new) / np.maximum(np.nan_to_num(lengths), 1e-300)
    apart = np.abs(gaps) / turn + 0.3 * np.abs(frequencies.real[:, None] - result.frequencies) / turn
    # A value without a number is far from each; shapes decide between values that are as near.
    return np.asarray(linear_sum_assignment(np.nan_to_num(apart, nan=1e3, posinf=1e3) + 0.2 * angle)[1])
