"""Linear models along a periodic orbit, in coordinates that come back to themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np
from scipy import linalg

from fmilin.errors import UsageError
from fmilin.linearization.request import Request
from fmilin.model.interface import Model
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.functions import PeriodicOptions, takes_linearization
from fmilin.periodic.fourier import derivative
from fmilin.periodic.model import PeriodicModel
from fmilin.periodic.orbit import PeriodicOrbit
from fmilin.periodic.path import PathSlopes, measured_slopes, slopes_along
from fmilin.periodic.resolved import resolved
from fmilin.signals import FloatArray

LEAST = 4  # points of a period


@one_at_a_time
@takes_linearization
def linearize_periodic(
    model: Model,
    orbit: PeriodicOrbit,
    *,
    points: int = 64,
    linearization: Linearization | None = None,
    **options: Unpack[PeriodicOptions],
) -> PeriodicModel:
    """Return the linear models along a periodic orbit: y' = A(t) y + B(t) u, all matrices of the orbit's period.

    Raises UsageError when there are fewer than four phases; FmilinError as :func:`fmilin.linearize`, at the first phase
    that fails.

    Parameters
    ----------
    model : Model
    orbit : PeriodicOrbit
        From :func:`fmilin.periodic_orbit`.
    points : int
        Equally spaced phases. What is computed of the matrices later converges with them faster than any power, as long
        as they are smooth.
    linearization : Linearization, optional
        How each phase is linearized; its options may be keywords instead. If no coordinates are named, they are states
        that are good coordinates all along the orbit; if there are none, a basis of the tangent space is carried along.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models import OdeModel
    >>> mathieu = OdeModel("Mathieu", {"x": "v", "v": "-(1.2 + 0.3*cos(2*time))*x"})
    >>> orbit = fl.periodic_orbit(mathieu, period=3.141592653589793)
    >>> fl.linearize_periodic(mathieu, orbit).floquet().stable
    True
    """
    request = Request.of("linearize_periodic", linearization, options)
    return linearize_periodic_as(model, orbit, request, points)


def linearize_periodic_as(model: Model, orbit: PeriodicOrbit, request: Request, points: int = 64) -> PeriodicModel:
    """Return the linear models that a request describes; see :func:`linearize_periodic`."""
    if points < LEAST:
        raise UsageError(f"A period needs {LEAST} points at least, not {points}.")
    own = orbit.model if orbit.model.states.names == model.states.names else model
    samples = orbit.sampled(points)
    if orbit.measured:
        slopes, transitions = measured_slopes(replace(orbit, model=own), samples, request)
    else:
        slopes, transitions = slopes_along(own, samples, request, closed=True), None
    chosen = [own.inputs.positions[name] for name in slopes.inputs.names]
    slopes, jump = _closed(slopes, orbit.period) if slopes.carried else (slopes, np.eye(len(slopes.states)))
    if not orbit.measured and np.allclose(jump, np.eye(len(jump))):
        slopes, transitions = resolved(slopes, orbit, samples, request)
    symmetries = {"the motion itself": slopes.f0[0]}  # deviations that may come back as they are
    symmetries |= {f"shift of {own.states.names[i]}": slopes.R[0][:, i] for i in np.flatnonzero(orbit.shift)}
    return PeriodicModel(
        slopes.A[:-1], slopes.B[:-1], slopes.C[:-1], slopes.D[:-1], slopes.T[:-1],
        period=orbit.period, times=slopes.times[:-1],
        points=tuple(replace(point, inputs=point.inputs[chosen]) for point in samples[:-1]),
        states=slopes.states, full_states=own.states,
        inputs=slopes.inputs, outputs=slopes.outputs,
        error=slopes.error[:-1], jump=jump, info=own.info, closure=orbit.closure,
        symmetries=symmetries, remarks=orbit.remarks, f0=slopes.f0[:-1], transitions=transitions,
        monodromy_error=_monodromy_error(orbit, slopes),
    )  # fmt: skip


def _monodromy_error(orbit: PeriodicOrbit, slopes: PathSlopes) -> FloatArray | None:
    """Return what the distance of the true orbit may change in the monodromy matrix, in the coordinates at time 0."""
    if orbit.monodromy_error is None:
        return None
    return np.asarray(np.abs(slopes.R[0]) @ orbit.monodromy_error @ np.abs(slopes.T[0]))


def _closed(slopes: PathSlopes, period: float) -> tuple[PathSlopes, FloatArray]:
    """Return slopes in carried coordinates that come back to themselves, and what jumps all the same."""
    # Carried once around, a basis comes back turned, J = F exp(L): turned back steadily on the way, by exp(L t/T), it
    # closes, but for a reflection F.
    L, F = _turned_back(slopes.closing)
    phases = (slopes.times - slopes.times[0]) / period
    E = np.array([linalg.expm(L * phase) for phase in phases])
    back = np.array([linalg.expm(-L * phase) for phase in phases])
    R, T = E @ slopes.R, slopes.T @ back
    both = np.concatenate((R[:-1], F @ R[:-1]))
    rate = derivative(both, 2 * period)[: len(R) - 1]
    rate = np.concatenate((rate, F @ rate[:1]))
    closed = replace(
        slopes, A=E @ slopes.A @ back + rate @ T, B=E @ slopes.B, C=slopes.C @ back, T=T, R=R,
        f0=(E @ slopes.f0[..., None])[..., 0], error=np.abs(E) @ slopes.error @ np.abs(back),
    )  # fmt: skip
    return closed, F


def _turned_back(J: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L and F of an orthogonal J = F exp(L), L real, F with F F = 1 that commute: the identity if possible."""
    S, Z = linalg.schur(J, output="real")
    L, F = np.zeros_like(S), np.eye(len(S))
    minus: list[int] = []
    k = 0
    while k < len(S):
        if k + 1 < len(S) and abs(S[k + 1, k]) > 1e-8:
            L[k, k + 1], L[k + 1, k] = (angle := np.arctan2(S[k, k + 1], S[k, k])), -angle
            k += 2
            continue
        if S[k, k] < 0:
            minus.append(k)
        k += 1
    for a, b in zip(minus[0::2], minus[1::2], strict=False):  # two of them are half a turn
        L[a, b], L[b, a] = np.pi, -np.pi
    if len(minus) % 2:
        F[minus[-1], minus[-1]] = -1.0
    return np.asarray(Z @ L @ Z.T), np.asarray(Z @ F @ Z.T)
