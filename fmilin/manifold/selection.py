"""Which coordinates are independent: named by the user, by partition (pivoted QR), or by tangent space (SVD).

Position-level constraints decide first which positions are dependent; each takes its velocity along where der(q) is a
state (Spencer eq. 2.40). Velocity constraints that remain take dependent states among those in which they are linear.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError, UnknownNameError, UsageError
from fmilin.manifold.coordinates import Coordinates, LinearCoordinates, StateCoordinates, condition_number, conditioning
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.rank import pivoted_qr
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.decompositions import decompose_by_singular_values
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import DOUBTFUL_CONDITION_NUMBER, EPS, MAX_COORDINATE_CONDITION_NUMBER

PERTURBATION_SIZE = 1e-6  # of sizes: tells equal from equal by chance, and stays in the model's domain


def kinematic_pairs(model: Model, point: OperatingPoint) -> Mapping[int, int]:
    """Return ``{i: j}`` where the derivative of state i is state j itself, bitwise, at the point and at two near it."""
    # A model that cannot be evaluated off its manifold has no pairs by this test: nothing is lost but the short cut.
    return find_kinematic_pairs(PointEvaluator(model), point) or {}


def find_kinematic_pairs(evaluator: PointEvaluator, point: OperatingPoint) -> Mapping[int, int] | None:
    """Return :func:`kinematic_pairs`, and None where the model cannot be evaluated near the point."""
    rng = np.random.default_rng(20160901)
    scales = evaluator.model.states.scales(point.states)
    points = [
        point.states + amount * scales * rng.uniform(0.5, 1.0, len(scales)) * rng.choice([-1.0, 1.0], len(scales))
        for amount in (0.0, PERTURBATION_SIZE, PERTURBATION_SIZE)
    ]
    evaluator.evaluate_ahead([(point.time, x, point.inputs) for x in points])
    rates = []
    for x in points:
        try:
            rates.append(evaluator.evaluate(point.time, x, point.inputs).derivatives)
        except (ModelError, NumericalError):
            return None
    # Near the point few values are equal by chance; at rest all speeds and rates are zero.
    rows, columns = np.nonzero(rates[-1][:, None] == points[-1])
    is_pair = rows != columns
    for x, f in zip(points, rates, strict=True):
        is_pair &= f[rows] == x[columns]
    pairs: dict[int, int] = {}
    paired = set()
    for i, j in zip(rows[is_pair].tolist(), columns[is_pair].tolist(), strict=True):
        # A speed is that of one position. Of several states that equal its rate, a position has the last.
        if j not in paired:
            paired.discard(pairs.get(i))
            paired.add(j)
            pairs[i] = j
    return pairs


def find_linear_states(invariants: Invariants, t: float, x: FloatArray) -> np.ndarray:
    """Return which states enter all velocity-level invariants linearly, as speeds do: array of bool, shape (N,)."""
    n = len(x)
    velocity = ~np.array(invariants.is_position_level, dtype=bool)
    if not velocity.any():
        return np.ones(n, dtype=bool)
    structure, linear = invariants.connections, np.ones(n, dtype=bool)
    entering = np.arange(n) if structure is None else np.flatnonzero(structure[velocity].any(axis=0))
    steps = np.diag(0.1 * invariants.scales)[entering]
    h = invariants.evaluate_batch(t, np.concatenate((x[None], x + steps, x - steps)))
    h0, ahead, behind = np.split(h[:, velocity], (1, 1 + len(entering)))
    bend, size = np.abs(ahead + behind - 2 * h0), np.maximum(np.abs(ahead), np.abs(behind)) + np.abs(h0)
    # Over a tenth of the sizes rounding is 1e-14 of the values, a product of two states 1e-2.
    linear[entering] = (bend <= 1e-9 * size).all(axis=1)  # NaN is not
    return linear


@dataclass(frozen=True)
class Manifold:
    """The local data of the manifold at a point that a choice of coordinates needs."""

    states: Signals
    H: FloatArray  # (M, N), gradient of the independent invariants
    Hs: FloatArray  # (M, N), the same with columns in sizes of the states and rows normalized
    position_rows: np.ndarray  # shape (M,)
    linear: Callable[[], NDArray[np.bool_]]  # (N,): in which states velocity-level invariants are linear
    pairs: Mapping[int, int]  # position to velocity where der(q) = v
    scales: FloatArray  # shape (N,)
    x0: FloatArray  # shape (N,)

    @property
    def order(self) -> int:
        """P, the number of independent coordinates."""
        return len(self.states) - len(self.H)

    @property
    def position_states(self) -> NDArray[np.intp]:
        """The states q of the pairs der(q) = v, in order."""
        return np.array(sorted(self.pairs), dtype=np.intp)

    @property
    def velocity_states(self) -> NDArray[np.intp]:
        """Their partners v."""
        return np.array([self.pairs[i] for i in sorted(self.pairs)], dtype=np.intp)

    @property
    def is_second_order(self) -> bool:
        """Whether all states come in pairs (q, v) and each position constraint has its rate."""
        n = len(self.states)
        return 2 * len(self.pairs) == n and 2 * int(self.position_rows.sum()) == len(self.H)


NOT_TURNING = "turning"  # kind of coordinates that were found because bodies turn


@dataclass(frozen=True)
class Selection:
    """Chosen coordinates."""

    kind: str
    signals: Signals  # names and units of y
    coordinates: Coordinates
    condition_number: float  # of (R; H), scaled
    independent: tuple[int, ...] | None = (
        None  # the states that the coordinates are, in order; None where they are none
    )
    scales: FloatArray | None = None  # (N,), sizes in which a tangent basis is and stays orthonormal

    @property
    def texts(self) -> tuple[str, ...]:
        """The coordinates as they may be named again: states, or expressions where that is what they are."""
        if self.independent is not None:
            return self.signals.names
        return tuple(f"{s.name} = {s.description}" if s.description else s.name for s in self.signals)


def require_kind(kind: str) -> None:
    """Reject a word that is not a kind of coordinates."""
    if kind not in ("partition", "tangent"):
        raise UsageError(f"'{kind}' is not a way to choose coordinates: use partition or tangent.")


def selected(manifold: Manifold, named: Sequence[str], kind: str) -> Selection:
    """Return the coordinates that are named, or chosen by ``kind``; reject what is singular."""
    if named:
        return select_named(manifold, named)
    selection = select_tangent(manifold) if kind == "tangent" else select_partition(manifold)
    if selection.condition_number > MAX_COORDINATE_CONDITION_NUMBER:
        raise NumericalError(
            f"No choice of coordinates is regular at this point (condition number {selection.condition_number:.3g}): "
            "the configuration is singular or very nearly so. Choose a point near it: fl.operating_point(model, "
            "{'NAME': VALUE}).",
            condition_number=selection.condition_number,
        )
    return selection


def select_partition(manifold: Manifold) -> Selection:
    """Choose a subset of the states by QR with column pivoting."""
    dependent = set(_dependent_columns(manifold))
    return select_states(manifold, [i for i in range(len(manifold.states)) if i not in dependent], "partition")


def select_named(manifold: Manifold, names: Sequence[str]) -> Selection:
    """Keep the states that the user names: P of them, or the positions of a second-order model."""
    chosen = [_state_called(name, manifold.states) for name in names]
    if len(set(chosen)) != len(chosen):
        raise UsageError(f"A coordinate is named twice in {', '.join(names)}.")
    if len(chosen) != manifold.order:
        chosen = _with_velocities(manifold, chosen)
    selection = select_states(manifold, chosen, "named")
    if selection.condition_number > MAX_COORDINATE_CONDITION_NUMBER:
        better = select_partition(manifold)
        raise NumericalError(
            f"The coordinates {', '.join(names)} do not determine the other states at this point (condition number "
            f"{_figure(selection.condition_number)}). Use {', '.join(better.signals.names)} (condition number "
            f"{_figure(better.condition_number)}).",
            condition_number=selection.condition_number,
        )
    return selection


def _state_called(name: str, states: Signals) -> int:
    if (signed := states.find_signed(name)) is not None:
        return signed[0]  # the negative of a state determines the others as the state itself does
    try:
        return states.index_of(name, "a state of the model")
    except UnknownNameError as error:
        a, b = (*states.names, "x", "y")[:2]
        message = f'{error} Write a new coordinate with its expression, as in "{name}=atan2({a}, {b})".'
        raise UnknownNameError(message, name=error.name, suggestions=error.suggestions) from None


def select_states(manifold: Manifold, states: Sequence[int], kind: str) -> Selection:
    """Keep the states with these numbers, P of them; how well they determine the others is for the caller to judge."""
    n, independent = len(manifold.states), list(states)
    coordinates = StateCoordinates(independent, n)
    condition = condition_number(np.concatenate((coordinates.R, manifold.Hs))) if len(manifold.Hs) else 1.0
    values = manifold.x0[independent].tolist()
    signals_of_states = tuple(manifold.states)
    starting = [signals_of_states[i].with_start(v) for i, v in zip(independent, values, strict=True)]
    # All states with their own start values: the signals of a large model take long to be made again.
    is_whole = len(starting) == n and all(map(operator.is_, starting, manifold.states))
    signals = manifold.states if is_whole else Signals(starting)
    return Selection(kind, signals, coordinates, condition, tuple(independent))


def select_tangent(manifold: Manifold) -> Selection:
    """Coordinates along an orthonormal basis of the tangent space (Spencer eq. 3.1, y = V2' x), columns scaled."""
    # That nearest to the chosen coordinates (orthogonal Procrustes): ``tangent[phi]`` goes with ``phi``.
    chosen = select_partition(manifold)
    positions = [manifold.states.positions[name] for name in chosen.signals.names]
    U = _tangent_basis(manifold, positions)
    signals = Signals(replace(s, name=f"tangent[{s.name}]", unit="", nominal=None, aliases=()) for s in chosen.signals)
    return from_basis(manifold, U, signals)


def tangent_scales(manifold: Manifold) -> FloatArray:
    """Return sizes of the states for orthonormal bases, shape (N,): one for q and its v, which keeps y_v = dy_q/dt."""
    D = manifold.scales.copy()
    if manifold.is_second_order:
        D[manifold.velocity_states] = D[manifold.position_states]
    return D


def from_basis(manifold: Manifold, U: FloatArray, signals: Signals) -> Selection:
    """Return tangent coordinates along the orthonormal columns of U (N, P), a basis in scaled states."""
    D, n, p = tangent_scales(manifold), *U.shape
    complement = np.eye(n) if p == 0 else decompose_by_singular_values(U)[0][:, p:]
    coordinates = LinearCoordinates(U.T / D, D[:, None] * U, D[:, None] * complement)
    condition = conditioning(coordinates.R, manifold.H, manifold.scales)
    return Selection("tangent", signals, coordinates, condition, scales=D)


def _dependent_columns(manifold: Manifold) -> list[int]:
    """Choose M dependent states, positions first."""
    Hs = manifold.Hs
    if not len(Hs):
        return []
    position = manifold.position_rows
    dependent = _pivots(Hs[position], int(position.sum()))
    partners = [manifold.pairs[i] for i in dependent if i in manifold.pairs]
    remaining = Hs[~position]
    if len(partners) == len(dependent) == len(remaining) and dependent:
        # Velocities follow their positions (Spencer, eq. 2.40), also where nominal values of speeds prefer others,
        # unless they would be nearly singular.
        matrix = remaining[:, partners]
        if np.linalg.cond(matrix) < DOUBTFUL_CONDITION_NUMBER:
            return sorted([*dependent, *partners])
    # Take the chosen positions out of the velocity rows before the speeds are chosen.
    reduced = remaining
    if dependent:
        factor = np.linalg.lstsq(Hs[position][:, dependent], Hs[position], rcond=EPS)[0]
        reduced = remaining - remaining[:, dependent] @ factor
        reduced[:, dependent] = 0.0
    if not len(remaining):
        return sorted(dependent)
    # States that enter linearly become dependent first, others where these do not suffice.
    preferred = np.where(manifold.linear(), 1.0, 1e-6)
    preferred[[i for i in manifold.pairs if i not in dependent]] *= 1e-6  # a position is not a speed
    preferred[partners] *= 10.0
    return sorted([*dependent, *_pivots(reduced * preferred, len(remaining))])


def _pivots(matrix: FloatArray, count: int) -> list[int]:
    return [] if count == 0 else [int(i) for i in pivoted_qr(matrix)[1][:count]]


def _with_velocities(manifold: Manifold, chosen: list[int]) -> list[int]:
    """Complete named positions by their velocities, or say how many names are needed."""
    p = manifold.order
    if 2 * len(chosen) == p and all(i in manifold.pairs for i in chosen):
        return [*chosen, *(manifold.pairs[i] for i in chosen)]
    better = select_partition(manifold)
    hint = f"{p}" if p % 2 or not manifold.pairs else f"{p} (or {p // 2} positions)"
    raise UsageError(
        f"{len(chosen)} independent coordinates were named, but the model has {hint} at this point: "
        f"{len(manifold.states)} states under {len(manifold.H)} independent constraints. "
        f"For example: {', '.join(better.signals.names) or 'none'}."
    )


def _figure(value: float) -> str:
    return "infinite" if not np.isfinite(value) else f"{value:.3g}"


# Along a path a basis of the null space is carried on: of all at the new point the one nearest to the old (orthogonal
# Procrustes), the differentiable null space of Spencer's chapter 2 step by step, without jumps of sign and order.

CONDITION_LIMIT = 1e3  # condition number up to which a choice of coordinates is kept along a path


def carry_basis(H: FloatArray, previous: FloatArray | list[int]) -> FloatArray:
    """Return the orthonormal basis (N, P) of null(H), of full row rank, nearest to another or a partition's."""
    V = decompose_by_singular_values(H)[2][len(H) :].T if len(H) else np.eye(H.shape[1])
    near = V @ np.linalg.inv(V[previous]) if isinstance(previous, list) else previous
    W, _, Zt = decompose_by_singular_values(V.T @ near)
    return np.asarray(V @ (W @ Zt))


def continue_selection(manifold: Manifold, previous: Selection) -> tuple[Selection, bool]:
    """Return the linear coordinates to use at a new point, and whether they are the previous ones."""
    if previous.kind == "tangent" and isinstance(previous.coordinates, LinearCoordinates):
        if previous.scales is not None:  # sizes that change with the point would change the path of the basis
            manifold = replace(manifold, scales=previous.scales)
        U = _tangent_basis(manifold, previous.coordinates.Rbar / tangent_scales(manifold)[:, None])
        return from_basis(manifold, U, previous.signals), True
    if previous.independent is not None and len(previous.independent) == manifold.order:
        selection = select_states(manifold, previous.independent, previous.kind)
        if selection.condition_number <= CONDITION_LIMIT:
            return selection, True
    return select_partition(manifold), False


def _tangent_basis(manifold: Manifold, near: FloatArray | list[int]) -> FloatArray:
    """Return the basis nearest to that of a path, scaled, or of a partition; q and v share theirs in second order."""
    D = tangent_scales(manifold)
    if not manifold.is_second_order:
        return carry_basis(manifold.H * D, near)
    qs, vs = manifold.position_states, manifold.velocity_states
    if isinstance(near, list):
        yq = np.array([k for k, i in enumerate(near) if i in manifold.pairs], dtype=np.intp)
        yv = np.array([near.index(manifold.pairs[near[k]]) for k in yq], dtype=np.intp)
        of_q: FloatArray | list[int] = [int(np.flatnonzero(qs == near[k])[0]) for k in yq]
    else:
        yq, yv = (np.flatnonzero(near[states].any(axis=0)) for states in (qs, vs))
        of_q = near[np.ix_(qs, yq)]
    U = np.zeros((len(D), manifold.order))
    U[np.ix_(qs, yq)] = carry_basis(manifold.H[manifold.position_rows][:, qs] * D[qs], of_q)
    U[np.ix_(vs, yv)] = U[np.ix_(qs, yq)]
    return U
