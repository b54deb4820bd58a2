"""A family of linear models: what a sweep returns, as arrays with the grid axes first.

The file is longer than others by the declarations of methods that other packages implement, with their docstrings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark, off_equilibrium, rate_of_change
from fmilin.errors import NumericalError, UsageError
from fmilin.families.family_derivatives import FamilyDerivative, gather_derivatives
from fmilin.families.grid import Grid, LeftOut, around, compute_interpolation_errors, entry_errors
from fmilin.families.rows import Layout, Template
from fmilin.families.tracking import FamilySpectra, ModeEvent, Tracks, judge_family, mode_events, track_eigenvalues
from fmilin.families.zero_tracking import ZeroTracks, track_zeros
from fmilin.formats import Holds
from fmilin.linear_model.arrays import MATRICES, LinearArrays
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import EntryErrors, LinearModel, Pictures, extract_result
from fmilin.linear_model.no_response import is_at_rest
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    import control
    import xarray
    from matplotlib.figure import Figure

    from fmilin.linear_model.descriptor import Derivative, Descriptor
    from fmilin.model.interface import Model


T = TypeVar("T")


class FamilyPlots(Pictures["LinearFamily"]):
    """Draws a family; every method returns a ``matplotlib.figure.Figure`` with units on its axes."""

    @implemented_in("fmilin.report.family_pictures:family_eigenvalue_figure", subject=extract_result)
    def eigenvalues(self) -> Figure:
        """Return the eigenvalues over the first axis (further ones at their first value), each mode one line."""
        ...

    @implemented_in("fmilin.report.locus_pictures:zero_locus_figure", subject=extract_result)
    def zeros(self) -> Figure:
        """Return how the transmission zeros move through the complex plane, coloured by the last axis of the grid."""
        ...

    @implemented_in("fmilin.report.locus_pictures:root_locus_figure", subject=extract_result)
    def root_locus(self) -> Figure:
        """Return how the eigenvalues walk through the complex plane, coloured by the last axis of the grid."""
        ...

    @implemented_in("fmilin.report.family_pictures:campbell_figure", subject=extract_result)
    def campbell(self, *, orders: Sequence[float] = (), hertz: bool = False) -> Figure:
        """Return frequencies and damping ratios of modes that swing over the axis, with lines at multiples of it."""
        ...

    @implemented_in("fmilin.report.family_pictures:margin_figure", subject=extract_result)
    def margins(self) -> Figure:
        """Return gain, phase and disk margins of loops over the last axis; none where one is unstable."""
        ...

    @implemented_in("fmilin.report.family_pictures:surface_figure", subject=extract_result)
    def surface(self, quantity: str = "growth") -> Figure:
        """Return one number of every linear model over a grid of two axes, as colours with lines of equal height.

        ``quantity``: growth (largest real part), damping (smallest ratio), frequency (slowest that swings),
        accuracy (of A), or an entry as ``"A[w,phi]"``, by names or numbers from 1.
        """
        ...


def _renumber(by_number: Mapping[int, T], numbers: NDArray[np.intp]) -> dict[int, T]:
    """Return what some points have, by their positions among ``numbers``."""
    return {k: by_number[n] for k, n in enumerate(numbers.tolist()) if n in by_number}


class FamilyArray:
    """A property of a family: the array of its name."""

    def __init__(self, text: str) -> None:
        self.__doc__ = text

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, family: None, owner: type) -> FamilyArray: ...
    @overload
    def __get__(self, family: LinearFamily, owner: type) -> FloatArray: ...
    def __get__(self, family: LinearFamily | None, owner: type) -> FamilyArray | FloatArray:
        return self if family is None else family.array(self._name)


@dataclass(frozen=True)
class PointCoordinates:
    """Properties other than numbers that may differ between the points of a family."""

    states: Signals  # the independent coordinates
    method: tuple[str, str]  # how derivatives were taken and coordinates chosen


@dataclass(frozen=True, eq=False, repr=False)
class LinearFamily(TableRepr, Sequence[LinearModel]):
    r"""Linear models of one plant on a grid of operating points.

    As a sequence it has one linear model per point, in the order of the grid, the last axis fastest. ``family[3]`` and
    ``family[2, 5]`` are linear models, slices are families.
    """

    file_kind: ClassVar[Holds] = "family"  #: the formats of files that hold it: ``fmilin.formats``
    _attributes = ".ok, .eigenvalues, .mode_events, .array(name); family[k] is a model"

    grid: Grid  #: where the points lie
    template: Template  #: what all linear models share
    models: LinearArrays = field(repr=False)  #: the numbers of all linear models; NaN where there is none
    ok: NDArray[np.bool_] = field(repr=False)  #: shape (\*shape)
    reasons: NDArray[np.object_] = field(repr=False)  #: shape (\*shape); why there is none; else empty
    choices: tuple[PointCoordinates, ...] = field(repr=False)  #: of coordinates and derivatives
    #: shape (number of points,); which of the choices belongs to each point; -1 where there is no linear model
    chosen: NDArray[np.intp] = field(repr=False)
    remarks: Mapping[int, tuple[Remark, ...]] = field(repr=False)  #: warnings by the number of the point
    #: by the number of the point, where they were asked for; they go into no file of a family
    descriptors: Mapping[int, Descriptor] = field(default_factory=dict, repr=False)
    #: the model, where it keeps its equations as they are written: descriptor systems are computed when asked for
    described_by: Model | None = field(default=None, repr=False)
    #: by the number of the point and by parameter, where they were asked for
    point_derivatives: Mapping[int, Mapping[str, Derivative]] = field(default_factory=dict, repr=False)
    #: of varied parameters, where the model states them; states, inputs and outputs have their own
    parameter_units: Mapping[str, str] = field(default_factory=dict, repr=False)

    @implemented_in("fmilin.report.result_tables:show_family")
    def _print_table(self, page: Sheet) -> None: ...

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the model, which may hold compiled code: a pickled family has the systems that were computed."""
        return {**self.__dict__, "described_by": None}

    @property
    def plot(self) -> FamilyPlots:
        """Pictures: ``plot.eigenvalues()``, ``.root_locus()``, ``.campbell()`` and ``.surface()``."""
        return FamilyPlots(self)

    # -- what there is ---------------------------------------------------------------------------------

    @property
    def axes(self) -> Mapping[str, FloatArray]:
        """The varied quantities: values by name."""
        return self.grid.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the grid."""
        return self.grid.shape

    @cached_property
    def layout(self) -> Layout:
        """Where each quantity stands in a row."""
        return Layout(self.template)

    @property
    def states(self) -> Signals:
        """The P independent coordinates; where the family has several choices, those of its first good point."""
        return self.choices[0].states if self.choices else Signals()

    @property
    def full_states(self) -> Signals:
        """All N states."""
        return self.template.full_states

    @property
    def inputs(self) -> Signals:
        """The inputs of all linear models."""
        return self.template.inputs

    @property
    def outputs(self) -> Signals:
        """The outputs of all linear models."""
        return self.template.outputs

    @property
    def sample_time(self) -> float:
        """In seconds; 0 for continuous models."""
        return self.template.sample_time

    @property
    def switches(self) -> bool:
        """Whether the independent coordinates are not the same at all points."""
        return len({c.states.names for c in self.choices}) > 1

    def array(self, name: str) -> FloatArray:
        r"""Return a quantity of all points by its ``name``, shape (\\*shape, ...).

        They are ``A`` to ``T_u``, ``f0``, ``y0``, ``x0`` (all states), ``u0``, ``out0``, ``time``, ``parameters``,
        ``accuracy``, ``visits``, ``error_A`` and so on. Of errors of points that were linearized together it is a copy.
        """
        part = self.models.unshare(name)
        return part.reshape(self.shape + part.shape[1:])

    A = FamilyArray(r"Shape (\*shape, P, P); NaN where not ok, as in all arrays.")
    B = FamilyArray(r"Shape (\*shape, P, nu).")
    C = FamilyArray(r"Shape (\*shape, ny, P).")
    D = FamilyArray(r"Shape (\*shape, ny, nu).")
    T = FamilyArray(r"Shape (\*shape, N, P).")
    f0 = FamilyArray(r"The rate of the coordinates at each point, shape (\*shape, P).")
    y0 = FamilyArray(r"The coordinates of each point, shape (\*shape, P).")
    x0 = FamilyArray(r"All states of each point, shape (\*shape, N).")
    u0 = FamilyArray(r"The inputs of each point, shape (\*shape, nu).")

    @cached_property
    def derivatives(self) -> Mapping[str, FamilyDerivative]:
        r"""By parameter, where they were asked for: ``family.derivatives["m"].A``, shape (\\*shape, P, P)."""
        return gather_derivatives(self.point_derivatives, self.shape, self.template)

    # -- modes -----------------------------------------------------------------------------------------

    @cached_property
    def tracks(self) -> Tracks:
        """Eigenvalues followed along the grid, shape (number of points, P)."""
        return track_eigenvalues(self.models, self.template, self.ok)

    @property
    def eigenvalues(self) -> NDArray[np.complex128]:
        r"""Shape (\\*shape, P): a column is one mode, followed from point to point by its eigenvector."""
        return self.tracks.eigenvalues.reshape(*self.shape, self.template.order)

    @cached_property
    def spectra(self) -> FamilySpectra:
        """Errors of the followed eigenvalues, and whether each mode grows, shape (number of points, P)."""
        return judge_family(self.models, self.tracks, sampled=self.sample_time > 0)

    @property
    def eigenvalue_errors(self) -> FloatArray:
        r"""Shape (\*shape, P): how far each of ``eigenvalues`` may be off, as the errors of A have it."""
        return self.spectra.errors.reshape(*self.shape, self.template.order)

    @cached_property
    def zero_tracks(self) -> ZeroTracks:
        """Transmission zeros followed along the grid, shape (number of points, largest number of zeros)."""
        return track_zeros(self.good(), self.shape)

    @property
    def zeros(self) -> NDArray[np.complex128]:
        r"""Shape (\*shape, most zeros): a column is one transmission zero, followed from point to point.

        NaN where there are fewer: a zero that passes through infinity is missing there. Without inputs or outputs
        UsageError.
        """
        tracks = self.zero_tracks.zeros
        return tracks.reshape(*self.shape, tracks.shape[1])

    @property
    def zero_errors(self) -> FloatArray:
        r"""Shape (\*shape, most zeros): how far each of ``zeros`` may be off."""
        errors = self.zero_tracks.errors
        return errors.reshape(*self.shape, errors.shape[1])

    @cached_property
    def mode_events(self) -> tuple[ModeEvent, ...]:
        """Where modes cross, and where two eigenvalues become one and part in other directions, along every axis."""
        return mode_events(self.tracks, self.shape)

    # -- the linear models -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.grid.size

    @overload
    def __getitem__(self, key: int | np.integer[Any] | tuple[int | np.integer[Any], ...]) -> LinearModel: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: slice | tuple[int | np.integer[Any] | slice, ...]) -> LinearFamily: ...
    def __getitem__(
        self, key: int | np.integer[Any] | slice | tuple[int | np.integer[Any] | slice, ...]
    ) -> LinearModel | LinearFamily:
        if isinstance(key, int | np.integer) and len(self.shape) > 1:
            return self.linear_model(range(len(self))[int(key)])
        try:
            picked = np.arange(len(self)).reshape(self.shape)[key]
        except (IndexError, TypeError, ValueError, OverflowError) as error:
            if isinstance(key, int | np.integer) and abs(int(key)) <= sys.maxsize:
                raise  # the end of an iteration, as of any sequence
            raise UsageError(
                f"The points of this family are numbered from 0 along the axes {', '.join(self.axes)}, of the shape "
                f"{self.shape}: {str(error)[:100]}."
            ) from None
        return self.linear_model(int(picked)) if np.ndim(picked) == 0 else self._part(key, picked)

    def linear_model(self, number: int) -> LinearModel:
        """Return the linear model of the point with this ``number``, counted from 0 in the order of the grid.

        Raises
        ------
        NumericalError
            With the reason, where there is none.
        """
        if not self.ok.flat[number]:
            at = ", ".join(f"{name} = {value:g}" for name, value in self.grid.values(number).items())
            raise NumericalError(f"There is no linear model at {at}: {self.reasons.flat[number]}")
        choice = self.choices[self.chosen[number]]
        remarks = self.remarks.get(number, ())
        linear = self.layout.extract(self.models.read_point(number), choice.states, choice.method, remarks)
        if number in self.point_derivatives:
            linear = replace(linear, derivatives=self.point_derivatives[number])
        descriptor = self.descriptors.get(number)
        if descriptor is None and self.described_by is not None:
            from fmilin.formulations.descriptor_system import lazy_descriptor

            descriptor = lazy_descriptor(self.described_by, linear)
        return linear if descriptor is None else replace(linear, descriptor=descriptor)

    def good(self) -> Iterator[tuple[int, LinearModel]]:
        """Yield number and linear model of every point that has one."""
        for number in np.flatnonzero(self.ok).tolist():
            yield number, self.linear_model(number)

    def _part(self, key: Any, picked: NDArray[np.intp]) -> LinearFamily:
        keys = key if isinstance(key, tuple) else (key,)
        if any(not isinstance(k, slice | int | np.integer) for k in keys):
            raise UsageError("Points of a family must be selected by integers and slices.")
        keys = (*keys, *[slice(None)] * (len(self.shape) - len(keys)))
        if self.grid.zipped:
            axes = {name: values[keys[0]] for name, values in self.axes.items()}
        else:
            axes = {n: v[k] for (n, v), k in zip(self.axes.items(), keys, strict=True) if isinstance(k, slice)}
        numbers = picked.ravel()
        return replace(
            self,
            grid=Grid(axes, self.grid.zipped),
            models=self.models[numbers],
            ok=self.ok.ravel()[picked],
            reasons=self.reasons.ravel()[picked],
            chosen=self.chosen[numbers],
            remarks=_renumber(self.remarks, numbers),
            descriptors=_renumber(self.descriptors, numbers),
            point_derivatives=_renumber(self.point_derivatives, numbers),
        )

    # -- between the points ----------------------------------------------------------------------------

    @kinds_checked
    def interpolate(self, values: Mapping[str, float]) -> LinearModel:
        """Return the linear model between the points of the grid, linear in every axis.

        Its diagnostic of kind ``"interpolated"`` and its accuracy say how far interpolation is off at the points of the
        grid around it when each is left out; ``values`` has one value for every axis. Raises UsageError when a value is
        missing or outside the grid; NumericalError when one of the points around has no linear model, or other
        coordinates than the others.
        """
        weights = around(self.grid, values)
        for number in weights:
            if not self.ok.flat[number]:
                self.linear_model(number)  # raises the reason
        if len({int(self._kinds.flat[k]) for k in weights}) > 1:
            raise NumericalError(
                "The neighbouring points have different independent coordinates, so interpolation is not possible. "
                "Name coordinates that are regular at all points (independent=), or use coordinates='tangent'."
            )
        numbers = list(weights)
        nearest = max(weights, key=lambda k: weights[k])
        choice = self.choices[self.chosen[nearest]]
        if len(weights) == 1:
            return self.linear_model(nearest)
        row = np.array(list(weights.values())) @ self.layout.join(self.models[np.array(numbers)])
        point_remarks = tuple(r for r in self.remarks.get(nearest, ()) if r.speaks_of_the_model)
        quantities = self.layout.split(row[None]).read_point(0)
        linear = self.layout.extract(quantities, choice.states, choice.method, point_remarks)
        matrices = {name: self.array(name) for name in MATRICES}
        grid_errors = entry_errors(matrices, self.grid, self._kinds, numbers)
        errors = EntryErrors(**{name: grid_errors[name] + getattr(linear.errors, name) for name in MATRICES})
        linear = with_errors(linear, errors, *_describe_motion(linear))
        accuracies = ", ".join(f"{name} {getattr(linear.accuracy, name):.2g}" for name in "ABCD")
        text = f"Interpolated between {len(weights)} points. Relative errors when one of them is left out:  "
        return replace(linear, warnings=(*linear.warnings, Remark("interpolated", f"{text}{accuracies}.")))

    def left_out(self) -> LeftOut:
        """Return how far interpolation is off at every point inside the grid when that point is left out."""
        return compute_interpolation_errors({name: self.array(name) for name in "ABCD"}, self.grid, self._kinds)

    @property
    def _kinds(self) -> NDArray[np.intp]:
        r"""A number for the coordinates of every point, shape (\*shape); -1 where there are none."""
        numbers: dict[tuple[str, ...], int] = {}
        of_choice = [numbers.setdefault(c.states.names, len(numbers)) for c in self.choices]
        return np.array([*of_choice, -1], dtype=np.intp)[self.chosen].reshape(self.shape)

    # -- other forms -----------------------------------------------------------------------------------

    @implemented_in("fmilin.export.family_record:to_xarray")
    def to_xarray(self) -> xarray.Dataset:
        """Return everything as an ``xarray.Dataset`` with labelled axes.

        UsageError: when xarray is not installed.
        """
        ...

    @implemented_in("fmilin.export.python_control:family_to_control")
    def to_control(self) -> list[control.StateSpace | None]:
        """Return a ``control.StateSpace`` per point in the order of the grid; None where there is no linear model."""
        ...

    @implemented_in("fmilin.design.margins:family_margins")
    def margins(self) -> NDArray[np.object_]:
        r"""Return :func:`fmilin.design.margins` of every loop (``fl.sweep(..., loop_at=)``), shape (\*shape)."""
        ...

    @implemented_in("fmilin.families.multiblade:multiblade")
    def multiblade(self, groups: Mapping[str, Sequence[str]] | None = None) -> LinearFamily:
        """Return a family over the azimuth of a rotor (OpenFAST's files) in multiblade coordinates.

        ``groups`` are quantities of three or more blades, by a name for them; by default those with names that differ
        in "blade 1". UsageError: when the points do not say azimuth and rotor speed, or a group has fewer than three.
        """
        ...

    @implemented_in("fmilin.families.multiblade:average_over_azimuth")
    def averaged(self) -> LinearFamily | LinearModel:
        """Return the mean over the axis ``azimuth``, with a diagnostic on how much A varies around it.

        UsageError: when there is no such axis, or a point of the grid has no linear model.
        """
        ...

    @implemented_in("fmilin.export.files:save")
    def save(self, path: str | Path) -> None:
        """Write the family; the suffix of ``path`` picks the format: .nc, .mat, .npz, .json or .m.

        UsageError: when no format has the suffix, or the file cannot be written; an old file is then unharmed.
        """
        ...

    @implemented_in("fmilin.report.web:save_report")
    def save_report(self, path: str | Path) -> None:
        """Write everything about the family to ``path``, one HTML file that needs no network: tables and pictures.

        UsageError: when the file does not end in .html, or cannot be written.
        """
        ...

    @classmethod
    @implemented_in("fmilin.export.files:load_family")
    def load(cls, path: str | Path) -> LinearFamily:
        """Return the family in the file ``path``, which :meth:`save` wrote as .nc, .mat, .npz or .json.

        UsageError, ModelError: when the suffix is none of these; when the file is missing, damaged, of another version.
        """
        ...


def _describe_motion(linear: LinearModel) -> tuple[Remark, ...]:
    """Say that a point between others moves, and which coordinate most in its own size."""
    if is_at_rest(linear):
        return ()
    sizes = linear.states.scales(linear.y0)
    fastest = int((np.abs(linear.f0) / sizes).argmax())
    return (off_equilibrium(rate_of_change(linear.states.names[fastest], linear.f0[fastest], sizes[fastest])),)
