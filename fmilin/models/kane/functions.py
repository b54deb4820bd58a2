"""The general form as compiled functions: constraints, rates, and the gradients of all equations at a point.

The order at a point is that of the equations: q' from the kinematic ones, then u' and lambda from f_a and
f_2 + f_3 + f_4, then every gradient with these values held, which is what the table of definitions asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fmilin.codegen.factorized import Factorized
from fmilin.codegen.program import Atom, Program
from fmilin.codegen.stacked import StackedSystems
from fmilin.codegen.staged import Backend, Staged, Visit, leaf_names, staged
from fmilin.derivatives.complex_step import ComplexStep, is_analytic
from fmilin.errors import NumericalError, UsageError
from fmilin.models.kane.blocks import AtomMatrix
from fmilin.models.kane.form import KaneForm, Row
from fmilin.signals import FloatArray

__all__ = ["Expansion", "KaneFunctions", "Numerics"]

Symbol = Any  # sympy.Symbol: sympy ships no types

LARGE = 200_000
"""Statements for the gradients beyond which a complex step is preferred: the compiler would take minutes."""

_GRADIENTS = ("auto", "program", "complex step")


@dataclass(frozen=True, slots=True)
class Numerics:
    """How the numbers are computed.

    Parameters
    ----------
    backend : Backend
        C or NumPy.
    gradients : {"auto", "program", "complex step"}
        ``"program"``: derivatives are statements of the compiled program. ``"complex step"``: the equations are
        evaluated once for each variable, exact to rounding, too; needs analytic functions. ``"auto"``: a program,
        unless it became very large.
    """

    backend: Backend = field(default_factory=Backend)
    gradients: Literal["auto", "program", "complex step"] = "auto"

    def __post_init__(self) -> None:
        if self.gradients not in _GRADIENTS:
            raise UsageError(f"'{self.gradients}' is no way to gradients: use {', '.join(_GRADIENTS)}.")


@dataclass(frozen=True)
class Expansion:
    """The equations and their gradients at a stack of k points: everything that the linearization is made of.

    The gradients of the rows of (f_c, f_v, f_0 + f_1, f_a, f_2 + f_3 + f_4) stand in one matrix J whose columns are
    (t, q, q', u, r), at the values of q', u' and lambda that solve the equations.

    Attributes
    ----------
    constraints : array, shape (k, l + m)
        Values of f_c and f_v.
    rates : array, shape (k, n + o)
        q' and u'.
    multipliers : array, shape (k, multipliers)
    J : array, shape (k, l + m + n + o + multipliers, 1 + 2 n + o + s)
    kinematic : array, shape (k, n, n)
        M~qq.
    coefficients : array, shape (k, o + multipliers, o + multipliers)
        [M~uuc, 0; M~uud, M~uld].
    solve : callable
        M~^-1 b for b (k, n + o + multipliers, columns).
    """

    constraints: FloatArray
    rates: FloatArray
    multipliers: FloatArray
    J: FloatArray
    kinematic: FloatArray
    coefficients: FloatArray
    solve: Callable[[FloatArray], FloatArray]

    def __getitem__(self, points: slice) -> Expansion:
        """Return the expansion at some of the points."""
        count = len(self.J)

        def solve(b: FloatArray) -> FloatArray:
            every = np.zeros((count, *b.shape[1:]))
            every[points] = b
            return self.solve(every)[points]

        if points == slice(0, count):
            return self
        return Expansion(
            self.constraints[points],
            self.rates[points],
            self.multipliers[points],
            self.J[points],
            self.kinematic[points],
            self.coefficients[points],
            solve,
        )


class KaneFunctions:
    """Compiled once for a form; values of inputs and parameters are arguments.

    Parameters
    ----------
    form : KaneForm
    numerics : Numerics

    Attributes
    ----------
    leaves : tuple of Symbol
        What a point consists of: (t, q, u, r, p, q', u', lambda); the rates are filled in here.
    columns : tuple of Symbol
        (t, q, q', u, r): what J is the gradient for.
    """

    def __init__(self, form: KaneForm, numerics: Numerics) -> None:
        self.form = form
        self.numerics = numerics
        self.leaves = (form.time, *form.states, *form.inputs, *form.parameters, *form.unknowns)
        self.columns = (form.time, *form.q, *form.q_dot, *form.u, *form.inputs)
        self.first_unknown = len(self.leaves) - len(form.unknowns)
        self.count = len(form.f_c) + len(form.velocity)
        """l + m."""

    def at(self, known: FloatArray) -> Expansion:
        """Return the expansion at points.

        Parameters
        ----------
        known : array, shape (k, leaves without rates)
            (t, q, u, r, p) at each point.

        Raises
        ------
        NumericalError
            When the rates are not determined.
        """
        parts, form, n, first = self._parts, self.form, len(self.form.q), self.first_unknown
        visit = self._visit(known)
        constraints = visit.run("constraints")
        K, k = parts.kinematic_block.cut(visit.run("kinematics"))
        M_qq = None if parts.kinematic_block.is_identity else StackedSystems(K)
        if M_qq is not None and len(M_qq.singular):
            raise self._singular(K[M_qq.singular[0]], form.q_dot, "kinematic")
        q_dot = -k if M_qq is None else M_qq.solve(-k[:, :, None])[:, :, 0]
        visit.leaves[:, first : first + n] = q_dot
        W, rest = parts.dynamic_block.cut(visit.run("dynamics"))
        M_uu = StackedSystems(W)
        if len(M_uu.singular):
            raise self._singular(W[M_uu.singular[0]], (*form.u_dot, *form.multipliers), "dynamic")
        w = M_uu.solve(-rest[:, :, None])[:, :, 0]
        visit.leaves[:, first + n :] = w
        J = self._gradients(visit, constraints)
        lower = J[:, self.count + n :, 1 + n : 1 + 2 * n]  # [M~uqc; M~uqd]

        def solve(b: FloatArray) -> FloatArray:
            x = b[:, :n] if M_qq is None else M_qq.solve(b[:, :n])
            return np.concatenate((x, M_uu.solve(b[:, n:] - lower @ x)), axis=1)

        o = len(form.u)
        rates = np.concatenate((q_dot, w[:, :o]), axis=1)
        return Expansion(constraints[:, : self.count], rates, w[:, o:], J, K, W, solve)

    def solve(self, known: FloatArray) -> FloatArray:
        """Return (q', u', lambda) at one point (t, q, u, r, p), shape (n + o + k,).

        Raises
        ------
        NumericalError
            When the rates are not determined.
        """
        parts, form, n, first = self._parts, self.form, len(self.form.q), self.first_unknown
        visit = self._visit(known[None])
        visit.run("constraints")
        K, k = parts.kinematic_block.cut(visit.run("kinematics")[0])
        q_dot = -k
        if not parts.kinematic_block.is_identity:
            q_dot = self._factorized(K, form.q_dot, "kinematic").solve(-k)
        visit.leaves[0, first : first + n] = q_dot
        W, rest = parts.dynamic_block.cut(visit.run("dynamics")[0])
        w = self._factorized(W, (*form.u_dot, *form.multipliers), "dynamic").solve(-rest)
        return np.concatenate((q_dot, w))

    def constraints(self, known: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f_c and f_v, shape (l + m,), and their gradients, shape (l + m, columns), at (t, q, u, r, p)."""
        visit = self._visit(known[None])
        values = visit.run("constraints")[0]
        if self._complex is None:
            return values[: self.count].copy(), self._parts.constraint_block.filled(values[self.count :])
        return values.copy(), self._complex(visit.leaves[0])[: self.count]

    def left_hand_sides(self, known: FloatArray, given: Mapping[int, float]) -> tuple[FloatArray, FloatArray]:
        """Return (f_0 + f_1, f_a, f_2 + f_3 + f_4) and the sizes of their terms, each shape (n + o + k,).

        Sizes are NaN in the rows that are not defined at the point, whatever the rates.

        Parameters
        ----------
        known : array
            (t, q, u, r, p).
        given : mapping of int to float
            Entries of (q', u') that are not solved for.
        """
        parts, n = self._parts, len(self.form.q)
        w = self.solve(known)
        w[list(given)] = list(given.values())
        visit = self._visit(known[None])
        visit.run("constraints")
        visit.leaves[0, self.first_unknown : self.first_unknown + n] = w[:n]
        K, k = parts.kinematic_block.cut(visit.run("kinematics")[0])
        W, rest = parts.dynamic_block.cut(visit.run("dynamics")[0])
        left = np.concatenate((K @ w[:n] + k, W @ w[n:] + rest))
        known_rates = np.nan_to_num(np.abs(w))
        sizes = np.concatenate((np.abs(K) @ known_rates[:n] + np.abs(k), np.abs(W) @ known_rates[n:] + np.abs(rest)))
        return left, sizes

    @property
    def backend(self) -> str:
        """What computes: ``"c"`` or ``"numpy"``."""
        return self._staged.kind

    def _visit(self, known: FloatArray) -> Visit:
        visit = self._staged.visit(len(known))
        visit.leaves[:, : self.first_unknown] = known
        visit.leaves[:, self.first_unknown :] = 0.0
        return visit

    def _gradients(self, visit: Visit, constraints: FloatArray) -> FloatArray:
        if self._complex is not None:
            return np.array([self._complex(leaves) for leaves in visit.leaves])
        upper = self._parts.constraint_block.filled(constraints[:, self.count :])
        lower = self._parts.gradient_block.filled(visit.run("gradients"))
        return np.concatenate((upper, lower), axis=1)

    def _factorized(self, W: FloatArray, symbols: Sequence[Symbol], which: str) -> Factorized:
        factors = Factorized(W)
        if factors.is_singular:
            raise self._singular(W, symbols, which)
        return factors

    def _singular(self, W: FloatArray, symbols: Sequence[Symbol], which: str) -> NumericalError:
        factors = Factorized(W)
        direction = np.abs(factors.null_vector())
        loose = [str(symbols[i]) for i in np.argsort(-direction, kind="stable") if direction[i] > 1e-6]
        shown = ", ".join(loose[:6]) + (", ..." if len(loose) > 6 else "")
        return NumericalError(
            f"The {which} equations have no unique solution at this point: the matrix that multiplies "
            f"{len(symbols)} rates is singular (reciprocal condition number {factors.rcond:.1e}) and leaves {shown} "
            "undetermined. Constraints depend on each other here, a mass is missing, or angles meet their "
            "singularity: choose another point, or describe the system with other coordinates.",
            condition_number=1.0 / factors.rcond if factors.rcond > 0 else float("inf"),
            variable=loose[0],
        )

    # -- what is compiled --------------------------------------------------------------------------

    @cached_property
    def _parts(self) -> _Parts:
        return _Parts(self.form, self.leaves, self.columns, with_gradients=self.numerics.gradients != "complex step")

    @cached_property
    def _complex(self) -> ComplexStep | None:
        """The gradients by complex steps, where these were asked for or the program became too large."""
        parts, wanted = self._parts, self.numerics.gradients
        if parts.has_gradients:
            return None
        if not is_analytic(parts.program, parts.equations):
            if wanted == "complex step":
                raise UsageError(
                    "A complex step needs analytic functions, and the equations contain absolute values, signs or "
                    "case distinctions: take the gradients as a program."
                )
            parts.add_gradients()
            return None
        places = [self.leaves.index(s) for s in self.columns]
        return ComplexStep(parts.program, parts.equations, places, self.numerics.backend)

    @cached_property
    def _staged(self) -> Staged:
        parts, _ = self._parts, self._complex
        return staged(parts.program, parts.stages(), self.numerics.backend)


class _Parts:
    """The program of a form, and what belongs to which stage."""

    def __init__(
        self, form: KaneForm, leaves: Sequence[Symbol], columns: Sequence[Symbol], *, with_gradients: bool
    ) -> None:
        self.program = program = Program(leaf_names(leaves))
        self._form, self._columns = form, columns
        self._f_c = [program.add(e) for e in form.f_c]
        self._f_v = [self._total(row) for row in form.velocity]
        self._k = [program.add(row.rest) for row in form.kinematics]
        lower = (*form.acceleration, *form.dynamics)
        self._rest = [program.add(row.rest) for row in lower]
        self.kinematic_block = AtomMatrix.of_rows(program, form.kinematics, form.q_dot)
        self.dynamic_block = AtomMatrix.of_rows(program, lower, (*form.u_dot, *form.multipliers))
        rows = (*form.kinematics, *lower)
        self.equations = [*self._f_c, *self._f_v, *(self._total(row) for row in rows)]
        self.has_gradients = with_gradients and self._size_of_gradients() <= LARGE
        if self.has_gradients:
            self.add_gradients()

    def add_gradients(self) -> None:
        """Append the gradients of all equations to the program."""
        count, width = len(self._f_c) + len(self._f_v), len(self._columns)
        gradients = self.program.gradients(self.equations, self._columns)
        rows = [{(i, j): atom for j, atom in row.items()} for i, row in enumerate(gradients)]
        upper = {place: atom for row in rows[:count] for place, atom in row.items()}
        lower = {(i - count, j): atom for row in rows[count:] for (i, j), atom in row.items()}
        self.constraint_block = AtomMatrix((count, width), upper)
        self.gradient_block = AtomMatrix((len(rows) - count, width), lower)
        self.has_gradients = True

    def stages(self) -> dict[str, list[Atom]]:
        """Return the stages in their order."""
        stages = {
            "constraints": [*self._f_c, *self._f_v],
            "kinematics": [*self.kinematic_block.atoms, *self._k],
            "dynamics": [*self.dynamic_block.atoms, *self._rest],
        }
        if self.has_gradients:
            stages["constraints"] += self.constraint_block.atoms
            stages["gradients"] = self.gradient_block.atoms
        return stages

    def _total(self, row: Row) -> Atom:
        program = self.program
        terms = [program.product(program.add(c), program.leaves[w]) for w, c in row.coefficients.items()]
        return program.total([program.add(row.rest), *terms])

    def _size_of_gradients(self) -> int:
        """Return how many partial derivatives have to be carried through the program, about two statements each."""
        program = self.program
        mask = sum(program.reach(program.leaves[s]) for s in self._columns)
        return 2 * sum((program.reach(s) & mask).bit_count() for s in program.statements)
