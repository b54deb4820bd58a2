"""python-control gets the same numbers under legal names that can be turned back."""

from __future__ import annotations

from dataclasses import replace

import control
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fmilin.signals import Signals, legal_name, original_name
from tests.hand_made import bits, pendulum, sized


def test_matrices_names_and_time_base() -> None:
    linear = pendulum()
    system = linear.to_control()
    for name in "ABCD":
        assert bits(getattr(system, name)) == bits(getattr(linear, name))
    assert system.state_labels == ["pin/x", "pin/vx"]
    assert system.input_labels == ["F"]
    assert system.output_labels[:2] == ["pin/x", "der(pin/vx)"]
    assert system.name == "Pendel/Größe 🙂"
    assert [original_name(n) for n in system.output_labels] == list(linear.outputs.names)
    assert original_name(system.name) == linear.model.name
    assert system.isctime()
    assert replace(linear, sample_time=0.5).to_control().dt == 0.5


@pytest.mark.parametrize(("inputs", "outputs"), [(0, 0), (2, 0), (0, 3), (1, 1)])
@pytest.mark.parametrize("order", [0, 1, 4])
def test_any_size(order: int, inputs: int, outputs: int) -> None:
    system = sized(order, 1, inputs, outputs).to_control()
    assert (system.nstates, system.ninputs, system.noutputs) == (order, inputs, outputs)
    assert system.B.shape == (order, inputs)
    assert system.D.shape == (outputs, inputs)
    assert len(system.poles()) == order


def test_names_can_be_used_to_connect() -> None:
    names = ["pin.x", "a.b", "a/b", "a_b", "-a.b", "q[1:2]", "q[1,2]", "100%"]
    base = sized(2, 0, len(names), len(names))
    linear = replace(base, inputs=Signals(names), outputs=Signals(names))
    system = linear.to_control()
    assert len(set(system.input_labels)) == len(names)
    for i, label in enumerate(system.input_labels):
        channel = f"{system.name}.{label}"
        loop = control.interconnect([system], connections=False, inplist=[channel], outlist=[channel])
        assert np.array_equal(loop.B, linear.B[:, [i]])
        assert np.array_equal(loop.C, linear.C[[i], :])


@given(st.lists(st.text(), unique=True, max_size=6))
def test_different_names_stay_different_and_turn_back(names: list[str]) -> None:
    legal = [legal_name(n) for n in names]
    assert [original_name(n) for n in legal] == names
    assert len(set(legal)) == len(names)
    assert not any("." in n or ":" in n or n.startswith("-") for n in legal)
