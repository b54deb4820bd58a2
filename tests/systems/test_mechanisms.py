"""The mechanisms of the package: against other formulations of the same, closed forms, and plane geometry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel, systems
from fmilin.errors import UsageError
from fmilin.models.mechanism import Mechanism
from fmilin.systems import double_wishbone, five_bar, four_bar, furuta_pendulum, loader, slider_crank, stewart_platform
from fmilin.testing import check_model
from tests.models.mechanism.toml_text import toml_text
from tests.systems.linkages import five_bar_mechanism, four_bar_mechanism, parallel_robot
from tests.systems.loader_geometry import LoaderGeometry
from tests.systems.reduced import Reduced, Rigid, linearized_at_rest

EQUILIBRIA: list[Callable[[], Mechanism]] = [
    four_bar_mechanism,
    lambda: four_bar_mechanism(3, damping=0.5),
    lambda: four_bar_mechanism(2, pins="revolute"),
    slider_crank,
    furuta_pendulum,
    lambda: furuta_pendulum(hanging=True),
    parallel_robot,
    lambda: loader(at_rest=True),
    double_wishbone,
    stewart_platform,
]


def eigenvalues(linear: LinearModel) -> np.ndarray:
    return np.sort_complex(np.round(linear.eigenvalues(), 12))


def assert_same_model(one: LinearModel, other: LinearModel, tolerance: float = 1e-9) -> None:
    for name in "ABCD":
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(np.abs(b).max(initial=0.0), 1.0), err_msg=name)


@pytest.mark.parametrize("build", EQUILIBRIA)
def test_it_starts_in_equilibrium_with_closed_loops(build: Callable[[], Mechanism]) -> None:
    model = build()
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    assert np.abs(at.residuals).max(initial=0.0) < 1e-14
    assert np.abs(at.derivatives).max() < 1e-11


@pytest.mark.parametrize("build", [five_bar_mechanism, loader])
def test_it_starts_at_rest_with_closed_loops(build: Callable[[], Mechanism]) -> None:
    model = build()
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    assert np.abs(at.residuals).max() < 1e-14
    assert not at.derivatives[: len(model.states) // 2].any()
    assert np.abs(at.derivatives).max() > 1


# The mechanisms of fmilin.systems themselves are checked in tests/testing.
@pytest.mark.parametrize("build", [b for b in EQUILIBRIA if b.__name__ not in dir(systems)] + [five_bar_mechanism])
def test_it_keeps_what_a_model_promises(build: Callable[[], Mechanism]) -> None:
    done = check_model(build())
    assert {"products", "derivatives", "batches"} <= set(done)


@pytest.mark.parametrize("build", [*EQUILIBRIA, five_bar_mechanism])
def test_it_is_the_same_after_a_way_through_a_file(build: Callable[[], Mechanism], tmp_path: Path) -> None:
    model, path = build(), tmp_path / "mechanism.toml"
    path.write_text(toml_text(model.description), encoding="utf-8")
    again = Mechanism.from_toml(path)
    assert (again.states, again.inputs, again.outputs.names) == (model.states, model.inputs, model.outputs.names)
    x = model.start.states + 0.01
    one, other = (m.evaluate(0.0, x, m.start.inputs) for m in (model, again))
    np.testing.assert_allclose(other.derivatives, one.derivatives, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.residuals, one.residuals, rtol=0, atol=1e-12)


# -- the same mechanism in other formulations


@pytest.mark.parametrize(("loops", "damping"), [(1, 0.0), (1, 1.0), (2, 0.0), (3, 0.4)])
def test_the_four_bar_linkage_is_that_of_lagranges_equations(loops: int, damping: float) -> None:
    keep, outputs = ["phi", "w"], ["phi", "w", "coupler.y"]
    bodies = fl.linearize(four_bar_mechanism(loops, damping), independent=keep, outputs=outputs)
    rods = fl.linearize(four_bar(loops, damping), independent=keep, outputs=outputs)
    assert_same_model(bodies, rods)


def test_the_four_bar_linkage_has_its_published_frequency() -> None:
    assert eigenvalues(fl.linearize(four_bar_mechanism()))[1].imag == pytest.approx(2.147676638502278, rel=1e-12)


def test_redundant_pins_change_nothing_and_are_reported() -> None:
    plain, pinned = fl.linearize(four_bar_mechanism(2)), fl.linearize(four_bar_mechanism(2, pins="revolute"))
    assert_same_model(pinned, plain, 1e-11)
    assert any("6 of the 10 constraints" in str(w) for w in pinned.warnings)


def test_the_five_bar_mechanism_is_that_of_lagranges_equations() -> None:
    keep = ["q1", "q4", "v1", "v4"]
    outputs = ["middle.x", "middle.y", "kinetic_energy", "potential_energy"]
    bodies = fl.linearize(five_bar_mechanism(), independent=keep, outputs=outputs)
    links = fl.linearize(five_bar(), independent=keep, outputs=outputs)
    assert_same_model(bodies, links)
    np.testing.assert_allclose(bodies.f0, links.f0, atol=1e-11)


# -- closed forms


def test_the_basis_of_the_parallel_robot_is_constant() -> None:
    random = np.random.default_rng(24)
    for crank, arm in random.uniform(-np.pi, np.pi, (6, 2)):
        linear = fl.linearize(parallel_robot(crank=crank, arm=arm))
        np.testing.assert_allclose(linear.T[:4, :2], [[1, 0], [0, 1], [1, -1], [-1, 1]], atol=1e-11)
        np.testing.assert_allclose(linear.T[4:, :2], 0, atol=1e-10)


def test_the_parallel_robot_held_by_its_motors() -> None:
    q1, q2 = 3.4, 1.1
    linear = fl.linearize(parallel_robot(crank=q1, arm=q2))
    g, l1, l2, (m1, m2, m3, m4), c3 = 9.81, 0.25, 0.7, (1.5, 8.0, 5.0, 1.0), -0.175
    c1, c2 = g * (m1 * l1 / 2 + m3 * c3 + m4 * l1), g * (m2 * l2 / 2 + m3 * l2 + m4 * l2 / 2)
    M11 = m1 * l1**2 / 3 + m3 * (0.85**2 / 12 + c3**2) + m4 * l1**2
    M22 = m2 * l2**2 / 3 + m3 * l2**2 + m4 * l2**2 / 3
    M12 = (m3 * l2 * c3 + m4 * l1 * l2 / 2) * np.cos(q1 - q2)
    M = np.array([[M11, M12], [M12, M22]])
    np.testing.assert_allclose(
        linear.A[2:, :2], np.linalg.solve(M, np.diag([c1 * np.sin(q1), c2 * np.sin(q2)])), rtol=1e-10
    )
    np.testing.assert_allclose(linear.B[2:], np.linalg.inv(M), rtol=1e-10)


def test_the_hanging_slider_crank() -> None:
    linear = fl.linearize(slider_crank())
    M, stiffness = 0.8 * 0.1**2 / 3 + 0.9 * 0.1**2, (0.8 + 0.5) * 9.81 * 0.05
    np.testing.assert_allclose(linear.A, [[0.0, 1.0], [-stiffness / M, 0.0]], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(linear.B, [[0.0, 0.0], [1 / M, 0.1 / M]], rtol=1e-12)
    np.testing.assert_allclose(linear.C, [[0.1, 0.0], [0.0, 0.1], [-0.1 * stiffness / M, 0.0]], rtol=1e-12, atol=1e-12)


def test_a_turning_slider_crank_off_its_equilibrium() -> None:
    angle = 0.7

    def bodies(y: list[object]) -> list[Rigid]:
        import mpmath

        x, h = mpmath.mpf("0.1") * mpmath.cos(y[0]), mpmath.mpf("0.1") * mpmath.sin(y[0])
        end = x + mpmath.sqrt(mpmath.mpf("0.09") - h**2)
        crank = Rigid(0.8, 0.8 * 0.1**2 / 12, x / 2, h / 2, y[0])
        rod = Rigid(0.5, 0.5 * 0.3**2 / 12, (x + end) / 2, h / 2, mpmath.asin(-h / mpmath.mpf("0.3")))
        return [crank, rod, Rigid(0.4, 0.0, end, 0 * h, 0 * h)]

    f, A, M = linearized_at_rest(Reduced(bodies), [angle])  # type: ignore[arg-type]
    linear = fl.linearize(slider_crank(angle=angle))
    np.testing.assert_allclose(linear.f0[1:], f, rtol=1e-11)
    np.testing.assert_allclose(linear.A[1:, :1], A, rtol=1e-11)
    np.testing.assert_allclose(linear.B[1, 0], 1 / M[0, 0], rtol=1e-11)


@pytest.mark.parametrize("hanging", [True, False])
def test_the_furuta_pendulum(hanging: bool) -> None:
    J, r, length, m, c, g = 2e-3, 0.2, 0.3, 0.1, 1e-3, 9.81
    s = 1.0 if hanging else -1.0
    M = np.array([[J + m * r**2, s * m * r * length / 2], [s * m * r * length / 2, m * length**2 / 3]])
    K, D = np.diag([0.0, s * m * g * length / 2]), np.diag([c, 0.0])
    linear = fl.linearize(furuta_pendulum(hanging=hanging))
    expected = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    np.testing.assert_allclose(linear.A, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(linear.B[2:, 0], np.linalg.solve(M, [1.0, 0.0]), rtol=1e-12)


def test_the_stewart_platform_heaves_as_one_degree_of_freedom() -> None:
    """Straight up and down the platform and six legs have one coordinate, z, and everything is known about it."""
    z, d, k, tube, rod, table, g = 1.0, 2e3, 4e5, 15.0, 8.0, 250.0, 9.81
    feet, heads = np.exp(1j * np.radians(10)), 0.6 * np.exp(1j * np.radians(50))
    r2 = abs(feet - heads) ** 2
    length = np.sqrt(z**2 + r2)
    turn = np.sqrt(r2) / length**2  # of a leg, per z
    M = table + 6 * ((0.7 + tube * 0.35**2) * turn**2 + 0.5 * turn**2)
    M += 6 * rod * ((z / length) ** 2 + ((length - 0.4) * turn) ** 2)
    # V'' with V = 6 k/2 (l - l0)^2 + m g z + 6 g [m_t c_t z/l + m_r (z - c_r z/l)], (z/l)'' = -3 r^2 z/l^5
    push = (table * g / 6 + g * (tube * 0.35 - rod * 0.4) * r2 / length**3 + rod * g) * length / z
    bend = -3 * r2 * z / length**5
    stiffness = 6 * k * (z / length) ** 2 - 6 * push * r2 / length**3 + 6 * g * (tube * 0.35 - rod * 0.4) * bend
    heave = np.roots([M, 6 * d * (z / length) ** 2, stiffness])
    found = fl.linearize(stewart_platform()).eigenvalues()
    for root in heave:
        assert np.min(np.abs(found - root)) < 1e-9 * abs(root)


# -- the loader


@pytest.fixture(scope="module")
def loaders() -> dict[str, LinearModel]:
    model = loader()
    keep = {"angles": ["boom.q", "bucket.q"], "strokes": ["lift.q", "tilt.q"]}
    return {name: fl.linearize(model, independent=names) for name, names in keep.items()}


@pytest.mark.parametrize("choice", ["angles", "strokes"])
def test_the_loader_by_plane_geometry(choice: str, loaders: dict[str, LinearModel]) -> None:
    linear = loaders[choice]
    geometry = LoaderGeometry(loader().description)
    bodies = geometry.by_angles if choice == "angles" else geometry.by_strokes
    f, A, M = linearized_at_rest(Reduced(bodies), linear.y0[:2].tolist())
    np.testing.assert_allclose(linear.f0[2:], f, rtol=1e-10)
    np.testing.assert_allclose(linear.A[2:, :2], A, rtol=1e-9, atol=1e-9 * np.abs(A).max())
    np.testing.assert_allclose(linear.A[2:, 2:], 0, atol=1e-10)
    if choice == "strokes":
        np.testing.assert_allclose(linear.B[2:], np.linalg.inv(M), rtol=1e-9)


def test_off_equilibrium_the_eigenvalues_of_the_loader_depend_on_the_coordinates(
    loaders: dict[str, LinearModel],
) -> None:
    angles, strokes = (eigenvalues(loaders[name]) for name in ("angles", "strokes"))
    assert np.max(np.abs(angles - strokes)) > 0.1
    assert any(w.kind == "off-equilibrium" for w in loaders["angles"].warnings)


def test_in_equilibrium_the_eigenvalues_of_the_loader_do_not_depend_on_the_coordinates() -> None:
    model = loader(at_rest=True)
    angles, strokes = (
        eigenvalues(fl.linearize(model, independent=k)) for k in (["boom.q", "bucket.q"], ["lift.q", "tilt.q"])
    )
    np.testing.assert_allclose(angles, strokes, atol=1e-10)


def test_the_loader_has_eight_bodies_three_loops_and_two_freedoms() -> None:
    model = loader()
    assert (len(model.description.bodies), len(model.description.loops)) == (8, 3)
    assert len(fl.linearize(model).states) == 4


# -- the suspension


def test_the_tyre_of_the_suspension_carries_the_car() -> None:
    model = double_wishbone()
    weight = 9.81 * sum(b.mass or 0.0 for b in model.description.bodies)
    tyre = next(s for s in model.description.springs if s.name == "tyre")
    assert tyre.stiffness * (tyre.length - 0.31) == pytest.approx(weight, rel=1e-11)


def test_the_suspension_bounces_and_hops_whatever_the_coordinates() -> None:
    model = double_wishbone()
    pairs = [["body.q", "lower.q"], ["body.q", "upper.q"]]
    first, second = (eigenvalues(fl.linearize(model, independent=names)) for names in pairs)
    np.testing.assert_allclose(first, second, rtol=1e-9)
    hertz = np.unique(np.round(np.abs(first) / (2 * np.pi), 6))
    assert 1.0 < hertz[0] < 1.5  # a car's body
    assert 9.0 < hertz[-1] < 13.0  # and its wheel


def test_exact_derivatives_of_the_suspension_agree_with_differences() -> None:
    model = double_wishbone()
    exact, measured = fl.linearize(model), fl.linearize(model, derivatives="differences")
    for name in "ABCD":
        a, b = getattr(exact, name), getattr(measured, name)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * np.abs(a).max(), err_msg=name)


# -- requests that make no sense


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="has 1 loop or more, not 0"):
        four_bar_mechanism(0)
    with pytest.raises(UsageError, match="'glue' is not a way to close a loop"):
        four_bar_mechanism(pins="glue")
