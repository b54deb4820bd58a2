"""The Modelica model compiled and simulated by a Modelica compiler, against the exact response of the matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from fmilin import LinearModel
from fmilin.export.modelica import dumps
from fmilin.formats import Writing
from fmilin.reduction import discretize
from fmilin.signals import FloatArray, Signal, Signals
from tests.export.modelica import LIBRARY
from tests.hand_made import sized

rumoca = pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

PUSH = (0.7, -0.4)


@pytest.fixture(autouse=True, scope="module")
def no_standard_library() -> Iterator[None]:
    """Spare the compiler the Modelica Standard Library, which takes it 5 s each time: two connectors stand for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MODELICAPATH", raising=False)
        yield


def plant() -> LinearModel:
    """Three states, away from an equilibrium, with names that are no identifiers."""
    linear = sized(3, 1, 2, 2)
    return replace(
        linear,
        A=linear.A - 2 * np.eye(3),
        states=Signals(["body.r[1]", "der(w)", "größe"]),
        full_states=Signals(["body.r[1]", "der(w)", "größe", "z"]),
        point=replace(linear.point, outputs={"out[1]": 2.0, "out[2]": -1.0}),
    )


def simulated(linear: LinearModel, writing: Writing, stop: float, step: float) -> Any:
    """Held inputs: u0 + PUSH in absolute values, PUSH in deviations."""
    offset = 0.0 if writing.deviation else -0.5
    held = "\n".join(f"  p.u_{i + 1} = {offset + push};" for i, push in enumerate(PUSH))
    text = dumps(linear, writing).decode().removeprefix("within ;\n")
    bench = f"model Bench\n  {writing.name} p;\nequation\n{held}\nend Bench;\n"
    model = rumoca.Session().loads(LIBRARY + text + bench, model="Bench")
    return model.simulate(t=(0.0, stop), dt=step, config=rumoca.SimConfig(rtol=1e-10, atol=1e-12))


def exact(linear: LinearModel, times: FloatArray, *, deviation: bool) -> FloatArray:
    """Outputs as deviations, shape (number of times, ny); the point's own motion only where values are absolute."""
    u = np.array(PUSH)
    M = np.zeros((4, 4))
    M[:3, :3], M[:3, 3] = linear.A, (0 if deviation else 1) * linear.f0 + linear.B @ u
    return np.array([linear.C @ (expm(M * t)[:3, 3]) + linear.D @ u for t in times])


@pytest.mark.parametrize("form", ["blocks", "equations"])
@pytest.mark.parametrize("deviation", [False, True])
def test_the_response_is_that_of_the_matrices(form: Literal["blocks", "equations"], deviation: bool) -> None:
    linear = plant()
    result = simulated(linear, Writing("Plant", deviation, form), 2.0, 0.25)
    times = np.array(result.time)
    assert len(times) == 9
    g0 = np.zeros(2) if deviation else np.array([2.0, -1.0])
    found = np.column_stack([result["p.out_1"], result["p.out_2"]])
    assert np.allclose(found, g0 + exact(linear, times, deviation=deviation), atol=1e-8)
    for name, start in zip(("p.body_r_1", "p.der_w", "p.groesse"), linear.y0, strict=True):
        assert result[name][0] == pytest.approx(0.0 if deviation else start)


@pytest.mark.parametrize("deviation", [False, True])
def test_a_sampled_model_steps_at_its_samples(deviation: bool) -> None:
    linear = discretize(plant(), 0.1)
    result = simulated(linear, Writing("Plant", deviation, "equations"), 0.95, 0.05)
    times = np.array(result.time)
    middles = [int(np.argmin(np.abs(times - (0.1 * k + 0.05)))) for k in range(9)]
    g0 = np.zeros(2) if deviation else np.array([2.0, -1.0])
    found = np.column_stack([result["p.out_1"], result["p.out_2"]])[middles]
    assert np.allclose(
        found, g0 + exact(plant(), np.asarray(0.1 * np.arange(9), dtype=np.float64), deviation=deviation), atol=1e-12
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), unique=True, max_size=4))
def test_any_names_compile(names: list[str]) -> None:
    linear = replace(sized(1, 0, len(names), 0), inputs=Signals([Signal(n, n, description=n) for n in names]))
    text = dumps(linear, Writing("Plant", False, "equations")).decode()
    assert len(rumoca.Session().loads(text, model="Plant").inputs) == len(names)


@pytest.mark.parametrize("name", ["a\\", 'a\\"', '"', "\\n", "*/ end Plant; /*", "// x"])
def test_quotes_and_backslashes_compile(name: str) -> None:
    linear = replace(sized(1, 0, 1, 0), inputs=Signals([Signal(name, name, description=name)]))
    text = dumps(linear, Writing("Plant", False, "equations")).decode()
    assert len(rumoca.Session().loads(text, model="Plant").inputs) == 1


LEGAL = ["N.m", "m/s2", "kg.m2/(s.rad)", "1/min", "1", "rad/s", "xyz"]


@pytest.mark.parametrize("unit", [*LEGAL, "%", "0", "m s", "(m", "m//s", "°"])
def test_units_that_modelica_knows_and_others(unit: str) -> None:
    linear = replace(sized(1, 0, 1, 0), inputs=Signals([Signal("force", unit)]))
    text = dumps(linear, Writing("Plant", False, "equations")).decode()
    assert len(rumoca.Session().loads(text, model="Plant").inputs) == 1
    assert (f'unit = "{unit}"' in text) == (unit in LEGAL)
    assert (f'"force [{unit}]"' in text) == (unit not in LEGAL)
