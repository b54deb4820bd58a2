"""A linear model with periodic coefficients, and what becomes of it: Floquet, harmonics, multiblade coordinates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from fmilin.diagnostics import Remark, equilibrium_not_tested
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.families.family import LinearFamily
from fmilin.families.family_builder import FamilyBuilder, build_outcome
from fmilin.families.grid import Grid
from fmilin.families.multiblade import build_transformation
from fmilin.formats import Holds
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, Named, build_matrices
from fmilin.linear_model.model import LinearizationPoint, LinearModel
from fmilin.model.interface import ModelInfo, OperatingPoint
from fmilin.periodic.floquet import Floquet, Periodic, floquet, mismatch
from fmilin.periodic.fourier import compute_rotation_terms, harmonic_matrix, harmonic_signals
from fmilin.periodic.transition import Matrices, lift_matrices, lift_signals
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

EXACT = ("exact", 0, 0)  # how derivatives were taken, of what is made of them


@dataclass(frozen=True, eq=False, repr=False)
class PeriodicModel(TableRepr):
    """y' = A(t) y + B(t) u, out = C(t) y + D(t) u: deviations from a periodic motion, at m equally spaced times."""

    file_kind: ClassVar[Holds] = "periodic model"  #: the formats of files that hold it: ``fmilin.formats``
    _attributes = ".A, .B, .C, .D, .floquet(), .family()"

    A: FloatArray  #: shape (m, P, P); the rate at which carried coordinates turn is in it
    B: FloatArray  #: shape (m, P, nu)
    C: FloatArray  #: shape (m, ny, P)
    D: FloatArray  #: shape (m, ny, nu)
    T: FloatArray  #: shape (m, N, P)
    period: float  #: in seconds
    times: FloatArray  #: shape (m,); in seconds, from the start of the orbit
    points: tuple[OperatingPoint, ...]  #: the orbit at these times
    states: Signals  #: the P coordinates
    full_states: Signals  #: all N states
    inputs: Signals  #: nu of them
    outputs: Signals  #: ny of them
    error: FloatArray  #: shape (m, P, P); by what the entries of A may be off
    #: shape (P, P); what becomes of y at the end of a period, where coordinates cannot come back to themselves; mostly
    #: the identity
    jump: FloatArray
    info: ModelInfo  #: the model of the motion
    closure: float = 0.0  #: of the orbit, in sizes of the states
    #: shape (P,); deviations at the start that may come back as they are
    symmetries: Mapping[str, FloatArray] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()  #: of the orbit
    f0: FloatArray | None = None  #: shape (m, P); how the coordinates move along the orbit
    #: shape (m, P, P), or None; what becomes of y from each time to the next, where A does not say it: past events
    #: (their saltation matrices are in it), in co-simulation, of which A has means alone, and where A changes too fast
    transitions: FloatArray | None = None
    #: shape (P, P), or None; what the distance of the true orbit may change in the monodromy matrix
    monodromy_error: FloatArray | None = None

    @implemented_in("fmilin.report.periodic:show_periodic")
    def _print_table(self, page: Sheet) -> None: ...

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

    def floquet(self) -> Floquet:
        """Return multipliers, exponents and modes: what becomes of small deviations period by period.

        NumericalError: when the matrices cannot be integrated over the period.
        """
        return self._floquet

    @cached_property
    def _floquet(self) -> Floquet:
        periodic = Periodic(
            self.A, self.period, self.jump, self.error, dict(self.symmetries), self.transitions, self.monodromy_error
        )
        return floquet(periodic, self.states, self.remarks, name=self.info.name)

    def family(self) -> LinearFamily:
        """Return the linear models over the phase, 0 to 1, as a family: to be saved, drawn, interpolated."""
        builder = FamilyBuilder(Grid({"phase": self.phases}))
        for k in range(len(self.A)):
            builder.add(build_outcome(k, self._linear(k)))
        return builder.family()

    def _linear(self, k: int) -> LinearModel:
        point = self.points[k]
        A, B, C, D = (matrix[k] for matrix in self._matrices)
        errors = self.error[k], *(np.zeros_like(matrix) for matrix in (B, C, D))
        f0 = np.zeros(len(self.states)) if self.f0 is None else self.f0[k]
        untested = [] if self.f0 is not None else [equilibrium_not_tested("the periodic model has no rates")]
        x = dict(zip(self.full_states.names, point.states.tolist(), strict=True))
        u = dict(zip(self.inputs.names, point.inputs.tolist(), strict=True))
        y0 = np.array([x.get(name, 0.0) for name in self.states.names])
        coordinates = IndependentCoordinates(
            self.states, self.full_states, y0, self.T[k], np.zeros_like(self.T[k]), "partition"
        )
        return build_matrices(
            Named(self.info, self.inputs, self.outputs), coordinates, LinearMatrices(A, B, C, D, f0, *errors),
            LinearizationPoint(point.time, x, u, {}, dict(point.parameters)), EXACT, (*self.remarks, *untested),
        )  # fmt: skip

    @kinds_checked
    def harmonic(self, count: int) -> LinearModel:
        """Return the harmonic state space: mean, cosines and sines of the states, driven by those of the inputs.

        It is time-invariant, in real coordinates ``x.0``, ``x.c1``, ``x.s1``, ... of ``count`` harmonics. Its transfer
        matrix says which harmonics of the outputs a harmonic of an input moves; its eigenvalues are Floquet's exponents
        and their shifts by multiples of i 2 pi/T; the middle ones are good (Wereley, Analysis and control of linear
        periodically time varying systems, 1990). Raises UsageError when the samples do not tell so many harmonics, or
        the coordinates do not come back to themselves.
        """
        most = (len(self.A) - 1) // 4
        if not 0 <= count <= most:
            raise UsageError(
                f"{len(self.A)} phases determine {most} harmonics, not {count}: use more phases of the period "
                "(points=)."
            )
        self.require_closed("A harmonic state space")
        A, B, C, D = (harmonic_matrix(matrix, count) for matrix in self._matrices)
        A += compute_rotation_terms(len(self.states), count, 2 * np.pi / self.period)
        signals = [harmonic_signals(group, count) for group in (self.states, self.inputs, self.outputs)]
        return self._constant((A, B, C, D), signals)

    @kinds_checked
    def lifted(self, count: int = 1) -> LinearModel:
        """Return a period as one sample: inputs are held over its parts, outputs are read where each of them begins.

        Its states are those at the start of a period, its inputs ``u.0``, ``u.1``, ... and outputs ``y.0``, ``y.1``,
        ... those of ``count`` equal parts; its eigenvalues are the multipliers. Raises UsageError when there is no
        part, or the coordinates do not come back to themselves.
        """
        if count < 1:
            raise UsageError(f"A period has one part at least, not {count}.")
        self.require_closed("A lifted model")
        signals = [self.states, *(lift_signals(group, count) for group in (self.inputs, self.outputs))]
        return self._constant(lift_matrices(self._matrices, self.period, count), signals, self.period)

    def multiblade(self, groups: Mapping[str, Sequence[str] | str], *, azimuth: str | None = None) -> PeriodicModel:
        """Return the model in Coleman's multiblade coordinates, in which rotors of equal blades are constant.

        They are ``flap.mean``, ``flap.cos``, ``flap.sin`` (and ``flap.difference`` of an even number); ``variation``
        says how constant it is. Raises UsageError or UnknownNameError when there are fewer than three blades or a name
        is unknown.

        Parameters
        ----------
        groups : mapping of str to sequence of str or str
            States, inputs and outputs of three or more blades, in the order in which they pass, by a name for them; a
            pattern (``"b*.q"``) stands for all that fit it. Rates go along with their states.
        azimuth : str, optional
            The state that is the rotor's angle; by default the angle is 0 at the start and grows by a turn a period.
        """
        self.require_closed("A change to multiblade coordinates")
        everything = {name: self._members(blades) for name, blades in groups.items()}
        start = 0.0 if azimuth is None else self.points[0].states[self.full_states.index_of(azimuth, "a state")]
        changed = [self._in_multiblade(everything, start, sense) for sense in (1.0, -1.0)]
        return min(changed, key=lambda model: model.variation)

    def averaged(self, tolerance: float = 1e-3) -> LinearModel:
        """Return the mean over the period as a linear model, where that does not mislead.

        Raises NumericalError when the eigenvalues of the mean are not the exponents: variation over the period matters.

        Parameters
        ----------
        tolerance : float
            How far eigenvalues of the mean may be from Floquet's exponents, relative to the largest of them or one
            turn a period [1].
        """
        A, B, C, D = (matrix.mean(axis=0) for matrix in self._matrices)
        gap = mismatch(np.linalg.eigvals(A), self.floquet().exponents, self.period)
        if not gap <= tolerance:
            raise NumericalError(
                "The mean over the period is not a valid model: its eigenvalues differ from Floquet's exponents by "
                f"{gap:.2g} of their size, as A varies by {100 * self.variation:.3g} % of its largest entry. Use "
                "floquet(), harmonic(), or multiblade() first where three or more blades are equal."
            )
        return self._constant((A, B, C, D), (self.states, self.inputs, self.outputs))

    @property
    def _matrices(self) -> Matrices:
        return self.A, self.B, self.C, self.D

    def require_closed(self, what: str) -> None:
        """Raise a :class:`UsageError` where coordinates do not come back to themselves, which ``what`` needs.

        Raises
        ------
        UsageError
        """
        if self.transitions is not None:
            raise UsageError(
                f"{what} needs matrices that change smoothly over the period, and this motion passes events, was "
                f"measured step by step, or changes too fast for {len(self.A)} phases (points=). Use floquet(), or "
                "transitions for the deviations along the period."
            )
        # Reflected coordinates have a jump of size one: anything between that and rounding tells them.
        if not np.allclose(self.jump, np.eye(len(self.jump)), atol=1e-9):
            raise UsageError(
                f"{what} needs coordinates that come back to themselves after a period, and these are reflected. Name "
                "others (independent=), or give two turns as the period."
            )

    def _members(self, blades: Sequence[str] | str) -> list[str]:
        """Return the names that a pattern stands for, numbers in them in rising order; names as they are."""
        everything = (*self.states.names, *self.inputs.names, *self.outputs.names)
        if isinstance(blades, str):
            fitting = [name for name in dict.fromkeys(everything) if fnmatchcase(name, blades)]
            return sorted(fitting, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
        for name in blades:
            if name not in everything:
                raise UnknownNameError.among(name, everything, "a state, input or output of the linear models")
        return list(blades)

    def _in_multiblade(self, groups: Mapping[str, Sequence[str]], start: float, sense: float) -> PeriodicModel:
        psi, speed = start + sense * 2 * np.pi * self.phases, sense * 2 * np.pi / self.period
        for name, blades in groups.items():
            if not any(set(blades) <= set(part.names) for part in (self.states, self.inputs, self.outputs)):
                raise UsageError(f"The blades of '{name}' must all be of one kind, not {', '.join(blades) or 'none'}.")

        y = build_transformation(self.states, groups, psi, speed, self._rates())
        u, z = (build_transformation(signals, groups, psi, speed) for signals in (self.inputs, self.outputs))
        inverse, output_inverse = np.linalg.inv(y.L), np.linalg.inv(z.L)
        points = [replace(p, inputs=np.linalg.solve(L, p.inputs)) for p, L in zip(self.points, u.L, strict=True)]
        return replace(
            self, A=inverse @ (self.A @ y.L - y.rate), B=inverse @ self.B @ u.L, C=output_inverse @ self.C @ y.L,
            D=output_inverse @ self.D @ u.L, T=self.T @ y.L, error=np.abs(inverse) @ self.error @ np.abs(y.L),
            states=y.signals, inputs=u.signals, outputs=z.signals, f0=None, points=tuple(points),
            symmetries={name: inverse[0] @ vector for name, vector in self.symmetries.items()},
            monodromy_error=None if self.monodromy_error is None
            else np.abs(inverse[0]) @ self.monodromy_error @ np.abs(y.L[0]),
        )  # fmt: skip

    def _rates(self) -> dict[int, int]:
        """Return which states are the rates of which: rows of A that hold a 1 alone, at all phases."""
        ones, zeros = (np.all(np.abs(self.A - value) <= 1e-12, axis=0) for value in (1.0, 0.0))  # rounding
        alone = (ones | zeros).all(axis=1) & (ones.sum(axis=1) == 1)
        return {i: j for i, j in np.argwhere(ones).tolist() if alone[i] and i != j}

    def _constant(self, matrices: Matrices, signals: Sequence[Signals], sample_time: float = 0.0) -> LinearModel:
        """Return a time-invariant model A, B, C, D in coordinates of its own, with its states, inputs and outputs."""
        (states, inputs, outputs), point = signals, self.points[0]
        order = len(states)
        nothing = np.zeros((order, order))
        coordinates = IndependentCoordinates(states, states, np.zeros(order), np.eye(order), nothing, "named")
        size = float(np.abs(self.A).max(initial=0.0)) or 1.0
        slopes = LinearMatrices.with_relative_error(
            float(self.error.max(initial=0.0)) / size, matrices, np.zeros(order)
        )
        x, u = (dict.fromkeys(group.names, 0.0) for group in (states, inputs))
        where = LinearizationPoint(point.time, x, u, {}, dict(point.parameters))
        named = Named(self.info, inputs, outputs)
        untested = equilibrium_not_tested("the states are deviations from a periodic motion")
        return build_matrices(
            named, coordinates, slopes, where, EXACT, (*self.remarks, untested), sample_time=sample_time
        )

    @implemented_in("fmilin.export.files:save")
    def save(self, path: str | Path) -> None:
        """Write to a file, completely or not at all; the suffix of ``path`` picks the format: .nc, .mat, .npz or .json.

        UsageError: when the suffix is another one, or the file cannot be written.
        """
        ...

    @classmethod
    @implemented_in("fmilin.export.periodic_record:load")
    def load(cls, path: str | Path) -> PeriodicModel:
        """Return what :meth:`save` wrote to ``path``.

        ModelError: when the file holds no periodic model.
        """
        ...
