"""FMUs and other models without a symbolic form as CasADi functions: the same derivatives as their equations."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.fmi.write import build_fmu
from fmilin.models import FunctionModel
from fmilin.models.casadi_form import IndependentForm
from fmilin.models.external_casadi import ExternalCasadiModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar
from tests.composition.ssp_files import connection, two

INDEPENDENT = ["phi", "w"]
OUTPUTS = ["phi", "der(w)"]
TOLERANCE = 1e-10


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fmu(four_bar(), tmp_path_factory.mktemp("casadi") / "four_bar.fmu")


@pytest.fixture(scope="module")
def external(path: Path) -> Iterator[ExternalCasadiModel]:
    with fl.load(path) as model:
        external = fl.to_casadi(model.with_interface(outputs=OUTPUTS), independent=INDEPENDENT)
        assert isinstance(external, ExternalCasadiModel)
        yield external


@pytest.fixture(scope="module")
def native() -> IndependentForm:
    model = four_bar().with_interface(outputs=OUTPUTS)
    return fl.to_casadi(model).in_independent_coordinates(independent=INDEPENDENT)


def derivatives(rates: Any, outputs: Any, p: int, nu: int) -> Any:
    """Return Jacobian, directional derivative, adjoint derivative and Hessian of a function of (y, u)."""
    y, u, v, w = ca.MX.sym("y", p), ca.MX.sym("u", nu), ca.MX.sym("v", p + nu), ca.MX.sym("w", 2 * p)
    z = ca.MX.sym("z", p + nu)
    value = ca.vertcat(rates(z[:p], z[p:]), outputs(z[:p], z[p:]))
    parts: list[Any] = [
        ca.jacobian(value, z),
        ca.jtimes(value, z, v),
        ca.jtimes(value, z, w, True),
        ca.hessian(ca.dot(w, value), z)[0],
    ]
    function = ca.Function("derivatives", [z, v, w], [ca.densify(part) for part in parts])
    results: Any = function(ca.vertcat(y, u), v, w)
    return ca.Function("at", [y, u, v, w], results)


def relative(ours: Any, theirs: Any) -> float:
    return float(np.abs((ours - theirs).full()).max() / np.abs(theirs.full()).max())


def test_values_and_all_derivatives_are_those_of_the_equations(
    external: ExternalCasadiModel, native: IndependentForm
) -> None:
    random = np.random.default_rng(3)
    by_fmu = derivatives(external.f, external.outputs, 2, 1)
    by_graph = derivatives(lambda y, u: native.F(y, u, 0), lambda y, u: native.C(y, u, 0), 2, 1)
    for _ in range(3):
        y, u = external.y0 + random.uniform(-0.5, 0.5, 2), random.uniform(-2, 2, 1)
        assert relative(external.f(y, u), native.F(y, u, 0)) < TOLERANCE
        assert relative(external.psi(y, u, 0), native.psi(y, u, 0)) < TOLERANCE
        v, w = random.standard_normal(3), random.standard_normal(4)
        *first, second = zip(by_fmu(y, u, v, w), by_graph(y, u, v, w), strict=True)
        for ours, theirs in first:
            assert relative(ours, theirs) < TOLERANCE
        assert relative(*second) < 1e-5, "second derivatives are differences"


def test_derivatives_are_the_linear_model(external: ExternalCasadiModel, path: Path) -> None:
    with fl.load(path) as model:
        lin = fl.linearize(model, independent=INDEPENDENT, outputs=OUTPUTS)
    A, B = external.f.jacobian()(external.y0, [0.0], 0.0)
    C, D = external.c.jacobian()(external.y0, [0.0], 0.0)
    assert external.states.names == lin.states.names
    for ours, theirs in zip((A, B, C, D), (lin.A, lin.B, lin.C, lin.D), strict=True):
        np.testing.assert_allclose(ours.full(), theirs, rtol=0, atol=1e-12 * np.abs(theirs).max(initial=1.0))


def test_columns_are_evaluated_together(external: ExternalCasadiModel, native: IndependentForm) -> None:
    random = np.random.default_rng(8)
    y, u = external.y0[:, None] + random.uniform(-0.4, 0.4, (2, 7)), random.uniform(-1, 1, (1, 7))
    batch = external.batch(7)
    assert relative(batch.f(y, u), native.F.map(7)(y, u, 0)) < TOLERANCE
    Y = ca.MX.sym("Y", 2, 7)
    ours, theirs = (
        ca.Function("J", [Y], [ca.jacobian(ca.vec(rates), ca.vec(Y))])
        for rates in (batch.f(Y, u), native.F.map(7)(Y, u, 0))
    )
    assert ours.nnz_out(0) == 7 * 4, "one block for each column"
    assert relative(ours(y), theirs(y)) < TOLERANCE


def test_threads_take_turns(external: ExternalCasadiModel, native: IndependentForm) -> None:
    random = np.random.default_rng(9)
    y, u = external.y0[:, None] + random.uniform(-0.4, 0.4, (2, 24)), random.uniform(-1, 1, (1, 24))
    expected = native.F.map(24)(y, u, 0).full()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda i: external.f(y[:, i], u[:, i]).full().ravel(), range(24)))
    np.testing.assert_allclose(np.transpose(answers), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(external.f.map(24, "thread", 3)(y, u).full(), expected, rtol=0, atol=1e-10)


def test_a_copy_opens_the_fmu_by_its_path(external: ExternalCasadiModel, path: Path) -> None:
    content = pickle.dumps(external)
    assert path.name.encode() in content
    assert len(content) < 3000 < path.stat().st_size
    anew: ExternalCasadiModel = pickle.loads(content)
    with anew.model:
        y = external.y0 + 0.2
        assert anew.model is not external.model
        assert anew.outputs.names == external.outputs.names
        assert relative(anew.f(y, [0.3]), external.f(y, [0.3])) < 1e-13


def test_far_points_stay_on_the_branch_of_the_start(path: Path) -> None:
    """phi + 0.8 is on the way to the change point at pi, where all links of this linkage are in line."""
    with fl.load(path) as model:
        external = fl.to_casadi(model, independent=INDEPENDENT)
        y = external.y0 + np.array([0.8, 0.0])
        x = external.in_independent_coordinates().psi(y, [0.0], 0.0).full().ravel()
        expected = fl.operating_point(model, {"phi": y[0], "w": 0.0}).states
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-10)


def pendulum() -> FunctionModel:
    """The reference pendulum x^2 + y^2 = 1 as a Python function with a force, without a graph."""

    def rates(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        px, py, vx, vy = x
        tension = (vx**2 + vy**2 - 9.81 * py + u[0] * px + 0.1 * t * px) / (px**2 + py**2)
        return np.array([vx, vy, u[0] + 0.1 * t - tension * px, -9.81 - tension * py])

    start = {"x": 0.6, "y": -0.8, "vx": 0.4, "vy": 0.3}
    return FunctionModel("pendulum", start, rates, inputs=["force"], constraints=["x^2 + y^2 - 1"])


def test_without_derivatives_of_the_model_they_are_differences_on_the_manifold() -> None:
    """Of theta = atan2(x, -y): theta'' = -9.81 sin(theta) + (u + t/10) cos(theta), in closed form."""
    external = fl.to_casadi(pendulum(), independent=["theta = atan2(x, -y)"]).in_independent_coordinates()
    theta, w, u, t = 0.9, -0.4, 1.3, 2.0
    J = [part.full() for part in external.F.jacobian()([theta, w], [u], t, np.zeros(2))]
    force = u + t / 10
    A = [[0, 1], [-9.81 * np.cos(theta) - force * np.sin(theta), 0]]
    np.testing.assert_allclose(J[0], A, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(J[1].ravel(), [0, np.cos(theta)], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(J[2].ravel(), [0, np.cos(theta) / 10], rtol=0, atol=TOLERANCE)


def test_connected_fmus_have_the_derivatives_of_connected_equations(path: Path) -> None:
    gain = fl.models.OdeModel("gain", {"q": "-3*q + e^2"}, inputs=["e"], outputs={"m": "-2*q"}, start={"q": 0.1})
    wires = [("plant.phi", "law.e"), ("law.m", "plant.torque")]
    with fl.load(path) as plant:
        system = fl.connect({"plant": plant, "law": gain}, wires, outputs=["plant.phi"])
        names = ["plant.phi", "plant.w", "law.q"]
        external = fl.to_casadi(system, independent=names)
        native = fl.connect({"plant": four_bar(), "law": gain}, wires, outputs=["plant.phi"])
        graph = fl.to_casadi(native).in_independent_coordinates(independent=names)
        y = external.y0 + np.array([0.2, 0.1, -0.3])
        ours, theirs = external.f.jacobian()(y, [], 0.0)[0], graph.F.jacobian()(y, [], 0.0, np.zeros(3))[0]
        assert relative(ours, theirs) < TOLERANCE


def test_an_ssp_file_is_opened_anew_by_its_path(tmp_path: Path) -> None:
    path = two(tmp_path, [connection("two.pv", "one.F")])
    with fl.load(path) as system:
        external = fl.to_casadi(system.with_interface(outputs=["one.pv"]))
        A = external.f.jacobian()(external.y0, external.inputs.starts, 0.0)[0].full()
        np.testing.assert_allclose(A, fl.linearize(system).A, rtol=0, atol=1e-12)
        anew: ExternalCasadiModel = pickle.loads(pickle.dumps(external))
    with anew.model:  # the system that was copied is closed
        assert anew.outputs.names == ("one.pv",)
        np.testing.assert_array_equal(anew.f.jacobian()(anew.y0, anew.inputs.starts, 0.0)[0].full(), A)


def test_copies_of_views_keep_their_class_and_their_instance(path: Path) -> None:
    """Compiled views are copies: of a closed loop they must not become its plant without the regulator."""

    class Loop(ConnectedModel):
        pass

    with fl.load(path) as model:
        assert copy(model)._session is model._session  # type: ignore[attr-defined]
        system = fl.connect({"plant": model}, [])
        loop = Loop(system.declaration)
        assert type(copy(loop)) is Loop
        assert copy(loop).members["plant"] is model


def test_a_model_with_delays_is_rejected(path: Path) -> None:
    with fl.load(path) as plant:
        system = fl.connect({"plant": plant}, [], delays={"plant.torque": 0.1})
        with pytest.raises(fl.UsageError, match="has delays: its rates are no function of its present states"):
            fl.to_casadi(system)


def test_points_of_symbolic_models_are_rejected() -> None:
    with pytest.raises(fl.UsageError, match=r"symbolic form, which holds at every point"):
        fl.to_casadi(cartesian_pendulum(), independent=["x", "vx"])
