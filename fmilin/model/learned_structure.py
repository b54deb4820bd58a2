"""Sparse derivatives of large models that declare no structure: it is learned once, and checked at every point.

The exact directional derivatives along all states and inputs are computed near the point, in general position, and at
the point itself, some columns at a time: what is zero at both is taken for a zero by the structure. From then on
columns that no row has in common are asked for together. That an entry appears elsewhere, where a piecewise function
has another branch, shows in the derivatives along one direction through all columns, which are compared at every point;
then they are all computed there, and the structure is extended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.model.capabilities import HasSparseDerivatives, read_exact_slopes, read_products, read_sparse_derivatives
from fmilin.model.interface import Model
from fmilin.model.memory import find_memory
from fmilin.model.sparse_model_derivatives import SparseJacobian
from fmilin.numerics.differences.sparse_coloring import find_full_rows, sparse_column_groups
from fmilin.signals import FloatArray
from fmilin.tolerances import COLUMNS_AGREE

if TYPE_CHECKING:
    from scipy import sparse

COLUMNS_AT_ONCE = 128  # that are computed together while the structure is learned
MAX_DENSITY = 0.1  # part of the entries; of fuller matrices dense arrays take less time
GENERAL_POINT_DISTANCE = 2.0**-7  # how far the other point is, in sizes of the variables
HAS_PROCEDURE = "procedure of its own"  # under which a model remembers that it has one, which is used instead
MAX_GROUPS = 0.25  # part of the columns: with more groups little is saved


@dataclass(frozen=True, eq=False)
class LearnedStructure:
    """Which derivatives of rates and outputs are not zero everywhere, as far as was seen."""

    pattern: sparse.csr_array[Any]  # (N + ny, N + nu)
    groups: list[list[int]]
    is_sparse: bool


def compute_sparse_derivatives(model: Model, t: float, x: FloatArray, u: FloatArray) -> SparseJacobian | None:
    """Return the derivatives of a model at a point in a sparse matrix, its own or by what was learned; None without."""
    if isinstance(model, HasSparseDerivatives):
        return read_sparse_derivatives(model, t, x, u)
    memory = find_memory(model)
    structure: LearnedStructure | None = memory.get(LearnedStructure)
    if memory.get(HAS_PROCEDURE):
        return None
    if structure is None:
        memory[HAS_PROCEDURE] = read_exact_slopes(model, t, x, u) is not None
        if memory[HAS_PROCEDURE]:
            return None
        structure = _learn(model, t, x, u, None)
    if structure is None or not structure.is_sparse:
        return None
    derivatives = _ask(model, t, x, u, structure)
    if derivatives is None:
        structure = _learn(model, t, x, u, structure)
        derivatives = None if structure is None or not structure.is_sparse else _ask(model, t, x, u, structure)
    return derivatives


def _learn(
    model: Model, t: float, x: FloatArray, u: FloatArray, before: LearnedStructure | None
) -> LearnedStructure | None:
    """Return the structure that derivatives at a point and near it have, and what was seen before; None without any."""
    random = np.random.default_rng(1966)
    nearby = (_move(v, s.scales(v), random) for v, s in ((x, model.states), (u, model.inputs)))
    patterns = [] if before is None else [before.pattern]
    for point in ((x, u), tuple(nearby)):
        pattern = _find_entries(model, t, *point)
        if pattern is not None:
            patterns.append(pattern)
    if not patterns:
        return None
    union = patterns[0]
    for pattern in patterns[1:]:
        union = union + pattern
    union.data[:] = 1.0
    union.sort_indices()
    thin = np.ones(union.shape[0], dtype=bool)
    thin[find_full_rows(union)] = False
    groups = sparse_column_groups(union[thin].tocsc()) if thin.all() else []
    is_sparse = union.nnz <= MAX_DENSITY * np.prod(union.shape) and 0 < len(groups) <= MAX_GROUPS * union.shape[1]
    structure = LearnedStructure(union, groups, bool(is_sparse))
    find_memory(model)[LearnedStructure] = structure
    return structure


def _find_entries(model: Model, t: float, x: FloatArray, u: FloatArray) -> sparse.csr_array[Any] | None:
    """Return where derivatives at a point are not zero, as a matrix of ones; None where the model has none there."""
    from scipy import sparse

    n, count = len(x), len(x) + len(u)
    blocks = []
    for first in range(0, count, COLUMNS_AT_ONCE):
        width = min(COLUMNS_AT_ONCE, count - first)
        directions = np.eye(count, width, -first)
        try:
            answer = read_products(model, t, x, u, directions[:n], directions[n:])
        except (FmilinError, np.linalg.LinAlgError):
            return None
        if answer is None:
            return None
        block = np.concatenate((answer.derivatives, answer.outputs))
        blocks.append(sparse.csr_array((block != 0).astype(np.float64)))  # NaN counts as an entry
    return sparse.csr_array(sparse.hstack(blocks, format="csr"))


def _ask(model: Model, t: float, x: FloatArray, u: FloatArray, structure: LearnedStructure) -> SparseJacobian | None:
    """Return the derivatives by the structure; None where one direction through all columns contradicts it."""
    from scipy import sparse

    pattern, groups, n = structure.pattern, structure.groups, len(x)
    count = pattern.shape[1]
    group_of = np.zeros(count, dtype=np.intp)
    for number, group in enumerate(groups):
        group_of[group] = number
    directions = np.zeros((count, len(groups) + 1))
    directions[np.arange(count), group_of] = 1.0
    test = directions[:, -1] = np.random.default_rng(1974).uniform(0.5, 1.0, count)
    answer = read_products(model, t, x, u, directions[:n], directions[n:])
    if answer is None:
        return None
    along = np.concatenate((answer.derivatives, answer.outputs))
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    data = along[rows, group_of[pattern.indices]]
    J = sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    size = np.maximum(np.asarray(abs(J) @ test), np.abs(along[:, -1]))
    if not (np.abs(J @ test - along[:, -1]) <= COLUMNS_AGREE * size).all():
        return None
    return SparseJacobian(J, len(groups) + 1, groups, np.empty(0, dtype=np.intp))


def _move(values: FloatArray, sizes: FloatArray, random: np.random.Generator) -> NDArray[np.float64]:
    signs = random.choice([-1.0, 1.0], len(values))
    distances = GENERAL_POINT_DISTANCE * np.maximum(sizes, np.abs(values)) * random.uniform(0.5, 1.0, len(values))
    return np.asarray(values + signs * distances)
