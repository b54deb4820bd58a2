"""Given start values: velocities are held, and values that closing the loops had to move are reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.diagnostics import Remark
from fmilin.errors import join_first
from fmilin.models.mechanism.mechanism_description import Moved
from fmilin.models.mechanism.multibody_system import System
from fmilin.tolerances import LOOP_CLOSURE_TOLERANCE, PSEUDOINVERSE_TOLERANCE

Floats = NDArray[np.float64]

START_VALUE_TOLERANCE = (
    1e-3  # change of a start value, in rad, sizes of the mechanism, or of the fastest: less is its rounding
)
MAX_LISTED_CHANGES = 6  # start values that a diagnostic names


def velocities(motions: Motions, free: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Return velocities (n,) that keep the loops closed, holding what is not ``free`` (n,), and the loops that open so.

    Of given ones that contradict each other the first are held, moving ones before zeros.
    """
    v, free, stated = motions.given_speeds, free.copy(), motions.stated
    if not motions.find_opened_loops(v):
        return v, ()
    given_speeds = np.flatnonzero(stated & (free > 0))
    given_speeds = given_speeds[np.argsort(v[given_speeds] == 0, kind="stable")]
    free[given_speeds] = 0.0
    nearest = motions.nearest(free)
    if not motions.find_opened_loops(nearest):
        return nearest, ()
    free[given_speeds] = 1.0
    nearest = motions.nearest(free)
    open_loops = motions.find_opened_loops(nearest)
    for i in given_speeds:
        free[i] = 0.0
        nearest_motion = motions.nearest(free)
        if set(motions.find_opened_loops(nearest_motion)) <= set(open_loops):
            nearest = nearest_motion
        else:
            free[i] = 1.0
    return nearest, open_loops


@dataclass(frozen=True, eq=False)
class Motions:
    """Velocities of a configuration: G v = 0 where its loops stay closed."""

    system: System
    scales: Floats  # (n,), sizes of displacements
    G: Floats  # shape (m, n)
    given_speeds: Floats  # (n,)
    stated: NDArray[np.bool_]  # (n,), which of them were given: the others follow

    def nearest(self, free: Floats) -> Floats:
        """Return velocities on which the loops stay closed, the ``free`` ones (n,) as little changed as can be.

        Where there are wheels, they alone turn if that is enough, or they and what slides, and how much they turn
        does not count: a wheel would turn about the vertical, else, to turn less about its axle.
        """
        G, v, spins = self.G, self.given_speeds, self._spins(free)
        GS = G @ spins
        inverse = linalg.pinv(GS, rtol=PSEUDOINVERSE_TOLERANCE)
        apart = np.eye(len(G)) - GS @ inverse
        stages = (np.zeros_like(free), free * self._slides, free) if spins.size else (free,)
        for movable in stages:
            D = self.scales * movable
            nearest = v - D * (linalg.pinv(apart @ G * D, rtol=PSEUDOINVERSE_TOLERANCE) @ (apart @ (G @ v)))
            nearest = nearest - spins @ (inverse @ (G @ nearest))
            if not self.find_opened_loops(nearest):
                break
        return np.asarray(nearest)

    @property
    def _slides(self) -> NDArray[np.bool_]:
        return np.asarray(~self.system.tree.axes[:, :3].any(axis=1))

    def _spins(self, free: Floats) -> Floats:
        """Return the turns of the wheels about their axles by the joints that carry them, shape (n, wheels)."""
        tree, description = self.system.tree, self.system.description
        spins = np.zeros((tree.n, len(description.wheels)))
        for spin, wheel in zip(spins.T, description.wheels, strict=True):
            link, offset = tree.frame_of[wheel.body]
            joint_columns = np.flatnonzero((link == tree.L) & (free > 0))
            axle = offset[:3, :3] @ np.array(wheel.axis) / np.linalg.norm(wheel.axis)
            turns = tree.axes[joint_columns, :3].T
            parts = np.linalg.pinv(turns) @ axle
            if np.allclose(turns @ parts, axle):
                spin[joint_columns] = parts
        return spins

    def find_opened_loops(self, v: Floats) -> tuple[str, ...]:
        """Return the loops that velocities (n,) open, by more than rounding relative to these and the given ones."""
        wrong = np.abs(self.G @ v) > LOOP_CLOSURE_TOLERANCE * (
            np.abs(self.G) @ np.maximum(np.abs(v), np.abs(self.given_speeds))
        )
        loops = zip(self.system.loop_constraints, wrong, strict=True)
        return tuple(dict.fromkeys(own_name(loop.of) for loop, is_wrong in loops if is_wrong))


def own_name(name: str) -> str:
    """Return the name that the author gave: a helical loop ends in one of its own."""
    return name.removesuffix(".end")


def list_moved_starts(
    system: System,
    given_values: tuple[Floats, Floats],
    starts: tuple[Floats, Floats],
    changes: tuple[Floats, Floats],
    stated: NDArray[np.bool_],
) -> tuple[Moved, ...]:
    """Return given start values that had to move by more than rounding; pairs are of positions and velocities."""
    tree, before = system.tree, {m.state: m.given_value for m in system.description.moved}
    neutral = np.zeros(tree.n_q)
    neutral[tree.ball_coordinates[:, 0]] = 1.0
    moved_q = (np.abs(changes[0]) > START_VALUE_TOLERANCE) & (given_values[0] != neutral)
    moved_v = (np.abs(changes[1]) > START_VALUE_TOLERANCE) & stated
    names, old_values = sum(tree.state_names, ()), np.concatenate(given_values)
    values = zip(names, old_values, np.concatenate(starts), (*moved_q, *moved_v), strict=True)
    return tuple(
        Moved(name, before.get(name, float(old)), float(new))
        for name, old, new, has_moved in values
        if has_moved or name in before
    )


def describe_moved_starts(moved: Sequence[Moved]) -> Remark:
    """Return the diagnostic on start values that had to move."""
    changes = (f"given {m.state} = {m.given_value:.6g}, became {m.became:.6g}" for m in moved)
    return Remark(
        "moved", f"To close the loops, start values had to move: {join_first(changes, MAX_LISTED_CHANGES, '; ')}."
    )
