"""Kane's equations as a Model, with the exact linearization procedure of Peterson et al."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from fmilin.errors import UnknownNameError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import OperatingPoint
from fmilin.models.assembly import Given, assembled
from fmilin.models.declaration import Declaration, Expr, Labels, Name
from fmilin.models.interface import available_outputs
from fmilin.models.kane.choosing import along, with_named
from fmilin.models.kane.consistency import check_constraints
from fmilin.models.kane.equations import KaneEquations, form_of
from fmilin.models.kane.flow import KaneFlow
from fmilin.models.kane.form import KaneForm
from fmilin.models.kane.functions import Expansion, KaneFunctions, Numerics
from fmilin.models.kane.numeric import KaneNumeric
from fmilin.models.kane.partition import Partition, pivoted
from fmilin.models.kane.procedure import Blocks, Matrices, blocks_of, constraint_gradients, eliminate
from fmilin.models.kane.residuals import PointToCheck, require_consistent_point, residuals_at
from fmilin.models.kane.result import linear_model
from fmilin.models.kane.solved import constraints_of, solved_form
from fmilin.models.kane.sympy_form import gathered
from fmilin.models.symbolic import SymbolicModel, _Choice
from fmilin.models.symbolic_system import SymbolicSystem
from fmilin.signals import FloatArray, Signals

if TYPE_CHECKING:
    from fmilin.models.kane.symbolic import SymbolicLinearization

__all__ = ["KaneModel"]

AT_ONCE = 256
"""Points of a path that are computed together."""


class KaneModel(SymbolicModel):
    """The general form of Peterson et al. (table 1): f_c, f_v, f_a, f_0 .. f_3 with coordinates q and speeds u.

    The states are (q, u), dependent ones included. Rates q', u' follow from

        f_0(q, q', t) + f_1(q, u, t) = 0,   f_2(q, u', t) + f_3(q, q', u, r, t) = 0,   f_a(q, q', u, u', t) = 0,

    and the constraints are f_c(q, t) = 0 and f_v(q, u, t) = 0. Everything is evaluated numerically: the equations
    and their first derivatives become one graph without repeated subexpressions, so that a further point costs a
    fraction of a millisecond. Exact directional derivatives are the blocks M~, A~ and B~ of the source,
    so that :func:`fmilin.linearize` and :meth:`linearize` agree to rounding.

    Parameters
    ----------
    name : str
    equations : KaneEquations
    inputs : sequence
        r. An input ``der(r)`` is the time derivative of the input ``r``: a prescribed motion.
    parameters : mapping
        Values by symbol or name.
    outputs : mapping of str
        Expressions by name; they may contain ``der(q)``, ``der(u)`` and multipliers.
    start : mapping
        Start values of states and inputs, by symbol or name; 0 where not given.
    labels : Labels
        Units, nominal values, descriptions, the recommended independent states.
    numerics : Numerics
        How the numbers are computed.

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

    >>> skate = KaneModel("skate", KaneEquations(
    ...     q=["x", "y", "psi"], u=["v", "s", "w"],
    ...     f_0=["der(x)", "der(y)", "der(psi)"],
    ...     f_1=["-(v*cos(psi) - s*sin(psi))", "-(v*sin(psi) + s*cos(psi))", "-w"],
    ...     f_v=["s"], f_2=["m*der(v)", "J*der(w)"], f_3=["-m*s*w - F", "0"]),
    ...     inputs=["F"], parameters={"m": 2, "J": 1}, start={"v": 3})
    >>> lin = skate.linearize(independent=["x", "y", "psi", "v", "w"])
    >>> lin.A[1].tolist()  # y' = v sin(psi)
    [0.0, 0.0, 3.0, 0.0, 0.0]
    """

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
        given = Given(inputs, parameters or {}, outputs or {}, start or {}, labels or Labels())
        form = form_of(declaration, equations, given.inputs, given.parameters)
        self._begin(declaration, form, given, numerics)

    @classmethod
    def from_sympy(
        cls,
        method: Any,
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

        Functions of time keep their names without ``(t)``. The speeds of Lagrange's equations are called ``q_dot``
        for a coordinate ``q``. Specified functions of time are inputs, their derivatives the inputs ``der(r)`` and
        ``der(der(r))``. With auxiliary speeds, the forces that only the auxiliary equations contain are solved for,
        and can be asked for as outputs by name. Rates that were left in the equations are replaced or solved for.

        Parameters
        ----------
        method : KanesMethod or LagrangesMethod
        name : str
        inputs : sequence, optional
            Their order; all specified functions that appear, by name, when left out. Plain symbols may be made inputs.
        parameters, outputs, start, labels, numerics
            As for the class. Keys and expressions may use the functions of time or their names. The independent
            states of a ``KanesMethod`` are recommended unless ``labels`` says otherwise.
        reactions : sequence
            The unknown forces of the auxiliary equations, where they cannot be told from inputs.

        Raises
        ------
        UsageError
            When something is missing or does not fit; the message lists everything.
        ConstraintError
            When f_a are not the derivatives of f_v, or f_v does not contain those of f_c.
        """
        from fmilin.models.kane.conversion import equations_in

        found = equations_in(method, reactions)
        given = Given(inputs or (), parameters or {}, outputs or {}, start or {}, labels or Labels())
        declaration = Declaration(name)
        form, given = gathered(declaration, found, given)
        model = cls.__new__(cls)
        model._begin(declaration, form, given, numerics)
        return model

    def _begin(self, declaration: Declaration, form: KaneForm, given: Given, numerics: Numerics | None) -> None:
        declaration.raise_problems()
        equations = solved_form(form)
        declaration.derived |= equations.named()
        system = assembled(declaration, equations, constraints_of(form, equations), given)
        self.form = form
        """The equations in plain symbols."""
        self._functions = KaneFunctions(form, numerics or Numerics())
        check_constraints(self._functions, system)
        self._set_up(system, _Choice())

    # -- the procedure -----------------------------------------------------------------------------

    def linearize(
        self,
        point: OperatingPoint | None = None,
        *,
        independent: Sequence[str] | None = None,
        rates: Mapping[str, float] | None = None,
    ) -> LinearModel:
        """Return the linear model by the procedure of Peterson et al., at any point that satisfies the equations.

        Parameters
        ----------
        point : OperatingPoint, optional
            Where the model starts by default.
        independent : sequence of str, optional
            P states to keep, n - l of them coordinates. By default the recommended ones, unless these are badly
            conditioned at the point; else those that pivoting finds.
        rates : mapping of str to float, optional
            Rates of states that the point is meant to have; they must satisfy the equations.

        Raises
        ------
        UsageError, UnknownNameError
            When the independent states are unknown or too few or many.
        ConstraintError
            When the point, or the given rates, do not satisfy the equations; with each residual by name.
        NumericalError
            When the named states do not determine the others, or rates are not determined.
        """
        point = self.start if point is None else point
        known = self._known(point)
        require_consistent_point(PointToCheck(self._functions, self.states, known, rates or {}), self.info.name)
        expansion = self._functions.at(known[None])
        [matrices] = self._eliminated(expansion, independent)
        return linear_model(self, point, expansion, matrices, self._numeric.outputs(known, expansion), independent)

    def matrices(
        self, point: OperatingPoint | None = None, *, independent: Sequence[str] | Partition | None = None
    ) -> Matrices:
        """Return A and B with all that leads to them: C_0, C_1, C_2, P', A', B'.

        The point is not verified. Arguments and errors as for :meth:`linearize`.
        """
        return self.matrices_along([self.start if point is None else point], independent=independent)[0]

    def matrices_along(
        self, points: Sequence[OperatingPoint], *, independent: Sequence[str] | Partition | None = None
    ) -> list[Matrices]:
        """Return the matrices at many points at once: the quick way for sweeps and paths.

        Without named independent states the same ones are kept from point to point as long as they are well
        conditioned; :attr:`Matrices.partition` shows where they were switched. The points are not verified.
        Errors as for :meth:`linearize`.
        """
        found: list[Matrices] = []
        for point in points:
            self._require_sizes(point)
        for first in range(0, len(points), AT_ONCE):
            some = points[first : first + AT_ONCE]
            t, x, u = ([getattr(point, part) for point in some] for part in ("time", "states", "inputs"))
            known = self._numeric.known_at(np.array(t), np.array(x), np.array(u), self._p)
            found += self._eliminated(self._functions.at(known), independent, found[-1].partition if found else None)
        return found

    def blocks(self, point: OperatingPoint | None = None) -> Blocks:
        """Return the table of definitions M~qq .. B~u at a point.

        Raises
        ------
        NumericalError
            When the rates are not determined.
        """
        known = self._known(self.start if point is None else point)
        return blocks_of(self.form, self._functions.at(known[None]), self._numeric.input_columns)

    def residuals(self, point: OperatingPoint, rates: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return what is left of each equation at a point, by name: 0 where it is satisfied.

        Parameters
        ----------
        point : OperatingPoint
        rates : mapping of str to float, optional
            Rates of states by the states' names; those not given are solved for.
        """
        return residuals_at(PointToCheck(self._functions, self.states, self._known(point), rates or {}))

    def best_partition(self, point: OperatingPoint | None = None) -> Partition:
        """Return the partition that pivoted QR of the constraint gradients finds at a point."""
        known = self._known(self.start if point is None else point)
        g = constraint_gradients(self.form, self._functions.at(known[None]).J, self._numeric.input_columns)
        return pivoted(g, self._scales)

    def tangent_flow(self, inputs: FloatArray) -> KaneFlow:
        """Return the linear models along trajectories with these inputs: what Lyapunov exponents are made of."""
        return KaneFlow(self, inputs)

    def partition(self, independent: Sequence[str]) -> Partition:
        """Return the partition that keeps the named states.

        Raises
        ------
        UsageError, UnknownNameError
            When the independent states are unknown or too few or many.
        """
        form = self.form
        n, o = len(form.q), len(form.u)
        if isinstance(independent, str):
            raise UsageError("'independent' is a sequence of names: write independent=['...'] even for a single one.")
        places = [self.states.index_of(name, "a state of the model") for name in independent]
        q_i, u_i = [i for i in places if i < n], [i - n for i in places if i >= n]
        wanted = (n - len(form.f_c), o - len(form.velocity))
        if (len(set(q_i)), len(set(u_i))) != wanted or len(places) != form.order:
            raise UsageError(
                f"{len(q_i)} coordinates and {len(u_i)} speeds were named as independent, but '{self.info.name}' has "
                f"{wanted[0]} and {wanted[1]}: {n} coordinates under {len(form.f_c)} configuration constraints, "
                f"{o} speeds under {len(form.velocity)} velocity constraints."
            )
        return Partition.keeping(q_i, u_i, n, o)

    def linearize_symbolic(
        self,
        values: Mapping[Name, Any] | None = None,
        *,
        independent: Sequence[str] | None = None,
        simplify: bool = True,
    ) -> SymbolicLinearization:
        """Return A and B as sympy matrices; for small systems.

        Parameters
        ----------
        values : mapping, optional
            Numbers or expressions for states, inputs and parameters at the point, by symbol or name: the more, the
            quicker. The point must satisfy the equations. Parameters without one stay symbols.
        independent : sequence of str, optional
            As for :meth:`linearize`; the recommended ones by default.
        simplify : bool

        Raises
        ------
        UsageError
            When the system is too large for symbols, or names are unknown.
        NumericalError
            When the choice of independent states is singular.
        """
        from fmilin.models.kane.symbolic import linearize_symbolic

        chosen = tuple(independent) if independent is not None else self.independent
        if not chosen:
            raise UsageError("A symbolic linearization needs to know the independent states: name them.")
        return linearize_symbolic(self.form, self.info.name, values or {}, self.partition(chosen), simplify=simplify)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the same model with chosen inputs and outputs, as for every symbolic model."""
        return cast("Self", super().with_interface(inputs, outputs))

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same model with other parameter values, as for every symbolic model."""
        return cast("Self", super().with_parameters(values))

    def with_start(self, values: Mapping[str, float]) -> Self:
        """Return the same model, starting elsewhere.

        Parameters
        ----------
        values : mapping of str to float
            Start values of states and inputs by name; the others keep theirs.

        Raises
        ------
        UnknownNameError
            When there is no such state or input.
        """
        declared = self._declared
        known = {*declared.state_signals.names, *declared.input_signals.names}
        for name in values:
            if name not in known:
                raise UnknownNameError.among(name, sorted(known), f"a state or an input of '{self.info.name}'")
        states, inputs = (
            Signals(replace(s, start=float(values.get(s.name, s.start))) for s in signals)
            for signals in (declared.state_signals, declared.input_signals)
        )
        return self._changed(replace(declared, state_signals=states, input_signals=inputs), self._choice)

    # -- parts -------------------------------------------------------------------------------------

    @cached_property
    def _numeric(self) -> KaneNumeric:  # type: ignore[override]
        others = available_outputs(self._declared)
        observed = tuple(others[name][1] for name in self.constraints.observed)
        return KaneNumeric(self._functions, replace(self.system, outputs=self.system.outputs + observed))

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> None:
        """Return None: the equations are not in Lagrange's form."""
        del t, x, u

    def _require_sizes(self, point: OperatingPoint) -> None:
        wanted, given = (len(self.states), len(self.inputs)), (len(point.states), len(point.inputs))
        if given != wanted:
            raise UsageError(
                f"The point has {given[0]} states and {given[1]} inputs, but '{self.info.name}' has {wanted[0]} and "
                f"{wanted[1]}: let fmilin.operating_point make it from values by name."
            )

    def _known(self, point: OperatingPoint) -> FloatArray:
        self._require_sizes(point)
        return self._numeric.known(point.time, point.states, point.inputs, self._p)

    def _eliminated(
        self, expansion: Expansion, independent: Sequence[str] | Partition | None, current: Partition | None = None
    ) -> list[Matrices]:
        inputs = self._numeric.input_columns
        g = constraint_gradients(self.form, expansion.J, inputs)
        if independent is None:
            stretches = along(g, self._scales, current or self._recommended)
        else:
            named = independent if isinstance(independent, Partition) else self.partition(independent)
            stretches = iter([with_named(g, named, self.states, self._scales)])
        return [
            matrices
            for points, partition, C in stretches
            for matrices in eliminate(self.form, expansion[points], inputs, partition, C)
        ]

    @cached_property
    def _scales(self) -> FloatArray:
        return self.states.scales()

    @cached_property
    def _recommended(self) -> Partition | None:
        return self.partition(self.independent) if self.independent else None

    def _changed(self, declared: SymbolicSystem, choice: _Choice) -> Self:
        model = type(self).__new__(type(self))
        model.form, model._functions = self.form, self._functions
        model._set_up(declared, choice)
        return model
