"""Co-simulation FMUs that do not keep to the standard: the same linear model, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Stepping
from fmilin.errors import ModelError
from fmilin.fmi.read.stepped_model import SteppedFmu
from tests.fmi.read.stepped import PREFERRED, Made, assert_same, constraints_of, exchanged, remark
from tests.fmus.stepped.make import Kind


@pytest.mark.parametrize(
    ("flag", "method", "said"),
    [
        ("-DSTALE", "steps", "calculates its outputs at the end of a step only"),
        ("-DDEAF_STATES", "responses", "does not keep a value set"),
        ("-DREFUSES_STATES", "responses", "cannot be set between two steps, nor as start values"),
        ("-DSTRICT", "differences", "set as start values of fresh instances"),
        ("-DSTALE_RATES", "steps", "derivatives do not follow"),
        ("-DKEEPS_INPUTS", "differences", "does not restore the inputs, so every run is preceded"),
        ("-DRESTARTS", "differences", "method direct"),
        ("-DRESTORES_NOTHING", "differences", "method direct"),
        (
            "-DBREAKS_PROMISE",
            "differences",
            "declares that it can save its state but does not, so each run starts from a copy",
        ),
        ("-DREFUSES_STEPS=0.05", "differences", "method direct"),
    ],
)
def test_misbehaviour_does_not_spoil_the_model(
    made: Made, stepped: Callable[..., SteppedFmu], flag: str, method: str, said: str
) -> None:
    linear = fl.linearize(stepped(made("motor", flag)))
    assert_same(linear, exchanged(made, "motor", linear.states.names), 1e-7)
    assert linear.method.derivatives == method
    assert said in " ".join(map(str, linear.warnings))


@pytest.mark.parametrize("flag", ["-DKEEPS_INPUTS", "-DRESTORES_NOTHING", "-DBREAKS_PROMISE", "-DSTALE", "-DRESTARTS"])
def test_misbehaviour_does_not_spoil_what_is_found_from_responses(
    made: Made, stepped: Callable[..., SteppedFmu], flag: str
) -> None:
    linear = fl.linearize(stepped(made("motor", flag, hidden=True)))
    # a solver that restarts makes another error in the first step of each run
    assert_same(linear, exchanged(made, "motor"), 2e-3 if flag == "-DRESTARTS" else 1e-7)


@pytest.mark.parametrize(
    ("flags", "instead"), [((), "a copy of its process"), (("-DTHREAD",), "a fresh instance")], ids=["copy", "fresh"]
)
def test_restoring_nothing_is_noticed_and_something_else_used(
    made: Made, stepped: Callable[..., SteppedFmu], flags: tuple[str, ...], instead: str
) -> None:
    linear = fl.linearize(stepped(made("motor", "-DRESTORES_NOTHING", *flags, hidden=True)))
    assert f"does not restore all of its state, so every run starts from {instead}" in remark(linear, "repetition")


def test_a_broken_promise_without_copies_means_fresh_instances(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    linear = fl.linearize(stepped(made("motor", "-DBREAKS_PROMISE", "-DTHREAD")))
    assert_same(linear, exchanged(made, "motor", linear.states.names), 1e-7)
    assert "every run starts from a fresh instance" in " ".join(map(str, linear.warnings))


@pytest.mark.parametrize("flags", [(), ("-DTHREAD",)], ids=["copy", "fresh"])
def test_without_saved_states_copies_or_fresh_instances_are_led_to_the_point(
    made: Made, stepped: Callable[..., SteppedFmu], flags: tuple[str, ...]
) -> None:
    path = made("motor", *flags, attributes="", hidden=True)
    linear = fl.linearize(stepped(path))
    assert "cannot save its state" in remark(linear, "repetition")
    assert_same(linear, exchanged(made, "motor"), 1e-7)


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("method", ["direct", "step"])
def test_an_fmu_that_keeps_to_the_standard_is_linearized_with_its_constraints(
    made: Made, stepped: Callable[..., SteppedFmu], fmi: str, method: str
) -> None:
    """States can only be set until initialization ends: fresh instances take them as start values."""
    model = stepped(made("four_bar", "-DSTRICT", fmi=fmi), constraints=constraints_of("four_bar"))
    linear = fl.linearize(model, independent=("phi", "w"), stepping=Stepping(method=method))
    assert_same(linear, exchanged(made, "four_bar", ("phi", "w")), 1e-8)
    point = fl.operating_point(model, {"phi": 2.0})
    elsewhere = fl.linearize(model, point, independent=("phi", "w"), stepping=Stepping(method=method))
    with fl.load(made("four_bar", interface="ModelExchange"), constraints=constraints_of("four_bar")) as exchange:
        expected = fl.linearize(exchange, point, independent=("phi", "w"))
    # a step from a point that is no equilibrium leads away from it
    np.testing.assert_allclose(elsewhere.A, expected.A, atol=1e-8 if method == "direct" else 1.0)
    assert elsewhere.point.states["phi"] == 2.0


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_a_point_may_be_the_first_thing_that_a_strict_fmu_is_asked_for(
    made: Made, stepped: Callable[..., SteppedFmu], fmi: str
) -> None:
    """It moves by itself there: responses are compared for as long as it has not moved far."""
    constraints = constraints_of("four_bar")
    model = stepped(made("four_bar", "-DSTRICT", fmi=fmi), constraints=constraints)
    point = fl.operating_point(model, {"phi": 2.0})
    linear = fl.linearize(model, point, independent=("phi", "w"))
    with fl.load(made("four_bar", interface="ModelExchange"), constraints=constraints) as exchange:
        expected = fl.linearize(exchange, point, independent=("phi", "w"))
    assert expected.f0.any()
    assert_same(linear, expected, 1e-8)
    assert "(method direct)" in remark(linear, "method")


def test_states_that_are_refused_in_every_way_are_one_sentence(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    model = stepped(made("four_bar", "-DREFUSES_STATES"), constraints=constraints_of("four_bar"))
    with pytest.raises(ModelError, match=r"states of 'four_bar.fmu' cannot be set between two steps, nor as start"):
        model.evaluate(model.start.time, model.start.states + 0.1, model.start.inputs)
    at_start = model.evaluate(model.start.time, model.start.states, model.start.inputs)
    assert np.isfinite(at_start.derivatives).all()


def test_states_cannot_be_set_on_the_way_of_a_strict_fmu(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    model = stepped(made("motor", "-DSTRICT"))
    later = model.advance(fl.operating_point(model, {"i": 1.0, "V": 2.0}), 0.5, 0.01)
    assert later.states[0] > 1.0
    linear = fl.linearize(model, later)
    assert linear.method.derivatives == "responses"
    assert_same(linear, exchanged(made, "motor", linear.states.names), 1e-7)


def test_directional_derivatives_are_taken_where_states_cannot_be_set(
    made: Made, stepped: Callable[..., SteppedFmu]
) -> None:
    attributes = 'canHandleVariableCommunicationStepSize="true" SAVES providesDirectionalDerivative="true"'
    linear = fl.linearize(stepped(made("motor", "-DREFUSES_STATES", attributes=attributes)))
    assert_same(linear, exchanged(made, "motor", linear.states.names), 1e-7)
    assert linear.method.derivatives == "exact"
    assert "without confirmation" in remark(linear, "method")


def test_noise_is_measured_and_multisines_hear_through_it(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    path = made("motor", "-DNOISE=1e-3", hidden=True)
    model = stepped(path).with_interface(None, ["speed", "current"])
    linear = fl.linearize(model, stepping=Stepping(method="multisine", step=0.1, order=2))
    np.testing.assert_allclose(linear.eigenvalues(), [-4.618034, -2.381966], rtol=1e-2)
    assert "is not reproducible: equal runs differ by" in remark(linear, "repetition")


def test_a_hidden_state_beside_declared_ones_is_noticed(
    made: Made, stepped: Callable[..., SteppedFmu], tmp_path: Path
) -> None:
    """Only the current is declared: its derivative alone makes a model that responses refute."""
    from tests.fmus.make import pack
    from tests.fmus.stepped.make import PLANTS, description

    whole = made("motor")
    xml = description("motor", PLANTS["motor"], Kind())
    for name in ("w", "angle"):
        xml = xml.replace(f'name="der({name})" ', f'name="rate of {name}" ')
    import re
    import zipfile

    xml = re.sub(r' derivative="[23]"', "", xml).replace('<Unknown index="5"/><Unknown index="6"/></Deriv', "</Deriv")
    with zipfile.ZipFile(whole) as archive:
        members: dict[str, bytes | str] = {m: archive.read(m) for m in archive.namelist()}
    path = pack(tmp_path / "motor.fmu", members | {"modelDescription.xml": xml})
    model = stepped(path)
    assert model.states.names == ("i",)
    linear = fl.linearize(model)
    assert "is off by" in remark(linear, "other-method")
    np.testing.assert_allclose(linear.eigenvalues().real, [-4.618034, -2.381966, 0.0], atol=1e-6)


@pytest.mark.parametrize("flags", [(), ("-DRESTARTS",), ("-DNOISE=1e-6",)], ids=str)
@pytest.mark.parametrize("method", ["step", "response"])
def test_estimated_errors_are_of_the_size_of_the_true_ones(
    made: Made, stepped: Callable[..., SteppedFmu], flags: tuple[str, ...], method: str
) -> None:
    """A solver that restarts in each run errs without contradicting itself: only held-out responses tell."""
    states = PREFERRED["motor"]
    exact = exchanged(made, "motor", states)
    linear = fl.linearize(stepped(made("motor", *flags)), independent=states, stepping=Stepping(method=method))
    for name in "ABCD":
        true = np.max(np.abs(getattr(linear, name) - getattr(exact, name)))
        assert true <= 10 * np.max(getattr(linear.errors, name)) + 1e-9, name
        assert np.max(getattr(linear.errors, name)) <= 0.01 * max(np.max(np.abs(getattr(exact, name))), 1.0)
