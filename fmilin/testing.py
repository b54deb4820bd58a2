"""Does a model keep what :class:`~fmilin.Model` promises? For tests of adapters, and of our own models.

>>> from fmilin.systems import four_bar
>>> from fmilin.testing import check_model
>>> check_model(four_bar())[:3]
['shapes', 'arguments', 'memory']
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fmilin.errors import FmilinError, UnknownNameError, join_first
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize
from fmilin.manifold.operating_points import operating_point
from fmilin.model.capabilities import read_constraint_residuals, read_products
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.numerics.differences.differences import jacobian_by_differences
from fmilin.signals import FloatArray

__all__ = ["ModelCheckError", "check_model"]
PARTS = ("derivatives", "outputs", "residuals")


class ModelCheckError(AssertionError):
    """A model does not keep a promise; the message says which, where, and by how much."""


@dataclass(frozen=True)
class Subject:
    """The model, a consistent point of it, and what is known there."""

    model: Model
    point: OperatingPoint
    random: np.random.Generator
    tolerance: float

    def at_point(self) -> Evaluation:
        """Evaluate the model at the point."""
        return self.model.evaluate(self.point.time, self.point.states, self.point.inputs)

    def promise(self, is_kept: object, text: str) -> None:
        """Raise when a promise is not kept."""
        if not is_kept:
            self.fail(text)

    def fail(self, text: str) -> NoReturn:
        """Raise, and say which promise is not kept."""
        raise ModelCheckError(f"The model '{self.model.info.name}' violates the interface: {text}")


def nearby(s: Subject) -> FloatArray:
    """Return a displaced point, perhaps off the manifold."""
    scales = s.model.states.scales(s.point.states)
    return np.asarray(s.point.states + 1e-3 * scales * s.random.standard_normal(len(scales)))


def linear(s: Subject, derivatives: str = "auto") -> LinearModel:
    """Return the linear model at the point."""
    return linearize(s.model, s.point, derivatives=derivatives)


def tangent(s: Subject) -> FloatArray:
    """Return directions along which the states may move, shape (N, P): f need not be defined elsewhere."""
    if not len(s.model.constraints):
        return np.eye(len(s.model.states))
    return linear(s).T


def close(
    s: Subject,
    values: FloatArray,
    reference: FloatArray,
    text: str,
    tolerance: float,
    *,
    rows: Any = None,
    allowed: FloatArray | float = 0.0,
) -> None:
    """Raise when ``values`` is off by more than ``allowed`` and ``tolerance`` of the largest entry of the row."""
    size = np.max(np.abs(np.nan_to_num(reference)), axis=-1, initial=0.0, keepdims=True)
    size = np.maximum(size, 1e-6 * np.max(size, initial=0.0))
    bad = np.nan_to_num(np.abs(values - reference) - allowed - tolerance * size, nan=np.inf) > 0
    if rows is not None:
        bad &= np.asarray(rows)[:, None]
    positions = np.argwhere(bad)
    if len(positions):
        i = tuple(positions[0])
        s.fail(f"{text}: {values[i]:.12g} and {reference[i]:.12g} at {[int(j) for j in i]}.")


NO_SUCH_NAME = "no such name, surely"


def shapes(s: Subject) -> None:
    """Check that everything has the size that the signals say, in finite doubles."""
    m = s.model
    sizes = (len(m.states), len(m.outputs), len(m.constraints))
    s.promise(
        m.start.states.shape == (sizes[0],), f"start.states has the shape {m.start.states.shape}, not ({sizes[0]},)."
    )
    s.promise(m.start.inputs.shape == (len(m.inputs),), f"start.inputs has the shape {m.start.inputs.shape}.")
    evaluation = s.at_point()
    for part, size in zip(PARTS, sizes, strict=True):
        values = getattr(evaluation, part)
        s.promise(
            isinstance(values, np.ndarray) and values.shape == (size,) and values.dtype == np.float64,
            f"evaluate() returns {part} of shape {np.shape(values)}, not ({size},) doubles.",
        )
        s.promise(np.isfinite(values).all(), f"evaluate() returns {part} that are not finite: {values}.")
    for name in m.independent:
        s.promise(m.states.has(name), f"it recommends to keep '{name}', which is not a state.")


def arguments(s: Subject) -> None:
    """Check that arguments stay as they are, and what was returned stays what it was."""
    x, u = s.point.states.copy(), s.point.inputs.copy()
    evaluation = s.model.evaluate(s.point.time, x, u)
    copied = (evaluation.derivatives.copy(), evaluation.outputs.copy())
    s.promise(np.array_equal(x, s.point.states), "evaluate() changes its argument x.")
    s.promise(np.array_equal(u, s.point.inputs), "evaluate() changes its argument u.")
    s.model.evaluate(s.point.time, nearby(s), s.point.inputs)
    same = np.array_equal(copied[0], evaluation.derivatives) and np.array_equal(copied[1], evaluation.outputs)
    s.promise(same, "what evaluate() returned changes at the next call: it must be a copy.")


def memory(s: Subject) -> None:
    """Check that evaluated elsewhere and back, the model says the same to the last bit."""
    before = s.at_point()
    s.model.evaluate(s.point.time, nearby(s), s.point.inputs + 0.1 * s.model.inputs.scales(s.point.inputs))
    after = s.at_point()
    for part in PARTS:
        change = float(np.max(np.abs(getattr(after, part) - getattr(before, part)), initial=0.0))
        s.promise(
            change == 0.0,
            f"evaluated elsewhere and again at the point, its {part} differ by {change:.3g}: it has a memory.",
        )


def copies(s: Subject) -> bool | None:
    """Check that outputs that are said to be a state or an input are just that."""
    m = s.model
    if not m.copies:
        return False
    x, u = nearby(s), s.point.inputs + s.random.standard_normal(len(m.inputs))
    outputs = m.evaluate(s.point.time, x, u).outputs
    for i, copy in m.copies.items():
        original = (x if copy.kind == "state" else u)[copy.index]
        s.promise(
            outputs[i] == original,
            f"the output '{m.outputs.names[i]}' is {outputs[i]!r} and is said to be a {copy.kind} of {original!r}.",
        )
    return None


def interface(s: Subject) -> None:
    """Check that inputs and outputs can be chosen and ordered, rates included; unknown names are rejected."""
    m, t, x, u = s.model, s.point.time, s.point.states, s.point.inputs
    names = [*m.states.names, *(f"der({name})" for name in m.states.names), *m.inputs.names]
    chosen = m.with_interface(None, names)
    s.promise(chosen.outputs.names == tuple(names), "with_interface() does not return the requested outputs.")
    outputs_chosen = chosen.evaluate(t, x, u).outputs
    reference = np.concatenate((x, s.at_point().derivatives, u))
    wrong = [n for n, a, b in zip(names, outputs_chosen, reference, strict=True) if a != b]
    s.promise(not wrong, f"requested as outputs, these have wrong values: {join_first(wrong, 4)}.")
    again = m.with_interface(list(reversed(m.inputs.names)), None).evaluate(t, x, u[::-1].copy()).derivatives
    s.promise(
        np.array_equal(again, s.at_point().derivatives),
        "with_interface() with inputs in another order moves differently.",
    )
    for inputs, outputs in (([NO_SUCH_NAME], None), (None, [NO_SUCH_NAME])):
        try:
            m.with_interface(inputs, outputs)
        except UnknownNameError:
            continue
        s.fail("with_interface() takes a name that does not exist; it must raise UnknownNameError.")
    s.promise(not len(m.with_constraints([]).constraints), "with_constraints([]) leaves constraints.")


def batches(s: Subject) -> None:
    """Check that many points, and none, give by one call what one call after the other gives."""
    m = s.model
    x = np.array([s.point.states, nearby(s), nearby(s)])
    u = np.tile(s.point.inputs, (3, 1))
    t = np.full(3, s.point.time)
    if not isinstance(m, Stepped):  # a model with its own solver inside answers at one time only
        t[-1] += 1e-3
    together = m.evaluate_points(t, x, u)
    alone = Evaluation.joined([m.evaluate(*point) for point in zip(t.tolist(), x, u, strict=True)])
    none = m.evaluate_points(t[:0], x[:0], u[:0])
    for part in PARTS:
        values, reference = getattr(together, part), getattr(alone, part)
        s.promise(
            np.shape(values) == reference.shape,
            f"evaluate_points() returns {part} of shape {np.shape(values)}, not {reference.shape}.",
        )
        empty = np.shape(getattr(none, part))
        s.promise(
            empty == (0, reference.shape[1]),
            f"evaluate_points() at no points returns {part} of shape {empty}, not {(0, reference.shape[1])}.",
        )
        # at rest a rate is the rounding of forces that cancel, and near it their size appears
        cancelled = 1e-12 * np.max(np.abs(np.nan_to_num(reference)), axis=0, initial=0.0)
        text = f"{part} of evaluate_points() and of evaluate() at one point after the other differ"
        close(s, values, reference, text, 1e-12, allowed=cancelled)


NEGLIGIBLE_SIZE = 1e-12  # deviations of numbers that agree, in units of the model


def products(s: Subject) -> bool | None:
    """Check that exact products are linear in the direction, and equal differences of the values."""
    m, t, x, u = s.model, s.point.time, s.point.states, s.point.inputs
    n, k = len(m.states), len(m.inputs)
    basis = tangent(s)
    dx, du = np.hstack((basis, np.zeros((n, k)))), np.hstack((np.zeros((k, basis.shape[1])), np.eye(k)))
    exact = read_products(m, t, x, u, dx, du)
    if exact is None:
        return False
    weights = s.random.standard_normal((dx.shape[1], 2))
    mixed = read_products(m, t, x, u, dx @ weights, du @ weights)
    if mixed is None:
        s.fail("products() returns derivatives in some directions only.")
    z, sizes = np.concatenate((x, u)), np.ones(dx.shape[1])
    along = np.vstack((dx, du))
    for part in PARTS:
        J, sums = getattr(exact, part), getattr(mixed, part)
        rows = len(getattr(s.at_point(), part))
        s.promise(J.shape == (rows, dx.shape[1]), f"products() returns {part} of shape {J.shape}.")
        is_finite = np.isfinite(J)
        text, along_weights = (
            f"products() is not linear in the direction: {part}",
            np.where(is_finite, J, 0.0) @ weights,
        )
        close(s, along_weights, sums, text, 1e-9, rows=is_finite.all(axis=1), allowed=NEGLIGIBLE_SIZE)

        def value(c: FloatArray, part: str = part) -> FloatArray:
            moved = z + along @ c
            return np.asarray(getattr(m.evaluate(t, moved[:n], moved[n:]), part))

        measured, error = jacobian_by_differences(value, np.zeros(dx.shape[1]), sizes)
        differ = (
            np.abs(J - measured)
            > NEGLIGIBLE_SIZE + 10 * error + s.tolerance * np.max(np.abs(measured), axis=1, initial=0.0)[:, None]
        )
        bad = np.argwhere(differ & is_finite)
        where = "" if not len(bad) else f"row {bad[0][0]}: {J[tuple(bad[0])]:.9g} and {measured[tuple(bad[0])]:.9g}"
        s.promise(not len(bad), f"products() differs from differences of the {part}, {where}.")
    return None


def structure(s: Subject) -> bool | None:
    """Check that what is declared independent is so in the products."""
    m = s.model
    if m.structure is None:
        return False
    n, k = len(m.states), len(m.inputs)
    s.promise(m.structure.shape == (n + len(m.outputs), n + k), f"structure has the shape {m.structure.shape}.")
    exact = read_products(m, s.point.time, s.point.states, s.point.inputs, np.eye(n, n + k), np.eye(k, n + k, n))
    if exact is None:
        return False
    wrong = np.argwhere((np.nan_to_num(np.vstack((exact.derivatives, exact.outputs))) != 0) & ~m.structure)
    s.promise(not len(wrong), f"structure lacks a dependence that products() has, at {wrong[:1].tolist()}.")
    return None


def constraints(s: Subject) -> bool | None:
    """Check that the motion keeps the constraints, no input breaks them, and they take states away."""
    if not len(s.model.constraints):
        return False
    m, t, x, u = s.model, s.point.time, nearby(s), s.point.inputs
    alone, all_of_it = read_constraint_residuals(m, t, x, u), m.evaluate(t, x, u).residuals
    if alone is not None:
        what = "constraint_residuals() and the residuals of evaluate() differ"
        close(s, alone, all_of_it, what, 1e-9, allowed=NEGLIGIBLE_SIZE)
    lin = linear(s)  # rejects constraints that the motion does not keep
    s.promise(
        len(lin.states) < len(s.model.states) or not lin.accuracy.conditioning > 1,
        "its constraints remove no degree of freedom.",
    )
    return None


def derivatives(s: Subject) -> bool | None:
    """Check that the linear model from exact derivatives equals the one from differences."""
    exact, measured = linear(s), linear(s, "differences")
    if exact.method.derivatives == "differences":
        return False
    s.promise(
        exact.states.names == measured.states.names, "coordinates differ between exact derivatives and differences."
    )
    for name in "ABCD":
        error = 10 * getattr(measured.errors, name)
        text = f"the matrix {name} by exact derivatives and by differences differ"
        close(s, getattr(exact, name), getattr(measured, name), text, s.tolerance, allowed=error)
    return None


Check = Callable[[Subject], bool | None]  # returns False when it does not concern the model
_ANYWHERE: Sequence[Check] = (shapes, arguments, memory)  # what must hold before a consistent point can be searched for
# Many points come before differences, which are evaluated together.
_AT_POINT: Sequence[Check] = (copies, interface, batches, constraints, products, structure, derivatives)


def check_model(
    model: Model, point: OperatingPoint | None = None, *, tolerance: float = 1e-6, seed: int = 0
) -> list[str]:
    """Check everything that fmilin relies on, at one point and near it; return the names of the promises checked.

    ``point`` is consistent, by default the projected start; ``tolerance`` is how far differences may be from exact
    derivatives, relative to the largest entry of a row.
    """
    random = np.random.default_rng(seed)
    done = _checked(_ANYWHERE, Subject(model, model.start if point is None else point, random, tolerance))
    try:
        point = operating_point(model, project=True) if point is None else point
    except FmilinError as error:
        raise ModelCheckError(f"The model '{model.info.name}' has no consistent start: {error}") from error
    return done + _checked(_AT_POINT, Subject(model, point, random, tolerance))


def _checked(checks: Sequence[Check], subject: Subject) -> list[str]:
    """Return the names of the checks that concern the model, each of which was made."""
    done = []
    for check in checks:
        try:
            concerns = check(subject)
        except FmilinError as error:
            what = f"The model '{subject.model.info.name}' fails while its {check.__name__} are checked"
            raise ModelCheckError(f"{what}: {error}") from error
        if concerns is not False:
            done.append(check.__name__)
    return done
