"""Files of earlier versions are read as they were, and files that are written today have all of their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.io import loadmat

import fmilin as fl
from fmilin.linear_model.descriptor import Descriptor
from tests.hand_made import differences

FOLDER = Path(__file__).parent / "earlier"
QUANTITIES = ("A", "B", "C", "D", "T", "f0", "y0", "x0", "u0", "out0", "time", "parameters", "accuracy", "error_A")
FILES = sorted(path.name for path in FOLDER.iterdir())


def load(path: Path) -> Any:
    """Return the result in a file, by the stem of its name."""
    kinds: dict[str, Any] = {"descriptor": Descriptor, "pendulums": fl.LinearFamily, "van_der_pol": fl.PeriodicModel}
    return kinds.get(path.stem, fl.LinearModel).load(path)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".mat"])
def test_a_pendulum_with_a_derivative_by_its_length(suffix: str) -> None:
    """It hangs: y'' = -(g/L) y + u with L = 1, so that dA/dL = g in the lower left entry."""
    linear = load(FOLDER / f"pendulum{suffix}")
    np.testing.assert_allclose(linear.A, [[0.0, 1.0], [-9.81, 0.0]], atol=1e-12)
    np.testing.assert_allclose(linear.derivatives["L"].A, [[0.0, 0.0], [9.81, 0.0]], atol=1e-9)
    assert linear.states.names == ("x", "vx")
    assert [state.nominal for state in linear.full_states] == [1.0, 1.0, None, None]
    assert linear.outputs[0].turn == 2 * np.pi


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_a_dae_with_its_descriptor_system_is_the_same_in_each_container(suffix: str) -> None:
    linear, of_json = load(FOLDER / f"ring{suffix}"), load(FOLDER / "ring.json")
    assert differences(linear, of_json) == []
    assert linear.outputs.names == ("xé",)
    alone = load(FOLDER / f"descriptor{suffix}")
    for name in "EABCD":
        np.testing.assert_array_equal(getattr(linear.descriptor, name), getattr(of_json.descriptor, name))
        np.testing.assert_array_equal(getattr(linear.descriptor, name), getattr(alone, name))
    assert alone.states == of_json.descriptor.states


@pytest.mark.parametrize("suffix", [".json", ".npz", ".mat", ".nc"])
def test_a_family_with_a_failed_point_and_derivatives(suffix: str) -> None:
    family = load(FOLDER / f"pendulums{suffix}")
    assert family.ok.tolist() == [True, True, False]
    assert "cannot be satisfied" in family.reasons[2]
    of_json = load(FOLDER / "pendulums.json")
    for name in family.layout.shapes:
        np.testing.assert_array_equal(family.array(name), of_json.array(name), err_msg=name)
    assert family.template == of_json.template
    assert family.choices == of_json.choices
    assert dict(family.remarks) == dict(of_json.remarks)
    np.testing.assert_array_equal(family.derivatives["L"].A, of_json.derivatives["L"].A)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".mat", ".nc"])
def test_a_periodic_model(suffix: str) -> None:
    """By Liouville's formula the multipliers have the product exp of the integral of the trace of A."""
    periodic = load(FOLDER / f"van_der_pol{suffix}")
    floquet = periodic.floquet()
    assert periodic.states.names == ("x", "v")
    assert periodic.period == pytest.approx(6.6632868593, rel=1e-9)  # of mu = 1 (Jordan and Smith)
    assert max(abs(floquet.multipliers)) == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_array_equal(periodic.A, load(FOLDER / "van_der_pol.json").A)
    trace = np.trace(periodic.A, axis1=1, axis2=2).mean() * periodic.period
    assert np.prod(floquet.multipliers).real == pytest.approx(np.exp(trace), rel=1e-3)


def names_in(path: Path) -> set[str]:
    """Return the names in a file, those of groups with dots."""
    if path.suffix == ".json":
        return names_of(json.loads(path.read_text("utf-8")))
    if path.suffix == ".npz":
        arrays = dict(np.load(path))
        return set(arrays) | (names_of(json.loads(str(arrays["fmilin"])), "fmilin.") if "fmilin" in arrays else set())
    if path.suffix == ".mat":
        return names_of({k: v for k, v in loadmat(path, simplify_cells=True).items() if not k.startswith("__")})
    with h5py.File(path) as file:
        return set(file)


def names_of(value: Any, prefix: str = "") -> set[str]:
    if not isinstance(value, dict):
        return set()
    return {f"{prefix}{name}" for name in value}.union(*(names_of(v, f"{prefix}{k}.") for k, v in value.items()))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_written_again_has_the_same_names_and_contents(name: str, tmp_path: Path) -> None:
    result = load(FOLDER / name)
    result.save(tmp_path / name)
    assert names_in(FOLDER / name) <= names_in(tmp_path / name)
    again = load(tmp_path / name)
    if isinstance(result, fl.LinearModel):
        assert differences(result, again) == []
    elif isinstance(result, fl.LinearFamily):
        for quantity in QUANTITIES:
            np.testing.assert_array_equal(result.array(quantity), again.array(quantity), err_msg=quantity)
    else:
        np.testing.assert_array_equal(result.A, again.A)
