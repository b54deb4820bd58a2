"""Rests outside of the data of a table are left out, or it is said that the table is extrapolated there."""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import pytest

import fmilin as fl
from fmilin.adapters import TableRange
from fmilin.fmi.write import build_fmu
from fmilin.models import DaeGraph, DaeModel

PARAMETERS = {"table.u_min": 0.0, "table.u_max": 2.0}


def fmu_with_table(path: Path, **parameters: float) -> fl.Model:
    """Return an FMU that rests at 1, 3 and 5; the names are those of Modelica's tables, with data up to 2."""
    named = PARAMETERS | {f"table.{name}": value for name, value in parameters.items()}
    model = fl.models.OdeModel(
        "tabulated",
        {"x": "-(x - 1)*(x - 3)*(x - 5)*(1 + 0*(`table.u_min` + `table.u_max`))"},
        parameters=named,
        outputs={"table.u": "x"},
        start={"x": 0.5},
    )
    build_fmu(model, path / "tabulated.fmu")
    return fl.load(path / "tabulated.fmu")


def kinds(point: fl.OperatingPoint) -> list[str]:
    assert isinstance(point, fl.TrimmedPoint)
    return [remark.kind for remark in point.report.remarks]


def test_rests_of_an_fmu_outside_of_a_table_are_left_out(tmp_path: Path) -> None:
    with fmu_with_table(tmp_path) as model:
        rests = fl.operating_points(model, starts=12)
        assert [float(p.states[0]) for p in rests] == [pytest.approx(1.0)]
        assert {round(float(p.states[0])) for p in rests.outside} <= {3, 5}
        assert rests.outside
        assert "left out" in repr(rests)
        far = fl.trim(model, guess={"x": 5.2})
        assert "extrapolated" in kinds(far)
        lin = fl.linearize(model, far)
        (said,) = (remark.message for remark in lin.warnings if remark.kind == "extrapolated")
        assert "'table.u' = 5 is outside of 0 to 2, the data of the table 'table'" in said


def test_a_periodic_table_has_no_ends(tmp_path: Path) -> None:
    with fmu_with_table(tmp_path, extrapolation=3.0) as model:
        assert "extrapolated" not in kinds(fl.trim(model, guess={"x": 5.2}))


def test_rests_of_a_graph_with_ranges_are_told_apart() -> None:
    x, dx = ca.SX.sym("x"), ca.SX.sym("der(x)")
    graph = DaeGraph(
        name="graph",
        residuals=dx + (x - 1) * (x - 3),
        x=x,
        dx=dx,
        states=fl.Signals([fl.Signal("x", start=0.5)]),
        ranges=[(TableRange("pump", "2 x", 0.0, 2.0), 2 * x)],
    )
    model = DaeModel.from_graph(graph)
    assert "extrapolated" not in kinds(fl.trim(model, guess={"x": 0.9}))  # at the very end
    assert "extrapolated" in kinds(fl.trim(model, guess={"x": 3.1}))
    rests = fl.operating_points(model, starts=4)
    assert [float(p.states[0]) for p in rests] == [pytest.approx(1.0)]
    assert [float(p.states[0]) for p in rests.outside] == [pytest.approx(3.0)]
