"""The three formulations: what there is to choose in each, and what each returns: a spectrum, and A, B, T."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError, join_first
from fmilin.formulations.form import Basis, ConstrainedForm, Lift, require_method
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.tolerances import NO_INERTIA, SYMMETRY_TOLERANCE


@dataclass(frozen=True, slots=True)
class MCS:
    """Minimal coordinate set: the equations projected on the velocities that the constraints leave free."""

    basis: str = "coordinates"  # how R with Phi_q R = 0 is found (:mod:`fmilin.formulations.form`)

    def __post_init__(self) -> None:
        require_method(self.basis)


@dataclass(frozen=True, slots=True)
class RCS:
    """Redundant coordinate set: coordinates and multipliers together, a descriptor pencil."""

    # where the spurious eigenvalues go: infinite with Phi_q and Phi_q' in A, zero with both in E
    spurious: Literal["infinite", "zero"] = "infinite"

    def __post_init__(self) -> None:
        if self.spurious not in ("infinite", "zero"):
            raise UsageError(f"Spurious eigenvalues can be at 'infinite' or 'zero', not at '{self.spurious}'.")


@dataclass(frozen=True, slots=True)
class UCS:
    """Unconstrained coordinate set: every constraint replaced by a penalty, a mass with a spring and a damper."""

    alpha: float = 1e6  # the penalty: what each constraint weighs, in units of the mass matrix. Xi = alpha I
    xi: float = 1.0  # damping ratio of a violation: Theta = 2 xi omega I
    omega: float = 10.0  # frequency of a violation in rad/s: Omega = omega^2 I
    # at an equilibrium: go where the penalized system rests, which takes a violation Phi = lambda/(alpha omega^2) to
    # carry the multipliers. By default the point stays, and the penalties carry lambda there (their springs are set
    # so): that is nearer to the constrained system, and the same at every point
    displaced: bool = False

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("omega", self.omega)):
            if not (math.isfinite(value) and value > 0):
                raise UsageError(
                    f"The penalty's {name} must be positive and finite, not {value:g}. Try alpha = 1e6, omega = 10."
                )
        if not (math.isfinite(self.xi) and self.xi >= 0):
            raise UsageError(f"The penalty's xi must be a damping ratio, 0 or more, not {self.xi:g}. Try 1.")


Formulation = MCS | RCS | UCS


def formulation_named(formulation: str | Formulation) -> Formulation:
    """Return the formulation with its usual options for ``"mcs"``, ``"rcs"`` or ``"ucs"``."""
    if isinstance(formulation, MCS | RCS | UCS):
        return formulation
    by_name: dict[str, Formulation] = {"mcs": MCS(), "rcs": RCS(), "ucs": UCS()}
    if formulation not in by_name:
        raise UsageError(f"'{formulation}' is not a formulation. Choose one of: mcs, rcs, ucs.")
    return by_name[formulation]


ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(TableRepr):
    """The eigenvalues of one formulation at one point."""

    _attributes = ".eigenvalues, .is_true, .vectors, .errors"

    formulation: str  # minimal, redundant or unconstrained coordinate set (González et al.)
    # how in words: ``"SVD"``, ``"QZ, Phi_q in A"``, ``"penalty, alpha = 1e+06, xi = 1, omega = 10"``, ``"shift-invert
    # around 10 rad/s"``
    method: str
    eigenvalues: ComplexArray  # (k,), in 1/s; ``inf`` for the infinite ones of a pencil. Sorted by modulus
    is_true: NDArray[np.bool_]  # (k,), which of them belong to the constrained system; the others are spurious
    # (2n, k), right eigenvectors in (dq, dq'), their largest entry 1; zero columns where an eigenvalue moves only
    # multipliers
    vectors: ComplexArray
    # (k,), how far each eigenvector is from Phi_q dq = 0 and Phi_q dq' = 0 (in motion: from Phi_q dq' + Phi_q_dot dq =
    # 0), over |Phi_q| and the length of the vector; NaN for zero columns
    violations: NDArray[np.float64]
    # (k,), estimated absolute error of each eigenvalue from rounding, in 1/s; NaN where nothing is known
    errors: NDArray[np.float64]
    # in independent coordinates, without the spurious eigenvalues. None where the formulation has none
    linear: LinearModel | None = None
    # of the eigenvalue problem and its parts: ``{"n": 5, "m": 4, "order": 14}``
    sizes: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @implemented_in("fmilin.report.formulations:show_spectrum")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def true(self) -> ComplexArray:
        """The eigenvalues of the constrained system, slowest first."""
        return self.eigenvalues[self.is_true]

    @property
    def spurious(self) -> ComplexArray:
        """The eigenvalues that the formulation added, slowest first."""
        return self.eigenvalues[~self.is_true]

    @property
    def labels(self) -> tuple[str, ...]:
        """``"true"`` or ``"spurious"`` for each eigenvalue."""
        return tuple("true" if t else "spurious" for t in self.is_true)

    def nearest(self, values: ComplexArray) -> ComplexArray:
        """Return, for each of ``values``, the true eigenvalue nearest to it."""
        if not len(self.true):
            return np.full(len(values), np.nan, dtype=np.complex128)
        indices = np.abs(self.true[:, None] - np.asarray(values)[None, :]).argmin(axis=0)
        nearest: ComplexArray = self.true[indices]
        return nearest


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """y' = A y + B u with (dq, dv) = T y, y = (S dq, S dv) = (z, z')."""

    A: FloatArray  # shape (2p, 2p)
    B: FloatArray  # shape (2p, nu)
    T: FloatArray  # shape (2n, 2p)
    basis: Basis
    error: float  # estimated relative error of A
    lift: Lift  # solves for the coordinates that z does not see


def without_inertia(inertia: float, largest: float, movers: str = "") -> NumericalError:
    """Return what is said of a mass matrix that is not positive definite on the free velocities."""
    return NumericalError(
        "The mass matrix is not positive definite on the velocities that the constraints leave free: "
        f"{f'the motion of {movers}' if movers else 'some motion'} has the inertia {inertia:.3g} (the largest is "
        f"{largest:.3g}). Give it a mass, or a constraint that couples it to one.",
        variable=movers.split(",", maxsplit=1)[0],
    )


def require_tangent_mass(form: ConstrainedForm, basis: Basis) -> None:
    """Raise NumericalError where R' M R is not a mass matrix."""
    M = form.M
    if not np.isfinite(M).all():
        raise NumericalError("The mass matrix holds values that are not numbers: choose another point.")
    uneven = np.abs(M - M.T)
    if np.max(uneven, initial=0.0) > SYMMETRY_TOLERANCE * np.max(np.abs(M), initial=0.0):
        i, j = np.unravel_index(int(np.argmax(uneven)), M.shape)
        raise NumericalError(
            f"The mass matrix is not symmetric: entries [{i}, {j}] and [{j}, {i}] are {M[i, j]:g} and {M[j, i]:g}. "
            "Write the equations so that M is symmetric: half of v' M v is the kinetic energy."
        )
    Mr: FloatArray = basis.R.T @ M @ basis.R
    if not len(Mr):
        return
    # Scaled to a diagonal of ones: the inertias of a long beam and of a small angle may differ by 1e13.
    diagonal = np.diagonal(Mr)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(scale[:, None] * Mr * scale)
    if np.min(diagonal) <= 0 or values[0] <= NO_INERTIA * values[-1]:
        z = np.eye(len(Mr))[int(np.argmin(diagonal))] if np.min(diagonal) <= 0 else scale * vectors[:, 0]
        raise without_inertia(float(z @ Mr @ z), np.max(diagonal), _movers(basis.R @ z, form.names))


def motion_vectors(vectors: ComplexArray, n: int) -> ComplexArray:
    """Return the (dq, dv) part of eigenvectors, its largest entry 1; zero where it is nothing but rounding."""
    motion = vectors[: 2 * n]
    if not motion.size:
        return motion
    largest = motion[np.argmax(np.abs(motion), axis=0), np.arange(motion.shape[1])]
    moves = np.abs(largest) > 1e-12 * np.linalg.norm(vectors, axis=0)
    return np.where(moves, motion / np.where(moves, largest, 1.0), 0.0)


def violations(form: ConstrainedForm, motion: ComplexArray) -> FloatArray:
    """Return how far each column (dq, dv) violates the constraints, relative to |Phi_q|; NaN for zero columns."""
    size, reach = np.linalg.norm(motion, axis=0), 1.0
    if form.is_sparse and form.m:
        entries = abs(form.Phi_q)
        reach = float(np.sqrt(entries.sum(axis=0).max() * entries.sum(axis=1).max()))
    elif form.Phi_q.size:
        reach = float(np.linalg.norm(form.Phi_q, 2))
    rate = form.constraint_rates(motion)
    broken = np.hypot(np.linalg.norm(form.Phi_q @ motion[: form.n], axis=0), np.linalg.norm(rate, axis=0))
    return np.where(size > 0, broken / (reach * np.where(size > 0, size, 1.0)), np.nan)


def _movers(direction: FloatArray, names: Sequence[str]) -> str:
    names = names or [f"q[{i + 1}]" for i in range(len(direction))]
    size = np.abs(direction) / np.max(np.abs(direction))
    order = [int(i) for i in np.argsort(-size, kind="stable") if size[i] > 1e-6]
    return join_first((names[i] for i in order), 4)
