"""scipy, numdifftools and python-control on the same function y -> R f(Psi(y)), and fmilin's differences of it."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol

import control
import numdifftools
import numpy as np
from numpy.typing import NDArray
from scipy.optimize._numdiff import approx_derivative

import fmilin as fl
from fmilin.manifold.verified_frame import build_frame
from fmilin.numerics.differences.differences import jacobian_by_differences, slopes

ROUNDS = 5

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
Way = Callable[[Function, Array, Array], Any]
"""(function, point, sizes of the variables) -> Jacobian."""


class Case(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def model(self) -> fl.Model: ...
    @property
    def independent(self) -> Any: ...
    @property
    def A(self) -> Array: ...
    @property
    def per_unit(self) -> Array: ...


def by_control(function: Function, y: Array, _: Array) -> Any:
    names = [f"y{i}" for i in range(len(y))]

    def rates(t: float, x: Array, u: Array, params: dict[str, float]) -> Array:
        del t, u, params
        return function(x)

    system = control.NonlinearIOSystem(rates, None, inputs=1, states=names)
    return control.linearize(system, y, 0.0).A


def plain(function: Function, y: Array, sizes: Array) -> Any:
    steps = np.eye(len(y))
    return slopes(lambda j, s: function(y + s * steps[j]), function(y), sizes, fl.Differences(order=2)).J


WAYS: dict[str, Way] = {
    "fmilin": lambda function, y, sizes: jacobian_by_differences(function, y, sizes)[0],
    "fmilin, order 2": plain,
    "scipy 2-point": lambda function, y, _: approx_derivative(function, y, method="2-point"),
    "scipy 3-point": lambda function, y, _: approx_derivative(function, y, method="3-point"),
    "numdifftools": lambda function, y, _: numdifftools.Jacobian(function)(y),
    "python-control": by_control,
}


class Counted:
    """A function that counts its evaluations."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.count = 0

    def __call__(self, y: Array) -> Array:
        self.count += 1
        return self.function(np.asarray(y, dtype=np.float64).ravel())


def compare(case: Case) -> list[list[str]]:
    """Return one row per way."""
    point = fl.operating_point(case.model)
    frame = build_frame(case.model, point, named=case.independent)
    psi, R = frame.parametrization, frame.coordinates.R

    def reduced(y: Array) -> Array:
        return R @ case.model.evaluate(point.time, psi.psi(y), point.inputs).derivatives

    samples: dict[str, list[float]] = {way: [] for way in WAYS}
    results: dict[str, tuple[Array, int]] = {}
    for _ in range(ROUNDS):
        for way, jacobian in WAYS.items():
            function = Counted(reduced)
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = quietly(jacobian, function, psi.y0, frame.y_scales)
            samples[way].append(time.perf_counter() - begin)
            results[way] = (found, function.count)
    seconds = {way: statistics.median(times) for way, times in samples.items()}
    largest = np.max(np.abs(case.A) * case.per_unit)
    return [
        [
            case.name if way == "fmilin" else "",
            way,
            shown(float(np.max(np.abs(A - case.A) * case.per_unit) / largest)),
            str(count),
            f"{seconds[way] / seconds['fmilin']:.2f}",
        ]
        for way, (A, count) in results.items()
    ]


def quietly(jacobian: Way, function: Counted, y: Array, sizes: Array) -> Array:
    """Return the Jacobian; NaN where steps that do not know the sizes leave the model's domain."""
    try:
        return np.asarray(jacobian(function, y.copy(), sizes), dtype=np.float64)
    except fl.NumericalError:
        return np.full((len(y), len(y)), np.nan)


def shown(error: float) -> str:
    return f"{error:.0e}" if np.isfinite(error) else "fails"
