"""Margins of loops with delays against closed forms, and against a sweep over the delay."""

from __future__ import annotations

import math
from dataclasses import replace

import control
import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq

import fmilin as fl
from fmilin.design.delayed_margins import compute_delayed_margins
from fmilin.numerics.delay_form import DelayForm


def make_loop(system: control.StateSpace, delay: float) -> fl.LinearModel:
    """Return the loop at the input of a plant that is closed by the gain -1, with a delay."""
    gain = control.ss([], [], [], [[-1.0]], inputs="e", outputs="u")
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    return fl.loop_transfer(fl.connect({"plant": system, "law": gain}, wires, delays={"plant.u": delay}), "plant.u")


def test_the_delayed_integrator_bears_a_quarter_turn() -> None:
    integrator = control.ss(0, 1, 1, 0, inputs="u", outputs="y")
    for delay in (0.0, 0.3, 1.2):
        margins = fl.design.margins(make_loop(integrator, delay))
        assert margins.stable
        assert margins.delay == pytest.approx(math.pi / 2 - delay, abs=1e-12)
        assert math.radians(margins.phase) == pytest.approx(math.pi / 2 - delay, abs=1e-12)
        if delay:
            assert margins.gain[1] == pytest.approx(math.pi / 2 / delay, rel=1e-12)
    assert not fl.design.margins(make_loop(integrator, 1.6)).stable


def test_without_a_delay_they_are_those_of_the_loop_without_delays() -> None:
    plant = control.ss([[0, 1], [-2, -0.5]], [[0], [1]], [[1.5, 0.3]], [[0]], inputs="u", outputs="y")
    gain = control.ss([], [], [], [[-1.0]], inputs="e", outputs="u")
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    plain = fl.design.margins(fl.loop_transfer(fl.connect({"plant": plant, "law": gain}, wires), "plant.u"))
    late = fl.design.margins(make_loop(plant, 0.0))
    for name in ("phase", "delay", "disk", "gain", "phase_frequency"):
        assert getattr(late, name) == pytest.approx(getattr(plain, name), rel=1e-8, nan_ok=True)


def test_the_delay_margin_is_where_an_eigenvalue_crosses_the_axis() -> None:
    rng = np.random.default_rng(4)
    for _ in range(4):
        A = rng.standard_normal((3, 3))
        A -= (np.linalg.eigvals(A).real.max() + 0.4) * np.eye(3)
        plant = control.ss(A, rng.standard_normal((3, 1)), rng.standard_normal((1, 3)), 0, inputs="u", outputs="y")
        gain = control.ss([], [], [], [[-1.0]], inputs="e", outputs="u")
        wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
        system = fl.connect({"plant": plant, "law": gain}, wires, delays={"plant.u": 0.05})
        margins = fl.design.margins(fl.loop_transfer(system, "plant.u"))
        closed = fl.linearize(system)
        assert isinstance(closed, fl.DelayedLinearModel)
        if not margins.stable or math.isinf(margins.delay):
            continue

        def grow(delay: float, closed: fl.DelayedLinearModel = closed) -> float:
            return float(closed.with_delay_values({"plant.u": delay}).eigenvalues(4).real.max())

        expected = 0.05 + margins.delay
        crossing = brentq(grow, 0.9 * expected, 1.1 * expected, xtol=1e-9)
        assert margins.delay == pytest.approx(crossing - 0.05, abs=1e-6)


def make_single(
    A: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, delay: float, d: float = 0.0, direct: float = 0.0
) -> DelayForm:
    """Return the loop c (s - A)^-1 b + d behind a delay, beside a direct gain."""
    A = np.atleast_2d(np.asarray(A, dtype=float))
    n = len(A)
    return DelayForm(
        A, np.zeros((n, 1)), np.reshape(b, (n, 1)), np.reshape(c, (1, n)), np.zeros((1, n)),
        np.full((1, 1), direct), np.full((1, 1), d), np.ones((1, 1)), np.zeros((1, 1)), np.array([delay]),
    )  # fmt: skip


def test_the_crossings_of_a_narrow_resonance_are_found() -> None:
    w0, z = 1.0137, 1e-3
    form = make_single(
        [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -(w0**2), -2 * z * w0]], [1.0, 0, 1], [-0.3, -3 * z * w0**2, 0], 0.05
    )
    w = w0 * (1 + np.linspace(-0.02, 0.02, 400_001))
    L = form.evaluate(np.asarray(1j * w, dtype=np.complex128))[:, 0, 0]
    k = np.flatnonzero(np.diff(np.sign(np.abs(L) - 1)))
    margins = compute_delayed_margins(form)
    assert len(k) == 2
    assert margins.phase == pytest.approx(np.abs(np.angle(L[k])).min(), abs=1e-4)
    assert margins.delay == pytest.approx(((np.angle(L[k]) % (2 * math.pi)) / w[k]).min(), abs=1e-4)
    assert margins.disk == pytest.approx(1 / np.abs(1 / (1 - L) - 0.5).max(), rel=1e-6)
    assert not margins.warnings


def test_a_slow_integrator_with_a_short_delay_bears_a_quarter_turn() -> None:
    margins = compute_delayed_margins(make_single(0.0, 1.0, -1e-5, 0.01))
    assert margins.phase == pytest.approx(math.pi / 2 - 1e-7, abs=1e-12)
    assert margins.delay == pytest.approx(math.pi / 2 / 1e-5 - 0.01, rel=1e-10)
    assert margins.gain[1] == pytest.approx(math.pi / 2 / 1e-7, rel=1e-9)


def make_gain_loop(plant: control.StateSpace, **delays: float) -> fl.LinearModel:
    """Return the loop at the input of a plant that is closed by the gain 1, with delays of wires."""
    gain = control.ss([], [], [], [[1.0]], inputs="e", outputs="u")
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    named = {name.replace("_", "."): seconds for name, seconds in delays.items()}
    return fl.loop_transfer(fl.connect({"plant": plant, "law": gain}, wires, delays=named), "plant.u")


def test_delays_of_zero_leave_the_margins_at_infinity_and_far_above_the_corners() -> None:
    direct = fl.design.margins(make_gain_loop(control.ss(-1, 1, -0.9, 0.5, inputs="u", outputs="y"), plant_u=0.0))
    assert direct.gain[1] == pytest.approx(2.0, rel=1e-9)  # 1/D, at infinite frequency
    assert direct.disk == pytest.approx(2 / 3, rel=1e-9)
    # -0.9 (1 - 1e-4 s)/(s + 1)^2: s^2 + (2 - 0.9e-4 k) s + 1 + 0.9 k by Routh
    plant = control.ss([[0, 1], [-1, -2]], [[0], [1]], [[-0.9, 0.9e-4]], 0, inputs="u", outputs="y")
    far = fl.design.margins(make_gain_loop(plant, plant_u=0.0))
    assert far.gain[1] == pytest.approx(2 / 0.9e-4, rel=1e-9)


def test_a_direct_gain_beside_the_delay_counts_at_infinite_frequency() -> None:
    margins = compute_delayed_margins(make_single(-1.0, 1.0, -0.4, 0.1, direct=0.5))
    w = margins.gain_frequency
    assert margins.gain[1] == pytest.approx(1 / (0.5 - 0.4 * np.exp(-0.1j * w) / (1 + 1j * w)), rel=1e-9)
    assert margins.gain[1] < 2.0  # L turns around its limit 0.5
    assert margins.delay == math.inf
    assert not margins.warnings
    large = compute_delayed_margins(make_single(-1.0, 1.0, -0.4, 0.1, direct=-3.0))
    assert large.stable
    assert large.delay == 0.0


def test_a_direct_gain_behind_the_delay_is_a_neutral_loop_that_has_margins() -> None:
    # -k (0.5 + 0.9/(s + 1)) exp(-0.1 s): |L(j w)| = 1 at w^2 = (1.4^2 - 1)/(1 - 0.25), and waves grow for k >= 2
    margins = compute_delayed_margins(make_single(-1.0, 1.0, -0.9, 0.1, d=-0.5))
    w = math.sqrt((1.4**2 - 1) / 0.75)
    L = -(0.5 + 0.9 / (1 + 1j * w)) * np.exp(-0.1j * w)
    assert margins.stable
    assert margins.phase == pytest.approx(abs(np.angle(L)), rel=1e-9)
    assert margins.delay == pytest.approx(np.angle(L) % (2 * math.pi) / w, rel=1e-9)
    assert 1 < margins.gain[1] <= 2.0
    assert not margins.warnings
    with pytest.raises(fl.UsageError, match="The system is neutral"):
        compute_delayed_margins(make_single(-1.0, 1.0, -0.9, 0.1, d=-1.5))


def repeat(M: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a matrix twice, side by side."""
    return np.asarray(np.kron(np.eye(2), M), dtype=np.float64)


def test_several_wires_have_a_disk_margin() -> None:
    form = make_single(0.0, 1.0, -1.0, 0.3)
    pair = DelayForm(
        repeat(form.A), repeat(form.B1), repeat(form.B2), repeat(form.C1), repeat(form.C2), repeat(form.D11),
        repeat(form.D12), repeat(form.D21), repeat(form.D22), np.array([0.3, 0.2]),
    )  # fmt: skip
    single, both = compute_delayed_margins(form), compute_delayed_margins(pair)
    assert both.disk == pytest.approx(single.disk, rel=1e-9)  # of the loop with the longer delay
    assert math.isnan(both.phase)


def test_a_loop_on_its_limit_says_that_it_is_not_decided() -> None:
    margins = compute_delayed_margins(make_single(0.0, 1.0, -math.pi / 2, 1.0))
    assert "is within its error of the stability limit" in margins.warnings[0]


def test_errors_of_all_entries_count_in_the_stability() -> None:
    loop = make_gain_loop(control.ss(0, 1, -1, 0, inputs="u", outputs="y"), plant_u=math.pi / 2 - 1e-7)
    assert isinstance(loop, fl.DelayedLinearModel)
    assert fl.design.margins(loop).stable
    assert not fl.design.margins(loop).warnings
    errors = replace(loop.core.errors, C=loop.core.errors.C + 1e-6)
    core = replace(loop.core, errors=errors)
    doubtful = fl.DelayedLinearModel.of_core(core, list(loop.delays), list(loop.delays.values()))
    assert "is within its error of the stability limit" in fl.design.margins(doubtful).warnings[0].message


def find_abscissa(plant: control.StateSpace, delay: float) -> float:
    """Return the largest real part of x' = A x - B C x(t - delay), by Chebyshev collocation of its generator."""
    count, order = 16, plant.A.shape[0]
    k = np.arange(count + 1)
    nodes = np.cos(np.pi * k / count)
    weights = np.where((k == 0) | (k == count), 2.0, 1.0) * (-1.0) ** k
    gaps = nodes[:, None] - nodes + np.eye(count + 1)
    D = np.outer(weights, 1 / weights) / gaps
    D -= np.diag(D.sum(axis=1))
    generator = np.kron(2 / delay * D, np.eye(order))
    generator[:order] = 0.0
    generator[:order, :order] = plant.A
    generator[:order, -order:] = -plant.B @ plant.C
    return float(np.linalg.eigvals(generator).real.max())


def test_delay_margins_of_twenty_random_loops_are_those_of_a_sweep() -> None:
    """A sweep over the delay in steps of a twentieth, and the root where the rightmost eigenvalue crosses the axis."""
    random = np.random.default_rng(51)
    compared, largest = 0, 0.0
    while compared < 20:
        order = int(random.integers(2, 5))
        A = random.standard_normal((order, order))
        A -= (np.linalg.eigvals(A).real.max() + random.uniform(0.1, 0.6)) * np.eye(order)
        B, C = random.standard_normal((order, 1)), random.standard_normal((1, order))
        plant = control.ss(A, B, C, 0, inputs="u", outputs="y")
        delay = float(random.uniform(0.02, 0.3))
        margins = fl.design.margins(make_loop(plant, delay))
        if not margins.stable or not 0.01 < margins.delay < 4.0:
            continue
        grid = delay + np.linspace(0.0, 1.2 * margins.delay, 25)
        growths = [find_abscissa(plant, float(T)) for T in grid]
        first = int(np.argmax(np.array(growths) > 0))
        assert first > 0
        crossing = brentq(lambda T, system: find_abscissa(system, T), grid[first - 1], grid[first], args=(plant,))
        largest = max(largest, abs(crossing - delay - margins.delay) / margins.delay)
        compared += 1
    assert largest < 1e-6
