"""The descriptor system of a DAE is there without being asked for, and is computed when one of its numbers is."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.formulations import descriptor_system as formulations
from fmilin.linear_model.descriptor import Descriptor, LazyDescriptor
from fmilin.models import DaeModel
from tests.models.dae.test_models import pendulum, platform


def same(one: Descriptor, other: Descriptor) -> bool:
    arrays = all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("E", "A", "B", "C", "D", "f0"))
    return arrays and (one.states, one.inputs, one.outputs) == (other.states, other.inputs, other.outputs)


def test_it_is_that_of_the_request_and_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = formulations.make_descriptor

    def counted(*arguments: Any, **options: Any) -> Descriptor:
        calls.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(formulations, "make_descriptor", counted)
    monkeypatch.setattr(formulations, "MAX_COMPARED_VARIABLES", 0)  # as of a large model
    lazy = fl.linearize(pendulum())
    changed = fl.LinearModel.with_prescribed_states(lazy)  # a copy computes nothing
    assert isinstance(changed.descriptor, LazyDescriptor)
    assert not calls
    assert lazy.descriptor is not None
    assert lazy.descriptor.A.shape == (6, 6)
    assert lazy.descriptor.difference < 1e-14
    assert lazy.descriptor.order == 2
    assert len(calls) == 1
    asked = fl.linearize(pendulum(), descriptor=True).descriptor
    assert asked is not None
    assert same(lazy.descriptor, asked)
    assert np.abs(lazy.descriptor.eigenvalues() - lazy.eigenvalues()).max() < 1e-9


def test_files_hold_it_where_it_was_asked_for_or_looked_at(tmp_path: Path) -> None:
    lin = fl.linearize(pendulum())
    for name in ("a.mat", "a.npz", "a.json"):
        lin.save(tmp_path / name)
        assert fl.LinearModel.load(tmp_path / name).descriptor is None
    assert lin.descriptor is not None
    assert len(lin.descriptor.E) == 6
    for name in ("a.mat", "a.npz", "a.json"):
        lin.save(tmp_path / name)
        loaded = fl.LinearModel.load(tmp_path / name).descriptor
        assert loaded is not None
        assert same(loaded, lin.descriptor)
    lin.descriptor.save(tmp_path / "d.mat")
    assert same(Descriptor.load(tmp_path / "d.mat"), lin.descriptor)


def test_it_is_pickled_without_the_model() -> None:
    lin = fl.linearize(pendulum())
    again = pickle.loads(pickle.dumps(lin))
    assert type(again.descriptor) is Descriptor
    assert lin.descriptor is not None
    assert same(again.descriptor, lin.descriptor)


def test_a_chosen_interface_is_that_of_the_descriptor_system() -> None:
    lin = fl.linearize(pendulum(), inputs=["F"], outputs=["T", "der(vy)"])
    assert lin.descriptor is not None
    assert lin.descriptor.outputs == ("T", "der(vy)")
    assert lin.descriptor.C.shape == (2, len(lin.descriptor.A))


def test_models_of_a_sweep_have_theirs_with_the_parameters_of_the_point() -> None:
    family = fl.sweep(pendulum(), {"m": [1.0, 4.0]})
    for k, mass in enumerate((1.0, 4.0)):
        system = family[k].descriptor
        assert system is not None
        assert abs(system.E[2, 2] - mass) < 1e-15
        assert np.abs(system.eigenvalues() - family[k].eigenvalues()).max() < 1e-9
    assert pickle.loads(pickle.dumps(family))[1].descriptor is None


def test_models_without_one_have_none() -> None:
    assert fl.linearize(platform(y=-2.0)).descriptor is None  # redundant equations
    assert fl.linearize(fl.models.OdeModel("m", {"x": "-x"})).descriptor is None


def test_it_is_there_in_motion_too() -> None:
    model = DaeModel("m", ["der(x) = -x*z + 1", "z = x + 0.1*z^3"], start={"x": 0.2, "z": 0.2})
    lin = fl.linearize(model)
    assert lin.descriptor is not None
    assert np.abs(lin.descriptor.eigenvalues() - lin.eigenvalues()).max() < 1e-12
