"""Kane's equations as a Model, with the exact linearization procedure of Peterson et al."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sympy

from fmilin.codegen.implicit import ImplicitSystem
from fmilin.codegen.system_functions import SystemFunctions
from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.frame import kept_states
from fmilin.manifold.operating_points import require_sizes
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.model.interface import OperatingPoint
from fmilin.models.declaration import Declaration, ModelArguments, assemble_system
from fmilin.models.kane.kane_equations import KaneEquations, build_form, kane_form
from fmilin.models.kane.kane_form import KaneForm, build_explicit_equations, list_constraints
from fmilin.models.kane.kane_functions import Expansion, KaneFunctions, Numerics, check_constraints
from fmilin.models.kane.kane_linearization import (
    Matrices,
    Partition,
    SymbolicLinearization,
    dependence,
    eliminate,
    linearize_symbolic,
)
from fmilin.models.labels import Expr, Labels, Name
from fmilin.models.native_engine import InterfaceChoice
from fmilin.models.native_model import NativeModel
from fmilin.models.symbolic import SymbolicModel, SystemEngine
from fmilin.numerics.factors import DenseFactors, Factors, require_regular
from fmilin.signals import FloatArray
from fmilin.support.kinds import containers_checked
from fmilin.tolerances import MAX_COORDINATE_CONDITION_NUMBER

if TYPE_CHECKING:
    from sympy.physics.mechanics import KanesMethod, LagrangesMethod

MAX_BATCH_POINTS = 256  # points of a path that are computed together


class KaneNumeric(SystemFunctions):
    """The functions of W w = r, with the kinematic equations first: where these are singular, that is said."""

    def __init__(self, system: ImplicitSystem, coordinate_rates: Sequence[str]) -> None:
        super().__init__(system)
        self.coordinate_rates = coordinate_rates

    def solver(self, W: Any, t: float) -> Factors:
        """Return the factors of W; singular kinematic or dynamic equations are rejected."""
        try:
            return super().solver(W, t)
        except NumericalError:
            names = self.system.unknown_names
            n = sum(name in names for name in self.coordinate_rates)
            require_regular(DenseFactors(W[:n, :n]), "The kinematic equations", names[:n])
            require_regular(DenseFactors(W[n:, n:]), "The dynamic equations", names[n:])
            raise


class KaneEngine(SystemEngine):
    """Kane's equations: their form as functions, shared by all choices of inputs and outputs, and W w = r."""

    evaluation_seconds = 1e-4
    has_all_derivatives = True

    def __init__(self, system: SymbolicSystem, functions: KaneFunctions) -> None:
        super().__init__(system)
        self.form_functions, self.form = functions, functions.form
        form, n = functions.form, len(functions.form.q)
        self.freedoms_known = not system.constraints and n == len(form.u)
        declared_symbols = [str(s) for s in (form.time, *form.states, *system.inputs, *system.parameters)]
        self._order = np.array([declared_symbols.index(str(s)) for s in functions.symbols], dtype=np.intp)
        # where the inputs stand among the columns of J
        self.input_columns = [1 + n + len(form.states) + form.inputs.index(r) for r in system.inputs]

    def arguments(self, t: FloatArray | float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return points t (...), x (..., N), u (..., nu) as the functions of the form take them: (t, q, u, r, p)."""
        p = np.broadcast_to(self.p, (*x.shape[:-1], len(self.p)))
        return np.concatenate((np.asarray(t)[..., None], x, u, p), axis=-1)[..., self._order]

    @cached_property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether no function in the equations and outputs has a kink."""
        return are_smooth((*self.form.expressions, *self.system.outputs))

    def functions(self, system: ImplicitSystem) -> KaneNumeric:
        """Return functions that say which equations are singular."""
        return KaneNumeric(system, [str(w) for w in self.form.q_dot])


def build_engine(
    declaration: Declaration, form: KaneForm, arguments: ModelArguments, numerics: Numerics | None
) -> KaneEngine:
    """Return the engine of a form, checked against its own constraints."""
    declaration.raise_problems()
    equations = build_explicit_equations(form)
    declaration.derived |= equations.derived_names()
    system = assemble_system(declaration, equations, list_constraints(form, equations), arguments)
    functions = KaneFunctions(form, numerics or Numerics())
    check_constraints(functions, system)
    return KaneEngine(system, functions)


_KINKED = (
    sympy.Abs, sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.Mod, sympy.Piecewise,
    sympy.Min, sympy.Max,
)  # fmt: skip


@lru_cache(maxsize=16)
def are_smooth(expressions: tuple[Any, ...]) -> bool:
    """Whether no function in sympy expressions has a kink: no absolute values, signs or case distinctions."""
    stack, visited = list(expressions), set()
    while stack:  # what expressions share is examined once
        e = stack.pop()
        if isinstance(e, _KINKED):
            return False
        if e not in visited:
            visited.add(e)
            stack.extend(e.args)
    return True


class KaneModel(SymbolicModel):
    """The general form of Peterson et al. (table 1): f_c, f_v, f_a, f_0 .. f_3 with coordinates q and speeds u.

    The states are (q, u), dependent ones included. Rates q', u' follow from

        f_0(q, q', t) + f_1(q, u, t) = 0,   f_2(q, u', t) + f_3(q, q', u, r, t) = 0,   f_a(q, q', u, u', t) = 0,

    and the constraints are f_c(q, t) = 0 and f_v(q, u, t) = 0. Everything is evaluated numerically: the equations
    and their first derivatives become one graph without repeated subexpressions, so that a further point costs a
    fraction of a millisecond. Exact directional derivatives are the blocks M~, A~ and B~ of the source,
    and :func:`fmilin.linearize` takes the procedure of the source.

    Parameters
    ----------
    name : str
    equations : KaneEquations
    inputs : sequence
        r. An input ``der(r)`` is the time derivative of the input ``r``: a prescribed motion.
    parameters, outputs, start : mapping
        Values, expressions (``der(q)``, ``der(u)`` and multipliers, too), and start values of states and inputs by
        symbol or name; these are 0 where not given.
    labels : Labels
    numerics : Numerics

    Raises
    ------
    UsageError
        When sizes do not fit, a symbol has no value, or an equation is not linear where the form asks for it; the
        message lists everything.
    ConstraintError
        When f_a are not the derivatives of f_v, or f_v does not contain those of f_c.

    Examples
    --------
    A skate that may not move sideways, with its lateral speed kept as a dependent one:

    >>> import fmilin as fl
    >>> skate = KaneModel("skate", KaneEquations(
    ...     q=["x", "y", "psi"], u=["v", "s", "w"],
    ...     f_0=["der(x)", "der(y)", "der(psi)"],
    ...     f_1=["-(v*cos(psi) - s*sin(psi))", "-(v*sin(psi) + s*cos(psi))", "-w"],
    ...     f_v=["s"], f_2=["m*der(v)", "J*der(w)"], f_3=["-m*s*w - F", "0"]),
    ...     inputs=["F"], parameters={"m": 2, "J": 1}, start={"v": 3})
    >>> lin = fl.linearize(skate, independent=["x", "y", "psi", "v", "w"])
    >>> lin.A[1].tolist()  # y' = v sin(psi)
    [0.0, 0.0, 3.0, 0.0, 0.0]
    """

    engine: KaneEngine
    independent_by_default = True

    @containers_checked
    def __init__(
        self,
        name: str,
        equations: KaneEquations,
        *,
        inputs: Sequence[Name] = (),
        parameters: Mapping[Name, float] | None = None,
        outputs: Mapping[str, Expr] | None = None,
        start: Mapping[Name, float] | None = None,
        labels: Labels | None = None,
        numerics: Numerics | None = None,
    ) -> None:
        declaration = Declaration(name)
        arguments = ModelArguments(inputs, parameters or {}, outputs or {}, start or {}, labels or Labels())
        form = build_form(declaration, equations, arguments.inputs, arguments.parameters)
        NativeModel.__init__(self, build_engine(declaration, form, arguments, numerics))

    @classmethod
    def from_sympy(
        cls,
        method: KanesMethod | LagrangesMethod,
        *,
        name: str = "mechanism",
        inputs: Sequence[Name] | None = None,
        parameters: Mapping[Name, float] | None = None,
        outputs: Mapping[str, Expr] | None = None,
        start: Mapping[Name, float] | None = None,
        labels: Labels | None = None,
        numerics: Numerics | None = None,
        reactions: Sequence[Name] = (),
    ) -> Self:
        """Return the model of a ``KanesMethod`` or ``LagrangesMethod`` object of ``sympy.physics.mechanics``.

        Functions of time keep their names without ``(t)``. The speeds of Lagrange's equations are called ``q_dot`` for
        a coordinate ``q``. Specified functions of time are inputs, their derivatives the inputs ``der(r)`` and
        ``der(der(r))``. With auxiliary speeds, the forces that only the auxiliary equations contain are solved for, and
        can be asked for as outputs by name. Rates that were left in the equations are replaced or solved for. Raises
        UsageError or ConstraintError as for the class.

        Parameters
        ----------
        method : KanesMethod or LagrangesMethod
        name : str
        inputs : sequence, optional
            Their order; all specified functions that appear, by name, when left out. Plain symbols may be made inputs.
        parameters, outputs, start, labels, numerics
            As for the class, with functions of time or their names. The independent states of a ``KanesMethod`` are
            recommended unless ``labels`` says otherwise.
        reactions : sequence
            The unknown forces of the auxiliary equations, where they look like inputs.
        """
        from fmilin.models.kane.conversion import read_sympy_equations

        equations = read_sympy_equations(method, reactions)
        arguments = ModelArguments(inputs or (), parameters or {}, outputs or {}, start or {}, labels or Labels())
        declaration = Declaration(name)
        form, arguments = kane_form(declaration, equations, arguments)
        return cls._of(build_engine(declaration, form, arguments, numerics), InterfaceChoice())

    @property
    def form(self) -> KaneForm:
        """The equations in plain symbols."""
        return self.engine.form

    def matrices(
        self, point: OperatingPoint | None = None, *, independent: Sequence[str] | Partition | None = None
    ) -> Matrices:
        """Return A and B with all that leads to them: C_0, C_1, C_2, P', A', B'.

        The ``point`` is not verified. It, ``independent`` and errors as for :meth:`matrices_along`.
        """
        return self.matrices_along([self.start if point is None else point], independent=independent)[0]

    def matrices_along(
        self, points: Sequence[OperatingPoint], *, independent: Sequence[str] | Partition | None = None
    ) -> list[Matrices]:
        """Return the matrices at many points at once, which are not verified: the quick way for sweeps and paths.

        ``independent`` are P states to keep, n - l of them coordinates, or a Partition: by default the recommended
        ones, else those that a partition keeps at the first point. UsageError or UnknownNameError where they are
        unknown or too few or many, NumericalError where they do not determine the others, or rates are undetermined.
        """
        for point in points:
            require_sizes(self, point)
        matrices: list[Matrices] = []
        partition = self._choose_partition(points, independent)
        for first in range(0, len(points), MAX_BATCH_POINTS):
            batch = points[first : first + MAX_BATCH_POINTS]
            t, x, u = ([getattr(point, part) for point in batch] for part in ("time", "states", "inputs"))
            arguments = self.engine.arguments(np.array(t), np.array(x), self._full(np.array(u)))
            matrices += self._eliminate_dependent(self.engine.form_functions.at(arguments), partition)
        return matrices

    def partition(self, independent: Sequence[str]) -> Partition:
        """Return the partition that keeps the ``independent`` states."""
        return Partition.from_names(independent, self.form, self.states, self.info.name)

    def linearize_symbolic(
        self,
        values: Mapping[Name, Expr] | None = None,
        *,
        independent: Sequence[str] | None = None,
        simplify: bool = True,
    ) -> SymbolicLinearization:
        """Return A and B as sympy matrices; for small systems.

        Raises UsageError when the system is too large for symbols, or names are unknown; NumericalError when the choice
        of independent states is singular.

        Parameters
        ----------
        values : mapping, optional
            Numbers or expressions for states, inputs and parameters at the point, which must satisfy the equations, by
            symbol or name: the more, the quicker. Parameters without one stay symbols.
        independent : sequence of str, optional
            As for :meth:`matrices`; the recommended ones by default.
        simplify : bool
        """
        chosen = tuple(independent) if independent is not None else self.independent
        if not chosen:
            raise UsageError("A symbolic linearization needs the independent states: name them with independent=.")
        return linearize_symbolic(self.form, self.info.name, values or {}, self.partition(chosen), simplify=simplify)

    @property
    def _input_columns(self) -> list[int]:
        """Where the chosen inputs stand among the columns of J."""
        return [self.engine.input_columns[i] for i in self._input_indices]

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> None:
        """Return None: the equations are not in Lagrange's form."""

    def _eliminate_dependent(self, expansion: Expansion, partition: Partition) -> list[Matrices]:
        inputs = self._input_columns
        C = dependence(self.form, expansion.J, inputs, partition, self._scales)
        worst = float(np.max(C.condition_number))
        if not worst < MAX_COORDINATE_CONDITION_NUMBER:
            names = ", ".join(self.states.names[i] for i in partition.states)
            raise NumericalError(
                f"The states {names} do not determine the others at this point: the gradient of the constraints is "
                f"singular in the dependent ones (condition number {worst:.3g}).",
                condition_number=worst,
            )
        return eliminate(self.form, expansion, inputs, partition, C)

    def _choose_partition(
        self, points: Sequence[OperatingPoint], independent: Sequence[str] | Partition | None
    ) -> Partition:
        if isinstance(independent, Partition):
            return independent
        names = self.independent if independent is None else independent
        if names or not points:
            return self.partition(names)
        independent_states, n = kept_states(self, points[0]), len(self.form.q)
        return Partition.from_independent(
            [i for i in independent_states if i < n], [i - n for i in independent_states if i >= n], n, len(self.form.u)
        )

    @cached_property
    def _scales(self) -> FloatArray:
        return self.states.scales()
