"""Whether the period of an orbit is that of the model, and diagnostics: one of many, a multiple period, pulses."""

from __future__ import annotations

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import ModelError, NumericalError
from fmilin.model.stepping import Stepped
from fmilin.periodic.certified_orbit import CertifiedOrbit
from fmilin.periodic.orbit import REPEATED_RATE_TOLERANCE, PeriodicOrbit, simulate_motion
from fmilin.simulation.inputs import InputTable, input_course
from fmilin.simulation.time_breaks import find_time_breaks

EARLY_RETURN_DISTANCE = (
    0.05  # of the extent of the motion: what comes that near to its start in between may have returned
)
STANDSTILL_RATE_TOLERANCE = 1e-9  # in sizes of the states per second


def remark_on_orbit(orbit: PeriodicOrbit, certified: CertifiedOrbit) -> tuple[Remark, ...]:
    """Return what a user should know of an orbit."""
    return (*_remark_on_certificate(certified), *_remark_on_multiple_period(orbit), *_remark_on_pulses(orbit))


def _remark_on_certificate(certified: CertifiedOrbit) -> tuple[Remark, ...]:
    """Say where the periodic motion is one of many, or several meet."""
    if certified.is_multiple:
        distance = certified.certificate.distance
        farthest = max(distance, key=lambda name: distance[name])
        return (
            Remark(
                "multiple",
                f"Several periodic motions merge here, or have just vanished, within rounding: '{farthest}' is "
                f"accurate to +- {distance[farthest]:.2g} only.",
            ),
        )
    if certified.is_family:
        text = (
            "The periodic motion is one of a family, within rounding: the one nearest to the start was chosen. It is "
            f"closed to within {certified.resolution:.1g} of the sizes of the states per period; slower decay or "
            "growth cannot be determined."
        )
        return (Remark("family", text),)
    return ()


def _remark_on_pulses(orbit: PeriodicOrbit) -> tuple[Remark, ...]:
    """Say where pulses of what acts on the model may have been stepped over."""
    # The equations of a model with its own solver are not there to be searched for pulses.
    if isinstance(orbit.model, Stepped):
        return ()
    course = input_course(orbit.model.inputs, orbit.start.inputs, orbit.run.inputs)
    return find_time_breaks(orbit.model, orbit.start, course, orbit.start.time + orbit.period).remarks


def _remark_on_multiple_period(orbit: PeriodicOrbit) -> tuple[Remark, ...]:
    """Say where the period is a multiple of the true one: all has come back after a part of it."""
    x, model, first = orbit.states(), orbit.model, orbit.points[0]
    scales, m = model.states.scales(x[0]), len(x) - 1
    extent = float(np.max(np.ptp(x, axis=0) / scales))
    # A rest comes back after any time; a turn, a driven motion and a model that steps by itself are not examined.
    if (
        extent <= STANDSTILL_RATE_TOLERANCE
        or orbit.shift.any()
        or orbit.run.inputs is not None
        or isinstance(model, Stepped)
    ):
        return ()
    # The largest number first: what repeats six times does so three times and twice as well.
    for part in (6, 5, 4, 3, 2):
        k, rest = divmod(m, part)
        between = x[k] + (x[k + 1] - x[k]) * rest / part  # a hint, which a simulation confirms
        if np.max(np.abs(between - x[0]) / scales) > EARLY_RETURN_DISTANCE * extent:
            continue
        true = orbit.period / part
        end = simulate_motion(model, first, first.time + np.array([0.0, true]), orbit.run).point()
        now, later = (model.evaluate(t, first.states, first.inputs).derivatives for t in (first.time, end.time))
        # Orbits are closed to better than 1e-6, and rates of a model that repeats itself to rounding.
        returned = np.max(np.abs(end.states - first.states) / scales) <= 1e-6 * extent
        if returned and np.abs(now - later).max() <= 1e-9 * (1 + np.abs(now).max()):
            text = f"The motion repeats itself {part} times within {orbit.period:.9g} s: the period is a multiple of "
            return (Remark("multiple-period", f"{text}{true:.9g} s. Multipliers belong to the longer one."),)
    return ()


def require_repeating(orbit: PeriodicOrbit) -> None:
    """Reject a period after which the motion is back, and the model or its inputs are not what they were."""
    model, inputs, signs, m = orbit.model, orbit.run.inputs, np.random.default_rng(1883), len(orbit.points) - 1
    for point in (orbit.points[k * m // 7] for k in (1, 3, 5)):
        # Away from the orbit: on it a factor of the excitation, as x in cos(t) x, may be zero at all of these points.
        aside = point.states + 0.1 * model.states.scales(point.states) * signs.choice((-1.0, 1.0), len(point.states))
        later, u = point.time + orbit.period, point.inputs
        if not isinstance(inputs, InputTable):  # which ends with the period
            u = input_course(model.inputs, u, inputs).piece(later, later)(later)
        try:
            now = model.evaluate(point.time, aside, point.inputs).derivatives
            then = model.evaluate(later, aside, u).derivatives
        except (ModelError, NumericalError):  # the model is not defined there
            continue
        wrong = np.abs(now - then) > REPEATED_RATE_TOLERANCE * (1 + np.abs(now).max())
        if not wrong.any():
            continue
        raise NumericalError(
            f"The motion returns after {orbit.period:.9g} s, but its excitation does not: the rate of "
            f"'{model.states.names[int(np.argmax(wrong))]}' differs then. Give the period of the excitation, or a "
            "multiple of it (period=)."
        )
