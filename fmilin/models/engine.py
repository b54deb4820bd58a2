"""A model whose numbers come from an engine in one visit, which computes all rates and quantities: an adapter's."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.manifold.rank import row_sizes
from fmilin.model.interface import Evaluation, ExactSlopes, Tangent
from fmilin.models.native_engine import NativeEngine, Quantity, QuantityEvaluator, offered
from fmilin.models.native_model import NativeModel
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import RANK


class Engine(NativeEngine):
    """Foreign code that computes x' = f(t, x, u) and quantities z = c(t, x, u) in one visit.

    ``constraints`` are over states, inputs, fixed ``parameters`` and quantities, with a ``rate`` where the time
    derivative is a quantity too. ``notes`` become warnings of every linear model.
    """

    # what else it computes, nz of them: sensors, positions of points, gaps of loops. May be empty
    quantities: Signals = Signals()
    whole_slopes: bool = False  # whether :meth:`slopes` knows all slopes along the manifold, as good as exact ones

    @abstractmethod
    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates of all states, shape (N,), and all quantities, shape (nz,); x (N,), u (nu,)."""

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return exact derivatives of rates (N, k) and quantities (nz, k) along dx (N, k), du (nu, k); None without."""

    def kinematics(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return quantities (nz,) and slopes (nz, N), NaN where dynamics are needed; None if no less than a visit."""

    def positions(self, x: FloatArray) -> FloatArray | None:
        """Return the quantities (nz,) that :meth:`kinematics` knows, without their slopes; None without it."""

    @cached_property
    def available(self) -> dict[str, Quantity]:
        """Quantities, rates, inputs and states; states and inputs go before quantities of the same name."""
        further = (Quantity(signal, ("quantity", i)) for i, signal in enumerate(self.quantities))
        return offered(self.states, self.inputs, further=further)

    def evaluator(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> QuantityEvaluator:
        """Return what picks these quantities out of a visit."""
        return _Picked(self, outputs, observed)


class _Picked(QuantityEvaluator):
    """Some of the rates, quantities, states and inputs of an engine, which computes all of them at once."""

    def __init__(self, engine: Engine, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> None:
        n, nz = len(engine.states), len(engine.quantities)
        self._engine, self._sizes = engine, (n, nz)
        first = {"rate": 0, "quantity": n, "state": n + nz, "input": 2 * n + nz}
        self._outputs, self._observed = (
            np.array([first[kind] + i for kind, i in (q.source for q in some)], dtype=np.intp)
            for some in (outputs, observed)
        )

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self._picked(*self._engine.visit(t, x, u), x, u)

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        slopes = self._engine.slopes(t, x, u, dx, du)
        return None if slopes is None else self._picked(*slopes, dx, du)

    def observed(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        z = self._engine.positions(x)
        seen = None if z is None else self._picked(np.full(len(x), np.nan), z, x, u)[2]
        return seen if seen is not None and np.isfinite(seen).all() else None

    def _picked(
        self, rates: FloatArray, quantities: FloatArray, x: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        n, nz = self._sizes
        if len(rates) != n or len(quantities) != nz:
            raise ModelError(
                f"The engine of '{self._engine.info.name}' returned {len(rates)} rates and {len(quantities)} "
                f"quantities for {n} states and {nz} quantities."
            )
        values = np.concatenate((rates, quantities, x, u))
        return values[:n], values[self._outputs], values[self._observed]


class GivenSlopes(ExactSlopes):
    """Slopes at one point, with a column for each state, then for each input, ready for a choice of states."""

    def __init__(self, values: Evaluation, slopes: Evaluation, *, smooth: bool = False) -> None:
        self.values, self._slopes, self.smooth = values, slopes, smooth
        self.constraint_gradient = slopes.residuals[:, : len(slopes.derivatives)]

    def along(self, independent: Sequence[int]) -> Tangent:
        """Return the slopes with these states kept; the gradient of the residuals gives the others."""
        H, f, y = self.constraint_gradient, self._slopes.derivatives, self._slopes.outputs
        assert H is not None  # noqa: S101 - it has just been made
        n = len(f)
        kept = list(independent)
        others = [i for i in range(n) if i not in set(kept)]
        T = np.zeros((n, len(kept)))
        T[kept, range(len(kept))] = 1.0
        if others:
            # Of an engine nothing is known of a row's terms: what is so much smaller than other rows is rounding.
            largest = np.full(len(H), np.linalg.norm(H, axis=1).max(initial=0.0))
            H = H / row_sizes(H, largest)[:, None]
            dependent, _, rank, _ = np.linalg.lstsq(H[:, others], -H[:, kept], rcond=RANK)
            if rank < len(others):
                raise NumericalError("The independent states do not determine the others at this point.")
            T[others] = dependent
        rates, seen = (np.hstack((a[:, :n] @ T, a[:, n:])) for a in (f, y))
        return Tangent(T, np.zeros((n, f.shape[1] - n)), rates, seen)


class EngineModel(NativeModel):
    """The model of an :class:`Engine`."""

    engine: Engine

    @property
    def used_alone(self) -> tuple[object, ...]:
        """The engine, which all views share."""
        return (self.engine,)

    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return residuals and their gradient from quantities that need no dynamics; None where there are none."""
        sources = [self._quantity(name).source for name in self._observed_names()]
        if x.ndim > 1 or not sources or any(kind != "quantity" for kind, _ in sources):
            return None
        kinematics = self.engine.kinematics(t, x, u)
        if kinematics is None:
            return None
        z, dz = (a[[i for _, i in sources]] for a in kinematics)
        if not (np.isfinite(z).all() and np.isfinite(dz).all()):
            return None
        n = len(x)
        along = self.constraints.along((t, x, u, z), np.vstack((np.eye(n), np.zeros((len(u), n)), dz)))
        return self._residuals(t, x, u, z), along

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the engine's own slopes with dependent states eliminated; None where it does not have all of them."""
        if not self.engine.whole_slopes or not self._has_own_constraints:
            return None
        n, k = len(x), len(u)
        slopes = self.products(t, x, u, np.eye(n, n + k), np.eye(n + k)[n:])
        if slopes is None or not all(np.isfinite(a).all() for a in (slopes.derivatives, slopes.residuals)):
            return None
        return GivenSlopes(self.evaluate(t, x, u), slopes)
