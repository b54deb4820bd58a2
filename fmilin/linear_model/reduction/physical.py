"""Reduced linear models whose states are states of the model, with their names and units.

A linear model of order r says of all states x - x0 = T z + T_u u. For r of them, whose rows T_k can be inverted, z_k =
T_k z are coordinates as good as z: O'Callahan, Avitabile and Riemer's SEREP (IMAC 7, 1989), where z are modes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.tolerances import INSEPARABLE
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.modal import keep_frequencies
from fmilin.linear_model.reduction.transformation import transformed

TOGETHER = 1e-6  # relative distance of eigenvalues, of a pair for example, that stay or go together


def keep_states(linear: LinearModel, names: Sequence[str]) -> LinearModel:
    """Return a linear model whose states are these states of the model, of the order of their number.

    Parameters
    ----------
    linear : LinearModel
        One of higher order is reduced first: its slowest modes stay, the faster ones follow at once (static gains stay
        right). Reduced by another function to this order before, it only changes its coordinates.
    names : sequence of str
        Of states of the model, dependent ones, too.

    Returns
    -------
    LinearModel
        Where faster modes follow inputs at once, ``T_u`` has what these add to a state; a remark says so.

    Raises
    ------
    UsageError, UnknownNameError
        When a name is none or stands twice, there are more of them than the order, or a pair would be torn apart.
    NumericalError
        When the motions that stay do not show in these states: others are named.
    """
    rows = [linear.full_states.index_of(name, "a state of the model") for name in names]
    if not rows or len(set(rows)) < len(rows) or len(rows) > len(linear.states):
        raise UsageError(
            f"{', '.join(names) or 'No state'}: name each state that is to be kept once, and no more than the order of "
            f"the linear model, {len(linear.states)}."
        )
    small = linear if len(rows) == len(linear.states) else _slowest(linear, len(rows))
    x0 = np.array([linear.point.states[s.name] for s in linear.full_states])
    S = linear.full_states.scales(x0)
    shown = small.T / S[:, None]
    shown = shown / np.linalg.norm(shown, axis=0)
    if np.linalg.cond(shown[rows]) > INSEPARABLE:
        from scipy.linalg import qr

        best = qr(shown.T, mode="r", pivoting=True)[1][: len(rows)]
        raise NumericalError(
            f"The {len(rows)} motions that stay cannot be told apart in {', '.join(names)}. Name other states: "
            f"{', '.join(linear.full_states[int(i)].name for i in best)} tell them apart best."
        )
    W, remarks = small.T[rows], []
    if (shares := np.abs(small.T_u[rows]) > np.abs(linear.T_u[rows])).any():
        share = ", ".join(linear.full_states[rows[i]].name for i in np.flatnonzero(shares.any(axis=1)))
        text = f"What faster modes add to {share} at once, in proportion to the inputs, is in T_u, not in these states."
        remarks = [Remark("reduced", text)]
    V, states = np.asarray(np.linalg.inv(W)), linear.full_states.select(rows)
    return transformed(small, V, W, states, z0=x0[rows], coordinates="states of the model", remarks=remarks)


def _slowest(linear: LinearModel, count: int) -> LinearModel:
    speeds = np.sort(np.abs(linear.eigenvalues()))
    slow, fast = float(speeds[count - 1]), float(speeds[count])
    if fast > (1 + TOGETHER) * slow:
        small = keep_frequencies(linear, 0.0, (slow + fast) / 2)
        if len(small.states) == count:
            return small
        possible = [len(small.states)]
    else:
        ends = [
            k for k in range(len(speeds) + 1) if k in (0, len(speeds)) or speeds[k] > (1 + TOGETHER) * speeds[k - 1]
        ]
        possible = [max(k for k in ends if k < count), min(k for k in ends if k > count)]
    other = " or ".join(str(k) for k in possible if k)
    raise UsageError(
        f"The {count} slowest eigenvalues belong together with others. Name {other} states, or reduce in another way "
        f"before (--reduce {count})."
    )
