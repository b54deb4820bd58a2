"""The dynamics of open trees: sums over links against recursions from link to link, energy, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.models.mechanism import Body, Joint, MechanismDescription, Placement
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.recursions import (
    accelerations,
    composite_inertia,
    compute_inertia,
    mass_matrix,
    net_forces,
    positions,
    project_wrenches,
    velocities,
)
from fmilin.models.mechanism.tree import Tree, ad, along
from tests.models.mechanism.builders import Floats, Random, everything, poses
from tests.models.mechanism.recursion import Ad, articulated_body, body_jacobians, newton_euler

GRAVITY = np.array([0.3, -0.5, -9.81])


def tree_and_motion(shape: tuple[int, ...] = ()) -> tuple[Tree, Floats, Floats, Floats]:
    tree = System(everything(closed=False)).tree
    r = Random(8).numbers
    q, v, a = (r.normal(size=(*shape, k)) for k in (tree.n_q, tree.n, tree.n))
    return tree, q, v, a


def torque(tree: Tree, q: Floats, v: Floats, a: Floats) -> Floats:
    at = velocities(tree, q, v)
    A = accelerations(tree, at, v, GRAVITY) + tree.above @ (at.S * a[..., None])
    return np.asarray(project_wrenches(tree, at.S, net_forces(compute_inertia(tree, at), A)))


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_newton_euler_seen_from_the_ground_and_from_link_to_link(shape: tuple[int, ...]) -> None:
    tree, q, v, a = tree_and_motion(shape)
    assert np.abs(torque(tree, q, v, a) - newton_euler(tree, q, v, a, GRAVITY)).max() < 2e-12


def test_a_batch_is_its_points() -> None:
    tree, q, v, a = tree_and_motion((5,))
    whole = torque(tree, q, v, a)
    assert all(np.abs(whole[i] - torque(tree, q[i], v[i], a[i])).max() < 1e-12 for i in range(5))


def test_the_mass_matrix_is_made_of_torques_for_unit_accelerations() -> None:
    tree, q, v, _ = tree_and_motion()
    at = velocities(tree, q, v)
    M = mass_matrix(tree, at.S, composite_inertia(tree, compute_inertia(tree, at)))
    rest = torque(tree, q, v, np.zeros(tree.n))
    columns = np.column_stack([torque(tree, q, v, e) - rest for e in np.eye(tree.n)])
    assert np.abs(M - columns).max() < 1e-12
    assert np.linalg.eigvalsh(M)[0] > 0


def test_articulated_bodies_invert_newton_euler() -> None:
    tree, q, v, a = tree_and_motion((3,))
    assert np.abs(articulated_body(tree, q, v, newton_euler(tree, q, v, a, GRAVITY), GRAVITY) - a).max() < 1e-11


def test_body_jacobians_give_the_velocities_of_the_links() -> None:
    tree, q, v, _ = tree_and_motion()
    at = velocities(tree, q, v)
    for i, J in enumerate(body_jacobians(tree, q)):
        assert np.abs(Ad(at.X[i]) @ (J @ v) - at.V[i]).max() < 1e-12


def test_positions_are_products_of_the_joints() -> None:
    d = everything(closed=False)
    tree = System(d).tree
    q = np.concatenate([j.position for j in d.joints])
    X = positions(tree, q)
    for name, pose in poses(d).items():
        link, offset = tree.frame_of[name]
        assert np.abs(X[link] @ offset - pose).max() < 1e-13


def test_the_rates_of_positions_are_the_velocities() -> None:
    tree, q, v, a = tree_and_motion()
    from fmilin.models.mechanism.recursions import coordinate_rates

    h = 1e-30
    at = velocities(tree, q, v)
    q_dot = coordinate_rates(tree, q, v)
    X_dot = positions(tree, q + 1j * h * q_dot).imag / h
    for i in range(len(tree.P)):
        w = X_dot[i] @ np.linalg.inv(at.X[i])
        assert np.abs(np.array([w[2, 1], w[0, 2], w[1, 0], *w[:3, 3]]) - at.V[i]).max() < 1e-12
    A = accelerations(tree, at, v, np.zeros(3)) + tree.above @ (at.S * a[..., None])
    V_dot = velocities(tree, q + 1j * h * q_dot, v + 1j * h * a).V.imag / h
    assert np.abs(V_dot - A).max() < 1e-12


def test_identities_of_the_adjoint_operators() -> None:
    r = Random(2)
    G = r.placement().matrix
    g, h, k = (r.numbers.normal(size=6) for _ in range(3))
    assert np.abs(ad(g) @ h + ad(h) @ g).max() < 1e-15
    assert np.abs(ad(g) @ ad(h) @ k + ad(k) @ ad(g) @ h + ad(h) @ ad(k) @ g).max() < 1e-13  # Jacobi
    assert np.abs(Ad(G) @ ad(g) @ h - ad(along(Ad(G), g)) @ Ad(G) @ h).max() < 1e-13
    assert np.abs(Ad(np.linalg.inv(G)) @ Ad(G) - np.eye(6)).max() < 1e-14


def double_pendulum() -> MechanismDescription:
    """Two uniform rods of 1 m and 2 m, 3 kg and 5 kg, in the x-y plane."""
    bodies = [
        Body(n, m, (length / 2, 0, 0), (0, m * length**2 / 12, m * length**2 / 12))
        for n, m, length in (("first", 3.0, 1.0), ("second", 5.0, 2.0))
    ]
    joints = [
        Joint("a", "revolute", "ground", "first"),
        Joint("b", "revolute", "first", "second", Placement((1, 0, 0))),
    ]
    return MechanismDescription("double_pendulum", bodies, joints, gravity=(0, -9.81, 0))


def test_a_double_pendulum_has_the_equations_of_a_textbook() -> None:
    tree = System(double_pendulum()).tree
    q, v, a = (np.array(p) for p in ((0.3, 0.8), (1.1, -0.7), (0.4, 2.0)))
    m1, m2, l1, l2, g = 3.0, 5.0, 1.0, 2.0, 9.81
    J1, J2, c, s = m1 * l1**2 / 3, m2 * l2**2 / 3, np.cos(q[1]), np.sin(q[1])
    k = m2 * l1 * l2 / 2
    M = np.array([[J1 + J2 + m2 * l1**2 + 2 * k * c, J2 + k * c], [J2 + k * c, J2]])
    coriolis = k * s * np.array([-(2 * v[0] + v[1]) * v[1], v[0] ** 2])
    weight = g * np.array(
        [(m1 / 2 + m2) * l1 * np.cos(q[0]) + m2 * l2 / 2 * np.cos(q.sum()), m2 * l2 / 2 * np.cos(q.sum())]
    )
    expected = M @ a + coriolis + weight
    assert np.abs(newton_euler(tree, q, v, a, np.array([0, -9.81, 0])) - expected).max() < 1e-13
