"""Large models of Lagrange's equations: the sparse way gives the numbers of the general one."""

from __future__ import annotations

from math import cos, sin

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin.models import LagrangeModel
from fmilin.systems import four_bar

LOOPS = 65
"""131 coordinates and more than 250 unknowns: the smallest that goes the sparse way, nearly."""


@pytest.fixture(scope="module")
def linkage() -> LagrangeModel:
    return four_bar(loops=LOOPS, damping=0.3)


def eigenvalue(loops: int, phi: float) -> float:
    """Return omega^2 of J phi'' = -g (3N + 1)/2 cos(phi) + N k (2 cos(phi/2) - l0) sin(phi/2), differentiated."""
    J, k, l0 = (4 * loops + 1) / 3, 25.0, 2**0.5
    slope = k * loops * (cos(phi) - l0 / 2 * cos(phi / 2))  # 2 cos(phi/2) sin(phi/2) = sin(phi)
    return -(9.81 * (3 * loops + 1) / 2 * sin(phi) + slope) / J


def test_large_models_have_sparse_equations_and_small_ones_none(linkage: LagrangeModel) -> None:
    assert linkage.sparse_equations() is not None
    assert four_bar(loops=2).sparse_equations() is None


@pytest.mark.parametrize("motion", [{}, {"phi": 2.0, "w": 0.4}])
def test_matrices_are_those_of_the_general_procedure(
    linkage: LagrangeModel, motion: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = ["phi", "coupler.y", "der(w)", "lambda[3]"]
    point = fl.operating_point(linkage, motion)
    sparse = fl.linearize(linkage, point, outputs=outputs)
    monkeypatch.setattr(LagrangeModel, "sparse_equations", lambda _: None)
    general = fl.linearize(linkage, point, outputs=outputs)
    assert sparse.states.names == general.states.names == ("phi", "w")
    for name in ("A", "B", "C", "D", "T", "f0", "y0"):
        one, other = getattr(sparse, name), getattr(general, name)
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(other).max())), name
    assert bool(sparse.warnings) == bool(motion)


def test_the_point_is_that_of_the_general_assembly(linkage: LagrangeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = fl.operating_point(linkage, {"phi": 2.2, "w": -0.2})
    monkeypatch.setattr(LagrangeModel, "sparse_equations", lambda _: None)
    general = fl.operating_point(linkage, {"phi": 2.2, "w": -0.2})
    assert np.abs(sparse.states - general.states).max() < 1e-9


def test_the_equilibrium_is_found_from_elsewhere() -> None:
    model = four_bar(loops=LOOPS)
    point = fl.trim(model, guess={"phi": 2.3})
    assert point.states[2 * LOOPS + 2] == pytest.approx(model.start.states[2 * LOOPS + 2], abs=1e-12)
    assert point.report.is_equilibrium
    assert point.report.exact
    omega = eigenvalue(LOOPS, float(point.states[2 * LOOPS + 2])) ** 0.5
    assert np.allclose(fl.linearize(model, point).eigenvalues(), [-1j * omega, 1j * omega], rtol=1e-9, atol=1e-9)


def test_other_coordinates_may_be_named_or_left_to_the_elimination(linkage: LagrangeModel) -> None:
    point = fl.operating_point(linkage)
    expected = fl.linearize(linkage, point).eigenvalues()
    other = fl.linearize(linkage, point, independent=["y7", "vy7"])
    assert other.states.names == ("y7", "vy7")
    assert np.allclose(other.eigenvalues(), expected, rtol=1e-8)
    with pytest.raises(fl.NumericalError, match="do not determine the others"):
        fl.linearize(linkage, point, independent=["x7", "y7"])


def test_a_point_off_the_manifold_is_refused(linkage: LagrangeModel) -> None:
    point = fl.operating_point(linkage)
    states = point.states.copy()
    states[4] += 1e-4
    with pytest.raises(fl.ConstraintError, match="off the constraints"):
        fl.linearize(linkage, fl.OperatingPoint(0.0, states, point.inputs))


def test_a_singular_configuration_is_said_to_be_one() -> None:
    model = four_bar(loops=LOOPS, singular=True)
    with pytest.raises(fl.NumericalError, match="singular"):
        fl.linearize(model, model.start)


def test_start_values_off_the_manifold_are_refused_and_projected() -> None:
    """A chain of pendulums, its start value of one joint 0.1 too far."""
    n = 140
    x, y, vx, vy = (sympy.symbols(f"{name}1:{n + 1}") for name in ("x", "y", "vx", "vy"))
    links = [(a - b) ** 2 + (c - d) ** 2 - 1 for a, b, c, d in zip(x, (0, *x), y, (0, *y), strict=False)]
    model = LagrangeModel(
        "chain",
        dict(zip((*x, *y), (*vx, *vy), strict=True)),
        {(i, i): 1 for i in range(2 * n)},
        [0] * n + [-9.81] * n,
        constraints=links,
        start={s: -float(i + 1) for i, s in enumerate(y)} | {y[5]: -6.1},
    )
    with pytest.raises(fl.ConstraintError, match="do not satisfy the constraints"):
        fl.operating_point(model)
    point = fl.operating_point(model, project=True)
    steps = np.diff(
        np.concatenate(([[0.0, 0.0]], np.column_stack((point.states[:n], point.states[n : 2 * n])))), axis=0
    )
    assert np.abs(np.hypot(*steps.T) - 1).max() < 1e-9
    hanging = fl.trim(model, guess={"y6": -6.0})
    assert len(fl.linearize(model, hanging).states) == 2 * n


def test_entries_outside_the_mass_matrix_are_refused() -> None:
    with pytest.raises(fl.UsageError, match=r"entry \[1, 0\] and should be 1 by 1"):
        LagrangeModel("point", {"x": "v"}, {(0, 0): 1, (1, 0): 2}, [0])
