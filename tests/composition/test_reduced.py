"""Members of connected systems that are reduced by what matters in the closed system."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.reduction import error_bound
from fmilin.systems import four_bar
from tests.reduction.cases import masses_and_springs

SLOW_LAW = control.ss([[-3.0, 1.0], [0.0, -8.0]], [[0.0], [1.0]], [[2.0, 0.0]], [[0.5]], inputs="e", outputs="u")


def chain(gain: float = -0.1) -> ConnectedModel:
    members = {"chain": masses_and_springs(6, 0.05), "law": SLOW_LAW}
    wires = [("chain.out[1]", "law.e", gain)]
    return fl.connect(members, wires, inputs=["chain.u[1]"], outputs=["law.u", "chain.out[1]"])


def stabilized(gain: float = 1.0, damping: float = 0.2) -> ConnectedModel:
    """A plant that falls over, with a fast part that hardly matters, and a lead that holds it."""
    A = [[0, 1, 0, 0], [2.0, -damping, 0.1, 0], [0, 0, -20, 3], [0, 0, -3, -21]]
    plant = control.ss(A, [[0], [1], [1], [2]], [[1, 0, 0.01, 0.02]], [[0]], inputs="u", outputs="y")
    lead = control.ss([[-30.0]], [[1.0]], [[-600.0]], [[28.0]], inputs="e", outputs="u")
    return fl.connect({"plant": plant, "law": lead}, [("plant.y", "law.e", -gain), ("law.u", "plant.u")])


@pytest.mark.parametrize("orders", [{"chain": 6}, {"chain": 8, "law": 1}])
def test_the_bound_of_the_whole_holds(orders: dict[str, int]) -> None:
    system = chain()
    small = fl.reduce_members(system, orders)
    full, reduced = fl.linearize(system), fl.linearize(small)
    assert len(reduced.states) == sum(orders.get(name, own) for name, own in {"chain": 12, "law": 2}.items())
    s = 1j * np.linspace(0.0, 3.0, 1500)
    gaps = np.moveaxis(full.to_control()(s) - reduced.to_control()(s), -1, 0)
    sampled = np.linalg.norm(gaps.reshape(len(s), 2, 1), 2, axis=(1, 2)).max()
    bound = error_bound(full, reduced).bound
    assert sampled <= bound <= 1.02 * sampled
    assert f"differs by more than {bound:.3g}" in small.notes[0]


def test_all_orders_keep_everything() -> None:
    system = chain()
    small = fl.linearize(fl.reduce_members(system, {"chain": 12, "law": 2}))
    assert error_bound(fl.linearize(system), small).bound < 1e-10


def test_a_member_that_is_unstable_alone_keeps_the_margins() -> None:
    system = stabilized()
    small = fl.reduce_members(system, {"plant": 2})
    full, reduced = (fl.design.margins(fl.loop_transfer(s, "plant.u")) for s in (system, small))
    assert reduced.stable
    assert (reduced.phase, reduced.disk) == pytest.approx((full.phase, full.disk), rel=1e-3)


def test_a_constrained_member_stays_as_its_linear_model() -> None:
    wires = [("bar.phi", "law.e", -1.0), ("law.u", "bar.torque")]
    system = fl.connect({"bar": four_bar(damping=0.5), "law": SLOW_LAW}, wires)
    point = fl.trim(system)
    small = fl.linearize(fl.reduce_members(system, {"law": 1}, point))
    assert small.states.names == ("bar.phi", "bar.w", "law.balanced[1]")
    np.testing.assert_allclose(small.f0, 0.0, atol=1e-9)
    full = fl.linearize(system, point)
    slow = full.eigenvalues()[np.abs(full.eigenvalues()) < 3]
    assert max(np.abs(small.eigenvalues() - s).min() for s in slow) < 0.05


def test_what_cannot_be_reduced() -> None:
    with pytest.raises(UsageError, match="Members can be reduced only in a connected system"):
        fl.reduce_members(four_bar(), {"bar": 1})
    with pytest.raises(UnknownNameError, match=r"'chan' is not a member\. Did you mean 'chain'"):
        fl.reduce_members(chain(), {"chan": 4})
    for order in (13, -1):
        with pytest.raises(UsageError, match=rf"'chain' has order 12, and cannot be reduced to {order}"):
            fl.reduce_members(chain(), {"chain": order})
    with pytest.raises(NumericalError, match="The closed system is not stable"):
        fl.reduce_members(stabilized(0.0), {"plant": 2})
    with pytest.raises(
        NumericalError, match=r"reduced \(law to 0 of 1\) the closed system is unstable: request higher"
    ):
        fl.reduce_members(stabilized(damping=-0.5), {"law": 0})
    sampled = fl.connect(
        {"chain": masses_and_springs(2), "law": control.c2d(SLOW_LAW, 0.1)}, [("chain.out[1]", "law.e")]
    )
    with pytest.raises(UsageError, match="'law' is sampled: reduce it by itself"):
        fl.reduce_members(sampled, {"law": 1})


def test_a_sampled_member_stays_and_the_loop_is_nearly_the_same() -> None:
    step, w = 0.05, np.geomspace(0.1, 60, 40)
    A = np.diag([-0.5, -1.0, -40.0, -300.0])
    A[0, 1], A[1, 0] = 2.0, -2.0
    plant = control.ss(A, np.ones((4, 1)), [[1, 0.5, 0.2, 0.1]], 0, inputs="u", outputs="y")
    law = control.ss([[0.6]], [[1.0]], [[0.2]], [[0.15]], step, inputs="e", outputs="u")
    system = fl.connect({"plant": plant, "law": law}, [("plant.y", "law.e", -1.0), ("law.u", "plant.u")])
    small = fl.reduce_members(system, {"plant": 2})
    assert "Sampled members (law) stay as they are" in small.notes[0]
    full, reduced = (fl.loop_transfer(s, "law.e") for s in (system, small))
    assert (len(full.states), len(reduced.states), reduced.sample_time) == (5, 3, step)
    off = np.abs(full.to_control()(np.exp(1j * w * step)) - reduced.to_control()(np.exp(1j * w * step)))
    assert off.max() < 0.02
