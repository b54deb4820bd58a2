"""Connected models against the same system written in one piece, or its closed form."""

from __future__ import annotations

from itertools import permutations

import control
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.model.stepping import Hybrid, Passage
from fmilin.models import FunctionModel, NullSpaceModel, OdeModel
from fmilin.systems import cartesian_pendulum, four_bar
from tests.composition.plants import chain_eigenvalues, coupling_spring, gemseo_fmu, mass_chain, motor, oscillator
from tests.shared import shared


def sorted_gap(one: np.ndarray, other: np.ndarray) -> float:
    distance = np.abs(one[:, None] - other)
    return float(distance[linear_sum_assignment(distance)].max())


def test_two_fmus_against_the_fmu_of_the_whole() -> None:
    names = ("MassSpringSubSystem1", "MassSpringSubSystem2", "MassSpringSystem")
    one, two, whole = (fl.load(gemseo_fmu(name)) for name in names)
    wires = [("one.x1", "two.x1"), ("two.x2", "one.x2")]
    with whole, fl.connect({"one": one, "two": two}, wires) as system:
        linear, monolith = fl.linearize(system), fl.linearize(whole)
        order = [0, 2, 1, 3]  # v1, x1, v2, x2 in the parts; v1, v2, x1, x2 in the whole
        np.testing.assert_allclose(linear.A[np.ix_(order, order)], monolith.A, atol=1e-8)
        np.testing.assert_allclose(linear.C[np.ix_(order, order)], np.eye(4), atol=1e-8)
        assert sorted_gap(linear.eigenvalues(), np.array([1j, -1j, 3**0.5 * 1j, -(3**0.5) * 1j])) < 1e-9
        assert system.states.names[0] == "one._D_outputAlias_v1"
        assert system.inputs.names == ("one.k1", "one.k2", "one.m1", "two.k2", "two.k3", "two.m2")


def test_a_constrained_member_in_a_closed_loop_has_the_order_of_its_motion() -> None:
    """The four-bar with a motor and a PI controller, against matrices put together by hand."""
    regulator = control.ss([[0.0]], [[1.0, -1.0]], [[2.0]], [[5.0, -5.0]], inputs=["r", "y"], outputs=["u"])
    wires = [("motor.torque", "bar.torque"), ("bar.w", "motor.w"), ("bar.phi", "pi.y"), ("pi.u", "motor.U")]
    members = {"bar": four_bar(damping=5.0), "motor": motor(), "pi": regulator}
    system = fl.connect(members, wires, inputs={"r": "pi.r"}, outputs=["bar.phi", "motor.torque"])
    rest = four_bar(damping=5.0).start.states[system.members["bar"].states.positions["phi"]]
    point = fl.operating_point(system, {"r": rest})
    linear = fl.linearize(system, point)
    assert linear.states.names == ("bar.phi", "bar.w", "motor.i", "pi.x[0]")
    plant = fl.linearize(four_bar(damping=5.0))
    A = np.zeros((4, 4))
    A[:2, :2], A[:2, 2:3] = plant.A, 0.5 * plant.B
    A[2] = [-50.0, -5.0, -10.0, 20.0]
    A[3, 0] = -1.0
    np.testing.assert_allclose(linear.A, A, rtol=1e-11, atol=1e-11)
    assert len(system.constraints) == len(four_bar().constraints)
    held = fl.trim(system, fixed={"r": rest + 0.1})
    assert held.states[system.states.positions["bar.phi"]] == pytest.approx(rest + 0.1, abs=1e-8)
    moved = fl.simulate(system, fl.operating_point(system, {"r": rest + 0.1}), stop_time=0.5)
    assert np.max(np.abs(moved.drift)) < 1e-8


def test_fmus_of_the_members_and_one_of_the_whole() -> None:
    bar = shared("composition_bar.fmu", lambda path: build_fmu(four_bar(), path))
    drive = shared("composition_motor.fmu", lambda path: build_fmu(motor(), path))
    wires = [("motor.torque", "bar.torque"), ("bar.w", "motor.w")]
    native = fl.connect({"bar": four_bar(), "motor": motor()}, wires)
    whole = shared("composition_whole.fmu", lambda path: build_fmu(native, path))
    expected = fl.linearize(native)
    with fl.connect({"bar": fl.load(bar), "motor": fl.load(drive)}, wires) as parts, fl.load(whole) as one:
        for model in (parts, one):
            linear = fl.linearize(model)
            assert linear.states.names == expected.states.names
            for name in "ABCD":
                np.testing.assert_allclose(getattr(linear, name), getattr(expected, name), rtol=1e-12, atol=1e-12)


def test_two_pendulums_joined_by_a_spring_signal() -> None:
    """Two crane pendulums at rest; a torque-free spring between their tips: w^2 = g/L and g/L + 2 c/m."""
    members = {"one": cartesian_pendulum(), "two": cartesian_pendulum(), "spring": coupling_spring(4.0)}
    wires = [("one.x", "spring.x1"), ("one.vx", "spring.v1"), ("two.x", "spring.x2"), ("two.vx", "spring.v2")]
    wires += [("spring.on1", "one.F"), ("spring.on2", "two.F")]
    linear = fl.linearize(fl.connect(members, wires))
    frequencies = np.sort(np.abs(linear.eigenvalues().imag))[::2]
    np.testing.assert_allclose(frequencies, np.sqrt([9.81, 9.81 + 8.0]), rtol=1e-10)
    assert linear.A.shape == (4, 4)


def test_a_chain_of_fifty_masses_cut_into_ten() -> None:
    members = {f"m{i}": mass_chain(5) for i in range(10)}
    wires = [(f"m{i}.last", f"m{i + 1}.left") for i in range(9)] + [
        (f"m{i + 1}.first", f"m{i}.right") for i in range(9)
    ]
    system = fl.connect(members, wires)
    linear, whole = fl.linearize(system), fl.linearize(mass_chain(50))
    order = [f"m{(i - 1) // 5}.{kind}{(i - 1) % 5 + 1}" for kind in "xv" for i in range(1, 51)]
    positions = [system.states.positions[name] for name in order]
    np.testing.assert_allclose(linear.A[np.ix_(positions, positions)], whole.A, atol=1e-12)
    frequencies = np.sort(np.abs(linear.eigenvalues().imag))[::2]
    np.testing.assert_allclose(frequencies, chain_eigenvalues(50), rtol=1e-10)
    structure = system.structure
    assert not structure[linear.A.shape[0] :, :].all()
    assert (structure[:100, :100] | (linear.A == 0)).all()


def test_units_are_checked_and_converted() -> None:
    angle = OdeModel("s", {"a": "u"}, inputs=["u"], labels=_units(a="rad", u="deg/s"))
    rate = OdeModel("r", {"b": "1 - b + in1"}, inputs=["in1"], outputs={"y": "b"}, labels=_units(b="rad/s", in1="m"))
    system = fl.connect({"s": angle, "r": rate}, [("r.b", "s.u", 2.0, 1.0)])
    assert fl.linearize(system).A[0, 1] == pytest.approx(2 * 180 / np.pi)
    plain = fl.connect({"s": angle, "r": rate}, [fl.Connection("r.b", "s.u", 2.0, convert_units=False)])
    assert fl.linearize(plain).A[0, 1] == 2.0
    with pytest.raises(fl.UsageError, match=r"'s\.a' -> 'r\.in1': the units do not fit, 'rad' and 'm'"):
        fl.connect({"s": angle, "r": rate}, [("s.a", "r.in1")])


def _units(**units: str):  # type: ignore[no-untyped-def]
    from fmilin.models.labels import Labels

    return Labels(units=units)


def test_arrays_are_connected_element_by_element() -> None:
    source = OdeModel("s", {"q[1]": "-`q[1]`", "q[2]": "-2*`q[2]`"}, start={"q[1]": 1.0, "q[2]": 3.0})
    target = OdeModel("t", {"x": "`u[1]` - `u[2]`"}, inputs=["u[1]", "u[2]"])
    system = fl.connect({"s": source, "t": target}, [("s.q", "t.u")])
    assert system.evaluate(0.0, system.start.states, system.start.inputs).derivatives[2] == -2.0
    short = OdeModel("t", {"x": "`u[1]`"}, inputs=["u[1]"])
    with pytest.raises(fl.UsageError, match="joins 2 elements to 1"):
        fl.connect({"s": source, "t": short}, [("s.q", "t.u")])


@pytest.mark.parametrize(
    ("wires", "error", "words"),
    [
        ([("one.px", "three.F")], fl.UnknownNameError, "The members are one, two"),
        ([("one.px", "two.G")], fl.UnknownNameError, r"In the member 'two': 'G' is not an input\. Known: F"),
        ([("one.pxx", "two.F")], fl.UnknownNameError, r"In the member 'one': 'pxx' is not .*Did you mean 'px'"),
        (
            [("one.px", "two.F"), ("one.pv", "two.F")],
            fl.UsageError,
            r"'two\.F' is fed twice, by 'one\.px' and by 'one\.pv'",
        ),
        ([("one", "two.F")], fl.UsageError, "'one' "),
        ([("one.px",)], fl.UsageError, "A connection must be a pair"),
        ([("one.px", "two.F", "x")], fl.UsageError, "two names, a factor and an offset"),
    ],
)
def test_wrong_connections_name_the_member(wires: list[tuple[str, ...]], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fl.connect({"one": oscillator(), "two": oscillator()}, wires)


def test_wrong_requests() -> None:
    one = oscillator()
    with pytest.raises(fl.UsageError, match="load it first"):
        fl.connect({"one": "plant.fmu"})
    with pytest.raises(fl.UsageError, match=r"'one\.F' is fed twice"):
        fl.connect({"one": one}, [("one.px", "one.F")], inputs=["one.F"])
    with pytest.raises(fl.UsageError, match=r"'inputs' is the text 'one\.F', and should be a list"):
        fl.connect({"one": one}, inputs="one.F")
    with pytest.raises(fl.UsageError, match="members must be models"):
        fl.connect({"one": 3})
    with pytest.raises(fl.UsageError, match="The name of a member must be a text, not ''"):
        fl.connect({"": one})
    with pytest.raises(fl.UsageError, match="A key of 'members' is of the type 'int', and should be of the type str"):
        fl.connect({3: one})  # type: ignore[dict-item]
    with pytest.raises(fl.UsageError, match="with at least one member"):
        fl.connect({})
    failing = FunctionModel("f", {"x": 0.5}, lambda _t, _x, _u: [1 / 0], inputs=["u"])
    with pytest.raises(fl.ModelError, match="In the member 'bad'"):
        fl.linearize(fl.connect({"good": one, "bad": failing}))


def test_parameters_inputs_and_outputs_by_name() -> None:
    system = fl.connect({"one": oscillator(), "two": oscillator()}, [("one.px", "two.F", -1.0)])
    stiffer = system.with_parameters({"two.c": 9.0})
    assert stiffer.start.parameters == {"two.c": 9.0}
    assert fl.linearize(stiffer, outputs=["der(two.v)", "two.F"]).C.tolist() == [[-1, 0, -9, -0.1], [-1, 0, 0, 0]]
    held = system.with_interface([], ["two.px"])
    assert held.inputs.names == ()
    assert held.copies[0].index == 2
    with pytest.raises(fl.UnknownNameError, match=r"'two\.cc' .*Did you mean|In the member 'two'"):
        system.with_parameters({"two.cc": 1.0})
    with pytest.raises(fl.UnknownNameError, match=r"In the member 'two': .*Did you mean 'px'"):
        system.with_interface(None, ["two.pxx"])


def test_linear_models_in_place_of_members() -> None:
    whole = fl.connect({"bar": four_bar(damping=1.0), "motor": motor()}, WIRES)
    part = fl.linearize(four_bar(damping=1.0))
    small = fl.connect({"bar": part, "motor": fl.linearize(motor())}, WIRES)
    assert small.states.names == ("bar.phi", "bar.w", "motor.i")
    np.testing.assert_allclose(fl.linearize(small).A, fl.linearize(whole).A, rtol=1e-12, atol=1e-12)
    dependent = fl.linearize(small, outputs=["bar.x0"]).C  # a state that the linear model does not keep
    np.testing.assert_allclose(dependent, fl.linearize(whole, outputs=["bar.x0"]).C, rtol=1e-12, atol=1e-12)


WIRES = [("motor.torque", "bar.torque"), ("bar.w", "motor.w")]


def test_the_closed_loop_of_python_control() -> None:
    plant, regulator = oscillator(), control.ss([[-3.0]], [[1.0]], [[2.0]], [[0.7]], inputs=["e"], outputs=["F"])
    system = fl.connect({"plant": plant, "reg": regulator}, [("plant.px", "reg.e", -1.0), ("reg.F", "plant.F")])
    open_loop = fl.linearize(plant, outputs=["px"]).to_control()
    expected = control.feedback(open_loop * control.ss(regulator.A, regulator.B, regulator.C, regulator.D), 1)
    assert sorted_gap(fl.linearize(system).eigenvalues(), np.asarray(expected.poles())) < 1e-12


def test_verify_holds_for_a_system() -> None:
    system = fl.connect({"one": oscillator(damper=0.8), "two": oscillator(damper=0.9)}, [("one.px", "two.F", 0.5)])
    assert fl.verify(system, fl.linearize(system)).passed


def test_a_system_is_a_member_of_another_and_an_output_feeds_two() -> None:
    inner = fl.connect({"one": oscillator(), "two": oscillator()}, [("one.px", "two.F")], inputs={"f": "one.F"})
    wires = [("pair.two.px", "three.F"), ("pair.two.px", "four.F"), ("three.px", "pair.f", -0.5)]
    system = fl.connect({"pair": inner, "three": oscillator(), "four": oscillator()}, wires)
    linear = fl.linearize(system)
    assert system.states.names[:4] == ("pair.one.x", "pair.one.v", "pair.two.x", "pair.two.v")
    assert linear.method.derivatives == "exact"
    assert (linear.A[5, 2], linear.A[7, 2], linear.A[1, 4]) == (1.0, 1.0, -0.5)
    assert system.parameters["pair.two.c"] == 1.0
    assert fl.linearize(system.with_parameters({"pair.two.c": 4.0})).A[3, 2] == -4.0


def test_members_with_events_are_simulated_together() -> None:
    """A switched plant: the events of a member happen in the system, and its mode is told."""
    from tests.simulation.hybrids import Ball

    alone = fl.simulate(Ball(), stop_time=1.5)
    system = fl.connect({"ball": Ball(), "one": oscillator()})
    together = fl.simulate(system, stop_time=1.5)
    assert len(together.events) == len(alone.events) > 0
    np.testing.assert_allclose(together.states[-1, :2], alone.states[-1], atol=1e-7)


def test_a_compiled_view_says_the_same_and_the_system_follows_its_mode() -> None:
    """The members are the same: what happens to them in a view must not be answered from before by the system."""
    from tests.simulation.hybrids import Ball

    system = fl.connect({"ball": Ball(), "bar": four_bar()})
    view = system.compile_for_evaluations(0)
    assert view is not system
    assert isinstance(view, Hybrid)
    t, x, u = 0.0, system.start.states, system.start.inputs
    mine, theirs = view.evaluate(t, x, u), system.evaluate(t, x, u)
    assert mine.derivatives.tobytes() == theirs.derivatives.tobytes()
    visited = system.coupling._latest
    assert visited is not None
    view.restart()
    assert system.coupling._latest is None
    alone = fl.connect({"ball": Ball()})
    assert alone.compile_for_evaluations(10**9) is alone


def test_what_one_member_asks_for_the_system_asks_for() -> None:
    from tests.simulation.hybrids import Ball, Clockwork

    class Advised(Ball):
        def complete_step(self, t: float, x: np.ndarray, u: np.ndarray) -> Passage:
            return Passage(x, wants_event=x[0] < 3.0)

    model = fl.connect({"one": Ball(), "two": Advised()})
    assert isinstance(model, Hybrid)
    for height, wanted in ((4.0, False), (2.0, True)):
        passage = model.complete_step(0.0, np.array([5.0, 0.0, height, 0.0]), np.empty(0))
        assert passage.wants_event is wanted
    ends = fl.simulate(fl.connect({"ball": Ball(100.0), "clock": Clockwork()}), stop_time=10.0)
    assert ends.times[-1] == pytest.approx(4.0)
    assert ends.states[-1, 2] == pytest.approx(0 + 1 + 2 + 3)


@pytest.mark.parametrize(("fahrenheit", "celsius"), [(212.0, 100.0), (32.0, 0.0), (-40.0, -40.0)])
def test_temperatures_have_an_offset(fahrenheit: float, celsius: float) -> None:
    values = {"degF": fahrenheit, "degC": celsius, "K": celsius + 273.15}
    for source, target in permutations(values, 2):
        room = OdeModel("r", {"T": "-T"}, labels=_units(T=source), start={"T": values[source]})
        sensor = OdeModel("s", {"x": "-x"}, inputs=["T"], outputs={"y": "T"}, labels=_units(T=target))
        system = fl.connect({"r": room, "s": sensor}, [("r.T", "s.T")], outputs=["s.y"])
        felt = system.evaluate(0.0, system.start.states, system.start.inputs).outputs[0]
        assert felt == pytest.approx(values[target], abs=1e-12)


def test_one_input_for_arrays_of_two_members_is_named_element_by_element() -> None:
    target = OdeModel("t", {"x": "`load[1]` - 2*`load[2]`"}, inputs=["load[1]", "load[2]"])
    system = fl.connect({"a": target, "b": target}, inputs={"force": ["a.load", "b.load"]})
    assert system.inputs.names == ("force[1]", "force[2]")
    np.testing.assert_allclose(fl.linearize(system).B, [[1.0, -2.0], [1.0, -2.0]], atol=1e-12)


def test_the_constraints_of_members_are_stabilized_in_each() -> None:
    rod, alone = NullSpaceModel(four_bar()), oscillator()
    system = fl.connect({"rod": rod, "one": alone}).with_stabilization(2.0, 3.0)
    own = rod.with_stabilization(2.0, 3.0)
    assert system is not None
    assert own is not None
    n, x = len(rod.states), np.concatenate((rod.start.states + 0.01, [0.5, 0.25]))
    found = system.evaluate(0.0, x, system.start.inputs).derivatives
    np.testing.assert_allclose(found[:n], own.evaluate(0.0, x[:n], own.start.inputs).derivatives, rtol=1e-12)
    np.testing.assert_allclose(found[n:], alone.evaluate(0.0, x[n:], alone.start.inputs).derivatives, rtol=1e-14)
    assert np.abs(found[:n] - rod.evaluate(0.0, x[:n], rod.start.inputs).derivatives).max() > 1e-3
    tied = FunctionModel("tied", {"x": 1.0, "y": 1.0}, lambda *_: [1.0, 1.0], constraints=["x - y"])
    assert fl.connect({"rod": rod, "tied": tied}).with_stabilization(2.0, 3.0) is None
