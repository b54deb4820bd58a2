"""Stiff is not singular: models with rates of many decades have one equilibrium, and trim says so."""

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.signals import FloatArray


def chain(n: int, decades: tuple[float, float], *, cubic: float = 0.0) -> tuple[OdeModel, FloatArray]:
    """Masses below each other on springs of random stiffness, with where they hang (springs are linear or cubic)."""
    random = np.random.default_rng(n)
    k = 10 ** random.uniform(*decades, n)
    equations = {f"x{i}": f"v{i}" for i in range(n)}

    def pull(i: int) -> str:
        stretch = f"(x{i}-x{i - 1})" if i else "x0"
        return f"{k[i]:.17g}*({stretch} + {cubic}*{stretch}^3)"

    for i in range(n):
        below = pull(i + 1) if i + 1 < n else "0"
        equations[f"v{i}"] = f"{below} - {pull(i)} - 9.81 - 0.1*v{i}"
    stretches = [_root(cubic, -9.81 * (n - i) / k[i]) for i in range(n)]
    return OdeModel("chain", equations), np.concatenate((np.cumsum(stretches), np.zeros(n)))


def _root(cubic: float, force: float) -> float:
    """Return s with s + cubic s^3 = force."""
    roots = np.roots([cubic, 0.0, 1.0, -force])
    return float(roots[np.abs(roots.imag) < 1e-9].real[0])


def ladder(n: int, decades: tuple[float, float]) -> tuple[OdeModel, FloatArray]:
    """Resistors and capacitors of many decades behind a source of 5 V: no current flows at rest."""
    random = np.random.default_rng(n)
    R, C = 10 ** random.uniform(*decades, n), 10 ** random.uniform(-12, -3, n)
    equations = {}
    for i in range(n):
        before = f"v{i - 1}" if i else "5"
        onward = f"(v{i} - v{i + 1})/{R[i + 1]:.17g}" if i + 1 < n else "0"
        equations[f"v{i}"] = f"(({before} - v{i})/{R[i]:.17g} - {onward})/{C[i]:.17g}"
    return OdeModel("ladder", equations), np.full(n, 5.0)


def rod(n: int) -> tuple[OdeModel, FloatArray]:
    """A chain of thermal masses with a heat flow of 1 mW through conductances of ten decades."""
    random = np.random.default_rng(n)
    G, C = 10 ** random.uniform(-6, 4, n), 10 ** random.uniform(-2, 7, n)
    equations = {}
    for i in range(n):
        before = f"T{i - 1}" if i else "293.15"
        onward = f"{G[i + 1]:.17g}*(T{i} - T{i + 1})" if i + 1 < n else "-1e-3"
        equations[f"T{i}"] = f"({G[i]:.17g}*({before} - T{i}) - {onward})/{C[i]:.17g}"
    start = {f"T{i}": 293.15 for i in range(n)}
    return OdeModel("rod", equations, start=start), 293.15 + np.cumsum(1e-3 / G)


STIFF = {
    "springs of three decades": chain(10, (0, 3)),
    "springs of nine decades": chain(10, (1, 9)),
    "thirty springs": chain(30, (1, 6)),
    "springs that harden": chain(6, (1, 8), cubic=1.0),
    "a ladder of six decades": ladder(10, (0, 6)),
    "a ladder of eleven decades": ladder(10, (-2, 9)),
    "a thermal chain": rod(10),
    "a long thermal chain": rod(30),
}


@pytest.mark.parametrize("name", STIFF)
def test_a_stiff_model_has_one_equilibrium(name: str) -> None:
    model, expected = STIFF[name]
    point = fl.trim(model)
    assert not {"multiple", "family"} & {remark.kind for remark in point.report.remarks}
    off = np.abs(point.states - expected)
    assert (off <= 1e-6 * np.maximum(np.abs(expected), 1.0)).all()
    stated = np.array([point.report.distance[n] for n in model.states.names])
    assert (off <= stated + 1e-15 * np.maximum(np.abs(expected), 1.0)).all()
    assert point.report.unstable == 0


@pytest.mark.parametrize("k", [1e4, 1e8, 1e10, 1e11])
def test_a_bushing_far_stiffer_than_the_springs_beside_it_leaves_one_equilibrium(k: float) -> None:
    equations = {"x1": "v1", "x2": "v2", "v1": f"-x1 - {k}*(x1 - x2) - 1 - 0.1*v1", "v2": f"-x2 - {k}*(x2 - x1) - v2"}
    point = fl.trim(OdeModel("two", equations))
    assert not point.report.free_directions
    assert not point.report.multiple
    np.testing.assert_allclose(point.states[:2], -0.5, atol=1e-3 if k > 1e9 else 1e-4)


@pytest.mark.parametrize("k", [1.0, 1e4, 1e9, 1e12])
def test_two_bodies_without_a_ground_are_a_family_however_stiff_they_are_joined(k: float) -> None:
    equations = {"x1": "v1", "x2": "v2", "v1": f"-{k}*(x1 - x2) - 0.1*v1", "v2": f"-{k}*(x2 - x1) - 0.1*v2"}
    point = fl.trim(OdeModel("free", equations, start={"x1": 1.0, "x2": 1.0}))
    assert len(point.report.free_directions) == 1
