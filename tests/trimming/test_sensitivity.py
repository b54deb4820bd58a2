"""Derivatives of linear models by parameters, against closed forms and differences of whole linearizations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import Model
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.fmi.write import build_fmu
from fmilin.linear_model.descriptor import eigenvalue_derivatives
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import bicycle, cartesian_pendulum, four_bar, loader
from tests.command_line import main
from tests.composition.plants import oscillator, oscillator_fmu
from tests.shared import shared


def close(actual: Any, expected: Any, rtol: float = 1e-7, atol: float = 0.0) -> None:
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def swing(**start: float) -> OdeModel:
    """Return a pendulum with a force: q'' = -g/L sin(q) - d q' + F/(m L)."""
    return OdeModel(
        "swing",
        {"q": "w", "w": "-g/L*sin(q) - d*w + F/(m*L)"},
        inputs=["F"],
        parameters={"m": 2.0, "L": 3.0, "g": 9.81, "d": 0.1},
        outputs={"height": "-L*cos(q)"},
        start=start,
    )


def difference(model: Model, name: str, states: tuple[str, ...], part: str = "A") -> FloatArray:
    """Return d/dp by extrapolated differences of whole linearizations, each at its own consistent point."""
    value = float(model.parameters[name])
    kept = dict(zip(states, fl.operating_point(model).states[[model.states.index_of(n) for n in states]], strict=True))

    def at(p: float) -> FloatArray:
        changed = model.with_parameters({name: p})
        point = fl.operating_point(changed, kept) if len(model.constraints) else None
        return np.asarray(getattr(fl.linearize(changed, point, independent=states), part))

    h = 1e-3 * (abs(value) or 1.0)
    rough = [(at(value + k * h) - at(value - k * h)) / (2 * k * h) for k in (1, 2)]
    return np.asarray(rough[0] + (rough[0] - rough[1]) / 3)


def test_an_oscillator_in_closed_form() -> None:
    """m s^2 + d s + c = 0: ds/dm = -s^2/(2 m s + d), ds/dc = -1/(2 m s + d)."""
    model = oscillator(2.0, 3.0, 0.5)
    linear = fl.linearize(model, parameters=["m", "c"])
    m = linear.derivatives["m"]
    close(m.A, [[0, 0], [3 / 4, 0.5 / 4]], atol=1e-14)
    close(m.B, [[0], [-1 / 4]], atol=1e-14)
    assert m.value == 2.0
    s = linear.eigenvalues()
    close(linear.eigenvalue_derivatives()[:, 0], -(s**2) / (4 * s + 0.5), rtol=1e-12)
    close(linear.eigenvalue_derivatives()[:, 1], -1 / (4 * s + 0.5), rtol=1e-12)


def test_a_trimmed_point_moves() -> None:
    """sin(q) = F/(m g): dq/dm = -tan(q)/m, and A has -g/L cos(q) by way of q alone."""
    model = swing(q=0.3)
    point = fl.trim(model, fixed={"F": 5.0})
    q = float(point.states[0])
    m = fl.linearize(model, point, parameters=["m"]).derivatives["m"]
    close(m.states, [-np.tan(q) / 2.0, 0.0], rtol=1e-12, atol=1e-15)
    close(m.A[1, 0], 9.81 / 3 * np.sin(q) * -np.tan(q) / 2.0, rtol=1e-12)
    close(m.C[0, 0], 3.0 * np.cos(q) * -np.tan(q) / 2.0, rtol=1e-12)


def test_a_free_input_moves_instead() -> None:
    model = swing(q=0.3)
    point = fl.trim(model, fixed={"q": 0.3}, free=["F"])
    m = fl.linearize(model, point, parameters=["m"]).derivatives["m"]
    close(m.states, 0.0, atol=1e-14)
    close(m.inputs, [9.81 * np.sin(0.3)], rtol=1e-10)
    close(m.A, 0.0, atol=1e-12)


def test_a_free_parameter_moves_along() -> None:
    """With g solved for and m given, g m sin(q) = F: dg/dm = -g/m."""
    model = swing(q=0.3, F=5.0)
    point = fl.trim(model, fixed={"q": 0.3}, free=["g"])
    g = point.parameters["g"]
    m = fl.linearize(model, point, parameters=["m"]).derivatives["m"]
    close(m.A[1, 0], g / 2.0 / 3 * np.cos(0.3), rtol=1e-9)


@pytest.mark.parametrize("name", ["w", "tilt", "r_F", "m_H", "x_B", "I_Hxz"])
def test_the_bicycle(name: str) -> None:
    model = bicycle()
    linear = fl.linearize(model, parameters=[name])
    expected = difference(model, name, linear.states.names)
    scale = np.abs(expected).max()
    close(linear.derivatives[name].A, expected, atol=1e-8 * scale)
    assert any(w.kind == "multiple-eigenvalues" for w in linear.warnings)


LOADER = ["boom.mass", "boom.center.x", "boom.inertia.xz", "bucket.damping", "gravity.z", "tilt_pin.placement.x"]


@pytest.mark.parametrize("name", LOADER)
def test_a_mechanism_by_path(name: str) -> None:
    model = loader()
    linear = fl.linearize(model, parameters=[name])
    expected = difference(model, name, linear.states.names)
    close(linear.derivatives[name].A, expected, atol=1e-8 * max(np.abs(expected).max(), 1.0))


def test_centre_and_inertia_of_a_body_in_closed_form(tmp_path: Path) -> None:
    """A body that swings about z: A_21 = -m g l / (m l^2 + J), by l and by J; others of its moments do nothing."""
    path = tmp_path / "swing.toml"
    path.write_text(
        'name = "swing"\ngravity = [0, -9.81, 0]\n[[body]]\nname = "b"\nmass = 2.0\ncenter = [0, -0.4, 0]\n'
        'inertia = [0.1, 0.05, 0.11]\n[[joint]]\nname = "j"\ntype = "revolute"\nparent = "ground"\nchild = "b"\n',
        encoding="utf-8",
    )
    linear = fl.linearize(fl.load(path), parameters=["b.center.y", "b.inertia.zz", "b.inertia.xx"])
    m, g, l, J = 2.0, 9.81, 0.4, 0.11  # noqa: E741
    about = m * l**2 + J
    by_l = -m * g / about + m * g * l * 2 * m * l / about**2
    close(linear.derivatives["b.center.y"].A[1, 0], -by_l, rtol=1e-8)
    close(linear.derivatives["b.inertia.zz"].A[1, 0], m * g * l / about**2, rtol=1e-8)
    close(linear.derivatives["b.inertia.xx"].A, 0.0, atol=1e-9)
    moved = fl.load(path).with_parameters({"b.center.y": -0.6, "b.inertia.zz": 0.12})
    close(fl.linearize(moved).A[1, 0], -m * g * 0.6 / (m * 0.36 + 0.12), rtol=1e-12)


def test_joints_and_products_of_inertia_in_closed_form(tmp_path: Path) -> None:
    """A plate on a torsion spring about (1, 1, 0)/sqrt(2), a ball welded to it: (m g z - k)/J, J = n.Jn + m x^2/2."""
    path = tmp_path / "plate.toml"
    path.write_text(
        'name = "plate"\ngravity = [0, 0, -9.81]\n[[body]]\nname = "p"\nmass = 1.0\n'
        "inertia = [0.3, 0.2, 0.25, 0.04, 0, 0]\n"
        '[[body]]\nname = "ball"\nmass = 2.0\n'
        '[[joint]]\nname = "j"\ntype = "revolute"\nparent = "ground"\nchild = "p"\naxis = [1, 1, 0]\nstiffness = 5.0\n'
        '[[joint]]\nname = "weld"\ntype = "fixed"\nparent = "p"\nchild = "ball"\n'
        "placement = { position = [0.3, 0, 0] }\n",
        encoding="utf-8",
    )
    k, J = 5.0, (0.3 + 0.2) / 2 + 0.04 + 2.0 * 0.3**2 / 2
    model = fl.load(path)
    linear = fl.linearize(model, parameters=["p.inertia.xy", "weld.placement.x", "weld.placement.z"])
    close(linear.A[1, 0], -k / J, rtol=1e-12)
    close(linear.derivatives["p.inertia.xy"].A[1, 0], k / J**2, rtol=1e-8)
    close(linear.derivatives["weld.placement.x"].A[1, 0], k / J**2 * 2.0 * 0.3, rtol=1e-8)
    close(linear.derivatives["weld.placement.z"].A[1, 0], 2.0 * 9.81 / J, rtol=1e-8)
    close(fl.linearize(model.with_parameters({"weld.placement.x": 0.0})).A[1, 0], -k / 0.29, rtol=1e-12)


def test_a_four_bar_fmu() -> None:
    names = ["m", "k", "l0", "c"]
    fmu = shared("composition_bar.fmu", lambda path: build_fmu(four_bar(), path))
    native = four_bar()
    with fl.load(fmu) as model:
        point = fl.trim(model)
        linear = fl.linearize(model, point, parameters=names)
    expected = fl.linearize(native, fl.trim(native), independent=linear.states.names, parameters=names)
    for name in names:
        of_fmu, exact = linear.derivatives[name], expected.derivatives[name]
        close(of_fmu.A, exact.A, atol=1e-7 * np.abs(exact.A).max())
        close(of_fmu.states, exact.states, atol=1e-8)
        assert (np.abs(of_fmu.A - exact.A) <= 20 * of_fmu.errors.A + 1e-9).all()


def test_a_connected_system() -> None:
    spring = OdeModel("spring", {}, inputs=["x"], parameters={"k": 3.0}, outputs={"f": "-k*x"})
    wires = [("cart.px", "spring.x"), ("spring.f", "cart.F")]
    system = fl.connect({"cart": oscillator(2.0), "spring": spring}, wires)
    linear = fl.linearize(system, parameters=["spring.k", "cart.m"])
    close(linear.derivatives["spring.k"].A, [[0, 0], [-0.5, 0]], atol=1e-12)
    close(linear.derivatives["cart.m"].A, [[0, 0], [1.0, 0.025]], atol=1e-12)


def test_an_fmu_in_a_connected_system() -> None:
    """Its parameters, and beside them those of a member of equations, as in the system of equations alone."""
    spring = OdeModel("spring", {}, inputs=["x"], parameters={"k": 3.0}, outputs={"f": "-k*x"})
    wires = [("cart.px", "spring.x"), ("spring.f", "cart.F")]
    names = ["spring.k", "cart.m"]
    expected = fl.linearize(fl.connect({"cart": oscillator(), "spring": spring}, wires), parameters=names)
    with fl.load(oscillator_fmu()) as cart:
        system = fl.connect({"cart": cart, "spring": spring}, wires)
        linear = fl.linearize(system, parameters=names)
        box = fl.uncertain(system, None, {"spring.k": (2.0, 4.0), "cart.m": (0.9, 1.1)})
        with pytest.raises(UnknownNameError, match=r"'mm' is not .* build it with that parameter"):
            fl.linearize(system, parameters=["cart.mm"])
        with pytest.raises(UnknownNameError, match=r"not a parameter of a member\. Did you mean 'spring\.k'"):
            fl.linearize(system, parameters=["spring.kk"])
    assert linear.inputs.names == ()
    for name in names:
        close(linear.derivatives[name].A, expected.derivatives[name].A, atol=1e-8)
    assert box.blocks == (("spring.k", 1), ("cart.m", 1))


def test_groups_of_eigenvalues() -> None:
    """Twice -1, split by p into -1 +- p; a defective pair has the derivative of its mean alone."""
    derivatives, defective = eigenvalue_derivatives(-np.eye(2), [np.array([[0.0, 1.0], [1.0, 0.0]])])
    close(derivatives[:, 0], [-1, 1], atol=1e-14)
    assert defective == []
    derivatives, defective = eigenvalue_derivatives(
        np.array([[0.0, 1.0], [0.0, 0.0]]), [np.array([[3.0, 0.0], [1.0, 1.0]])]
    )
    close(derivatives[:, 0], [2, 2], atol=1e-14)
    assert defective == [[0, 1]]


def test_json_and_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    linear = fl.linearize(oscillator(), parameters=["m", "c"])
    linear.save(tmp_path / "a.json")
    again = fl.LinearModel.load(tmp_path / "a.json")
    np.testing.assert_array_equal(again.derivatives["c"].A, linear.derivatives["c"].A)
    np.testing.assert_array_equal(again.derivatives["m"].errors.B, linear.derivatives["m"].errors.B)
    np.testing.assert_array_equal(again.eigenvalue_derivatives(), linear.eigenvalue_derivatives())
    (tmp_path / "plant.py").write_text("from tests.composition.plants import oscillator\n", encoding="utf-8")
    assert main(["linearize", f"{tmp_path}/plant.py:oscillator", "--parameters", "m,c", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["derivatives"]["m"]["A"] == linear.derivatives["m"].A.tolist()
    assert np.array(document["eigenvalue_derivatives"]).shape == (2, 2, 2)
    assert main(["linearize", f"{tmp_path}/plant.py:oscillator", "--parameters", "m,c"]) == 0
    assert "p dl/dp" in capfd.readouterr().out
    picture = tmp_path / "a.png"
    options = ["--kind", "sensitivities", "--parameters", "m,c", "-o", str(picture)]
    assert main(["plot", f"{tmp_path}/plant.py:oscillator", *options]) == 0
    assert picture.stat().st_size > 5000
    assert main(["plot", f"{tmp_path}/plant.py:oscillator", "--kind", "sensitivities", "-o", str(picture)]) == 2
    assert "no derivatives by parameters. Name some when you linearize: --parameters NAME" in capfd.readouterr().err


def test_what_changes_coordinates_leaves_derivatives_out() -> None:
    from fmilin.reduction.minimal import Conditioning

    linear = fl.linearize(oscillator(), parameters=["m"])
    for change in (Conditioning(modal=True), Conditioning(hold="zoh", sample_time=0.1), Conditioning(balance="norms")):
        assert change.apply(linear).derivatives == {}


CASES: Mapping[str, tuple[Model, list[str], str]] = {
    "misspelled": (oscillator(), ["mm"], r"'mm' is not a parameter of 'oscillator'\. Did you mean 'm'"),
    "none at all": (OdeModel("z", {"x": "-x"}), ["m"], r"'z' has no parameters that can be changed"),
    "twice": (oscillator(), ["m", "m"], "a sequence of different names"),
}


@pytest.mark.parametrize("case", CASES)
def test_parameters_that_are_none(case: str) -> None:
    model, names, words = CASES[case]
    with pytest.raises(UsageError, match=words):
        fl.linearize(model, parameters=names)


def test_a_mass_that_is_a_number_in_an_fmu() -> None:
    fmu = shared("composition_bar.fmu", lambda path: build_fmu(four_bar(), path))
    words = r"'crank\.mass'.* Numbers inside an FMU cannot be varied"
    with fl.load(fmu) as model, pytest.raises(UnknownNameError, match=words):
        fl.linearize(model, parameters=["crank.mass"])


def test_a_fold_and_a_kink() -> None:
    fold = OdeModel("fold", {"x": "p - x^2"}, parameters={"p": 0.0})
    with pytest.raises(NumericalError, match=r"singular there \(a fold, .* its derivative is infinite"):
        fl.linearize(fold, fl.trim(fold), parameters=["p"])
    kink = OdeModel("kink", {"x": "-(1 + abs(p))*x"}, parameters={"p": 0.0})
    with pytest.raises(NumericalError, match="has a kink where 'p' is 0"):
        fl.linearize(kink, parameters=["p"])


def test_coordinates_that_are_no_states() -> None:
    with pytest.raises(UsageError, match="parameters= and coordinates= exclude each other"):
        fl.linearize(four_bar(), coordinates="tangent", parameters=["m"])
    model = cartesian_pendulum()
    with pytest.raises(UsageError, match="'theta' is not a state of the model"):
        fl.linearize(model, independent=["theta=atan2(x,-y)"], parameters=["m"])
