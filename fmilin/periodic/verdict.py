"""Whether deviations from a periodic motion grow: the verdict on a monodromy matrix that is known within errors.

Directions that come back as they are (along the motion itself, along a symmetry) are taken out: what is left says
whether the path is stable. Where something in it neither grows nor dies out, the whole matrix is judged, too: of a
family of motions with different periods neighbours drift apart along the path, in proportion to time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.linear_model.stability import Stability, judge_stability
from fmilin.periodic.fourier import ComplexArray
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

VISIBLE_ROUNDING_FACTOR = 1e3  # times rounding: smaller multipliers are not in the matrix
CERTAIN_MULTIPLIER_SIZE = 1e3  # a multiplier from which a motion is unstable, whatever the matrix leaves of the others


@dataclass(frozen=True)
class FloquetVerdict:
    """The verdict on the growth of deviations over a period."""

    stable: bool | None
    text: str
    orbitally_stable: bool | None  # whether the distance from the path does not grow
    error: float  # of the multipliers: absolute of those about 1, relative of larger ones
    error_of_logarithms: float
    path: Stability | None = None  # of the directions that are left; None where nothing was judged


def judge_multipliers(
    M: FloatArray, error: FloatArray, directions: Sequence[FloatArray], logarithms: ComplexArray
) -> FloquetVerdict:
    """Return the verdict on a monodromy matrix M (P, P), in coordinates of comparable sizes.

    Parameters
    ----------
    M, error : ndarray, shape (P, P)
        What becomes of deviations after a period, and by what its entries may be off.
    directions : sequence of ndarray, shape (P,)
        Deviations that come back as they are.
    logarithms : ndarray, shape (P,)
        Of the multipliers, computed without a product of matrices; those of the directions are 0.
    """
    largest = float(np.max(logarithms.real, initial=-np.inf))
    if largest > np.log(CERTAIN_MULTIPLIER_SIZE) or not np.isfinite(M).all():
        if largest > 0:
            # 700: beyond it the exponential overflows.
            growth = float(np.exp(min(largest, 700.0)))
            text = f"unstable: a deviation grows by the factor {growth:.6g} every period"
            return FloquetVerdict(False, text, False, 0.0, 0.0)  # noqa: FBT003
        return FloquetVerdict(None, "cannot be determined: the monodromy matrix is not finite", None, np.inf, np.inf)
    path = _judge_path(M, error, directions)
    size = _size_of_errors(path, float(np.linalg.norm(M)))
    if path.stable is not True or not path.neutral:
        return FloquetVerdict(path.stable, _text(path, len(M) - len(directions)), path.stable, *size, path)
    full_verdict = judge_stability(M, error, sampled=True, structured=False)
    # A motion of a family has neighbours of other periods: the phase drifts, although the path stays.
    if directions and full_verdict.defective:
        text = (
            f"{full_verdict.text.replace('the number of steps', 'time')}; the path itself is neutral, neighbouring "
            "motions have other periods or drift along it"
        )
        return FloquetVerdict(False, text, True, *size, path)  # noqa: FBT003
    if directions and full_verdict.stable is None:
        return FloquetVerdict(None, full_verdict.text, True, *size, path)  # noqa: FBT003
    return FloquetVerdict(True, _text(path, len(M) - len(directions)), True, *size, path)  # noqa: FBT003


def doubt_neutrality(verdict: FloquetVerdict) -> FloquetVerdict:
    """Return the verdict on a motion of a family: that neighbours stay neutral is known within the errors only."""
    if verdict.stable is not True:
        return verdict
    text = (
        f"cannot be determined: no deviation grows or dies out by more than {verdict.error:.1g} of its size a period, "
        "and slower growth or decay is not resolved"
    )
    return replace(verdict, stable=None, orbitally_stable=None, text=text)


def _judge_path(M: FloatArray, error: FloatArray, directions: Sequence[FloatArray]) -> Stability:
    """Return the verdict on M without some directions."""
    if not directions:
        return judge_stability(M, error, sampled=True, structured=False)
    Q = np.linalg.qr(np.array(directions).T, mode="complete")[0][:, len(directions) :]
    return judge_stability(Q.T @ M @ Q, np.abs(Q.T) @ error @ np.abs(Q), sampled=True, structured=False)


def _size_of_errors(judged: Stability, size: float) -> tuple[float, float]:
    """Return the errors of multipliers and of their logarithms."""
    values, errors = np.abs(judged.eigenvalues), judged.errors
    absolute = float(np.max(errors / np.maximum(values, 1.0), initial=0.0))
    visible = (values > VISIBLE_ROUNDING_FACTOR * EPS * size) & (errors < values)
    return absolute, float(np.max(errors[visible] / values[visible], initial=0.0))


def _text(path: Stability, count: int) -> str:
    if not count:
        return "stable: only its symmetries remain"
    largest = float(np.max(np.abs(path.eigenvalues)))
    if path.unstable:
        return f"unstable: a deviation grows by the factor {largest:.6g} every period"
    if path.stable is True and not path.neutral:
        return f"stable: deviations die out by the factor {largest:.6g} a period at least"
    return path.text.replace("the number of steps", "time")
