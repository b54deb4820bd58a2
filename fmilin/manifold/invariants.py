"""The invariants h(t, x) = 0 of a model: what is declared, closed under the motion.

A position-level constraint g(t, x) = 0 brings a hidden one, L_f g = g_t + g_x f(t, x, u) + g_u u' (Spencer eqs. 2.2 and
2.7; here for any states). Where the derivative of a state is a state the rate is read off, without an evaluation.
Gradients are exact where g is an expression and f has exact products; what remains is differenced, and says so. An
input u in a constraint (prescribed motion) needs its derivative, the input ``der(u)``.

The file is longer than others because values, rates and gradients share what is measured of a model.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ConstraintError, ModelError, NumericalError
from fmilin.manifold.rank import TINY, fixed_direction, scaled, threshold
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation
from fmilin.numerics.differences.differences import jacobian_by_differences
from fmilin.numerics.differences.sweep import noise_level
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

EIGHTH_ORDER = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # weights of F(s) - F(-s) at s = h, 2h, 3h, 4h
STEP = 2.0**-8  # of the length on which F changes: truncation h^8/630 and rounding eps/h are then both below 1e-13
CENTRAL_STEP_SIZE = 2.0**-17  # in sizes of the states: truncation h^2 is about rounding eps/h
DISPLACEMENT_SIZE = 1e-2  # how far from a point, in sizes of the states, the usual sizes of the rows of G are read
SUSPICIOUS_ROW_RATIO = 1e-9  # a row of G smaller than this part of the largest may be rounding of terms that cancel
MIN_MODEL_NOISE_RATIO = 1e-13  # larger noise of the rates is the model's own: iterations or tables inside it


@dataclass(frozen=True)
class Gradient:
    """H = Dh with an error estimate."""

    H: FloatArray  # shape (m, N)
    error: FloatArray  # (m, N), estimated absolute error of each entry; 0 where exact
    reference: FloatArray  # (m,), the size of the terms of a row, states scaled
    noise: FloatArray  # (m,), of h itself, from rates of the model; 0 where rounding
    scales: FloatArray  # (N,), sizes of the states

    @cached_property
    def is_exact(self) -> bool:
        """Whether nothing of H was measured."""
        return not self.error.any()

    @cached_property
    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        return scaled(self.H, self.scales, self.reference, self.error)

    @property
    def scaled(self) -> FloatArray:
        """H with columns in sizes of the states and rows normalized; zeros where a row is nothing but rounding."""
        return self._scaled[0]

    @property
    def sizes(self) -> FloatArray:
        """The norms of the rows of H in sizes of the states, shape (m,); of its terms for a row that is rounding."""
        return self._scaled[1]

    @property
    def threshold(self) -> float:
        """The fraction of the largest singular value of :attr:`scaled` below which one counts as zero."""
        return threshold(self.H, self.scales, self.error)


class Invariants:
    """h(t, x), inputs held: the residuals that a model declares, then, unless ``declared_alone``, the hidden ones."""

    def __init__(
        self,
        evaluator: PointEvaluator,
        inputs: FloatArray,
        pairs: Mapping[int, int],
        scales: FloatArray,
        *,
        moving: bool | None = None,
        declared_alone: bool = False,
    ) -> None:
        self.evaluator = evaluator
        self.model = evaluator.model
        self.inputs = inputs
        self.pairs = dict(pairs)
        self.scales = scales
        constraints = self.model.constraints
        self.declared = len(constraints)
        self._last: tuple[tuple[float, bytes, bytes], Gradient] | None = None
        self.hidden = [] if declared_alone else constraints.hidden
        paired = sorted(self.pairs)
        self._paired = np.array(paired, dtype=np.intp)
        self._partners = np.array([self.pairs[i] for i in paired], dtype=np.intp)
        self._analytic = bool(constraints.analytic.all())
        self._kinematic = self._analytic and self._rates_are_states()  # h follows from states alone, no evaluation
        self.prescribing = constraints.prescribing  # inputs that enter constraints: a prescribed motion
        self._moving = moving
        self._noise: FloatArray | None = np.zeros(len(scales)) if self._kinematic else None
        self._is_gradient_measured = False  # until the first gradient says so
        if self.prescribing:
            self._require_derivatives()

    def __len__(self) -> int:
        return self.declared + len(self.hidden)

    def _rates_are_states(self) -> bool:
        """Whether the rates of all states in constraints that need a hidden one are states."""
        if not self.hidden:
            return True
        unpaired = np.ones(len(self.scales), dtype=bool)
        unpaired[self._paired] = False
        return not self.model.constraints.structure[self.hidden][:, unpaired].any()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per invariant."""
        names = self.model.constraints.names
        return (*names, *(f"hidden rate of {names[i]}" for i in self.hidden))

    @property
    def chain(self) -> dict[int, int]:
        """Input to the input that is its time derivative."""
        return self.model.inputs.rates

    @property
    def connections(self) -> NDArray[np.bool_] | None:
        """Which states each constraint contains, rates included, shape (m, N); None where the model computes them."""
        if not self._analytic or not self._kinematic:
            return None if len(self) else np.zeros((0, len(self.scales)), dtype=bool)
        structure = self.model.constraints.structure
        rates = structure[self.hidden].copy()
        rates[:, self._partners] |= rates[:, self._paired]
        return np.vstack((structure, rates))

    @property
    def is_position_level(self) -> list[bool]:
        """Whether each row constrains positions (and has or needs a rate row)."""
        rows = self.model.constraints.rows
        return [row.level == "position" for row in rows] + [False] * len(self.hidden)

    def values(
        self, t: float, x: FloatArray, inputs: FloatArray | None = None, visit: Evaluation | None = None
    ) -> FloatArray:
        """Return h, shape (m,), in the units of each constraint; ``visit`` is an evaluation there that was made."""
        if not len(self):
            return np.empty(0)
        u = self.inputs if inputs is None else inputs
        if visit is None and self.hidden and not self._kinematic:
            visit = self.evaluator.evaluate(t, x, u)
        if self._analytic:
            g = self.model.constraints.residuals(t, x, u, np.empty(0))
        else:
            g = self._residuals(t, x, u) if visit is None else visit.residuals
        if not self.hidden:
            return g
        return np.concatenate((g, self._rates(t, x, u, self._velocity(x, None if self._kinematic else visit))))

    def evaluate_batch(self, t: float, x: FloatArray, inputs: FloatArray | None = None) -> FloatArray:
        """Return h at points x (k, N), shape (k, m): one evaluation where batches are supported; NaN where it fails."""
        u = self.inputs if inputs is None else inputs
        # Expressions need no evaluation of the model, which is all that a batch makes faster.
        if self.model.batches and not self._analytic:
            with suppress(ModelError, NumericalError):
                residuals = None
                # Residuals alone do not give hidden constraints: the rates of the batch below do.
                if not self.hidden:
                    residuals = self.evaluator.constraint_residuals(t, x, np.broadcast_to(u, (len(x), len(u))))
                if residuals is not None:
                    return residuals
            self.evaluator.evaluate_ahead([(t, point, u) for point in x])
        h = np.full((len(x), len(self)), np.nan)
        for k, point in enumerate(x):
            with suppress(ModelError, NumericalError):
                h[k] = self.values(t, point, u)
        return h

    def newton_matrix(self, t: float, x: FloatArray, inputs: FloatArray | None = None) -> FloatArray:
        """Return H = dh/dx, shape (m, N), as Newton's method needs it.

        A gradient that is measured takes the evaluations of a few steps of each state, which tell its error. Newton's
        method does without: an error of H slows it down, but does not move what it converges to. It takes central
        differences of one step each, and the measured gradient only where the model has no values at one of them.
        """
        if not self._is_gradient_measured:
            return self.gradient(t, x, inputs).H
        steps = CENTRAL_STEP_SIZE * self.scales
        moved = np.concatenate((x + np.diag(steps), x - np.diag(steps)))
        ahead, behind = np.split(self.evaluate_batch(t, moved, inputs), 2)
        H = ((ahead - behind) / (2 * steps[:, None])).T
        return H if np.isfinite(H).all() else self.gradient(t, x, inputs).H

    def gradient(self, t: float, x: FloatArray, inputs: FloatArray | None = None) -> Gradient:
        """Return H = dh/dx at a point, shape (m, N). The last one is cached: several callers need it."""
        u = self.inputs if inputs is None else inputs
        key = (t, x.tobytes(), u.tobytes())
        if self._last is None or self._last[0] != key:
            self._last = (key, self._gradient(t, x, u))
            self._is_gradient_measured = bool(self._last[1].error.any())
        return self._last[1]

    def _gradient(self, t: float, x: FloatArray, u: FloatArray) -> Gradient:
        if not len(self):
            nothing = np.empty((0, len(x)))
            return Gradient(nothing, nothing, np.empty(0), np.empty(0), self.scales)
        G, error = self._residual_gradient(t, x, u)
        reference = np.abs(G) @ self.scales
        reference = np.maximum(reference, self._sizes_nearby(t, x, u, reference))
        if not self.hidden:
            return Gradient(G, error, reference, np.zeros(len(G)), self.scales)
        visit = None if self._kinematic else self.evaluator.evaluate(t, x, u)
        w = self._velocity(x, visit)
        W, W_error = self._velocity_gradient(t, x, u)
        curvature, curvature_error = self._curvature(t, x, u, w)
        bent, Gr = np.abs(curvature), G[self.hidden]
        sizes, moving = np.abs(Gr), np.abs(W)
        noise = self._noise_of_rates(t, x, u, np.abs(w) + moving @ self.scales)
        # At rest there is no curvature of which this could be a part: TINY keeps it a number.
        relative = float((noise / self.scales).max() / max((np.abs(w) / self.scales).max(), TINY))
        error2 = curvature_error + sizes @ W_error + error[self.hidden] @ moving + relative * bent
        return Gradient(
            np.concatenate((G, curvature + Gr @ W)),
            np.concatenate((error, error2)),
            np.concatenate((reference, bent @ self.scales + sizes @ moving @ self.scales)),
            np.concatenate((np.zeros(len(G)), sizes @ noise)),
            self.scales,
        )

    def _sizes_nearby(self, t: float, x: FloatArray, u: FloatArray, here: FloatArray) -> FloatArray:
        """Return how large the rows of G are nearby, (m,), where terms do not cancel; zeros where no row is small."""
        displaced = x + DISPLACEMENT_SIZE * self.scales * fixed_direction(1736, -1.0, len(x))
        # Expressions cost little: their rows are compared with those nearby, whatever their size.
        if self._analytic:
            G = self.model.constraints.partials(t, displaced, u, np.empty(0)).states
        elif (here > SUSPICIOUS_ROW_RATIO * here.max(initial=0.0)).all():
            return np.zeros(self.declared)
        else:
            G = np.zeros((self.declared, len(x)))
            # Where the model has no values, the size of the row at the point itself has to do.
            with suppress(ModelError, NumericalError):
                G = self._residual_gradient(t, displaced, u)[0]
        sizes = np.abs(G) @ self.scales
        return sizes if np.isfinite(sizes).all() else np.nan_to_num(sizes, nan=0.0, posinf=0.0)

    def input_gradient(self, t: float, x: FloatArray) -> FloatArray:
        """Return h_u, shape (m, nu): zero unless an input prescribes a motion."""
        k = len(self.inputs)
        h_u = np.zeros((len(self), k))
        if not self.prescribing:
            return h_u
        # Hidden rows change with inputs by second derivatives, which only differences give.
        if self._analytic and not self.hidden:
            return self.model.constraints.partials(t, x, self.inputs, np.empty(0)).inputs
        scales = self.model.inputs.scales(self.inputs)
        return jacobian_by_differences(lambda u: self.values(t, x, u), self.inputs, scales)[0]

    def drift(self, t: float, x: FloatArray, inputs: FloatArray | None = None) -> FloatArray:
        """Return h_t + h_u u', shape (m,): what moves the manifold itself; by differences, for checks only."""
        u = self.inputs if inputs is None else inputs
        if not len(self):
            return np.zeros(0)
        moving = self._is_moving(t, x, u)
        if not moving and not self.prescribing:
            return np.zeros(len(self))
        rates = self._input_rates(u)
        # Steps are a part of the time in which the fastest input moves by its size, at most of a second.
        fastest = float(np.max(np.abs(rates) / self.model.inputs.scales(u), initial=1.0))
        # A co-simulation FMU cannot be evaluated at another time: shift it only where a constraint depends on time.
        along_time = float(moving)
        return differentiate_central(lambda s: self.values(t + s * along_time, x, u + s * rates), STEP / fastest)

    @property
    def moving(self) -> bool:
        """Whether the constraints are known to depend on time, from :meth:`find_time_dependence`."""
        return bool(self._moving)

    def find_time_dependence(self, t: float, x: FloatArray) -> bool:
        """Return whether the constraints depend on time; without any, no evaluation is needed."""
        return len(self) > 0 and self._is_moving(t, x, self.inputs)

    def _residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        alone = self.evaluator.constraint_residuals(t, x, u)
        return self.evaluator.evaluate(t, x, u).residuals if alone is None else alone

    def _velocity(self, x: FloatArray, visit: Evaluation | None) -> FloatArray:
        """Return w = x': state partners where there are, else what the model computed; shape (N,)."""
        w = np.zeros_like(x) if visit is None else visit.derivatives.copy()
        w[self._paired] = x[self._partners]
        return w

    def _noise_of_rates(self, t: float, x: FloatArray, u: FloatArray, terms: FloatArray) -> FloatArray:
        """Return the noise of x' (N,) where it comes from the model, measured once; 0 where it is rounding of terms."""
        if self._noise is None and self.evaluator.exact_slopes(t, x, u) is not None:
            self._noise = np.zeros_like(x)  # equations, no black box
        if self._noise is None:
            noise = noise_level(lambda s: self.evaluator.evaluate(t, s, u).derivatives, x, self.scales)
            noise[self._paired] = 0.0
            # A model that solves for its rates together spreads the rounding of the fastest one over all.
            terms = np.maximum(terms, self.scales * np.max(terms / self.scales))
            self._noise = np.where(noise > MIN_MODEL_NOISE_RATIO * terms, noise, 0.0)
        return self._noise

    def _input_rates(self, u: FloatArray) -> FloatArray:
        """Return u': inputs that are derivatives of others; zero where there is none."""
        rates = np.zeros_like(u)
        for j, derivative in self.chain.items():
            rates[j] = u[derivative]
        return rates

    def _rates(self, t: float, x: FloatArray, u: FloatArray, w: FloatArray) -> FloatArray:
        """Return L_f g for the rows that need it."""
        du = self._input_rates(u) if self.prescribing else np.zeros_like(u)
        if self._analytic:
            partials = self.model.constraints.partials(t, x, u, np.empty(0))
            return (partials.time + partials.states @ w + partials.inputs @ du)[self.hidden]
        exact = self.evaluator.products(t, x, u, w[:, None], du[:, None])
        rates = np.full(self.declared, np.nan) if exact is None else exact.residuals[:, 0].copy()
        finite, moving = np.isfinite(rates), self._is_moving(t, x, u)
        # Steps are a part of the time in which the fastest state moves by its size, or of a second where time counts.
        # At rest the direction w is nearly zero: 1e-3 keeps the step finite.
        fastest = max(float(np.max(np.abs(w) / self.scales, initial=0.0)), 1.0 if moving else 1e-3)
        # Products hold time fixed: the change with time is added to them.
        if moving and finite.any():
            rates += differentiate_central(lambda s: self.evaluator.evaluate(t + s, x, u).residuals, STEP)
        if not finite[self.hidden].all():
            h, dt = STEP / fastest, float(moving)  # a model's time is left alone where nothing depends on it
            measured = differentiate_central(
                lambda s: self.evaluator.evaluate(t + s * dt, x + s * w, u + s * du).residuals, h
            )
            rates = np.where(finite, rates, measured)
        return rates[self.hidden]

    def _is_moving(self, t: float, x: FloatArray, u: FloatArray) -> bool:
        """Whether constraints depend on time: as written, or by trying where the model computes them."""
        if self._moving is None:
            self._moving = self.model.constraints.time_dependent
            if not self._moving and not self._analytic:
                here = self.evaluator.evaluate(t, x, u).residuals
                # Two times, as a periodic constraint, or one with a step in time, may be the same at one of them.
                self._moving = any(self._differs(t + later, x, u, here) for later in (1e-3, 0.1))
        return self._moving

    def _differs(self, t: float, x: FloatArray, u: FloatArray, residuals: FloatArray) -> bool:
        try:
            return not np.array_equal(self.evaluator.evaluate(t, x, u).residuals, residuals, equal_nan=True)
        except (ModelError, NumericalError):
            # A model without values at another time, as a co-simulation FMU, may depend on time or not: no is assumed.
            return False

    def _residual_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return G = dg/dx of all declared rows with its error, each (m, N)."""
        if self._analytic:
            G = self.model.constraints.partials(t, x, u, np.empty(0)).states
            return G, np.zeros_like(G)
        if (alone := self.evaluator.constraint_gradient(t, x, u)) is not None:
            return alone[1], np.zeros_like(alone[1])
        procedure = self.evaluator.exact_slopes(t, x, u)
        if procedure is not None and procedure.constraint_gradient is not None:
            return procedure.constraint_gradient, np.zeros_like(procedure.constraint_gradient)
        return self._exact_or_measured(t, x, u, "residuals")

    def _velocity_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dw/dx with its error, each (N, N)."""
        n = len(x)
        W, error = np.zeros((n, n)), np.zeros((n, n))
        if not self._kinematic:
            procedure = self.evaluator.exact_slopes(t, x, u)
            exact = None if procedure is None else procedure.rate_gradient()
            if exact is not None:
                W, error = exact, np.zeros_like(exact)
            else:
                W, error = self._exact_or_measured(t, x, u, "derivatives")
            W, error = W.copy(), error.copy()
        W[self._paired] = 0.0
        error[self._paired] = 0.0
        W[self._paired, self._partners] = 1.0
        return W, error

    def _curvature(self, t: float, x: FloatArray, u: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return d/dx (g_t + g_x w + g_u u'), w held, of the hidden rows, with its error."""
        du = self._input_rates(u) if self.prescribing else np.zeros_like(u)
        exact = self.model.constraints.curvature(t, x, u, w, du).states[self.hidden]
        return self._completed(exact, lambda s: self._rates(t, s, u, w), x)

    def _exact_or_measured(self, t: float, x: FloatArray, u: FloatArray, what: str) -> tuple[FloatArray, FloatArray]:
        n = len(x)
        exact = self.evaluator.products(t, x, u, np.eye(n), np.zeros((len(u), n)))
        products: FloatArray | None = None if exact is None else getattr(exact, what)

        def evaluate_ahead(points: Sequence[FloatArray]) -> None:
            self.evaluator.evaluate_ahead([(t, s, u) for s in points])

        def read(s: FloatArray) -> FloatArray:
            values: FloatArray = getattr(self.evaluator.evaluate(t, s, u), what)
            return values

        return self._completed(products, read, x, evaluate_ahead if self.model.batches else None)

    def _completed(
        self,
        exact: FloatArray | None,
        function: Callable[[FloatArray], FloatArray],
        x: FloatArray,
        evaluate_ahead: Callable[[Sequence[FloatArray]], None] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return a Jacobian and its error: differenced where it is not known exactly, or not finite."""
        if exact is not None and np.isfinite(exact).all():
            return exact, np.zeros_like(exact)
        measured, error = jacobian_by_differences(function, x, self.scales, evaluate_ahead)
        if exact is None:
            return measured, error
        finite = np.isfinite(exact)
        return np.where(finite, exact, measured), np.where(finite, 0.0, error)

    def _require_derivatives(self) -> None:
        """Reject a constraint with a rate that needs the derivative of an input that the model does not take."""
        constraints, names = self.model.constraints, self.model.inputs.names
        for i in self.hidden:
            missing = [j for j in np.flatnonzero(constraints.input_structure[i]) if j not in self.chain]
            if missing:
                u = names[missing[0]]
                raise ConstraintError(
                    f"The input '{u}' prescribes a motion: it enters the constraint '{constraints.names[i]}', so its "
                    f"time derivative enters the model, but there is no input 'der({u})'. Give the model the inputs "
                    f"'der({u})' and, for mechanics, 'der(der({u}))', or make '{u}' a state driven by its derivative."
                )


def differentiate_central(function: Callable[[float], FloatArray], step: float) -> FloatArray:
    """Return dF/ds (r,) at s = 0 by the central difference of order 8, with error h^8 F^(9) / 630 and rounding."""
    differences = [weight * (function(k * step) - function(-k * step)) for k, weight in enumerate(EIGHTH_ORDER, 1)]
    return np.asarray(sum(differences) / step)
