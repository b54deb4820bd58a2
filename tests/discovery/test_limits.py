"""Models that do not move, cannot be asked everywhere, or hide their constraints from the library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.discovery.invariant import Invariant, independent_ones
from fmilin.discovery.library import Library, Term
from fmilin.discovery.tangent import linearize_on_tangent
from fmilin.model.files import read_constraints
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray
from fmilin.systems import four_bar, rolling_disk, stewart_platform
from tests.discovery import systems
from tests.fmus.make import build
from tests.systems.skate_model import skate


def test_where_nothing_moves_it_is_said_what_is_needed() -> None:
    still = FunctionModel("still", {"a": 1.0, "b": 0.0}, lambda _t, _x, _u: np.zeros(2))
    found = fl.discover(still)
    assert found.constraints == []
    (warning,) = found.warnings
    assert warning.kind == "nothing-moves"
    assert "excite=" in str(warning)


def test_a_state_that_never_changes_is_a_parameter() -> None:
    found = fl.discover(skate().with_constraints([]))
    assert found.constant == ("s",)
    assert found.constraints == []


def test_a_model_without_rates_is_refused() -> None:
    broken = FunctionModel("broken", {"a": 1.0}, lambda _t, x, _u: np.where(x == 1.0, 0.0, np.nan))
    with pytest.raises(fl.NumericalError, match="gives no rates at states beside its point"):
        fl.discover(broken)


def test_states_beyond_the_model_s_domain_are_left_out() -> None:
    plain = systems.stabilized_pendulum(0.0, 0.0)

    def rates(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        f = plain.evaluate(t, x, u).derivatives
        found: FloatArray = f * np.sqrt(0.9 - x[0]) / np.sqrt(0.9 - x[0])
        return found

    start = dict(zip(plain.states.names, plain.start.states.tolist(), strict=True))
    with np.errstate(invalid="ignore"):
        found = fl.discover(FunctionModel("edge", start, rates, inputs=["force"]))
    assert found.constraints == ["x^2 + y^2 - 1.69"]


def test_an_input_that_saturates_is_no_hindrance() -> None:
    plain = systems.stabilized_pendulum(0.0, 0.0)
    start = dict(zip(plain.states.names, plain.start.states.tolist(), strict=True))
    limited = FunctionModel(
        "limited", start, lambda t, x, u: plain.evaluate(t, x, np.clip(u, -0.1, 0.1)).derivatives, inputs=["force"]
    )
    assert fl.discover(limited).constraints == ["x^2 + y^2 - 1.69"]


def exponential() -> fl.Model:
    """A mass on the curve y = exp(x) in a bowl, at its equilibrium: in no library."""

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        x, y, vx, _ = z
        e = np.exp(x)
        G, gamma = np.array([-e, 1.0]), e * vx * vx
        F = np.array([u[0] - 4.0 * x - e * 4.0 * (y - 1.0), -4.0 * (y - 1.0)])
        pull = (G @ F - gamma) / (G @ G)
        return np.concatenate((z[2:], F - G * pull))

    start = {"x": 0.0, "y": 1.0, "vx": 0.0, "vy": 0.0}
    return FunctionModel("exponential", start, rates, inputs=["u"])


def test_what_is_in_no_library_is_missed_and_said() -> None:
    found = fl.discover(exponential())
    assert found.constraints == []
    assert [w.kind for w in found.warnings] == ["incomplete"]
    assert "linearize_on_tangent(model)" in str(found.warnings[0])


def on_the_curve() -> fl.Model:
    return exponential().with_constraints([fl.Constraint.from_text("y - exp(x)")])


@pytest.mark.parametrize("build_model", [on_the_curve, four_bar, stewart_platform])
def test_without_a_formula_the_linear_model_is_the_same(build_model: Callable[[], fl.Model]) -> None:
    model = build_model()
    found = linearize_on_tangent(model)
    true = fl.linearize(model, independent=found.states.names)
    for mine, theirs in ((found.A, true.A), (found.B, true.B), (found.T, true.T), (found.C, true.C)):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-8 * max(1.0, float(np.abs(theirs).max(initial=0))))
    assert [w.kind for w in found.warnings if w.kind in ("tangent-only", "dependent-states")] == ["tangent-only"]


def test_tangent_space_by_differences_carries_its_error() -> None:
    found = linearize_on_tangent(exponential(), derivatives="differences", independent=["x", "vx"])
    true = fl.linearize(on_the_curve(), independent=["x", "vx"])
    assert (np.abs(found.A - true.A) <= found.errors.A + 1e-15).all()
    assert 0 < found.accuracy.A < 1e-5


def test_tangent_space_refusals() -> None:
    with pytest.raises(fl.NumericalError, match="only at an equilibrium"):
        linearize_on_tangent(rolling_disk(speed=2.0))
    with pytest.raises(fl.UsageError, match="2 can move independently"):
        linearize_on_tangent(exponential(), independent=["x"])
    with pytest.raises(fl.NumericalError, match="do not determine the others"):
        linearize_on_tangent(exponential(), independent=["x", "y"])


@pytest.mark.parametrize("name", ["bounces", "switches", "relay", "stiffens"])
def test_fmus_with_events_have_no_constraints(name: str, tmp_path: Path) -> None:
    with fl.load(build(name, tmp_path)) as model:
        assert fl.discover(model).constraints == []


def test_the_file_is_read_again_with_its_levels() -> None:
    found = fl.discover(rolling_disk().with_constraints([]))
    read = read_constraints(found.toml().encode())
    assert [c.expression.text for c in read.constraints] == found.constraints
    assert [c.level for c in read.constraints] == ["position", "velocity", "velocity", "velocity"]


def test_names_that_need_backquotes_survive() -> None:
    plain = systems.stabilized_pendulum(0.0, 0.0)
    names = ['rod "a" x', "y pos", "v x", "v y"]
    start = dict(zip(names, plain.start.states.tolist(), strict=True))
    model = FunctionModel("odd", start, lambda t, x, u: plain.evaluate(t, x, u).derivatives, inputs=["force"])
    found = fl.discover(model)
    assert found.constraints == ['`rod "a" x`^2 + `y pos`^2 - 1.69']
    assert read_constraints(found.toml().encode()).constraints[0].expression.text == found.constraints[0]


def test_what_fails_verification_is_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that are rounded too boldly make another ellipse: it is not kept, and that is seen."""
    w = np.array([1.0, 1.013])

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        G = w * z[:2]
        F = np.array([u[0], -9.81])
        return np.concatenate((z[2:], F - G * ((G @ F + (w * z[2:]) @ z[2:]) / (G @ G))))

    ellipse = FunctionModel("ellipse", {"x": 0.6, "y": -0.8, "vx": 0.0, "vy": 0.0}, rates, inputs=["u"])
    assert len(fl.discover(ellipse).constraints) == 1
    monkeypatch.setattr("fmilin.discovery.invariant.AGREES", 0.05)
    lines: list[str] = []
    found = fl.discover(ellipse, progress=lines.append)
    assert found.constraints == []
    assert found.order == 4
    told = [line.removeprefix("Found: ") for line in lines if line.startswith("Found: ")]
    withdrawn = [line.removeprefix("Withdrawn: ") for line in lines if line.startswith("Withdrawn: ")]
    assert len(told) == len(withdrawn) > 0
    assert all(line.startswith(f"{text}, ") for text, line in zip(told, withdrawn, strict=True))
    assert any("changes at other states" in k.reason for k in found.kept_out)


def test_a_body_that_is_not_pulled_may_as_well_be_free() -> None:
    """Pinned, or free with its momentum at zero: no number tells; it is shown, and not used."""

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        theta, w = z[2], z[5]
        arm = 0.3 * np.array([np.cos(theta), np.sin(theta)])
        turn = u[0] / (0.2 + 0.09 * 2.0)
        across = np.array([-arm[1], arm[0]])
        return np.concatenate((z[3:], across * turn - arm * w * w, [turn]))

    start = {"x": 0.3, "y": 0.0, "theta": 0.0, "vx": 0.0, "vy": 0.0, "w": 0.0}
    found = fl.discover(FunctionModel("arm", start, rates, inputs=["torque"]))
    assert found.constraints == []
    assert any("momentum" in k.reason and "vx" in k.expression for k in found.kept_out)


def test_what_is_at_rest_without_a_constraint_is_not_tied() -> None:
    """In polar coordinates nothing turns a particle that does not turn, and friction alone moves nothing at rest."""

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        r, _, s, v, w, c = z
        return np.array([v, w, c, r * w * w + u[0] - s, -2 * v * w / r, -0.3 * c])

    start = {"r": 1.0, "phi": 0.3, "s": 0.5, "v": 0.0, "w": 0.0, "c": 0.0}
    assert fl.discover(FunctionModel("particle", start, rates, inputs=["u"])).constraints == []


def test_what_is_kept_at_one_time_only_is_no_constraint() -> None:
    def rates(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        push = u[0] - x[0] - np.sin(x[1])
        return np.array([x[2], x[3], push, -2.0 * push + t * x[0]])

    start = {"x": 0.0, "y": 0.0, "vx": 0.0, "vy": 0.0}
    found = fl.discover(FunctionModel("late", start, rates, inputs=["u"]))
    assert found.constraints == []
    assert any("changes at other states" in k.reason for k in found.kept_out)


def test_no_states_nothing_to_find(tmp_path: Path) -> None:
    with fl.load(build("no_states", tmp_path)) as model:
        found = fl.discover(model)
    assert (found.constraints, found.order, found.warnings) == ([], 0, ())


def test_a_square_is_no_constraint_where_it_is_the_first() -> None:
    """Where x^2 = 1 the gradient of (x^2 - 1)^2 vanishes, whether or not x^2 - 1 is there beside it."""
    terms = Library([Term(((0, 4),)), Term(((0, 2),))])
    plain, square = (Invariant(terms, np.array(c), level) for c, level in (([0.0, 1.0], 1.0), ([1.0, -2.0], -1.0)))
    x, sizes = np.array([[1.0], [-1.0], [1.0]]), np.ones(1)
    assert independent_ones([square], x, sizes) == []
    assert independent_ones([plain], x, sizes) == [plain]
