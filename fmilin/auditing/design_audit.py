"""Second ways of tuned parameters: the linear model that belongs to them, and loops on a grid of frequencies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.auditing.audit_result import Audit, AuditRow, compare, compare_claim, keep_worst
from fmilin.auditing.linear_model_audit import audit_linear_model
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDIT_DISK_MARGIN_TOLERANCE

if TYPE_CHECKING:
    from fmilin.design.placing import IdentifiedParameters, PlacedModes
    from fmilin.design.tuning import Tuned
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model

FREQUENCIES = 20_000
SENSITIVITY_PEAK_TOLERANCE = (
    2e-3  # relative: a peak of |S| below the bandwidth may reach 1 / sqrt(2) by that much, as goals may be missed
)


def audit_placed_modes(placed: PlacedModes, model: Model | None) -> Audit:
    """Return the audit of placed modes: of the parameters, the modes and the linear model that has them."""
    linear = placed.linear
    rows = list(_compare_parameters(placed.parameters, linear, model))
    values = linear.eigenvalues()
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    for _, after in placed.modes:
        second = complex(values[np.argmin(np.abs(values - after))])
        rows.append(
            compare(f"modes, after: {after:.4g}", after, second, "eigenvalues of the linear model", 1e-7 * size)
        )
    if model is not None:
        rows += [
            compare(f"before[{name}]", value, float(model.parameters[name]), "the model", 1e-9 * abs(value))
            for name, value in placed.before.items()
            if name in model.parameters
        ]
    audit = _audit_at_parameters(linear, model)
    texts = ("modes before: those of the given model, at its point",)
    before = () if model is not None else ("before: give the same model (model=)",)
    return Audit("placed modes", audit.name, (*rows, *audit.rows), (*texts, *before, *audit.unchecked))


def audit_identified_parameters(identified: IdentifiedParameters, model: Model | None) -> Audit:
    """Return the audit of identified parameters: of the linear model that has them."""
    rows = list(_compare_parameters(identified.parameters, identified.linear, model))
    audit = _audit_at_parameters(identified.linear, model)
    text = "deviations and residual: the measured response is not part of the result"
    return Audit("identified parameters", audit.name, (*rows, *audit.rows), (text, *audit.unchecked))


def _compare_parameters(
    parameters: Mapping[str, float], linear: LinearModel, model: Model | None
) -> Iterator[AuditRow]:
    """Compare stated parameters with those of the point of the linear model."""
    for name, value in parameters.items():
        second = linear.point.parameters.get(name, linear.point.inputs.get(name))
        if second is None and model is not None:
            second = model.parameters.get(name)
        if second is not None:
            way = "point of the linear model"
            yield compare(f"parameters[{name}]", value, float(second), way, 1e-9 * abs(second))


def _audit_at_parameters(linear: LinearModel, model: Model | None) -> Audit:
    """Return the audit of a linear model with the model at the parameters of its point."""
    if model is not None and linear.point.parameters:
        model = model.with_parameters(dict(linear.point.parameters))
    return audit_linear_model(linear, model)


def audit_tuned(tuned: Tuned) -> Audit:
    """Return the audit of a tuned regulator: disk margins and bandwidths of its loops on a fine grid."""
    rows: list[AuditRow] = []
    margins: list[AuditRow] = []
    bandwidths: list[AuditRow] = []
    for k, plant in enumerate(tuned.plants):
        frequencies = _make_frequencies(plant, tuned.controller, float(tuned.bandwidths[k]))
        points = np.exp(1j * frequencies * plant.dt) if plant.dt else 1j * frequencies
        S = 1 / (1 + np.ravel(plant(points)) * np.ravel(tuned.controller(points)))
        disk = 1 / float(np.abs(S - 0.5).max())
        margins.append(
            compare(f"disk_margins[{k}]", float(tuned.disk_margins[k]), disk, "sensitivity on a grid of frequencies",
                    10 * AUDIT_DISK_MARGIN_TOLERANCE * disk)
        )  # fmt: skip
        bandwidths += _compare_bandwidth(k, plant, tuned, frequencies, np.abs(S))
        stable = bool(_is_stable(plant, tuned.controller))
        rows.append(compare_claim(f"loop {k} is stable", "eigenvalues of the closed loop", holds=stable))
    rows += [*keep_worst(margins), *keep_worst(bandwidths)]
    unchecked = [
        "parameters: a user-defined structure is not called again",
        "attained: its goals are not in the result",
    ]
    structure = tuned.structure
    if structure is not None:
        unchecked.pop(0)
        rows += _compare_controllers(tuned, structure(**tuned.parameters))
    if not tuned.plants:
        unchecked.insert(0, "disk_margins and bandwidths: this result does not hold its plants")
    return Audit("tuned regulator", "", tuple(rows), tuple(unchecked))


def _compare_bandwidth(
    k: int, plant: Any, tuned: Tuned, frequencies: FloatArray, sensitivity: FloatArray
) -> Iterator[AuditRow]:
    """Compare |S| at the bandwidth with 1 / sqrt(2), where it is reached at all, and below it with less."""
    stated = float(tuned.bandwidths[k])
    limit = math.sqrt(0.5)
    if (sensitivity < limit).all():
        return
    point = np.exp(1j * stated * plant.dt) if plant.dt else 1j * stated
    at_bandwidth = float(1 / abs(complex(np.ravel(1 + plant(point) * tuned.controller(point))[0])))
    way = "sensitivity on a grid of frequencies"
    yield compare(f"bandwidths[{k}]: |S| there", limit, at_bandwidth, "sensitivity there", 1e-6)
    below = float(sensitivity[frequencies < stated * (1 - 1e-6)].max(initial=0.0))
    holds = below <= limit * (1 + SENSITIVITY_PEAK_TOLERANCE)
    yield compare_claim(f"bandwidths[{k}]: |S| is smaller below", way, holds=holds)


def _make_frequencies(plant: Any, controller: Any, bandwidth: float) -> np.ndarray:
    """Return frequencies in rad/s, far beyond those of the loop, and denser around its poles."""
    import control

    poles = np.asarray(control.feedback(plant, controller).poles(), dtype=np.complex128)
    rates = np.log(poles[poles != 0]) / plant.dt if plant.dt else poles
    sizes = np.append(np.abs(rates[np.abs(rates) > 0]), bandwidth)
    grid = [np.geomspace(sizes.min() / 1e3, sizes.max() * 1e3, FREQUENCIES)]
    grid += [abs(rate.imag) + abs(rate.real) * np.linspace(-4, 4, 801) for rate in rates]
    frequencies = np.unique(np.concatenate(grid))
    top = np.pi / plant.dt if plant.dt else np.inf
    return np.asarray(frequencies[(frequencies > 0) & (frequencies <= top)])


def _is_stable(plant: Any, controller: Any) -> bool:
    import control

    poles = np.asarray(control.feedback(plant, controller).poles())
    return bool((np.abs(poles) < 1).all() if plant.dt else (poles.real < 0).all())


def _compare_controllers(tuned: Tuned, again: Any) -> list[AuditRow]:
    """Compare the regulator with that of the parameters at frequencies around the bandwidths."""
    frequencies = np.geomspace(float(tuned.bandwidths.min()) / 10, float(tuned.bandwidths.max()) * 10, 7)
    stated, second = np.ravel(tuned.controller(1j * frequencies)), np.ravel(again(1j * frequencies))
    return keep_worst(
        compare(f"controller (parameters) at {w:.4g} rad/s", complex(a), complex(b), "structure with the parameters",
                1e-9 * abs(b))
        for w, a, b in zip(frequencies, stated, second, strict=True)
    )  # fmt: skip
