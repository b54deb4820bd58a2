"""How the invariants fare: the order of their drift, what projection and Baumgarte do about it, and the energy."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.manifold.selection import kinematic_pairs
from fmilin.models import LagrangeModel, MultiplierModel, NullSpaceModel
from fmilin.simulation import Baumgarte, Method, Projection, Underlying
from fmilin.simulation.inputs import input_course
from fmilin.simulation.stabilization import Plant
from fmilin.systems import cartesian_pendulum, five_bar, rolling_disk

ENERGY = "m*(vx^2 + vy^2)/2 + m*g*y"


def rk4(step: float) -> Method:
    return Method("RK4", longest_step=step)


def plant_of(model: fl.Model) -> Plant:
    start = fl.operating_point(model)
    return Plant(model, start, input_course(model.inputs, start.inputs, None), kinematic_pairs(model, start), None)


def test_drift_of_the_underlying_ode_is_of_the_order_of_the_method() -> None:
    drifts = [
        fl.simulate(
            cartesian_pendulum(angle=1.0), stop_time=1.0, step=0.1, stabilization="none", method=rk4(step)
        ).largest_drift
        for step in (0.02, 0.01, 0.005)
    ]
    orders = np.log2(np.array(drifts[:-1]) / np.array(drifts[1:]))
    assert (orders > 3.7).all()
    assert (orders < 5.3).all()


def test_projection_leaves_rounding_and_the_order_of_the_method() -> None:
    model = cartesian_pendulum(angle=1.0)
    exact = fl.simulate(model, stop_time=1.0, step=0.5, method=Method(relative=1e-12, absolute=1e-13))
    errors = []
    for step in (0.02, 0.01):
        motion = fl.simulate(model, stop_time=1.0, step=0.5, method=rk4(step))
        assert motion.largest_drift < 1e-13
        assert 0 < motion.statistics.projections <= motion.statistics.steps
        errors.append(abs(motion["angle"][-1] - exact["angle"][-1]))
    assert 3.5 < np.log2(errors[0] / errors[1]) < 5.5


def test_projection_moves_velocities_alone_for_velocity_constraints() -> None:
    """Section 3.1.3: dq = -G^+ g, then dv = -G^+ G v; positions on the manifold stay where they are."""
    from fmilin.simulation.projector import Projector

    plant = plant_of(cartesian_pendulum(angle=0.7))
    x = plant.model.start.states.copy()
    x[2:] += [0.3, 0.4]
    back = Projector(plant)(0.0, x)
    np.testing.assert_array_equal(back[:2], x[:2])
    along = np.array([np.cos(0.7), np.sin(0.7)])
    np.testing.assert_allclose(back[2:], along * (along @ x[2:]), atol=1e-15)


def test_projection_finds_the_nearest_point() -> None:
    from fmilin.simulation.projector import Projector

    plant = plant_of(cartesian_pendulum(angle=0.7))
    x = plant.model.start.states * 1.001
    np.testing.assert_allclose(Projector(plant)(0.0, x), plant.model.start.states, atol=1e-15)
    same = plant.model.start.states.copy()
    assert Projector(plant)(0.0, same) is same


@pytest.mark.parametrize("make", [lambda: cartesian_pendulum(angle=0.4, rate=2.0), five_bar])
def test_baumgarte_as_the_thesis_has_it(make: object) -> None:
    """Off the manifold 0 = g'' + 2 alpha g' + beta^2 g (3.8): by the model's own means, and by the general ones."""
    model: LagrangeModel = make()  # type: ignore[operator]
    alpha, beta = 3.0, 7.0
    for kind in (model, NullSpaceModel(model), MultiplierModel(model)):
        plant = plant_of(kind)
        running = Baumgarte(alpha, beta).start(plant)
        x = plant.model.start.states + 0.05 * np.random.default_rng(1).standard_normal(len(plant.scales))
        f = running.rates(0.0, x)
        h, H = plant.h(0.0, x), plant.gradient(0.0, x).H
        m = len(h) // 2
        second = (H @ f)[m:]  # d/dt of the rates of g
        np.testing.assert_allclose(second, -2 * alpha * h[m:] - beta**2 * h[:m], atol=1e-11)


def test_baumgarte_of_first_order_for_states_that_are_no_positions_and_velocities() -> None:
    """h' = -alpha h for all invariants of the rolling disk."""
    plant = plant_of(rolling_disk(speed=2.0))
    running = Baumgarte(4.0, 0.0).start(plant)
    x = plant.model.start.states.copy()
    h0 = plant.gradient(0.0, x).H @ plant.f(0.0, x)
    x[5] += 1e-3
    own = plant.gradient(0.0, x).H @ plant.f(0.0, x)
    np.testing.assert_allclose(h0, 0.0, atol=1e-12)
    change = plant.gradient(0.0, x).H @ running.rates(0.0, x) - own
    np.testing.assert_allclose(change, -4.0 * plant.h(0.0, x), atol=1e-9)


def test_baumgarte_holds_the_constraints_and_the_same_motion() -> None:
    model = cartesian_pendulum(angle=1.0)
    bare = fl.simulate(model, stop_time=12.0, step=0.2, stabilization="none", method=rk4(0.01))
    held = fl.simulate(model, stop_time=12.0, step=0.2, stabilization=Baumgarte(10, 10), method=rk4(0.01))
    assert np.abs(bare.drift[-10:]).max() > 1.5 * np.abs(bare.drift[:30]).max()  # it grows
    assert np.abs(held.drift[-10:]).max() < 0.3 * np.abs(bare.drift[-10:]).max()  # it does not
    np.testing.assert_allclose(held["angle"], bare["angle"], atol=2e-4)


def test_kept_energy_is_kept() -> None:
    model = cartesian_pendulum(angle=2.0, mass=3.0)
    coarse = Method(relative=1e-4, absolute=1e-6)
    kept = fl.simulate(model, stop_time=10.0, stabilization=Projection(keeps_energy=True), method=coarse, energy=ENERGY)
    lost = fl.simulate(model, stop_time=10.0, method=coarse, energy=ENERGY)
    first = -3.0 * 9.81 * np.cos(2.0)
    np.testing.assert_allclose(kept.energy, first, atol=1e-10)
    assert np.abs(lost.energy - first).max() > 1e-5
    assert kept.largest_drift < 1e-12


def test_energy_may_be_an_output_with_a_known_formula() -> None:
    motion = fl.simulate(five_bar(), stop_time=0.3, stabilization=Projection(keeps_energy=True), energy="energy")
    np.testing.assert_allclose(motion.energy, motion["energy"], rtol=1e-13)
    np.testing.assert_allclose(motion.energy, motion.energy[0], rtol=1e-12)
    np.testing.assert_allclose(motion["kinetic_energy"] + motion["potential_energy"], motion.energy, rtol=1e-12)


def test_energy_that_is_unknown_or_missing() -> None:
    model = cartesian_pendulum(angle=1.0)
    with pytest.raises(fl.UsageError, match=r"energy 'T \+ V' cannot be computed.*'T' is not a variable"):
        fl.simulate(model, stop_time=1.0, energy="T + V")
    with pytest.raises(fl.UsageError, match="Conserving the energy needs its value"):
        fl.simulate(model, stop_time=1.0, stabilization=Projection(keeps_energy=True))


def test_a_model_that_loses_energy_must_not_be_told_to_keep_it() -> None:
    driven = cartesian_pendulum(angle=0.0)
    with pytest.raises(fl.NumericalError, match="energy cannot be brought back"):
        fl.simulate(
            driven, stop_time=2.0, inputs={"F": 9.0}, stabilization=Projection(keeps_energy=True), energy="y - 1000*x"
        )


def test_options_out_of_range() -> None:
    with pytest.raises(fl.UsageError, match="rates, 0 or more, not -1 and 2"):
        Baumgarte(-1.0, 2.0)
    with pytest.raises(fl.UsageError, match="tolerance of the projection"):
        Projection(tolerance=-1e-3)
    with pytest.raises(fl.UsageError, match="not a way to choose coordinates"):
        fl.simulation.LocalForm(coordinates="diagonal")
    with pytest.raises(fl.UsageError, match="more than 1, not 1"):
        fl.simulation.LocalForm(limit=1.0)
    assert Underlying() == Underlying()
