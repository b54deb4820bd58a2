"""Slopes of a connected system at a point: (I - K D) dv = K C dx + L dw, and dy = C dx + D dv."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fmilin.connected.members import Members, Wires
from fmilin.connected.names import in_member
from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model

Solve = Callable[[FloatArray], FloatArray]


class MemberSlopes(NamedTuple):
    """What one member says of itself, and where it stands among all."""

    over_states: FloatArray  # (n + ny, n), A above C
    over_inputs: FloatArray  # (n + ny, nv), B above D
    states: slice
    inputs: slice
    outputs: slice

    def add(self, matrix: FloatArray, along: FloatArray, rates: FloatArray | None, outputs: FloatArray) -> None:
        """Add ``matrix`` times ``along`` to rates and outputs; without rates ``matrix`` has the rows of outputs."""
        moved = _moved(along)
        if moved is None or not matrix.shape[0]:
            return
        products = _product(matrix, along[:, moved])
        if rates is not None:
            n = self.states.stop - self.states.start
            rates[self.states, moved] += products[:n]
            products = products[n:]
        outputs[self.outputs, moved] += products


def _moved(along: FloatArray) -> slice | np.ndarray | None:
    """Return the columns that are not zero: as a slice where they are neighbours, None where there are none."""
    if not along.shape[0]:
        return None
    bits = np.ascontiguousarray(along).view(np.uint64)  # quicker than asking every number whether it is zero
    columns = np.flatnonzero(np.bitwise_or.reduce(bits, axis=0))
    if not len(columns):
        return None
    first, last = int(columns[0]), int(columns[-1])
    return slice(first, last + 1) if last - first + 1 == len(columns) else columns


def _product(matrix: FloatArray, along: FloatArray) -> FloatArray:
    """Return a product in which what is unknown (NaN) spreads only where it is met."""
    product: FloatArray = matrix @ along
    if np.isfinite(product.sum()):  # one number tells of all; a sum that overflows goes the long way, too
        return product
    unknown = np.isnan(matrix).astype(float) @ (along != 0) + (matrix != 0).astype(float) @ np.isnan(along)
    return np.where(unknown > 0, np.nan, np.nan_to_num(matrix) @ np.nan_to_num(along))


@dataclass(frozen=True)
class Jacobians:
    """All slopes at one point."""

    members: Sequence[MemberSlopes]
    feeds: Solve  # K times columns of outputs, shape (nv, k)
    leads: Solve  # L times columns of inputs of the system
    closed: Solve  # (I - K D)^-1 times columns
    sizes: tuple[int, int, int]  # states, inputs and outputs of all members

    def through(self, dx: FloatArray, du: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how all rates, outputs and inputs of members change, shapes (N, k), (ny, k) and (nv, k)."""
        k = dx.shape[1]
        rates, outputs = np.zeros((self.sizes[0], k)), np.zeros((self.sizes[2], k))
        for m in self.members:
            m.add(m.over_states, dx[m.states], rates, outputs)
        dv = self.closed(self.feeds(outputs) + self.leads(du))
        for m in self.members:
            m.add(m.over_inputs, dv[m.inputs], rates, outputs)
        return rates, outputs, dv

    def spread(self, rates: FloatArray, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what errors of members' slopes become: dv is wrong by |S K| times those of the outputs."""
        moved = np.abs(self.closed(self.feeds(np.eye(self.sizes[2])))) @ outputs
        rates, outputs = rates.copy(), outputs.copy()
        for m in self.members:
            m.add(np.abs(m.over_inputs), moved[m.inputs], rates, outputs)
        return rates, outputs


def structure_of(
    members: Members, wires: Wires, depends: Sequence[NDArray[np.bool_]], count: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Return sparse patterns of A, B, C, D, and of members' inputs by (states, inputs w), shape (nv, N + count)."""
    blocks: list[list[NDArray[np.bool_]]] = [[], [], [], []]
    for part, at_once in zip(members.parts, depends, strict=True):
        model = part.model
        n, declared = len(model.states), model.structure
        shape = (n + len(model.outputs), n + len(model.inputs))
        full = np.ones(shape, dtype=bool) if declared is None else declared.copy()
        for row, copy in model.copies.items():
            full[n + row] = False
            full[n + row, copy.index + (0 if copy.kind == "state" else n)] = True
        if declared is None:
            full[n:, n:] &= at_once
        for block, matrix in zip(blocks, (full[:n, :n], full[:n, n:], full[n:, :n], full[n:, n:]), strict=True):
            block.append(matrix)
    joined: list[Any] = [sparse.block_diag([b.astype(float) for b in block], format="csr") for block in blocks]
    A, B, C, D = joined
    K, L = (abs(matrix) for matrix in wires.selections(members.size[2], count))
    direct = _pattern(sparse.hstack([K @ C, L], format="csr"))
    reached, loop = direct, _pattern(K @ D)
    while True:
        more = _pattern(direct + loop @ reached)
        if more.nnz == reached.nnz:
            return A, B, C, D, reached
        reached = more


def _pattern(matrix: Any) -> Any:
    pattern = matrix.tocsr()
    pattern.eliminate_zeros()
    pattern.data[:] = 1.0
    return pattern


POINTS = 3
EXCURSION = 0.1  # how far from the start the second and third look are, in sizes of states and inputs
STEP = 2.0**-20  # of differences along inputs, in their sizes: they steer Newton's method and nothing else


def depends_at_once(name: str, model: Model) -> NDArray[np.bool_]:
    """Return which outputs depend on which inputs without delay, shape (ny, nu).

    As declared; else as exact slopes show it at the start and beside it; else all. A wrong answer costs visits, no
    digits: what is missing shows when the system settles.
    """
    n = len(model.states)
    if model.structure is not None:
        depends = model.structure[n:, n:].copy()
    else:
        with in_member(name):
            depends = _seen_in_slopes(model)
    for row, copy in model.copies.items():
        depends[row] = False
        if copy.kind == "input":
            depends[row, copy.index] = True
    return depends


def _seen_in_slopes(model: Model) -> NDArray[np.bool_]:
    k, start = len(model.inputs), model.start
    seen = np.zeros((len(model.outputs), k), dtype=bool)
    if not seen.size:
        return seen
    random, evaluated = np.random.default_rng(2027), 0
    for number in range(POINTS):
        x, u = (
            values + (EXCURSION * random.uniform(-1, 1, len(values)) * signals.scales(values) if number else 0.0)
            for values, signals in ((start.states, model.states), (start.inputs, model.inputs))
        )
        try:
            D = model.products(start.time, x, u, np.zeros((len(x), k)), np.eye(k))
        except FmilinError:
            continue
        if D is None:
            break
        evaluated += 1
        seen |= ~(D.outputs == 0.0)
    return seen if evaluated else np.ones_like(seen)


def input_slopes(model: Model, at: tuple[float, FloatArray, FloatArray], columns: NDArray[np.intp]) -> FloatArray:
    """Return D along some inputs, shape (ny, columns): exact where the model has it, else by forward differences."""
    t, x, u = at
    du = np.zeros((len(u), len(columns)))
    du[columns, np.arange(len(columns))] = 1.0
    derivatives = model.products(t, x, u, np.zeros((len(x), len(columns))), du)
    if derivatives is not None and np.isfinite(derivatives.outputs).all():
        return derivatives.outputs
    base, sizes = model.evaluate(t, x, u).outputs, model.inputs.scales(u)
    slopes = np.empty((len(base), len(columns)))
    for j, column in enumerate(columns):
        moved = u.copy()
        moved[column] += STEP * sizes[column]
        slopes[:, j] = (model.evaluate(t, x, moved).outputs - base) / (moved[column] - u[column])
    return slopes
