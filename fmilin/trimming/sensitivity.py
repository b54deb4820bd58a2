"""How a linear model changes with parameters, along the branch of points on which its point lies.

    dM/dp = M_p + M_x dx/dp + M_u du/dp

M is A, B, C or D in fixed coordinates. A trimmed point moves as its equations r(z, p) = 0 have it, dz/dp = -J^+ r_p;
any other one keeps its independent states and its inputs, and closes its loops, dx/dp = -H^+ h_p. The derivative along
that direction is exact where the parameter is in the graph of the equations; else a difference of fourth order of exact
M; their errors are those of second order, and rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.linear_model.accuracy import matrix_and_errors
from fmilin.linear_model.builder import with_parameters_as_inputs
from fmilin.linear_model.descriptor import Derivative, MatrixErrors, eigenvalue_derivatives
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.linearization.suitability import CONTINUOUS_MODELS_ONLY
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.operating_points import apply_point_parameters, assemble_branch_point
from fmilin.manifold.rank import row_sizes
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.capabilities import read_exact_slopes
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.models.batch_graph import AtPoint, GraphDerivatives, graph_derivatives
from fmilin.numerics.differences.differences import Differences
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.search_algorithm import make_equations
from fmilin.trimming.trim_report import TrimmedPoint
from fmilin.trimming.unknowns import Candidate

STEP = 2.0**-9  # of differences, in sizes of the parameter
WEIGHTS = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}  # of fourth order
BRANCH_RESIDUAL_TOLERANCE = 1e-6  # rest of r_p near the point up to which a branch goes on
FOLD_SENSITIVITY_THRESHOLD = 1e8  # how many sizes of the unknowns per size of a parameter are a fold
ONE_SIDED_DIFFERENCE_RATIO = (
    0.75  # what is left of a difference between two sides at half the step; 0.5 of a smooth one
)
EXACT_DERIVATIVE_ERROR = 64 * EPS  # of derivatives through the graph, relative to their largest terms
ROUNDING_ERROR = 8 * EPS  # of entries with a stated error of zero: exact derivatives round as well


def add_parameter_derivatives(
    model: Model, point: OperatingPoint, linear: LinearModel, request: Request
) -> LinearModel:
    """Return a linear model with its derivatives by the parameters of a request; a note says if eigenvalues meet."""
    names = request.parameters
    if isinstance(model, Stepped) or linear.sample_time:
        raise UsageError(CONTINUOUS_MODELS_ONLY)
    if isinstance(names, str) or len(set(names)) < len(names):
        raise UsageError("'parameters' must be a sequence of different names: write parameters=['m', 'L'].")
    if foreign := [name for name in linear.states.names if not model.states.has(name)]:
        raise UsageError(
            f"The coordinate '{foreign[0]}' is not a state of the model, and derivatives by parameters need states of "
            "the model as coordinates. Name states of the model with independent=[...]."
        )
    # The graph has one of the branches of a kink at the point, and not always that of the side which is asked for.
    changed_model = apply_point_parameters(model, point)
    graph = None if _is_one_sided(request) else _make_graph(model, changed_model, point, linear, names)
    model_with_outputs = changed_model.with_interface(None, linear.outputs.names)
    of = _Branch.of(model_with_outputs, point, linear, request, graph)
    derivatives = {name: of.derivative(name) for name in names}
    _, defective = eigenvalue_derivatives(linear.A, [d.A for d in derivatives.values()])
    remarks = linear.warnings
    if defective:
        values = ", ".join(f"{len(group)} at {linear.eigenvalues()[group].mean():.4g}" for group in defective)
        text = (
            f"Eigenvalues that coincide in a defective group ({values} 1/s) have no individual derivatives: each "
            "would move by a root of the change. The derivative of their mean is given."
        )
        remarks = (*remarks, Remark("multiple-eigenvalues", text))
    return replace(linear, derivatives=derivatives, warnings=remarks)


def _make_graph(
    model: Model, changed_model: Model, point: OperatingPoint, linear: LinearModel, names: Sequence[str]
) -> GraphDerivatives | None:
    """Return the functions of a model with parameters as at a point; None where not all that move are in its graph."""
    solved_for = point.request.free if isinstance(point, TrimmedPoint) and point.request is not None else ()
    moving = [*names, *(name for name in solved_for if name in model.parameters and name not in names)]
    graph = graph_derivatives(model, linear.outputs.names, moving)
    if graph is not None and not set(point.parameters) <= set(graph.names):
        graph = graph_derivatives(changed_model, linear.outputs.names, moving)  # others are numbers in it
    has_all = graph is not None and {name for name in moving if name not in names} <= set(graph.names)
    return graph if has_all else None


def make_parameters_adjustable(
    model: Model, point: OperatingPoint, names: Sequence[str]
) -> tuple[Model, OperatingPoint]:
    """Return the model and the point with parameters as inputs if the model can only be differentiated by inputs.

    A model with equations that have all these parameters is returned as it is.

    Raises
    ------
    UnknownNameError, UsageError
        When a name is not a parameter of the model.
    """
    inputs = [name for name in names if name not in model.parameters]
    if not inputs:
        return model, point
    if model.moves_parameters:
        try:
            return with_parameters_as_inputs(model, point, inputs)
        except UnknownNameError as error:
            if error.name in inputs and model.parameters:  # of a system: not of the member that is an FMU
                raise UnknownNameError.among(error.name, model.parameters, "a parameter of a member") from None
            raise UnknownNameError(
                f"{error} Numbers inside an FMU cannot be varied: build it with that parameter.",
                name=error.name,
            ) from None
    if not model.parameters:
        raise UsageError(
            f"'{model.info.name}' has no parameters that can be changed, so '{inputs[0]}' is not one. Describe the "
            "model with parameters={...}, or build the FMU with them."
        )
    raise UnknownNameError.among(inputs[0], model.parameters, f"a parameter of '{model.info.name}'")


@dataclass(frozen=True, eq=False)
class _Branch:
    """A point and how it moves with parameters, which are inputs of the model where these are what can be changed."""

    model: Model
    point: OperatingPoint
    linear: LinearModel
    request: Request  # how the linear model was made
    graph: GraphDerivatives | None = None
    _changed: dict[tuple[str, float], Model] = field(default_factory=dict)  # of one parameter

    @classmethod
    def of(
        cls,
        model: Model,
        point: OperatingPoint,
        linear: LinearModel,
        request: Request,
        graph: GraphDerivatives | None,
    ) -> _Branch:
        adjustable, at = make_parameters_adjustable(model, point, request.parameters)
        if adjustable is not model:
            return cls(adjustable, at, linear, request)
        return cls(model, point, linear, request, graph)

    def value(self, name: str) -> float:
        """Return a parameter at the point."""
        if name in self.model.parameters:
            return float(self.model.parameters[name])
        return float(self.point.inputs[self.model.inputs.index_of(name)])

    def with_parameter(self, name: str, value: float) -> tuple[Model, FloatArray]:
        """Return the model and its inputs with another value of a parameter."""
        if name in self.model.parameters:
            if (name, value) not in self._changed:
                # Models at values of one parameter are kept, and not of all: each may be a loaded FMU.
                if next(iter(self._changed), (name,))[0] != name:
                    self._changed.clear()
                self._changed[name, value] = self.model.with_parameters({name: value})
            return self._changed[name, value], self.point.inputs
        inputs = self.point.inputs.copy()
        inputs[self.model.inputs.index_of(name)] = value
        return self.model, inputs

    def along(self, name: str, function: Callable[[Model, FloatArray], FloatArray]) -> FloatArray:
        """Return the derivative by a parameter of what a function makes of the model and its inputs."""
        p, h = self.value(name), self.step(name)
        # Where the model is undefined at a step, the derivative is NaN, and NumPy's warning would add nothing.
        with np.errstate(invalid="ignore"):
            parts = (weight * function(*self.with_parameter(name, p + k * h)) for k, weight in WEIGHTS.items())
            slope: FloatArray = sum(parts) / h  # type: ignore[assignment]
        return slope

    def step(self, name: str) -> float:
        """Return the step of differences."""
        p = self.value(name)
        return STEP * (abs(p) or 1.0)  # a parameter at zero shows no size of its own

    def shift(self, name: str) -> tuple[FloatArray, FloatArray, dict[str, float]]:
        """Return how states, inputs and the other parameters that were solved for move with a parameter."""
        if isinstance(self.point, TrimmedPoint) and self.point.request is not None:
            return self._compute_trim_shift(name, self.balance)
        dx, du = np.zeros(len(self.model.states)), np.zeros(len(self.model.inputs))
        if len(self.model.constraints):
            t, x = self.point.time, self.point.states
            if self._exact is not None and name in self._exact_names:
                dx[self._others] = -self._exact_closing[0] @ self._differentiate_at_fixed_point(name)[2]
            else:

                def h(model: Model, inputs: FloatArray) -> FloatArray:
                    return Invariants(PointEvaluator(model), inputs, self.pairs, self.scales).values(t, x)

                H = self._invariants.gradient(t, x).H
                dx[self._others] = -self._invert_dependent_columns(H) @ self.along(name, h)
        return dx, du, {}

    @cached_property
    def _exact_closing(self) -> tuple[FloatArray, FloatArray]:
        """The inverse of H over the dependent states, by the graph, and their change with the independent ones."""
        assert self._exact is not None  # noqa: S101 - who asks has looked
        H = self._exact.slopes[2][:, : len(self.model.states)]
        inverse = self._invert_dependent_columns(H)
        return inverse, -inverse @ H[:, self._kept]

    @property
    def _invariants(self) -> Invariants:
        """The invariants at the point."""
        return Invariants(PointEvaluator(self.model), self.point.inputs, self.pairs, self.scales)

    @cached_property
    def _row_terms(self) -> FloatArray:
        """The sizes of the terms of the rows of H at the point."""
        return self._invariants.gradient(self.point.time, self.point.states).reference

    def _invert_dependent_columns(self, H: FloatArray) -> FloatArray:
        """Return the least-squares inverse of H over the dependent states, in sizes of the states."""
        scales = self.scales[self._others]
        rows = row_sizes(H * self.scales, self._row_terms)
        scaled = H[:, self._others] * scales / rows[:, None]
        return np.asarray(scales[:, None] * np.linalg.pinv(scaled, rcond=max(scaled.shape) * EPS) / rows)

    def _compute_trim_shift(self, name: str, balance: Equations) -> tuple[FloatArray, FloatArray, dict[str, float]]:
        unknowns = balance.unknowns
        here = unknowns.at(unknowns.z0)

        def r(model: Model, inputs: FloatArray) -> FloatArray:
            return balance.compute_values(replace(here, evaluator=PointEvaluator(model), inputs=inputs))

        # Changes of rates are not functions of the graph: for steady motions the whole residual is differenced.
        if self._exact is not None and name in self._exact_names and not balance.moving:
            rates, _, h = self._differentiate_at_fixed_point(name)
            r_p = np.concatenate((h, rates[balance.at_rest])) / balance.sizes
        else:
            r_p = self.along(name, r)
        r_p = r_p * self.step(name) / STEP
        J = balance.jacobian(unknowns.z0)[0]
        # Smaller singular values than 1e-11 are rounding, along a family: nothing moves there.
        dz = np.linalg.lstsq(J, -r_p, rcond=1e-11)[0]
        remaining_norm = float(np.linalg.norm(J @ dz + r_p))
        if (
            remaining_norm > BRANCH_RESIDUAL_TOLERANCE * max(float(np.linalg.norm(r_p)), 1.0)
            or np.abs(dz).max(initial=0.0) > FOLD_SENSITIVITY_THRESHOLD
        ):
            raise NumericalError(
                f"The equilibrium has no continuation in '{name}': the equations of the trim are singular there (a "
                "fold, at which two solutions meet), and its derivative is infinite. Choose a point near it, or fix "
                "another quantity.",
                variable=name,
            )
        moves = dz * unknowns.scales / (self.step(name) / STEP)
        dx, du = np.zeros(len(self.model.states)), np.zeros(len(self.model.inputs))
        dx[unknowns.states] = moves[unknowns.state_columns]
        du[unknowns.inputs] = moves[unknowns.input_columns]
        further = moves[len(moves) - len(unknowns.parameters) :]
        return dx, du, dict(zip(unknowns.parameters, further.tolist(), strict=True))

    @cached_property
    def balance(self) -> Equations:
        """The equations of the trim at its solution."""
        point, model = self.point, self.model
        assert isinstance(point, TrimmedPoint)  # noqa: S101 - shift() has looked
        assert point.request is not None  # noqa: S101
        start = Candidate(PointEvaluator(model), point.time, point.states, point.inputs, point.parameters)
        return make_equations(start, replace(point.request, targets={}))

    @cached_property
    def pairs(self) -> dict[int, int]:
        """Which states are the rates of others."""
        return dict(kinematic_pairs(self.model, self.model.start))

    @cached_property
    def scales(self) -> FloatArray:
        """Sizes of the states."""
        return self.model.states.scales(self.point.states)

    def derivative(self, name: str) -> Derivative:
        """Return the derivatives by one parameter."""
        if self._exact is not None and name in self._exact_names:
            return self._exact_derivative(name)
        dx, du, further = self.shift(name)
        h, linear = self.step(name), self.linear
        # [[A, B], [C, D]] at every step of the difference.
        at, t = {}, self.point.time
        for k in WEIGHTS:
            s = k * self.step(name)
            model, inputs = self.with_parameter(name, self.value(name) + s)
            if further:
                model = model.with_parameters({n: self.value(n) + s * rate for n, rate in further.items()})
            x, u = self.point.states + s * dx, inputs + s * du
            slopes = None if _is_one_sided(self.request) else read_exact_slopes(model, t, x, u)
            if slopes is None:
                at[k] = self._linearize_generally(model, OperatingPoint(t, x, u))
                continue
            tangent = slopes.along(self._kept)  # of all rates by (y, u)
            columns = [*range(len(self._kept)), *(len(self._kept) + i for i in self._own_inputs)]
            at[k] = np.vstack((tangent.derivatives[self._kept], tangent.outputs))[:, columns]
        near, wide = (at[1] - at[-1]) / (2 * h), (at[2] - at[-2]) / (4 * h)
        slope = near + (near - wide) / 3
        base, entry_errors = matrix_and_errors(linear)
        # Errors of the four entries add up to 1.5 / h of one at most: 4 leaves room for estimates that are too small.
        rounding = 4 * (entry_errors + ROUNDING_ERROR * np.abs(base)) / h
        self._refuse_kink(name, base, at, slope, rounding)
        fourth = np.abs(at[2] + at[-2] - 4 * (at[1] + at[-1]) + 6 * base)  # noise, or what is as small as that
        rounding = np.maximum(rounding, fourth / (8 * h))
        second = np.abs(near - wide) / 3
        # An error of fourth order is about the square of that of second order, both relative; 1e-300: zeros.
        errors = second * np.minimum(1.0, second / np.maximum(np.abs(slope).max(initial=0.0), 1e-300)) + rounding
        return self._of_blocks(name, slope, errors, dx, du)

    def _of_blocks(
        self, name: str, slope: FloatArray, errors: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Derivative:
        """Return a derivative from that of [[A, B], [C, D]], its errors, and how the point moves."""
        p = len(self.linear.states)
        blocks, off = ((M[:p, :p], M[:p, p:], M[p:, :p], M[p:, p:]) for M in (slope, errors))
        inputs, value = du[self._own_inputs], self.value(name)
        return Derivative(*blocks, states=dx, inputs=inputs, value=value, errors=MatrixErrors(*off))

    def _exact_derivative(self, name: str) -> Derivative:
        """Return the same through the graph: f_y + f_z Z with Z = dz/dy of the dependent states, and its change."""
        at = self._exact
        assert at is not None  # noqa: S101 - derivative() has looked
        dx, du, further = self.shift(name)
        moved = at.along(dx, du, self._direction(name, further))
        n, independent, dependent = len(dx), self._kept, self._others
        dH, (inverse, Z) = moved[2], self._exact_closing
        dZ = -inverse @ (dH[:, independent] + dH[:, dependent] @ Z)
        slopes, dslopes = (np.vstack((s[0][independent], s[1])) for s in (at.slopes, moved))
        along_y = dslopes[:, independent] + dslopes[:, dependent] @ Z + slopes[:, dependent] @ dZ
        slope = np.hstack((along_y, dslopes[:, [n + i for i in self._own_inputs]]))
        size, dsize = np.abs(slopes), np.abs(dslopes)
        terms = dsize[:, independent] + dsize[:, dependent] @ np.abs(Z) + size[:, dependent] @ np.abs(dZ)
        terms += terms.max(axis=1, initial=0.0, keepdims=True)
        errors = EXACT_DERIVATIVE_ERROR * np.hstack((terms, np.abs(slope[:, len(independent) :])))
        return self._of_blocks(name, slope, errors, dx, du)

    def _differentiate_at_fixed_point(self, name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what a parameter changes of rates, outputs and invariants while the point stays."""
        assert self._exact is not None  # noqa: S101 - who calls has looked
        return self._exact.differentiate_by_parameters(self._direction(name, {}))

    def _direction(self, name: str, further: dict[str, float]) -> FloatArray:
        rates = {name: 1.0, **further}
        return np.array([rates.get(n, 0.0) for n in self._exact_names])

    @cached_property
    def _exact(self) -> AtPoint | None:
        """The graph at the point, or None."""
        return None if self.graph is None else self.graph.at(self.point)

    @property
    def _exact_names(self) -> tuple[str, ...]:
        return () if self.graph is None else self.graph.names

    @cached_property
    def _others(self) -> list[int]:
        """The dependent states."""
        return [i for i, s in enumerate(self.model.states) if not self.linear.states.has(s.name)]

    @cached_property
    def _own_inputs(self) -> list[int]:
        """Where the inputs of the linear model stand among those of the model."""
        return [self.model.inputs.index_of(name) for name in self.linear.inputs.names]

    def _refuse_kink(
        self, name: str, base: FloatArray, at: dict[int, FloatArray], slope: FloatArray, rounding: FloatArray
    ) -> None:
        """Reject where the two sides differ by as much at half the step."""
        full_step_kink, half_step_kink = np.abs(at[1] + at[-1] - 2 * base), np.abs(at[2] + at[-2] - 2 * base) / 2
        # A curvature below a thousandth of the change itself does not matter as a kink.
        size = 1e-3 * self.step(name) * np.abs(slope).max(initial=0.0)
        doubtful = (full_step_kink > np.maximum(size, 8 * rounding * self.step(name))) & (
            full_step_kink > ONE_SIDED_DIFFERENCE_RATIO * half_step_kink
        )
        if doubtful.any():
            raise NumericalError(
                f"The linear model has a kink where '{name}' is {self.value(name):g}: its changes differ on the two "
                "sides, so it has no derivative. Choose a value near it, or linear models at two of its values: "
                f"fl.sweep(model, {{{name!r}: [V1, V2]}}).",
                variable=name,
            )

    @cached_property
    def _kept(self) -> list[int]:
        return [self.model.states.positions[name] for name in self.linear.states.names]

    def _linearize_generally(self, model: Model, point: OperatingPoint) -> FloatArray:
        """Return the same by the general procedure, on the manifold."""
        names, t = self.linear.states.names, point.time
        if len(model.constraints):
            independent_values = {n: float(point.states[model.states.positions[n]]) for n in names}
            point = assemble_branch_point(PointEvaluator(model), t, point.states, point.inputs, independent_values)
        request = Request(
            independent=names if len(model.constraints) else None,
            inputs=self.linear.inputs.names,
            outputs=self.linear.outputs.names,
            derivatives=self.request.derivatives if _is_one_sided(self.request) else "auto",
            hold_modes=self.request.hold_modes,
            keep_inaccurate=True,
        )
        linear = linearize_request(model, replace(point, parameters=model.start.parameters), request)
        return matrix_and_errors(linear)[0]


def _is_one_sided(request: Request) -> bool:
    """Whether the derivatives of a request are those on one side of the point."""
    return isinstance(request.derivatives, Differences) and request.derivatives.side is not None
