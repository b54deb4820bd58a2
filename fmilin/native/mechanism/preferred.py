"""Coordinates that suit a mechanism whose author recommends none: those of its drives, positions with their speeds.

A controller measures and moves the joints that are driven; with the positions and the speeds of the same joints A has
the rows [0 I]. Pivoting alone may keep the position of one joint and the speed of another where quaternions stand among
the states.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import Actuator, JointForce
from fmilin.native.mechanism.independence import Independence, close_loops
from fmilin.native.mechanism.system import System
from fmilin.native.mechanism.tree import Tree

WELL = 100.0  # condition number up to which the drives are preferred to what pivoting would find
OTHERS = 1e-3  # how much a joint without a drive counts beside one with a drive


def preferred_states(system: System, independence: Independence, q: NDArray[np.float64]) -> tuple[str, ...]:
    """Return the positions and the speeds to keep, driven joints first of all; empty where pivoting may choose."""
    tree, p = system.tree, system.tree.n - len(independence.all)
    driven = _driven(system.description, tree)
    holonomic = len(independence.position) == len(independence.all)
    if not (p and holonomic and len(independence.all) and (driven or len(tree.balls))):
        return ()
    q = close_loops(system, q)
    G = system.state(q, np.zeros(tree.n), np.zeros(system.nu)).G[independence.all]
    K = linalg.null_space(np.asarray(G))
    if K.shape[1] != p or len(tree.screw_speeds) < p:
        return ()
    weights = np.where(np.isin(tree.screw_speeds, list(driven)), 1.0, OTHERS)
    pivots = linalg.qr((K[tree.screw_speeds] * weights[:, None]).T, mode="r", pivoting=True)[1][:p]
    chosen = tree.screw_speeds[np.sort(pivots)]
    if np.linalg.cond(K[chosen]) > WELL:
        return ()
    positions, speeds = tree.state_names
    kept = [positions[i] for i in tree.freedom_coordinates[chosen]] + [speeds[i] for i in chosen]
    return (*kept, *system.activation_names)


def _driven(description: MechanismDescription, tree: Tree) -> set[int]:
    """Return the freedoms on which a force of a joint or an actuator acts."""
    driven = {tree.speeds_of[i.joint][i.coordinate] for i in description.inputs if isinstance(i, JointForce)}
    return driven | {
        speed
        for i in description.inputs
        if isinstance(i, Actuator) and i.joint
        for speed in tree.speeds_of[i.joint][: len(i.gear)]
    }
