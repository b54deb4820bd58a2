"""Functions of expressions: what threads that share them are told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from fmilin.constraints.expression_functions import ExpressionFunctions
from fmilin.constraints.expressions import parse
from fmilin.signals import FloatArray

THREADS, ROUNDS = 8, 300
PRODUCT = [parse("a*x*y"), parse("a*x^2")]


@pytest.fixture
def threads_that_take_turns_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("threads_that_take_turns_often")
def test_models_in_threads_have_numbers_of_their_own() -> None:
    """Models with the same constraints share their functions, whatever the values of the constants."""
    together = Barrier(THREADS)

    def errors_of(a: float) -> float:
        functions = ExpressionFunctions(PRODUCT, {"x": 0, "y": 1}, 2, {"a": a})
        together.wait()
        return max(_error(functions, a, np.array([a + k, a - k])) for k in range(ROUNDS))

    with ThreadPoolExecutor(THREADS) as threads:
        assert list(threads.map(errors_of, np.arange(1.0, THREADS + 1))) == [0.0] * THREADS


def _error(functions: ExpressionFunctions, a: float, s: FloatArray) -> float:
    """Return the largest deviation of values, slopes and curvature, of one point and of two, from the closed form."""
    x, y = s
    values, J = np.array([a * x * y, a * x**2]), np.array([[a * y, a * x], [2 * a * x, 0.0]])
    curvature = np.array([[a * x, a * y], [2 * a * y, 0.0]])  # along (y, x)
    pairs = [
        (functions.values(s), values),
        (functions.jacobian(s), J),
        (functions.curvature(s, s[::-1]), curvature),
        (functions.values(np.array([s, s])), np.array([values, values])),
        (functions.jacobian(np.array([s, s])), np.array([J, J])),
    ]
    return max(float(np.max(np.abs(own - true))) for own, true in pairs)
