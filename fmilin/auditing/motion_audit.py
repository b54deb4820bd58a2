"""Second ways of periodic motions: another integrator over the period, the Newton step, sums over the multipliers.

The multipliers of charts of many motions are compared with their exponents, margins and verdicts with both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.audit_result import Audit, AuditRow, compare, compare_claim, keep_worst
from fmilin.errors import FmilinError
from fmilin.periodic.floquet import Floquet
from fmilin.periodic.fourier import Interpolant
from fmilin.periodic.orbit import PeriodicOrbit, simulate_motion
from fmilin.periodic.periodic_linearization import linearize_periodic
from fmilin.periodic.periodic_model import PeriodicModel
from fmilin.signals import FloatArray
from fmilin.simulation.method import Method
from fmilin.tolerances import AUDIT_CLOSURE_TOLERANCE, AUDIT_MULTIPLIER_TOLERANCE, AUDITED_STEP, CLEAR_OF_LIMIT

if TYPE_CHECKING:
    from fmilin.periodic.chart import FloquetChart


def audit_orbit(orbit: PeriodicOrbit) -> Audit:
    """Return the audit of an orbit: where another integrator ends after a period, and the step Newton would take."""
    rows: list[AuditRow] = []
    unchecked: list[str] = []
    try:
        rows += _compare_closure(orbit)
    except FmilinError as error:
        unchecked.append(f"the end of the period by another integrator: {error}")
    rows += _compare_times(orbit.times, orbit.period, len(orbit.times) - 1)
    offsets = np.array([point.time for point in orbit.points]) - orbit.start.time - orbit.times
    k = int(np.argmax(np.abs(offsets)))
    rows.append(compare(f"time of point {k + 1}", float(offsets[k]), 0.0, "times", 1e-9 * orbit.period))
    unchecked.append("points[0].time: where the motion begins, as given, if the model depends on it")
    unchecked.append("nodes and adjusted: intermediate results of the search")
    unchecked.append("distance and monodromy_error: bounds; the Newton step is the second way")
    unchecked.append("regularity: a ratio of singular values depends on how the shooting equations are scaled")
    return Audit("orbit", orbit.model.info.name, tuple(rows), tuple(unchecked))


def _compare_closure(orbit: PeriodicOrbit) -> Iterator[AuditRow]:
    """Integrate over the period by another method, at tighter tolerances, from the start."""
    start = orbit.start
    scales = orbit.model.states.scales(np.abs(orbit.states()).max(axis=0))
    used = orbit.run.method if isinstance(orbit.run.method, str) else orbit.run.method.name
    other = "DOP853" if used == "Radau" else "Radau"
    run = replace(orbit.run, method=Method(other, 1e-10))
    stated = orbit.states()
    again = simulate_motion(orbit.model, start, start.time + np.linspace(0.0, orbit.period, len(stated)), run).states
    end = again[-1]
    gap = (end - start.states - orbit.shift) / scales
    tolerance = AUDIT_CLOSURE_TOLERANCE + 10 * float(np.abs(gap).max())
    off = (stated - again) / scales
    i, j = np.unravel_index(int(np.argmax(np.abs(off))), off.shape)
    quantity = f"{orbit.model.states.names[j]} at t = {orbit.times[i]:.6g} s after the start, in its size"
    yield compare(quantity, float(off[i, j]), 0.0, f"integration by {other}", tolerance)
    k = int(np.argmax(np.abs(gap)))
    name = orbit.model.states.names[k]
    yield compare(
        f"closure of {name}, in its size", 0.0, float(gap[k]), f"integration by {other}", AUDIT_CLOSURE_TOLERANCE
    )
    largest = float(np.abs(gap).max(initial=0.0))
    yield compare("closure", orbit.closure, largest, f"integration by {other}", AUDIT_CLOSURE_TOLERANCE)
    yield from _compare_newton_step(orbit, end - start.states - orbit.shift, scales)


def _compare_newton_step(orbit: PeriodicOrbit, gap: FloatArray, scales: FloatArray) -> Iterator[AuditRow]:
    """Solve (1 - M) d = gap for the step d of the start, M being the monodromy matrix; least norm where M has ones."""
    periodic = linearize_periodic(orbit.model, orbit)
    M = _integrate(periodic)
    T = periodic.T[0] / scales[:, None]
    coordinates = np.linalg.lstsq(T, gap / scales, rcond=None)[0]
    step = T @ np.linalg.lstsq(np.eye(len(M)) - M, coordinates, rcond=1e-7)[0]
    k = int(np.argmax(np.abs(step)))
    name = orbit.model.states.names[k]
    yield compare(f"Newton step of {name}, in its size", 0.0, float(step[k]), "monodromy matrix", AUDITED_STEP)
    if orbit.distance:
        bounds = np.array([orbit.distance.get(state, 0.0) for state in orbit.model.states.names]) / scales
        beyond = np.abs(step) - 2 * bounds  # the step starts from this end, which has an error of its own
        k = int(np.argmax(beyond))
        name = orbit.model.states.names[k]
        holds = bool(beyond[k] <= AUDITED_STEP)
        yield compare_claim(f"{name} is within its stated distance", "Newton step", holds=holds)


def audit_periodic_model(periodic: PeriodicModel) -> Audit:
    """Return the audit of a periodic model: its multipliers by another integrator."""
    rows = list(_compare_floquet(periodic.floquet()))
    if periodic.A.shape[1]:
        M = _integrate(periodic)
        rows = [
            *_compare_multipliers(periodic, M),
            *_compare_modes(periodic, M),
            *_compare_symmetries(periodic, M),
            *rows,
        ]
    rows += _compare_times(periodic.times, periodic.period, len(periodic.times))
    unchecked = (
        "A, B, C, D, T, f0, points and closure against the model, which a periodic model does not hold: audit its "
        "orbit",
        "symmetries are directions: their length says nothing",
        "error and monodromy_error: estimates, which decide its verdict",
    )
    return Audit("periodic model", periodic.info.name, tuple(rows), unchecked)


def _compare_modes(periodic: PeriodicModel, M: FloatArray) -> list[AuditRow]:
    """Compare what becomes of each mode after a period with the mode times its multiplier."""
    floquet = periodic.floquet()
    rounding = AUDIT_MULTIPLIER_TOLERANCE * (1.0 + float(np.linalg.norm(M))) + 10 * floquet.accuracy["multipliers"]
    comparisons = []
    for k, multiplier in enumerate(floquet.multipliers):
        shape = floquet.modes[0, :, k]
        length = float(np.linalg.norm(shape))
        if not (np.isfinite(shape).all() and length > 0):
            continue
        residual = float(np.linalg.norm(M @ shape - multiplier * shape)) / length
        # Of two multipliers in a Jordan block the second mode is known to a root of rounding.
        tolerance = float(np.sqrt(rounding))
        comparisons.append(compare(f"residual of mode {k + 1}", 0.0, residual, "monodromy matrix by DOP853", tolerance))
    return keep_worst(comparisons)


def _compare_times(times: FloatArray, period: float, parts: int) -> list[AuditRow]:
    """Compare times with equal parts of the period."""
    second = times[0] + np.arange(len(times)) * period / max(parts, 1)
    return keep_worst(
        compare(f"times[{k}] and period", float(time), float(again), "equal parts of the period", 1e-9 * period)
        for k, (time, again) in enumerate(zip(times, second, strict=True))
    )


def _compare_symmetries(periodic: PeriodicModel, M: FloatArray) -> list[AuditRow]:
    """Compare deviations that come back as they are with what the monodromy matrix makes of them."""
    comparisons = []
    for name, direction in periodic.symmetries.items():
        length = float(np.linalg.norm(direction)) or 1.0
        residual = float(np.linalg.norm(M @ direction - direction)) / length
        tolerance = AUDIT_MULTIPLIER_TOLERANCE * (1.0 + float(np.linalg.norm(M))) * 1e2
        quantity = f"symmetries and jump: change of '{name}' in a period"
        comparisons.append(compare(quantity, 0.0, residual, "monodromy matrix by DOP853", tolerance))
    return keep_worst(comparisons)


def _integrate(periodic: PeriodicModel) -> FloatArray:
    """Return the monodromy matrix by an explicit integrator of high order on the interpolated A."""
    from scipy.integrate import solve_ivp

    if periodic.transitions is not None:
        M: FloatArray = np.eye(periodic.A.shape[1])
        for step in periodic.transitions:
            M = step @ M
        return np.asarray(periodic.jump @ M)
    P = periodic.A.shape[1]
    if np.allclose(periodic.jump, np.eye(P), rtol=0, atol=1e-12):
        interpolant = Interpolant(periodic.A)
        span = 1.0
    else:  # over two periods a reflection has come back to itself
        again = np.linalg.solve(periodic.jump, periodic.A @ periodic.jump)
        interpolant = Interpolant(np.concatenate((periodic.A, again)))
        span = 0.5

    def rate(phase: float, y: FloatArray) -> FloatArray:
        A = interpolant(np.array(phase * span))
        return np.asarray((periodic.period * A @ y.reshape(P, P)).ravel())

    solution = solve_ivp(rate, (0.0, 1.0), np.eye(P).ravel(), method="DOP853", rtol=1e-11, atol=1e-13)
    return np.asarray(periodic.jump @ solution.y[:, -1].reshape(P, P))


def _compare_multipliers(periodic: PeriodicModel, M: FloatArray) -> Iterator[AuditRow]:
    """Compare multipliers with the eigenvalues of the monodromy matrix by another integrator."""
    from scipy.optimize import linear_sum_assignment

    floquet = periodic.floquet()
    stated, second = floquet.multipliers, np.linalg.eigvals(M)
    rounding = AUDIT_MULTIPLIER_TOLERANCE * (1.0 + float(np.linalg.norm(M))) + 10 * floquet.accuracy["multipliers"]
    rows, columns = linear_sum_assignment(np.abs(stated[:, None] - second))
    comparisons = []
    for i, j in zip(rows, columns, strict=True):
        near = np.abs(second - second[j]) <= np.sqrt(rounding)
        group = int(near.sum())
        tolerance = rounding ** (1 / group) if rounding < 1 else rounding  # multiple ones scatter by a root
        comparisons.append(
            compare(f"multiplier {i + 1}", stated[i], second[j], "monodromy matrix by DOP853", tolerance)
        )
    yield from keep_worst(comparisons)
    decides = float(np.abs(second).max(initial=0.0))
    if floquet.stable is not None and abs(decides - 1) > 10 * np.sqrt(rounding):
        yield compare_claim(
            "motion is stable", "monodromy matrix by DOP853", stated=bool(floquet.stable), holds=decides < 1
        )
    trace = float(np.trace(periodic.A.mean(axis=0))) * periodic.period if periodic.transitions is None else None
    if trace is not None:
        growth = float(floquet.exponents.real.sum() * periodic.period)
        tolerance = 1e-5 * (1.0 + abs(trace)) + 10 * floquet.accuracy["exponents"] * periodic.period * len(stated)
        yield compare("logarithm of the product of the multipliers", growth, trace, "mean trace of A", tolerance)


def audit_floquet(floquet: Floquet) -> Audit:
    """Return the audit of multipliers without their model: exponents, modes and the verdict."""
    unchecked = (
        "multipliers and modes against A: audit the periodic model",
        "accuracy and multiplier_errors: estimates, from which the tolerances of this audit follow",
    )
    return Audit("multipliers", floquet.name, tuple(_compare_floquet(floquet)), unchecked)


def _compare_floquet(floquet: Floquet) -> Iterator[AuditRow]:
    """Compare multipliers with the exponentials of the exponents, and the verdict with both."""
    moduli = np.abs(floquet.multipliers)
    symmetric = list(floquet.unit.values())
    if len(symmetric) == 1:  # the motion's own direction, or another symmetry: one multiplier 1 is not growth
        moduli = np.delete(moduli, symmetric)
    largest = float(moduli[np.isfinite(moduli)].max(initial=0.0))
    clear = CLEAR_OF_LIMIT + 10 * floquet.accuracy.get("multipliers", 0.0)
    if floquet.stable is not None and abs(largest - 1) > clear:
        way = "modulus of the multipliers"
        yield compare_claim("motion is stable", way, stated=bool(floquet.stable), holds=largest < 1)
    comparisons = []
    for k, (multiplier, exponent) in enumerate(zip(floquet.multipliers, floquet.exponents, strict=True)):
        second = np.exp(exponent * floquet.period)
        if np.isfinite(second) and np.isfinite(multiplier):
            size = max(abs(second), 1e-12)
            comparisons.append(
                compare(f"multiplier {k + 1}", multiplier, second, "exponential of the exponent", 1e-6 * size)
            )
    yield from keep_worst(comparisons)


UNCHECKED_OF_CHARTS = "multipliers against the model: audit its motions, fl.linearize_periodic(...)"


def audit_chart(chart: FloquetChart) -> Audit:
    """Return the audit of a chart: each number of a motion against the others, the worst of each quantity."""
    rows: list[AuditRow] = []
    for comparisons in zip(*(_compare_charted_motion(chart, index) for index in _list_motions(chart)), strict=True):
        rows += keep_worst(row for kind in comparisons for row in kind)
    return Audit("chart of many motions", chart.name, tuple(rows), (UNCHECKED_OF_CHARTS,))


def _list_motions(chart: FloquetChart) -> Iterator[tuple[int, ...]]:
    for index in np.ndindex(chart.period.shape):
        if chart.ok[index]:
            yield index


def _compare_charted_motion(chart: FloquetChart, index: tuple[int, ...]) -> list[list[AuditRow]]:
    """Return rows of the multipliers, the margin and the verdict of a motion."""
    axes = list(chart.axes.items())
    location = ", ".join(f"{name} = {values[k]:g}" for (name, values), k in zip(axes, index, strict=True))
    period = float(chart.period[index])
    multipliers, exponents = chart.multipliers[index], chart.exponents[index]
    second = np.exp(exponents * period)
    products = [
        compare(f"multiplier {k + 1} at {location}", mu, other, "exponential of the exponent",
                AUDIT_MULTIPLIER_TOLERANCE * max(abs(other), 1e-12))
        for k, (mu, other) in enumerate(zip(multipliers, second, strict=True))
        if np.isfinite(mu) and np.isfinite(other)
    ]  # fmt: skip
    margin = float(chart.margin[index])
    growths = exponents.real[np.isfinite(exponents.real)]
    margins = []
    if np.isfinite(margin) and len(growths):  # symmetries are left out: it is the growth of some mode
        nearest = float(growths[np.argmin(np.abs(growths - margin))])
        tolerance = AUDIT_MULTIPLIER_TOLERANCE * max(float(np.abs(growths).max()), 1 / period)
        margins = [compare(f"margin at {location}", margin, nearest, "growth of a mode", tolerance)]
    verdicts = []
    undecided = chart.undecided is not None and bool(chart.undecided[index])
    largest = float(np.abs(second[np.isfinite(second)]).max(initial=0.0))
    if not undecided and largest > 1 + CLEAR_OF_LIMIT and margin * period > CLEAR_OF_LIMIT:
        claim = f"motion is stable at {location}"
        verdicts = [compare_claim(claim, "exponents", stated=bool(chart.stable[index]), holds=False)]
    elif not undecided and largest < 1 - CLEAR_OF_LIMIT:
        claim = f"motion is stable at {location}"
        verdicts = [compare_claim(claim, "exponents", stated=bool(chart.stable[index]), holds=True)]
    turn = 2 * np.pi / period
    tolerance = AUDIT_MULTIPLIER_TOLERANCE * max(
        turn, float(np.abs(exponents.imag[np.isfinite(exponents.imag)]).max(initial=0.0))
    )
    frequencies = [
        compare(f"frequency of mode {k + 1} at {location}", float(w), _fold_nearest(float(w), float(s.imag), turn),
                "exponent and whole turns a period", tolerance)
        for k, (w, s) in enumerate(zip(chart.frequencies[index], exponents, strict=True))
        if np.isfinite(w) and np.isfinite(s.imag)
    ]  # fmt: skip
    return [products, margins, verdicts, frequencies]


def _fold_nearest(frequency: float, imaginary: float, turn: float) -> float:
    """Return the frequency of a mode by whole turns a period that is nearest to the stated one."""
    shifted = (sign * frequency - imaginary for sign in (1.0, -1.0))
    return min((abs(imaginary + turn * round(s / turn)) for s in shifted), key=lambda value: abs(value - frequency))
