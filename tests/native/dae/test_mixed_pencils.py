"""DAEs of index 0 to 5 with mixed rows and variables are right: order, index, eigenvalues, transfer function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fmilin as fl
from fmilin.native import DaeModel
from fmilin.native.formulations.descriptor_check import compare_with_descriptor
from fmilin.numerics.codegen.rounding import matrix_without_rounding
from tests.native.dae.mixed_pencils import MixedPencil, mixed_pencil

S = 0.7 + 1.1j


def linearize(pencil: MixedPencil) -> tuple[DaeModel, fl.LinearModel]:
    outputs = {f"y{j}": f"x{j + 1}" for j in range(len(pencil.E))}
    states, algebraic = pencil.states, pencil.algebraic
    model = DaeModel("mixed", pencil.equations, inputs=["u"], outputs=outputs, states=states, algebraic=algebraic)
    return model, fl.linearize(model)


@pytest.mark.parametrize("seed", range(24))
def test_what_was_hidden_is_found(seed: int) -> None:
    pencil = mixed_pencil(seed)
    model, lin = linearize(pencil)
    assert len(lin.A) == len(pencil.A)
    assert model.index == pencil.index or (pencil.index == 1 and model.index == 0)  # explicit algebraic variables
    derivatives = np.array([S ** name.count("der(") for name in lin.inputs.names])
    reduced = lin.C @ np.linalg.solve(S * np.eye(len(lin.A)) - lin.A, lin.B) + lin.D
    truth = pencil.transfer(S)
    assert np.abs(reduced @ derivatives - truth).max() < 1e-6 * max(1.0, np.abs(truth).max())
    comparison = compare_with_descriptor(lin)
    assert comparison is not None
    assert comparison.agrees
    assert (comparison.pencil_order, comparison.pencil_index) == (len(pencil.A), pencil.index)


def test_a_wrong_order_is_seen_by_the_pencil(monkeypatch: pytest.MonkeyPatch) -> None:
    pencil = mixed_pencil(8)
    model, _ = linearize(pencil)

    def wrong(*arguments: Any) -> NDArray[np.float64]:
        slopes = matrix_without_rounding(*arguments)
        slopes[:, : len(pencil.states)] += np.eye(len(slopes), len(pencil.states))  # other equations than were reduced
        return slopes

    monkeypatch.setattr("fmilin.native.dae.model.matrix_without_rounding", wrong)
    with pytest.raises(fl.NumericalError, match=r"The order is \d, but the pencil s E - A .* has \d finite"):
        fl.linearize(model)


@pytest.mark.parametrize("seed", [63, 79, 87, 232, 257])
def test_the_index_is_that_of_the_pencil_where_the_count_of_differentiations_differs(seed: int) -> None:
    pencil = mixed_pencil(seed)
    model, lin = linearize(pencil)
    assert model.index == pencil.index == seed % 6
    assert len(lin.A) == len(pencil.A)


def test_where_sums_that_should_cancel_do_not_a_coefficient_is_named() -> None:
    """Products of decimals that are written out: what is left of them decides about a hidden constraint."""
    words = r"Rounding decides about 'mixed'.* coefficient, .* that of '.*x\d.*' in"
    with pytest.raises(fl.NumericalError, match=words):
        linearize(mixed_pencil(207))
