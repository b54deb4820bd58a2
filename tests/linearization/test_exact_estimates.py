"""Exact procedures amplify rounding where their coordinates pivot badly; their estimates say by how much."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint
from fmilin.models import Labels, OdeModel
from fmilin.models.batch_graph import StatePartition, batch_graph
from fmilin.models.mechanism import Mechanism
from fmilin.systems import double_wishbone

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_mechanism"


def test_kanes_estimate_of_the_spatial_linkage_covers_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against recursive Newton-Euler: off by 3e-12, a hundred times what its condition number of 17 would explain."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    kane: fl.Model = import_module("equations").spatial_by_kane()
    mechanism = Mechanism.from_urdf(EXAMPLE / "spatial.urdf")
    rest = fl.trim(mechanism)
    angles = {n: float(x) for n, x in zip(mechanism.states.names, rest.states, strict=True) if n.endswith(".q")}
    point = fl.operating_point(mechanism, {**angles, "a.v": 5.0})
    values = dict(zip(mechanism.states.names, point.states.tolist(), strict=True))
    same = {n.removesuffix(".q") if n.endswith(".q") else n.replace(".v", "_v"): x for n, x in values.items()}
    reference = fl.linearize(mechanism, point, independent=["a.q", "a.v"])
    found = fl.linearize(kane, fl.operating_point(kane, same), independent=["a", "a_v"])
    assert found.method.derivatives == "exact"
    error = np.abs(found.A - reference.A)
    assert (error <= 10 * (found.errors.A + reference.errors.A)).all()
    assert error.max() <= 1e-10 * np.abs(reference.A).max()


def test_an_estimate_at_rest_covers_what_springs_cancel_to() -> None:
    """Against the equations as a graph: the slopes that cancel belong to joints whose angles and speeds are zero."""
    wishbone = double_wishbone()
    linear, start = fl.linearize(wishbone), wishbone.start
    graph, kept = batch_graph(wishbone, ()), [wishbone.states.positions[name] for name in linear.states.names]
    assert graph is not None
    reference = StatePartition(graph, wishbone, kept, start).at(0.0, start.states[None], start.inputs[None]).tangents
    p = len(kept)
    assert (np.abs(linear.A - reference.derivatives[0, kept, :p]) <= linear.errors.A).all()
    assert (np.abs(linear.C - reference.outputs[0, :, :p]) <= linear.errors.C).all()
    assert linear.accuracy.A <= 1e-12


@pytest.mark.parametrize("way", ["point", "stack"])
def test_a_coordinate_of_a_small_nominal_value_does_not_enlarge_the_errors_of_all(way: str) -> None:
    """A spring of 5000 N/m between a mass and a support; its length is a coordinate, with a nominal value of 1e-4."""
    nominals = {"position": 1.0, "length": 1e-4, "speed": 1.0, "rate": 1.0}
    model = OdeModel(
        "spring",
        {"position": "speed", "length": "rate", "speed": "-5000*position", "rate": "-5000*position"},
        constraints=[Constraint.from_text("position - length", level="position")],
        labels=Labels(nominals=nominals),
    )
    points = [fl.operating_point(model, {"length": value}) for value in (0.0, 1e-3)]
    chosen = ["length", "speed"]
    if way == "stack":
        [linear, _] = fl.linearize_along(model, points, independent=chosen)
    else:
        linear = fl.linearize(model, points[0], independent=chosen)
    np.testing.assert_allclose(linear.A, [[0, 1], [-5000, 0]])
    assert linear.accuracy.A < 1e-13
