"""One linear model as one row of numbers: what points that were computed alone are sent and stored in.

Everything that differs between two points of a family and is a number stands in the row; what they share (signals,
the model's identity) stands once, in the template. Points that were linearized together have arrays.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from math import prod

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.linear_model.arrays import ENTRY_ERRORS_CODE, MATRICES, LinearArrays
from fmilin.linear_model.builder import Named, build_from_arrays
from fmilin.linear_model.descriptor import Derivative, Descriptor
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearizationMethod, LinearizationPoint, LinearModel
from fmilin.manifold.checks.batch_remarks import BatchRemarks
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray, Signals

_NONE = Signals()
_ACCURACY = tuple(f.name for f in fields(Accuracy))


@dataclass(frozen=True)
class Template:
    """The common properties of all linear models of a family."""

    order: int  # P
    full_states: Signals
    inputs: Signals
    outputs: Signals
    parameters: tuple[str, ...]  # those that differ from the model's own values somewhere
    model: ModelInfo
    sample_time: float = 0.0

    @classmethod
    def of(cls, linear: LinearModel, parameters: Sequence[str] | None = None) -> Template:
        """Return what a family with this linear model shares."""
        names = tuple(linear.point.parameters) if parameters is None else tuple(parameters)
        sizes = len(linear.states), linear.full_states, linear.inputs, linear.outputs
        return cls(*sizes, names, linear.model, linear.sample_time)

    def why_not(self, other: Template) -> str:
        """Return why a linear model that would share ``other`` does not fit, one sentence; empty when it does."""
        if other.order != self.order:
            return (
                f"The linear model has {other.order} independent states here and {self.order} elsewhere: the number "
                "of independent constraints changes."
            )
        for group in ("full_states", "inputs", "outputs"):
            if getattr(other, group).names != getattr(self, group).names:
                return f"The {group.replace('_', ' ')} differ from those of other points."
        if other.parameters != self.parameters:
            return "The varied parameters differ from those of other points."
        if other.sample_time != self.sample_time:
            return f"The sample time is {other.sample_time:g} s here and {self.sample_time:g} s elsewhere."
        return ""


@dataclass(frozen=True, slots=True)
class PointOutcome:
    """One point that was tried."""

    number: int  # of the point on the grid
    reason: str = ""  # why there is no linear model, one paragraph; empty where there is one
    row: FloatArray | None = None  # the linear model as :meth:`Layout.packed` made it
    template: Template | None = None  # what it shares with others
    states: Signals = _NONE  # the independent coordinates
    method: tuple[str, str] = ("", "")  # how derivatives were taken and coordinates chosen
    remarks: tuple[Remark, ...] = ()
    kind: str = ""  # of a failure, for programs: the name of the error's class, ``"fold"`` for a fold
    derivatives: Mapping[str, Derivative] = field(default_factory=dict)  # by parameter, where they are asked for
    descriptor: Descriptor | None = None  # where it is asked for

    @property
    def ok(self) -> bool:
        """Whether there is a linear model."""
        return self.row is not None


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeBlock(Sequence[PointOutcome]):
    """Points that were linearized together: the same as an outcome of each, which is made when it is examined."""

    numbers: NDArray[np.intp]  # (k,), of the points on the grid
    models: LinearArrays  # k of them
    template: Template
    states: Signals
    method: tuple[str, str]
    remarks: BatchRemarks  # of k points or more

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, k: int) -> PointOutcome:  # type: ignore[override]  # slices are not needed
        k = range(len(self))[k]
        (row,) = Layout(self.template).join(self.models[k : k + 1])
        return self._outcome(k, row)

    def __iter__(self) -> Iterator[PointOutcome]:
        layout = Layout(self.template)
        for block in self.models.list_blocks():
            rows = layout.join(self.models[block])
            for k, row in zip(range(block.start, block.stop), rows, strict=True):
                yield self._outcome(k, row)

    def _outcome(self, k: int, row: FloatArray) -> PointOutcome:
        return PointOutcome(int(self.numbers[k]), "", row, self.template, self.states, self.method, self.remarks[k])


def list_numbers(outcomes: Sequence[PointOutcome]) -> list[int]:
    """Return which points on the grid outcomes are of, without making those of a block."""
    if isinstance(outcomes, OutcomeBlock):
        numbers: list[int] = outcomes.numbers.tolist()
        return numbers
    return [outcome.number for outcome in outcomes]


@dataclass(frozen=True)
class Layout:
    """Where each quantity stands in the row of a linear model."""

    template: Template

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every quantity, in the order of the row."""
        t = self.template
        p, n, k, m = t.order, len(t.full_states), len(t.inputs), len(t.outputs)
        matrices = {"A": (p, p), "B": (p, k), "C": (m, p), "D": (m, k), "T": (n, p), "T_u": (n, k)}
        vectors = {"f0": (p,), "y0": (p,), "x0": (n,), "u0": (k,), "out0": (m,), "time": ()}
        rest = {"parameters": (len(t.parameters),), "accuracy": (len(_ACCURACY),), "visits": (2,)}
        return {**matrices, **vectors, **rest, **{f"error_{name}": matrices[name] for name in MATRICES}}

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The part of the row that belongs to every quantity."""
        ends = list(accumulate(prod(shape) for shape in self.shapes.values()))
        return {name: slice(a, b) for name, a, b in zip(self.shapes, [0, *ends[:-1]], ends, strict=True)}

    @cached_property
    def width(self) -> int:
        """Numbers in a row."""
        return sum(prod(shape) for shape in self.shapes.values())

    def pack(self, linear: LinearModel) -> FloatArray:
        """Return the row of a linear model, shape (width,)."""
        t, point = self.template, linear.point
        values = {
            **{name: getattr(linear, name) for name in ("A", "B", "C", "D", "T", "T_u", "f0", "y0")},
            "x0": [point.states.get(name, np.nan) for name in t.full_states.names],
            "u0": [point.inputs.get(name, np.nan) for name in t.inputs.names],
            "out0": [point.outputs.get(name, np.nan) for name in t.outputs.names],
            "time": point.time,
            "parameters": [point.parameters.get(name, np.nan) for name in t.parameters],
            "accuracy": astuple(linear.accuracy),
            "visits": (linear.method.evaluations, linear.method.products),
            **{f"error_{name}": getattr(linear.errors, name) for name in MATRICES},
        }
        row = np.empty(self.width)
        for name, part in self.slices.items():
            row[part] = np.ravel(values[name])
        return row

    def split(self, rows: FloatArray) -> LinearArrays:
        """Return the linear models of rows (k, width): views of them."""
        stored = {name: rows[:, part].reshape(len(rows), *self.shapes[name]) for name, part in self.slices.items()}
        file = rows.base if isinstance(rows.base, mmap.mmap) else getattr(rows, "_mmap", None)
        return LinearArrays(len(rows), stored, np.full(len(rows), ENTRY_ERRORS_CODE, dtype=np.intp), file=file)

    def join(self, models: LinearArrays) -> FloatArray:
        """Return linear models as rows (k, width)."""
        rows = np.empty((len(models), self.width))
        for name, part in self.slices.items():
            rows[:, part] = models.read(name).reshape(len(models), -1)
        return rows

    def fill(self, models: LinearArrays) -> LinearArrays:
        """Return linear models with NaN as the quantities that no point has, as where all points failed."""
        missing = {
            name: np.broadcast_to(np.nan, (len(models), *shape))
            for name, shape in self.shapes.items()
            if name not in models.stored and not (models.zeros and name.startswith("error_"))
        }
        return replace(models, stored=models.stored | missing)

    def extract(
        self, v: Mapping[str, FloatArray], states: Signals, method: tuple[str, str], remarks: tuple[Remark, ...]
    ) -> LinearModel:
        """Return the linear model of the quantities ``v`` of a point, as :meth:`LinearArrays.read_point` returns them.

        ``states`` are its coordinates, and ``method`` says how derivatives were taken and coordinates chosen.
        """
        t = self.template
        parameters = zip(t.parameters, v["parameters"].tolist(), strict=True)
        point = LinearizationPoint(
            time=float(v["time"]),
            states=dict(zip(t.full_states.names, v["x0"].tolist(), strict=True)),
            inputs=dict(zip(t.inputs.names, v["u0"].tolist(), strict=True)),
            outputs=dict(zip(t.outputs.names, v["out0"].tolist(), strict=True)),
            parameters={name: value for name, value in parameters if not np.isnan(value)},
        )
        return build_from_arrays(
            Named(t.model, t.inputs, t.outputs),
            v,
            (EntryErrors(**{name: v[f"error_{name}"] for name in MATRICES}), Accuracy(*v["accuracy"].tolist())),
            (states, t.full_states),
            point,
            LinearizationMethod(*method, int(v["visits"][0]), int(v["visits"][1])),
            remarks=remarks,
            sample_time=t.sample_time,
        )
