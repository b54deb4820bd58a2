"""Linear models along a path: coordinates that do not jump, switches that are said."""

from __future__ import annotations

import numpy as np

import fmilin as fl
from fmilin.manifold.selection import carry_basis
from tests.by_hand import pendulum

LENGTH, RATE = 1.3, 2.0


def circle(angles: np.ndarray) -> tuple[fl.Model, list[fl.OperatingPoint]]:
    model = pendulum(exact=True)
    points = []
    for a in angles:
        s, c = np.sin(a), np.cos(a)
        states = LENGTH * np.array([s, -c, RATE * c, RATE * s])
        points.append(fl.OperatingPoint(0.0, states, np.zeros(1)))
    return model, points


def test_tangent_coordinates_go_around_the_circle_without_a_jump() -> None:
    """Where the partition must switch four times, the carried basis turns with the rod: one sign all the way."""
    angles = np.linspace(0.0, 2 * np.pi, 73)
    model, points = circle(angles)
    models = fl.linearize_along(model, points, coordinates="tangent")
    assert {lin.states.names for lin in models} == {("tangent[x]", "tangent[vx]")}
    directions = np.stack([lin.T[:2, 0] for lin in models])
    tangents = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sizes = model.states.scales(points[0].states)[:2]  # of the first point, all the way
    lengths = np.linalg.norm(tangents / sizes, axis=1, keepdims=True)
    np.testing.assert_allclose(directions, tangents / lengths, atol=1e-12)
    assert (np.sum(directions[1:] * directions[:-1], axis=1) > 0).all()


def test_a_partition_is_kept_until_it_is_bad_and_the_switch_is_said() -> None:
    model, points = circle(np.linspace(0.0, 3.0, 31))
    models = fl.linearize_along(model, points)
    names = [lin.states.names for lin in models]
    assert names[0] == ("x", "vx")
    switches = [k for k in range(1, len(names)) if names[k] != names[k - 1]]
    said = [k for k, lin in enumerate(models) if "coordinates-switched" in [w.kind for w in lin.warnings]]
    assert switches == said
    assert len(switches) <= 1
    assert all(lin.accuracy.conditioning < 2e3 for lin in models)


def test_named_coordinates_stay_named() -> None:
    model, points = circle(np.linspace(0.1, 0.5, 3))
    models = fl.linearize_along(model, points, independent=["theta=atan2(x,-y)"])
    for lin, a in zip(models, (0.1, 0.3, 0.5), strict=True):
        np.testing.assert_allclose(lin.A[1, 0], -9.81 / LENGTH * np.cos(a), rtol=1e-10)


def test_a_carried_basis_depends_smoothly_on_the_constraints() -> None:
    random = np.random.default_rng(9)
    H0, H1 = random.standard_normal((2, 5, 9))
    basis = np.linalg.svd(H0)[2][5:].T
    steps = []
    for s in np.linspace(0.0, 1.0, 201):
        H = H0 + s * H1
        carried = carry_basis(H, basis)
        np.testing.assert_allclose(H @ carried, 0.0, atol=1e-12)
        np.testing.assert_allclose(carried.T @ carried, np.eye(4), atol=1e-12)
        steps.append(np.max(np.abs(carried - basis)))
        basis = carried
    assert max(steps) < 0.1
    assert carry_basis(np.eye(2), []).shape == (2, 0)  # no degree of freedom
