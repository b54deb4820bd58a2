"""Values that a running FMU holds, as constraints and results need them: parameters, discrete states, residuals."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraints
from fmilin.errors import FmilinError
from fmilin.fmi.read.buffers import Buffers
from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.session import Session
from fmilin.signals import FloatArray


class ParameterValues(Mapping[str, float]):
    """Values of parameters and constants, read from the instance when asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getitem__(self, name: str) -> float:
        scalar = self._session.layout.find(name)
        if scalar is None or not scalar.variable.is_parameter:
            raise KeyError(name)
        return self._session.number(scalar)

    def __iter__(self) -> Iterator[str]:
        layout = self._session.layout
        if layout.description.variables.is_large:
            return iter(())  # reading all of them would take long, and every name is known from elsewhere
        return (s.name for v in layout.description.variables if v.is_parameter for s in layout.scalars(v))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # without counting them

    def __contains__(self, name: object) -> bool:
        scalar = self._session.layout.find(name) if isinstance(name, str) else None
        return scalar is not None and scalar.variable.is_parameter


def changed_parameters(session: Session) -> dict[str, float]:
    """Return the scalar parameters that were set, without the start values of states and inputs."""
    return {
        s.variable.name: float(s.values[0])
        for s in session.settings
        if s.variable.is_parameter and not s.variable.dimensions
    }


MAX_VARIABLES = 50  # variables that are read: a big model has thousands

_UNREADABLE = frozenset({"Clock", "Binary"})


class DiscreteValues:
    """Discrete-time variables of a running FMU that are not inputs of the linear model."""

    def __init__(self, session: Session) -> None:
        self._session = session
        layout = session.layout
        distinct: dict[tuple[bool, str, int], Variable] = {}
        for v in layout.description.scan_variables():
            moves = v.variability == "discrete" or v.causality == "input"
            unreadable = v.type in _UNREADABLE or (layout.is_signal(v) and v.causality in ("input", "output"))
            if moves and not v.is_parameter and not v.is_continuous and not unreadable:
                distinct.setdefault((v.is_float, "" if v.is_float else v.type, v.reference), v)
        self._sizes = {v: layout.size(v) for v in list(distinct.values())[:MAX_VARIABLES]}
        self._reading = session.instance.prepare_values(self._sizes)

    def read(self) -> dict[str, str]:
        """Return their values, until the FMU fails one."""
        if not self._sizes:
            return {}
        session = self._session
        together = session.instance.read_prepared(self._reading)
        if together is not None:
            return {v.name: " ".join(map(_text, values)) for v, values in zip(self._sizes, together, strict=True)}
        texts: dict[str, str] = {}
        for variable, size in self._sizes.items():
            try:
                values = session.instance.values(variable, size)
            except FmilinError as error:
                session.note(f"The discrete variable '{variable.name}' cannot be read. {error}")
                break
            texts[variable.name] = " ".join(map(_text, values))
        return texts


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else f"{value:g}"


_NOTHING = np.empty(0)


class ConstraintResiduals:
    """The residuals g(t, x, u, z) of constraints on a view; u (nu,) and z (nz,) are some of the buffers' numbers."""

    def __init__(
        self, constraints: Constraints, buffers: Buffers, inputs: NDArray[np.intp], observed: NDArray[np.intp]
    ) -> None:
        self._constraints, self._buffers = constraints, buffers
        self._ends = np.cumsum((1, buffers.n, len(inputs)))
        first = 1 + buffers.n
        self._arguments = np.concatenate((np.arange(first), first + inputs, observed)).astype(np.intp)
        """Where t, x, u and z stand in the buffers."""
        self._variables = None if constraints.variables is None else self._arguments[constraints.variables]
        """Where the residuals themselves stand, where each is nothing but a variable."""

    def values(self) -> FloatArray:
        """Return g at the point of the buffers, shape (m,)."""
        if not self._constraints.rows:
            return _NOTHING
        if self._variables is not None:
            return self._buffers.values[self._variables]
        return self._constraints.residuals(*self._split(self._buffers.values))

    def of_points(self, points: FloatArray) -> FloatArray:
        """Return g at many points, given as numbers (k, size) in the layout of the buffers, shape (k, m)."""
        if not self._constraints.rows:
            return np.empty((len(points), 0))
        if self._variables is not None:
            return points[:, self._variables]
        t, x, u, z = self._parts(points)
        return self._constraints.residuals(t[:, 0], x, u, z)

    def along(self, values: FloatArray, changes: FloatArray) -> FloatArray:
        """Return dg = g_x dx + g_u du + g_z dz (m, k) by changes (size, k); NaN only where an unknown dz has a part."""
        if self._variables is not None:
            return changes[self._variables] if len(self._variables) else changes[:0]
        partials = self._constraints.partials(*self._split(values))
        _, dx, du, dz = self._parts(changes, axis=0)
        dg = partials.states @ dx + partials.inputs @ du
        if np.isfinite(dz).all():
            return np.asarray(dg + partials.observed @ dz)
        for column, change in zip(partials.observed.T, dz, strict=True):
            dg[column != 0] += np.outer(column[column != 0], change)
        return dg

    def along_points(self, points: FloatArray, changes: FloatArray) -> FloatArray:
        """Return the same at many points (p, size), by changes (p, size, k), shape (p, m, k)."""
        if self._variables is not None:
            return changes[:, self._variables]
        _, dx, du, dz = self._parts(changes, axis=1)
        if not np.isfinite(dz).all():
            return np.array([self.along(*point) for point in zip(points, changes, strict=True)])
        t, x, u, z = self._parts(points)
        partials = self._constraints.partials(t[:, 0], x, u, z)
        return np.asarray(partials.states @ dx + partials.inputs @ du + partials.observed @ dz)

    def _split(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        t, x, u, z = self._parts(values)
        return float(t[0]), x, u, z

    def _parts(self, numbers: FloatArray, axis: int = -1) -> list[FloatArray]:
        """Return those of t, x, u and z among numbers that stand as in the buffers along this axis."""
        return np.split(numbers.take(self._arguments, axis=axis), self._ends, axis=axis)
