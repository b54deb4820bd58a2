"""Linear models of arrays of points are those of single calls: together, by several threads, alone where in doubt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import UnknownNameError, UsageError
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, loader
from tests.families.plants import oscillator

K = np.array([1.0, 4.0, 9.0, 2.5])


def test_frequencies_of_an_oscillator_are_the_roots_of_its_stiffnesses() -> None:
    linearize = fl.batch(oscillator(), vary=["k"])
    assert linearize.computes_together
    family = linearize(np.zeros((4, 2)), parameters={"k": K})
    expected = -0.1 + 1j * np.sqrt(K - 0.01)
    rightmost = np.linalg.eigvals(family.A)
    np.testing.assert_allclose(rightmost[np.arange(4), rightmost.imag.argmax(axis=1)], expected, rtol=1e-12)
    np.testing.assert_array_equal(family.array("parameters")[:, 0], K)


def test_a_loader_in_a_thousand_postures_is_that_of_single_calls() -> None:
    model = loader()
    linearize = fl.batch(model, threads=3)
    name = linearize.coordinates.names[0]
    start = linearize.linear.point.states[name]
    family = linearize.at({name: start + np.linspace(-0.02, 0.02, 1000), "lift_force": np.linspace(-1.0, 1.0, 1000)})
    assert family.ok.all()
    independent = list(linearize.coordinates.names)
    for number in (0, 331, 999):
        values = {axis: float(column[number]) for axis, column in family.axes.items()}
        single = fl.linearize(model, fl.operating_point(model, values), independent=independent)
        together = family[number]
        for matrix in "ABCDT":
            np.testing.assert_allclose(
                getattr(together, matrix), getattr(single, matrix), rtol=1e-10, atol=1e-11 * abs(single.A).max()
            )
        assert [remark.kind for remark in together.warnings] == [remark.kind for remark in single.warnings]
    one_thread = fl.batch(model, threads=1)(family.x0, family.u0)
    np.testing.assert_array_equal(one_thread.ok, family.ok)
    for array in ("A", "B", "T", "f0"):
        expected = family.array(array)
        np.testing.assert_allclose(one_thread.array(array), expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


def test_a_point_off_the_manifold_has_a_reason_and_the_others_have_their_models() -> None:
    model = cartesian_pendulum(length=1.0, gravity=4.0)
    linearize = fl.batch(model)
    angles = np.array([0.0, 0.2, 0.4])
    states = _pendulum_states(model, angles)
    states[1, 0] += 0.1
    family = linearize(states)
    assert family.ok.tolist() == [True, False, True]
    with pytest.raises(fl.ConstraintError) as alone:
        fl.linearize(model, fl.OperatingPoint(0.0, states[1], model.start.inputs))
    assert str(alone.value)[:60] in family.reasons[1]
    assert np.isnan(family.A[1]).all()
    x = np.sin(angles[[0, 2]])  # x'' = -4 x sqrt(1 - x^2) where it is at rest
    np.testing.assert_allclose(np.linalg.det(family.A[[0, 2]]), 4.0 * (1 - 2 * x**2) / np.sqrt(1 - x**2), rtol=1e-12)


def test_what_is_said_of_an_assembled_point_is_said_of_its_linear_model() -> None:
    model = four_bar()
    linearize = fl.batch(model)
    assert repr(linearize) == "<BatchLinearizer of 'four_bar' in the coordinates phi, w>"
    family = linearize.at({"phi": [1.0, 40.0]})
    single = fl.linearize(model, fl.operating_point(model, {"phi": 40.0}), independent=["phi", "w"])
    assert any("degrees" in remark.message for remark in single.warnings)
    assert family[1].warnings == single.warnings
    assert family[0].warnings != family[1].warnings


def test_a_point_without_an_answer_leaves_the_others_of_its_block() -> None:
    model = OdeModel("root", {"x": "-sqrt(x)"}, start={"x": 1.0})
    x = np.linspace(1.0, 2.0, 64)
    x[40] = -1.0
    family = fl.batch(model)(x[:, None])
    assert np.flatnonzero(~family.ok).tolist() == [40]
    good = np.delete(x, 40)
    np.testing.assert_allclose(np.delete(family.A[:, 0, 0], 40), -0.5 / np.sqrt(good), rtol=1e-12)


def test_where_the_coordinate_is_singular_there_is_no_model() -> None:
    model = cartesian_pendulum(length=1.0, gravity=4.0)
    family = fl.batch(model, independent=["x", "vx"])(_pendulum_states(model, np.array([0.1, np.pi / 2])))
    assert family.ok.tolist() == [True, False]
    assert family.reasons[1]


def _pendulum_states(model: fl.Model, angles: FloatArray) -> FloatArray:
    """Return states (k, N) at rest, at angles from hanging."""
    states = np.zeros((len(angles), len(model.states)))
    states[:, model.states.positions["x"]] = np.sin(angles)
    states[:, model.states.positions["y"]] = -np.cos(angles)
    return states


def test_a_map_joins_what_its_function_says_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.families.batch.MAX_POINTS_IN_MEMORY", 3)
    linearize = fl.batch(oscillator(), vary=["d"], inputs=[], outputs=["position"])
    damping = np.linspace(-1.0, 1.0, 8)
    sizes: list[int] = []

    def find_growth(family: fl.LinearFamily) -> FloatArray:
        sizes.append(len(family))
        assert family.B.shape == (len(family), 2, 0)
        return np.asarray(np.linalg.eigvals(family.A).real.max(axis=1))

    np.testing.assert_allclose(
        linearize.map(find_growth, np.zeros((8, 2)), parameters={"d": damping}), -damping / 2, atol=1e-12
    )
    assert sizes == [3, 3, 2]
    with pytest.raises(UsageError, match="one row for each of the 3 points"):
        linearize.map(lambda family: family.A[:1], np.zeros((8, 2)))


def test_models_that_are_not_computed_together_are_computed_one_by_one() -> None:
    model = OdeModel("kink", {"x": "-x + abs(u)"}, inputs=["u"])
    at = fl.operating_point(model, {"u": 1.0})
    linearize = fl.batch(model, at)
    family = linearize(np.ones((3, 1)), np.array([[1.0], [-2.0], [0.0]]))
    np.testing.assert_array_equal(family.B[:2, 0, 0], [1.0, -1.0])
    assert family.ok.tolist() == [True, True, False]
    assert "kink" in family.reasons[2]


class ForeignArray:
    """An array of another library."""

    def __init__(self, values: FloatArray) -> None:
        self._values = values
        self.reads = 0

    def __dlpack__(self, **options: Any) -> Any:
        self.reads += 1
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


def test_arrays_of_other_libraries_are_read_without_a_copy() -> None:
    states = ForeignArray(np.zeros((4, 2)))
    stiffness = ForeignArray(K)
    family = fl.batch(oscillator(), vary=["k"])(states, parameters={"k": stiffness})  # type: ignore[arg-type,dict-item]
    np.testing.assert_array_equal(family.A[:, 1, 0], -K)
    assert (states.reads, stiffness.reads) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ([np.zeros((4, 3))], {}, r"shape was given for states: \(4, 3\), not \(points, 2\)"),
        ([np.zeros((4, 2)), np.zeros((3, 1))], {}, "4 rows of states and 3 rows of inputs"),
        ([[[np.nan, 0.0]]], {}, "1 of the numbers given for states are not finite"),
        ([[["fast", "slow"]]], {}, "cannot be read as an array"),
        ([np.zeros((4, 2))], {"parameters": {"k": [1.0, 2.0]}}, r"shape was given for 'k': \(2,\), not \(4,\)"),
        ([np.zeros((4, 2))], {"parameters": {"d": 1.0}}, "'d' is not one of the parameters"),
        ([np.zeros((0, 2))], {}, "at least one point"),
    ],
)
def test_wrong_points_are_rejected(arguments: list[Any], options: dict[str, Any], message: str) -> None:
    linearize = fl.batch(oscillator(), vary=["k"])
    with pytest.raises((UsageError, UnknownNameError), match=message):
        linearize(*arguments, **options)


def test_wrong_requests_are_rejected() -> None:
    with pytest.raises(UnknownNameError, match="'mass' is not a parameter"):
        fl.batch(oscillator(), vary=["mass"])
    with pytest.raises(UsageError, match="should be a list"):
        fl.batch(oscillator(), vary="k")
    with pytest.raises(UsageError, match="threads=0"):
        fl.batch(oscillator(), threads=0)
    with pytest.raises(UsageError, match="keep_totals= has no meaning in batch"):
        fl.batch(oscillator(), keep_totals=True)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"shape was given for 'F': \(2,\), not \(3,\)"):
        fl.batch(oscillator()).at({"q": [0.0, 1.0, 2.0], "F": [0.0, 1.0]})
    with pytest.raises(UsageError, match="'values' is"):
        fl.batch(oscillator()).at([1.0, 2.0])  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="'stiffness' is not a state"):
        fl.batch(oscillator()).at({"stiffness": [1.0]})
