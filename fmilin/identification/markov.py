"""Markov parameters from pulses on each input: their errors, how outputs are read, and where a record ends.

An input is moved by +a and by -a during one step: r(a) = (y(+a) - y(-a)) / (2 a). What r changes by at a smaller a
is the error estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.identification.experiments import Experiments, join
from fmilin.model.stepping import Response
from fmilin.signals import FloatArray

SMALLER = 3.0  # pulses that tell the error are smaller by this; no power of 2, with which a linear model rounds alike
MIN_STEPS = 20  # of a record
GROWTH = 1e4  # a record ends where responses exceed the largest of its first steps by this
GROWN, NOT_HALF = 3.0, 1e-6  # or by this, and responses to a smaller pulse are out of proportion by that part


@dataclass(frozen=True)
class Markov:
    """Responses to unit pulses, input by input, aligned with the state at the start of each step."""

    D: FloatArray  # (ny, nu), the outputs of the step of the pulse itself
    Y: FloatArray  # (K, ny + N, nu), Y_1, Y_2, ...: outputs, then declared states, of the steps that follow
    errors: FloatArray  # shape (K, ny + N, nu)
    reading: str  # when outputs are read, see :class:`~fmilin.identification.discrete_models.Sampled`
    step: float
    half: Markov | None = None  # the same at a smaller amplitude


def measure_pulses(
    experiments: Experiments, amplitudes: FloatArray, step: float, count: int, *, first: int = 0, errors: bool = True
) -> Markov:
    """Return Markov parameters of ``count`` steps from pulses in step ``first``.

    This takes four runs for each input; two without ``errors``, which need smaller pulses, too.
    """
    zero = _respond_together(experiments, amplitudes, step, count) if first == 0 else None
    parts = (1.0, SMALLER) if errors else (1.0,)
    responses: list[list[Response]] = [[] for _ in parts]
    for j, amplitude in enumerate(amplitudes.tolist()):
        for record, part in zip(responses, parts, strict=True):
            if zero is not None and j in experiments.unresponsive:
                record.append(zero)
            elif first == 0:
                record.append(experiments.pulse(j, amplitude / part, step, count))
            else:
                record.append(experiments.respond_to_pulse(j, amplitude / part, step, count, first))
    reading = find_reading(experiments, step, responses[-1])
    whole, *smaller = (_align(record, reading, step) for record in responses)
    if not smaller:
        return whole
    differences = np.abs(whole.Y - smaller[0].Y)
    return replace(whole, errors=differences, half=replace(smaller[0], errors=differences))


def _respond_together(experiments: Experiments, amplitudes: FloatArray, step: float, count: int) -> Response | None:
    """Return the response to all inputs together that moved nothing in short runs, if there is none to them either."""
    unresponsive = sorted(experiments.unresponsive)
    if len(unresponsive) < 2:
        return None
    deviations = np.zeros((count, len(amplitudes)))
    deviations[0, unresponsive] = amplitudes[unresponsive]
    response = experiments.odd(deviations, step)
    return None if join(response).any() else response


def find_reading(experiments: Experiments, step: float, responses: Sequence[Response]) -> str:
    """Return how the outputs are to be read, which is measured once: the self-test of the sampling convention."""
    # An output that answers before the step can be read at once. One that answers in the step of the pulse however
    # small the step is feeds through, but is calculated at the end of steps only. Any other is strictly proper.
    return experiments.once("reading", lambda: _find_reading(experiments, step, responses))


def _find_reading(experiments: Experiments, step: float, responses: Sequence[Response]) -> str:
    sizes = np.array([np.max(np.abs(p.after), axis=0, initial=0.0) for p in responses]).T  # (ny, nu)
    at_once = np.array([p.at_once[0] for p in responses]).T
    relative = np.abs(at_once) / np.where(sizes > 0, sizes, 1.0)
    if relative.size and np.max(relative) > 1e-6:
        return "at once"
    limits = _extrapolate_ends(experiments, step)
    if limits is None or not limits.size:
        return "at once"
    through = np.abs(limits) / np.where(sizes > 0, sizes, 1.0)
    return "end of step" if np.max(through) > 1e-2 else "at once"


def _extrapolate_ends(experiments: Experiments, step: float) -> FloatArray | None:
    """Return what remains of the response at the end of the pulse's step as steps vanish, (ny, nu)."""
    step = max(step, 4 * (experiments.cadence.internal or 0.0))
    try:
        ends = _measure_ends(experiments, step)
    except FmilinError:  # the model does not take smaller steps
        try:
            ends = _measure_ends(experiments, 4 * step)
        except FmilinError:
            return None
    # Richardson: without the terms in h and h^2; the two estimates must agree
    first, second = 2 * ends[1] - ends[0], 2 * ends[2] - ends[1]
    limit: FloatArray = (4 * second - first) / 3
    limit[np.abs(limit - second) > 0.3 * np.abs(limit)] = 0.0
    return limit


def _measure_ends(experiments: Experiments, step: float) -> list[FloatArray]:
    """Return what a pulse over one step shows at its end, for the step, its half and its quarter."""
    amplitudes = experiments.choose_amplitudes(step).tolist()
    return [
        np.array([experiments.pulse(j, a, h, 1).after[0] for j, a in enumerate(amplitudes)]).T
        for h in (step, step / 2, step / 4)
    ]


def _align(responses: Sequence[Response], reading: str, step: float) -> Markov:
    """Return Markov parameters: Y_k is what is seen of the state at the start of step k."""
    y = np.array([p.at_once if reading == "at once" else p.after for p in responses])  # (nu, K, ny)
    x = np.array([p.states for p in responses])
    Y = np.moveaxis(np.concatenate((y[:, 1:], x[:, :-1]), axis=2), 0, 2)
    D = y[:, 0].T
    return Markov(D, Y, np.zeros_like(Y), reading, step)


def is_out_of_proportion(markov: Markov) -> NDArray[np.bool_]:
    """Return at which steps of the record a response that has grown is not twice that to half a pulse, shape (K,)."""
    sizes = np.max(np.abs(markov.Y), axis=(1, 2), initial=0.0)
    early = float(np.max(sizes[:MIN_STEPS], initial=0.0))
    off = np.max(markov.errors, axis=(1, 2), initial=0.0)
    return np.asarray((off > NOT_HALF * sizes) & (sizes > GROWN * early))


def before_growth(markov: Markov) -> Markov:
    """Return the part of the record before an unstable motion drowns all others."""
    sizes = np.max(np.abs(markov.Y), axis=(1, 2), initial=0.0)
    early = float(np.max(sizes[:MIN_STEPS], initial=0.0))
    # an unstable plant leaves the neighbourhood of the point before that: answers to half a pulse are no longer half
    late = np.flatnonzero((sizes > GROWTH * early)[MIN_STEPS:] | is_out_of_proportion(markov)[MIN_STEPS:])
    if not late.size or early == 0:
        return markov
    count = MIN_STEPS + int(late[0])
    half = markov.half and replace(markov.half, Y=markov.half.Y[:count], errors=markov.half.errors[:count])
    return replace(markov, Y=markov.Y[:count], errors=markov.errors[:count], half=half)
