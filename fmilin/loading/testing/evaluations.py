"""Checks of single evaluations: shapes, arguments, memory, copies, the interface, batches."""

from __future__ import annotations

import numpy as np

from fmilin.ground.errors import UnknownNameError
from fmilin.loading.testing.subject import PARTS, Subject, beside, close

__all__ = ["arguments", "batches", "copies", "interface", "memory", "shapes"]

NO_SUCH_NAME = "no such name, surely"


def shapes(s: Subject) -> None:
    """Check that everything has the size that the signals say, in finite doubles."""
    m = s.model
    sizes = (len(m.states), len(m.outputs), len(m.constraints))
    s.promise(
        m.start.states.shape == (sizes[0],), f"start.states has the shape {m.start.states.shape}, not ({sizes[0]},)."
    )
    s.promise(m.start.inputs.shape == (len(m.inputs),), f"start.inputs has the shape {m.start.inputs.shape}.")
    found = s.at_point()
    for part, size in zip(PARTS, sizes, strict=True):
        values = getattr(found, part)
        s.promise(
            isinstance(values, np.ndarray) and values.shape == (size,) and values.dtype == np.float64,
            f"evaluate() returns {part} of shape {np.shape(values)}, not ({size},) doubles.",
        )
        s.promise(np.isfinite(values).all(), f"evaluate() returns {part} that are not finite: {values}.")
    for name in m.independent:
        s.promise(m.states.has(name), f"it recommends to keep '{name}', which is no state.")


def arguments(s: Subject) -> None:
    """Check that arguments stay as they are, and what was returned stays what it was."""
    x, u = s.point.states.copy(), s.point.inputs.copy()
    found = s.model.evaluate(s.point.time, x, u)
    kept = (found.derivatives.copy(), found.outputs.copy())
    s.promise(np.array_equal(x, s.point.states), "evaluate() changes its argument x.")
    s.promise(np.array_equal(u, s.point.inputs), "evaluate() changes its argument u.")
    s.model.evaluate(s.point.time, beside(s), s.point.inputs)
    same = np.array_equal(kept[0], found.derivatives) and np.array_equal(kept[1], found.outputs)
    s.promise(same, "what evaluate() returned changes at the next call: it must be a copy.")


def memory(s: Subject) -> None:
    """Check that evaluated elsewhere and back, the model says the same to the last bit."""
    before = s.at_point()
    s.model.evaluate(s.point.time, beside(s), s.point.inputs + 0.1 * s.model.inputs.scales(s.point.inputs))
    after = s.at_point()
    for part in PARTS:
        change = float(np.max(np.abs(getattr(after, part) - getattr(before, part)), initial=0.0))
        s.promise(change == 0.0, f"evaluated elsewhere and back, its {part} differ by {change:.3g}: it keeps memory.")


def copies(s: Subject) -> bool | None:
    """Check that outputs that are said to be a state or an input are just that."""
    m = s.model
    if not m.copies:
        return False
    x, u = beside(s), s.point.inputs + s.random.standard_normal(len(m.inputs))
    outputs = m.evaluate(s.point.time, x, u).outputs
    for i, copy in m.copies.items():
        original = (x if copy.kind == "state" else u)[copy.index]
        s.promise(
            outputs[i] == original,
            f"the output '{m.outputs.names[i]}' is {outputs[i]!r} and is said to be a {copy.kind} of {original!r}.",
        )
    return None


def interface(s: Subject) -> None:
    """Check that inputs and outputs can be chosen and ordered, rates included; unknown names are refused."""
    m, t, x, u = s.model, s.point.time, s.point.states, s.point.inputs
    names = [*m.states.names, *(f"der({name})" for name in m.states.names), *m.inputs.names]
    chosen = m.with_interface(None, names)
    s.promise(chosen.outputs.names == tuple(names), "with_interface() does not return the outputs that were asked for.")
    found = chosen.evaluate(t, x, u).outputs
    wanted = np.concatenate((x, s.at_point().derivatives, u))
    wrong = [n for n, a, b in zip(names, found, wanted, strict=True) if a != b]
    s.promise(not wrong, f"asked for as outputs, these have other values than they should: {', '.join(wrong[:4])}.")
    turned = m.with_interface(list(reversed(m.inputs.names)), None)
    again = turned.evaluate(t, x, u[::-1].copy()).derivatives
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


def batches(s: Subject) -> bool | None:
    """Check that many points at once give what one after the other gives."""
    m = s.model
    if not m.batches:
        return False
    x = np.array([s.point.states, beside(s), beside(s)])
    u = np.tile(s.point.inputs, (3, 1))
    together = m.evaluate(s.point.time, x, u)
    for part in PARTS:
        alone = np.array([getattr(m.evaluate(s.point.time, a, b), part) for a, b in zip(x, u, strict=True)])
        text = f"{part} of many points at once and one after the other differ"
        # at rest a rate is the rounding of forces that cancel, and beside it their size is seen
        cancelled = 1e-12 * np.max(np.abs(np.nan_to_num(alone)), axis=0, initial=0.0)
        close(s, getattr(together, part), alone, text, 1e-12, allowed=cancelled)
    return None
