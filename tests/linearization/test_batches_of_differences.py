"""FMUs without directional derivatives: points that are differenced together have what each of them has alone."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import fmilin as fl
from benchmarks.fmu_springs import springs_fmu
from benchmarks.growth.counts import count_messages
from fmilin.fmi.write import build_fmu
from fmilin.linearization.reference import Reference
from fmilin.model.interface import Model
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import four_bar
from tests.fmus.make import build

Values = dict[str, FloatArray]
SPRINGS = {"x[1]": np.linspace(0.0, 0.5, 12)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("differences")


@pytest.fixture(scope="module")
def linkage(folder: Path) -> Path:
    return build_fmu(four_bar(), folder / "four_bar.fmu", directional_derivatives=False)


@pytest.fixture(scope="module")
def springs(folder: Path) -> Path:
    return springs_fmu(6, folder, directional=False, declared=False).path


@contextmanager
def one_by_one() -> Iterator[None]:
    """Linearize each point alone meanwhile."""
    with patch.object(Reference, "is_usable", property(lambda _: False)):
        yield


def compare(path: Path, values: Values, *, largest_ratio: float = 1e3) -> Counter[str]:
    """Sweep together and one by one, and compare; return the counts of the sweep together."""
    counted: Counter[str] = Counter()
    with fl.load(path) as model, count_messages(counted):
        together = fl.sweep(model, values)
    with fl.load(path) as model, one_by_one():
        alone = fl.sweep(model, values)
    assert together.ok.all()
    assert alone.ok.all()
    for one, other in zip(together, alone, strict=True):
        assert one is not None
        assert other is not None
        assert one.method.derivatives == other.method.derivatives == "differences"
        assert {w.kind for w in one.warnings} == {w.kind for w in other.warnings}
        for name in "ABCDT":
            matrix, single = getattr(one, name), getattr(other, name)
            errors, single_errors = getattr(one.errors, name), getattr(other.errors, name)
            assert (np.abs(matrix - single) <= 3 * (errors + single_errors) + 1e-14).all(), name
            size = 1e-12 * max(np.abs(single).max(initial=0.0), 1e-3)
            assert errors.max(initial=0.0) <= largest_ratio * single_errors.max(initial=0.0) + size, name
    return counted


def count_warm(model: Model) -> int:
    """Return the messages of one later call."""
    for _ in range(3):
        fl.linearize(model)
    counted: Counter[str] = Counter()
    with count_messages(counted):
        linear = fl.linearize(model)
    assert linear.method.derivatives == "differences"
    return counted["messages"]


def test_a_sweep_of_an_unconstrained_fmu_is_that_of_its_points(springs: Path) -> None:
    compare(springs, SPRINGS)


def test_a_sweep_of_a_constrained_fmu_is_that_of_its_points(linkage: Path) -> None:
    compare(linkage, {"torque": np.linspace(-1.0, 1.0, 3)})


def test_a_sweep_of_an_fmu_of_fmi_3_is_that_of_its_points(folder: Path) -> None:
    model = OdeModel("swing", {"q": "v", "v": "F - sin(q)"}, inputs=["F"], start={"q": 0.5})
    path = build_fmu(model, folder / "swing.fmu", fmi_version="3.0", directional_derivatives=False)
    compare(path, {"q": np.linspace(0.1, 1.0, 4)})


def test_values_with_noise_are_as_uncertain_together_as_alone(folder: Path) -> None:
    compare(build("loses_digits", folder), {"x": np.linspace(0.5, 1.5, 3)})


def test_the_point_at_a_steep_slope_is_linearized_alone(folder: Path) -> None:
    values = np.linspace(-0.5, 0.5, 11)  # the sixth is 0: there v' = u - tanh(v / 1e-7) - x
    values[5] = 0.0
    with fl.load(build("rubs", folder)) as model:
        family = fl.sweep(model, {"v": values})
        assert family.ok.all()
        for v, linear in zip(values, family, strict=True):
            assert linear is not None
            exact = -1e7 if v == 0 else 0.0
            assert abs(linear.A[1, 1] - exact) <= 1e-6 * 1e7 ** (v == 0)


def test_later_calls_take_three_messages_at_most(springs: Path, linkage: Path) -> None:
    for path in (springs, linkage):
        with fl.load(path) as model:
            assert count_warm(model) <= 3


def test_points_of_a_sweep_share_messages(springs: Path) -> None:
    points = 300
    counted: Counter[str] = Counter()
    with fl.load(springs) as model:
        fl.sweep(model, SPRINGS)
        with count_messages(counted):
            family = fl.sweep(model, {"x[1]": np.linspace(0.0, 0.5, points)})
    assert family.ok.all()
    assert counted["messages"] < points / 2
