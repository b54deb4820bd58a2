"""Numbers that record: the statements compute what the code computed, and nothing that is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from fmilin.codegen.recorder import Recorder


def computed(x: Any) -> Any:
    """Use every operation, on arrays with zeros and constants among them."""
    a, b, c = x[0], x[1], x[2]
    table = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 0.5], [0.25, 0.0, 0.0]])
    moved = table @ x
    long = sum(float(k) * np.sin(np.array([k * a + b]))[0] for k in range(1, 20))
    return np.array(
        [
            (a + b) * (c - a) - (a + b),
            1.0 - a,
            2.0 / (a + c),
            (a - b) / c / 4.0,
            (b - a) * (a - b),
            (a * a + b * b + 1.0).sqrt() if hasattr(a, "sqrt") else np.sqrt(a * a + b * b + 1.0),
            np.cos(moved)[0] ** 3,
            moved @ moved,
            long * long,
            a - a + 3.0,
            a * 0.0,
            -(b * c) + c * b,
        ],
        dtype=object,
    )


def values_of(recorder: Recorder, expressions: Any, at: dict[Any, float]) -> list[float]:
    known = dict(at)
    for symbol, operation in recorder.needed_by(expressions):
        known[symbol] = float(operation.subs(known))
    return [float(sympy.sympify(e).subs(known)) for e in expressions]


def test_the_statements_compute_what_the_code_computes() -> None:
    symbols = sympy.symbols("a b c", real=True)
    recorder = Recorder()
    found = recorder.expressions(computed(recorder.numbers(symbols)))
    numbers = np.random.default_rng(2).uniform(0.5, 1.5, 3)
    values = values_of(recorder, found, dict(zip(symbols, numbers.tolist(), strict=True)))
    assert np.allclose(values, computed(numbers).astype(float), rtol=1e-13, atol=1e-13)
    assert list(found[-3:]) == [3, 0, 0]


def test_equal_operations_are_one_statement() -> None:
    recorder = Recorder()
    a, b = recorder.numbers(sympy.symbols("a b", real=True))
    one, other = (a - b) * (a + b), (b + a) * (b - a)
    assert recorder.expressions([one + other])[0] == 0
    assert len(recorder.statements) == 3


def test_only_what_is_needed_is_kept() -> None:
    recorder = Recorder()
    a, b = recorder.numbers(sympy.symbols("a b", real=True))
    wanted = recorder.expressions([a * b])
    recorder.expressions([(a * b) * a, b.sin()])
    assert [symbol for symbol, _ in recorder.needed_by(wanted)] == list(wanted)
    assert len(recorder.statements) == 3


def test_long_sums_are_not_written_out_anew() -> None:
    recorder = Recorder()
    x = recorder.numbers(sympy.symbols("x:40", real=True))
    total = x.sum()
    again = total + 1.0
    assert len(again.terms) < 20
    values = values_of(recorder, recorder.expressions([again]), dict.fromkeys(sympy.symbols("x:40", real=True), 1.0))
    assert values == [41.0]
