"""Conserved totals: the equilibrium has the totals of the start, unless another one is asked for."""

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.manifold.totals import _reduce_rows
from fmilin.models import OdeModel

TANKS = {"h1": "-(h1 - h2)/2", "h2": "((h1 - h2) - (h2 - h3))/3", "h3": "h2 - h3"}
START = {"h1": 1.0, "h2": 0.5, "h3": 0.25}
CONTENT = 2 * 1.0 + 3 * 0.5 + 0.25


def tanks() -> OdeModel:
    outputs = {"content": "2*h1 + 3*h2 + h3"}
    return OdeModel("tanks", TANKS, start=START, outputs=outputs)


def messages(point: fl.TrimmedPoint) -> str:
    return " ".join(remark.message for remark in point.report.remarks if remark.kind == "conserved")


def test_connected_tanks_keep_their_content() -> None:
    point = fl.trim(tanks())
    np.testing.assert_allclose(point.states, CONTENT / 6, rtol=1e-12)
    assert "2*h1 + 3*h2 + h3 = 3.75" in messages(point)
    assert not point.report.free_directions


def test_another_content_is_a_fixed_level_a_guess_or_a_fixed_output() -> None:
    np.testing.assert_allclose(fl.trim(tanks(), fixed={"h1": 0.7}).states, 0.7, rtol=1e-12)
    np.testing.assert_allclose(fl.trim(tanks(), guess={"h1": 4.0}).states, (CONTENT + 6) / 6, rtol=1e-12)
    point = fl.trim(tanks(), fixed={"content": 12.0})
    np.testing.assert_allclose(point.states, 2.0, rtol=1e-9)


def test_the_total_is_that_of_a_long_simulation() -> None:
    """An epidemic: the sum of susceptible, infected and recovered persons is not seen at one point alone."""
    rates = {"a": "-a*b + 0.5*c", "b": "a*b - 0.7*b", "c": "0.7*b - 0.5*c"}
    point = fl.trim(OdeModel("epidemic", rates, start={"a": 1.0, "b": 0.5, "c": 0.25}))
    np.testing.assert_allclose(point.states, [0.7, 0.4375, 0.6125], rtol=1e-10)


def test_each_atom_of_a_reaction_is_counted() -> None:
    rate = "(2*A*B - C)"
    model = OdeModel("reaction", {"A": f"-{rate}", "B": f"-{rate}", "C": rate}, start={"A": 1.0, "B": 0.5, "C": 0.25})
    A, B, C = fl.trim(model).states
    np.testing.assert_allclose([A + C, B + C, 2 * A * B - C], [1.25, 0.75, 0.0], atol=1e-12)


def test_two_free_bodies_meet_at_their_centre_of_mass() -> None:
    pull = "(5*(x1 - x2) + 0.1*(v1 - v2))"
    model = OdeModel("bodies", {"x1": "v1", "x2": "v2", "v1": f"-{pull}", "v2": f"{pull}/3"}, start={"x1": 1.0})
    point = fl.trim(model)
    np.testing.assert_allclose(point.states, [0.25, 0.25, 0, 0], atol=1e-10)


def test_bodies_that_drift_have_no_equilibrium_with_their_momentum_and_trim_says_so() -> None:
    pull = "(5*(x1 - x2) + 0.1*(v1 - v2))"
    start = {"x1": 1.0, "v1": 0.5}
    model = OdeModel("bodies", {"x1": "v1", "x2": "v2", "v1": f"-{pull}", "v2": f"{pull}/3"}, start=start)
    point = fl.trim(model)
    np.testing.assert_allclose(point.states[2:], 0.0, atol=1e-10)
    assert "would change a total: v1 + 3*v2 = " in messages(point)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_closed_network_in_an_fmu_keeps_its_content(tmp_path: Path, version: str) -> None:
    file = build_fmu(tanks(), tmp_path / "tanks.fmu", fmi_version=version)
    with fl.load(file) as model:
        point = fl.trim(model)
    np.testing.assert_allclose(point.states, CONTENT / 6, rtol=1e-9)
    assert "= 3.75" in messages(point)


@pytest.mark.parametrize("seed", range(10))
def test_random_closed_networks_keep_their_content(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 8))
    volumes, start = random.uniform(0.5, 5, n), random.uniform(0.1, 3, n)
    flows: dict[int, list[str]] = {i: [] for i in range(n)}
    for i, j in [(k, k + 1) for k in range(n - 1)] + [tuple(random.choice(n, 2, replace=False)) for _ in range(2)]:
        flow = f"{random.uniform(0.1, 4)}*(h{i} - h{j} + (h{i} - h{j})^3)"
        flows[int(i)].append(f"- {flow}")
        flows[int(j)].append(f"+ {flow}")
    rates = {f"h{i}": f"({' '.join(flows[i])})/{volumes[i]}" for i in range(n)}
    model = OdeModel("network", rates, start={f"h{i}": float(start[i]) for i in range(n)})
    np.testing.assert_allclose(fl.trim(model).states, volumes @ start / volumes.sum(), rtol=1e-9)


def test_an_open_network_has_no_total() -> None:
    model = OdeModel("open", {"a": "-a + b", "b": "a - b - 0.1*b"}, start={"a": 1.0, "b": 1.0})
    point = fl.trim(model)
    np.testing.assert_allclose(point.states, 0.0, atol=1e-9)
    assert not messages(point)


def test_bodies_without_ground_that_drift_keep_their_momentum() -> None:
    """A steady drift is one of many, and the start says which: m1 v1 + m2 v2 = 1 + 3*2."""
    rates = {
        "x1": "v1",
        "x2": "v2",
        "v1": "100*(x2 - x1 - 1) + (v2 - v1)",
        "v2": "-(100*(x2 - x1 - 1) + (v2 - v1))/3",
    }
    start = {"x1": 0.0, "x2": 2.0, "v1": 1.0, "v2": 2.0}
    point = fl.trim(OdeModel("dumbbell", rates, start=start), steady=["x1", "x2"])
    np.testing.assert_allclose(point.states[2:], 7 / 4, rtol=1e-10)
    assert point.states[1] - point.states[0] == pytest.approx(1.0, abs=1e-10)
    assert "v1 + 3*v2 = 7" in messages(point)


def test_an_equilibrium_with_the_total_of_the_start_is_found_behind_a_dead_end() -> None:
    """With a + b = 0 as at the start a^3 - 2 a + 2 = 0: at -1.77, and a minimum is near the nearest equilibrium."""
    cubic = "b - (a^3 - 3*a + 2)"
    point = fl.trim(OdeModel("reaction", {"a": cubic, "b": f"-({cubic})"}, start={"a": -0.9, "b": 0.9}))
    root = min(np.roots([1.0, 0.0, -2.0, 2.0]).real)
    np.testing.assert_allclose(point.states, [root, -root], rtol=1e-10)


def test_totals_that_share_states_are_separated() -> None:
    rows = _reduce_rows(np.array([[1.0, 1.0, 0.0, 2.0], [1.0, 0.0, 1.0, 1.0]]))
    assert [np.count_nonzero(rows[:, column]) for column in np.argmax(np.abs(rows), axis=1)] == [1, 1]
    assert np.linalg.matrix_rank(np.vstack((rows, [[1.0, 1.0, 0.0, 2.0], [1.0, 0.0, 1.0, 1.0]]))) == 2
