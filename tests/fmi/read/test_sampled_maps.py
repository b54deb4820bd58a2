"""FMUs with discrete states as sampled models: against the same difference equations as a native model."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.read.sample_map import find_period
from fmilin.models import DiscreteModel, OdeModel
from fmilin.models.map_model import MapModel
from tests.fmus.make import build
from tests.fmus.sampled.make import build_map

AUTO = ["auto"]
WAYS = {  # of FMUs, and of the interface through which they are opened
    "time events": ((), 2, True, "me"),
    "time events that begin later": (("SHIFT=0.03",), 2, True, "me"),
    "time events after a whole sample": (("SHIFT=0.1",), 2, False, "me"),
    "states as start values": (("STRICT", "SHIFT=0.1"), 2, True, "me"),
    "communication steps": ((), 2, True, "cs"),
    "steps from start values": (("STRICT",), 2, False, "cs"),
    "a clock": ((), 3, True, "me"),
    "a clock in co-simulation": ((), 3, False, "cs"),
}


def native() -> DiscreteModel:
    return DiscreteModel(
        "map",
        {"a": "a/2 + sin(b)/4 + u", "b": "k*b + a^2/8"},
        sample_time=0.1,
        inputs=["u"],
        parameters={"k": 0.75},
        outputs={"y": "a*b + u", "sum": "a + b"},
        start={"a": 0.5, "b": 0.25},
    )


@pytest.mark.parametrize("way", WAYS)
def test_the_map_of_an_fmu_is_that_of_its_equations(way: str, tmp_path: Path) -> None:
    defines, version, can_save, interface = WAYS[way]
    path = build_map(tmp_path, version=version, defines=defines, can_save=can_save)
    declared = version == 3 and interface == "me"  # which states there are
    with fl.load(path, interface=interface, discrete_states=None if declared else AUTO) as model:
        np.testing.assert_allclose(model.start.states, [0.5, 0.25])
        point, reference = (fl.trim(each, fixed={"u": 0.2}) for each in (model, native()))
        lin, expected = fl.linearize(model, point), fl.linearize(native(), reference)
    np.testing.assert_allclose(point.states, reference.states, rtol=1e-12)
    assert (lin.sample_time, lin.states.names, lin.outputs.names) == (0.1, ("a", "b"), ("y", "sum"))
    assert point.report.stable is True
    assert not lin.warnings
    for letter in "ABCD":
        np.testing.assert_allclose(getattr(lin, letter), getattr(expected, letter), atol=1e-11, err_msg=letter)


def test_such_a_model_is_used_like_other_sampled_models(tmp_path: Path) -> None:
    plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    rates, wires = {"k": [0.5, 0.8]}, [("plant.y", "law.u"), ("law.sum", "plant.u")]
    found = []
    with fl.load(build_map(tmp_path), discrete_states=["a", "b"]) as fmu:
        assert isinstance(fmu, MapModel)
        for model in (fmu, native()):
            trackers = [
                fl.design.estimator(
                    model,
                    outputs=["y"],
                    kind=kind,
                    process_noise={"u": 0.01},
                    measurement_noise={"y": 0.01},
                    sample_time=0.1,
                    initial_covariance={"a": 0.1, "b": 0.1},
                )
                for kind in ("ukf", "ekf")  # the second by differences of the FMU's map, and exact ones
            ]
            system = fl.connect({"plant": plant, "law": model}, wires)
            found.append(
                (
                    fl.sweep(model, rates, trim=fl.TrimRequest(fixed={"u": 0.2})).A,
                    fl.linearize(model.iterate(2)).A,
                    fl.simulate(model, stop_time=0.5).states,
                    [tracker.step([0.1], [0.2]) for tracker in trackers for _ in range(3)],
                    fl.linearize(system).A,
                )
            )
        copy = pickle.loads(pickle.dumps(fmu))
        np.testing.assert_array_equal(copy.next_states(copy.start), fmu.next_states(fmu.start))
        copy.close()
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-10)


def test_an_extended_filter_is_stopped_where_a_step_has_a_kink() -> None:
    model = DiscreteModel.from_function(
        "clipped", {"x": 1.0}, lambda t, x, u: np.minimum(x, 1.0), sample_time=0.1, inputs=["u"]
    )
    tracker = fl.design.estimator(
        model,
        outputs=["x"],
        kind="ekf",
        process_noise={"u": 0.01},
        measurement_noise={"x": 0.01},
        initial_covariance={"x": 0.1},
        sample_time=0.1,
    )
    with pytest.raises(fl.UsageError, match="ahead and behind, do not agree, as at a saturation"):
        tracker.step([0.0], [1.0])


def test_an_exported_regulator_comes_back_as_a_sampled_model(tmp_path: Path) -> None:
    law = DiscreteModel("law", {"i": "i + e/5"}, sample_time=0.2, inputs=["e"], outputs={"u": "3*i + 2*e"})
    lin = fl.linearize(law)
    lin.save(tmp_path / "law.fmu")
    with fl.load(tmp_path / "law.fmu", discrete_states=AUTO) as model:
        again = fl.linearize(model)
    assert again.sample_time == 0.2
    for letter in "ABCD":
        np.testing.assert_allclose(getattr(again, letter), getattr(lin, letter), atol=1e-11, err_msg=letter)


def test_hidden_states_and_wrong_names_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(fl.ModelError, match="do not determine the next sample"):
        fl.load(build_map(tmp_path, defines=("HIDDEN",)), discrete_states=AUTO)
    path = build_map(tmp_path)
    with pytest.raises(fl.ModelError, match="Other discrete-time numbers: 'b'"):
        fl.load(path, discrete_states=["a"])
    with pytest.raises(fl.UnknownNameError, match="'c' is not a local number"):
        fl.load(path, discrete_states=["a", "c"])
    with pytest.raises(fl.ModelError, match="another sample time"):
        fl.load(path, discrete_states=AUTO, sample_interval=0.05)
    with pytest.raises(fl.UsageError, match="continuous states"):
        fl.load(build("pendulum", tmp_path), discrete_states=AUTO)
    with pytest.raises(fl.UsageError, match="are for FMUs"):
        fl.load("robot.urdf", sample_interval=0.1)


@pytest.mark.parametrize(
    ("gaps", "period"),
    [([0.1] * 5, 0.1), ([0.2, 0.1, 0.1, 0.2] * 5, 0.6), ([0.1, 0.2, 0.4, 0.8], None), ([0.5], 0.5)],
)
def test_the_sample_time_is_after_what_the_events_repeat(gaps: list[float], period: float | None) -> None:
    assert find_period(np.array(gaps)) == period
