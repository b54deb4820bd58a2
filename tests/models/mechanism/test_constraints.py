"""The constraint Jacobian against virtual links that are eliminated (A.12), and singular configurations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import NumericalError
from fmilin.manifold.rank import branch_frequencies
from fmilin.models.mechanism import Body, Joint, Loop, Mechanism, MechanismDescription
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.parts import SPEEDS, LoopType
from tests.models.mechanism.builders import Floats, Random, closed_loop, four_bar_pins, poses
from tests.models.mechanism.joint_screws import joint_screw
from tests.models.mechanism.recursion import Ad, body_jacobians

KINDS: tuple[LoopType, ...] = ("revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "fixed")


def two_branches(kind: LoopType) -> tuple[System, Loop]:
    """Return two spatial chains of four links each whose ends are closed by a loop."""
    r = Random(6)
    bodies = [r.body(f"b{i}") for i in range(8)]
    joints: list[Joint] = [
        r.joint(f"j{i}", "revolute", "ground" if i in (0, 4) else f"b{i - 1}", f"b{i}") for i in range(8)
    ]
    tree = MechanismDescription("tree", bodies, joints)
    loop = closed_loop("loop", kind, ("b3", "b7"), r, poses(tree))
    return System(replace(tree, loops=[loop])), loop


def with_virtual_link(system: System, loop: Loop) -> tuple[Floats, Floats]:
    """Return Ghat v = (J_second - J_first) v - S_v v_v in the loop's frame, as its parts by v and by v_v (A.9)."""
    q = np.concatenate([j.position for j in system.description.joints])
    J = body_jacobians(system.tree, q)
    parts = []
    for body, placement in ((loop.first, loop.first_placement), (loop.second, loop.second_placement)):
        link, offset = system.tree.frame_of[body]
        parts.append(Ad(np.linalg.inv(offset @ placement.matrix)) @ J[link])
    joint = Joint("virtual", loop.type, "a", "b", axis=loop.axis, second_axis=loop.second_axis)  # type: ignore[arg-type]
    closed = [float(c == 3) for c in range(4)][::-1] if loop.type == "spherical" else [0.0] * len(SPEEDS[loop.type])
    S_v, _ = joint_screw(joint, closed, [0.0] * len(SPEEDS[loop.type]))
    return parts[1] - parts[0], -S_v


@pytest.mark.parametrize("kind", KINDS)
def test_eliminating_the_virtual_coordinates_leaves_the_same_constraints(kind: LoopType) -> None:
    system, loop = two_branches(kind)
    by_v, by_virtual = with_virtual_link(system, loop)
    # (A.12) with rows that are mixed so that those of g_v carry the virtual coordinates
    Q, _ = np.linalg.qr(by_virtual, mode="complete")
    g_v, g = np.split(Q.T, [by_virtual.shape[1]])
    v_v = np.linalg.solve(g_v @ by_virtual, g_v @ by_v) if by_virtual.shape[1] else np.zeros((0, by_v.shape[1]))
    eliminated = g @ by_v - g @ by_virtual @ v_v
    q = np.concatenate([j.position for j in system.description.joints])
    G = system.state(q, np.zeros(8), np.zeros(0)).G
    assert G.shape == eliminated.shape
    assert np.linalg.matrix_rank(G) == np.linalg.matrix_rank(np.vstack((G, eliminated)), tol=1e-9) == len(G)
    assert np.abs(system.gaps(system.state(q, np.zeros(8), np.zeros(0)))).max() < 1e-13


def folded(phi: float = 0.0) -> Mechanism:
    """Return the four-bar of González et al. without spring, gravity along its folded links."""
    return Mechanism(replace(four_bar_pins(phi), springs=(), gravity=(9.81, 0, 0)))


def test_a_folded_four_bar_is_refused_and_has_the_frequencies_of_both_its_branches() -> None:
    mechanism = folded()
    with pytest.raises(NumericalError, match="singular configuration"):
        fl.linearize(mechanism)
    assert fl.linearize(mechanism, at_singularity=True).A.shape == (4, 4)
    form = mechanism.second_order_form(0.0, mechanism.start.states, mechanism.start.inputs)
    assert form is not None
    squares = sorted(w2 for _, w2 in branch_frequencies(form))
    # Intrinsic: all cranks swing together, w^2 = 6 g/5; the last ones fold, w^2 = 3 g/2.
    assert squares == pytest.approx([6 * 9.81 / 5, 3 * 9.81 / 2], rel=1e-12)


def test_the_equations_taken_apart_are_those_of_the_cartesian_coordinates() -> None:
    mechanism = folded(0.4)
    form = mechanism.second_order_form(0.0, mechanism.start.states, mechanism.start.inputs)
    assert form is not None
    solution = mechanism.solution(mechanism.start.states, mechanism.start.inputs)
    assert np.abs(form.accelerations - solution.v_dot).max() < 1e-12
    a = np.array([0.3, -0.2, 0.7])
    h = 1e-5
    G = [mechanism.system.state(mechanism.start.states[:3] + s * h * a, np.zeros(3), np.zeros(0)).G for s in (1, -1)]
    assert np.abs(form.bend(a) - (G[0] - G[1]) @ a / (2 * h)).max() < 1e-8
    assert (
        Mechanism(
            MechanismDescription(
                "ball", [Body("stone", 1.0, inertia=(1, 1, 1))], [Joint("b", "spherical", "ground", "stone")]
            )
        ).second_order_form(0.0, np.array([1.0, 0, 0, 0, 0, 0, 0]), np.zeros(0))
        is None
    )
