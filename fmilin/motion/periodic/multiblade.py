r"""Multiblade coordinates of Coleman (Coleman and Feingold, NACA report 1351, 1958; Bir, NREL/CP-500-42553, 2008).

Blade k of N stands at psi_k = psi + 2 pi k / N. What it does, q_k, is written as the rotor seen from
the ground does it:

    q_k = a_0 + sum_n (a_nc cos n psi_k + a_ns sin n psi_k) + a_d (-1)^k (N even).

Of a rotor of N >= 3 equal blades on a ground that does not prefer a direction, the equations in these are constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signal, Signals

LEAST = 3  # blades


@dataclass(frozen=True, eq=False)
class Change:
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


def change_of(
    signals: Signals,
    groups: Mapping[str, Sequence[str]],
    azimuth: FloatArray,
    speed: float,
    rates: Mapping[int, int] = MappingProxyType({}),
) -> Change:
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
        if len(names) < LEAST:
            raise UsageError(
                f"'{group}' has {len(names)} blade{'s' if len(names) != 1 else ''}: multiblade coordinates need three "
                "or more. Two blades make no isotropic rotor in any coordinates; floquet() is the answer there."
            )
        q = [signals.positions[name] for name in names]
        v = [rates[i] for i in q if i in rates]
        if len(v) < len(q) or named & set(v):  # some have none, or the rates are in a group themselves
            v = []
        if taken & {*q, *v} or len(set(q)) < len(q):
            raise UsageError(f"A quantity of the blades stands twice in the groups (in '{group}'). Name each once.")
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
    return Change(L, rate, Signals(items))


def _squares(count: int) -> FloatArray:
    orders = [0, *(n for n in range(1, (count - 1) // 2 + 1) for _ in "cs"), *([0] if count % 2 == 0 else [])]
    return np.array(orders, dtype=np.float64) ** 2
