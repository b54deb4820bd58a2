"""The procedure of Peterson et al.: its blocks, its agreement with the general linearizer, and what it refuses."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import NumericalError, OperatingPoint, UnknownNameError, UsageError
from fmilin.codegen.system_functions import SystemFunctions
from fmilin.fmi.write import build_fmu
from fmilin.models import KaneModel
from fmilin.models.kane import Backend, Numerics
from fmilin.systems import rolling_disk
from tests.general_way import hide_procedure
from tests.models.kane.blocks import blocks
from tests.models.kane.examples import bead, leaning, pulled_pendulum
from tests.models.kane.table import f_0, f_1, f_2, f_3, f_a
from tests.systems.oracle import reduced, relative_error
from tests.systems.skate_model import skate
from tests.systems.torus import rolling_torus


def test_the_table_of_definitions_is_made_of_gradients() -> None:
    """Every block against central differences of the printed equations."""
    import sympy

    model, point = leaning()
    form = model.form
    rates = model.evaluate(point.time, point.states, point.inputs).derivatives
    every = (*form.states, *form.inputs, *form.parameters, *form.q_dot, *form.u_dot)
    values = np.concatenate((point.states, point.inputs, list(model.parameters.values()), rates))
    b = blocks(model, point)

    def gradient(expressions: tuple[object, ...], symbols: tuple[object, ...]) -> np.ndarray:
        f = sympy.lambdify(every, list(expressions))
        columns = []
        for s in symbols:
            step = np.zeros(len(values))
            step[every.index(s)] = 1e-6
            columns.append((np.array(f(*(values + step))) - np.array(f(*(values - step)))) / 2e-6)
        return np.array(columns).T

    q, u, q_dot, u_dot, r = form.q, form.u, form.q_dot, form.u_dot, form.inputs
    kinematic = tuple(a + b for a, b in zip(f_0(form), f_1(form), strict=True))
    dynamic = tuple(a + b for a, b in zip(f_2(form), f_3(form), strict=True))
    for found, expected in (
        (b.M_qq, gradient(f_0(form), q_dot)),
        (b.M_uqc, gradient(f_a(form), q_dot)),
        (b.M_uuc, gradient(f_a(form), u_dot)),
        (b.M_uqd, gradient(f_3(form), q_dot)),
        (b.M_uud, gradient(f_2(form), u_dot)),
        (b.A_qq, -gradient(kinematic, q)),
        (b.A_qu, -gradient(f_1(form), u)),
        (b.A_uqc, -gradient(f_a(form), q)),
        (b.A_uuc, -gradient(f_a(form), u)),
        (b.A_uqd, -gradient(dynamic, q)),
        (b.A_uud, -gradient(f_3(form), u)),
        (b.B_u, -gradient(f_3(form), r)),
    ):
        np.testing.assert_allclose(found, expected, atol=2e-9)
    assert not b.B_q.any()
    assert not b.B_uc.any()


def test_the_matrices_are_what_the_letters_say() -> None:
    model, point = leaning()
    b, found = blocks(model, point), model.matrices(point)
    n, P = len(model.form.q), found.P_prime
    T = np.block([[found.C_0, np.zeros((n, 3))], [found.C_1 @ found.C_0, found.C_2]])
    (o, k), m = (len(model.form.u), len(model.form.multipliers)), len(b.M_uuc)
    M_tilde = np.block(
        [[b.M_qq, np.zeros((n, o + k))], [b.M_uqc, b.M_uuc, np.zeros((m, k))], [b.M_uqd, b.M_uud, b.M_uld]]
    )
    A_tilde = np.block([[b.A_qq, b.A_qu], [b.A_uqc, b.A_uuc], [b.A_uqd, b.A_uud]])
    np.testing.assert_allclose(found.A_prime, np.linalg.solve(M_tilde, A_tilde @ T), atol=1e-13)
    np.testing.assert_allclose(found.B_prime, np.linalg.solve(M_tilde, np.vstack((b.B_q, b.B_uc, b.B_u))), atol=1e-13)
    np.testing.assert_allclose(found.A, P.T @ found.A_prime, atol=1e-15)
    np.testing.assert_allclose(found.T, T, atol=1e-15)
    np.testing.assert_allclose(P.T @ found.T, np.eye(8), atol=1e-15)


@pytest.mark.parametrize("independent", [None, ["q1", "q2", "q3", "q4", "q5", "u2", "u3", "u5"]])
def test_the_general_linearizer_agrees(independent: list[str] | None) -> None:
    model, point = leaning()
    own = fl.linearize(model, point, independent=independent)
    general = fl.linearize(hide_procedure(model), point, independent=independent)
    assert own.states.names == general.states.names
    for letter in "ABCDT":
        np.testing.assert_allclose(getattr(own, letter), getattr(general, letter), atol=1e-12)
    np.testing.assert_allclose(own.f0, general.f0, atol=1e-13)
    np.testing.assert_allclose(own.y0, general.y0)
    assert own.states == general.states
    assert own.point.outputs == pytest.approx(general.point.outputs)
    assert own.accuracy.conditioning == pytest.approx(general.accuracy.conditioning)
    told = {"off-equilibrium"} | ({"periodic"} if independent is None else set())  # A changes while it falls
    assert {w.kind for w in own.warnings} == {w.kind for w in general.warnings} == told
    assert own.method.derivatives == "exact"
    A, B, C, D = reduced(model.with_start(dict(zip(model.inputs.names, point.inputs, strict=True))), own.states.names,
                         point.states)  # fmt: skip
    for found, expected in ((own.A, A), (own.B, B), (own.C, C)):
        assert relative_error(found, expected) < 1e-12
    np.testing.assert_allclose(own.D, D, atol=1e-13)


def test_tangent_coordinates_lead_to_the_same_motion_at_rest() -> None:
    model = pulled_pendulum("2", f_v=["x*vx + y*vy"], start={"y": 2})
    general = fl.linearize(model, coordinates="tangent")
    own = fl.linearize(model)
    R = np.linalg.lstsq(general.T, own.T)[0]  # dy_tangent = R dy
    np.testing.assert_allclose(general.A @ R, R @ own.A, atol=1e-13)


def test_differences_on_the_manifold_agree() -> None:
    model, point = leaning()
    general = fl.linearize(model, point, derivatives="differences")
    own = fl.linearize(model, point)
    np.testing.assert_allclose(own.A, general.A, atol=1e-7)
    np.testing.assert_allclose(own.B, general.B, atol=1e-8)


@pytest.mark.parametrize("make", [rolling_disk, rolling_torus, lambda: skate(2.0, yaw_rate=0.7, offset=0.3, slope=20)])
def test_the_compiled_fmu_agrees(make: object, tmp_path: Path) -> None:
    model: KaneModel = make()  # type: ignore[operator]
    path = build_fmu(model, tmp_path / "kane.fmu")
    own = fl.linearize(model)
    with fl.load(path) as fmu:
        theirs = fl.linearize(fmu)
    assert theirs.states.names == own.states.names
    for letter in "ABCDT":
        np.testing.assert_allclose(getattr(theirs, letter), getattr(own, letter), atol=1e-9, err_msg=letter)


NUMERICS = {
    "C": Numerics(Backend("c")),
    "virtual machine": Numerics(Backend("casadi")),
}


@pytest.mark.parametrize("way", NUMERICS)
def test_every_way_to_numbers_gives_the_same(way: str) -> None:
    values = {"q2": 0.2, "u1": 0.3, "u2": -1.2, "u3": 0.4, "q6": -np.cos(0.2)}
    values |= {"u4": 1.2, "u5": 0.3, "u6": 0.0}
    from tests.models.kane.examples import disc

    made = KaneModel.from_sympy(
        disc(), parameters={"m": 1, "r": 1, "g": 1}, start=values, numerics=NUMERICS[way], outputs={"a": "der(u5)"}
    )
    plain = rolling_disk()
    point = OperatingPoint(0.0, made.start.states, np.zeros(2))
    expected = fl.linearize(plain.with_interface(outputs=["der(u5)"]), point)
    found = fl.linearize(made)
    np.testing.assert_allclose(found.A, expected.A, atol=1e-14)
    np.testing.assert_allclose(found.C, expected.C, atol=1e-14)


def test_the_form_for_code_is_the_same_system() -> None:
    """W w = r, from which FMUs are made, evaluated by the general functions."""
    for model in (
        rolling_disk(),
        KaneModel("bead", bead(), parameters={"m": 2, "g": 9.81}),
        KaneModel(
            "coupled",
            bead(
                f_0=["der(x) + 2*x*der(y)", "der(y) - cos(y)*der(x)"],
                f_1=["-vx - 2*x*vy", "-vy + cos(y)*vx"],
                f_a=["der(vy) - x*der(vx) - der(x)^2"],
            ),
            parameters={"m": 2, "g": 9.81},
        ),
    ):
        random = np.random.default_rng(7)
        x, u = random.uniform(-0.5, 0.5, len(model.states)), random.uniform(-1, 1, len(model.inputs))
        general = SystemFunctions(model.system.in_graph())
        p = np.array(list(model.parameters.values()))
        form, engine = model.form, model.engine
        expansion = engine.form_functions.at(engine.arguments(0.0, x, u)[None])
        np.testing.assert_allclose(expansion.rates[0], general.values(0.0, x, u, p)[0], rtol=1e-12)
        dx, du = random.normal(size=(len(x), 5)), random.normal(size=(len(u), 5))
        n, o = len(form.q), len(form.u)
        J = expansion.J[0, len(form.f_c) + len(form.velocity) :]
        moved = J[:, 1 : 1 + n] @ dx[:n] + J[:, 1 + 2 * n : 1 + 2 * n + o] @ dx[n:] + J[:, engine.input_columns] @ du
        along = expansion.solve(-moved[None])[0]
        np.testing.assert_allclose(along[: len(x)], general.products((0.0, x, u, p), dx, du)[0], rtol=1e-11, atol=1e-12)


# ---------------------------------------------------------------------- independent sets


def test_independent_states_keep_the_order_in_which_they_are_named() -> None:
    model, point = leaning()
    names = ["u3", "q5", "u1", "q1", "q2", "q4", "u2", "q3"]
    mixed, plain = fl.linearize(model, point, independent=names), fl.linearize(model, point)
    assert mixed.states.names == tuple(names)
    order = [plain.states.names.index(n) for n in names]
    np.testing.assert_allclose(mixed.A, plain.A[np.ix_(order, order)])
    np.testing.assert_allclose(mixed.T, plain.T[:, order])


def test_a_singular_choice_is_refused_and_another_one_named() -> None:
    """Upright, q6 = -r cos(q2) does not determine q2."""
    model = rolling_disk()
    names = ["q1", "q6", "q3", "q4", "q5", "u1", "u2", "u3"]
    with pytest.raises(NumericalError, match=r"q1, q6.* do not determine.*Use q1, q2, q3, q4, q5, u3, u4, u5") as e:
        fl.linearize(model, independent=names)
    assert e.value.condition_number == np.inf
    point = fl.operating_point(model, {"q2": 1e-9, "u2": -1.0})
    with pytest.raises(NumericalError, match=r"condition number 1e\+09"):
        model.matrices(point, independent=names)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["q1", "q2"], UsageError, r"2 coordinates and 0 speeds were named .* has 5 and 3: 6 coordinates under 1"),
        (["q1", "q2", "q3", "q4", "q5", "q6", "u1", "u2"], UsageError, "6 coordinates and 2 speeds"),
        (["q1", "q1", "q3", "q4", "q5", "u1", "u2", "u3"], UsageError, "5 coordinates and 3 speeds"),
        (["q1", "q2", "q3", "q4", "q5", "u1", "u2", "u33"], UnknownNameError, "'u33' is not a state"),
    ],
)
def test_other_choices_are_refused(names: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rolling_disk().matrices(independent=names)


def circle(turns: int) -> tuple[KaneModel, list[OperatingPoint]]:
    """A particle on a circle, all the way round: neither x nor y is good everywhere."""
    model = pulled_pendulum("2", f_v=["x*vx + y*vy"], start={"y": 2})
    angles = np.linspace(0.0, 2 * np.pi, turns)
    points = [
        OperatingPoint(0.0, np.array([2 * np.sin(a), 2 * np.cos(a), 3 * np.cos(a), -3 * np.sin(a)]), np.empty(0))
        for a in angles
    ]
    return model, points


def test_independent_sets_are_switched_on_the_way_and_only_when_needed() -> None:
    model, points = circle(401)
    found = fl.linearize_along(model, points)
    sets = [m.states.names for m in found]
    switches = sum(a != b for a, b in pairwise(sets))
    assert set(sets) == {("x", "vx"), ("y", "vy")}
    assert 2 <= switches <= 4
    assert max(m.accuracy.conditioning for m in found) <= 1e4
    for m, point in zip(found, points, strict=True):  # whatever the set, the same tangent dynamics
        again = fl.linearize(model, point)
        same = np.linalg.lstsq(m.T, again.T)[0]
        np.testing.assert_allclose(m.T @ same, again.T, atol=1e-9)


def test_a_recommended_set_that_is_singular_is_replaced_and_said() -> None:
    from fmilin.models import Labels

    model = pulled_pendulum("2", f_v=["x*vx + y*vy"], start={"x": 2, "vy": 1.0}, labels=Labels(independent=("x", "vx")))
    lin = fl.linearize(model)
    assert lin.states.names == ("y", "vy")
    assert any("recommended" in w.message for w in lin.warnings)
    nearly = fl.linearize(model, OperatingPoint(0.0, np.array([2.0, 2e-6, -1e-6, 1.0]), np.empty(0)))
    assert nearly.states.names == ("y", "vy")  # a condition number of 1e6 is not refused, and replaced all the same
    with pytest.raises(NumericalError, match="x, vx do not determine"):
        fl.linearize(model, independent=["x", "vx"])


def test_where_constraints_depend_on_each_other_there_is_no_regular_choice() -> None:
    model = pulled_pendulum("2", f_v=["x*vx + y*vy"], start={"y": 2})
    with pytest.raises(NumericalError, match=r"singular|no unique solution"):
        fl.linearize(model, OperatingPoint(0.0, np.zeros(4), np.empty(0)))


# ---------------------------------------------------------------------- the model interface


def test_chosen_inputs_outputs_and_parameters_reach_the_procedure() -> None:
    model, point = leaning()
    chosen = model.with_interface(inputs=["steer_torque"], outputs=["der(u5)", "u6", "steer_torque"])
    at = OperatingPoint(0.0, point.states, np.array([0.4]))
    own, general = fl.linearize(chosen, at), fl.linearize(hide_procedure(chosen), at)
    for letter in "ABCD":
        np.testing.assert_allclose(getattr(own, letter), getattr(general, letter), atol=1e-12, err_msg=letter)
    assert own.D[2].tolist() == [1.0]
    heavier = model.with_parameters({"m": 5.0})
    np.testing.assert_allclose(fl.linearize(heavier, point).B[5:, 1], 2.0 / 5.0 * fl.linearize(model, point).B[5:, 1])


def test_another_start_needs_known_names() -> None:
    model = rolling_disk()
    assert model.with_start({"q4": 2.0, "lean_torque": 1.0}).start.inputs.tolist() == [1.0, 0.0]
    with pytest.raises(UnknownNameError, match="'q7' is not a state or an input"):
        model.with_start({"q7": 0.0})


def test_numerics_are_checked() -> None:
    with pytest.raises(UsageError, match="backends are"):
        Backend("fortran")  # type: ignore[arg-type]
