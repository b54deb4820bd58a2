"""Where a sweep begins its search, and which coordinates a stack of assembled points holds at zero."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.families.batch_solvers import find_pinned_states
from fmilin.families.branch_follower import BranchFollower
from fmilin.families.grid import Grid
from fmilin.families.open_models import OpenModels
from fmilin.families.sweep_plan import SweepPlan
from fmilin.linearization import reference
from fmilin.model import capabilities
from fmilin.models import OdeModel
from fmilin.systems import furuta_pendulum
from fmilin.trimming.trim_request import PointRequest

SPRING = OdeModel("spring", {"x": "v", "v": "u - k*x - x^3 - v"}, inputs=["u"], parameters={"k": 2.0}, start={"x": 0.5})


@pytest.mark.parametrize(
    ("start", "at", "pinned"),
    [((0.0, 0.0), (0.0, 0.0), [0, 1]), ((0.0, 0.0), (0.5, 0.0), [1]), ((0.5, 0.0), (0.0, 0.0), [1]),
     ((0.5, 0.3), (0.5, 0.3), [])],
)  # fmt: skip
def test_a_stack_holds_coordinates_that_are_zero_at_the_start_and_at_the_seed(
    start: tuple[float, float], at: tuple[float, float], pinned: list[int]
) -> None:
    """Without them the equations would be fewer than the coordinates, and the stack would not be solved at all."""
    model = OdeModel("m", {"x": "v", "v": "-x"}, start=dict(zip(("x", "v"), start, strict=True)))
    point = fl.operating_point(model, dict(zip(("x", "v"), at, strict=True)))
    seed: Any = SimpleNamespace(point=point)
    assert find_pinned_states(model, seed, [0, 1], []) == pinned
    assert find_pinned_states(model, seed, [0, 1], [0]) == [i for i in pinned if i != 0]


def make_follower(axis: str, value: float, **point: Any) -> BranchFollower:
    request = PointRequest(trim=fl.TrimRequest(), **point)
    plan = SweepPlan(SPRING, Grid({axis: np.array([value, value + 1.0])}), point=request)
    return BranchFollower(plan, OpenModels(plan))


def test_a_sweep_begins_where_the_model_starts() -> None:
    """At the model's own value of what varies; not where that is the first point, or a guess was given."""
    start = make_follower("k", 5.0)._find_start({"k": 5.0})
    assert start is not None
    assert start.values == {"k": 2.0}
    assert make_follower("k", 2.0)._find_start({"k": 2.0}) is None
    assert make_follower("k", 5.0, guess={"x": 0.1})._find_start({"k": 5.0}) is None
    assert make_follower("k", 5.0)._find_start({"k": 5.0, "unknown": 1.0}) is None
    driven = make_follower("u", 0.4)._find_start({"u": 0.4})
    assert driven is not None
    assert driven.values == {"u": 0.0}
    mixed = make_follower("u", 0.4, settings={"k": 3.0})._find_start({"u": 0.4, "k": 4.0})
    assert mixed is not None
    assert mixed.values == {"u": 0.0, "k": 3.0}


def test_a_model_that_does_not_differentiate_batches_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it does is the same at every point of a sweep: geometry of a mechanism is in no graph of equations."""
    answers: list[Any] = []

    def remember(*arguments: Any) -> Any:
        answers.append(capabilities.read_tangents(*arguments))
        return answers[-1]

    monkeypatch.setattr(reference, "read_tangents", remember)
    family = fl.sweep(furuta_pendulum(), {"pendulum.placement.y": np.linspace(0.1, 0.2, 12)}, trim=fl.TrimRequest())
    assert len(family.models) == 12
    assert answers == [None]
