"""Sweeps of delays: rightmost eigenvalues and changes of stability against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import lambertw

import fmilin as fl
from fmilin.families.delayed_family import DelayedFamily
from fmilin.models import OdeModel


def make_tank() -> fl.Model:
    """Return h' = -k h(t - T): its eigenvalues are W(-k T)/T, and it becomes unstable at k T = pi/2."""
    return OdeModel("tank", {"h": "-k*delay(h, T)"}, parameters={"T": 0.1, "k": 2.0})


def test_a_grid_of_a_parameter_and_a_delay_has_lamberts_eigenvalues_and_the_exact_limits() -> None:
    family = fl.sweep(make_tank(), {"k": [1.0, 2.0]}, delays={"h": [0.5, 1.0, 2.0]})
    assert isinstance(family, DelayedFamily)
    assert family.shape == (2, 3)
    for i, k in enumerate([1.0, 2.0]):
        for j, T in enumerate([0.5, 1.0, 2.0]):
            exact = lambertw(-k * T, 0) / T
            assert abs(family.eigenvalues[i, j, -1] - complex(exact.real, abs(exact.imag))) < 1e-12
            assert family[i, j].delays == {"h": T}
    assert family.unstable.tolist() == [[0, 0, 2], [0, 2, 2]]
    limits = [change.delays["h"] for change in family.changes]
    np.testing.assert_allclose(limits, [np.pi / 2, np.pi / 4], rtol=1e-12)
    np.testing.assert_allclose([change.frequency for change in family.changes], [1.0, 2.0], rtol=1e-12)
    assert [change.at for change in family.changes] == [{"k": 1.0}, {"k": 2.0}]
    assert "Stability changes at k = 2, h = 0.785398 s: 0 to 2 growing" in repr(family)


def test_a_delay_that_is_a_parameter_is_swept_as_one_also_of_a_member() -> None:
    alone = fl.sweep(make_tank(), {"T": [0.5, 1.0]}, delays={})
    system = fl.connect({"a": fl.connect({"tank": make_tank()}, [], delays={})}, [], delays={})
    member = fl.sweep(system, {"a.tank.T": [0.5, 1.0]}, delays={})
    assert [lin.delays for lin in member] == [{"a.tank.h": 0.5}, {"a.tank.h": 1.0}]
    np.testing.assert_allclose(member.eigenvalues, alone.eigenvalues, atol=1e-13)
    assert member.changes == ()  # no axis is a delay: nothing is interpolated
    with pytest.raises(fl.UsageError, match=r"Sweep its rightmost eigenvalues with delays=\{\}"):
        fl.sweep(make_tank(), {"T": [0.5, 1.0]})


def test_points_are_trimmed_and_failures_are_marked() -> None:
    """At n = K the logistic equation is x' = -r x(t - T)."""
    growth = OdeModel(
        "growth", {"n": "sqrt(r)*n*(1 - delay(n, 1.0)/K)"}, parameters={"r": 1.0, "K": 2.0}, start={"n": 1.5}
    )
    family = fl.sweep(growth, {"r": [1.0, 4.0, -1.0], "K": [2.0, 3.0, 4.0]}, zipped=True, trim=True, delays={})
    assert family.ok.tolist() == [True, True, False]
    assert [lin.point.states["n"] for lin in family[:2]] == pytest.approx([2.0, 3.0])
    np.testing.assert_allclose(family.eigenvalues[0, -1], lambertw(-1.0, 0), rtol=1e-9)
    assert family.unstable.tolist() == [0, 2, -1]
    with pytest.raises(fl.NumericalError, match="There is no linear model at r = -1, K = 4"):
        family[2]


def test_delays_that_are_taken_together_are_one_line() -> None:
    plant = OdeModel("plant", {"x": "u"}, inputs=["u"], outputs={"y": "-x"})
    loop = fl.connect({"plant": plant}, [("plant.y", "plant.u")])
    family = fl.sweep(loop, delays={"plant.u": [1.0, 2.0]}, zipped=True)
    assert [change.delays for change in family.changes] == [pytest.approx({"plant.u": np.pi / 2})]
    for wrong, text in (
        ({"delays": {"plant.u": [-1.0]}}, "a delay is not negative"),
        ({"delays": {"plant.u": [1.0]}, "jobs": 2}, "is computed in this process"),
        ({"delays": {"plant.v": [1.0]}}, "'plant.v' is not"),
        ({"vary": {"plant.x": [1.0]}, "delays": {"plant.x": [1.0]}}, "varied as a value and as a delay"),
    ):
        with pytest.raises(fl.UsageError, match=text):
            fl.sweep(loop, **wrong)
