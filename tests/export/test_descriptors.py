"""Descriptor systems of linear models: the same eigenvalues, the same transfer function, the same in every file."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import linalg
from scipy.io import loadmat

import fmilin as fl
from fmilin import LinearModel, Model, ModelError, UsageError
from fmilin.linear_model.descriptor import Descriptor
from fmilin.reduction import discretize
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, flexible_double_pendulum, four_bar, rolling_disk
from tests.file_contents import without_checksum
from tests.hand_made import pendulum

MATRICES = ("E", "A", "B", "C", "D", "f0")


def described(linear: LinearModel) -> Descriptor:
    found = linear.descriptor
    assert found is not None
    return found


def response(E: FloatArray, system: Any, w: float) -> Any:
    return system.C @ np.linalg.solve(1j * w * E - system.A, system.B.astype(complex)) + system.D


def moving_four_bar() -> tuple[Model, dict[str, Any]]:
    model = four_bar(damping=0.5)
    return model, {"point": fl.operating_point(model, {"phi": 2.0, "w": 0.7})}


CASES: dict[str, tuple[Model, dict[str, Any]]] = {
    "linkage": (four_bar(), {}),
    "three damped loops": (four_bar(3, damping=1.0), {"outputs": ["phi", "lambda[1]", "der(w)"]}),
    "linkage in motion": moving_four_bar(),
    "accelerations as outputs": (cartesian_pendulum(), {}),
    "swinging": (cartesian_pendulum(angle=0.4, rate=1.0), {}),
    "flexible": (flexible_double_pendulum(1), {}),
    "flexible, swinging": (flexible_double_pendulum(1, angle=0.5, rate=2.0), {}),
    "flexible, swinging, tangent": (flexible_double_pendulum(1, angle=0.5, rate=2.0), {"coordinates": "tangent"}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_same_system_as_the_reduced_one(case: str) -> None:
    model, options = CASES[case]
    linear = fl.linearize(model, **options, descriptor=True)
    found = described(linear)
    assert found.difference < 1e-10
    assert found.order == len(linear.A)
    by_qz = linalg.eigvals(found.A, found.E)
    fast = np.max(np.abs(linear.eigenvalues()))
    for s in linear.eigenvalues():
        assert np.min(np.abs(by_qz - s)) < 1e-9 * fast
    np.testing.assert_allclose(np.sort(found.eigenvalues().imag), np.sort(linear.eigenvalues().imag), atol=1e-9 * fast)
    for w in (0.3, 2.0, 11.0):
        reduced = response(np.eye(len(linear.A)), linear, w)
        np.testing.assert_allclose(response(found.E, found, w), reduced, atol=1e-9 * np.max(np.abs(reduced)))


def test_multipliers_are_algebraic_states() -> None:
    found = described(fl.linearize(four_bar(), descriptor=True))
    assert found.states == (*four_bar().states.names, "lambda[1]", "lambda[2]", "lambda[3]", "lambda[4]")
    n, m = 5, 4
    assert found.A.shape == (2 * n + m, 2 * n + m)
    assert not found.E[:, 2 * n :].any()
    assert not found.E[2 * n :].any()
    np.testing.assert_array_equal(found.E[:n, :n], np.eye(n))
    np.testing.assert_array_equal(found.A[n : 2 * n, 2 * n :], found.A[2 * n :, :n].T)


def test_the_constant_term_keeps_the_motion() -> None:
    model = cartesian_pendulum(angle=0.4, rate=1.0)
    found, at = described(fl.linearize(model, descriptor=True)), model.start
    rates = model.evaluate(0.0, at.states, at.inputs).derivatives
    np.testing.assert_allclose(found.E[:, :4] @ rates, found.f0, atol=1e-14)


def test_a_wrong_model_is_noticed() -> None:
    linear = fl.linearize(four_bar())
    wrong = replace(linear, A=linear.A + np.array([[0.0, 0.0], [1e-6, 0.0]]))
    assert fl.descriptor(four_bar(), linear).difference < 1e-14
    assert fl.descriptor(four_bar(), wrong).difference > 1e-9


@pytest.mark.parametrize("case", [case for case in CASES if "tangent" not in case])
def test_asked_for_afterwards_it_is_the_same(case: str) -> None:
    model, options = CASES[case]
    linear = fl.linearize(model, **options, descriptor=True)
    assert same(fl.descriptor(model, replace(linear, descriptor=None)), described(linear))


def test_at_a_point_it_has_all_inputs_and_outputs_and_nothing_to_compare_with() -> None:
    model = four_bar()
    found = fl.descriptor(model)
    assert (found.inputs, found.outputs) == (model.inputs.names, model.outputs.names)
    assert np.isnan(found.difference)
    np.testing.assert_array_equal(found.A, fl.descriptor(model, fl.operating_point(model)).A)


def test_of_tangent_coordinates_in_motion_only_the_linearization_knows_enough() -> None:
    model, options = CASES["flexible, swinging, tangent"]
    with pytest.raises(
        UsageError,
        match="There is no descriptor system for these coordinates: in motion",
    ):
        fl.descriptor(model, fl.linearize(model, **options))


def test_chosen_inputs_and_outputs() -> None:
    linear = fl.linearize(
        flexible_double_pendulum(1), inputs=["torque2"], outputs=["tip.y", "link1.w[2]"], descriptor=True
    )
    found = described(linear)
    assert (found.inputs, found.outputs) == (("torque2",), ("tip.y", "link1.w[2]"))
    assert (found.B.shape, found.C.shape) == ((46, 1), (2, 46))


def test_own_coordinates_that_curve_have_one_at_rest_only() -> None:
    """Along y = atan2(x, -y) the second derivative of the map is zero where nothing moves."""
    own = ["angle = atan2(x, -y)", "rate = (vy*x - vx*y)/(x^2 + y^2)"]
    for rate, given in ((0.0, True), (1.5, False)):
        linear = fl.linearize(cartesian_pendulum(rate=rate), independent=own, descriptor=True)
        assert (linear.descriptor is not None) is given


def test_who_has_none(tmp_path: Path) -> None:
    assert fl.linearize(rolling_disk(), descriptor=True).descriptor is None
    assert pendulum().descriptor is None
    assert fl.linearize(four_bar()).descriptor is None  # nobody asked
    assert discretize(fl.linearize(four_bar(), descriptor=True), 0.1).descriptor is None
    with pytest.raises(UsageError, match="has no accessible mass matrix"):
        fl.descriptor(rolling_disk(), rolling_disk().start)
    pendulum().save(tmp_path / "plant.mat")
    assert LinearModel.load(tmp_path / "plant.mat").descriptor is None


def test_coordinates_that_mix_positions_and_velocities_in_motion() -> None:
    model = cartesian_pendulum(angle=0.4, rate=1.0)
    with pytest.raises(UsageError, match="be positions followed by their velocities"):
        fl.descriptor(model, fl.linearize(model, independent=["x", "vy"]))


# ---------------------------------------------------------------------- files


def same(a: Descriptor, b: Descriptor) -> bool:
    names = ("states", "inputs", "outputs", "order", "difference")
    matrices = all(getattr(a, n).tobytes() == getattr(b, n).tobytes() for n in MATRICES)
    return matrices and all(getattr(a, n) == getattr(b, n) for n in names)


@pytest.mark.parametrize("suffix", [".mat", ".npz", ".json"])
@pytest.mark.parametrize("case", ["accelerations as outputs", "swinging", "flexible"])
def test_it_travels_with_its_model(case: str, suffix: str, tmp_path: Path) -> None:
    model, options = CASES[case]
    linear = fl.linearize(model, **options, descriptor=True)
    linear.save(tmp_path / f"plant{suffix}")
    again = LinearModel.load(tmp_path / f"plant{suffix}")
    assert same(described(linear), described(again))
    again.save(tmp_path / f"again{suffix}")
    assert same(described(linear), described(LinearModel.load(tmp_path / f"again{suffix}")))


@pytest.mark.parametrize("suffix", [".mat", ".npz"])
def test_a_file_of_its_own(suffix: str, tmp_path: Path) -> None:
    found = described(fl.linearize(four_bar(), descriptor=True))
    found.save(tmp_path / f"plant{suffix}")
    assert same(found, Descriptor.load(tmp_path / f"plant{suffix}"))


def test_saving_asks_no_model(tmp_path: Path) -> None:
    linear = fl.linearize(four_bar())
    linear.save(tmp_path / "plant.json")
    assert '"descriptor"' not in (tmp_path / "plant.json").read_text()


def test_no_inputs_and_no_outputs_keep_their_shapes(tmp_path: Path) -> None:
    linear = fl.linearize(four_bar(), inputs=[], outputs=[], descriptor=True)
    for name in ("plant.mat", "plant.npz", "plant.json"):
        linear.save(tmp_path / name)
        again = described(LinearModel.load(tmp_path / name))
        assert (again.B.shape, again.C.shape, again.D.shape) == ((14, 0), (0, 14), (0, 0))


def test_other_programs_see_the_matrices_under_their_names(tmp_path: Path) -> None:
    linear = fl.linearize(four_bar(), descriptor=True)
    linear.save(tmp_path / "plant.mat")
    described(linear).save(tmp_path / "alone.mat")
    inside, alone = loadmat(tmp_path / "plant.mat")["descriptor"][0, 0], loadmat(tmp_path / "alone.mat")
    for name in MATRICES[:5]:
        np.testing.assert_array_equal(inside[name], getattr(described(linear), name))
        np.testing.assert_array_equal(alone[name], inside[name])
    assert [str(s[0][0]) for s in alone["states"]] == list(described(linear).states)


def test_it_travels_to_other_processes_without_the_model() -> None:
    linear = fl.linearize(four_bar(), descriptor=True)
    again: LinearModel = pickle.loads(pickle.dumps(linear))
    np.testing.assert_array_equal(described(again).A, described(linear).A)


@pytest.mark.parametrize("name", ["plant.json", "plant"])
def test_other_suffixes_hold_none_alone(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"as a descriptor system: .* Known are \.mat .*, \.npz"):
        described(fl.linearize(four_bar(), descriptor=True)).save(tmp_path / name)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        Descriptor.load(tmp_path / "none.mat")
    for name in ("plant.mat", "plant.npz"):
        (tmp_path / name).write_bytes(b"something else")
        with pytest.raises(ModelError, match="not a descriptor system that fmilin reads"):
            Descriptor.load(tmp_path / name)


def test_a_damaged_part_of_a_document_is_refused(tmp_path: Path) -> None:
    linear = fl.linearize(four_bar(), descriptor=True)
    linear.save(tmp_path / "plant.json")
    text = without_checksum((tmp_path / "plant.json").read_bytes(), ".json").decode("ascii")
    (tmp_path / "plant.json").write_text(text.replace('"lambda[4]"', '"lambda[4]", "lambda[5]"'))
    with pytest.raises(ModelError, match="E of the descriptor system has the shape"):
        LinearModel.load(tmp_path / "plant.json")


def test_nan_is_no_number_for_a_file(tmp_path: Path) -> None:
    found = described(fl.linearize(four_bar(), descriptor=True))
    with pytest.raises(UsageError, match="The matrix E of the descriptor system contains NaN"):
        replace(found, E=found.E * np.nan).save(tmp_path / "plant.mat")


@pytest.mark.parametrize("formulation", ["mcs", "rcs"])
def test_linear_models_of_a_formulation_have_one_too(formulation: str) -> None:
    model, options = moving_four_bar()
    linear = fl.linearize(model, **options, formulation=formulation, outputs=["w", "lambda[2]"], descriptor=True)
    assert described(linear).outputs == ("w", "lambda[2]")
    assert described(linear).difference < 1e-12


def test_a_penalized_system_is_no_constrained_one() -> None:
    assert fl.linearize(four_bar(), formulation="rcs", descriptor=True).descriptor is not None
    assert fl.linearize(four_bar(), formulation="ucs", descriptor=True).descriptor is None
