"""What depends on what in a connected system: a member's outputs on its inputs at once, and the whole through wires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fmilin.connected.members import Members, Wires
from fmilin.connected.names import in_member
from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model


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
