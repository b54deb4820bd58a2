"""Coordinates carried along a path: the same choice as long as it is good, a null space basis without jumps.

A basis of the null space from a decomposition alone may change sign and order from one point to the next. Carried
on, it does not: of all bases at the new point the one nearest to the old is taken (orthogonal Procrustes), which
is the differentiable null space of Spencer's chapter 2 integrated step by step. A partition keeps its states until
their condition number passes a limit, then a new one is chosen, and the switch is reported.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from fmilin.ground.signals import FloatArray
from fmilin.manifold.coordinates import LinearCoordinates
from fmilin.manifold.selection import Manifold, Selection, from_basis, select_partition, select_states, tangent_scales

CONDITION_LIMIT = 1e3  # condition number up to which a choice of coordinates is kept along a path


def carried_basis(H: FloatArray, previous: FloatArray) -> FloatArray:
    """Return the orthonormal basis (N, P) of null(H), H of full row rank and scaled, nearest to ``previous``."""
    n = H.shape[1]
    V = linalg.svd(H)[2][len(H) :].T if len(H) else np.eye(n)
    W, _, Zt = linalg.svd(V.T @ previous)
    return np.asarray(V @ (W @ Zt))


def carried_on(manifold: Manifold, previous: Selection) -> tuple[Selection, bool]:
    """Return the linear coordinates to use at a new point, and whether they are the previous ones."""
    if previous.kind == "tangent" and isinstance(previous.coordinates, LinearCoordinates):
        if previous.scales is not None:  # sizes that change with the point would bend the path of the basis
            manifold = replace(manifold, scales=previous.scales)
        U = _carried_tangent(manifold, previous.coordinates)
        return from_basis(manifold, U, previous.signals), True
    if previous.kept is not None and len(previous.kept) == manifold.order:
        selection = select_states(manifold, previous.kept, previous.kind)
        if selection.condition_number <= CONDITION_LIMIT:
            return selection, True
    return select_partition(manifold), False


def _carried_tangent(manifold: Manifold, previous: LinearCoordinates) -> FloatArray:
    """Carry a tangent basis on; positions and velocities share theirs where the model is of second order."""
    D = tangent_scales(manifold)
    old = previous.Rbar / D[:, None]
    if not manifold.is_second_order:
        return carried_basis(manifold.H * D, old)
    qs, vs = manifold.position_states, manifold.velocity_states
    yq, yv = np.flatnonzero(old[qs].any(axis=0)), np.flatnonzero(old[vs].any(axis=0))
    Vq = carried_basis(manifold.H[manifold.position_rows][:, qs] * D[qs], old[np.ix_(qs, yq)])
    U = np.zeros_like(old)
    U[np.ix_(qs, yq)] = Vq
    U[np.ix_(vs, yv)] = Vq
    return U
