"""The solver's own step: how it is measured where a model is discrete, and the plant that belongs to it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import Continuous, Sampled, sample_model
from fmilin.identification.experiments import Experiments
from fmilin.identification.findings import Findings
from fmilin.identification.integrator_choice import (
    Identified,
    IntegratorCandidate,
    identify_integrator,
    leave_integrator_open,
)
from fmilin.identification.integrators import EXACT, step_plant
from fmilin.identification.validation import run_holdout
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import LinearModel, relative_error
from fmilin.numerics.eigenvalue_errors import sort_eigenvalues
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, INACCURATE_ENTRY_ERROR, MAX_ENTRY_ERROR, MIN_RELATION_RATIO, ROUNDING_TOLERANCE

# Between its solver's own steps a model may stand still. It is discrete over its own step then: communication steps
# move nothing while others do, at equal distances, the inputs displaced once and held.

STEP_LENGTHS = tuple(8.0**k for k in range(-4, 2))  # of communication steps, in suggested ones, that are tried
STEPS_TRIED, STEPS_CONFIRMED = 128, 200  # communication steps of a trial, and of the run that confirms a step
MIN_MOVES = 4  # that show a rhythm
INPUT_DISPLACEMENT_SIZE = 1e-2  # by which inputs are displaced, in their sizes
CONFIRMATION_FACTOR = 3.0  # times that, where a rhythm is confirmed


def find_solver_step(experiments: Experiments, suggested: float) -> float | None:
    """Return the solver's own step, in seconds, where the model stands still between two; None where it does not."""
    still = np.zeros((MIN_MOVES, len(experiments.scales)))
    run, again = (experiments.run(still, suggested).after for _ in range(2))
    experiments.is_noisy = not np.array_equal(run, again, equal_nan=True)
    if experiments.is_noisy:  # noise moves it always
        return None
    for part in STEP_LENGTHS:
        step = part * suggested
        try:
            moves = _find_moves(experiments, step, STEPS_TRIED, INPUT_DISPLACEMENT_SIZE)
            if len(moves) >= STEPS_TRIED - 1:  # it always moves, in longer steps the more
                return None
            gaps = np.diff(moves)
            if len(moves) < MIN_MOVES or gaps.max() < 2 or gaps.max() - gaps.min() > 1:
                continue
            for candidate in _suggest_steps(experiments, moves, step):
                if _is_confirmed(experiments, candidate):
                    return candidate
        except FmilinError:  # it takes no such steps
            continue
    return None


def _find_moves(experiments: Experiments, step: float, count: int, part: float) -> np.ndarray:
    """Return the numbers of the communication steps in which an output or a state moves, beyond rounding."""
    response = experiments.run(np.tile(part * experiments.scales, (count, 1)), step)
    motion = np.hstack((response.after, response.states))
    size = ROUNDING_TOLERANCE * np.max(np.abs(motion), axis=0, initial=0.0)
    return 1 + np.flatnonzero((np.abs(np.diff(motion, axis=0)) > size).any(axis=1))


def _suggest_steps(experiments: Experiments, moves: np.ndarray, step: float) -> Iterator[float]:
    """Yield steps of this rhythm: what the model suggests, the roundest numbers, whole fractions of a second."""
    count, span = len(moves) - 1, float(moves[-1] - moves[0])
    least, most, mean = (step * (span + late) / count for late in (-1.0, 1.0, 0.0))
    cadence = experiments.stepped.cadence
    # steps in tools have at most six digits
    rounded = (float(f"{mean:.{digits}g}") for digits in range(1, 7))
    for candidate in (cadence.internal, cadence.step, *rounded, 1.0 / round(1.0 / mean) if mean < 1.0 else None):
        if candidate and least <= candidate <= most:
            yield candidate


def _is_confirmed(experiments: Experiments, candidate: float) -> bool:
    """Whether every such step moves the model, and every second of half its length, whatever the inputs' size."""
    for parts in (1, 2):
        gaps = np.diff(
            _find_moves(experiments, candidate / parts, STEPS_CONFIRMED, CONFIRMATION_FACTOR * INPUT_DISPLACEMENT_SIZE)
        )
        if len(gaps) < MIN_MOVES - 1 or (gaps != parts).any():
            return False
    return True


SAME_STEPS = 1e-9  # responses to calls of different lengths that agree to this are those of equal steps
FIRST_CALL_COUNT, CALL_COUNT = 3, 6  # of a first look, and of an experiment on the lengths of steps


def find_whole_step(experiments: Experiments, begin: float) -> float | None:
    """Return the solver's own step where each call takes whole ones, whatever length it is given; None where not."""
    pulse = np.zeros((CALL_COUNT, len(experiments.scales)))
    pulse[0] = INPUT_DISPLACEMENT_SIZE * experiments.scales

    def respond(step: float, calls: int = 1) -> FloatArray:
        """Return what the pulse, held for so many calls, moves outputs and states by."""
        inputs = np.repeat(pulse, calls, axis=0)
        moved, still = (experiments.run(deviations, step) for deviations in (inputs, np.zeros_like(inputs)))
        difference = np.hstack((moved.after, moved.states)) - np.hstack((still.after, still.states))
        return np.asarray(difference)[calls - 1 :: calls]

    try:
        first, shorter = (experiments.run(pulse[:FIRST_CALL_COUNT], step).after for step in (begin, begin / 2))
        if not _is_same(shorter, first):
            return None
        response = respond(begin)
        if not np.any(response[1:]) or any(not _is_same(respond(begin / part), response) for part in (2, 4)):
            return None
        # 8: a multiple of what halving and quartering did not show, and short of the fastest motion
        longer = respond(8 * begin)
    except FmilinError:
        return None
    declared = experiments.stepped.cadence.declared or begin
    if _is_same(longer, response):  # one step whatever its length: nothing but the description states the length
        return declared
    # up to 16 internal steps in the long one: half of the first step
    for count in range(2, 17):
        if _is_same(respond(begin, count), longer):
            return declared if count == round(8 * begin / declared) else 8 * begin / count
    return None


def _is_same(one: FloatArray, other: FloatArray) -> bool:
    size = np.max(np.abs(other), axis=0, initial=0.0)
    return bool((np.abs(one - other) <= SAME_STEPS * size).all())


def with_solver_step(
    linear: LinearModel,
    solver_step: float,
    *,
    what: str,
    integrator: str | None = None,
    keep: bool = False,
    change_in_step: float = 0.0,
) -> LinearModel:
    """Return the plant that belongs to the discrete model over the solver's own step; ``what``: how it takes steps.

    ``integrator`` names the integrator, where a user knows it; ``keep``: whether a plant is wanted that others outvie.
    ``change_in_step`` is by how much A and B change, relative, in a step along the motion of the point.
    """
    hidden = linear.full_states is linear.states
    T = np.zeros((0, len(linear.A))) if hidden else linear.T
    exact = Continuous(linear.A, linear.B, linear.C, linear.D, linear.f0, T, 0.0)
    discrete = sample_model(exact, solver_step, "at once")
    # relations tell integrators apart where they hold to rounding: entries that are less certain show none
    certain = integrator is not None or max(linear.accuracy.A, linear.accuracy.B) <= MIN_RELATION_RATIO
    if certain:
        identified = identify_integrator(discrete, exact, linear.errors.A, integrator)
    else:
        identified = leave_integrator_open(discrete, exact, linear.errors.A)
    if max(identified.difference, identified.unusual_difference) > MAX_ENTRY_ERROR and not keep:
        raise _ambiguous(identified, solver_step)
    evaluated = 1.0 if identified.integrator is None else identified.integrator.evaluated
    moved = evaluated * change_in_step
    if moved > MAX_ENTRY_ERROR and not keep:
        raise NumericalError(
            f"The point moves by itself, and A and B change by {100 * moved:.3g}% within a step of {solver_step:.6g} "
            "s: so the values at the point cannot be determined. Let it settle first (fl.snapshots(model, "
            "times=[T])), choose another point, or use the discrete model (fl.Stepping(lifted=True))."
        )
    return replace(_with_plant(linear, identified, solver_step, what, moved), discrete=discrete_model(linear, discrete))


def _ambiguous(identified: Identified, solver_step: float) -> NumericalError:
    """Return the error of steps that belong to different plants."""
    chosen = IntegratorCandidate(identified.integrator or EXACT, identified.plant)
    rival = max((*identified.rivals, *identified.unusual), key=identified.measure)
    one, other = (f"{c.integrator.name} it has {_eigenvalue_words(c)}" for c in (chosen, rival))
    return NumericalError(
        f"The steps of {solver_step:.6g} s belong to more than one plant: by {one}, by {other}. Name the integrator "
        "that is inside (fl.Stepping(integrator='NAME')), add outputs (speeds beside positions, rates), or use the "
        "discrete model (fl.Stepping(lifted=True))."
    )


MAX_EIGENVALUES = 4  # the rightmost ones, which a message lists


def _eigenvalue_words(candidate: IntegratorCandidate) -> str:
    values = sort_eigenvalues(np.linalg.eigvals(candidate.plant.A))
    words = [format_complex(value) for value in values[values.imag >= 0][-MAX_EIGENVALUES:]]
    return f"eigenvalue{'s' if len(words) > 1 else ''} {', '.join(words)}"


def format_complex(value: complex) -> str:
    """Write an eigenvalue with four digits, of a pair the one above the real axis."""
    return f"{value.real:.4g} +- {value.imag:.4g}i" if value.imag else f"{value.real:.4g}"


PARTS = (4, 16)  # of a step, in which the integrator is compared with the model again


def with_integrator(linear: LinearModel, experiments: Experiments, findings: Findings) -> LinearModel:
    """Return the plant with what confirms its integrator: responses in far shorter steps, not used to make it."""
    integrator, step = findings.integrator, findings.step
    plant = Continuous(linear.A, linear.B, linear.C, linear.D, linear.f0, np.zeros((0, len(linear.A))), 0.0)
    reading = findings.reading or "at once"
    worst = findings.half_error
    for part in PARTS:
        # two experiments of three runs and 60 steps
        holdout = (
            run_holdout(experiments, step / part)
            if experiments.affords("shorter steps of the solver", 6, 360, step / part)
            else None
        )
        if holdout is not None:
            worst = max(worst, holdout.error(step_plant(integrator, plant, step / part, reading)))
    by_logarithm = sample_model(plant, step, "at once")
    discrete = step_plant(integrator, plant, step, "at once")
    off = relative_error(np.abs(discrete.A - by_logarithm.A), discrete.A)
    errors = replace(
        linear.errors,
        A=np.maximum(linear.errors.A, worst * np.max(np.abs(linear.A), axis=1, keepdims=True, initial=0.0)),
        B=np.maximum(linear.errors.B, worst * np.max(np.abs(linear.B), axis=1, keepdims=True, initial=0.0)),
    )
    text = (
        f"The solver inside takes each communication step as its own, by {integrator.name}. Its plant predicts "
        f"responses in steps of {step:g} s and of a half, a fourth and a sixteenth of that to {worst:.1e}, and A and "
        f"B are those of that plant; an exact solver would differ by {off:.1e} in a step. The discrete model over "
        f"{step:g} s is lin.discrete (fl.Stepping(lifted=True))."
    )
    remark = Remark("accuracy" if worst > INACCURATE_ENTRY_ERROR else "integrator", text)
    linear = replace(linear, discrete=discrete_model(linear, discrete), warnings=(remark, *linear.warnings))
    return with_errors(linear, errors)


def discrete_model(linear: LinearModel, discrete: Sampled) -> LinearModel:
    """Return the discrete linear model in the same coordinates; its errors are those of the plant over a step."""
    errors = replace(linear.errors, A=discrete.step * linear.errors.A, B=discrete.step * linear.errors.B)
    discrete_linear = replace(
        linear, A=discrete.A, B=discrete.B, C=discrete.C, D=discrete.D, f0=discrete.drift, sample_time=discrete.step
    )
    return with_errors(discrete_linear, errors)


def _with_plant(
    linear: LinearModel, identified: Identified, solver_step: float, what: str, moved: float
) -> LinearModel:
    plant = identified.plant
    off = max(identified.difference, identified.unusual_difference, moved)
    size = {name: float(np.max(np.abs(getattr(plant, name)), initial=0.0)) for name in "AB"}
    # Phi is known to rounding at best, and A from Phi - 1 to that over the step: this spreads a double zero
    rounding = EPS / solver_step
    errors = replace(
        linear.errors,
        A=np.maximum(linear.errors.A, max(off * size["A"], rounding)),
        B=np.maximum(linear.errors.B, off * size["B"]),
    )
    named = max((identified.measure(rival) for rival in (*identified.unusual, *identified.longer)), default=0.0)
    kind = "accuracy" if max(off, named) > INACCURATE_ENTRY_ERROR else "integrator"
    text = f"The model {what} {solver_step:.6g} s. {integrator_words(identified, linear)}"
    if moved:
        text += (
            f" The solver evaluates rates after the beginning of a step, where A and B differ by {moved:.1e} because "
            "the point moves: this is part of the stated error."
        )
    remark = Remark(kind, text)
    return with_errors(replace(linear, A=plant.A, B=plant.B, f0=plant.f0, warnings=(remark, *linear.warnings)), errors)


def integrator_words(identified: Identified, linear: LinearModel) -> str:
    """Say which integrator it is, how sure that is, and what others would make of the same steps."""
    names = " or ".join(dict.fromkeys(rival.integrator.name for rival in identified.rivals))
    if identified.integrator is None:
        return (
            "Which integrator is inside cannot be determined: A and B are the logarithm of the discrete model, inputs "
            f"held over each step. The plants of {names} differ from that by up to {identified.difference:.1e}. Name "
            "the integrator that is inside (fl.Stepping(integrator='NAME')) for its plant."
        )
    exact = Continuous(linear.A, linear.B, linear.C, linear.D, linear.f0, linear.T, 0.0)
    by_logarithm = max(
        float(np.max(np.abs(getattr(exact, n) - getattr(identified.plant, n)), initial=0.0))
        / (float(np.max(np.abs(getattr(identified.plant, n)), initial=0.0)) or 1.0)
        for n in "AB"
    )
    sure = "no other method that was tried satisfies as many"
    if identified.rivals:
        sure = (
            f"the steps do not distinguish it from {names}, with a plant that satisfies as many and differs by up to "
            f"{identified.difference:.1e} (entries, eigenvalues, transfer functions)"
        )
    statement = (
        f"Its solver is {identified.integrator.name}: with it {identified.relations} exact relations hold in the plant"
    )
    if not identified.relations:
        statement, sure = f"Its solver is {identified.integrator.name}, as given", "nothing else was compared"
    return (
        f"{statement}, and {sure}. A and B are those of that plant; the logarithm of the discrete model differs by "
        f"{by_logarithm:.1e}. {_unusual_words(identified)}The discrete model is lin.discrete "
        "(fl.Stepping(lifted=True))."
    )


def _unusual_words(identified: Identified) -> str:
    """Name orders of updates that explain the steps as well, and that few tools have, with their eigenvalues."""
    chosen = _eigenvalue_words(IntegratorCandidate(identified.integrator or EXACT, identified.plant))
    words = ""
    counted, named = (
        [candidate for candidate in candidates if identified.measure(candidate) > INACCURATE_ENTRY_ERROR]
        for candidates in (identified.unusual, identified.longer)
    )
    if counted:
        words = (
            f"Unusual orders of updates explain the steps equally well: {_plants_words(counted)}, instead of "
            f"{chosen}. Entries and eigenvalues differ by up to {identified.unusual_difference:.1e}, which is the "
            "stated error: name the integrator that is inside (fl.Stepping(integrator='NAME')). "
        )
    if named:
        words += (
            "Unusual orders of updates explain the steps equally well, but with coefficients of more digits, and are "
            f"not counted as errors: {_plants_words(named)}, instead of {chosen}. "
        )
    return words


def _plants_words(candidates: Sequence[IntegratorCandidate]) -> str:
    by_name = {candidate.integrator.name: candidate for candidate in reversed(candidates)}
    return "; ".join(
        f"{name} would have {_eigenvalue_words(candidate)}" for name, candidate in reversed(by_name.items())
    )
