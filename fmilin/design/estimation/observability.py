"""Which directions of the state the measured outputs do not observe at a point, by the modes of the linear model."""

from __future__ import annotations

import numpy as np

from fmilin.design.estimation.motion import Motion
from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model, OperatingPoint

UNSEEN = 1e-7  # part of the largest singular value of (A - s I; C) below which a mode is not observed
DECAYS = 1e-9  # of the fastest mode: a real part below minus this decays
NAMED = 4  # states of a direction that are named


def unobserved(motion: Motion, model: Model, point: OperatingPoint, R: FloatArray) -> tuple[Remark, ...]:
    """Return a remark on each mode that does not decay and that no output observes (Popov, Belevitch, Hautus).

    Raises
    ------
    NumericalError
        When such a mode grows.
    """
    t, x, u = point.time, point.states, point.inputs
    T, kept = motion.tangent(t, x, u), motion.chart.kept
    _, _, F, C = motion.visits.along(t, x, u, T)
    D, A = motion.scales[kept], F[kept] * motion.scales[kept] / motion.scales[kept][:, None]
    seen = C * D / np.sqrt(np.diag(R))[:, None]
    size = np.linalg.norm(A, 2) + 1e-300
    seen = seen * size / (np.linalg.norm(seen, 2) + 1e-300)
    remarks: list[Remark] = []
    values = np.linalg.eigvals(A)
    for value in sorted(values[values.imag >= 0], key=lambda s: -s.real):
        if value.real < -DECAYS * size:
            break
        *_, small, V = np.linalg.svd(np.vstack((A - value * np.eye(len(A)), seen)))
        if small[-1] > UNSEEN * size:
            continue
        direction = np.abs(T @ (V[-1].conj() * D)) / motion.scales
        largest = np.argsort(-direction)[:NAMED]
        parts = direction / direction.max()
        names = [f"{model.states.names[i]} ({parts[i]:.2g})" for i in largest if parts[i] > 1e-3]
        s = complex(*(0.0 if abs(part) < UNSEEN * size else part for part in (value.real, value.imag)))
        what = f"The mode of s = {s:.4g}" if s.imag else f"The mode of s = {s.real:.4g}"
        text = (
            f"{what} is observed by none of {', '.join(model.outputs.names)} at the point: it moves "
            f"{', '.join(names)}, in parts of the sizes of these states. "
        )
        if value.real > UNSEEN * size:
            raise NumericalError(
                text
                + "It grows, and no filter can follow it: measure what it moves, or start at a point where it is seen."
            )
        remark = Remark(
            "unobserved", text + "Its uncertainty stays or grows unless the motion leads to where it is seen."
        )
        if remark not in remarks:
            remarks.append(remark)
    return tuple(remarks)
