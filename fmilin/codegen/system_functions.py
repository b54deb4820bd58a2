"""A system as NumPy functions: values and exact derivatives, at one point or over a batch of points.

W w = r is solved, and dw = W^-1 (e_s ds), e = r - W w with w held, dx' = f_s ds + f_w dw, dc = c_s ds + c_w dw.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.compiler import PRINT_SECONDS_PER_INSTRUCTION, CompilationBudget, library_seconds
from fmilin.codegen.graph_evaluator import Backend, Evaluator
from fmilin.codegen.graph_rounding import compute_bounds, find_rounding
from fmilin.codegen.implicit import ImplicitSystem, Point, jacobian, solve_implicit
from fmilin.codegen.vectorized import VectorizedSource
from fmilin.codegen.vectorized_code import ReducedDerivatives, Reduction, VectorizedCode
from fmilin.errors import ModelError, NumericalError
from fmilin.numerics.factors import DenseFactors, Factors, require_regular
from fmilin.signals import FloatArray

SX = Any  # casadi.SX: casadi ships no types
MAX_JUDGED_INSTRUCTIONS = 20_000  # instructions of W up to which its entries are judged: some hundredths of a second
_NOTHING = DenseFactors(np.empty((0, 0))), np.empty(0)

_KINKED = {
    *(ca.OP_FABS, ca.OP_SIGN, ca.OP_FMIN, ca.OP_FMAX, ca.OP_FLOOR, ca.OP_CEIL, ca.OP_FMOD, ca.OP_COPYSIGN),
    *(ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO),
    *(ca.OP_ATAN2, ca.OP_TAN),
}
"""Operations with jumps, or with jumps of their derivatives, that return finite numbers there."""


def has_kinks(function: Any) -> bool:
    """Whether a ``casadi.Function`` has an operation with jumps, or with jumps of its derivatives."""
    return any(function.instruction_id(k) in _KINKED for k in range(function.n_instructions()))


class SystemFunctions:
    """An ``ImplicitSystem`` that can be evaluated, with parameters given in every call; ``factors`` factorizes W."""

    def __init__(self, system: ImplicitSystem, factors: Callable[[FloatArray], Factors] = DenseFactors) -> None:
        self.system = system
        self._factors = factors

    def values(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x', shape (N,), and the outputs, shape (ny,); x (N,), u (nu,), p (np,)."""
        _, w = self._solve(t, x, u, p)
        f, c = self._right_sides(t, x, u, p, w)
        return f[:, 0], c[:, 0]

    def unknowns(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return w, shape (nw,)."""
        return self._solve(t, x, u, p)[1]

    def equations(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W, shape (nw, nw), and r, shape (nw,)."""
        W, r = self._equations(t, x, u, p)
        return W, r[:, 0]

    def partials(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], w: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return d(r - W w)/ds (nw, N + nu), w held, and the outputs' d/ds and d/dw (ny, nw), for s = (x, u)."""
        e_s, _, _, c_s, c_w = self._partials(*point, w)
        return e_s, c_s, c_w

    def products(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of x' (N, k) and outputs (ny, k) along the columns of dx (N, k) and du (nu, k)."""
        W, w = self._solve(*point)
        self._require_no_rounding(point, w)
        e_s, f_s, f_w, c_s, c_w = self._partials(*point, w)
        ds = np.concatenate((dx, du))
        dw = W.solve(e_s @ ds)
        with np.errstate(invalid="ignore"):  # where a slope is infinite; who asked looks
            return f_s @ ds + f_w @ dw, c_s @ ds + c_w @ dw

    def _solve(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[Factors, FloatArray]:
        if not self.system.unknown_names:
            return _NOTHING
        if self.system.guess is not None:
            return solve_implicit(self._linearize, self.system.guess, (t, x, u, p), self.system.name)
        W, r = self._equations(t, x, u, p)
        factors = self.solver(W, t)
        return factors, factors.solve(r[:, 0])

    def solver(self, W: Any, t: float) -> Factors:
        """Return the factors of W; a singular one is rejected."""
        factors = self._factors(W)
        require_regular(factors, f"The equations of '{self.system.name}'", self.system.unknown_names, f"at time {t:g}")
        return factors

    def _require_no_rounding(self, point: Point, w: FloatArray) -> None:
        """Reject W where only entries that are rounding of their terms make it regular, as a mass a + b - c.

        Scaled rows and columns hide such an entry from the condition number. It is examined once for each set of
        parameters, as it costs some evaluations.
        """
        if (key := point[3].tobytes()) in self._without_rounding or not self.system.unknown_names:
            return
        self._without_rounding.add(key)
        matrix = self._matrix
        if matrix.n_instructions() > MAX_JUDGED_INSTRUCTIONS:
            return
        arguments: list[FloatArray | float] = [*point]
        arguments += [] if self.system.guess is None else [w]
        values, bounds = compute_bounds(matrix, *arguments)
        rounding = find_rounding(values, bounds) & (values != 0.0)
        if not rounding.any():
            return
        rows, columns = matrix.sparsity_out(0).get_triplet()
        W: FloatArray = np.zeros(matrix.size_out(0))
        W[rows, columns] = np.where(rounding, 0.0, values)
        if not DenseFactors(W).is_singular:
            return
        k = int(np.flatnonzero(rounding)[0])
        name = self.system.unknown_names[columns[k]]
        raise NumericalError(
            f"Rounding decides about '{self.system.name}': the coefficient of '{name}' in row {rows[k] + 1} of its "
            f"linear equations is {values[k]:.2g}, which is the rounding error of terms of size {bounds[k]:.2g}; "
            f"without it the motion is not determined. Change the parameters, or write a model without '{name}' "
            "(DaeModel).",
            variable=name,
        )

    @cached_property
    def _without_rounding(self) -> set[bytes]:
        """Parameters for which W has been examined."""
        return set()

    @cached_property
    def _matrix(self) -> Any:
        """W alone, as a function of CasADi."""
        return ca.Function("W", self._arguments, [ca.sparsify(self.system.matrix)])

    def _linearize(self, point: Point, w: FloatArray) -> tuple[Factors, FloatArray]:
        W, r = self._equations(*point, w)
        return self.solver(W, point[0]), r[:, 0]

    @property
    def _arguments(self) -> list[SX]:
        """What W and r are functions of."""
        s = self.system
        return [*s.arguments, *([] if s.guess is None else [s.unknowns])]

    @cached_property
    def _equations(self) -> Any:
        return Evaluator(self._arguments, [self.system.matrix, self.system.right_hand_side])

    @cached_property
    def _right_sides(self) -> Evaluator:
        s = self.system
        return Evaluator([*s.arguments, s.unknowns], [s.derivatives, s.outputs])

    @cached_property
    def _partials(self) -> Evaluator:
        s = self.system
        of_values = [jacobian(e, v) for e in (s.derivatives, s.outputs) for v in (s.motion, s.unknowns)]
        return Evaluator([*s.arguments, s.unknowns], [s.motion_slopes, *of_values])


class StackFunctions:
    """Values and derivatives by (x, u) of quantities z(t, x, u, p, w), (nz, 1), with W w = r, at many points.

    The last quantities, as many as ``invariants``, determine some of the states from the others.

    Compiled as soon as that pays; CasADi and LAPACK answer until then, and where elimination is not good enough.
    """

    def __init__(
        self, system: ImplicitSystem, quantities: SX, backend: Backend | None = None, *, invariants: int = 0
    ) -> None:
        self._system, self._quantities, self._invariants = system, quantities, invariants
        self._backend = backend or Backend()
        s, w = system, system.unknowns
        self._sizes = [a.numel() for a in s.arguments]
        parts = [quantities, jacobian(quantities, s.motion)]
        if w.numel():
            arguments = s.arguments if s.guess is None else [*s.arguments, w]
            self._equations = Evaluator(arguments, [s.matrix, s.right_hand_side], Backend("casadi"))
            parts = [*parts, jacobian(quantities, w), s.motion_slopes]
        self._parts = Evaluator([*s.arguments, w], parts, Backend("casadi"))
        self._budget = CompilationBudget.of_graph(self._parts.function.n_instructions())
        self._compiled: VectorizedCode | None = None
        self._tried = self._backend.kind == "casadi"
        if self._backend.kind == "c":
            self._compiled, self._tried = self._source.compile(), True

    @property
    def smooth(self) -> bool:
        """Whether no operation of the equations and quantities can have a kink."""
        functions = [self._parts.function, *([self._equations.function] if self._system.unknowns.numel() else [])]
        return not any(map(has_kinks, functions))

    @property
    def instructions(self) -> int:
        """Of the quantities and derivatives."""
        return int(self._parts.function.n_instructions())

    @property
    def kind(self) -> str:
        """The code in use: ``"casadi"`` or ``"c"``."""
        return "casadi" if self._compiled is None else "c"

    @cached_property
    def _one(self) -> SystemFunctions:
        """The system at one point, for unknowns that are found by iteration."""
        return SystemFunctions(self._system)

    @cached_property
    def _source(self) -> VectorizedSource:
        return VectorizedSource(self._system, self._quantities, self._backend.compiler, self._invariants)

    def write_device_source(self) -> str:
        """Return the code for a GPU; see :meth:`VectorizedSource.write_device_source`."""
        return self._source.write_device_source()

    def prices(self) -> Iterator[float]:
        """Yield the seconds of what is to be done for compiled code, one part after the other, as far as is known."""
        instructions = self._parts.function.n_instructions()
        yield PRINT_SECONDS_PER_INSTRUCTION * instructions
        with suppress(ModelError):  # no compiler, or a matrix that is not for it: to be found out at no price
            yield library_seconds(instructions, is_built=self._source.is_built)

    def compile(self) -> bool:
        """Compile now if that has not been tried; return whether there is compiled code."""
        if not self._tried:
            self._tried = True
            try:
                self._compiled = self._source.compile()
            except (ModelError, OSError) as error:  # no compiler, or a matrix that is not for it
                logging.getLogger(__name__).info("Compiled code would be quicker. %s", error)
        return self._compiled is not None

    def at_one_point(self) -> tuple[FloatArray, FloatArray, FloatArray, Callable[[], bool]] | None:
        """Compile; return memory for s = (t, x, u, p), z and dz/d(x, u), and the function that fills it, or None."""
        return self._compiled.at_one_point() if self.compile() and self._compiled is not None else None

    def __call__(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, p: FloatArray, *, threads: int = 1
    ) -> tuple[FloatArray, FloatArray]:
        """Return z (k, nz) and dz/d(x, u) (k, nz, N + nu) at points x (k, N), u (k, nu), p (k, np); t (k, 1)."""
        if self._budget.count_toward_compilation(len(x)):
            self.compile()
        if self._compiled is None:
            return self._evaluate_interpreted(t, x, u, p)
        z, slopes, good = self._compiled(self._join(t, x, u, p), threads)
        if not good.all():
            bad = np.flatnonzero(~good)
            when = t[bad] if isinstance(t, np.ndarray) else t
            z[bad], slopes[bad] = self._evaluate_interpreted(when, x[bad], u[bad], p[bad])
        return z, slopes

    def values(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, p: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]] | None:
        """Return z (k, nz) alone and where it is good (k,), where there is compiled code by now; else None."""
        return None if self._compiled is None else self._compiled.values(self._join(t, x, u, p))

    def along(
        self,
        points: tuple[FloatArray | float, FloatArray, FloatArray, FloatArray],
        reduction: Reduction,
        limit: float,
        *,
        threads: int = 1,
    ) -> ReducedDerivatives | None:
        """Return z and derivatives along kept states at points (t, x, u, p) by compiled code; None without it."""
        return None if self._compiled is None else self._compiled.along(self._join(*points), reduction, limit, threads)

    def reach(
        self,
        points: tuple[FloatArray | float, FloatArray, FloatArray, FloatArray],
        reduction: Reduction,
        sizes: FloatArray,
        limit: float,
        iterations: int,
    ) -> tuple[FloatArray, NDArray[np.bool_]] | None:
        """Return states x (k, N) at which the invariants vanish, with the kept states of ``points``, and where.

        Newton's method ends when a step is at most ``limit`` in ``sizes`` (k, N). None without compiled code by now,
        and where invariants need the unknowns.
        """
        if self._compiled is None or not self._compiled.solves_invariants:
            return None
        s = self._join(*points)
        is_reached = self._compiled.reach(s, reduction, np.ascontiguousarray(sizes), limit, iterations)
        first, n = self._sizes[0], self._sizes[1]
        return s[:, first : first + n], is_reached

    def _join(self, t: FloatArray | float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return the arguments as the rows (k, ns) that compiled code takes."""
        s = np.empty((len(x), sum(self._sizes)))
        first = 0
        for size, values in zip(self._sizes, (t, x, u, p), strict=True):
            s[:, first : first + size] = values
            first += size
        return s

    def _evaluate_interpreted(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, p: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if not self._system.unknowns.numel():
            z, slopes = self._parts.at_points(t, x, u, p, np.zeros((len(x), 0)))
            return z[..., 0], np.ascontiguousarray(slopes)
        if self._system.guess is None:
            W, r = self._equations.at_points(t, x, u, p)
            w = np.asarray(np.linalg.solve(W, r)[..., 0], dtype=np.float64)
        else:
            times, one = np.broadcast_to(t, (len(x), 1)), self._one
            w = np.array([one.unknowns(float(times[k, 0]), x[k], u[k], p[k]) for k in range(len(x))])
            W, _ = self._equations.at_points(t, x, u, p, w)
        z, z_s, z_w, e = self._parts.at_points(t, x, u, p, w)
        return z[..., 0], z_s + z_w @ np.linalg.solve(W, e)
