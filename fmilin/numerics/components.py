"""Connected components of small graphs, as patterns of matrices."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Pattern = NDArray[np.bool_]

# Up to this order the paths are found by squaring the pattern, in microseconds. Beyond, Tarjan's algorithm of SciPy is
# faster, also with the import of scipy.sparse, which takes longer than a linear model.
MAX_SQUARED = 150


def find_connected_components(pattern: Pattern) -> list[NDArray[np.intp]]:
    """Return the indices of each component of an undirected graph, in the order of their first index."""
    if len(pattern) <= MAX_SQUARED:
        return _classes(_reachable(pattern | pattern.T))
    from scipy.sparse import csgraph

    return _group_by_label(csgraph.connected_components(pattern, directed=False)[1])


def strong_components(pattern: Pattern) -> list[NDArray[np.intp]]:
    """Return the indices of each strongly connected component of a directed graph, in the same order."""
    if len(pattern) <= MAX_SQUARED:
        reachable = _reachable(pattern)
        return _classes(reachable & reachable.T)
    from scipy.sparse import csgraph

    return _group_by_label(csgraph.connected_components(pattern, directed=True, connection="strong")[1])


def _reachable(pattern: Pattern) -> Pattern:
    """Return from which index a path leads to which."""
    reachable = pattern | np.eye(len(pattern), dtype=np.bool_)
    for _ in range(max(len(pattern) - 1, 0).bit_length()):
        longer = reachable.astype(np.float32)  # numpy multiplies booleans without BLAS
        squared: Pattern = longer @ longer > 0
        if (squared == reachable).all():
            break
        reachable = squared
    return reachable


def _classes(equivalent: Pattern) -> list[NDArray[np.intp]]:
    """Return the classes of an equivalence relation."""
    return _group_by_label(equivalent.argmax(axis=1)) if len(equivalent) else []


def _group_by_label(labels: Sequence[int] | NDArray[np.integer]) -> list[NDArray[np.intp]]:
    """Return the indices of each label, in the order of their first index."""
    labels = np.asarray(labels)
    first = np.sort(np.unique(labels, return_index=True)[1])
    return [np.flatnonzero(labels == labels[index]) for index in first.tolist()]
