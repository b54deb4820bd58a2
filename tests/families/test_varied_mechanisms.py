"""Masses, springs, dampers and weight of mechanisms as columns of a batch: the numbers are those of single calls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import FmilinError
from fmilin.families.batch import BatchLinearizer
from fmilin.models.batch_graph import may_move_constraints
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription, PointSpring, Sensor
from fmilin.signals import FloatArray
from fmilin.systems import loader

COUNT = 5
STRETCH = np.linspace(0.8, 1.3, COUNT)


def make_crane(**changes: object) -> Mechanism:
    """Return a trolley on a spring that carries a load on a ball joint, with a spring between two points."""
    rod = {"mass": 2.0, "center": (0.0, 0.1, -0.5), "inertia": (0.3, 0.3, 0.1, 0.01, 0.0, 0.02)}
    description = MechanismDescription(
        "crane",
        bodies=[Body("trolley", 5.0, inertia=(1.0, 1.0, 1.0)), Body("load", **(rod | changes))],  # type: ignore[arg-type]
        joints=[
            Joint("rail", "prismatic", "ground", "trolley", axis=(1, 0, 0), stiffness=40.0, rest=0.1, damping=2.0),
            Joint("hook", "spherical", "trolley", "load", damping=(0.2, 0.1, 0.3)),
        ],
        springs=[
            PointSpring("rope", "ground", "load", (1.0, 2.0, 0.0), (0.0, 0.0, -1.0), stiffness=30.0, length=0.5),
            PointSpring("stay", "ground", "load", (-1.0, 1.0, 0.0), (0.0, 0.0, -0.5), stiffness=10.0),
        ],
        sensors=[Sensor("energy", "energy"), Sensor("pull", "acceleration", "load", (0.1, 0.0, -1.0), (1.0, 0.0, 0.0))],
        gravity=(0.0, 0.5, -9.81),
    )
    return Mechanism(description)


def require_same_as_single(model: fl.Model, linearize: BatchLinearizer, columns: Mapping[str, FloatArray]) -> None:
    """Assert that each of the points, at the reference with other parameters, is that of a single call."""
    start = linearize.linear.point
    states = np.tile(list(start.states.values()), (COUNT, 1))
    family = linearize(states, parameters=columns)
    assert linearize.computes_together
    assert family.ok.all(), family.reasons
    for number in range(COUNT):
        values = {name: float(column[number]) for name, column in columns.items()}
        single = fl.linearize(
            model.with_parameters(values),
            fl.OperatingPoint(start.time, states[number], np.array(list(start.inputs.values()))),
            independent=list(linearize.coordinates.names),
        )
        together = family[number]
        for matrix in "ABCDT":
            expected = getattr(single, matrix)
            atol = 1e-12 * max(np.abs(single.A).max(), np.abs(expected).max(initial=0.0))
            np.testing.assert_allclose(getattr(together, matrix), expected, rtol=1e-10, atol=atol, err_msg=matrix)
        np.testing.assert_allclose(together.f0, single.f0, rtol=1e-10, atol=1e-11)


def test_every_parameter_that_moves_no_constraint_may_be_a_column() -> None:
    model = make_crane()
    numbers = ("placement", "_point", "hook.stiffness")  # the last must be zero, for it belongs to a quaternion
    names = [name for name in model.parameters if not any(part in name for part in numbers)]
    assert len(names) == 3 + 2 * 10 + 3 + 2 * 3 + 2 * 3
    assert model.in_varied_graph(["hook.stiffness[1]"]) is None
    point = fl.operating_point(model, {"rail.q": 0.3, "rail.v": 0.2, "hook.wx": 0.4})
    linearize = fl.batch(model, point, vary=names)
    generator = np.random.default_rng(53)
    columns = {name: model.parameters[name] + generator.uniform(0.0, 0.01, COUNT) for name in names}
    assert columns["stay.length"].all()  # springs without a free length have no direction, but here they need one
    require_same_as_single(model, linearize, columns)


def test_masses_of_a_mechanism_with_loops() -> None:
    model = loader()
    columns = {"bucket.mass": model.parameters["bucket.mass"] * STRETCH, "gravity.y": -9.81 * STRETCH}
    require_same_as_single(model, fl.batch(model, vary=list(columns)), columns)


def test_frequencies_of_a_mass_on_a_spring_are_those_of_its_formula() -> None:
    description = MechanismDescription(
        "mass",
        bodies=[Body("block", 2.0)],
        joints=[Joint("rail", "prismatic", "ground", "block", axis=(1, 0, 0), stiffness=8.0)],
    )
    mass, stiffness = np.meshgrid([1.0, 2.0, 4.0], [1.0, 9.0, 25.0])
    family = fl.batch(Mechanism(description), vary=["block.mass", "rail.stiffness"]).at(
        {"block.mass": mass.ravel(), "rail.stiffness": stiffness.ravel()}
    )
    frequencies = np.abs(np.linalg.eigvals(family.A)).max(axis=1)
    np.testing.assert_allclose(frequencies, np.sqrt(stiffness / mass).ravel(), rtol=1e-13)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("load.mass", -1.0, "a mass must be positive"),
        ("load.inertia.xx", 2.0, "cannot have this inertia"),
        ("load.inertia.zz", -0.1, "cannot have this inertia"),
        ("rope.length", -0.1, "free length of .* must not be negative"),
    ],
)
def test_values_that_no_mechanism_has_are_rejected_as_in_a_single_call(name: str, wrong: float, message: str) -> None:
    model = make_crane()
    linearize = fl.batch(model, vary=[name])
    values = np.full(COUNT, model.parameters[name])
    values[2] = wrong
    family = linearize(np.tile(model.start.states, (COUNT, 1)), parameters={name: values})
    assert family.ok.tolist() == [True, True, False, True, True]
    with pytest.raises(FmilinError, match=message) as failure:
        fl.linearize(model.with_parameters({name: wrong}))
    assert str(failure.value) in family.reasons[2]


def test_places_of_joints_are_geometry_and_their_points_are_computed_alone() -> None:
    model = loader()
    assert not may_move_constraints(model, ["bucket.mass", "boom.damping"])
    assert may_move_constraints(model, ["bucket.placement.x"])
    name = "bucket.placement.x"
    values = model.parameters[name] + np.array([0.0, 0.01])
    linearize = fl.batch(model, vary=[name])
    family = linearize.at({name: values, "boom.q": model.start.states[0]})
    assert not linearize.computes_together
    assert family.ok.all(), family.reasons
    moved = model.with_parameters({name: float(values[1])})
    point = fl.operating_point(moved, {"boom.q": float(model.start.states[0])})
    single = fl.linearize(moved, point, independent=list(linearize.coordinates.names))
    np.testing.assert_allclose(family.A[1], single.A, rtol=1e-9)


def test_weight_of_compensated_bodies_is_a_constant_force_and_no_symbol() -> None:
    model = make_crane(gravity_compensation=0.5)
    for name in ("load.mass", "load.center.x", "gravity.z"):
        assert model.in_varied_graph([name]) is None
    assert model.in_varied_graph(["load.inertia.xx", "trolley.mass"]) is not None
    masses = np.array([1.5, 2.5])
    family = fl.batch(model, vary=["load.mass"]).at({"load.mass": masses})
    expected = [fl.linearize(model.with_parameters({"load.mass": mass})).A for mass in masses]
    np.testing.assert_allclose(family.A, expected, rtol=1e-12, atol=1e-12)


def test_sweeps_of_masses_are_computed_together_with_the_numbers_of_single_points() -> None:
    model = loader()
    masses, angles = np.linspace(800.0, 1600.0, 6), np.linspace(-0.3, -0.2, 4)
    family = fl.sweep(model, {"bucket.mass": masses, "boom.q": angles})
    assert family.ok.all()
    for i, j in ((0, 0), (3, 2), (5, 3)):
        heavy = model.with_parameters({"bucket.mass": float(masses[i])})
        point = fl.operating_point(heavy, {"boom.q": float(angles[j])})
        np.testing.assert_allclose(family.x0[i, j], point.states, atol=1e-12)
        single = fl.linearize(heavy, point, independent=list(family.states.names))
        np.testing.assert_allclose(family.A[i, j], single.A, rtol=1e-9, atol=1e-11 * np.abs(single.A).max())


def test_equilibria_over_masses_are_those_of_single_trims() -> None:
    model = make_crane()
    masses = np.linspace(1.0, 3.0, 12)
    family = fl.sweep(model, {"load.mass": masses}, trim=True)
    assert family.ok.all()
    for number in (0, 7, 11):
        heavy = model.with_parameters({"load.mass": float(masses[number])})
        single = fl.linearize(heavy, fl.trim(heavy), independent=list(family.states.names))
        np.testing.assert_allclose(family.A[number], single.A, rtol=1e-7, atol=1e-8)


def test_derivatives_by_masses_are_exact_also_where_no_difference_has_two_sides() -> None:
    """The bucket is flat, for which its largest moment is the sum of the others: none may be larger."""
    model = loader(at_rest=True)
    names = ["bucket.mass", "bucket.inertia.zz", "gravity.y"]
    derivatives = fl.linearize(model, parameters=names).derivatives
    for name in names[:1] + names[2:]:
        value = model.parameters[name]
        step = 1e-3 * abs(value)
        independent = list(model.independent)
        sides = [
            fl.linearize(model.with_parameters({name: value + sign * step}), independent=independent).A
            for sign in (1.0, -1.0)
        ]
        difference = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(derivatives[name].A, difference, rtol=1e-5, atol=1e-7 * np.abs(difference).max())
        assert derivatives[name].errors.A.max() <= 1e-11 * np.abs(difference).max()
    # From below there are values.
    smaller = model.with_parameters({"bucket.inertia.zz": 419.0})
    slope = fl.linearize(model).A - fl.linearize(smaller).A
    np.testing.assert_allclose(derivatives["bucket.inertia.zz"].A, slope, rtol=1e-2, atol=1e-3 * np.abs(slope).max())


def test_a_frequency_and_its_derivatives_by_mass_and_stiffness_have_closed_forms() -> None:
    description = MechanismDescription(
        "mass",
        bodies=[Body("block", 2.0)],
        joints=[Joint("rail", "prismatic", "ground", "block", axis=(1, 0, 0), stiffness=18.0, damping=0.0)],
    )
    linear = fl.linearize(Mechanism(description), parameters=["block.mass", "rail.stiffness"])
    frequency = 3.0
    slopes = np.abs(linear.eigenvalue_derivatives().imag)
    np.testing.assert_allclose(slopes, [[frequency / 4, frequency / 36]] * 2, rtol=1e-12)
