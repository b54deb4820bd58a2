"""Is the declared manifold really where the model moves? H f = 0 at the point and near it, and no input leaves it."""

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from fmilin.errors import ConstraintError, ModelError, NumericalError, join_first
from fmilin.manifold.invariants import Gradient, Invariants
from fmilin.manifold.point_parametrization import PointParametrization
from fmilin.manifold.rank import decide_rank
from fmilin.model.capabilities import read_discrete_states, read_event_indicators
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.memory import find_memory
from fmilin.numerics.differences.differences import jacobian_by_differences
from fmilin.numerics.differences.sweep import noise_level
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import INVARIANT_TOLERANCE, MEASURED_INVARIANT_TOLERANCE

DISPLACEMENT_SIZE = 1e-3  # how far from the point the motion is checked, in sizes of the states
SAMPLES = 3  # random points near it: at the point alone H f = 0 may hold by chance, as at rest


@dataclass(frozen=True, slots=True)
class VerifiedFacts:
    """Properties of a whole model that were verified at one point and are not verified again; None until verified.

    Pairs, H f = 0, H f_u = 0, the rank, and derivatives along one direction are checked at every point; all derivatives
    where they disagree. Nothing is reused for models with event indicators, nor from one mode in another.
    """

    mode: Mapping[str, str] = field(default_factory=dict)  # what the model held when this was verified
    is_transferable: bool = True  # whether it is remembered for other points
    pairs: Mapping[int, int] | None = None  # states with another state as derivative
    moving: bool | None = None  # whether constraints depend on time
    rank: int | None = None  # of the constraints near a point, which the motion keeps
    rates: FloatArray | None = None  # (N,), the largest rates that were seen when that was checked
    precision: FloatArray | None = None  # (N + ny,), relative, of a quick difference that all products agreed with
    solving: FloatArray | float = 0.0  # of differences, (N + ny,): what solving for the manifold leaves of them
    procedure: bool = False  # whether the derivatives of the model's exact procedure agreed with a difference
    nonvanishing: bool = False  # whether no constraint vanishes everywhere
    nothing_conserved: bool = False  # whether no declared constraint is curved in the velocities
    free_speeds: tuple[tuple[int, int], ...] = ()  # (position, speed), states that no undeclared loop contains


def recall_facts(model: Model, point: OperatingPoint, base: Evaluation, *, trusted: bool = True) -> VerifiedFacts:
    """Return what was verified of a model at other points; nothing where its evaluation at the point contradicts it.

    Unless the facts are ``trusted``, everything is to be verified anew.
    """
    mode = dict(read_discrete_states(model))
    has_events = bool(len(read_event_indicators(model, point.time, point.states, point.inputs)))
    if has_events or not trusted:
        return VerifiedFacts(mode, is_transferable=False)
    facts: VerifiedFacts | None = find_memory(model).get(VerifiedFacts)
    pairs = {} if facts is None else facts.pairs or {}
    are_paired = np.array_equal(base.derivatives[list(pairs)], point.states[list(pairs.values())])
    return VerifiedFacts(mode) if facts is None or facts.mode != mode or not are_paired else facts


def remember_facts(model: Model, facts: VerifiedFacts) -> None:
    """Keep what was verified of a model for its other points."""
    if facts.is_transferable:
        find_memory(model)[VerifiedFacts] = facts


@dataclass(frozen=True, slots=True)
class _Sample:
    """A consistent point, the rates there and the gradient of the invariants."""

    x: FloatArray
    u: FloatArray
    f: FloatArray
    g: Gradient
    moving: FloatArray  # h_t + h_u u': how the manifold itself moves


@dataclass(frozen=True, slots=True)
class Invariance:
    """How well the motion keeps the invariants at a point, and near it."""

    violation: FloatArray  # (m,), |H f + h_t| relative to the size of its terms
    tolerance: float  # what counts as zero
    rank: int  # of the constraints at the point
    rank_nearby: int  # the largest at points near it
    rates: FloatArray | None  # (N,), the largest that were seen; None where there were too few points, or too uncertain


def measure_invariance(parametrization: PointParametrization) -> Invariance:
    """Compare H f + h_t with the size of its terms at the point and at points near it."""
    invariants = parametrization.invariants
    samples = _samples(parametrization)
    measured = not all(s.g.is_exact for s in samples)
    ranks = [decide_rank(s.g.scaled, s.g.threshold).rank for s in samples]
    tolerance = MEASURED_INVARIANT_TOLERANCE if measured else INVARIANT_TOLERANCE
    # A sampled model has next states instead of rates: these must lie on the manifold.
    if invariants.model.map_period:
        return Invariance(_violation_by_map(parametrization, samples), tolerance, ranks[0], max(ranks), None)
    violation = _violation(samples, invariants.scales, np.zeros(len(invariants.scales)))
    if max(ranks) == ranks[0] and not (violation <= tolerance).all():
        # At rest, noise is all that there is of the rates. It is measured at every sample: at x = 0 there is none. A
        # singular configuration is rejected whatever the noise.
        evaluator, t = invariants.evaluator, parametrization.time

        def rates(x: FloatArray) -> FloatArray:
            return evaluator.evaluate(t, x, invariants.inputs).derivatives

        noise = np.max([noise_level(rates, s.x, invariants.scales) for s in samples], axis=0)
        violation = _violation(samples, invariants.scales, noise)
    is_sampled = len(samples) > SAMPLES
    largest = np.max([np.abs(s.f) for s in samples], axis=0) if is_sampled else None
    return Invariance(violation, tolerance, ranks[0], max(ranks), largest)


def require_invariance(parametrization: PointParametrization, invariance: Invariance) -> None:
    """Raise NumericalError at a singular configuration, ConstraintError if the motion does not keep an invariant."""
    if invariance.rank_nearby > invariance.rank:
        _refuse_singular(parametrization, invariance.rank, invariance.rank_nearby)
    require_invariants(parametrization.invariants.names, invariance.violation, invariance.tolerance)


def is_kept_at_point(parametrization: PointParametrization, facts: VerifiedFacts) -> bool:
    """Whether the motion keeps the invariants at the point, the model having been verified near another one."""
    invariants, x = parametrization.invariants, parametrization.x0
    if facts.rank is None or facts.rates is None or facts.rank != len(parametrization.rows):
        return False
    # Motions that inputs prescribe are verified at moved inputs, and measured gradients by their noise.
    if invariants.prescribing or not parametrization.gradient.is_exact:
        return False
    here = _sample(parametrization, x, invariants.inputs)
    typical = np.maximum(np.abs(here.f), facts.rates)
    off, size = drift(here.g.H, here.f, typical, invariants.scales, here.g.reference, here.moving)
    return bool((off <= INVARIANT_TOLERANCE * size).all())


def drift(
    H: FloatArray, f: FloatArray, usual: FloatArray, sizes: FloatArray, terms: FloatArray, h_t: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return |H f + h_t| and the size of its terms, each (..., m), from H (..., m, N) and rates f (..., N).

    ``usual`` (..., N) is the usual size of f, ``terms`` (..., m) that of the terms of H in ``sizes`` (..., N).
    """
    # Rates that happen to be small at a point are compared with a thousandth of what they are elsewhere.
    size = (np.abs(H) @ np.maximum(np.abs(f), 1e-3 * usual)[..., None])[..., 0] + np.abs(h_t)
    fastest = (usual / sizes).max(axis=-1, initial=0.0, keepdims=True)
    # A row that cancelled to rounding proves nothing.
    return np.abs((H @ f[..., None])[..., 0] + h_t), np.maximum(size, 1e-3 * fastest * terms)


def _violation(samples: list[_Sample], scales: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the largest |H f + h_t| relative to the size of its terms, shape (m,); ``noise`` (N,) is that of f."""
    typical = np.max([np.abs(s.f) for s in samples], axis=0)
    worst = np.zeros(len(samples[0].g.H))
    for s in samples:
        off, size = drift(s.g.H, s.f, typical, scales, s.g.reference, s.moving)
        # Ten times: the noise is an estimate from a few values.
        if noise.any():
            off = np.maximum(off - 10 * np.abs(s.g.H) @ noise - s.g.error @ np.abs(s.f), 0.0)
        worst = np.maximum(worst, np.divide(off, size, out=np.zeros_like(size), where=size > 0))
    return worst


def _violation_by_map(parametrization: PointParametrization, samples: list[_Sample]) -> FloatArray:
    """Return the largest |h| after one sample of a map from points of the manifold, in sizes of its terms, (m,)."""
    invariants, t = parametrization.invariants, parametrization.time
    worst = np.zeros(len(samples[0].g.H))
    for s in samples:
        size = np.abs(s.g.H) @ invariants.scales
        off = np.abs(invariants.values(t, s.x + s.f))
        worst = np.maximum(worst, np.divide(off, size, out=np.zeros_like(size), where=size > 0))
    return worst


def conserved_quantities(parametrization: PointParametrization) -> list[str]:
    """Return the invariants that are curved in the velocities, as energies are and constraints are not."""
    invariants = parametrization.invariants
    x, t = parametrization.x0, parametrization.time
    velocities = sorted(set(invariants.pairs.values()))
    if not velocities or not len(invariants):
        return []
    step = np.zeros_like(x)
    step[velocities] = 0.1 * invariants.scales[velocities]
    bend = invariants.values(t, x + step) + invariants.values(t, x - step) - 2 * invariants.values(t, x)
    size = np.abs(parametrization.gradient.H) @ invariants.scales + np.abs(invariants.values(t, x + step))
    declared = [i for i in parametrization.rows if i < invariants.declared]
    # Second differences over a tenth of the sizes: rounding is 1e-14 of the terms, a square of speeds 1e-2.
    return [invariants.names[i] for i in declared if abs(bend[i]) > 1e-6 * size[i]]


def _samples(parametrization: PointParametrization) -> list[_Sample]:
    """Return the point and consistent ones near it, inputs moved where they prescribe a motion; fewer if it fails."""
    invariants, random = parametrization.invariants, np.random.default_rng(2011)
    p, u0 = len(parametrization.y0), invariants.inputs
    u_scales = invariants.model.inputs.scales(u0) if invariants.prescribing else np.zeros_like(u0)
    samples = [_sample(parametrization, parametrization.x0, u0)]
    for _ in range(SAMPLES if p or invariants.prescribing else 0):
        dy, du = random.uniform(-1.0, 1.0, p) * parametrization.y_scales, random.uniform(-1.0, 1.0, len(u0)) * u_scales
        # Nearer points where the model is not defined so far away, as near the end of a table.
        for size in (DISPLACEMENT_SIZE, DISPLACEMENT_SIZE / 16, DISPLACEMENT_SIZE / 256):
            u = u0 + size * du
            try:
                x = parametrization.psi(parametrization.y0 + size * dy, inputs=u)
                sample = _sample(parametrization, x, u)
            except (ModelError, NumericalError):
                continue
            if np.isfinite(sample.f).all():
                samples.append(sample)
                break
    return samples


def _sample(parametrization: PointParametrization, x: FloatArray, u: FloatArray) -> _Sample:
    invariants, t = parametrization.invariants, parametrization.time
    f = invariants.evaluator.evaluate(t, x, u).derivatives
    return _Sample(x, u, f, invariants.gradient(t, x, u), invariants.drift(t, x, u))


def require_invariants(names: Sequence[str], violation: FloatArray, tolerance: float) -> None:
    """Reject constraints that change along the motion by more than ``tolerance`` of the size of their terms."""
    bad = {n: float(v) for n, v in zip(names, violation, strict=True) if not v <= tolerance}
    if not bad:
        return
    worst = sorted(bad.items(), key=lambda item: -item[1])[:4]
    listed = "; ".join(f"'{name}' changes at {value:.3g} of the size of its terms" for name, value in worst)
    raise ConstraintError(
        f"The model's motion does not keep these constraints: {listed} (the limit is {tolerance:g}). They are not "
        "invariants of this model, and imposing them would change its motion: look for a typo, a wrong parameter, or "
        'a quantity that is conserved only in special cases; a velocity-level constraint needs level = "velocity".',
        residuals=bad,
    )


def _refuse_singular(parametrization: PointParametrization, rank: int, rank_nearby: int) -> None:
    names = parametrization.invariants.names
    dependent = [names[i] for i in range(len(names)) if i not in parametrization.rows]
    raise NumericalError(
        f"The point is a singular configuration: here only {rank} constraints are independent, near it {rank_nearby} "
        f"(dependent here: {join_first(dependent, 4)}). Branches of motion cross, or a motion that is free to first "
        "order is blocked at second order: the feasible motions form no vector space, so they have no linear model. "
        "Choose a point near it: fl.operating_point(model, {'NAME': VALUE}), or hold fewer bodies."
    )


def verify_inputs(parametrization: PointParametrization, f_u: FloatArray, error: FloatArray) -> None:
    """Check H f_u = 0, of independent rows: no input moves states off the manifold. ``error`` is that of f_u."""
    invariants, rows, g = parametrization.invariants, parametrization.rows, parametrization.gradient
    tolerance = INVARIANT_TOLERANCE if g.is_exact else MEASURED_INVARIANT_TOLERANCE
    if not f_u.size:
        return
    H, H_error, sizes = g.H[rows], g.error[rows], np.abs(f_u)
    through, size = np.abs(H @ f_u), np.abs(H) @ sizes
    if (through <= tolerance * size).all():
        return  # without measuring the noise
    # Ten times: errors of differences are estimates of their order of magnitude.
    through = np.maximum(through - 10 * np.abs(H) @ error - H_error @ sizes, 0.0)
    strongest = np.max(sizes / invariants.scales[:, None], axis=0, initial=0.0)
    size = np.maximum(size, 1e-6 * (np.abs(H) @ invariants.scales)[:, None] * strongest)  # rows of rounding alone
    if (through > tolerance * size).any():  # forces may cancel an input up to rounding
        t, x = parametrization.time, parametrization.x0
        noise = noise_level(lambda s: input_gradient(invariants, t, s)[0].ravel(), x, invariants.scales)
        through = np.maximum(through - 10 * np.abs(H) @ noise.reshape(len(x), -1), 0.0)
    relative = np.divide(through, size, out=np.zeros_like(size), where=size > 0)
    bad = [(int(i), int(j)) for i, j in zip(*np.nonzero(relative > tolerance), strict=True)]
    if bad:
        i, j = max(bad, key=lambda ij: relative[ij])
        name = invariants.names[rows[i]]
        raise ConstraintError(
            f"The input '{invariants.model.inputs.names[j]}' moves the model off the constraint '{name}' (at "
            f"{relative[i, j]:.3g} of the size of its terms): either this is not a constraint but a conserved "
            "quantity, or the input prescribes a motion and belongs in the constraint.",
            residuals={name: float(relative[i, j])},
        )


def input_gradient(invariants: Invariants, t: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return f_u and its estimated error, each (N, nu): exact where the model has products, else differenced."""
    evaluator, u = invariants.evaluator, invariants.inputs
    n, k = len(x), len(u)
    exact = evaluator.products(t, x, u, np.zeros((n, k)), np.eye(k)) if k else None
    if exact is not None and np.isfinite(exact.derivatives).all():
        return exact.derivatives, np.zeros((n, k))
    if not k:
        return np.empty((n, 0)), np.empty((n, 0))
    scales = invariants.model.inputs.scales(u)
    return jacobian_by_differences(lambda v: evaluator.evaluate(t, x, v).derivatives, u, scales)
