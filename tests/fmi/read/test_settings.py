from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmilin import Constraint
from fmilin.errors import UnknownNameError, UsageError
from fmilin.fmi.read import FmuModel
from fmilin.report.summary import summary_of_fmu
from tests.command_line import main
from tests.fmus.make import build, description_of

Opened = Callable[..., FmuModel]


def parameter_of(model: FmuModel, name: str) -> float:
    state = model.states.names[0]
    bound = model.with_constraints(
        [Constraint.from_text(f"{name} + {state} - {state}*1")]
    )  # a constraint needs a state
    return float(bound.evaluate(0.0, model.start.states, model.start.inputs).residuals[0])


def test_parameters_states_and_inputs_are_set_before_initialization(opened: Opened) -> None:
    model = opened("pendulum", parameters={"mass": 5, "pin.x": 0.25, "F": "1.5"})
    np.testing.assert_array_equal(model.start.states, [0.25, -1, 0, 0])
    np.testing.assert_array_equal(model.start.inputs, [1.5])
    assert model.states[0].start == 0.25
    assert parameter_of(model, "mass") == 5.0
    assert model.start.parameters == {"mass": 5.0}


def test_setting_by_alias(opened: Opened) -> None:
    assert opened("rate_is_state", parameters={"f": 2.0}).start.inputs[0] == 2.0


def test_calculated_parameters_follow(opened: Opened) -> None:
    assert parameter_of(opened("pendulum", parameters={"L": 4.0}), "double.L") == 8.0


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"x": [7, 8, 9]}, [7, 8, 9]), ({"x": "7 8,9"}, [7, 8, 9]), ({"x[2]": 5}, [1, 5, 3]),
     ({"position[3]": 5, "x[1]": 6}, [6, 2, 5])],
)  # fmt: skip
def test_arrays_as_a_whole_or_by_element(opened: Opened, given: dict[str, Any], expected: list[float]) -> None:
    np.testing.assert_array_equal(opened("arrays3", parameters=given).start.states, expected)


def test_info_lists_structural_parameters_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sizes of arrays are set before everything else, so a user must be able to read their names."""
    path = build("arrays3", tmp_path)
    summary = summary_of_fmu(path)
    assert summary.parameters.names[0] == "n"
    assert summary.parameters[0].start == 3.0
    assert summary.parameters[0].description.startswith("structural parameter")
    assert main(["info", str(path)]) == 0
    assert "structural parameter" in capsys.readouterr().out


def test_unknown_name(opened: Opened) -> None:
    with pytest.raises(
        UnknownNameError, match=r"'masss' is not a variable of the model. Did you mean 'mass'"
    ) as caught:
        opened("pendulum", parameters={"masss": 1.0})
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "pendulum",
            {"double.L": 1.0},
            r"'double.L' cannot be set: the model calculates it .*Set what it is calculated",
        ),
        ("pendulum", {"lambda": 1.0}, r"'lambda' cannot be set"),
        ("pendulum", {"time": 1.0}, r"'time' cannot be set"),
        ("pendulum", {"mass": "heavy"}, r"'mass' needs a value of type Real, not 'heavy'"),
        ("pendulum", {"count": 1.5}, r"'count' needs a value of type Integer, not 1.5"),
        ("arrays3", {"x": [1, 2]}, r"'x' is an array of 3 numbers, not 2"),
        ("arrays3", {"n": 4, "k[1]": 2}, r"'k' is an array of 4 numbers, of which only some are given"),
        ("arrays3", {"n": -1}, r"'n' is the size of arrays, which cannot be -1"),
        ("arrays3", {"n": 2.5}, r"'n' needs a value of type UInt64, not 2.5"),
        ("arrays3", {"tick": 1}, r"'tick' is a Clock, a type that fmilin cannot set"),
        ("switch_and_name", {"on": "maybe"}, r"'on' needs a value of type Boolean, not 'maybe'"),
    ],
)
def test_values_that_cannot_be_set(opened: Opened, name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        opened(name, parameters=given)


@pytest.mark.parametrize(("on", "expected"), [(True, 1.0), ("false", 0.0), (1, 1.0), (0.0, 0.0)])
def test_booleans_and_strings(opened: Opened, on: Any, expected: float) -> None:
    model = opened("switch_and_name", parameters={"on": on, "label": "left"})
    assert model.evaluate(0.0, model.start.states, model.start.inputs).outputs[0] == expected


def test_a_value_that_the_model_does_not_keep_is_noted(opened: Opened) -> None:
    model = opened("changes_its_mind", parameters={"x": 4.0})
    assert model.start.states[0] == 0.5
    assert "'x' was set to 4, but after initialization the model has 0.5." in model.notes


def test_a_report_on_start_values_tells_set_ones_from_declared_ones(opened: Opened) -> None:
    """The FMU starts at x = 0.5 whatever was set."""

    def report(**parameters: float) -> tuple[float | None, float, str]:
        value = opened("changes_its_mind", parameters=parameters).report_start()[0]
        return value.requested, value.reached, value.reason

    assert report(x=4.0) == (4.0, 0.5, "moved: set by the user, but initialization computed another value")
    assert report(x=0.5) == (0.5, 0.5, "kept: set by the user")
    assert report() == (1.0, 0.5, "moved: declared as exact, but initialization computed another value")


@pytest.mark.parametrize(
    ("declaration", "requested", "reason"),
    [
        ('initial="approx"><Real start="1"', 1.0, "moved: a first guess for another value"),
        ('initial="approx"><Real start="0.5"', 0.5, "kept: a first guess that solves the initial equations"),
        ('initial="exact"><Real start="0.5"', 0.5, "kept: exact"),
        ('initial="calculated"><Real', None, "follows: no start value is declared"),
    ],
)
def test_a_report_on_start_values_reads_their_declaration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], declaration: str, requested: float | None, reason: str
) -> None:
    xml, count = re.subn(
        r'(name="x"[^>]*?)(?: initial="\w+")?><Real start="1"', rf"\1 {declaration}", description_of("changes_its_mind")
    )
    assert count == 1
    path = build("changes_its_mind", tmp_path, xml=xml)
    assert main(["info", str(path), "--start", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)["start_values"][0]
    assert (value["name"], value["requested"], value["reached"], value["reason"]) == ("x", requested, 0.5, reason)
