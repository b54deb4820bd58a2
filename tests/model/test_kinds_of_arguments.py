"""Arguments of another kind are refused in a paragraph that says what they should be."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import fmilin as fl
from fmilin.export.files import save
from fmilin.systems import cartesian_pendulum

MODEL: Any = cartesian_pendulum()
fit: Any = fl  # what types would refuse is called here


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: fit.linearize(MODEL, {"x": 1.0}),
            "'point' is of the type 'dict', and should be of the type OperatingPoint",
        ),
        (lambda: fit.simulate(MODEL, point={"x": 1.0}, stop_time=1.0), "fl.operating_point"),
        (lambda: fit.explain(MODEL, {"x": 1.0}, "u", "y"), "'point' is of the type 'dict'"),
        (lambda: fit.simulate(MODEL, stop_time="soon"), "'stop_time' is 'soon': a number is needed"),
        (lambda: fit.simulate(MODEL, stop_time=None), "'stop_time' is of the type 'NoneType'"),
        (lambda: fit.periodic_orbit(MODEL, period="T"), "'period' is 'T': a number is needed"),
        (
            lambda: fit.verify(MODEL, "plant.mat"),
            "'linear' is of the type 'str', and should be of the type LinearModel",
        ),
        (lambda: fit.sweep(MODEL, ["L"]), "'vary' is of the type 'list', and should be of the type Mapping"),
        (lambda: fit.uncertain(MODEL, None, ["L"]), "'box' is of the type 'list'"),
        (
            lambda: fit.linearize(MODEL, independent=3),
            "'independent' is of the type 'int', and should be of the type Sequence",
        ),
        (lambda: fit.linearize_periodic(MODEL, MODEL.start), "should be of the type PeriodicOrbit"),
        (lambda: fit.operating_point(MODEL, {"x": "left"}), "'x' is 'left': a number is needed"),
        (lambda: fit.linearize_along(MODEL, 3), "'points' is of the type 'int', and should be of the type Iterable"),
        (
            lambda: fit.design.margins(MODEL),
            "'loop' is of the type 'LagrangeModel', and should be of the type LinearModel",
        ),
        (lambda: fit.design.schedule("a", abs), "'family' is of the type 'str'"),
        (lambda: fit.LinearModel.load(None), "'path' is of the type 'NoneType', and should be of the type Path or str"),
        (lambda: fit.linearize(MODEL).save(3), "'path' is of the type 'int'"),
        (lambda: cast(Any, save)("x", "y.mat"), "An object of the type 'str' is not a result that can be saved"),
        (lambda: fit.loop_transfer(fl.connect({"m": MODEL}), "m.x", {"x": 1.0}), "'point' is of the type 'dict', and"),
        (lambda: fit.load(MODEL), "'source' is of the type 'LagrangeModel', and should be of the type Path or str"),
    ],
)
def test_another_kind_is_refused_in_words(call: Callable[[], object], words: str) -> None:
    with pytest.raises(fl.UsageError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_kinds_that_serve_are_taken() -> None:
    point = fl.operating_point(MODEL, {"x": np.float64(0.1)})
    assert len(fl.linearize(MODEL, point=point, independent=("x", "vx")).states) == 2
    assert fl.simulate(MODEL, point, stop_time=np.float64(0.01)).times[-1] == pytest.approx(0.01)


WRONG_VALUES: list[Any] = [
    None, 1, -1, 2.5, "0", b"x", float("nan"), float("inf"), 10**400, 1 << 70, 1j, object(), [], [1], ["no such"],
    [None], {}, {"x": "a"}, {"x": None}, {"x": float("nan")}, {"x": 10**400}, {1: 2}, {"x": (2, 1)}, np.zeros((2, 2)),
    np.array(["a"]), "", "\0", "a" * 300, [["x"]], set(), MODEL,
]  # fmt: skip
CALLS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "linearize": (fl.linearize, {"model": MODEL}),
    "operating_point": (fl.operating_point, {"model": MODEL, "values": {"x": 0.1}}),
    "load": (fl.load, {"source": "missing.fmu"}),
    "sweep": (fl.sweep, {"source": MODEL, "vary": {"x": [0.1]}}),
    "Limits": (fl.Limits, {}),
    "Stepping": (fl.Stepping, {}),
    "Differences": (fl.Differences, {}),
    "TrimRequest": (fl.TrimRequest, {}),
}
NOT_TRIED = {
    ("linearize", "model"),
    ("sweep", "progress"),
    ("sweep", "scheduler"),  # connects to a cluster
    ("Limits", "caged"),  # is deprecated
    ("Stepping", "way"),  # is deprecated
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_of_any_argument_raise_errors_in_words(name: str) -> None:
    """Each argument gets each wrong value: the call works or raises an error of fmilin, never another one."""
    function, arguments = CALLS[name]
    for parameter in inspect.signature(function).parameters:
        if (name, parameter) in NOT_TRIED:
            continue
        for value in WRONG_VALUES:
            with contextlib.suppress(fl.FmilinError):
                function(**{**arguments, parameter: value})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fit.linearize(MODEL, outputs=[1]), "An entry of 'outputs' is of the type 'int'"),
        (lambda: fit.linearize(MODEL, outputs="x"), "'outputs' is the text 'x', and should be a list: write ['x']"),
        (lambda: fit.operating_point(MODEL, time="0"), "'time' is '0': a number is needed"),
        (lambda: fit.operating_point(MODEL, time=float("nan")), "'time' is not a number (NaN)"),
        (lambda: fit.operating_point(MODEL, time=float("inf")), "must be finite"),
        (lambda: fit.operating_point(MODEL, {"x": 10**400}), "'x' is too large for a floating-point number"),
        (lambda: fit.sweep(MODEL, {"x": [0.1]}, jobs=None), "'jobs' is of the type 'NoneType'"),
        (lambda: fit.sweep(MODEL, {"x": [0.1]}, jobs=1.5), "'jobs' is 1.5: an integer is needed"),
        (lambda: fit.Limits(seconds=-1), "must be positive, or None"),
        (lambda: fit.Differences(order=3), "A difference of order 3 is not available"),
    ],
)
def test_wrong_entries_and_numbers_are_named(call: Callable[[], object], words: str) -> None:
    with pytest.raises(fl.UsageError) as caught:
        call()
    assert words in str(caught.value)


def test_too_many_positional_arguments_are_named_by_python() -> None:
    with pytest.raises(TypeError, match="positional arguments but 3 were given"):
        fit.linearize(MODEL, None, ["phi"])
