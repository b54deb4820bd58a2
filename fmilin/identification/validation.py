"""The accuracy of an identified model: what its solver and its differences leave, and whether that is enough.

An identified model fits the solver, not the plant. So the same experiment is run in far shorter steps, and with a
smaller tolerance; what the responses differ by is put into the accuracy.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.identification.experiments import Runner, relative_change
from fmilin.identification.step_size import PART as REDUCED
from fmilin.linear_model.accuracy import comparable_sizes, matrix_and_errors, require_parts
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import LinearModel
from fmilin.numerics.steps import runge_kutta_step
from fmilin.signals import FloatArray
from fmilin.tolerances import CONFIRMED, INACCURATE, PREDICTED, QUIET

PARTS = (16, 256)  # into how many a step is divided
FEW = 2  # steps of the experiment with the most parts
TIGHTER = 0.1  # the tolerance of the comparison, in that of the solver
COUNT = 8  # steps of the experiment
PART = 0.3  # of the amplitudes of single pulses, as in held-out responses
SEEN = 10.0  # differences up to this many times what equal runs differ by are noise


@dataclass(frozen=True)
class SolverError:
    """By how much responses change with the step or the tolerance, relative to them."""

    change: float
    used: str  # in which steps, or with which tolerance
    compared: str


def solver_error(runner: Runner, step: float) -> SolverError | None:
    """Compare responses over the same time in steps and in parts of them; None where they agree or there are none."""
    nu = len(runner.scales)
    if not nu or not len(runner.model.outputs):
        return None
    try:
        deviations = np.random.default_rng(12).uniform(-1.0, 1.0, (COUNT, nu)) * runner.choose_amplitudes(step) * PART
        whole, again = (_response(runner, deviations, step, 1) for _ in range(2))
    except FmilinError:
        return None
    if not whole.any():
        return None
    largest, noise = None, relative_change(again, whole)
    for parts in () if runner.cadence.internal else PARTS:
        count = max(FEW, COUNT * PARTS[0] // parts)  # communication steps cost even where they are short
        if parts > PARTS[0] and not runner.affords(
            f"a comparison with steps of {step / parts:g} s", 2, 2 * count * parts, step / parts
        ):
            break
        try:
            change = relative_change(_response(runner, deviations[:count], step, parts), whole[:count])
        except FmilinError:  # it takes no such steps
            break
        if not np.isfinite(change):
            break
        seen = change if change > max(SEEN * relative_change(again[:count], whole[:count]), PREDICTED) else 0.0
        if largest is None or seen > largest.change:
            largest = SolverError(seen, f"in steps of {step:g} s", f"in steps of {step / parts:g} s")
    tolerance = runner.stepped.solver_tolerance
    if tolerance is not None:
        try:
            change = relative_change(_response(runner, deviations, step, 1, TIGHTER * tolerance), whole)
        except FmilinError:  # it does not know such a tolerance
            change = 0.0
        if change > max(SEEN * noise, PREDICTED, largest.change if largest else 0.0):
            used, compared = (f"with a tolerance of {value:g}" for value in (tolerance, TIGHTER * tolerance))
            largest = SolverError(change, used, compared)
    return largest if largest is not None and largest.change else None


def _response(runner: Runner, moves: FloatArray, step: float, parts: int, tolerance: float | None = None) -> FloatArray:
    """Return by how much the outputs are moved at the end of every step, each taken in so many parts."""
    held = np.repeat(moves, parts, axis=0)
    moved, still = (runner.run(inputs, step / parts, tolerance).after for inputs in (held, np.zeros_like(held)))
    return moved[parts - 1 :: parts] - still[parts - 1 :: parts]


def with_solver_error(linear: LinearModel, difference: SolverError) -> LinearModel:
    """Return the linear model, no entry more accurate than the responses, with a remark that states both steps."""
    errors = linear.errors
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))

    def doubted(error: FloatArray, matrix: FloatArray, columns: FloatArray, row: FloatArray) -> FloatArray:
        return np.maximum(error, difference.change * row[:, None] / columns) if matrix.size else error

    n = len(linear.A)
    rows = [
        (np.abs(np.hstack(pair)) * sizes).max(axis=1, initial=0.0)
        for pair in ((linear.A, linear.B), (linear.C, linear.D))
    ]
    new = replace(
        errors,
        A=doubted(errors.A, linear.A, sizes[:n], rows[0]),
        B=doubted(errors.B, linear.B, sizes[n:], rows[0]),
        C=doubted(errors.C, linear.C, sizes[:n], rows[1]),
    )
    text = (
        f"The responses {difference.used}, which the model was identified from, and {difference.compared} differ by "
        f"{difference.change:.1e} of their size: that is the error of the model's own solver, and no entry is closer "
        "to the plant than that."
    )
    remark = Remark("accuracy" if difference.change > INACCURATE else "fit", text)
    return with_errors(replace(linear, warnings=(remark, *linear.warnings)), new)


def with_accuracy_required(linear: LinearModel, *, keep: bool) -> LinearModel:
    """Return the linear model, with a remark on an entry doubtful beside others of its row; refuse it unless kept."""
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))
    J, E = (M * sizes for M in matrix_and_errors(linear))
    largest = np.abs(J).max(axis=1, keepdims=True, initial=0.0)
    n = len(linear.states)
    if n:  # a rate that nothing moves has a row of rounding, too: it counts beside what moves as fast as the others
        fastest = max(1.0, float(np.max(largest[:n, 0] / sizes[:n])))
        worst = E[:n].max(axis=1, initial=0.0)
        largest[:n, 0] = comparable_sizes(largest[:n, 0], worst, sizes[:n] * fastest)
    shown = largest[len(linear.states) :]  # an output that nothing moves has a row of rounding
    np.maximum(shown, QUIET * np.max(shown[np.isfinite(shown)], initial=0.0), out=shown)
    part = np.where(largest > 0, E / np.where(largest > 0, largest, 1.0), 0.0)
    reasons = " ".join(str(w) for w in linear.warnings if w.kind == "accuracy")
    smaller = "FmuOptions(solver_tolerance=...)"
    ask = f" {reasons} Set a smaller tolerance of the solver inside ({smaller}), or take another step=."
    return require_parts(linear, part, lambda *_: ask, keep=keep, said=bool(reasons))


# Whether responses that disagree with derivatives are those of a coarse solver alone: where they are no farther from
# the exact motion of the derivatives than Euler's methods in the same steps, the derivatives say what the plant does.

OF_FIRST_ORDER = 40  # steps
IMPLICIT = 12  # fixed-point iterations of the implicit method
COARSEST = 0.3  # how far Euler's methods may be from the exact motion, relative, to tell anything


def is_coarse_solver(runner: Runner, step: float) -> bool:
    """Whether a solver of first order, in steps of ``step``, would disagree with the derivatives as the model does."""
    nu = len(runner.scales)
    try:
        amplitudes = REDUCED * runner.choose_amplitudes(step)
        deviations = np.random.default_rng(27).uniform(-1.0, 1.0, (OF_FIRST_ORDER, nu)) * amplitudes
        responses = runner.odd(deviations, step).after
        exact, explicit, implicit = (_motion(runner, deviations, step, method) for method in _METHODS)
    except FmilinError:
        return False
    for count in (OF_FIRST_ORDER, OF_FIRST_ORDER // 2, OF_FIRST_ORDER // 4, OF_FIRST_ORDER // 8):
        seen, true = responses[:count], exact[:count]
        euler = max(_apart(motion[:count], true) for motion in (explicit, implicit))
        if euler <= COARSEST:
            return _apart(seen, true) <= max(euler, CONFIRMED)
    return False


def _apart(one: FloatArray, other: FloatArray) -> float:
    """Return how far motions are from each other, relative to either: one of them may show what the other does not."""
    return max(relative_change(one, other), relative_change(other, one))


def _motion(runner: Runner, deviations: FloatArray, step: float, method: Callable[..., FloatArray]) -> FloatArray:
    """Return how outputs deviate at the end of each step, (K, ny), even terms taken out."""
    model, point = runner.model, runner.point
    ends = []
    for sign in (1.0, -1.0):
        x, seen = point.states, []
        for deviation in deviations:
            u = point.inputs + sign * deviation
            x = method(lambda x, u=u: model.evaluate(point.time, x, u).derivatives, x, step)
            seen.append(model.evaluate(point.time, x, u).outputs)
        ends.append(np.array(seen))
    return np.asarray(ends[0] - ends[1], dtype=np.float64) / 2


def _implicit(f: Callable[[FloatArray], FloatArray], x: FloatArray, h: float) -> FloatArray:
    end = x
    for _ in range(IMPLICIT):
        end = x + h * f(end)
    return end


_METHODS: tuple[Callable[..., FloatArray], ...] = (
    lambda f, x, h: runge_kutta_step(lambda _, y: f(y), 0.0, x, h, f(x)),
    lambda f, x, h: x + h * f(x),
    _implicit,
)
