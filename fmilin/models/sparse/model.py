"""Numeric Lagrange's equations as a Model: values, exact directional derivatives, batches, and the form taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.model.interface import Copy, Evaluation, Model, ModelInfo, OperatingPoint, SecondOrderForm
from fmilin.models.sparse.equations import NumericEquations
from fmilin.models.sparse.saddle_point import SaddleFactors, SaddlePoint
from fmilin.signals import FloatArray, Signal, Signals, rate_unit

__all__ = ["LARGEST_FORM", "NumericModel", "State"]

LARGEST_FORM = 2000
"""Coordinates up to which matrices of all states are made dense."""


@dataclass(frozen=True)
class _Choice:
    """What was changed after the equations had been given; None keeps what there is."""

    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    constraints: tuple[Constraint, ...] | None = None


@dataclass(frozen=True)
class State:
    """One point, solved: positions, velocities, accelerations and multipliers."""

    q: FloatArray
    v: FloatArray
    a: FloatArray
    multipliers: FloatArray


class NumericModel(Model):
    """A Model made of :class:`~fmilin.models.sparse.NumericEquations`; its states are (q, v).

    Parameters
    ----------
    equations : NumericEquations

    Notes
    -----
    Names and constraint expressions are made when they are first asked for: at 80,000 states they take longer
    than a linearization.
    """

    batches = True

    def __init__(self, equations: NumericEquations) -> None:
        self._set_up(equations, _Choice(), SaddlePoint(equations.pattern_M, equations.pattern_G))

    def _set_up(self, equations: NumericEquations, choice: _Choice, saddle: SaddlePoint) -> None:
        self.equations, self._choice, self._saddle = equations, choice, saddle
        self.info = ModelInfo(equations.name)
        every = Signals(equations.inputs)
        chosen = every.names if choice.inputs is None else choice.inputs
        self._kept = [every.index_of(name, f"an input of '{equations.name}'") for name in chosen]
        self.inputs = every.select(self._kept)
        self._held = every.starts
        self._B = equations.input_matrix
        self._declared = {**equations.further, **equations.outputs}
        self.independent = () if choice.constraints is not None else equations.independent
        self.outputs = self._output_signals()

    @cached_property
    def states(self) -> Signals:  # type: ignore[override]  # made when first asked for
        """The coordinates, then their velocities."""
        return Signals([*self.equations.coordinates(), *self.equations.velocities()])

    @cached_property
    def start(self) -> OperatingPoint:  # type: ignore[override]
        """Where the model starts."""
        return OperatingPoint(0.0, self.states.starts, self.inputs.starts)

    @cached_property
    def constraints(self) -> Constraints:  # type: ignore[override]
        """The equations' own, or those that were chosen instead.

        Raises
        ------
        UsageError
            When there are too many states for the procedures that ask for them: these work with full matrices.
        """
        self.require_dense("What the general procedures need")
        declared = self._choice.constraints
        return Constraints(
            self.equations.declared() if declared is None else declared,
            self.states,
            self.inputs,
            parameters=self.equations.parameters,
            other=lambda name: name if self._is_known(name) else None,
            known=self._declared,
        )

    @cached_property
    def copies(self) -> Mapping[int, Copy]:  # type: ignore[override]
        """Outputs that are a state or an input."""
        names = self.outputs.names
        if self._declares_all(names):
            return {}
        states, inputs = self.states.positions, self.inputs.positions
        return {i: Copy("state", states[n]) for i, n in enumerate(names) if n in states} | {
            i: Copy("input", inputs[n]) for i, n in enumerate(names) if n in inputs
        }

    # -- the interface of every model --------------------------------------------------------------

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point, or at many.

        Parameters
        ----------
        t : float
        x : array, shape (N,) or (batch, N)
        u : array, shape (nu,) or (batch, nu)

        Raises
        ------
        NumericalError
            When the accelerations cannot be solved for: the system is at a singular configuration.
        """
        if x.ndim == 2:
            inputs = np.broadcast_to(u, (len(x), len(self.inputs)))
            every = [self.evaluate(t, row, entry) for row, entry in zip(x, inputs, strict=True)]
            stacked = (np.array([getattr(e, part) for e in every]) for part in ("derivatives", "outputs", "residuals"))
            return Evaluation(*stacked)
        s = self._solved(x, u)[0]
        z = np.array([self._value(name, s, u) for name in self._observed])
        outputs = np.array([self._value(name, s, u) for name in self.outputs.names])
        residuals = self.equations.residuals(s.q) if self._has_own else self.constraints.residuals(t, x, u, z)
        return Evaluation(np.concatenate((s.v, s.a)), outputs, residuals)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation:
        """Return exact directional derivatives along the columns of (dx, du), residuals included.

        Differentiating the equations of motion, with e = f - M a - G' lambda at held a and lambda,

            [[M, G'], [G, 0]] (da; dlambda) = (e_q dq + e_v dv + B du; -((G a)_q + b_q) dq - b_v dv).

        Raises
        ------
        NumericalError
            As in :meth:`evaluate`.
        """
        eq, n = self.equations, self.equations.n
        s, factors = self._solved(x, u)
        dq, dv = dx[:n], dx[n:]
        e = eq.slopes(s.q, s.v, s.a, s.multipliers)
        upper = eq.pattern_e_q.sparse(e.e_q) @ dq + eq.pattern_e_v.sparse(e.e_v) @ dv + self.input_matrix @ du
        gamma_q, gamma_v = (eq.pattern_G.sparse(values) for values in self.acceleration_slopes(s))
        lower = gamma_q @ dq + gamma_v @ dv
        w = factors.solve(np.vstack((upper, -lower)))
        moved = _Moved(dx, du, w[:n], w[n:])
        outputs = self._slopes(self.outputs.names, s, moved)
        if self._has_own:
            residuals = eq.pattern_G.sparse(eq.jacobian(s.q)) @ dq
        else:
            residuals = self._constraint_slopes(t, x, u, s, moved)
        return Evaluation(np.vstack((dv, w[:n])), outputs, residuals)

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm:
        """Return the equations taken apart as dense matrices.

        Raises
        ------
        UsageError
            When they are too large for that.
        NumericalError
            At a singular configuration.
        """
        del t
        eq, n, m = self.equations, self.equations.n, self.equations.m
        self.require_dense("The dense form of the equations")
        s = self.solved(x, u)
        e = eq.slopes(s.q, s.v, s.a, s.multipliers)
        every, k = np.eye(2 * n), len(self.inputs)
        still = _Moved(every, np.zeros((k, 2 * n)), np.zeros((n, 2 * n)), np.zeros((m, 2 * n)))
        driven = _Moved(np.zeros((2 * n, k)), np.eye(k), np.zeros((n, k)), np.zeros((m, k)))
        inner = np.eye(n + m)
        w = _Moved(np.zeros((2 * n, n + m)), np.zeros((k, n + m)), inner[:n], inner[n:])

        def slopes(moved: _Moved) -> FloatArray:
            return self._slopes(self.outputs.names, s, moved)

        return SecondOrderForm(
            positions=np.arange(n),
            velocities=np.arange(n, 2 * n),
            M=eq.pattern_M.dense(eq.mass(s.q)),
            G=eq.pattern_G.dense(eq.jacobian(s.q)),
            multipliers=s.multipliers,
            accelerations=s.a,
            force_states=np.hstack((eq.pattern_e_q.dense(e.e_q), eq.pattern_e_v.dense(e.e_v))),
            force_inputs=self.input_matrix,
            output_states=slopes(still),
            output_inputs=slopes(driven),
            output_unknowns=slopes(w),
            bend=lambda direction: eq.bend(s.q, direction),
            constraint_states=np.hstack([eq.pattern_G.dense(values) for values in self.acceleration_slopes(s)]),
            constraint_inputs=np.zeros((m, k)),
        )

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> NumericModel:
        """Return the same model with chosen inputs and outputs; inputs left out stay at their start values.

        An output may be a declared output, a state, ``der(state)``, an input or a multiplier ``lambda[k]``.

        Raises
        ------
        UnknownNameError
            With the nearest names.
        """
        return self._changed(
            replace(
                self._choice,
                inputs=self._choice.inputs if inputs is None else tuple(inputs),
                outputs=self._choice.outputs if outputs is None else tuple(outputs),
            )
        )

    def with_constraints(self, constraints: Sequence[Constraint]) -> NumericModel:
        """Return the same model with these constraints declared instead of its own."""
        model = self._changed(replace(self._choice, constraints=tuple(constraints)))
        _ = model.constraints  # unknown names are said now
        return model

    # -- for what is sparse and large --------------------------------------------------------------

    def solved(self, x: FloatArray, u: FloatArray) -> State:
        """Return positions, velocities, accelerations and multipliers at a point.

        Raises
        ------
        NumericalError
            At a singular configuration.
        """
        return self._solved(x, u)[0]

    @property
    def input_matrix(self) -> FloatArray:
        """B = df/du for the chosen inputs, shape (n, nu)."""
        return self._B[:, self._kept]

    def acceleration_slopes(self, s: State) -> tuple[FloatArray, FloatArray]:
        """Return the values of gamma_q = d(G a + b)/dq, a held, and of gamma_v = db/dv, on ``pattern_G``."""
        eq = self.equations
        return eq.rate_slopes(s.q, s.a) + eq.bend_slopes(s.q, s.v), 2.0 * eq.rate_slopes(s.q, s.v)

    def require_dense(self, what: str) -> None:
        """Refuse what would need dense matrices of too many coordinates.

        Raises
        ------
        UsageError
            Beyond :data:`LARGEST_FORM` coordinates.
        """
        if self.equations.n > LARGEST_FORM:
            raise UsageError(
                f"{what} of '{self.info.name}' would be a full matrix of {2 * self.equations.n} states. Ask for "
                "a few eigenvalues instead, with 'fmilin spectrum' or fmilin.formulations.sparse: all stays sparse."
            )

    # -- the parts ---------------------------------------------------------------------------------

    @property
    def _has_own(self) -> bool:
        return self._choice.constraints is None

    @property
    def _observed(self) -> tuple[str, ...]:
        return () if self._has_own else self.constraints.observed

    def _solved(self, x: FloatArray, u: FloatArray) -> tuple[State, SaddleFactors]:
        eq, n = self.equations, self.equations.n
        q, v = x[:n], x[n:]
        factors = self._saddle.factorized(eq.mass(q), eq.jacobian(q))
        full = self._held.copy()
        full[self._kept] = u
        w = factors.solve(np.concatenate((eq.forces(q, v) + self._B @ full, -eq.bend(q, v))))
        if not np.isfinite(w).all():
            raise NumericalError("The accelerations are no numbers at this point: choose another with --set.")
        return State(q, v, w[:n], w[n:]), factors

    def _changed(self, choice: _Choice) -> NumericModel:
        model = NumericModel.__new__(NumericModel)
        model._set_up(self.equations, choice, self._saddle)
        model.__dict__["states"] = self.states
        return model

    def _declares_all(self, names: Sequence[str]) -> bool:
        return all(name in self._declared for name in names)

    def _output_signals(self) -> Signals:
        if self._choice.outputs is None:
            return Signals(self.equations.outputs.values())
        return Signals(self._signal(name) for name in self._choice.outputs)

    def _signal(self, name: str) -> Signal:
        if name in self._declared:
            return self._declared[name]
        for group in (self.states, self.inputs):
            if name in group.positions:
                return group[group.positions[name]]
        inner = name[4:-1]
        if name.startswith("der(") and name.endswith(")") and inner in self.states.positions:
            return Signal(name, rate_unit(self.states[self.states.positions[inner]].unit))
        if _multiplier(name, self.equations.m) is not None:
            return Signal(name)
        known = [*self._declared, *self.states.names, *self.inputs.names, "lambda[1]"]
        raise UnknownNameError.among(name, known, f"an output or another quantity of '{self.info.name}'")

    def _is_known(self, name: str) -> bool:
        try:
            self._signal(name)
        except UnknownNameError:
            return False
        return True

    def _value(self, name: str, s: State, u: FloatArray) -> float:
        n = self.equations.n
        if name in self._declared:
            return self.equations.output(name, s.q, s.v).value
        if name in self.states.positions:
            i = self.states.positions[name]
            return float(s.q[i] if i < n else s.v[i - n])
        if name in self.inputs.positions:
            return float(u[self.inputs.positions[name]])
        k = _multiplier(name, self.equations.m)
        if k is not None:
            return float(s.multipliers[k])
        i = self.states.positions[name[4:-1]]
        return float(s.v[i] if i < n else s.a[i - n])

    def _slopes(self, names: Sequence[str], s: State, moved: _Moved) -> FloatArray:
        """Return one row per quantity, shape (len(names), k)."""
        rows = [self._slope(name, s, moved) for name in names]
        return np.array(rows, dtype=np.float64).reshape(len(names), moved.a.shape[1])

    def _slope(self, name: str, s: State, moved: _Moved) -> FloatArray:
        """Return the slope of a quantity along every direction, shape (k,)."""
        n = self.equations.n
        if name in self._declared:
            out = self.equations.output(name, s.q, s.v)
            slope: FloatArray = out.by_q @ moved.x[:n] + out.by_v @ moved.x[n:]
            return slope
        return self._row(name, moved)

    def _row(self, name: str, moved: _Moved) -> FloatArray:
        n = self.equations.n
        group, i = moved.a, self.states.positions.get(name[4:-1], 0) - n
        if name in self.states.positions:
            group, i = moved.x, self.states.positions[name]
        elif name in self.inputs.positions:
            group, i = moved.u, self.inputs.positions[name]
        elif (k := _multiplier(name, self.equations.m)) is not None:
            group, i = moved.multipliers, k
        elif i < 0:  # the rate of a coordinate is its velocity
            group, i = moved.x, i + 2 * n
        row: FloatArray = group[i]
        return row

    def _constraint_slopes(self, t: float, x: FloatArray, u: FloatArray, s: State, moved: _Moved) -> FloatArray:
        z = np.array([self._value(name, s, u) for name in self._observed])
        dz = self._slopes(self._observed, s, moved)
        g = self.constraints.partials(t, x, u, z)
        slopes: FloatArray = g.states @ moved.x + g.inputs @ moved.u + g.observed @ dz
        return slopes


@dataclass(frozen=True)
class _Moved:
    """Directions, in columns: of the states, the inputs, the accelerations and the multipliers."""

    x: FloatArray
    u: FloatArray
    a: FloatArray
    multipliers: FloatArray


def _multiplier(name: str, m: int) -> int | None:
    """Return k of ``lambda[k + 1]``; None when the name is no multiplier."""
    digits = name[7:-1]
    if not (name.startswith("lambda[") and name.endswith("]") and digits.isdigit()):
        return None
    k = int(digits) - 1
    return k if 0 <= k < m else None
