"""The nonlinear model as CasADi functions: x', outputs and residuals, and y' = F(y, u), for optimal control.

A model that has a symbolic form is a graph already, W w = r for accelerations and multipliers. Where W is symmetric and
positive definite at the start, it remains so as far as the model goes without becoming singular: W = L D L' then needs
no pivots, and is written out as scalars. Elsewhere W w = r is one node of the graph, a sparse QR factorization at each
evaluation, and the implicit function theorem for its derivatives: some microseconds.

A model without a symbolic form is called by CasADi; see :mod:`fmilin.models.external_casadi`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from fmilin.errors import UsageError
from fmilin.model.capabilities import read_graph
from fmilin.model.interface import Model, OperatingPoint
from fmilin.models.casadi_form import CasadiModel, Function, IndependentForm, OutputSignals
from fmilin.signals import Signals
from fmilin.support.kinds import kinds_checked

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem
    from fmilin.manifold.frame import Frame


SX = Any  # casadi.SX
MX = Any  # casadi.MX

ACCURACY = 1e-13
"""Residual at which Newton's iteration for Psi ends, in sizes of the terms: a step before it is quadratically worse."""

MAX_ELIMINATED_UNKNOWNS = 40  # unknowns up to which W = L D L' is written out: the graph grows with their third power
W_ASYMMETRY_TOLERANCE = 1e-14  # difference of W and its transpose that is rounding, relative to the largest entry


@dataclass(frozen=True)
class SymbolicCasadiModel(CasadiModel):
    """A model with a symbolic form: functions of all states x (N,), inputs u (nu,) and time t."""

    _graph: _ModelGraph = field(repr=False, compare=False)

    def batch(self, count: int) -> SymbolicCasadiModel:
        """Return the functions of ``count`` columns, those of :meth:`casadi.Function.map`."""
        c = self.c.map(count)
        return replace(self, f=self.f.map(count), c=c, g=self.g.map(count), outputs=OutputSignals(self.outputs, c))

    def invariants(self, rows: Sequence[int]) -> Callable[[MX, MX, MX], MX]:
        """Return h(x, u, t), some ``rows`` of the constraints' residuals and then of their rates, for symbols."""
        return self._graph.evaluate(self._graph.invariants(self.model.constraints.hidden, {})[list(rows)])

    def in_independent_coordinates(
        self, point: OperatingPoint | None = None, *, independent: Sequence[str] | None = None
    ) -> IndependentForm:
        """Return y' = F(y, u), out = C(y, u); Newton's iteration finds the dependent states.

        It starts from the tangent at the point, with exact derivatives: good near the point, as far as y determines
        x.
        """
        from fmilin.manifold.verified_frame import build_frame

        at = self.model.start if point is None else point
        recommended = self.model.independent if len(self.model.constraints) else ()
        named = tuple(recommended if independent is None else independent)
        return _independent_form(self, build_frame(self.model, at, named=named))


@kinds_checked
def to_casadi(
    model: Model, point: OperatingPoint | None = None, *, independent: Sequence[str] | None = None
) -> CasadiModel:
    """Return a model as ``casadi.Function`` objects, parameters as numbers in them.

    Of a model with a symbolic form they are graphs over all its states, f(x, u, t). FMUs, systems with FMUs, engines
    and Python functions are called by CasADi, in independent coordinates at a point, f(y, u), with their own
    directional derivatives; see :class:`fmilin.models.external_casadi.ExternalCasadiModel`.

    Parameters
    ----------
    model : Model
        Change its parameters before.
    point : OperatingPoint, optional
        Of a model without a symbolic form: where its coordinates are chosen, ``model.start`` when left out. Its time
        is the time of ``f(y, u)``.
    independent : sequence of str, optional
        Of such a model: the coordinates y, as in :func:`fmilin.linearize`.

    Raises
    ------
    UsageError
        When rates cannot be read at given states: a co-simulation FMU that hides them, a model with delays; and when
        ``point`` or ``independent`` is given for a model with a symbolic form.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import furuta_pendulum
    >>> nonlinear = fl.to_casadi(furuta_pendulum())
    >>> nonlinear.f
    Function(f:(x[4],u,t)->(x_dot[4]) SXFunction)
    >>> nonlinear.f(x=[0, 3.14159265, 0, 0], u=0.01)["x_dot"].full().ravel().round(3) + 0.0
    array([0.   , 0.   , 3.333, 3.333])
    """
    model.require_rates("give x' to CasADi")
    system = read_graph(model)
    if system is None:
        from fmilin.models.external_casadi import ExternalCasadiModel

        return ExternalCasadiModel.at_point(model, point, independent=independent or ())
    if point is not None or independent is not None:
        raise UsageError(
            f"The model '{model.info.name}' has a symbolic form, which holds at every point in all states. For "
            "coordinates at a point use fl.to_casadi(model).in_independent_coordinates(point, independent=[...])."
        )
    graph = _ModelGraph(system, model)
    c = graph.function("c", "out", graph.outputs)
    return SymbolicCasadiModel(
        states=model.states,
        inputs=model.inputs,
        outputs=OutputSignals(model.outputs, c),
        f=graph.function("f", "x_dot", graph.rates),
        c=c,
        g=graph.function("g", "residuals", graph.residuals),
        model=model,
        _graph=graph,
    )


class _ModelGraph:
    """An implicit system with numbers for its parameters; functions over (t, x, u, w), without w where eliminated."""

    def __init__(self, system: ImplicitSystem, model: Model) -> None:
        self.t, self.x, self.u, self.w = system.time, system.states, system.inputs, system.unknowns
        observed = ca.vertcat(ca.SX(0, 1), *(system.further[name] for name in model.constraints.observed))
        parts = [system.matrix, system.right_hand_side, system.derivatives, system.outputs, observed]
        if system.parameters.numel():
            parts = ca.substitute(parts, [system.parameters], [ca.SX(ca.DM(system.parameter_values))])
        self.W, self.r, self.rates, self.outputs, observed = parts
        self.guess = system.guess
        if self.guess is None and self._is_definite(model.start):
            solved = ca.ldl_solve(self.r, *ca.ldl(self.W))
            parts = ca.substitute([self.rates, self.outputs, observed], [self.w], [solved])
            self.rates, self.outputs, observed = parts
        self.residuals = model.constraints.graph(self.t, self.x, self.u, observed)

    def _is_definite(self, start: OperatingPoint) -> bool:
        """Whether W is symmetric and positive definite, and small enough to be eliminated in scalars."""
        if not 0 < self.W.shape[0] <= MAX_ELIMINATED_UNKNOWNS:
            return False
        at = ca.Function("W", [self.x, self.u, self.t], [ca.densify(self.W)])
        nearby = start.states + 1e-2 * np.random.default_rng(1974).uniform(0.5, 1.0, len(start.states))
        W_start, W_nearby = (at(x, start.inputs, start.time).full() for x in (start.states, nearby))
        symmetric = all(np.abs(W - W.T).max() <= W_ASYMMETRY_TOLERANCE * np.abs(W).max() for W in (W_start, W_nearby))
        return bool(symmetric and np.linalg.eigvalsh(W_start)[0] > 0)

    def evaluate(self, expression: SX) -> Callable[[MX, MX, MX], MX]:
        """Return a column over (x, u, t, w) as what can be called with symbols (x, u, t)."""
        arguments = [self.x, self.u, self.t]
        if not self.w.numel() or not ca.depends_on(expression, self.w):
            return ca.Function("expression", arguments, [expression], {"cse": True})
        free = [*arguments, *([] if self.guess is None else [self.w])]
        equations = ca.Function("equations", free, [self.W, self.r], {"cse": True})
        values = ca.Function("values", [*arguments, self.w], [expression], {"cse": True})

        def solve(x: MX, u: MX, t: MX) -> MX:
            if self.guess is not None:
                return values(x, u, t, self._newton()(self.guess.unknowns, ca.vertcat(x, u, t)))
            W, r = equations(x, u, t)
            return values(x, u, t, ca.solve(W, r, "qr"))

        return solve

    def _newton(self) -> Function:
        """Return (guess, (x, u, t)) -> w, where the equations are not linear in w."""
        p = ca.vertcat(self.x, self.u, self.t)
        options = {"abstol": ACCURACY, "max_iter": 50}
        return ca.rootfinder("unknowns", "newton", {"x": self.w, "p": p, "g": -self.r}, options)

    def function(self, name: str, result: str, expression: SX) -> Function:
        """Return the function (x, u, t) -> ``expression``, a column over (x, u, t, w)."""
        labels = ["x", "u", "t"], [result]
        if not self.w.numel() or not ca.depends_on(expression, self.w):
            return ca.Function(name, [self.x, self.u, self.t], [expression], *labels, {"cse": True})
        x, u, t = ca.MX.sym("x", self.x.shape[0]), ca.MX.sym("u", self.u.shape[0]), ca.MX.sym("t")
        return ca.Function(name, [x, u, t], [self.evaluate(expression)(x, u, t)], *labels)

    def invariants(self, needs_rate: Sequence[int], input_rates: Mapping[int, int]) -> SX:
        """Return h: the residuals, then the rates of those that need it, over inputs that are rates of other inputs."""
        hidden = self.residuals[list(needs_rate)]
        u_dot = ca.SX(self.u.shape[0], 1)
        for i, derivative in input_rates.items():
            u_dot[i] = self.u[derivative]
        moving, along = ca.vertcat(self.t, self.x, self.u), ca.vertcat(1, self.rates, u_dot)
        # By the Jacobian: only the rates of states that are contained appear, and these need no solution mostly.
        return ca.vertcat(self.residuals, ca.mtimes(ca.jacobian(hidden, moving), along))


def _independent_form(nonlinear: SymbolicCasadiModel, frame: Frame) -> IndependentForm:
    coordinates = frame.coordinates
    y, u = ca.MX.sym("y", len(frame.selection.signals)), ca.MX.sym("u", len(nonlinear.inputs))
    t = ca.MX.sym("t")
    x = _states(nonlinear, frame, (y, u, t))
    state = ca.MX.sym("x", len(nonlinear.states))
    slope = ca.Function("slope", [state], [ca.jacobian(coordinates.graph(state), state)])
    starts = zip(frame.selection.signals, frame.parametrization.y0.tolist(), strict=True)

    def function(name: str, result: str, expression: MX) -> Function:
        return ca.Function(name, [y, u, t], [expression], ["y", "u", "t"], [result])

    return IndependentForm(
        coordinates=Signals(replace(s, start=start) for s, start in starts),
        inputs=nonlinear.inputs,
        outputs=nonlinear.outputs,
        F=function("F", "y_dot", ca.mtimes(slope(x), nonlinear.f(x, u, t))),
        C=function("C", "out", nonlinear.c(x, u, t)),
        psi=function("psi", "x", x),
    )


def _states(nonlinear: SymbolicCasadiModel, frame: Frame, rate_arguments: tuple[MX, MX, MX]) -> MX:
    """Return x = Psi(y) with (rho(x) - y; h(t, x)) = 0, Spencer eq. (2.23), for symbols y, u, t."""
    p, coordinates = frame.parametrization, frame.coordinates
    rows = list(p.rows)
    if coordinates.is_linear and not rows:
        return ca.mtimes(ca.DM(np.linalg.inv(coordinates.R)), rate_arguments[0])
    graph, invariants = nonlinear._graph, p.invariants
    h = graph.evaluate(graph.invariants(invariants.hidden, invariants.chain)[rows])
    sizes = np.linalg.norm(p.gradient.H[rows] * p.scales, axis=1)
    sizes = np.where(sizes > 0, sizes, 1.0)
    xi = ca.MX.sym("xi", len(p.x0))  # the states in their own sizes: Newton's iteration ends by them
    x, parameters = xi * ca.DM(p.scales), ca.MX.sym("parameters", sum(part.shape[0] for part in rate_arguments))
    y, u, t = ca.vertsplit(parameters, np.cumsum([0, *(part.shape[0] for part in rate_arguments)]).tolist())
    equations = ca.vertcat((coordinates.graph(x) - y) / ca.DM(frame.y_scales), h(x, u, t) / ca.DM(sizes))
    newton = ca.rootfinder(
        "newton", "newton", {"x": xi, "p": parameters, "g": equations}, {"abstol": ACCURACY, "max_iter": 50}
    )
    guess = ca.DM(p.x0) + ca.mtimes(ca.DM(p.derivative), rate_arguments[0] - ca.DM(p.y0))
    return newton(guess / ca.DM(p.scales), ca.vertcat(*rate_arguments)) * ca.DM(p.scales)
