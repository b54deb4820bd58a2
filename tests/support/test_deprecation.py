"""Old names of the documentation work for one version, and warn with the new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters.old_names import NEW_NAMES
from fmilin.composition.cosimulation import CoupledMode
from fmilin.design import FunctionRegulator
from fmilin.linear_model.modal import modal_analysis
from fmilin.models.mechanism import Body, Joint, MechanismDescription, assemble
from fmilin.signals import FloatArray
from fmilin.support.deprecation import rename_keywords, resolve_old_name


def cart() -> fl.LinearModel:
    model = fl.models.OdeModel("cart", {"x": "v", "v": "u - v - x"}, inputs=["u"], outputs={"y": "x"})
    return fl.linearize(model)


def pendulum() -> MechanismDescription:
    bodies = [Body("arm", 1.0, (0.5, 0, 0), (0, 0.1, 0.1))]
    return MechanismDescription("pendulum", bodies, [Joint("hinge", "revolute", "ground", "arm")])


def push(force: float) -> FunctionRegulator:
    return FunctionRegulator(lambda t, read: [force], ["x"], ["u"], 0.1)


class OldPush(FunctionRegulator):
    """A regulator as users wrote it for fmilin 0.3: pushes until the outputs that were applied sum up to 1."""

    def __init__(self) -> None:
        self.total = 0.0
        super().__init__(lambda t, read: [0.4 if self.total < 1 else 0.0], ["x"], ["u"], 0.1)

    def applied(self, outputs: FloatArray) -> None:
        self.total += float(outputs[0])


class OldLaw:
    """The same without a base class of fmilin."""

    reads, drives, sample_time = ("x",), ("u",), 0.1

    def __init__(self) -> None:
        self.total = 0.0

    def restart(self) -> None:
        self.total = 0.0

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        return np.array([0.4 if self.total < 1 else 0.0])

    def applied(self, outputs: FloatArray) -> None:
        self.total += float(outputs[0])


NOISE: dict[str, Any] = {"process": {"u": 0.5}, "measured": {"y": 1e-3}}
ALIASES: dict[tuple[str, str], tuple[Callable[[], object], Callable[[], object]]] = {
    ("kalman_filter(held=)", "hold_noise"): (
        lambda: fl.design.kalman_filter(cart(), 0.1, **NOISE, held=True).gain,  # type: ignore[call-arg]
        lambda: fl.design.kalman_filter(cart(), 0.1, **NOISE, hold_noise=True).gain,
    ),
    ("assemble(held=)", "fixed_states"): (
        lambda: assemble(pendulum(), held=["hinge.q"]),  # type: ignore[call-arg]
        lambda: assemble(pendulum(), fixed_states=["hinge.q"]),
    ),
    ("Stepping(way=)", "method"): (lambda: fl.Stepping(way="step"), lambda: fl.Stepping(method="step")),
    ("Limits(caged=)", "unrestricted"): (lambda: fl.Limits(caged=False), lambda: fl.Limits(unrestricted=True)),
    ("ModalAnalysis.reached", "reachable_amplitudes"): (
        lambda: modal_analysis(cart()).reached,
        lambda: modal_analysis(cart()).reachable_amplitudes,
    ),
    ("ModalAnalysis.shown", "output_norms"): (
        lambda: modal_analysis(cart()).shown,
        lambda: modal_analysis(cart()).output_norms,
    ),
    ("reduction.Peak.seen", "attained"): (lambda: fl.reduction.Peak(2.0, 2.1, 1.0).seen, lambda: 2.0),
    ("CoupledMode.seen", "apparent"): (lambda: CoupledMode(-1, 0.9, -1.05, resolved=True).seen, lambda: -1.05),
    ("formulations.Motion", "ConstraintMotion"): (
        lambda: fl.formulations.Motion,
        lambda: fl.formulations.ConstraintMotion,
    ),
    ("Signal.starting_at", "with_start"): (
        lambda: fl.Signal("x").starting_at(2.0),
        lambda: fl.Signal("x").with_start(2.0),
    ),
    ("Signals.starting_at", "with_start"): (
        lambda: cart().states.starting_at([1.0, 2.0]).starts,
        lambda: cart().states.with_start([1.0, 2.0]).starts,
    ),
    ("Conditioning.applied", "apply"): (
        lambda: fl.reduction.Conditioning(order=1).applied(cart()).A,
        lambda: fl.reduction.Conditioning(order=1).apply(cart()).A,
    ),
    ("FunctionRegulator.applied", "update_states"): (
        lambda: push(0.1).applied(np.zeros(1)),
        lambda: push(0.1).update_states(np.zeros(1)),
    ),
    **{
        (f"adapters.{old}", new): (
            lambda old=old: getattr(fl.adapters, old),  # type: ignore[misc]
            lambda new=new: getattr(fl.adapters, new),  # type: ignore[misc]
        )
        for old, new in NEW_NAMES.items()
    },
}


@pytest.mark.parametrize(("old", "new"), ALIASES, ids=[old for old, _ in ALIASES])
def test_an_old_name_gives_what_the_new_one_gives_and_names_it(old: str, new: str) -> None:
    use_old_name, use_new_name = ALIASES[old, new]
    with pytest.warns(DeprecationWarning, match=new) as warnings:
        former = use_old_name()
    assert [warning.filename for warning in warnings] == [__file__]  # the line that has to be changed
    np.testing.assert_equal(former, use_new_name())


@pytest.mark.parametrize("law", [OldPush(), OldLaw()], ids=["derived", "own class"])
def test_a_regulator_with_applied_gets_the_outputs_and_a_warning(law: Any) -> None:
    model = fl.models.OdeModel("cart", {"x": "v", "v": "u - v - x"}, inputs=["u"], outputs={"y": "x"})
    with pytest.warns(DeprecationWarning, match="'Old[A-Za-z]+.applied' is called 'update_states' now"):
        motion = fl.closed_loop(model, law, stop_time=0.55)
    assert law.total == pytest.approx(1.2)
    np.testing.assert_allclose([motion["u"].max(), motion["u"][-1]], [0.4, 0.0])


def test_an_argument_under_both_names_is_rejected() -> None:
    @rename_keywords(held="hold_noise")
    def hold(*, hold_noise: bool = False) -> bool:
        return hold_noise

    with pytest.raises(fl.UsageError, match="'held' is the old name of 'hold_noise': leave 'held' out"):
        hold(held=True, hold_noise=True)  # type: ignore[call-arg]


def test_a_name_that_a_module_never_had_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'fmilin' has no attribute 'nothing'"):
        resolve_old_name("fmilin", "nothing", {"old": "new"})
