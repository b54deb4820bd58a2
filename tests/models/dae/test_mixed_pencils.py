"""DAEs of index 0 to 5 with mixed rows and variables are right: order, index, eigenvalues, transfer function."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fmilin as fl
from fmilin.codegen.graph_rounding import matrix_without_rounding
from fmilin.formulations.descriptor_system import compare_with_descriptor, explain_lost_invariants
from fmilin.models import DaeModel
from tests.models.dae.mixed_pencils import MixedPencil, mixed_pencil

S = 0.7 + 1.1j
SMALL = (16, 34, 58, 94, 11, 35, 47, 65)  # of index 4 and 5, with few variables: large ones take seconds
SEEDS = (*(seed for seed in range(24) if seed % 6 < 4), *SMALL)


def linearize(pencil: MixedPencil) -> tuple[DaeModel, fl.LinearModel]:
    outputs = {f"y{j}": f"x{j + 1}" for j in range(len(pencil.E))}
    states, algebraic = pencil.states, pencil.algebraic
    model = DaeModel("mixed", pencil.equations, inputs=["u"], outputs=outputs, states=states, algebraic=algebraic)
    return model, fl.linearize(model)


@pytest.mark.parametrize("seed", SEEDS)
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

    monkeypatch.setattr("fmilin.models.dae.dae_model.matrix_without_rounding", wrong)
    with pytest.raises(fl.NumericalError, match=r"The order is \d, but the pencil s E - A .* has \d finite"):
        fl.linearize(model)


@pytest.mark.parametrize("seed", [63, 79, 87, 232, 257])
def test_the_index_is_that_of_the_pencil_where_the_count_of_differentiations_differs(seed: int) -> None:
    pencil = mixed_pencil(seed)
    model, lin = linearize(pencil)
    assert model.index == pencil.index == seed % 6
    assert len(lin.A) == len(pencil.A)


def test_where_sums_that_should_cancel_do_not_a_coefficient_is_named() -> None:
    """Equations that differentiation gave are kept in exact arithmetic; a sum that is rounding has decided if not."""
    pencil = mixed_pencil(207)
    model, _ = linearize(pencil)
    lost = fl.ConstraintError("not kept", residuals={model.engine.reduced.invariants[0].name: 0.5})
    explained = explain_lost_invariants(lost, model)
    assert explained is not None
    assert "Rounding determines the order of 'mixed'" in str(explained)
    assert re.search(r"relative coefficient in its equation is \S+, that of '.*x\d.*' in", str(explained))


def test_rates_that_are_rounding_are_no_sign_of_lost_constraints() -> None:
    """Without inputs nothing moves here: rates beside the start are 1e-20, and 0 at the start."""
    _, lin = linearize(mixed_pencil(207))
    assert np.abs(lin.A).max() < 1e-14


def test_an_unknown_that_cancelled_does_not_depend_on_what_its_equation_defines() -> None:
    """An alias makes two derivatives vanish from an equation, which then defines the third one."""
    pencil = mixed_pencil(282)
    model, lin = linearize(pencil)
    assert model.index == 0
    spectrum = np.sort_complex(np.linalg.eigvals(pencil.A))
    assert np.sort_complex(lin.eigenvalues()) == pytest.approx(spectrum, abs=1e-12)
