"""Differential-algebraic equations as they are written, as a Model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import casadi as ca
import numpy as np

from fmilin.codegen.graph_rounding import matrix_without_rounding
from fmilin.codegen.library_errors import explain_library_errors
from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, UnknownNameError, UsageError
from fmilin.model.capabilities import HasDescriptorForm, HasGivenStates, HasParameterSignals
from fmilin.model.equation_forms import DescriptorForm
from fmilin.model.interface import OperatingPoint
from fmilin.model.ranges import find_extrapolated
from fmilin.models.dae.coefficients import lift_graph
from fmilin.models.dae.dae_engine import DaeEngine
from fmilin.models.dae.dae_graph import DaeGraph
from fmilin.models.dae.dae_rows import REGULAR_POINT_ERROR
from fmilin.models.dae.start import certify_start
from fmilin.models.delayed_equations import build_delayed_model, has_delay
from fmilin.models.labels import Expr, Labels, Name
from fmilin.models.native_engine import Quantity
from fmilin.models.native_model import NativeModel
from fmilin.numerics.certificate import Certificate
from fmilin.numerics.staircase import deflate
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.kinds import containers_checked

MAX_DEFLATED_EQUATIONS = 400  # equations of a pencil from which the index is read: a second or so


class DaeModel(NativeModel, HasDescriptorForm, HasGivenStates, HasParameterSignals):
    """F(t, x', x, z, u, p) = 0 as it is written, of any index; x has derivatives, z are algebraic variables.

    Constraints on the states that differentiation reveals become constraints of the model, and coordinates are chosen
    on the manifold as for every model. Algebraic variables and derivatives are solved for at every point. Raises
    UsageError, which names them, when there are too many equations or too few, or they determine no motion;
    NumericalError when algebraic variables are not found at the start.

    Parameters
    ----------
    name : str
    equations : sequence
        As many as there are states and algebraic variables. Texts are equations (``"m*der(v) = F - k*s"``) or
        expressions that are zero, in the grammar of :mod:`fmilin.constraints.expressions`; sympy expressions
        and ``sympy.Eq`` contain :func:`fmilin.models.der`. The symbol named ``time`` is time.
    states, algebraic, inputs : sequence, optional
        Names. Where they are left out, states are what has a derivative, and whatever else has no value is an
        algebraic variable, or an input where ``algebraic`` is given. If the equations contain
        the derivative of an input, it is one more input, ``der(u)``.
    parameters, outputs : mapping
        Values and expressions by name, these over everything, derivatives too.
    start : mapping
        Start values of states and inputs, and of algebraic variables where their solution is searched; 0 where not
        given. States are projected onto the manifold when a point is wanted.
    labels : Labels

    Attributes
    ----------
    index : int
        How often some equation was differentiated, and once more where equations are left to be solved.

    Examples
    --------
    >>> import fmilin as fl
    >>> pendulum = fl.models.DaeModel(
    ...     "pendulum",
    ...     ["der(x) = vx", "der(y) = vy", "der(vx) = -T*x", "der(vy) = -T*y - 9.81", "x^2 + y^2 = 1"],
    ...     start={"y": -1.0, "T": 9.81},
    ... )
    >>> pendulum.index, pendulum.constraints.names
    (3, ('x^2 + y^2 = 1', 'rate of x^2 + y^2 = 1'))
    >>> fl.linearize(pendulum).eigenvalues().imag.round(3)
    array([-3.132,  3.132])
    """

    engine: DaeEngine

    def __new__(cls, name: str = "", equations: Sequence[Expr] = (), **options: Any) -> Self:
        """Return a model of this class, or a DelayedModel where texts contain ``delay(x, T)``."""
        written = {"equations": equations, "outputs": options.get("outputs")}
        if not any(map(has_delay, written.values())):
            return super().__new__(cls)
        delayed: Any = build_delayed_model(name, written, options, lambda arguments: cls(name, **arguments))
        return cast("Self", delayed)

    @containers_checked
    def __init__(
        self,
        name: str,
        equations: Sequence[Expr],
        *,
        states: Sequence[Name] | None = None,
        algebraic: Sequence[Name] | None = None,
        inputs: Sequence[Name] | None = None,
        parameters: Mapping[Name, float] | None = None,
        outputs: Mapping[str, Expr] | None = None,
        start: Mapping[Name, float] | None = None,
        labels: Labels | None = None,
    ) -> None:
        from fmilin.models.dae.dae_equations import build_graph  # imports sympy, which a graph does without

        with explain_library_errors(f"the equations of '{name}'"):
            graph = build_graph(
                name,
                equations,
                states=states,
                algebraic=algebraic,
                inputs=inputs,
                parameters=parameters or {},
                outputs=outputs or {},
                start=start or {},
                labels=labels or Labels(),
            )
        super().__init__(DaeEngine(graph))

    @classmethod
    def from_graph(cls, graph: DaeGraph) -> Self:
        """Return the model of a ``graph``: equations that are nodes of CasADi, see :class:`fmilin.models.DaeGraph`."""
        model = cls.__new__(cls)
        NativeModel.__init__(model, DaeEngine(graph))
        return model

    @property
    def index(self) -> int:
        """The index.

        Of linear equations it is that of their pencil, where this has as many finite eigenvalues as there are
        independent states: the count of differentiations may be one more (rows that are mixed are differentiated
        together) or one less (unknowns that were chosen by numbers).
        """
        reduced = self.engine.reduced
        if not (
            reduced.index and self.engine.is_linear and self.engine.graph.residuals.numel() <= MAX_DEFLATED_EQUATIONS
        ):
            return reduced.index
        try:
            form = self.descriptor_form(self.start.time, self.start.states, self.start.inputs)
        # Redundant equations have no descriptor form, nor has a start at which the model is not defined.
        except FmilinError:
            return reduced.index
        deflation = None if form is None else deflate(form.E, form.A)
        order = len(self.states) - len(reduced.invariants)
        return reduced.index if deflation is None or deflation.order != order else deflation.index

    def certify_start(self) -> Certificate | None:
        """Return how well rates and algebraic variables are determined at the start; None for more than 400 of them."""
        return certify_start(self.engine.reduced)

    def has_descriptor_form(self) -> bool:
        """Return whether no equation is redundant, and all outputs are in the equations."""
        symbols = _list_named_quantities(self.engine.graph)
        return not self.engine.reduced.notes and all(name in symbols for name in self.outputs.names)

    def descriptor_form(self, t: float, x: FloatArray, u: FloatArray) -> DescriptorForm | None:
        """Return the equations as they are written, linearized.

        Raises UsageError when some are redundant and leave variables open.
        """
        engine, graph = self.engine, self.engine.graph
        if engine.reduced.notes:
            raise UsageError(f"A descriptor system does not exist for '{graph.name}'. {' '.join(engine.reduced.notes)}")
        full, n = self._full(u), len(x)
        algebraic = engine.select([engine.available[name] for name in graph.algebraic.names], [])
        rates, z, _ = engine.evaluate(algebraic, t, x, full)
        products = self.products(t, x, u, np.eye(n), np.zeros((len(u), n)))
        H = np.zeros((0, n)) if products is None else products.residuals * self.states.scales(x)
        sizes = np.linalg.norm(H, axis=1, keepdims=True)
        rank = np.linalg.matrix_rank(H / np.where(sizes > 0, sizes, 1.0), tol=REGULAR_POINT_ERROR) if H.size else 0
        point = t, x, full[: len(graph.inputs)]
        outputs = self.outputs.names
        if any(name not in _list_named_quantities(graph) for name in outputs):
            return None
        written = engine.build_model(("written", *outputs), lambda: SymbolicDerivatives.of(graph, outputs))
        return descriptor_form(graph, written, self.inputs.names, point, (rates, z), n - int(rank))

    def choose_kept_states(self, fixed_states: Collection[str]) -> Mapping[str, bool]:
        """Return the states that are fixed at the start and not ``fixed_states``."""
        return {name: True for name in self.engine.graph.fixed if name not in fixed_states and self.states.has(name)}

    def describe_parameters(self) -> Mapping[str, Signal]:
        """Return unit and description of parameters, by name."""
        return {signal.name: signal for signal in self.engine.graph.parameters}

    def list_point_remarks(self, point: OperatingPoint) -> tuple[Remark, ...]:
        """Return also which inputs of tables are outside of their data at a point."""
        remarks = super().list_point_remarks(point)
        ranges = self.engine.graph.ranges
        if not ranges:
            return remarks
        engine = self.engine
        expressions = engine.express([expression for _, expression in ranges])
        quantities = [Quantity(Signal(f"input of a table [{k + 1}]"), e) for k, e in enumerate(expressions)]
        selection = engine.select(quantities, [])
        values = engine.evaluate(selection, point.time, point.states, self._full(point.inputs))[1]
        pairs = zip((table_range for table_range, _ in ranges), values.tolist(), strict=True)
        return (*remarks, *find_extrapolated(pairs))

    def may_have_point_remarks(self) -> bool:
        """Return whether there are tables, or diagnostics of a native model."""
        return bool(self.engine.graph.ranges) or super().may_have_point_remarks()

    def with_start(self, values: Mapping[str, float]) -> Self:
        """Return the same model, starting elsewhere.

        Raises UnknownNameError when there is no such variable.

        Parameters
        ----------
        values : mapping of str to float
            Start values of states, algebraic variables and inputs by name, in the variables' own units.
        """
        graph = self.engine.graph
        parts: dict[str, Signals] = {"states": graph.states, "algebraic": graph.algebraic, "inputs": graph.inputs}
        names = [name for signals in parts.values() for name in signals.names]
        for name in values:
            if name not in names:
                raise UnknownNameError.among(name, names, f"a state, algebraic variable or input of '{self.info.name}'")
        new: dict[str, Any] = {
            what: Signals(s.with_start(float(values.get(s.name, s.start))) for s in signals)
            for what, signals in parts.items()
        }
        graph = replace(graph, **new)
        # Start values of algebraic variables are the guess of Newton's method, which the reduction makes.
        if new["algebraic"] != parts["algebraic"]:
            return self._replace_choice(DaeEngine(graph))
        return self._replace_choice(self.engine.with_system(graph))


@dataclass(frozen=True)
class SymbolicDerivatives:
    """Functions of the derivatives of the equations as they are written, and of some outputs."""

    by_u: Any  # casadi.Function: dF/du, and the derivatives of the outputs by x', x, z and u
    by_states: Any  # casadi.Function: dF/d(x', x, z), with the constants of the equations among the parameters
    constants: FloatArray

    @classmethod
    def of(cls, graph: DaeGraph, outputs: Sequence[str]) -> SymbolicDerivatives:
        """Return those of a graph that contains all outputs."""
        symbols = _list_named_quantities(graph)
        selected_outputs = ca.vertcat(ca.SX(0, 1), *(symbols[name] for name in outputs))
        by_u: Any = ca.jacobian(graph.residuals, graph.u)
        blocks = [by_u, *(ca.jacobian(selected_outputs, s) for s in (graph.dx, graph.x, graph.z, graph.u))]
        arguments = [graph.time, graph.x, graph.u, graph.dx, graph.z]
        lifted, _, constants = lift_graph(graph)  # in which coefficients that are rounding are recognized
        slopes = ca.sparsify(ca.jacobian(lifted.residuals, ca.vertcat(graph.dx, graph.x, graph.z)))
        return cls(
            by_u=ca.Function("written", [*arguments, graph.p], blocks),
            by_states=ca.Function("slopes", [*arguments, lifted.p], [slopes]),
            constants=constants,
        )


def descriptor_form(
    graph: DaeGraph,
    written: SymbolicDerivatives,
    inputs: Sequence[str],
    point: tuple[float, FloatArray, FloatArray],  # t, x, u as the graph has them
    solution: tuple[FloatArray, FloatArray],  # x' and z there
    order: int,
) -> DescriptorForm:
    """Return E = (F_x', 0), A = -(F_x, F_z), B = -F_u, with d = x' for outputs."""
    F_u, c_dx, c_x, c_z, c_u = (m.full() for m in written.by_u(*point, *solution, graph.values))
    parameters = np.concatenate((graph.values, written.constants))
    slopes = matrix_without_rounding(written.by_states, *point, *solution, parameters)
    F_dx, F_x, F_z = np.hsplit(slopes, np.cumsum([len(graph.states), len(graph.states)]))
    needed = np.flatnonzero(np.abs(c_dx).any(axis=0))
    n, m, k = len(graph.states), len(graph.algebraic), len(needed)
    E, A = np.zeros((n + m + k, n + m + k)), np.zeros((n + m + k, n + m + k))
    E[: n + m, :n], A[: n + m, :n], A[: n + m, n : n + m] = F_dx, -F_x, -F_z
    E[n + m + np.arange(k), needed] = A[n + m + np.arange(k), n + m + np.arange(k)] = 1.0
    f0 = E[:, :n] @ solution[0]
    # Derivatives of inputs, which the reduction adds, are not in the equations as written: -1 is a column of zeros.
    input_columns = [graph.inputs.names.index(name) if name in graph.inputs.names else -1 for name in inputs]
    B, D = (np.hstack((a, np.zeros((len(a), 1))))[:, input_columns] for a in (-F_u, c_u))
    return DescriptorForm(
        E=E,
        A=A,
        B=np.vstack((B, np.zeros((k, len(inputs))))),
        C=np.hstack((c_x, c_z, c_dx[:, needed])),
        D=D,
        f0=f0,
        states=(*graph.states.names, *graph.algebraic.names, *(f"der({graph.states.names[i]})" for i in needed)),
        order=order,
    )


def _list_named_quantities(graph: DaeGraph) -> dict[str, Any]:
    """Return what may be an output, in the graph's own symbols."""
    rates = [f"der({name})" for name in graph.states.names]
    columns = ((graph.x, graph.states.names), (graph.dx, rates), (graph.z, graph.algebraic.names),
               (graph.u, graph.inputs.names))  # fmt: skip
    named = {name: s for column, names in columns for name, s in zip(names, column.elements(), strict=True)}
    return named | dict(graph.outputs)
