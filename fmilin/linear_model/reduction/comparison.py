"""How far a reduced linear model is from the full one in a band of frequencies, with a bound that is certain."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.gramians import Peak, StateSpace, peak_gain
from fmilin.linear_model.reduction.modal import blocks_of
from fmilin.linear_model.reduction.transformation import sizes

AGREES = 1e-7  # relative difference up to which a mode is the same in both models
ON_AXIS = 1e-9  # real part, relative to the largest eigenvalue, of a pole at which a gain has no bound


def error_bound(full: LinearModel, reduced: LinearModel, low: float = 0.0, high: float = float("inf")) -> Peak:
    """Return the largest difference of the frequency responses of two linear models in a band of frequencies.

    Parameters
    ----------
    full, reduced : LinearModel
        Continuous, with the same inputs and outputs: as of any function here, or closed loops.
    low, high : float
        In rad/s.

    Returns
    -------
    Peak
        ``seen`` at ``frequency`` (rad/s), and ``bound``, which no frequency of the band exceeds: the largest singular
        value of G - G_r, in nominal values of outputs per nominal value of an input. Infinite where an undamped motion
        in the band is not the same in both.

    Raises
    ------
    UsageError
        When a model is sampled, inputs or outputs differ, there are none, or the band is none.
    """
    between = difference(full, reduced)
    if not 0 <= low < high:
        raise UsageError(f"{low:g} to {high:g} rad/s is no range of frequencies: write for example 0, 100.")
    poles = np.linalg.eigvals(between.A)
    near = np.abs(poles.real) <= ON_AXIS * np.abs(poles).max(initial=0.0)
    inside = near & (np.abs(poles.imag) >= low) & (np.abs(poles.imag) <= high)
    if inside.any():
        return Peak(float("inf"), float("inf"), float(np.abs(poles.imag[inside]).min()))
    return peak_gain(between, low, high)


def difference(full: LinearModel, reduced: LinearModel) -> StateSpace:
    """Return G - G_r in sizes of the signals, without the modes that are the same in both."""
    if full.sample_time or reduced.sample_time:
        raise UsageError("Compare continuous linear models: reduce first, then sample.")
    if not (len(full.inputs) and len(full.outputs)):
        raise UsageError("Without inputs and outputs there is no response to compare.")
    for one, other in ((full.inputs.names, reduced.inputs.names), (full.outputs.names, reduced.outputs.names)):
        if one != other:
            raise UsageError(
                f"The models do not have the same inputs and outputs ({', '.join(one)}; {', '.join(other)}): compare "
                "a model with what was made of it."
            )
    size = float(np.abs(full.eigenvalues()).max(initial=0.0)) or 1.0
    ours, theirs = (_modes(linear, full) for linear in (full, reduced))
    D, (n_y, n_u) = in_sizes(full, full).D - in_sizes(reduced, full).D, full.D.shape
    between = StateSpace(np.zeros((0, 0)), np.zeros((0, n_u)), np.zeros((n_y, 0)), D)
    for mode in theirs:
        same = next((own for own in ours if _is_same(own, mode, size)), None)
        if same is None:
            between = between.minus(mode)
        else:
            ours = [own for own in ours if own is not same]
    for own in ours:
        between = between.plus(own)
    return between


def in_sizes(linear: LinearModel, units: LinearModel) -> StateSpace:
    """Return a linear model in sizes of the inputs and outputs of ``units``."""
    u, y = sizes(units.inputs), sizes(units.outputs)[:, None]
    return StateSpace(linear.A, linear.B * u, linear.C / y, linear.D * u / y)


def _modes(linear: LinearModel, units: LinearModel) -> list[StateSpace]:
    """Return a system for each mode, or group of modes that cannot be taken apart; G is their sum, and D."""
    blocks = blocks_of(linear.A, linear.states.scales(linear.y0))
    V = np.hstack([np.zeros((len(linear.A), 0)), *(block.V for block in blocks)])
    W = np.linalg.inv(V)
    G = in_sizes(linear, units)
    A, B, C = W @ G.A @ V, W @ G.B, G.C @ V
    ends = np.cumsum([0, *(block.V.shape[1] for block in blocks)]).tolist()
    nothing = np.zeros(linear.D.shape)
    return [StateSpace(A[i:j, i:j], B[i:j], C[:, i:j], nothing) for i, j in pairwise(ends)]


def _is_same(one: StateSpace, other: StateSpace, size: float) -> bool:
    """Whether two modes have eigenvalues (beside ``size``) and responses in common."""
    if len(one.A) != len(other.A):
        return False
    a, b = (np.sort_complex(np.linalg.eigvals(mode.A)) for mode in (one, other))
    if np.abs(a - b).max() > np.sqrt(AGREES) * size:  # those of a double eigenvalue are that far apart
        return False
    at = size * np.exp(1j * np.array([0.1, 0.7, 1.3]))
    pairs = [(one.response(s), other.response(s)) for s in at]
    return all(np.abs(x - y).max() <= AGREES * np.abs(x).max() for x, y in pairs)
