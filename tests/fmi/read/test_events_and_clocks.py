"""Co-simulation FMUs with events inside a step, and with outputs that no equal run repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from tests.fmi.read.stepped import Made, exchanged, remark
from tests.fmus.stepped import make
from tests.identification.toys import transfer

SLOW = '<DefaultExperiment startTime="0" stopTime="500"/>'  # from which a step of 1 s follows


@pytest.fixture(scope="module")
def ball(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A ball that falls from 1 m and bounces after 0.45 s, without inputs."""

    def get(*flags: str) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(make.PLANTS, "ball", replace(make.PLANTS["ball"], inputs=()))
            kind = make.Kind(flags=flags, experiment=SLOW)
            return make.build("ball", tmp_path_factory.mktemp("ball"), kind)

    return get


@pytest.mark.parametrize("flags", [(), ("-DSTALE_RATES",)], ids=["derivatives", "steps"])
def test_a_default_step_that_holds_a_bounce_is_not_taken(
    ball: Callable[..., Path], stepped: Callable[..., fl.Model], flags: tuple[str, ...]
) -> None:
    linear = fl.linearize(stepped(ball(*flags)))
    np.testing.assert_allclose(linear.A, [[0.0, 1.0], [0.0, 0.0]], atol=1e-6)
    assert linear.is_equilibrium is False
    assert "Equilibrium no" in " ".join(repr(linear).split())


@pytest.mark.parametrize("flags", [("-DSTALE_RATES",), ("-DDEAF_STATES",)], ids=["states", "hidden"])
def test_a_step_that_is_asked_for_and_holds_a_bounce_is_an_error(
    ball: Callable[..., Path], stepped: Callable[..., fl.Model], flags: tuple[str, ...]
) -> None:
    with pytest.raises(fl.NumericalError):
        fl.linearize(stepped(ball(*flags)), stepping=fl.Stepping(step=1.0))


def test_the_map_of_a_step_with_an_event_is_not_that_of_two_halves(
    ball: Callable[..., Path], stepped: Callable[..., fl.Model]
) -> None:
    with pytest.raises(fl.NumericalError, match=r"and two steps of 0\.4 s differ"):
        fl.linearize(stepped(ball("-DSTALE_RATES")), stepping=fl.Stepping(method="step", step=0.8))


def test_a_relay_that_switches_later_is_not_in_the_model(made: Made, stepped: Callable[..., fl.Model]) -> None:
    linear = fl.linearize(stepped(made("relay", "-DSTALE_RATES", experiment=SLOW)))
    np.testing.assert_allclose(linear.A, [[-1.0]], rtol=1e-6)
    with pytest.raises(fl.NumericalError):
        fl.linearize(stepped(made("relay", "-DSTALE_RATES", experiment=SLOW)), stepping=fl.Stepping(step=1.0))


@pytest.mark.parametrize("hidden", [True, False], ids=["responses", "derivatives"])
def test_an_output_that_no_equal_run_repeats_is_left_out_and_named(
    made: Made, stepped: Callable[..., fl.Model], *, hidden: bool
) -> None:
    linear = fl.linearize(stepped(made("motor", "-DCLOCK=1", hidden=hidden)))
    assert linear.outputs.names == ("speed", "marker")
    assert "'current'" in remark(linear, "unrepeatable")
    expected = exchanged(made, "motor")
    for s in (0.3 + 0.5j, 0.3 + 4j):
        H = transfer(linear.A, linear.B, linear.C, linear.D, s)
        G = transfer(expected.A, expected.B, expected.C, expected.D, s)[[0, 2]]
        np.testing.assert_allclose(H, G, atol=1e-6 * np.max(np.abs(G)))
