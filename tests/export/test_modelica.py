"""The Modelica model: read by a Modelica parser, computed with, compared with the matrices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fmilin import LinearModel
from fmilin.adapters import Remark
from fmilin.errors import UsageError
from fmilin.export.modelica import RESERVED, dumps, identifiers
from fmilin.formats import Writing
from fmilin.signals import Signal, Signals
from tests.export.modelica import Flat, flat
from tests.hand_made import LONG, pendulum, sized

Form = Literal["blocks", "equations"]
SIZES = [(0, 0, 0), (0, 2, 3), (3, 0, 2), (3, 2, 0), (1, 1, 1), (12, 3, 4)]


def read(linear: LinearModel, form: Form = "equations", *, deviation: bool = False) -> Flat:
    return flat(dumps(linear, Writing("Plant", deviation, form)).decode(), "Plant")


@pytest.mark.parametrize("form", ["blocks", "equations"])
@pytest.mark.parametrize("deviation", [False, True])
@pytest.mark.parametrize(("order", "inputs", "outputs"), SIZES)
def test_the_equations_are_those_of_the_linear_model(
    form: Form, deviation: bool, order: int, inputs: int, outputs: int
) -> None:
    linear = sized(order, 1, inputs, outputs)
    linear = replace(linear, point=replace(linear.point, outputs=dict.fromkeys(linear.outputs.names, 0.3)))
    model = read(linear, form, deviation=deviation)
    rng = np.random.default_rng(1)
    dy, du = rng.standard_normal(order), rng.standard_normal(inputs)
    y0, u0, g0 = (0, 0, 0) if deviation else (linear.y0, np.full(inputs, -0.5), np.full(outputs, 0.3))
    states, names = [f"x_{i + 1}" for i in range(order)], [f"u_{i + 1}" for i in range(inputs)]
    vectors = form == "equations"
    known = {"x": y0 + dy} if vectors else dict(zip(states, y0 + dy, strict=True))
    found = model.solved(known | dict(zip(names, u0 + du, strict=True)))
    rates = np.array([] if not order else found["der(x)"] if vectors else [found[f"der({s})"] for s in states])
    f0 = 0 * linear.f0 if deviation else linear.f0
    assert np.allclose(rates, f0 + linear.A @ dy + linear.B @ du, rtol=1e-13, atol=1e-13)
    out = np.array([found[f"out_{i + 1}"] for i in range(outputs)]).ravel()
    assert np.allclose(out, g0 + linear.C @ dy + linear.D @ du, rtol=1e-13, atol=1e-13)
    assert model.named("input") == names
    if not vectors:
        assert [model.start(s) for s in states] == (linear.y0.tolist() if not deviation else [0.0] * order)


@pytest.mark.parametrize("deviation", [False, True])
@pytest.mark.parametrize(("order", "inputs", "outputs"), [size for size in SIZES if size[0]])
def test_equations_are_taken_by_the_backend_for_casadi(
    tmp_path: Path, deviation: bool, order: int, inputs: int, outputs: int
) -> None:
    """The residuals of the translated model vanish at the derivatives of the matrices, and nowhere else."""
    from pymoca.backends.casadi.api import transfer_model

    linear = sized(order, 1, inputs, outputs)
    linear = replace(linear, point=replace(linear.point, outputs=dict.fromkeys(linear.outputs.names, 0.3)))
    (tmp_path / "Plant.mo").write_bytes(dumps(linear, Writing("Plant", deviation, "equations")))
    model = transfer_model(str(tmp_path), "Plant", {"cache": False})
    assert [v.symbol.shape for v in model.states] == [(order, 1)]
    assert len(model.inputs) == inputs
    assert len(model.outputs) == outputs
    rng = np.random.default_rng(2)
    dy, du = rng.standard_normal(order), rng.standard_normal(inputs)
    y0, u0, g0 = (0, 0, 0) if deviation else (linear.y0, -0.5, 0.3)
    f0 = 0 * linear.f0 if deviation else linear.f0
    out = g0 + linear.C @ dy + linear.D @ du
    values = {"u": u0 + du, "y": out, **dict(zip((f"x_{i + 1}" for i in range(order)), y0 + dy, strict=True))}
    values |= dict(zip((f"out_{i + 1}" for i in range(outputs)), out, strict=True))
    parameters = [np.array(v.value, dtype=float) for v in model.parameters]
    groups = (model.states, model.der_states, model.alg_states, model.inputs)
    rates = f0 + linear.A @ dy + linear.B @ du
    taken = ([y0 + dy], [rates], [values[v.symbol.name()] for v in model.alg_states], list(u0 + du))
    assert [len(g) for g in groups] == [len(t) for t in taken]
    stacked: list[Any] = [np.concatenate([np.ravel(v, order="F") for v in t]) if len(t) else [] for t in taken]
    flat_parameters: Any = np.concatenate([np.ravel(p, order="F") for p in parameters]) if parameters else []
    residual = np.array(model.dae_residual_function(0.0, *stacked, [], flat_parameters)).ravel()
    assert np.abs(residual).max(initial=0.0) < 1e-12
    stacked[1] = rates + 1.0
    assert np.abs(np.array(model.dae_residual_function(0.0, *stacked, [], flat_parameters))).max() > 0.5


def test_every_bit_of_the_matrices_is_there() -> None:
    model = read(pendulum())
    for letter in "ABCD":
        matrix = getattr(pendulum(), letter)
        assert np.array_equal(model.parameters[letter], matrix)
        assert np.array_equal(np.signbit(model.parameters[letter]), np.signbit(matrix))
    assert model.symbols["F"].unit.value == "N"
    assert model.symbols["pin_x_state"].unit.value == "m"
    assert model.symbols["pin_x_state"].comment == "pin.x: horizontal"
    assert max(map(len, model.symbols)) < 210 < len(LONG)


@pytest.mark.parametrize("deviation", [False, True])
@pytest.mark.parametrize(("order", "inputs", "outputs"), SIZES)
def test_a_sampled_model_steps_in_a_when_clause(deviation: bool, order: int, inputs: int, outputs: int) -> None:
    linear = replace(sized(order, 0, inputs, outputs), sample_time=0.25)
    text = dumps(linear, Writing("Plant", deviation, "equations")).decode()
    assert ("when sample(0.0, 0.25) then" in text) == (order + outputs > 0)
    dy, du = np.full(order, 0.7), np.full(inputs, -1.3)
    y0, u0 = (0.0, 0.0) if deviation else (linear.y0, -0.5)
    known = {f"u_{i + 1}": value for i, value in enumerate(np.broadcast_to(u0 + du, inputs))}
    found = read(linear, deviation=deviation).solved(known | {"pre(x)": y0 + dy})
    if order:
        f0 = 0 * linear.f0 if deviation else linear.f0
        assert np.allclose(found["x"], y0 + f0 + linear.A @ dy + linear.B @ du, rtol=1e-13, atol=1e-13)
    if outputs:
        out = [found[f"out_{i + 1}"] for i in range(outputs)]
        assert np.allclose(out, linear.C @ dy + linear.D @ du, rtol=1e-13, atol=1e-13)


def test_texts_that_would_end_a_string_do_no_harm() -> None:
    evil = 'a"; end Plant; // </html> & \\ "'
    linear = replace(
        pendulum(),
        inputs=Signals([Signal(evil, '"; bad', description=evil)]),
        model=replace(pendulum().model, name=evil),
        warnings=(Remark("rank", evil),),
    )
    model = read(linear)
    assert model.named("input") == ["a_end_Plant_html"]
    ends = replace(pendulum(), inputs=Signals(["a\\"]))  # pymoca reads the backslash of this one as if it were alone
    assert 'RealInput a(start = 0.0) "a\\\\"' in dumps(ends, Writing()).decode()


def test_names_that_clash_after_legalization_get_numbers() -> None:
    names = ["a.b", "a_b", "a[b]", "a_b_2", "A", "x0", "der", "1", "", "φ", "ϕ", "Plant"]
    linear = replace(sized(0, 0, len(names), 0), inputs=Signals(names))
    model = read(linear)
    found = model.named("input")
    assert found[:4] == ["a_b_3", "a_b", "a_b_4", "a_b_2"]
    assert len(set(found)) == len(names)
    assert [model.symbols[n].comment for n in found] == names


def test_legal_names_stay_as_they_are() -> None:
    legal = ["_x", "phi_", "a__b", "phi", "X9"]
    assert identifiers(["phi.", *legal]) == ["phi_2", *legal]
    assert identifiers(legal, taken=["phi"])[3] == "phi_2"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), unique=True, max_size=5))
def test_any_names_become_legal_and_different(names: list[str]) -> None:
    found = identifiers(names)
    assert len(set(found)) == len(names)
    for name in found:
        assert name.isascii()
        assert name.isidentifier()
        assert name not in RESERVED


@settings(max_examples=12, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\\")), unique=True, max_size=4))
def test_any_names_can_be_parsed(names: list[str]) -> None:
    linear = replace(sized(1, 0, len(names), 0), inputs=Signals([Signal(n, n, description=n) for n in names]))
    assert len(read(linear).named("input")) == len(names)


def test_the_point_stands_in_the_annotation() -> None:
    text = dumps(pendulum(), Writing("Plant")).decode()
    assert 'parameters = {"rod.length"}' in text
    assert "parameters_values = {1.0000000000000002}" in text
    assert json.dumps("pin.vy") in text
    assert "<td>pin.vx</td><td>0.3</td><td>m/s</td>" in text


def test_a_point_that_is_no_number_is_refused_in_absolute_values() -> None:
    linear = replace(pendulum(), point=replace(pendulum().point, time=np.nan, inputs={"F": np.nan}))
    with pytest.raises(UsageError, match=r"the input 'F' is not a number there\. Write deviations instead"):
        read(linear)
    text = dumps(linear, Writing("Plant", deviation=True)).decode()
    assert "experiment(StartTime = 0.0, StopTime = 1.0)" in text
    assert flat(text, "Plant").named("input") == ["F"]


def test_a_parameter_that_is_infinite_is_no_number_for_modelica() -> None:
    linear = replace(pendulum(), point=replace(pendulum().point, parameters={"limit": np.inf, "m": 2.0}))
    assert 'parameters = {"m"},\n      parameters_values = {2.0}' in dumps(linear, Writing("Plant")).decode()


def test_nan_is_refused() -> None:
    with pytest.raises(UsageError, match="matrix A contains NaN"):
        dumps(replace(pendulum(), A=np.full((2, 2), np.nan)), Writing())
