"""A meshed network with several hundred algebraic variables equals an independent computation."""

from __future__ import annotations

import fmilin as fl
from benchmarks.dae_networks import network
from fmilin.models import DaeModel
from fmilin.models.large_equations import SparseFunctions


def test_a_network_of_four_hundred_algebraic_variables_is_solved_sparse() -> None:
    net = network(20)
    model = DaeModel.from_graph(net.graph)
    assert isinstance(model.engine.select([], []).numeric, SparseFunctions)
    assert net.error(fl.linearize(model)) < 1e-12
