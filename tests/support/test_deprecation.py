"""Old names of the documentation work for one version, and warn with the new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters.old_names import NEW_NAMES
from fmilin.composition.cosimulation import CoupledMode
from fmilin.linear_model.modal import modal_analysis
from fmilin.models.mechanism import Body, Joint, MechanismDescription, assemble
from fmilin.support.deprecation import rename_keywords, resolve_old_name


def cart() -> fl.LinearModel:
    model = fl.models.OdeModel("cart", {"x": "v", "v": "u - v - x"}, inputs=["u"], outputs={"y": "x"})
    return fl.linearize(model)


def pendulum() -> MechanismDescription:
    bodies = [Body("arm", 1.0, (0.5, 0, 0), (0, 0.1, 0.1))]
    return MechanismDescription("pendulum", bodies, [Joint("hinge", "revolute", "ground", "arm")])


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


def test_an_argument_under_both_names_is_rejected() -> None:
    @rename_keywords(held="hold_noise")
    def hold(*, hold_noise: bool = False) -> bool:
        return hold_noise

    with pytest.raises(fl.UsageError, match="'held' is the old name of 'hold_noise': leave 'held' out"):
        hold(held=True, hold_noise=True)  # type: ignore[call-arg]


def test_a_name_that_a_module_never_had_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'fmilin' has no attribute 'nothing'"):
        resolve_old_name("fmilin", "nothing", {"old": "new"})
