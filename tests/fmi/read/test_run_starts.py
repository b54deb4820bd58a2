"""Runs of co-simulation FMUs are the same from saved states, from copies of the process and from fresh instances."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin import Stepping
from fmilin.fmi.read.stepped_model import SteppedFmu
from fmilin.fmi.read.stepped_session import RunStart
from fmilin.signals import FloatArray
from tests.fmi.read.stepped import Made, assert_same, exchanged, remark

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the host is copied on Linux alone")

Opened = Callable[..., SteppedFmu]
PLAIN = 'canHandleVariableCommunicationStepSize="true"'  # it cannot save its state


def start_of(model: SteppedFmu) -> RunStart:
    return model._session.run_start


def test_a_copy_takes_the_place_of_a_state_that_cannot_be_saved(made: Made, stepped: Opened) -> None:
    assert start_of(stepped(made("motor"))) is RunStart.STATE
    assert start_of(stepped(made("motor", attributes=PLAIN))) is RunStart.COPY
    assert start_of(stepped(made("motor", "-DTHREAD", attributes=PLAIN))) is RunStart.FRESH


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("name", ["motor", "order12"])
def test_responses_are_the_same_to_the_last_bit(made: Made, stepped: Opened, name: str, fmi: str) -> None:
    model = stepped(made(name, fmi=fmi))
    point = fl.operating_point(model, {model.inputs.names[0]: 0.5})
    point = model.advance(point, 0.5, 0.01)
    inputs = np.random.default_rng(46).normal(size=(20, len(model.inputs)))
    answers: dict[RunStart, list[FloatArray]] = {}
    for start in RunStart:
        model._session.set_run_start(start)
        assert start_of(model) is start
        responses = [model.respond(point, factor * inputs, 0.01) for factor in (1.0, 2.0, 1.0)]
        answers[start] = [part for r in responses for part in (r.at_once, r.after, r.states)]
    for state, copy, fresh in zip(*answers.values(), strict=True):
        np.testing.assert_array_equal(state, copy)
        np.testing.assert_array_equal(state, fresh)


@pytest.mark.parametrize("method", ["direct", "step", "response"])
def test_linear_models_are_the_same(made: Made, stepped: Opened, method: str) -> None:
    path = made("motor")
    linear = []
    for start in RunStart:
        model = stepped(path)
        model._session.set_run_start(start)
        linear.append(fl.linearize(model, stepping=Stepping(method=method)))
        assert start_of(model) is start
    for other in linear[1:]:
        for name in "ABCD":
            np.testing.assert_array_equal(getattr(linear[0], name), getattr(other, name))


def test_the_way_to_a_point_is_taken_once_however_many_runs_start_there(made: Made, stepped: Opened) -> None:
    steps: dict[RunStart, list[int]] = {}
    for start in RunStart:
        model = stepped(made("motor"))
        model._session.set_run_start(start)
        point = model.advance(model.start, 2.0, 0.01)
        steps[start] = [model.steps]
        for _ in range(10):
            model.respond(point, np.zeros((3, 2)), 0.01)
            steps[start].append(model.steps)
    assert steps[RunStart.STATE] == steps[RunStart.COPY] == [200 + 3 * k for k in range(11)]
    assert steps[RunStart.FRESH][-1] >= 10 * 200


def test_columns_cost_no_further_way_to_the_point(made: Made, stepped: Opened) -> None:
    """A model of 15 states and inputs, and one of 3, at t = 1 s: the difference is that of the runs alone."""
    counts: dict[str, list[int]] = {}
    for name in ("motor", "wide"):
        for start in (RunStart.STATE, RunStart.COPY):
            model = stepped(made(name))
            model._session.set_run_start(start)
            point = model.advance(model.start, 1.0, 0.01)
            before = model.steps
            fl.linearize(model, point, stepping=Stepping(method="step", step=0.01), keep_inaccurate=True)
            counts.setdefault(name, []).append(model.steps - before)
    for saved, copied in counts.values():
        assert copied == saved


def test_the_note_names_what_runs_start_from(made: Made, stepped: Opened) -> None:
    expected = exchanged(made, "motor")
    for flags, said in (
        ((), "cannot save its state, so every run starts from a copy of its process"),
        (("-DTHREAD",), "cannot save its state, so every run starts from a fresh instance"),
    ):
        linear = fl.linearize(stepped(made("motor", *flags, attributes=PLAIN, hidden=True)))
        assert said in remark(linear, "repetition")
        assert_same(linear, expected, 1e-7)


def test_code_that_allows_one_instance_needs_no_second_one(made: Made, stepped: Opened) -> None:
    model = stepped(made("motor", "-DONLY_ONCE", attributes=PLAIN))
    first = model.respond(model.start, np.ones((5, 2)), 0.01)
    model.respond(model.start, np.zeros((5, 2)), 0.01)
    again = model.respond(model.start, np.ones((5, 2)), 0.01)
    np.testing.assert_array_equal(first.after, again.after)
    assert not any("does not support a second instance" in note for note in model.notes)


def test_after_a_crash_runs_start_from_the_same_point(made: Made, stepped: Opened) -> None:
    model = stepped(made("motor", attributes=PLAIN))
    point = model.advance(fl.operating_point(model, {"V": 1.0}), 0.3, 0.01)
    first = model.respond(point, np.ones((5, 2)), 0.01)
    model._session.stepped.component.kill()
    again = model.respond(point, np.ones((5, 2)), 0.01)
    np.testing.assert_array_equal(first.after, again.after)
    assert start_of(model) is RunStart.COPY


def test_a_copy_that_has_ended_is_made_anew(made: Made, stepped: Opened) -> None:
    model = stepped(made("motor", attributes=PLAIN))
    point = model.advance(fl.operating_point(model, {"V": 1.0}), 0.3, 0.01)
    first = model.respond(point, np.ones((5, 2)), 0.01)
    model._session.stepped.component.drop_copy()
    for steps in (model.steps + 30 + 5, model.steps + 30 + 5 + 5):
        again = model.respond(point, np.ones((5, 2)), 0.01)
        np.testing.assert_array_equal(first.after, again.after)
        assert model.steps == steps
    assert start_of(model) is RunStart.COPY
