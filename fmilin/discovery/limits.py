"""The limits of control from the zeros of a channel: inverse responses, bandwidth, blocked frequencies.

The limits are those of Astrom, "Limitations on control system performance", European Journal of Control 6, 2000, and
the bound of the sensitivity is that of Freudenberg and Looze, IEEE Transactions on Automatic Control 30, 1985.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import join_first
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.zeros import SAFETY_FACTOR
from fmilin.reduction import minimal_realization

Complex = NDArray[np.complex128]

MAX_ZEROS = 4  # named in a sentence
NOTICEABLE_PEAK_SIZE = 1.05  # peak of the sensitivity from which on it is worth a sentence


def describe_limits(linear: LinearModel) -> Iterator[str]:
    """Yield sentences about what the zeros of a channel, one input to one output, do to every controller."""
    structure = linear.zero_structure()
    (i,), (o,) = linear.inputs.names, linear.outputs.names
    period = linear.sample_time
    zeros = structure.zeros
    errors = SAFETY_FACTOR * structure.errors
    growth = np.abs(zeros) - 1.0 if period > 0 else zeros.real
    neutral = np.abs(growth) <= errors
    at_steady_state = np.abs(zeros - 1.0 if period > 0 else zeros) <= errors
    if at_steady_state.any():
        yield f"A zero at {'z = 1' if period > 0 else '0'}: a constant '{i}' has no lasting effect on '{o}'."
    blocked = [z for z in zeros[neutral & ~at_steady_state].tolist() if z.imag > 0]
    if blocked:
        speeds = [abs(np.angle(z)) / period if period > 0 else z.imag for z in blocked]
        names = join_first([f"{w:.5g}" for w in sorted(speeds)], MAX_ZEROS)
        yield f"Zeros at the stability limit: at {names} rad/s '{i}' does not move '{o}'."
    unstable_zeros = zeros[growth > errors]
    if len(unstable_zeros):
        yield from _describe_unstable_zeros(linear, unstable_zeros)


def _describe_unstable_zeros(linear: LinearModel, zeros: Complex) -> Iterator[str]:
    (o,) = linear.outputs.names
    period = linear.sample_time
    upper = [z for z in zeros.tolist() if z.imag >= 0]
    names = join_first([f"{z.real:.5g}" if z.imag == 0 else f"{z.real:.5g} ± {z.imag:.5g} i" for z in upper], MAX_ZEROS)
    word = "A zero" if len(zeros) == 1 else "Zeros"
    if period > 0:
        yield f"{word} outside the unit circle ({names}): a controller that inverts the channel is unstable."
        return
    yield f"{word} in the right half-plane ({names} 1/s)."
    is_odd = np.count_nonzero(zeros.imag == 0) % 2 == 1
    if is_odd:
        yield f"After a step '{o}' first moves in the wrong direction."
    slowest = min(upper, key=abs)
    yield f"The crossover frequency of a loop must stay below about {abs(slowest) / 2:.3g} rad/s."
    poles = minimal_realization(linear).eigenvalues()
    unstable = poles[poles.real > 0]
    if len(unstable):
        peaks = np.prod(np.abs((zeros[:, None] + unstable.conj()) / (zeros[:, None] - unstable)), axis=1)
        if peaks.max() > NOTICEABLE_PEAK_SIZE:
            yield (
                f"With the unstable pole{'s' if len(unstable) > 1 else ''} of the channel the sensitivity of every "
                f"stable loop has a peak of at least {peaks.max():.3g}."
            )
