"""Searches from many guesses run together, and each ends where it ends alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sin

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import FmilinError, NumericalError
from fmilin.model.capabilities import differentiate_points, read_products
from fmilin.model.interface import Evaluation, Model
from fmilin.models import OdeModel
from fmilin.models.batch_graph import batch_graph
from fmilin.signals import FloatArray
from fmilin.systems import four_bar, furuta_pendulum, rolling_disk
from fmilin.trimming.search_algorithm import search, search_each
from fmilin.trimming.trim_report import TrimmedPoint
from fmilin.trimming.trim_request import TrimRequest
from tests.by_hand import FunctionModel, Parts
from tests.systems.turns import steady_yaw_rates
from tests.textbook.sources import SOURCES

Guess = Mapping[str, float]
Outcome = TrimmedPoint | FmilinError
Case = Callable[[], tuple[Model, TrimRequest, list[Guess]]]


def make_textbook_pendulum(source: str) -> Case:
    def make() -> tuple[Model, TrimRequest, list[Guess]]:
        model = SOURCES[source]("pendulum_hanging").model
        angles = np.random.default_rng(7).uniform(-3.0, 3.0, 3)
        return model, TrimRequest(), [{model.states.names[0]: angle} for angle in angles.tolist()]

    return make


def make_tanks() -> tuple[Model, TrimRequest, list[Guess]]:
    """Levels are roots: most guesses lead the first step out of the domain, and one begins outside of it."""
    model = SOURCES["OdeModel"]("two_tanks").model
    first, second = model.states.names
    levels = np.random.default_rng(3).uniform(0.05, 2.0, (5, 2)).tolist()
    guesses = [{first: low + rise, second: low} for low, rise in levels]
    return model, TrimRequest(), [*guesses, {first: -1.0, second: 1.0}]


def make_linkage() -> tuple[Model, TrimRequest, list[Guess]]:
    angles = np.random.default_rng(1).uniform(1.0, 2.8, 4).tolist()
    return four_bar(), TrimRequest(), [{"phi": angle} for angle in angles]


def make_held_linkage() -> tuple[Model, TrimRequest, list[Guess]]:
    request = TrimRequest({"phi": 1.9}, (), ("torque", "k"), {"k": (1.0, 90.0)}, near={"torque": 0.0})
    return four_bar(), request, [{"k": 40.0}, {"k": 5.0}]


def make_bounded_force() -> tuple[Model, TrimRequest, list[Guess]]:
    model = OdeModel("wells", {"x": "v", "v": "x - x^3 - v + u"}, inputs=["u"])
    request = TrimRequest({}, (), ("u",), {"u": (-0.1, 0.2), "x": (-3.0, 3.0)})
    return model, request, [{"x": x, "u": u} for x, u in ((-1.5, 0.1), (0.1, 0.0), (1.4, -0.1), (2.0, 0.2))]


def make_arm() -> tuple[Model, TrimRequest, list[Guess]]:
    return furuta_pendulum(), TrimRequest(), [{"pendulum.q": q} for q in (0.3, -1.2, 2.0, 2.9)]


def make_disk() -> tuple[Model, TrimRequest, list[Guess]]:
    """Steady turns, of which the changes of rates are among the rows."""
    lean, speed = 0.2, 2.0
    yaw_rate = steady_yaw_rates(speed, lean)[0]
    spin = sin(lean) * yaw_rate - speed
    places = dict.fromkeys(("q1", "q3", "q4", "q5"), 0.0)
    request = TrimRequest({"q2": lean, "u2": spin, **places}, tuple(places))
    guesses: list[Guess] = [{"u3": part * yaw_rate, "u4": -spin} for part in (0.9, 1.0, 1.1)]
    return rolling_disk(speed=speed), request, guesses


CASES: dict[str, Case] = {
    **{
        source: make_textbook_pendulum(source)
        for source in ("OdeModel", "LagrangeModel", "KaneModel", "DaeModel", "FunctionModel", "FMU 2 ME", "TOML")
    },
    "tanks": make_tanks,
    "linkage": make_linkage,
    "held linkage": make_held_linkage,
    "bounded force": make_bounded_force,
    "arm": make_arm,
    "disk": make_disk,
}


def search_alone(model: Model, request: TrimRequest, guess: Guess) -> Outcome:
    try:
        return search(model, request, guess, explain=False)
    except FmilinError as error:
        return error


def require_same(outcome: Outcome, alone: Outcome) -> None:
    """Compare two outcomes of one guess: points within the bounds of their certificates.

    Those bound the distance from the nearest member of a family, along which a search may end anywhere.
    """
    assert type(outcome) is type(alone)
    if not (isinstance(outcome, TrimmedPoint) and isinstance(alone, TrimmedPoint)):
        return
    assert len(outcome.report.free_directions) == len(alone.report.free_directions)
    assert outcome.report.stable is alone.report.stable
    if outcome.report.free_directions:
        assert outcome.same_place(alone)
        return
    names = outcome.report.states.names
    bounds = [point.report.certificate.distance for point in (outcome, alone)]
    tolerance = [sum(bound.get(name, 0.0) for bound in bounds) + 1e-14 for name in names]
    assert (np.abs(outcome.states - alone.states) <= tolerance).all()


@pytest.mark.parametrize("name", CASES)
def test_each_of_many_guesses_leads_where_it_leads_alone_in_any_order(name: str) -> None:
    model, request, guesses = CASES[name]()
    together = search_each(model, request, guesses, explain=False)
    assert any(isinstance(outcome, TrimmedPoint) for outcome in together)
    for guess, outcome in zip(guesses, together, strict=True):
        require_same(outcome, search_alone(model, request, guess))
    order = np.random.default_rng(5).permutation(len(guesses)).tolist()
    permuted = search_each(model, request, [guesses[k] for k in order], explain=False)
    for k, outcome in zip(order, permuted, strict=True):
        require_same(outcome, together[k])


@pytest.mark.parametrize("name", CASES)
def test_one_guess_of_trim_each_is_trim(name: str) -> None:
    model, request, guesses = CASES[name]()
    fixed, steady, free, bounds = request.fixed, request.steady, request.free, request.bounds
    (each,) = fl.trim_each(model, guesses[:1], fixed=fixed, steady=steady, free=free, bounds=bounds)
    alone = fl.trim(model, guess=guesses[0], fixed=fixed, steady=steady, free=free, bounds=bounds)
    assert np.array_equal(each.states, alone.states)
    assert np.array_equal(each.inputs, alone.inputs)
    # Rounding of the distance changes where compiled code takes over between both calls.
    assert each.report.certificate.distance == pytest.approx(alone.report.certificate.distance, rel=1e-6)


def test_a_guess_outside_of_the_domain_has_its_own_error_and_disturbs_no_other() -> None:
    model, request, guesses = make_tanks()
    *others, outside = search_each(model, request, guesses, explain=False)
    assert isinstance(outside, NumericalError)
    assert "not defined where the search starts" in str(outside)
    assert all(isinstance(outcome, TrimmedPoint) for outcome in others)


class VectorizedWells(FunctionModel):
    """x'' = x - x^3 - x' at many points at once; counts the calls."""

    batches = True

    def __init__(self) -> None:
        super().__init__(Parts(["x", "v"], [0.5, 0.0], lambda _t, x, _u: np.array([x[1], x[0] - x[0] ** 3 - x[1]])))
        self.calls = 0

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        self.calls += 1
        return super().evaluate(t, x, u)

    def evaluate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
        self.calls += 1
        rates = np.stack((x[:, 1], x[:, 0] - x[:, 0] ** 3 - x[:, 1]), axis=1)
        return Evaluation(rates, np.empty((len(x), 0)), np.empty((len(x), 0)))


def count_calls_of_newton(guesses: list[Guess], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often the model is called inside of Newton's method; what is certified is certified for each alone."""
    from fmilin.numerics.newton import find_zeros
    from fmilin.trimming import damped_newton

    model = VectorizedWells()
    calls = 0

    def count(*arguments: object) -> object:
        nonlocal calls
        before = model.calls
        result = find_zeros(*arguments)  # type: ignore[arg-type]
        calls += model.calls - before
        return result

    monkeypatch.setattr(damped_newton, "find_zeros", count)
    assert len(fl.trim_each(model, guesses)) >= 1
    monkeypatch.undo()
    return calls


def test_many_searches_call_the_model_about_as_often_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    guesses: list[Guess] = [{"x": x} for x in np.linspace(0.7, 1.6, 20).tolist()]
    slowest = max(count_calls_of_newton([guess], monkeypatch) for guess in guesses)
    assert count_calls_of_newton(guesses, monkeypatch) <= 2 * slowest


def test_compiled_code_differentiates_many_points_beside_the_manifold_as_one_after_the_other() -> None:
    model = four_bar()
    graph = batch_graph(model, ())
    assert graph is not None
    x = model.start.states + 0.1 * np.random.default_rng(2).standard_normal((5, len(model.states)))
    u = np.tile(model.start.inputs, (5, 1)) + 0.3
    assert differentiate_points(model, np.zeros(5), x, u) is None
    assert graph.stacks.compile()
    together = differentiate_points(model, np.zeros(5), x, u)
    assert together is not None
    n, k = x.shape[1], u.shape[1]
    for row in range(5):
        alone = read_products(model, 0.0, x[row], u[row], np.eye(n, n + k), np.eye(k, n + k, n))
        assert alone is not None
        for name in ("derivatives", "outputs", "residuals"):
            expected = getattr(alone, name)
            np.testing.assert_allclose(
                getattr(together, name)[row], expected, rtol=1e-10, atol=1e-10 * (1 + np.abs(expected).max(initial=0))
            )
    angles = np.linspace(1.0, 2.6, 6).tolist()
    for guess, outcome in zip(
        angles, search_each(model, TrimRequest(), [{"phi": angle} for angle in angles]), strict=True
    ):
        require_same(outcome, search_alone(four_bar(), TrimRequest(), {"phi": guess}))
