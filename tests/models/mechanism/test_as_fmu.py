"""Mechanisms as compiled FMUs: the same numbers as the recursions themselves, at rest and in motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Evaluation, Model, OperatingPoint, systems
from fmilin.codegen.compiler import Compiler
from fmilin.fmi.write import build_fmu
from fmilin.models.mechanism import (
    Body,
    Force,
    Joint,
    JointForce,
    Mechanism,
    MechanismDescription,
    PointSpring,
    Sensor,
    Wheel,
)
from tests.exact import products_of
from tests.models.mechanism.builders import Floats
from tests.systems.linkages import four_bar_mechanism

QUICK = Compiler(flags=("-O0",))
"""The code is evaluated a few hundred times: compiling it well would take longer."""

SYSTEMS = ("four_bar_mechanism", "slider_crank", "loader", "double_wishbone", "stewart_platform", "rolling")

Pair = tuple[Mechanism, Model]


def rolling() -> Mechanism:
    """Return a wheel on a tyre that carries a weight on a ball joint, a spring and a damper, forces and sensors."""
    bodies = [
        Body("slider", None),
        Body("wheel", 2.0, inertia=(0.3, 0.5, 0.3)),
        Body("weight", 1.0, (0.1, 0.05, -0.3), (0.02, 0.03, 0.04)),
    ]
    joints = [
        Joint("planar", "planar", "ground", "slider", position=(0.1, 0.2, 0.3)),
        Joint("lift", "prismatic", "slider", "hub", axis=(0, 0, 1), position=0.5 * np.cos(0.3) + 0.1),
        Joint("hub", "universal", "hub", "wheel", axis=(1, 0, 0), second_axis=(0, 1, 0), position=(0.3, 0.4)),
        Joint("ball", "spherical", "wheel", "weight", position=(0.8, 0.36, 0.48, 0)),
    ]
    sensors = [
        *Sensor.three("ahead", "accelerometer", "weight", (0.1, 0.2, 0.3)),
        Sensor("turning", "gyroscope", "weight", axis=(0, 0, 1)),
        Sensor("pointer", "direction", "wheel", axis=(0, 1, 0), pointer=(0.6, 0.8, 0)),
        Sensor("rate", "distance_rate", "spring"),
        Sensor("load", "reaction", "tyre"),
        Sensor("energy", "energy"),
    ]
    return Mechanism(
        MechanismDescription(
            "rolling",
            [*bodies, Body("hub", None)],
            joints,
            wheels=[Wheel("tyre", "wheel", radius=0.5, tube=0.1)],
            springs=[PointSpring("spring", "ground", "weight", (1, 0, 1), (0, 0, -0.2), 30.0, 0.4, 2.0)],
            inputs=[JointForce("drive", "hub", 1), Force("push", "weight", direction=(0, 1, 0), frame="body")],
            sensors=sensors,
            gravity=(0, 0, -9.81),
        )
    )


def native(name: str) -> Mechanism:
    own = {"rolling": rolling, "four_bar_mechanism": four_bar_mechanism}
    model = own[name]() if name in own else getattr(systems, name)()
    assert isinstance(model, Mechanism)
    return model


@pytest.fixture(scope="module", params=SYSTEMS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A mechanism, and the FMU that was made from it."""
    model = native(request.param)
    path = build_fmu(model, tmp_path_factory.mktemp("fmu") / "mechanism.fmu", compiler=QUICK)
    return model, fl.load(path)


def moving_points(model: Mechanism) -> list[OperatingPoint]:
    """Return the start at rest, and in motion on the manifold with inputs that are not zero."""
    random = np.random.default_rng(5)
    n_q, start = model.system.tree.n_q, model.start
    G = model.state(start.states, start.inputs).G[model.independence.all]
    v = random.normal(size=model.system.tree.n)
    moving = np.concatenate((start.states[:n_q], v - np.linalg.pinv(G) @ (G @ v)))
    return [start, OperatingPoint(0.0, moving, random.normal(size=len(model.inputs)))]


def in_order(model: Model, values: Floats, names: tuple[str, ...]) -> Floats:
    return values[[model.outputs.positions[name] for name in names]]


def visited(model: Model, at: OperatingPoint) -> Evaluation:
    return model.evaluate(at.time, at.states, at.inputs)


def rounding(model: Mechanism, at: OperatingPoint) -> Evaluation:
    """Return what rounding may change of each number, were every state and input off by a few units in its last place.

    |J| |x| is the size of the terms that a number is summed from: forces of springs that hold a weight, say.
    """
    n, k = len(model.states), len(model.inputs)
    slopes = products_of(model, at.time, at.states, at.inputs, np.eye(n, n + k), np.eye(k, n + k, n))
    assert slopes is not None
    few = 64 * np.finfo(float).eps
    terms = np.maximum(np.abs(np.concatenate((at.states, at.inputs))), 1.0)  # lengths and angles that the model adds
    sizes = (np.abs(part) @ terms for part in (slopes.derivatives, slopes.outputs, slopes.residuals))
    return Evaluation(*(few * np.maximum(size, 1.0) for size in sizes))


def test_the_fmu_evaluates_as_the_mechanism_does(pair: Pair) -> None:
    model, fmu = pair
    assert fmu.states.names == model.states.names
    assert fmu.inputs.names == model.inputs.names
    for point in moving_points(model):
        expected, found, allowed = visited(model, point), visited(fmu, point), rounding(model, point)
        assert (np.abs(found.derivatives - expected.derivatives) <= allowed.derivatives).all()
        outputs = in_order(fmu, found.outputs, model.outputs.names)
        assert (np.abs(outputs - expected.outputs) <= allowed.outputs).all()
        assert (np.abs(found.residuals - expected.residuals) <= allowed.residuals).all()


def test_the_fmu_evaluates_beside_the_manifold_as_the_mechanism_does(pair: Pair) -> None:
    model, fmu = pair
    x = model.start.states + np.random.default_rng(6).uniform(-0.05, 0.05, len(model.states))
    beside = OperatingPoint(0.0, x, model.start.inputs)
    expected, found = visited(model, beside), visited(fmu, beside)
    assert np.abs(expected.residuals).max(initial=0.0) > 1e-4 or not len(expected.residuals)
    allowed = rounding(model, beside)
    assert (np.abs(found.residuals - expected.residuals) <= allowed.residuals).all()
    assert (np.abs(found.derivatives - expected.derivatives) <= allowed.derivatives).all()


def test_directional_derivatives_of_the_fmu_are_exact(pair: Pair) -> None:
    model, fmu = pair
    for point in moving_points(model):
        N, nu = len(model.states), len(model.inputs)
        ds = np.random.default_rng(7).normal(size=(N + nu, 3))
        at = (point.time, point.states, point.inputs)
        expected, found = products_of(model, *at, ds[:N], ds[N:]), products_of(fmu, *at, ds[:N], ds[N:])
        assert found is not None
        size = np.abs(expected.derivatives).max()
        assert np.abs(found.derivatives - expected.derivatives).max() < 1e-11 * size
        outputs = np.array([found.outputs[fmu.outputs.positions[name]] for name in model.outputs.names])
        assert np.abs(outputs.reshape(expected.outputs.shape) - expected.outputs).max(initial=0) < 1e-11 * max(
            size, np.abs(expected.outputs).max(initial=0)
        )
        assert np.abs(found.residuals - expected.residuals).max(initial=0) < 1e-11 * size


def test_the_linear_model_through_the_fmu_is_the_exact_one(pair: Pair) -> None:
    model, fmu = pair
    for point in moving_points(model):
        expected = fl.linearize(model, point)
        found = fl.linearize(fmu, point, independent=expected.states.names)
        assert found.states.names == expected.states.names
        rows = [found.outputs.positions[name] for name in expected.outputs.names]
        pairs = (
            (expected.A, found.A),
            (expected.B, found.B),
            (expected.C, found.C[rows]),
            (expected.D, found.D[rows]),
        )
        for one, other in pairs:
            assert np.abs(one - other).max(initial=0) < 1e-9 * max(1.0, np.abs(one).max(initial=0))


def test_without_derivatives_it_evaluates_the_same(tmp_path: Path) -> None:
    model = systems.slider_crank()
    full = build_fmu(model, tmp_path / "full.fmu", compiler=QUICK)
    bare = build_fmu(model, tmp_path / "bare.fmu", directional_derivatives=False, compiler=QUICK)
    assert bare.stat().st_size < full.stat().st_size
    found = visited(fl.load(bare), model.start).derivatives
    assert np.abs(found - visited(model, model.start).derivatives).max() < 1e-12
