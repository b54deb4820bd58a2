"""Several linear models on the grid of what varies between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmilin import LinearModel
from fmilin.errors import UnknownNameError, UsageError
from fmilin.export.m_file import build_grid, gather_models
from tests.hand_made import pendulum


def at(x: float, *, force: float = 0.0, mass: float | None = None, time: float = 0.0) -> LinearModel:
    """The pendulum at another place: its dependent state pin.y moves along."""
    base = pendulum()
    states = {"pin.x": x, "pin.y": -float(np.sqrt(1 - x * x)), "pin.vx": 0.0, "pin.vy": 0.0}
    parameters = {} if mass is None else {"mass": mass}
    point = replace(base.point, time=time, states=states, inputs={"F": force}, parameters=parameters)
    return replace(base, y0=np.array([x, 0.0]), point=point)


def test_independent_states_make_the_grid_and_dependent_ones_follow() -> None:
    array = gather_models([at(0.3), at(-0.1), at(0.2)])
    assert {name: v.tolist() for name, v in array.grid.items()} == {"pin.x": [-0.1, 0.2, 0.3]}
    assert array.shape == (3,)
    assert [m.y0[0] for m in array.models] == [-0.1, 0.2, 0.3]


def test_inputs_and_parameters_come_before_states() -> None:
    models = [at(0.1 * k, force=k, mass=m) for k in (0, 1) for m in (1e-12, 2e-12, 3e-12)]
    array = gather_models(models)
    assert set(array.grid) == {"F", "mass"}
    assert array.shape == (2, 3)
    assert array.grid["F"].tolist() == [0, 1, 0, 1, 0, 1]  # the first runs fastest


def test_time_comes_first() -> None:
    assert list(gather_models([at(0.1, time=1.0), at(0.2)]).grid) == ["time"]


def test_what_rounding_left_in_inputs_and_states_is_no_variable() -> None:
    assert list(gather_models([at(0.1, force=1e-17), at(0.2, force=-3e-17)]).grid) == ["pin.x"]
    with pytest.raises(UsageError, match="no varied quantity distinguishes them"):
        gather_models([at(0.1), at(0.1 + 1e-16)])


def test_a_grid_by_names_takes_values_from_the_points() -> None:
    models = [at(0.1, force=2.0, mass=3.0, time=4.0), at(0.2, force=5.0, mass=6.0, time=7.0)]
    expected = {"pin.x": [0.1, 0.2], "F": [2.0, 5.0], "mass": [3.0, 6.0], "time": [4.0, 7.0]}
    assert build_grid(models, list(expected)) == expected
    assert list(gather_models(models, build_grid(models, ["F"])).grid) == ["F"]
    with pytest.raises(UnknownNameError, match=r"'mas' is not a variable at the point of linear model 1 of 2.*'mass'"):
        build_grid(models, ["mas"])


def test_a_parameter_must_be_known_of_every_model() -> None:
    with pytest.raises(UnknownNameError, match="linear model 2 of 2"):
        build_grid([at(0.1, mass=3.0), at(0.2)], ["mass"])


def test_coordinates_that_are_zero_everywhere_leave_the_states() -> None:
    models = [replace(m, y0=np.zeros(2)) for m in (at(0.1), at(0.2))]  # modal ones, for example
    assert list(gather_models(models).grid) == ["pin.x", "pin.y"]
