"""Which variables an FMU of a linear model has: names that are legal and taken once, values that are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

import fmilin as fl
from fmilin.fmi.write.linear_layout import LinearLayout, lay_out_linear
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import Signal, Signals
from fmilin.linear_model.model import LinearModel
from tests.fmi.write.linear_samples import drifting, written
from tests.hand_made import LONG, pendulum


def names(layout: LinearLayout) -> list[str]:
    return [v.name for v in layout.variables]


def shown(layout: LinearLayout) -> list[str]:
    return [layout.variables[r].name for r in layout.outputs]


def oscillator(outputs: list[str], C: list[list[float]], D: list[list[float]], inputs: str = "u") -> LinearModel:
    """States x and v, x'' = -4 x + u."""
    base = drifting(2, 0, 1, len(outputs))
    states = Signals([Signal("x", "m"), Signal("v", "m/s")])
    return replace(
        base,
        A=np.array([[0.0, 1.0], [-4.0, 0.0]]),
        B=np.array([[0.0], [1.0]]),
        C=np.array(C),
        D=np.array(D),
        T=np.eye(2),
        f0=np.zeros(2),
        y0=np.array([0.25, 0.0]),
        states=states,
        full_states=states,
        inputs=Signals([inputs]),
        outputs=Signals(outputs),
        point=replace(
            base.point, states={"x": 0.25, "v": 0.0}, inputs={inputs: 1.0}, outputs=dict.fromkeys(outputs, 0.25)
        ),
    )


def test_an_output_that_is_a_state_or_a_derivative_is_that_variable() -> None:
    linear = oscillator(["x", "der(v)"], [[1.0, 0.0], [-4.0, 0.0]], [[0.0], [1.0]])
    layout = lay_out_linear(linear, deviation=False)
    assert names(layout) == ["time", "x", "v", "der(x)", "der(v)", "u"]
    assert shown(layout) == ["x", "der(v)"]
    assert layout.n_outputs == 0
    assert layout.equations.C.shape == (0, 2)


def test_an_output_with_such_a_name_but_another_row_is_a_variable_of_its_own() -> None:
    linear = oscillator(["x", "der(v)", "u"], [[2.0, 0.0], [-4.0, 1e-9], [0.0, 0.0]], [[0.0], [1.0], [1.0]])
    layout = lay_out_linear(linear, deviation=False)
    assert names(layout) == ["time", "x", "v", "der(x)", "fmilin_der(v)", "u", "output.x", "der(v)", "output.u"]
    assert shown(layout) == ["output.x", "der(v)", "output.u"]


def test_an_output_that_stands_elsewhere_than_its_state_is_its_own() -> None:
    linear = oscillator(["x"], [[1.0, 0.0]], [[0.0]])
    linear = replace(linear, point=replace(linear.point, outputs={"x": 0.5}))
    assert shown(lay_out_linear(linear, deviation=False)) == ["output.x"]
    assert shown(lay_out_linear(linear, deviation=True)) == ["x"]


def test_an_input_may_have_the_name_of_a_derivative() -> None:
    linear = oscillator(["y"], [[1.0, 0.0]], [[0.0]], inputs="der(v)")
    assert names(lay_out_linear(linear, deviation=False)) == [
        "time",
        "x",
        "v",
        "der(x)",
        "fmilin_der(v)",
        "der(v)",
        "y",
    ]


def test_a_state_may_be_called_time() -> None:
    linear = oscillator(["y"], [[1.0, 0.0]], [[0.0]])
    linear = replace(linear, states=Signals(["time", "v"]))
    assert names(lay_out_linear(linear, deviation=False))[:3] == ["fmilin.time", "time", "v"]


def test_names_that_xml_cannot_have_become_legal_and_stay_different(tmp_path: Path, version: str) -> None:
    odd = ["a\nb", "a\tb", "", "\x01", "größe 🙂", LONG, 'quo"te<&>']
    linear = oscillator(odd, [[1.0, float(i)] for i in range(len(odd))], [[0.0]] * len(odd))
    path = written(linear, tmp_path, version)
    assert validate_fmu(str(path)) == []
    description = fmpy.read_model_description(str(path))
    actual = [u.variable.name for u in description.outputs]
    assert actual == ["a_b", "output.a_b", "unnamed", "_", "größe 🙂", LONG, 'quo"te<&>']
    with fl.load(path) as model:
        assert model.outputs.names == tuple(actual)


def test_a_description_keeps_what_xml_can_have(tmp_path: Path, version: str) -> None:
    linear = oscillator(["y"], [[1.0, 0.0]], [[0.0]])
    linear = replace(linear, outputs=Signals([Signal("y", description="one\x02 <two>")]))
    description = fmpy.read_model_description(str(written(linear, tmp_path, version)))
    assert next(v for v in description.modelVariables if v.name == "y").description == "one <two>"


def test_absolute_values_need_a_point_and_deviations_none() -> None:
    linear = drifting()
    bare = replace(linear, point=replace(linear.point, outputs={}))
    with pytest.raises(UsageError, match=r"the output 'out\[1\]' has no value there. Write deviations instead"):
        lay_out_linear(bare, deviation=False)
    layout = lay_out_linear(bare, deviation=True)
    for array in (layout.equations.x0, layout.equations.u0, layout.equations.g0, layout.equations.f0):
        assert not array.any()
    assert {v.start for v in layout.variables if v.start is not None} == {0.0}


@pytest.mark.parametrize("name", ["A", "D", "f0", "T_u"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(name: str, value: float) -> None:
    linear = drifting()
    array = getattr(linear, name).copy()
    array.flat[0] = value
    with pytest.raises(UsageError, match=f"The matrix {name} contains NaN or infinite entries"):
        lay_out_linear(replace(linear, **{name: array}), deviation=False)


def test_dependent_states_are_local_and_known_ones_are_not_repeated() -> None:
    layout = lay_out_linear(pendulum(), deviation=False)
    assert names(layout) == [
        "time", "pin.x", "pin.vx", "der(pin.x)", "fmilin_der(pin.vx)", "F", "der(pin.vx)", LONG, "pin.y", "pin.vy"
    ]  # fmt: skip
    y = layout.variables[-2]
    assert (y.causality, y.unit) == ("local", "m")
    assert layout.equations.g0[-2] == -1.0


def test_stability_is_said(tmp_path: Path, version: str) -> None:
    linear = drifting()
    assert "unstable" not in fmpy.read_model_description(str(written(linear, tmp_path, version))).description
    grown = replace(linear, A=-linear.A)
    assert fmpy.read_model_description(str(written(grown, tmp_path, version))).description.endswith("; unstable")
