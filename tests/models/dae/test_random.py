"""DAEs that hide a known small system; 300 of them are in ``python -m benchmarks modelica``."""

from __future__ import annotations

import pytest

import fmilin as fl
from benchmarks.dae_models import MIXINGS, random_dae
from fmilin.models import DaeModel


@pytest.mark.parametrize("seed", range(3 * len(MIXINGS)))
def test_a_hidden_system_is_found(seed: int) -> None:
    dae = random_dae(seed)
    model = DaeModel.from_graph(dae.graph)
    assert model.index == dae.index
    assert dae.error(fl.linearize(model)) < 1e-9
