"""Whether files can hold a linear model is checked without computing anything from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import UsageError
from tests.hand_made import pendulum


@pytest.fixture
def no_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing eigenvalues by LAPACK, through numpy or scipy, is an error."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("eigenvalues are computed")

    for name in ("eig", "eigvals", "eigh", "eigvalsh"):
        monkeypatch.setattr(f"numpy.linalg.{name}", fail)
        monkeypatch.setattr(f"scipy.linalg.{name}", fail)
    for module in ("fmilin.export.linear_record", "fmilin.numerics.eigenvalue_errors"):
        monkeypatch.setattr(f"{module}.estimate_eigenvalues", fail)
    monkeypatch.setattr(fl.LinearModel, "eigenvalues", fail)


@pytest.mark.usefixtures("no_eigenvalues")
def test_the_check_computes_no_eigenvalues() -> None:
    fl.export.require_writable(pendulum())
    with pytest.raises(UsageError, match="The matrix B contains NaN or infinite entries"):
        fl.export.require_writable(replace(pendulum(), B=np.array([[np.nan], [1.0]])))


@pytest.mark.parametrize("suffix", [".mat", ".npz", ".json", ".fmu", ".m", ".c", ".mo", ".tex", ".txt"])
@pytest.mark.usefixtures("no_eigenvalues")
def test_a_model_with_nan_is_rejected_before_anything_is_computed(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="The matrix A contains NaN or infinite entries"):
        replace(pendulum(), A=np.array([[0.0, 1.0], [np.inf, 0.0]])).save(tmp_path / f"plant{suffix}")
    assert list(tmp_path.iterdir()) == []
