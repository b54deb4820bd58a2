"""Inputs over time: constants, functions, tables with kinks and jumps."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.simulation import InputTable
from fmilin.simulation.inputs import input_course
from fmilin.simulation.trajectory import read_inputs, trajectory_as_csv
from tests.by_hand import FunctionModel, Parts


def integrator() -> FunctionModel:
    """x' = u1, y' = u2; the output is u1."""
    return FunctionModel(
        Parts(
            ["x", "y"],
            [0.0, 0.0],
            lambda t, s, u: u.copy(),
            inputs=["u1", "u2"],
            outputs=["echo"],
            output=lambda t, s, u: u[:1],
        )
    )


def table(*rows: tuple[float, ...], names: tuple[str, ...] = ("u1",)) -> InputTable:
    values = np.array(rows, dtype=float)
    return InputTable(values[:, 0], names, values[:, 1:])


def test_a_table_is_integrated_exactly() -> None:
    ramp = table((0.0, 0.0), (1.0, 2.0), (3.0, 2.0), (4.0, 0.0))
    motion = fl.simulate(integrator(), stop_time=5.0, step=0.5, inputs=ramp)
    expected = {0.5: 0.25, 1.0: 1.0, 2.0: 3.0, 3.0: 5.0, 3.5: 5.75, 4.0: 6.0, 5.0: 6.0}
    for t, x in expected.items():
        np.testing.assert_allclose(motion["x"][motion.times == t], x, atol=1e-13)
    np.testing.assert_allclose(motion["u1"], np.interp(motion.times, ramp.times, ramp.values[:, 0]), atol=1e-15)
    np.testing.assert_array_equal(motion["echo"], motion["u1"])
    assert not motion["y"].any()
    assert motion.events == ()


def test_a_jump_is_two_samples() -> None:
    step = table((0.0, 1.0), (1.0, 1.0), (1.0, 5.0), (2.0, 5.0))
    motion = fl.simulate(integrator(), stop_time=2.0, step=0.4, inputs=step)
    at_one = motion.times == 1.0
    np.testing.assert_array_equal(motion["u1"][at_one], [1.0, 5.0])
    np.testing.assert_allclose(motion["x"][at_one], [1.0, 1.0], atol=1e-13)
    np.testing.assert_allclose(motion["x"][-1], 6.0, atol=1e-12)
    assert [(e.time, e.cause) for e in motion.events] == [(1.0, "input")]


def test_the_narrow_pulse_is_not_stepped_over() -> None:
    pulse = table((0.0, 0.0), (50.0, 0.0), (50.001, 1000.0), (50.002, 0.0))
    motion = fl.simulate(integrator(), stop_time=100.0, step=10.0, inputs=pulse)
    np.testing.assert_allclose(motion["x"][-1], 1.0, rtol=1e-10)


def test_before_the_first_row_and_behind_the_last_the_table_is_constant() -> None:
    course = input_course(integrator().inputs, np.array([0.0, 7.0]), table((1.0, 3.0), (2.0, 4.0)))
    assert course.breaks(0.0, 3.0).tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(course.piece(0.0, 1.0)(0.5), [3.0, 7.0])
    np.testing.assert_array_equal(course.piece(1.0, 2.0)(1.25), [3.25, 7.0])
    np.testing.assert_array_equal(course.piece(2.0, 9.0)(5.0), [4.0, 7.0])


def test_rows_on_one_line_make_no_break() -> None:
    t = np.linspace(0.0, 1.0, 11)
    course = input_course(integrator().inputs, np.zeros(2), InputTable(t, ("u2",), (2 * t)[:, None]))
    assert course.breaks(-1.0, 2.0).tolist() == [0.0, 1.0]


def test_one_row_is_a_constant() -> None:
    motion = fl.simulate(integrator(), stop_time=2.0, step=1.0, inputs=table((5.0, 3.0)))
    np.testing.assert_allclose(motion["x"], [0.0, 3.0, 6.0], atol=1e-13)


def test_constants_and_functions_by_name() -> None:
    motion = fl.simulate(integrator(), stop_time=2.0, step=1.0, inputs={"u1": np.cos, "u2": 2.0})
    np.testing.assert_allclose(motion["x"], np.sin(motion.times), atol=1e-9)
    np.testing.assert_allclose(motion["y"], 2 * motion.times, atol=1e-12)


def test_one_function_for_all() -> None:
    def all_of_them(t: float) -> FloatArray:
        return np.array([t, 1.0])

    motion = fl.simulate(integrator(), stop_time=2.0, step=1.0, inputs=all_of_them)
    np.testing.assert_allclose(motion["x"], [0.0, 0.5, 2.0], atol=1e-12)


def test_inputs_of_the_point_stay_where_nothing_is_said() -> None:
    model = integrator()
    point = fl.operating_point(model, {"u2": -3.0})
    motion = fl.simulate(model, point, stop_time=1.0, step=1.0, inputs={"u1": 1.0})
    np.testing.assert_allclose(motion.states[-1], [1.0, -3.0], atol=1e-13)


def test_wrong_inputs() -> None:
    with pytest.raises(fl.UnknownNameError, match="'u3' is not an input of the model"):
        fl.simulate(integrator(), stop_time=1.0, inputs={"u3": 1.0})
    with pytest.raises(fl.UnknownNameError, match="'v' is not an input"):
        fl.simulate(integrator(), stop_time=1.0, inputs=table((0.0, 1.0), names=("v",)))
    with pytest.raises(fl.UsageError, match="'u1' cannot be nan"):
        fl.simulate(integrator(), stop_time=1.0, inputs={"u1": np.nan})
    with pytest.raises(fl.UsageError, match=r"shape \(3,\) at t = 0; it should be \(2,\)"):
        fl.simulate(integrator(), stop_time=1.0, inputs=lambda t: np.zeros(3))


@pytest.mark.parametrize(
    ("times", "names", "values", "match"),
    [
        ([0.0, 1.0], ("u",), [[1.0]], "1 names and 2 times for values of shape \\(1, 1\\)"),
        ([], ("u",), np.empty((0, 1)), "no rows"),
        ([0.0], ("u", "u"), [[1.0, 2.0]], "two columns"),
        ([0.0, np.nan], ("u",), [[1.0], [2.0]], "not a finite number"),
        ([0.0, 2.0, 1.0], ("u",), [[1.0], [2.0], [3.0]], "goes back from 2 to 1 in row 3"),
    ],
)
def test_impossible_tables(times: object, names: tuple[str, ...], values: object, match: str) -> None:
    with pytest.raises(fl.UsageError, match=match):
        InputTable(np.array(times, dtype=float), names, np.array(values, dtype=float))


def test_a_table_from_a_file(tmp_path: object) -> None:
    path = tmp_path / "in.csv"  # type: ignore[operator]
    path.write_text("\ufeffu2, time,u1\n\n 1.5, 0, 2\n-1e-3,1.0,4\n", encoding="utf-8")
    read = read_inputs(path)
    assert read.names == ("u2", "u1")
    np.testing.assert_array_equal(read.times, [0.0, 1.0])
    np.testing.assert_array_equal(read.values, [[1.5, 2.0], [-1e-3, 4.0]])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("t,u1\n0,1\n", "no column 'time'"),
        ("time,u1\n0,1,2\n", "line 2: 3 values for 2 columns"),
        ("time,u1\n0,1\n1,zwei\n", "line 3: 'zwei' is not a number"),
        ("time,u1\n1,1\n0,1\n", "goes back"),
        ("time,u1\n", "no rows"),
    ],
)
def test_files_that_are_no_tables(text: str, match: str, tmp_path: object) -> None:
    path = tmp_path / "in.csv"  # type: ignore[operator]
    path.write_text(text)
    with pytest.raises(fl.UsageError, match=match):
        read_inputs(path)


def test_a_file_that_is_not_there(tmp_path: object) -> None:
    with pytest.raises(fl.UsageError, match=r"Cannot read the inputs from .*No such file"):
        read_inputs(tmp_path / "nothing.csv")  # type: ignore[operator]


def test_csv_has_every_state_output_and_input_once_and_all_digits() -> None:
    motion = fl.simulate(integrator(), stop_time=0.3, step=0.1, inputs={"u1": np.exp})
    lines = trajectory_as_csv(motion).decode().splitlines()
    assert lines[0] == "time,x,y,echo,u1,u2"
    numbers = np.array([[float(v) for v in line.split(",")] for line in lines[1:]])
    np.testing.assert_array_equal(numbers[:, 0], motion.times)
    np.testing.assert_array_equal(numbers[:, 1:3], motion.states)
    np.testing.assert_array_equal(numbers[:, 4], motion["u1"])


def test_names_with_commas_are_quoted() -> None:
    model = OdeModel("decay", {"x[1,2]": "-`x[1,2]`"}, start={"x[1,2]": 1.0})
    motion = fl.simulate(model, stop_time=1.0, step=1.0, energy="`x[1,2]`^2")
    assert trajectory_as_csv(motion).decode().splitlines()[0] == 'time,"x[1,2]",energy'


@pytest.mark.parametrize("value", ["a", None, lambda _t: "a", ([0, 3], [0, 1])])
def test_what_is_no_number_and_no_function_of_numbers_is_refused_in_words(value: object) -> None:
    model = OdeModel("lag", {"x": "u - x"}, inputs=["u"])
    with pytest.raises(fl.UsageError, match=r"The input 'u' cannot be .*a number, a function of time, or all inputs"):
        fl.simulate(model, stop_time=1.0, inputs={"u": value})  # type: ignore[dict-item]
