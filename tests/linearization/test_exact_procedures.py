"""Models with a procedure of their own: it is taken, checked once, and where it cannot be trusted nobody notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import ExactSlopes
from fmilin.model.interface import Tangent
from fmilin.models import KaneEquations, KaneModel, Labels
from fmilin.signals import FloatArray
from fmilin.systems import rolling_disk
from tests.general_way import hide_procedure
from tests.systems.linkages import five_bar_mechanism, four_bar_mechanism
from tests.systems.skate_model import skate

MAKERS: dict[str, Callable[[], fl.Model]] = {
    "a skate": lambda: skate(2.0, yaw_rate=0.7, offset=0.3, slope=20),
    "a rolling disk": rolling_disk,
    "a four-bar": four_bar_mechanism,
    "a five-bar off equilibrium": five_bar_mechanism,
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("coordinates", ["partition", "tangent"])
def test_a_procedure_finds_what_products_find(name: str, coordinates: str) -> None:
    own = fl.linearize(MAKERS[name](), coordinates=coordinates)
    general = fl.linearize(hide_procedure(MAKERS[name]()), coordinates=coordinates)
    assert own.states.names == general.states.names
    assert own.method.derivatives == general.method.derivatives == "exact"
    assert [w.kind for w in own.warnings] == [w.kind for w in general.warnings]
    for letter in "ABCDT":
        found, expected = getattr(own, letter), getattr(general, letter)
        limit = 1e-13 * own.accuracy.conditioning * max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(found, expected, atol=limit, rtol=0, err_msg=letter)


@pytest.mark.parametrize("name", MAKERS)
def test_a_further_call_visits_the_point_alone_and_finds_the_same(name: str) -> None:
    model = MAKERS[name]()
    first, second = fl.linearize(model), fl.linearize(model)
    assert second.method.evaluations < first.method.evaluations
    for letter in "ABCDT":
        assert np.array_equal(getattr(first, letter), getattr(second, letter))
    assert [w.message for w in first.warnings] == [w.message for w in second.warnings]


def test_a_mechanism_is_visited_once_where_everything_is_known() -> None:
    model = four_bar_mechanism()
    fl.linearize(model)
    assert fl.linearize(model).method.evaluations == 3  # the point, and some bits beside it: rounding


class Lying(ExactSlopes):
    """One rate depends on the first coordinate by one percent more than in truth."""

    def __init__(self, source: ExactSlopes) -> None:
        self._source = source
        self.values, self.constraint_gradient = source.values, source.constraint_gradient

    def along(self, independent: Sequence[int]) -> Tangent:
        """Return slopes of which one is wrong."""
        found = self._source.along(independent)
        wrong = found.derivatives.copy()
        wrong[-1, 0] += 0.01 * max(1.0, np.abs(wrong[-1]).max())
        return replace(found, derivatives=wrong)


def test_a_procedure_that_is_wrong_is_found_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    true, model = four_bar_mechanism(), four_bar_mechanism()

    def lie(t: float, x: FloatArray, u: FloatArray) -> Lying:
        slopes = true.exact_slopes(t, x, u)
        assert slopes is not None
        return Lying(slopes)

    monkeypatch.setattr(model, "exact_slopes", lie)
    for _ in range(2):  # it is not believed the second time either
        lin = fl.linearize(model)
        assert "directional-derivative" in [w.kind for w in lin.warnings]
        np.testing.assert_allclose(lin.A, fl.linearize(true).A, atol=1e-6)


def sliding(start: float) -> KaneModel:
    equations = KaneEquations(
        q=["x", "y"], u=["v", "w"], f_0=["der(x)", "der(y)"], f_1=["-v", "-w"], f_c=["y - x"], f_v=["w - v"],
        f_2=["der(v) + der(w)"], f_3=["x + abs(v)"],
    )  # fmt: skip
    return KaneModel("sliding", equations, start={"v": start, "w": start}, labels=Labels(independent=("x", "v")))


def test_a_kink_is_found_in_a_further_call_too() -> None:
    model = sliding(1.0)
    at_rest = fl.OperatingPoint(0.0, np.zeros(4), np.empty(0))
    for moving in (1.0, -1.0):
        point = fl.OperatingPoint(0.0, np.array([0.0, 0.0, moving, moving]), np.empty(0))
        assert fl.linearize(model, point).A[1].tolist() == pytest.approx([-0.5, -0.5 * moving])
        with pytest.raises(fl.NumericalError, match="kink"):
            fl.linearize(model, at_rest)


def test_other_constraints_than_its_own_are_no_business_of_a_procedure() -> None:
    model = four_bar_mechanism()
    point = model.start
    assert model.exact_slopes(point.time, point.states, point.inputs) is not None
    free = model.with_constraints([])
    assert free.exact_slopes(point.time, point.states, point.inputs) is None
    assert len(fl.linearize(free, point).states) == len(model.states)


def test_a_point_of_another_model_is_refused() -> None:
    with pytest.raises(fl.UsageError, match="has 3 states and 0 inputs, but"):
        fl.linearize(four_bar_mechanism(), fl.OperatingPoint(0.0, np.zeros(3), np.empty(0)))


def test_a_start_that_was_changed_is_assembled_anew() -> None:
    model = four_bar_mechanism()
    first = fl.linearize(model)
    other = fl.operating_point(model, {model.states.names[0]: first.point.states[model.states.names[0]] + 0.3})
    model.start = other
    assert fl.linearize(model).point.states == pytest.approx(dict(zip(model.states.names, other.states, strict=True)))
