"""Linear models with parameters in a box: a fractional transformation by exact derivatives, and its remainder.

With p = middle + half d, d in [-1, 1], the affine part [A B; C D](d) = M_0 + sum d_i M_i is exact where the matrices
are affine in p. M_i = L_i R_i by singular values gives d_i a block of the size of its rank: w_i = d_i z_i with
z_i = R_i (x, u).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.formats import Holds
from fmilin.linear_model.builder import with_parameters_as_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters, assemble_branch_point, operating_point
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import BoxOptions, takes_linearization
from fmilin.signals import FloatArray, Signal, Signals, as_numbers
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.trimming.search_algorithm import search
from fmilin.trimming.trim_report import TrimmedPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A model at a point, with other values of some parameters, the point following.

Box = Mapping[str, tuple[float, float]]


class VariedModel:
    """Linear models over a box of parameters: a trimmed point is trimmed again, others keep independent states.

    Parameters of the box are counted as p = middle + half q, q in [-1, 1].
    """

    def __init__(self, model: Model, point: OperatingPoint | None, box: Box, request: Request) -> None:
        for name, limits in box.items():
            pair = as_numbers(limits, f"The range of '{name}'").ravel()
            if len(pair) != 2 or not np.isfinite(pair).all() or not pair[0] < pair[1]:
                raise UsageError(f"The range of '{name}' is {limits}: give its lowest and its highest value.")
        if not box:
            raise UsageError("No uncertain parameter was given: give a mapping of names to (lowest, highest).")
        if not model.moves_parameters and (unknown := [name for name in box if name not in model.parameters]):
            raise UnknownNameError.among(unknown[0], model.parameters, f"a parameter of '{model.info.name}'")
        self.model, self.box = model, dict(box)
        low, high = np.array([*box.values()], dtype=np.float64).T
        self.middle, self.half = (low + high) / 2, (high - low) / 2
        self.point = operating_point(model) if point is None else point
        self._request = request
        self._states = linearize_request(model, self.point, request).states.names

    def values(self, q: FloatArray) -> dict[str, float]:
        """Return the parameters, by name."""
        return dict(zip(self.box, (self.middle + self.half * q).tolist(), strict=True))

    def read_parameters(self, linear: LinearModel) -> FloatArray:
        """Return where a linear model with derivatives by the parameters stands."""
        values: FloatArray = np.array([linear.derivatives[name].value for name in self.box])
        return np.asarray((values - self.middle) / self.half)

    def at(self, values: Mapping[str, float]) -> tuple[Model, OperatingPoint]:
        """Return the model and the point with other parameters, which are inputs where these are what can be changed.

        Other parameters of a model stand in the point: what was made of the model's graph serves for all of them.
        """
        model, point = self.model, self.point
        if model.moves_parameters:
            model, point = with_parameters_as_inputs(model, point, [n for n in values if n not in model.parameters])
        if isinstance(point, TrimmedPoint) and point.request is not None:
            request = replace(point.request, fixed={**point.request.fixed, **values})
            guess = zip(model.states.names, point.states.tolist(), strict=True)
            return model, search(model, request, {n: v for n, v in guess if n not in request.fixed})
        inputs = point.inputs.copy()
        for name in [name for name in values if model.inputs.has(name)]:
            inputs[model.inputs.index_of(name)] = values[name]
        parameters = {name: float(value) for name, value in values.items() if not model.inputs.has(name)}
        at = OperatingPoint(point.time, point.states, inputs, {**point.parameters, **parameters})
        changed = apply_point_parameters(model, at)
        if not len(model.constraints):
            return model, at
        independent_values = {n: float(point.states[model.states.index_of(n)]) for n in self._states}
        moved = assemble_branch_point(PointEvaluator(changed), at.time, at.states, inputs, independent_values)
        return model, replace(moved, parameters=at.parameters)

    def linear(self, values: Mapping[str, float], *, derivatives: bool = True) -> LinearModel:
        """Return the linear model there, in the same coordinates, with its derivatives by the box's parameters."""
        request = self._request
        if len(self.model.constraints):
            request = replace(request, independent=self._states)
        inputs = self.model.inputs.names if request.inputs is None else request.inputs
        names = tuple(self.box) if derivatives else ()
        try:
            return linearize_request(*self.at(values), replace(request, inputs=inputs, parameters=names))
        except NumericalError as error:
            where = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
            raise NumericalError(f"With {where}: {error}", variable=error.variable) from None


RANK_TOLERANCE = 1e-9  # of a singular value relative to the largest of M_i that counts
MAX_CORNERS, MIN_INTERIOR_POINTS = (
    64,
    16,
)  # most corners of the box, and fewest points in it, at which the remainder is measured
SAFETY_FACTOR = 1.5  # by which the bound of the remainder is more than the largest that was measured


@dataclass(frozen=True, eq=False, repr=False)
class Uncertain(TableRepr):
    """A family of linear models over a box of parameters; see :func:`fmilin.uncertain`."""

    file_kind: ClassVar[Holds] = "uncertain model"  #: the formats of files that hold it: ``fmilin.formats``
    _attributes = ".nominal, .M, .blocks, .box, .at(...), .sample(n), .plot()"

    nominal: LinearModel  #: in the middle of the box, with its derivatives
    #: its first inputs w and first outputs z are those of the blocks, w = d z; then those of the nominal model
    M: LinearModel
    blocks: tuple[tuple[str, int], ...]  #: the parameters, each a real d in [-1, 1] repeated so many times
    box: Mapping[str, tuple[float, float]]  #: lowest and highest value of each parameter
    #: by matrix, A to D, of its shape: how far the true entries may be from the affine ones in the box, as measured at
    #: its corners and between, enlarged by one half
    remainder: Mapping[str, FloatArray]

    @implemented_in("fmilin.report.notebook:show_uncertain")
    def _print_table(self, page: Sheet) -> None: ...

    def at(self, parameters: Mapping[str, float]) -> LinearModel:
        """Return the affine linear model where some ``parameters`` have other values, the others in the middle.

        Raises UsageError when a parameter is not uncertain.
        """
        moved = {name: getattr(self.nominal, name).copy() for name in "ABCD"}
        for name, value in parameters.items():
            if name not in self.box:
                raise UsageError(f"'{name}' is not uncertain: the parameters are {', '.join(self.box)}.")
            for part in moved:
                moved[part] += (value - sum(self.box[name]) / 2) * getattr(self.nominal.derivatives[name], part)
        point = replace(self.nominal.point, parameters={**self.nominal.point.parameters, **parameters})
        return replace(self.nominal, **moved, point=point, derivatives={}, descriptor=None, discrete=None)

    def sample(self, n: int, seed: int = 0) -> list[LinearModel]:
        """Return ``n`` affine linear models at parameters that are equally likely in the box, by a ``seed``."""
        random = np.random.default_rng(seed)
        return [self.at({k: random.uniform(*limits) for k, limits in self.box.items()}) for _ in range(n)]

    def to_control(self, n: int = 20, seed: int = 0) -> list[object]:
        """Return ``n`` samples, by a ``seed``, as systems of python-control."""
        return [linear.to_control() for linear in self.sample(n, seed)]

    def eigenvalue_bars(self) -> NDArray[np.complex128]:
        """Return how far real and imaginary parts of the eigenvalues may move, to first order, shape (P,)."""
        slopes = self.nominal.eigenvalue_derivatives()
        half = np.array([(high - low) / 2 for low, high in self.box.values()])
        return np.asarray(np.abs(slopes.real) @ half + 1j * (np.abs(slopes.imag) @ half))

    def worst(self, n: int = 1000, seed: int = 0) -> tuple[dict[str, float], LinearModel]:
        """Return the parameters of the least damped of ``n`` samples (by a ``seed``) and corners, and its model."""
        random, names = np.random.default_rng(seed), list(self.box)
        points = [random.uniform(*zip(*self.box.values(), strict=True)) for _ in range(n)]
        points += [np.array(corner) for _, corner in zip(range(n), product(*self.box.values()), strict=False)]
        growth = [float(np.max(self.at(dict(zip(names, p, strict=True))).eigenvalues().real)) for p in points]
        chosen = dict(zip(names, points[int(np.argmax(growth))].tolist(), strict=True))
        return chosen, self.at(chosen)

    def robust_stability(self, n: int = 200, seed: int = 0) -> RobustStability:
        """Return by which factor the box may grow before an affine model in it is unstable, from both sides.

        ``at_least`` by the structured singular value at many frequencies, with slycot, ``at_most`` by the nearest
        unstable model along corners and ``n`` random directions (by a ``seed``), with its ``parameters``.
        UsageError: when slycot is not installed, or the model in the middle is not stable.
        """
        channels = sum(size for _, size in self.blocks)
        return robust_stability(self.nominal, self.M, channels, self.box, n, seed)

    @implemented_in("fmilin.report.uncertain_picture:draw_uncertain")
    def plot(self, n: int = 200, seed: int = 0) -> Figure:
        """Return eigenvalues in the middle of the box with bars, of ``n`` samples (by a ``seed``), and of corners."""
        ...

    @implemented_in("fmilin.export.files:save")
    def save(self, path: str | Path) -> None:
        """Write a function file of MATLAB to ``path``, as ``plant.m``: a ``uss`` with a ``ureal`` for each parameter.

        UsageError: when the file does not end in .m, or cannot be written.
        """
        ...


@one_at_a_time
@takes_linearization
def uncertain(
    model: Model,
    point: OperatingPoint | None,
    box: Box,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[BoxOptions],
) -> Uncertain:
    """Return the linear models over a box of parameters as a linear fractional transformation, with its remainder.

    Raises UsageError or UnknownNameError when a range is not valid, or a parameter is unknown.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        Where the model starts, for None. A trimmed point stays trimmed for other parameters, any other one keeps its
        independent states.
    box : mapping of str to (float, float)
        Lowest and highest value of each parameter, in its unit.
    linearization : Linearization, optional
        How the model is linearized; its options may be keywords instead.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> cart = OdeModel("cart", {"s": "v", "v": "F - k*s"}, inputs=["F"], parameters={"k": 4.0})
    >>> u = fl.uncertain(cart, None, {"k": (3.0, 5.0)})
    >>> u.blocks, u.M.B.shape, float(u.remainder["A"].max()) < 1e-12
    ((('k', 1),), (2, 2), True)
    """
    varied = VariedModel(model, point, box, Request.of("uncertain", linearization, options))
    nominal = varied.linear(varied.values(np.zeros(len(box))))
    affine = Uncertain(nominal, nominal, (), dict(box), {})
    rest = {name: np.zeros_like(getattr(nominal, name)) for name in "ABCD"}

    corners = [c for c, _ in zip(product((-1.0, 1.0), repeat=len(box)), range(MAX_CORNERS), strict=False)]
    between = np.random.default_rng(34).uniform(-1, 1, (max(MIN_INTERIOR_POINTS, len(corners)), len(box)))
    for q in [*corners, *between]:
        values = varied.values(np.asarray(q))
        true, guess = varied.linear(values, derivatives=False), affine.at(values)
        rest = {n: np.maximum(r, SAFETY_FACTOR * np.abs(getattr(true, n) - getattr(guess, n))) for n, r in rest.items()}
    M, blocks = _transformation(nominal, dict(zip(box, varied.half.tolist(), strict=True)))
    return Uncertain(nominal, M, blocks, dict(box), rest)


def _transformation(nominal: LinearModel, half: Mapping[str, float]) -> tuple[LinearModel, tuple[tuple[str, int], ...]]:
    """Return M and its blocks."""
    P, left_columns, right_rows, blocks = len(nominal.states), [], [], []
    for name, size in half.items():
        d = nominal.derivatives[name]
        U, s, V = np.linalg.svd(size * np.block([[d.A, d.B], [d.C, d.D]]))
        rank = int((s > RANK_TOLERANCE * float(s[0])).sum()) if s.size else 0
        left_columns.append(U[:, :rank] * np.sqrt(s[:rank]))
        right_rows.append(np.sqrt(s[:rank])[:, None] * V[:rank])
        blocks.append((name, rank))
    L, R = np.hstack(left_columns), np.vstack(right_rows)
    labels = [f"{name}[{k + 1}]" for name, rank in blocks for k in range(rank)]
    w, z = (Signals(Signal(f"{sign}.{label}") for label in labels) for sign in "wz")
    E, k, at = nominal.errors, len(labels), nominal.point
    more = (0, 0), (k, 0)  # rows or columns before those of the nominal model
    still_w, still_z = (dict.fromkeys(part.names, 0.0) for part in (w, z))
    M = replace(
        nominal,
        B=np.hstack((L[:P], nominal.B)),
        C=np.vstack((R[:, :P], nominal.C)),
        D=np.block([[np.zeros((k, k)), R[:, P:]], [L[P:], nominal.D]]),
        T_u=np.pad(nominal.T_u, more),
        inputs=Signals([*w, *nominal.inputs]),
        outputs=Signals([*z, *nominal.outputs]),
        point=replace(at, inputs={**still_w, **at.inputs}, outputs={**still_z, **at.outputs}),
        errors=replace(E, B=np.pad(E.B, more), C=np.pad(E.C, more[::-1]), D=np.pad(E.D, (more[1], more[1]))),
        derivatives={},
        descriptor=None,
    )
    return M, tuple(blocks)


# How much larger a box of parameters may be before a linear model in it is unstable, from both sides. From below 1 /
# max mu(M_11(jw)) with the structured singular value's upper bound of Fan, Tits and Doyle (1991; SLICOT AB13MD): every
# d on the diagonal counts as one of its own, and has a complex part of one in a hundred, without which mu would be
# discontinuous in w (Packard and Pandey 1993). From above by the nearest unstable model along many directions.

COMPLEX_PART_SIZE = 0.01  # size of the complex part of each real d
FREQUENCY_COUNT, FREQUENCY_RANGE_FACTOR = 60, 30.0  # frequencies, and how far they reach beyond the eigenvalues
DIRECTION_COUNT, FACTOR_COUNT, MAX_FACTOR = 256, 60, 100.0  # directions and factors that are tried, up to the largest


@dataclass(frozen=True)
class RobustStability:
    """By which factor a box may grow around its middle: stable up to ``at_least``, unstable in it at ``at_most``."""

    at_least: float  # at the frequencies that were examined
    at_most: float  # inf where no direction leads to an unstable model
    frequency: float  # in rad/s, at which ``at_least`` is smallest
    parameters: Mapping[str, float]  # with which the model stands at its limit, at ``at_most``


def robust_stability(
    nominal: LinearModel, M: LinearModel, k: int, box: Mapping[str, tuple[float, float]], n: int, seed: int
) -> RobustStability:
    """Return both sides for the first k channels of M, with n random directions in addition to the corners."""
    try:
        from slycot import ab13md
    except ImportError:
        raise UsageError(
            "The structured singular value is computed by slycot, which is not installed: pip install "
            "'fmilin[robust]' (it is under the GPL). u.worst() finds the worst parameters without it, by samples."
        ) from None
    values = nominal.eigenvalues()
    if nominal.sample_time or not (values.real < 0).all():
        raise UsageError("The linear model in the middle of the box is not stable, so the box has no margin.")
    kinds, sizes = np.repeat([1, 2], k), np.ones(2 * k, dtype=int)
    weights = np.outer(*[np.repeat([1.0, np.sqrt(COMPLEX_PART_SIZE)], k)] * 2)

    from scipy.optimize import minimize_scalar

    def mu(w: float) -> float:
        Z = M.C[:k] @ np.linalg.solve(1j * w * np.eye(len(M.A)) - M.A, M.B[:, :k]) + M.D[:k, :k]
        return float(ab13md(np.tile(Z, (2, 2)) * weights, sizes, kinds)[0]) if Z.any() else 0.0  # mu(0) = 0

    speeds = np.abs(values)
    grid = np.geomspace(speeds.min() / FREQUENCY_RANGE_FACTOR, speeds.max() * FREQUENCY_RANGE_FACTOR, FREQUENCY_COUNT)
    grid = np.unique(np.concatenate(([0.0], grid, speeds, np.abs(values.imag))))
    sampled = [mu(float(w)) for w in grid]
    i = int(np.argmax(sampled))
    bounds = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, len(grid) - 1)])
    refined = minimize_scalar(lambda w: -mu(float(w)), bounds=bounds, method="bounded", options={"maxiter": 25})
    peak, frequency = max((sampled[i], float(grid[i])), (-float(refined.fun), float(refined.x)))
    middle, half = (np.array([(b + sign * a) / 2 for a, b in box.values()]) for sign in (1, -1))
    slopes = np.array([h * d.A for h, d in zip(half, nominal.derivatives.values(), strict=True)])
    at_most, direction = _nearest_unstable(nominal.A, slopes, n, seed)
    worst = dict(zip(box, (middle + at_most * half * direction).tolist(), strict=True)) if np.isfinite(at_most) else {}
    return RobustStability(1 / peak if peak > 0 else np.inf, at_most, frequency, worst)


def _nearest_unstable(A: FloatArray, slopes: FloatArray, n: int, seed: int) -> tuple[float, FloatArray]:
    """Return the smallest factor of a direction on the box's boundary that makes A + sum f d_i A_i unstable."""
    from scipy.optimize import brentq

    corners = [c for c, _ in zip(product((-1.0, 1.0), repeat=len(slopes)), range(DIRECTION_COUNT), strict=False)]
    inside = np.random.default_rng(seed).uniform(-1, 1, (n, len(slopes)))
    directions = np.vstack((corners, inside / np.abs(inside).max(axis=1, keepdims=True)))
    factors = np.append(0.0, np.geomspace(1 / MAX_FACTOR, MAX_FACTOR, FACTOR_COUNT))
    best, at = np.inf, directions[0]
    for d in directions:
        along = np.tensordot(d, slopes, 1)

        def growth(f: float, along: FloatArray = along) -> float:
            return float(np.linalg.eigvals(A + f * along).real.max())

        beyond = np.linalg.eigvals(A + factors[factors < best, None, None] * along).real.max(axis=1) >= 0
        if beyond.any():
            i = int(np.argmax(beyond))
            # 1e-12: more digits than growth, an eigenvalue, has.
            f = float(brentq(growth, factors[i - 1], factors[i], xtol=1e-12))
            best, at = min((best, at), (f, d), key=lambda pair: pair[0])
    return best, at
