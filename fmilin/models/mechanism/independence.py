"""Which constraints of a mechanism are independent: loops are redundant as a rule, seen in space.

A planar four-bar with pins has three constraints too many; such rows are left out of the equations, and accelerations
do not depend on them. Reactions that redundant constraints share cannot be known from a rigid model; the others can.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import csgraph, csr_array

from fmilin.errors import ModelError, NumericalError
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Actuator, JointForce
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.recursions import coordinate_columns
from fmilin.models.mechanism.tree import Tree
from fmilin.tolerances import LOOP_CLOSURE_TOLERANCE, RANK

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

VANISHING_ROW_TOLERANCE = 1e-11  # rows of G smaller than this at every configuration tried are zero by construction
# how far the degrees of freedom are moved, in rad or m, to examine configurations near the given one
NEARBY_DISTANCE = 0.05


@dataclass(frozen=True)
class Independence:
    """Which constraints say something, and which of them are independent."""

    total: int  # number of all constraints of the loops, wheels and skates
    # loop and number of those that hold by themselves: their row of G is zero by construction. They are left out of the
    # equations, and the others, m of them, are numbered without them
    vanishing: tuple[tuple[str, int], ...]
    position: Ints  # independent constraints on positions
    all: Ints  # independent constraints on velocities, those of ``position`` first
    undetermined: frozenset[tuple[str, int]]  # constraints with reactions that a rigid model does not determine


def close_loops(system: System, q: Floats, *, iterations: int = 60) -> Floats:
    """Return q with g(q) = 0 nearby, if any: damped Gauss-Newton steps of least norm, quaternions of length 1.

    A step displaces joints and is not added to coordinates, as :func:`fmilin.numerics.newton.find_zeros` does; loops
    may be redundant, and their rank is decided at every configuration.
    """
    q = normalize_quaternions(system, q)
    gap, G, E = _linear(system, q)
    for _ in range(iterations):
        if np.abs(gap).max(initial=0.0) < 1e-14:
            break
        step = -np.linalg.lstsq(G, gap, rcond=1e-10)[0]
        for damping in (1.0, 0.5, 0.25, 0.1, 0.03):
            candidate = normalize_quaternions(system, q + damping * (E @ step))
            smaller = _linear(system, candidate)
            if np.linalg.norm(smaller[0]) < np.linalg.norm(gap):
                q, (gap, G, E) = candidate, smaller
                break
        else:
            break
    return q


def normalize_quaternions(system: System, q: Floats) -> Floats:
    """Return coordinates with quaternions of unit length."""
    q = np.array(q, dtype=np.float64)
    e = q[..., system.tree.ball_coordinates]
    q[..., system.tree.ball_coordinates] = e / np.sqrt((e * e).sum(axis=-1, keepdims=True))
    return q


def _linear(system: System, q: Floats) -> tuple[Floats, Floats, Floats]:
    zero = np.zeros(system.tree.n)
    state = system.state(q, zero, np.zeros(system.nu))
    gaps, G = system.gaps(state), state.G[: system.m_q]
    lost = np.flatnonzero(~(np.isfinite(gaps) & np.isfinite(G).all(axis=1)))
    if len(lost):
        raise NumericalError(
            f"The constraint '{system.loop_constraints[lost[0]].of}' of the mechanism '{system.description.name}' has "
            "no value where the joints start: a flat wheel has no lowest point. Start from another position."
        )
    return gaps, G, coordinate_columns(system.tree, q, zero)[0]


def analyze_independence(system: System, q: Floats) -> Independence:
    """Decide at the configuration nearest to q that closes the loops, and at others near it."""
    m, m_q = len(system.loop_constraints), system.m_q
    if not m:
        none = np.empty(0, dtype=np.intp)
        return Independence(0, (), none, none, frozenset())
    closed = close_loops(system, q)
    random = np.random.default_rng(1977)
    vanishing = _find_vanishing_rows(system, closed, random)
    candidates = [closed, *(_nearby(system, closed, random) for _ in range(2))]
    jacobians = [_jacobian(system, c) for c in candidates]
    ranks = [int(np.linalg.matrix_rank(G, tol=_tolerance(G))) for G in jacobians]
    G = jacobians[int(np.argmax(ranks))]  # the closed configuration itself, unless it is singular
    keys = [(loop.of, loop.index) for loop in system.loop_constraints]
    undetermined = frozenset(keys[i] for i in _find_undetermined_rows(G))
    G, on_positions = G[~vanishing], np.arange(m)[~vanishing] < m_q
    position = _independent(G[on_positions])
    rest = np.flatnonzero(~on_positions)
    across = G[rest]
    if len(position):
        Q, _ = np.linalg.qr(G[position].T)
        across = across - across @ Q @ Q.T
    everything = np.concatenate((position, rest[_independent(across)]))
    return Independence(m, tuple(keys[i] for i in np.flatnonzero(vanishing)), position, everything, undetermined)


def _find_vanishing_rows(system: System, closed: Floats, random: np.random.Generator) -> NDArray[np.bool_]:
    """Return which rows of G are zero wherever the joints are, and have no gap that they could not close."""
    elsewhere = [
        _jacobian(system, normalize_quaternions(system, closed + random.uniform(-0.7, 0.7, closed.shape)))
        for _ in range(3)
    ]
    sizes = np.max([np.linalg.norm(G, axis=1) for G in elsewhere], axis=0)
    vanishing = sizes <= VANISHING_ROW_TOLERANCE * max(float(sizes.max(initial=0.0)), 1e-300)
    gaps = np.abs(_linear(system, closed)[0])
    vanishing[: system.m_q] &= gaps <= LOOP_CLOSURE_TOLERANCE
    return np.asarray(vanishing)


def _jacobian(system: System, q: Floats) -> Floats:
    state = system.state(q, np.zeros(system.tree.n), np.zeros(system.nu))
    return np.asarray(state.G)


def _nearby(system: System, q: Floats, random: np.random.Generator) -> Floats:
    """Return a closed configuration a little away, along a motion that the constraints on positions allow."""
    _, G, E = _linear(system, q)
    Vt = np.linalg.svd(G)[2] if len(G) else np.eye(system.tree.n)
    rank = int(np.linalg.matrix_rank(G, tol=_tolerance(G))) if len(G) else 0
    free = Vt[rank:]
    step = random.uniform(-1, 1, len(free)) @ free if len(free) else np.zeros(system.tree.n)
    return close_loops(system, q + NEARBY_DISTANCE * (E @ step))


def _tolerance(G: Floats) -> float:
    return RANK * max(float(np.linalg.norm(G, 2)), 1e-300)


def _independent(G: Floats) -> Ints:
    """Return independent rows, in their order, the best ones by pivoting."""
    if not G.size or not G.any():
        return np.empty(0, dtype=np.intp)
    _, R, order = linalg.qr(G.T, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    return np.sort(order[: int(np.count_nonzero(diagonal > RANK * diagonal[0]))]).astype(np.intp)


def _find_undetermined_rows(G: Floats) -> Ints:
    """Return the rows that take part in a self-stress, G' s = 0."""
    U, sigma, _ = np.linalg.svd(G)
    rank = int(np.count_nonzero(sigma > RANK * max(sigma.max(initial=0.0), 1e-300)))
    stress = U[:, rank:]
    return np.flatnonzero(np.abs(stress).max(axis=1, initial=0.0) > 1e-7)


def require_mass(system: System, independence: Independence, q: Floats) -> None:
    """Reject a freedom that moves no mass."""
    tree = system.tree
    # Loops that are open would tie a spin between two balls to the gap.
    nearby = close_loops(system, q + np.random.default_rng(1893).uniform(-0.1, 0.1, q.shape))
    state = system.state(nearby, np.zeros(tree.n), np.zeros(system.nu))
    G = state.G[independence.all]
    masses, shapes = _decompose_inertia(state.M, G)
    if not len(masses) or masses[0] > 1e-14 * masses[-1]:
        return
    idle = shapes[:, masses <= 1e-14 * masses[-1]]
    # Without these speeds no motion is left that moves nothing.
    pivots = set(linalg.qr(idle.T, mode="r", pivoting=True)[1][: idle.shape[1]].tolist())
    joints = [name for name, speeds in tree.speeds_of.items() if pivots & set(speeds)]
    if set(np.flatnonzero(np.abs(idle).max(axis=1) > 1e-9).tolist()) <= set(tree.ball_speeds.flat):
        raise _spins(system, joints[0], shapes[:, 0])
    listed, several = ", ".join(f"'{name}'" for name in joints), len(joints) > 1
    raise ModelError(
        f"In the mechanism '{system.description.name}' the {'joints' if several else 'joint'} {listed} "
        f"{'move' if several else 'moves'} no mass or inertia, so the motion there is not determined: give the moved "
        "body a mass and an inertia, or fix the joint (for an unchanged URDF file with options={'fix_joint': "
        f"{list(joints)!r}}})."
    )


def _decompose_inertia(M: Floats, G: Floats) -> tuple[Floats, Floats]:
    """Return the masses (p,) of motions (n, p) that G (m, n) allows, in rising order, by M (n, n).

    Motions that neither inertia nor a constraint joins are decomposed apart: a scene of 500 free bodies has 3300.
    """
    shares = csr_array(G != 0).astype(np.int32)
    parts, labels = csgraph.connected_components(csr_array(M != 0) + shares.T @ shares, directed=False)
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(labels, minlength=parts))[:-1])
    masses: list[Floats] = []
    shapes: list[Floats] = []
    for freedoms in groups:
        of_part = G[:, freedoms]
        of_part = of_part[of_part.any(axis=1)]
        K = np.linalg.svd(of_part)[2][len(of_part) :].T if len(of_part) else np.eye(len(freedoms))
        values, vectors = np.linalg.eigh(K.T @ M[np.ix_(freedoms, freedoms)] @ K)
        motion = np.zeros((len(M), len(values)))
        motion[freedoms] = K @ vectors
        masses.append(values)
        shapes.append(motion)
    together = np.concatenate([np.empty(0), *masses])
    rising = np.argsort(together, kind="stable")
    return together[rising], np.hstack([np.empty((len(M), 0)), *shapes])[:, rising]


def _spins(system: System, name: str, shape: Floats) -> ModelError:
    """Return the error for a body that spins about the axis about which it lacks inertia."""
    joint = next(joint for joint in system.description.joints if joint.name == name)
    axis = shape[list(system.tree.speeds_of[name])[-3:]]
    components = ", ".join(f"{a:.3g}" for a in (axis / axis[np.argmax(np.abs(axis))]).round(6) + 0.0)
    return ModelError(
        f"In the mechanism '{system.description.name}' the body '{joint.child}' lacks inertia about one axis, "
        f"({components}) in the frame of the {joint.type} joint '{name}', so its spin about this axis is not "
        "determined: use a universal joint there, which leaves that spin out, or give the body an inertia about this "
        "axis."
    )


def list_remarks(system: System, independence: Independence) -> tuple[str, ...]:
    """Return what a user should know: that nothing can move, which constraints hold by themselves or are redundant."""
    remarks = []
    if not system.tree.n:
        remarks.append("All joints are fixed, so nothing can move: the model has no states and its order is 0.")
    if independence.vanishing:
        loops = ", ".join(dict.fromkeys(of for of, _ in independence.vanishing))
        remarks.append(
            f"{len(independence.vanishing)} of the {independence.total} constraints are satisfied identically (in "
            f"{loops}), for example because other joints keep the links in a plane. They are left out of the "
            "equations, the motion does not depend on them, and their reactions are not determined."
        )
    dependent = [loop.of for i, loop in enumerate(system.loop_constraints) if i not in independence.all]
    if dependent:
        remarks.append(
            f"{len(dependent)} of the {independence.total} constraints are redundant (seen in "
            f"{', '.join(dict.fromkeys(dependent))}): they follow from the others and were left out of the equations. "
            "The motion does not depend on that; how redundant constraints share their load is not determined."
        )
    return tuple(remarks)


MAX_DRIVE_CONDITION_NUMBER = 100.0  # condition number up to which the drives are preferred to what pivoting would find
PASSIVE_JOINT_WEIGHT = 1e-3  # how much a joint without a drive counts relative to one with a drive


def choose_preferred_states(system: System, independence: Independence, q: NDArray[np.float64]) -> tuple[str, ...]:
    """Return the positions and the speeds to keep, driven joints first of all; empty where pivoting may choose."""
    tree, p = system.tree, system.tree.n - len(independence.all)
    driven = _list_driven(system.description, tree)
    holonomic = len(independence.position) == len(independence.all)
    if not (p and holonomic and len(independence.all) and (driven or len(tree.balls))):
        return ()
    q = close_loops(system, q)
    G = system.state(q, np.zeros(tree.n), np.zeros(system.nu)).G[independence.all]
    K = linalg.null_space(np.asarray(G))
    if K.shape[1] != p or len(tree.screw_speeds) < p:
        return ()
    weights = np.where(np.isin(tree.screw_speeds, list(driven)), 1.0, PASSIVE_JOINT_WEIGHT)
    pivots = linalg.qr((K[tree.screw_speeds] * weights[:, None]).T, mode="r", pivoting=True)[1][:p]
    chosen = tree.screw_speeds[np.sort(pivots)]
    if np.linalg.cond(K[chosen]) > MAX_DRIVE_CONDITION_NUMBER:
        return ()
    positions, speeds = tree.state_names
    independent_states = [positions[i] for i in tree.freedom_coordinates[chosen]] + [speeds[i] for i in chosen]
    return (*independent_states, *system.activation_names)


def _list_driven(description: MechanismDescription, tree: Tree) -> set[int]:
    """Return the degrees of freedom on which a force of a joint or an actuator acts."""
    driven = {tree.speeds_of[i.joint][i.coordinate] for i in description.inputs if isinstance(i, JointForce)}
    return driven | {
        speed
        for i in description.inputs
        if isinstance(i, Actuator) and i.joint
        for speed in tree.speeds_of[i.joint][: len(i.gear)]
    }
