"""The kinds of diagnostics that a check declares are those that it gives, and its errors are the declared ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import systems
from fmilin.linearization.algorithm import compute, describe_choice, linearize_batch, linearize_point
from fmilin.linearization.checks import CHECKS
from fmilin.linearization.linearization_context import AssembledPoint, LinearizedBatch, LinearizedPoint
from fmilin.linearization.methods import compute_by_other_method
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.checks.check import Check, run_checks
from fmilin.manifold.point_arrays import batch_points
from fmilin.manifold.selection import Selection
from fmilin.models import FunctionModel
from fmilin.models.native_model import NativeModel
from fmilin.signals import FloatArray
from fmilin.systems import bicycle, cartesian_pendulum, four_bar
from tests.by_hand import FunctionModel as ModelByHand
from tests.by_hand import Parts, pendulum
from tests.hard_models import model as hard_model
from tests.linearization.test_along_a_path import circle
from tests.linearization.test_dead_zones import pushed
from tests.linearization.test_dependence import free_drives
from tests.linearization.test_singular import folded
from tests.manifold.test_invariants import energetic
from tests.manifold.test_one_branch import activation
from tests.manifold.test_position import nearly_parallel
from tests.models.kane.examples import pulled_pendulum
from tests.models.mechanism.test_holding import table
from tests.numerics.differences.test_kinks_events_and_groups import Stuck
from tests.textbook.models import MODELS
from tests.textbook.sources import SOURCES
from tests.textbook.table import INEXPRESSIBLE

NATIVE_SOURCES = ("OdeModel", "LagrangeModel", "KaneModel", "DaeModel", "FunctionModel", "TOML")
REFERENCE_SYSTEMS = [name for name in dir(systems) if name.islower() and name[0] != "_" and name != "four_bar_form"]
PARALLEL_START = {"x": 1.0, "y": 1.0, "z": 1.0}


def compute_point(
    model: fl.Model, point: fl.OperatingPoint | None = None, previous: Selection | None = None, **options: Any
) -> LinearizedPoint:
    """Return what is computed at a point, the start of the model by default, before any check."""
    request = Request(**options)
    choice = describe_choice(model, request, previous)
    return compute(model, model.start if point is None else point, request, choice)


def between_nearly_parallel_constraints() -> LinearizedPoint:
    model = nearly_parallel(1e-6, PARALLEL_START)
    return compute_point(model, fl.operating_point(model).with_states(np.array([1.0, 1.0, 1.001])))


def behind_a_switch_of_coordinates() -> LinearizedPoint:
    model, points = circle(np.array([0.0, np.pi / 2]))
    _, previous = linearize_point(model, points[0], Request())
    return compute_point(model, points[1], previous)


def nearly_horizontal() -> ModelByHand:
    """A pendulum just below the horizontal, where x determines little."""
    parts = pendulum(angle=np.pi / 2 - 1e-5, exact=True).parts

    def jacobians(t: float, s: FloatArray, _: FloatArray) -> tuple[FloatArray, FloatArray]:
        assert parts.jacobians is not None
        return parts.jacobians(t, s, np.zeros(1))[0][:4], np.zeros((4, 0))

    return ModelByHand(dataclasses.replace(parts, inputs=(), outputs=(), output=None, jacobians=jacobians))


def with_recommended_states() -> LinearizedPoint:
    model = nearly_horizontal()
    model.independent, model.independent_by_default = ("x", "vx"), True
    return compute_point(model)


def with_wrong_derivatives() -> FunctionModel:
    return FunctionModel("abs", {"x": 2.0}, lambda _t, s, _u: np.array([-abs(s[0]) * s[0].real]), analytic=True)


def with_a_switch_of_360() -> FunctionModel:
    outputs = {"y": lambda _t, x, u: 360.0 * (u[0] >= 0) + x[0]}
    return FunctionModel("switch", {"x": 0.0}, lambda _t, x, u: [u[0] - x[0]], inputs=["u"], outputs=outputs)


def with_memory() -> FunctionModel:
    calls = count()
    return FunctionModel("memory", {"x": 1.0}, lambda _t, s, _u: np.array([-s[0] + 1e-9 * next(calls)]))


def with_an_encoder() -> fl.Model:
    return hard_model("encoder", [0.4], lambda _t, x, _u: [-x[0]], 0, [lambda _t, x, _u: np.floor(x[0] * 1000) / 1000])


def with_a_note() -> fl.Model:
    model = cartesian_pendulum()
    assert isinstance(model, NativeModel)
    model.engine.notes = ["The rod has no mass."]
    return model


class Holding(ModelByHand):
    """x' = -x beside a valve that is shut until the next event."""

    def discrete_states(self) -> Mapping[str, str]:
        return {"valve": "shut"}


def rolling_bicycle() -> LinearizedPoint:
    model = bicycle()
    rolling = ["x", "y", "rear_wheel", "front_wheel", "rear_rate"]
    return compute_point(model, fl.trim(model, fixed={"rear_rate": -10.0}, steady=rolling))


def swinging_pendulum() -> LinearizedPoint:
    model = cartesian_pendulum()
    return compute_point(model, fl.operating_point(model, {"vx": 1.0}))


def with_prescribed_length() -> fl.Model:
    start = {"x": 0.6, "y": 0.8, "L": 1.0, "vx": 0.58, "vy": -0.06, "der(L)": 0.3, "der(der(L))": -0.2}
    inputs = ["L", "der(L)", "der(der(L))"]
    return pulled_pendulum("L", f_v=["x*vx + y*vy - L*`der(L)`"], inputs=inputs, start=start)


def on_a_foot(lift: float) -> LinearizedPoint:
    model = table().with_held(["a:flat"])
    return compute_point(model, fl.operating_point(model, {"lift": lift}))


def compute_otherwise(model: fl.Model, point: fl.OperatingPoint | None = None, **options: Any) -> AssembledPoint:
    """Return what another method than the general algorithm computes at a point, before any check."""
    at = compute_by_other_method(model, model.start if point is None else point, Request(**options))
    assert at is not None
    return at


def folded_linkage() -> AssembledPoint:
    model, point = folded()
    return compute_otherwise(model, point, at_singularity=True)


CASES: Mapping[tuple[str, str], Callable[[], AssembledPoint]] = {
    ("RankIsClear", "rank"): lambda: compute_point(nearly_parallel(3e-9, PARALLEL_START)),
    ("PointIsReachable", "position"): between_nearly_parallel_constraints,
    ("CoordinatesAreAsRequested", "conditioning"): with_recommended_states,
    ("CoordinatesAreAsRequested", "coordinates-switched"): behind_a_switch_of_coordinates,
    ("NothingIsConserved", "conserved-quantity"): lambda: compute_point(energetic()),
    ("DerivativesAgree", "directional-derivative"): lambda: compute_point(with_wrong_derivatives()),
    ("DerivativesAgree", "narrow"): lambda: compute_point(
        hard_model("friction", [0.0], lambda _t, x, _u: [-x[0] - np.tanh(x[0] / 1e-7)])
    ),
    ("DerivativesAgree", "kink-branch"): lambda: compute_point(activation(), one_sided="right"),
    ("ModelRepeatsItself", "memory"): lambda: compute_point(with_memory()),
    ("PointRests", "off-equilibrium"): swinging_pendulum,
    ("PointRests", "steady"): rolling_bicycle,
    ("PointRests", "periodic"): swinging_pendulum,
    ("MethodApplies", "singular"): folded_linkage,
    ("MethodApplies", "off-equilibrium"): lambda: compute_otherwise(
        four_bar(), fl.operating_point(four_bar(), {"w": 1.0}), formulation="mcs"
    ),
    ("MethodApplies", "penalty-approximation"): lambda: compute_otherwise(four_bar(), formulation="ucs"),
    ("InputsDoNotPrescribeMotion", "prescribed-motion"): lambda: compute_point(with_prescribed_length()),
    ("CoordinatesAreWellConditioned", "conditioning"): lambda: compute_point(
        nearly_horizontal(), independent=["x"], derivatives="exact"
    ),
    ("ModelHasNoNotes", "held"): lambda: compute_point(Holding(Parts(["x"], [1.0], lambda _t, s, _u: -s))),
    ("ModelHasNoNotes", "model"): lambda: compute_point(with_a_note()),
    ("ModelHasNoNotes", "standing"): lambda: on_a_foot(7.0),
    ("ModelHasNoNotes", "contact"): lambda: on_a_foot(30.0),
    ("NoEventIsNear", "held"): lambda: compute_point(
        Stuck(Parts(["x"], [1.0], lambda _t, s, _u: -(s**2))), hold_modes=True
    ),
    ("NoEventIsNear", "turn"): lambda: compute_point(with_a_switch_of_360()),
    ("EntriesAreAccurate", "accuracy"): lambda: compute_point(with_an_encoder(), keep_inaccurate=True),
    ("InputsReachOutputs", "no-response"): lambda: compute_point(pushed(0.0, 0.1)),
    ("StatesAreIndependent", "dependent-states"): lambda: compute_point(cartesian_pendulum().with_constraints([])),
    ("StatesAreIndependent", "conserved-quantity"): lambda: compute_point(free_drives()["Lagrange"]),
}
"""By check and kind: a point at which the check gives a diagnostic of that kind."""

NOT_PROVOKED = {("DescriptorSystemAgrees", "descriptor")}
"""No equations are known of which rounding changes the modes of one of the two systems and not their order."""


def name_of(check: Check[LinearizedPoint, LinearizedBatch]) -> str:
    return type(check).__name__


def require_declared_kinds(at: AssembledPoint) -> set[tuple[str, str]]:
    """Return each check with each kind that it gives at a point; assert that it declares the kind, or its error."""
    given: set[tuple[str, str]] = set()
    undeclared: list[tuple[str, object]] = []
    for check in CHECKS:
        results = run_checks(at, [check])
        undeclared += [(name_of(check), e) for e in results.errors.values() if type(e).__name__ not in check.error]
        remarks = results.list_remarks([check])
        given.update((name_of(check), remark.kind) for remark in remarks)
        undeclared += [(name_of(check), remark) for remark in remarks if remark.kind not in check.kinds]
    assert not undeclared
    return given


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_check_gives_the_kind_that_it_declares(name: str, kind: str) -> None:
    assert (name, kind) in require_declared_kinds(CASES[name, kind]())


def test_every_declared_kind_is_provoked() -> None:
    declared = {(name_of(check), kind) for check in CHECKS for kind in check.kinds}
    assert declared == set(CASES) | NOT_PROVOKED


@pytest.mark.parametrize("name", REFERENCE_SYSTEMS)
def test_of_a_reference_system_nothing_is_said_that_no_check_declares(name: str) -> None:
    """At its start, and at the points of a batch."""
    model: fl.Model = getattr(systems, name)()
    request = Request()
    at = compute_point(model)
    require_declared_kinds(at)
    linear, selection = linearize_point(model, model.start, request)
    reference = Reference(model, request, model.start, linear, selection, point_model=model)
    result = linearize_batch(reference, batch_points([model.start, model.start]))
    if result is None:
        return
    for check in CHECKS:
        described = check.describe_batch(result.computed, result.is_doubtful)
        if described is not None:
            assert {remark.kind for remark in described.write(1)} <= set(check.kinds)


@pytest.mark.parametrize("source", NATIVE_SOURCES)
def test_of_the_textbook_models_nothing_is_said_that_no_check_declares(source: str) -> None:
    for name in MODELS:
        if name not in INEXPRESSIBLE.get(source, {}):
            require_declared_kinds(compute_point(SOURCES[source](name).model))


@pytest.mark.parametrize("name", ["four_bar", "furuta_pendulum"])
@pytest.mark.parametrize("options", [{"formulation": "mcs"}, {"at_singularity": True}], ids=str)
def test_of_another_method_the_same_checks_say_nothing_that_they_do_not_declare(
    name: str, options: Mapping[str, Any]
) -> None:
    at = compute_otherwise(getattr(systems, name)(), **options)
    require_declared_kinds(at)
    assert [name_of(check) for check in CHECKS if check.has_meaning(at)]
