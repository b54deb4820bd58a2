"""Modes along a grid: followed by their eigenvectors, and marked where they meet."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.systems import bicycle, cartesian_pendulum, four_bar, stewart_platform
from tests.families.plants import column, oscillator, relaxing

ROLLING = ["x", "y", "rear_wheel", "front_wheel", "rear_rate"]


def met(family: fl.LinearFamily, kind: str) -> list[tuple[float, float]]:
    """Return the values of the first axis between which modes meet."""
    (axis,) = family.axes.values()
    return [(axis[e.between[0]], axis[e.between[1]]) for e in family.mode_events if e.kind == kind]


def test_two_real_modes_become_a_pair() -> None:
    family = fl.sweep(oscillator(), {"d": np.linspace(3.03, 5.0, 21)})  # critical at d = 4
    ((low, high),) = met(family, "coalescence")
    assert low < 4.0 < high
    assert met(family, "crossing") == []
    d = family.axes["d"][:9]
    np.testing.assert_allclose(family.eigenvalues[:9, 0], -d / 2 - 1j * np.sqrt(4 - d**2 / 4), rtol=1e-12)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("start", [1.05, 1.0])  # from 1.0 one of the points is the one where they are the same
def test_two_real_modes_pass_each_other(start: float, mixed: bool) -> None:
    family = fl.sweep(relaxing(mixed=mixed), {"a": np.linspace(start, start + 2, 21)})
    ((low, high),) = met(family, "crossing")
    assert low < 2.0 < high < low + 0.21
    assert met(family, "coalescence") == []
    np.testing.assert_allclose(family.eigenvalues[:, 1], -family.axes["a"], rtol=1e-12)
    np.testing.assert_allclose(family.eigenvalues[:, 0], -2.0, rtol=1e-12)


def test_the_weave_of_the_bicycle_begins_where_it_was_published() -> None:
    """Meijaard, Papadopoulos, Ruina, Schwab (2007): a double real root at v = 0.684283078889246 m/s."""
    speeds = np.linspace(0.2, 10.0, 99)
    rider = bicycle()
    radius = rider.parameters["r_R"]
    family = fl.sweep(rider, {"rear_rate": -speeds / radius}, trim=fl.TrimRequest(steady=ROLLING))
    ((first, second),) = met(family, "coalescence")
    assert -first * radius < 0.684283078889246 < -second * radius < -first * radius + 0.1001
    weave = family.eigenvalues[-1, list(family.mode_events[0].modes)]
    np.testing.assert_allclose(np.abs(weave.imag), np.abs(weave.imag[0]), rtol=1e-12)
    assert weave.imag[0] * weave.imag[1] < 0


def test_frequencies_meet_where_a_column_begins_to_flutter() -> None:
    family = fl.sweep(column(), {"P": np.linspace(0.0, 5.0, 51)})
    flutter, divergence, other = met(family, "coalescence")
    assert flutter[0] < 3.5 - np.sqrt(2) < flutter[1]
    assert divergence == other  # of the growing and of the decaying pair
    assert divergence[0] < 3.5 + np.sqrt(2) < divergence[1]


def test_modes_that_turn_away_from_each_other_do_not_meet() -> None:
    equations = {"a": "va", "b": "vb", "va": "-k*a - c*(a - b)", "vb": "-4*b - c*(b - a)"}
    two = OdeModel("two", equations, parameters={"k": 1.0, "c": 0.05})
    stiffness = {"k": np.linspace(2.0, 6.0, 81)}
    assert fl.sweep(two, stiffness).mode_events == ()
    ((low, high),) = met(fl.sweep(two, stiffness, settings={"c": 0.0}), "crossing")
    assert low < 4.0 < high


def test_modes_that_meet_along_another_axis_are_marked_at_each_of_its_lines() -> None:
    family = fl.sweep(oscillator(), {"d": np.linspace(3.03, 5.0, 21), "F": [0.0, 1.0, 2.0]})
    assert [(e.kind, e.between) for e in family.mode_events] == [
        ("coalescence", (k, k + 3)) for k in (9 * 3, 9 * 3 + 1, 9 * 3 + 2)
    ]
    assert family.axes["d"][9] < 4.0 < family.axes["d"][10]


def test_a_failed_point_hides_no_meeting() -> None:
    damped = OdeModel("damped", {"q": "v", "v": "-4*q - d*v + sqrt(s) - 1"}, parameters={"d": 0.2, "s": 1.0})
    given = {"d": [3.0, 3.5, 3.9, 4.5, 5.0], "s": [1.0, 1.0, -1.0, 1.0, 1.0]}
    family = fl.sweep(damped, given, zipped=True)
    assert family.ok.tolist() == [True, True, False, True, True]
    assert [e.between for e in family.mode_events] == [(1, 3)]


def test_rounding_of_double_roots_is_no_meeting() -> None:
    free = OdeModel("free", {"x": "v", "v": "w", "w": "0", "z": "-k*z"}, parameters={"k": 1.0})
    assert fl.sweep(free, {"k": np.linspace(1.0, 2.0, 30)}).mode_events == ()


def bend(family: fl.LinearFamily) -> np.ndarray:
    """Return how far the basis at each point is off the line through its neighbours."""
    return np.asarray(np.abs(np.diff(family.T, 2, axis=0)).max(axis=(1, 2)))


def test_a_tangent_basis_is_carried_on_without_a_jump_or_a_kink() -> None:
    angles = {"phi": np.linspace(0.4, 2.6, 200)}  # where phi passes 1, its size begins to grow with it
    bends = bend(fl.sweep(four_bar(), angles, coordinates="tangent"))
    assert bends.max() < 2 * np.median(bends)
    swing = bend(fl.sweep(cartesian_pendulum(), {"x": np.linspace(-0.5, 0.5, 100)}, coordinates="tangent"))
    assert swing.max() < 3 * np.median(swing)


def test_a_tangent_basis_of_many_freedoms_does_not_jump_where_a_run_ends() -> None:
    plant, s = stewart_platform(), np.linspace(0.0, 1.0, 100)[:70]
    places = {
        "table.z": plant.start.states[2] + 0.1 * np.sin(3 * s),
        "table.e1": 0.2 * s,
        "table.e2": 0.2 * np.sin(4 * s),
        "table.e3": 0.2 * np.cos(4 * s),
    }
    family = fl.sweep(plant, places, zipped=True, coordinates="tangent")
    assert family.ok.all()
    bends = bend(family)
    assert bends[28:35].max() < 3 * np.median(bends)


def test_a_pair_that_turns_the_other_way_keeps_the_sign_of_its_imaginary_part() -> None:
    """-1 +- i w; with the sign of w the eigenvectors (1, -+i) are swapped, the eigenvalues are not."""
    spiral = OdeModel("spiral", {"x": "-x - w*y", "y": "w*x - y"}, parameters={"w": 0.2})
    family = fl.sweep(spiral, {"w": [0.2, -0.2, 0.25]})
    np.testing.assert_allclose(family.eigenvalues, -1 + np.outer([0.2, 0.2, 0.25], [-1j, 1j]), rtol=1e-12)
