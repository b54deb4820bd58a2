"""A later point of a model without constraints has the linear model, errors and warnings of a batch of one."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from benchmarks.fmu_springs import exact_A, springs_fmu
from fmilin.fmi.write import build_fmu
from fmilin.linearization.regular_columns import RegularColumns
from fmilin.linearization.repeated_point import RepeatedLinearization
from fmilin.manifold.rank import is_regular
from fmilin.signals import FloatArray
from fmilin.systems import furuta_pendulum
from tests.shared import shared
from tests.trimming.test_ranges_of_tables import fmu_with_table

ROUNDING_OF_GAPS = 1e-4
"""Relative: gaps between products and differences, which errors contain, are what cancellation leaves of them."""


def open_furuta() -> fl.Model:
    return fl.load(shared("loop_furuta_pendulum.fmu", lambda path: build_fmu(furuta_pendulum(), path)))


def open_springs(size: int) -> fl.Model:
    def write(path: Path) -> None:
        path.mkdir()
        springs_fmu(size, path, directional=True, declared=False)

    (file,) = shared(f"repeated_springs_{size}", write).glob("*.fmu")
    return fl.load(file)


def list_points(model: fl.Model) -> list[fl.OperatingPoint]:
    """Return the start, a point at rest, and points in motion at other times and with other inputs."""
    start, random = fl.operating_point(model), np.random.default_rng(6)
    rest = replace(start, states=np.zeros_like(start.states))
    points = [start, rest]
    for i in range(6):
        states = start.states + 0.3 * random.standard_normal(start.states.shape)
        inputs = start.inputs + 0.2 * random.standard_normal(start.inputs.shape)
        points.append(replace(start, states=states, inputs=inputs, time=0.5 * i))
    return points


@pytest.mark.parametrize("name", ["furuta", "springs 2", "springs 20", "counts_products"])
def test_repeated_points_are_those_of_a_batch_of_one(
    name: str, monkeypatch: pytest.MonkeyPatch, zoo: Callable[[str], Path]
) -> None:
    answered = {True: 0, False: 0}
    linearize = RepeatedLinearization.linearize

    def count(repetition: RepeatedLinearization, point: fl.OperatingPoint) -> fl.LinearModel | None:
        linear = linearize(repetition, point)
        answered[linear is not None] += 1
        return linear

    def open_model() -> fl.Model:
        if name == "furuta":
            return open_furuta()
        return fl.load(zoo(name)) if name == "counts_products" else open_springs(int(name.split()[1]))

    with open_model() as model, open_model() as another:
        points = list_points(model)
        for opened in (model, another):
            fl.linearize(opened, points[2])
        monkeypatch.setattr(RepeatedLinearization, "linearize", count)
        repeated = [fl.linearize(model, point) for point in points]
        monkeypatch.setattr(RepeatedLinearization, "of_reference", lambda _reference: None)
        batches = [fl.linearize(another, point) for point in points]
    assert 2 * answered[True] >= len(points), answered  # eigenvalues are compared where the speeds stay
    for one, other in zip(repeated, batches, strict=True):
        for field in ("A", "B", "C", "D", "T", "T_u", "f0", "y0", "u0", "g0"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
        for field in "ABCDT":
            np.testing.assert_allclose(getattr(one.errors, field), getattr(other.errors, field), rtol=ROUNDING_OF_GAPS)
        np.testing.assert_allclose(list_accuracy(one), list_accuracy(other), rtol=ROUNDING_OF_GAPS)
        assert one.warnings == other.warnings
        assert one.point == other.point
        assert one.states == other.states
        assert one.states.starts.tolist() == one.y0.tolist()
        assert one.full_states == other.full_states
        # a batch of one does not count the evaluation that shows whether the model repeats itself
        assert one.method.evaluations <= other.method.evaluations + 1
        assert replace(one.method, evaluations=0) == replace(other.method, evaluations=0)
        assert one.model == other.model


def list_accuracy(linear: fl.LinearModel) -> list[float]:
    return [getattr(linear.accuracy, field.name) for field in fields(linear.accuracy)]


def test_fields_that_are_computed_later_belong_to_the_matrices_as_they_were() -> None:
    with open_springs(20) as model:
        point = fl.operating_point(model)
        for _ in range(2):
            expected = fl.linearize(model, point)
        linear = fl.linearize(model, point)
        states = point.states.copy()
        linear.A[:] = 0.0
        point.states[:] = 7.0
        assert linear.accuracy == expected.accuracy
        np.testing.assert_array_equal(linear.errors.A, expected.errors.A)
        assert list(linear.point.states.values()) == states.tolist()
        with pytest.raises(AttributeError, match="no attribute 'eigenvalue'"):
            _ = linear.eigenvalue  # type: ignore[attr-defined]


def test_a_linear_model_with_fields_that_are_computed_later_is_stored_and_copied() -> None:
    with open_springs(20) as model:
        point = fl.operating_point(model)
        linear = [fl.linearize(model, point) for _ in range(4)][-1]
        for other in (pickle.loads(pickle.dumps(linear)), copy(linear), replace(linear, sample_time=0.0)):
            assert type(other) is fl.LinearModel
            assert other.states == linear.states
            assert other.accuracy == linear.accuracy
            assert other.point == linear.point
            np.testing.assert_array_equal(other.errors.C, linear.errors.C)
        assert repr(linear) == repr(replace(linear))


def test_a_linear_model_that_is_stored_keeps_no_fmu_open() -> None:
    model = open_springs(2)
    point = fl.operating_point(model)
    linear = [fl.linearize(model, point) for _ in range(3)][-1]
    (session,) = model.used_alone
    session = weakref.ref(session)
    del model, point
    gc.collect()
    assert session() is None
    assert linear.point.states


def test_an_fmu_that_rejects_states_near_the_point_is_linearized_again_and_again(zoo: Callable[[str], Path]) -> None:
    """It discards x > 10: batches of differences look further than the steps at one point."""
    with fl.load(zoo("discards")) as model:
        point = fl.operating_point(model, {"x": 9.5})
        first, *others = [fl.linearize(model, point) for _ in range(4)]
        for linear in others:
            np.testing.assert_allclose(linear.A, first.A, rtol=1e-9)


def test_warnings_are_those_of_each_point(tmp_path: Path) -> None:
    """The table has data up to 2, and the first point lies inside of them."""
    with fmu_with_table(tmp_path) as model:
        said = []
        for x in (1.0, 1.1, 2.5, 3.0, 1.5):
            linear = fl.linearize(model, fl.operating_point(model, {"x": x}))
            said.append("extrapolated" in [remark.kind for remark in linear.warnings])
        assert said == [False, False, True, True, False]
        swept = fl.sweep(model, {"x": [0.5, 1.0, 1.5, 2.5, 3.0]})
        assert [any(r.kind == "extrapolated" for r in swept[k].warnings) for k in range(5)] == [False] * 3 + [True] * 2


def test_matrices_follow_the_point() -> None:
    with open_springs(20) as model:
        start = fl.operating_point(model)
        for force in (0.0, 0.5, 1.0, 3.0):
            linear = fl.linearize(model, replace(start, inputs=np.array([force])))
            np.testing.assert_allclose(linear.A, exact_A(20), rtol=0, atol=1e-12)
            assert linear.f0[10] == pytest.approx(linear.f0[10] + force - linear.u0[0])


def test_a_matrix_near_a_regular_one_is_regular_and_a_singular_one_never_passes() -> None:
    random = np.random.default_rng(7)
    for _ in range(200):
        count = int(random.integers(1, 8))
        both = random.standard_normal((count, count + 1)) * 10.0 ** random.uniform(-3, 3, (count, 1))
        scales = 10.0 ** random.uniform(-2, 2, count + 1)
        columns = list(range(count))
        if not is_regular((both * scales)[:, columns]):
            continue
        regular = RegularColumns(both, scales, columns)
        assert judge(regular, both, scales)
        near = both * (1 + 1e-3 * random.standard_normal(both.shape))
        if judge(regular, near, scales):
            assert (
                np.linalg.matrix_rank((near * scales)[:, columns] / np.abs(near * scales).max(axis=1)[:, None]) == count
            )
        singular = both.copy()
        singular[-1, columns] = singular[0, columns] if count > 1 else 0.0
        assert not judge(regular, singular, scales)


def judge(regular: RegularColumns, both: FloatArray, scales: FloatArray) -> bool:
    entries = np.abs(both) * scales
    return regular.are_regular(both, entries, np.zeros(len(both)), scales, entries.max(axis=1))
