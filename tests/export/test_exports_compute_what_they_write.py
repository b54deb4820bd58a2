"""Exports compute only what they write: counted by functions that must not be called, not timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.formulations.descriptor_system import MAX_SVD_UNKNOWNS, compute_difference
from fmilin.models import DaeModel


def oscillator() -> fl.LinearModel:
    equations = {"x": "v", "v": "-x - 0.1*v + u"}
    return fl.linearize(fl.models.OdeModel("oscillator", equations, inputs=["u"], outputs={"y": "x"}))


class Calls:
    """Counts the calls of a function that it stands for."""

    def __init__(self, function: Any) -> None:
        self.function, self.count = function, 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.count += 1
        return self.function(*arguments, **options)


def count_spectra(monkeypatch: pytest.MonkeyPatch) -> list[Calls]:
    counted = [Calls(np.linalg.eigvals), Calls(np.linalg.eig)]
    monkeypatch.setattr(np.linalg, "eigvals", counted[0])
    monkeypatch.setattr(np.linalg, "eig", counted[1])
    return counted


@pytest.mark.parametrize(
    ("name", "spectra"),
    [("a.mo", 0), ("a.m", 0), ("dslin.mat", 0), ("a.tex", 2), ("a.json", 1), ("a.mat", 1), ("a.npz", 1)],
)
def test_files_without_eigenvalues_compute_none_and_the_others_compute_them_once(
    name: str, spectra: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modes take two: the eigenvalues block by block, and the eigenvectors of the whole matrix."""
    linear = oscillator()
    counted = count_spectra(monkeypatch)
    linear.save(tmp_path / name)
    assert sum(calls.count for calls in counted) <= spectra


def test_an_fmu_without_room_for_the_linear_model_computes_no_eigenvalues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fmilin.export import fmu_file
    from fmilin.fmi.write import linear_model_fmu

    linear = oscillator()
    monkeypatch.setattr(linear_model_fmu, "MAX_EIGENVALUES", 1)
    monkeypatch.setattr(fmu_file, "MAX_EMBEDDED_BYTES", 1)
    counted = count_spectra(monkeypatch)
    linear.save(tmp_path / "a.fmu")
    assert not any(calls.count for calls in counted)


def test_matrices_with_nan_are_still_refused(tmp_path: Path) -> None:
    linear = oscillator()
    linear.A[0, 0] = np.nan
    for name in ("a.mo", "a.m", "a.tex", "a.txt", "dslin.mat", "a.json"):
        with pytest.raises(fl.UsageError, match="NaN or infinite entries"):
            linear.save(tmp_path / name)


def chain(length: int) -> DaeModel:
    """A first-order lag through a chain of algebraic variables, which a descriptor system keeps all."""
    links = [f"z{k + 1} = 0.5*z{k} + 0.5*x" for k in range(length)]
    return DaeModel("chain", ["der(x) = u - z0", "z0 = x", *links], inputs=["u"], outputs={"y": f"z{length}"})


def test_a_large_descriptor_system_is_compared_without_a_dense_least_squares_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    linear = fl.linearize(chain(2 * MAX_SVD_UNKNOWNS), descriptor=True)
    assert linear.descriptor is not None
    dense = Calls(np.linalg.lstsq)
    monkeypatch.setattr(np.linalg, "lstsq", dense)
    assert compute_difference(linear, linear.descriptor) < 1e-13
    assert dense.count == 0
    linear.A[0, 0] = -1.5  # for -1: the comparison must see it
    assert compute_difference(linear, linear.descriptor) > 0.01
