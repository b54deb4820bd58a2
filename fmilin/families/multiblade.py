"""Multiblade coordinates of Coleman (Coleman and Feingold, NACA report 1351, 1958; Bir, NREL/CP-500-42553, 2008).

Blade k of N stands at psi_k = psi + 2 pi k / N. Its motion q_k is written in the ground frame:

    q_k = a_0 + sum_n (a_nc cos n psi_k + a_ns sin n psi_k) + a_d (-1)^k (N even).

Of a rotor of N >= 3 equal blades on a ground that does not prefer a direction, the equations in these are constant.
Families over the azimuth, as OpenFAST's files make them, are changed point by point, and have a mean.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.families.family import LinearFamily
from fmilin.families.family_builder import FamilyBuilder, build_outcome
from fmilin.families.grid import Grid
from fmilin.families.rows import PointOutcome
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import EntryErrors, LinearModel
from fmilin.signals import FloatArray, Signal, Signals

MIN_BLADES = 3  # blades


@dataclass(frozen=True, eq=False)
class MultibladeTransformation:
    """y = L(t) z at m times, and the rate of L."""

    L: FloatArray  # (m, P, P)
    rate: FloatArray  # (m, P, P)
    signals: Signals  # of z


def labels(count: int) -> list[str]:
    """Return what the coordinates of ``count`` blades are called: of four mean, cos, sin, difference."""
    pairs = [f"{f}{n if n > 1 else ''}" for n in range(1, (count - 1) // 2 + 1) for f in ("cos", "sin")]
    return ["mean", *pairs, *(["difference"] if count % 2 == 0 else [])]


def _of_blades(count: int, azimuth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return q = B a and dB/dpsi at azimuths (m,), each (m, N, N)."""
    psi = azimuth[:, None] + 2 * np.pi * np.arange(count) / count
    one, nothing = np.ones_like(psi), np.zeros_like(psi)
    columns, rates = [one], [nothing]
    for n in range(1, (count - 1) // 2 + 1):
        columns += [np.cos(n * psi), np.sin(n * psi)]
        rates += [-n * np.sin(n * psi), n * np.cos(n * psi)]
    if count % 2 == 0:
        columns.append(one * (-1.0) ** np.arange(count))
        rates.append(nothing)
    return np.stack(columns, axis=-1), np.stack(rates, axis=-1)


def build_transformation(
    signals: Signals,
    groups: Mapping[str, Sequence[str]],
    azimuth: FloatArray,
    speed: float,
    rates: Mapping[int, int] = MappingProxyType({}),
) -> MultibladeTransformation:
    """Return the change of those groups of blades that are among the signals, at azimuths (m,) of the first blade.

    ``groups`` are the blades' quantities in the order in which the rotor passes them, by a name for them; ``speed`` is
    in rad/s, and ``rates`` are the states that are the rates of others: those of blades go along with them.
    """
    m, order = len(azimuth), len(signals)
    L, rate = (np.tile(matrix, (m, 1, 1)) for matrix in (np.eye(order), np.zeros((order, order))))
    items, taken = list(signals), set[int]()
    groups = {name: blades for name, blades in groups.items() if set(blades) <= set(signals.names)}
    named = {signals.positions[name] for blades in groups.values() for name in blades}
    for group, names in groups.items():
        if len(names) < MIN_BLADES:
            raise UsageError(
                f"'{group}' has {len(names)} blade{'s' if len(names) != 1 else ''}: multiblade coordinates need three "
                "or more. A rotor with two blades is not isotropic in any coordinates; use floquet() for it."
            )
        q = [signals.positions[name] for name in names]
        v = [rates[i] for i in q if i in rates]
        if len(v) < len(q) or named & set(v):  # some have none, or the rates are in a group themselves
            v = []
        if taken & {*q, *v} or len(set(q)) < len(q):
            raise UsageError(f"A quantity of the blades occurs twice in the groups (in '{group}'). Name each once.")
        taken |= {*q, *v}
        B, slope = _of_blades(len(q), azimuth)
        L[:, np.array(q)[:, None], q] = B
        rate[:, np.array(q)[:, None], q] = speed * slope
        for i, label in zip(q, labels(len(q)), strict=True):
            items[i] = Signal(f"{group}.{label}", signals[i].unit)
        if v:
            second = -_squares(len(q)) * B  # d2B/dpsi2, column by column
            L[:, np.array(v)[:, None], v], L[:, np.array(v)[:, None], q] = B, speed * slope
            rate[:, np.array(v)[:, None], v], rate[:, np.array(v)[:, None], q] = speed * slope, speed**2 * second
            for i, label in zip(v, labels(len(q)), strict=True):
                items[i] = Signal(f"der({group}.{label})", signals[i].unit)
    return MultibladeTransformation(L, rate, Signals(items))


def _squares(count: int) -> FloatArray:
    orders = [0, *(n for n in range(1, (count - 1) // 2 + 1) for _ in "cs"), *([0] if count % 2 == 0 else [])]
    return np.array(orders, dtype=np.float64) ** 2


AZIMUTH, SPEED = "azimuth", "rotor_speed"
RATE = "First time derivative of "  # how OpenFAST names the rate of a state
_BLADE = re.compile(r"(?i)\bblade (\d+)\b")


def multiblade(family: LinearFamily, groups: Mapping[str, Sequence[str]] | None = None) -> LinearFamily:
    """Return the family with the blades' quantities as the ground sees them; by default those named 'blade 1', ..."""
    if missing := [name for name in (AZIMUTH, SPEED) if name not in family.template.parameters]:
        raise UsageError(
            f"The points of this family lack the {missing[0].replace('_', ' ')}, which multiblade coordinates need. "
            "Families of OpenFAST's files have it; for other models use fl.linearize_periodic(...).multiblade."
        )
    everything = (family.states, family.inputs, family.outputs)
    named = find_blade_groups(everything) if groups is None else groups
    if not named:
        raise UsageError("No state, input or output is named after blades ('... blade 1 ...'): name groups of them.")
    builder = FamilyBuilder(family.grid)
    for k, (ok, reason) in enumerate(zip(family.ok.flat, family.reasons.flat, strict=True)):
        builder.add(
            build_outcome(k, _transform_linear_model(family.linear_model(k), named))
            if ok
            else PointOutcome(k, str(reason))
        )
    return builder.family()


def find_blade_groups(signals: Sequence[Signals]) -> dict[str, list[str]]:
    """Return the quantities of three or more blades by their common name, rates left to their states."""
    groups: dict[str, dict[int, str]] = {}
    for name in (name for part in signals for name in part.names if RATE not in name):
        if blade := _BLADE.search(name):
            groups.setdefault(_BLADE.sub("blade", name), {})[int(blade[1])] = name
    return {name: [blades[k] for k in sorted(blades)] for name, blades in groups.items() if len(blades) > 1}


def average_over_azimuth(family: LinearFamily) -> LinearFamily | LinearModel:
    """Return the mean over the azimuths: a family over what else varies, or one linear model."""
    if AZIMUTH not in family.axes or family.grid.zipped or not family.ok.all():
        raise UsageError("The mean over a turn needs an axis 'azimuth' and a linear model at every point of the grid.")
    if len({choice.states.names for choice in family.choices}) > 1:
        raise UsageError(
            "The coordinates change over the turn, so a mean does not exist: sweep with independent=[...]."
        )
    axis = list(family.axes).index(AZIMUTH)
    rest = {name: values for name, values in family.axes.items() if name != AZIMUTH}
    rows = np.reshape(family.layout.join(family.models), (*family.shape, -1))
    means = rows.mean(axis=axis).reshape(-1, rows.shape[-1])
    first = np.arange(family.grid.size).reshape(family.shape).take(0, axis).ravel()
    A = family.A
    varies = (np.abs(A - A.mean(axis=axis, keepdims=True)).max() / (np.abs(A).max() or 1.0)) if A.size else 0.0
    variation_remark = Remark(
        "periodic", f"The mean over a turn: A varies by {100 * varies:.2g} % of its largest entry around it."
    )
    models = [_mean(family, int(number), row, variation_remark) for number, row in zip(first, means, strict=True)]
    if not rest:
        return models[0]
    builder = FamilyBuilder(Grid(rest))
    builder.add_all(build_outcome(k, linear) for k, linear in enumerate(models))
    return builder.family()


def _mean(family: LinearFamily, number: int, row: FloatArray, variation_remark: Remark) -> LinearModel:
    """Return the linear model of a mean row, shape (width,), which has no azimuth; ``number`` is one of its points."""
    choice = family.choices[family.chosen[number]]
    quantities = family.layout.split(row[None]).read_point(0)
    linear = family.layout.extract(
        quantities, family.states, choice.method, (*family.remarks.get(number, ()), variation_remark)
    )
    parameters = {name: value for name, value in linear.point.parameters.items() if name != AZIMUTH}
    return replace(linear, point=replace(linear.point, parameters=parameters))


def _transform_linear_model(linear: LinearModel, groups: Mapping[str, Sequence[str]]) -> LinearModel:
    """Return a linear model in multiblade coordinates y = L z: A becomes L^-1 (A L - L')."""
    azimuth, speed = np.array([linear.point.parameters[AZIMUTH]]), linear.point.parameters[SPEED]
    positions = linear.states.positions
    pairs = {i: positions[rate] for name, i in positions.items() if (rate := _rate(name)) in positions}

    y = build_transformation(linear.states, groups, azimuth, speed, pairs)
    u, out = (build_transformation(signals, groups, azimuth, speed) for signals in (linear.inputs, linear.outputs))
    L, M, N = y.L[0], u.L[0], np.linalg.inv(out.L[0])
    inverse = np.linalg.inv(L)
    z0 = inverse @ linear.y0
    errors = linear.errors
    a, b, m, n = np.abs(inverse), np.abs(L), np.abs(M), np.abs(N)
    changed = replace(
        linear,
        A=inverse @ (linear.A @ L - y.rate[0]), B=inverse @ linear.B @ M, C=N @ linear.C @ L, D=N @ linear.D @ M,
        T=linear.T @ L, T_u=linear.T_u @ M, f0=inverse @ (linear.f0 - y.rate[0] @ z0), y0=z0,
        states=y.signals, inputs=u.signals, outputs=out.signals,
        point=replace(
            linear.point,
            inputs=_map_values(u.signals, np.linalg.solve(M, list(linear.point.inputs.values()))),
            outputs=_map_values(out.signals, N @ np.array(list(linear.point.outputs.values()))),
        ),
    )  # fmt: skip
    entries = EntryErrors(a @ errors.A @ b, a @ errors.B @ m, n @ errors.C @ b, n @ errors.D @ m, errors.T @ b)
    return with_errors(changed, entries)


def _rate(name: str) -> str:
    """Return the name of a state's rate: the words stand behind the name of the module, where there is one."""
    module, blank, rest = name.partition(" ")
    return f"{module} {RATE}{rest}" if blank and module.isupper() else RATE + name


def _map_values(signals: Signals, values: object) -> dict[str, float]:
    return dict(zip(signals.names, np.asarray(values, dtype=np.float64).tolist(), strict=True))
