"""A linear model with periodic coefficients, and what becomes of it: Floquet, harmonics, multiblade coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from fmilin.families.family import LinearFamily
from fmilin.families.family_builder import FamilyBuilder, outcome_of
from fmilin.families.grid import Grid
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals
from fmilin.ground.verbs import html_of, perform, text_of
from fmilin.linear_model.builder import IndependentCoordinates, Named, Slopes, built
from fmilin.linear_model.model import LinearModel, Point
from fmilin.model.interface import ModelInfo, OperatingPoint
from fmilin.motion.periodic.floquet import Floquet, Periodic, floquet


@dataclass(frozen=True, eq=False)
class PeriodicModel:
    """y' = A(t) y + B(t) u, out = C(t) y + D(t) u: deviations from a periodic motion, at m equally spaced times.

    Attributes
    ----------
    A, B, C, D, T : array, shapes (m, P, P), (m, P, nu), (m, ny, P), (m, ny, nu), (m, N, P)
        As of :class:`~fmilin.LinearModel`; A has the rate at which carried coordinates turn in it.
    period : float
        In seconds.
    times : array, shape (m,)
        In seconds, from the start of the orbit.
    points : tuple of OperatingPoint
        The orbit at these times.
    states, full_states, inputs, outputs : Signals
    error : array, shape (m, P, P)
        By what the entries of A may be off.
    jump : array, shape (P, P)
        What becomes of y at the end of a period, where coordinates cannot come back to themselves; mostly the identity.
    info : ModelInfo
        Whose model it is.
    closure : float
        Of the orbit, in sizes of the states.
    symmetries : mapping of str to array, shape (P,)
        Deviations at the start that may come back as they are.
    f0 : array, shape (m, P)
        How the coordinates move along the orbit.
    remarks : tuple of Remark
    """

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    T: FloatArray
    period: float
    times: FloatArray
    points: tuple[OperatingPoint, ...]
    states: Signals
    full_states: Signals
    inputs: Signals
    outputs: Signals
    error: FloatArray
    jump: FloatArray
    info: ModelInfo
    closure: float = 0.0
    symmetries: Mapping[str, FloatArray] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    f0: FloatArray | None = None

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def phases(self) -> FloatArray:
        """The times in parts of the period, shape (m,)."""
        return np.arange(len(self.A)) / len(self.A)

    @property
    def variation(self) -> float:
        """By how much A differs from its mean over the period, relative to its largest entry."""
        mean = self.A.mean(axis=0)
        size = float(np.abs(self.A).max(initial=0.0))
        return float(np.abs(self.A - mean).max(initial=0.0)) / size if size else 0.0

    @cached_property
    def _floquet(self) -> Floquet:
        periodic = Periodic(self.A, self.period, self.jump, self.error, dict(self.symmetries))
        return floquet(periodic, self.states, self.remarks, name=self.info.name)

    def floquet(self) -> Floquet:
        """Return multipliers, exponents and modes: what becomes of small deviations period by period.

        Raises
        ------
        NumericalError
            When the matrices cannot be integrated over the period.
        """
        return self._floquet

    def family(self) -> LinearFamily:
        """Return the linear models over the phase, 0 to 1, as a family: to be saved, drawn, interpolated."""
        builder = FamilyBuilder(Grid({"phase": self.phases}))
        for k in range(len(self.A)):
            builder.add(outcome_of(k, self._linear(k)))
        return builder.family()

    def _linear(self, k: int) -> LinearModel:
        point = self.points[k]
        matrices = self.A[k], self.B[k], self.C[k], self.D[k]
        errors = (self.error[k], *(np.zeros_like(matrix) for matrix in matrices[1:]))
        f0 = np.zeros(len(self.states)) if self.f0 is None else self.f0[k]
        x = dict(zip(self.full_states.names, point.states.tolist(), strict=True))
        u = dict(zip(self.inputs.names, np.resize(point.inputs, len(self.inputs)).tolist(), strict=True))
        y0 = np.array([x.get(name, 0.0) for name in self.states.names])
        coordinates = IndependentCoordinates(
            self.states, self.full_states, y0, self.T[k], np.zeros_like(self.T[k]), "partition"
        )
        return built(
            Named(self.info, self.inputs, self.outputs), coordinates, Slopes(*matrices, f0, *errors),
            Point(point.time, x, u, {}, dict(point.parameters)), ("exact", 0, 0), self.remarks,
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write to a file, completely or not at all.

        Parameters
        ----------
        path : str or Path
            Its suffix picks the format: .nc, .mat, .npz or .json.

        Raises
        ------
        UsageError
            When the suffix is another one, or the file cannot be written.
        """
        perform("PeriodicModel.save", self, path)

    @classmethod
    def load(cls, path: str | Path) -> PeriodicModel:
        """Return what :meth:`save` wrote.

        Parameters
        ----------
        path : str or Path
            Its suffix picks the format.

        Raises
        ------
        ModelError
            When the file holds no periodic model.
        """
        return perform("PeriodicModel.load", path)
