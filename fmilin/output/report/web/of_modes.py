"""Modes in a report: what each is, which coordinates take part, which inputs move it, which outputs show it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fmilin.linear_model.modal import ModalAnalysis, ModeGroup, modal_analysis
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction import hankel_singular_values
from fmilin.output.report.numbers import eigenvalue_text, rounded, shortened
from fmilin.output.report.web.blocks import Block, Cell, Section, number, picture, table, text

ALIKE = "eigenvalues that are equal as far as they are known count together"
REACHED = (
    "Amplitude that an input of unit energy reaches (from the controllability Gramian of the mode), in the unit of the "
    "state that moves most; ∞ where the mode does not decay, empty for several equal modes"
)
SHOWN = "Root of the energy of an output while the mode decays from amplitude 1 (from the observability Gramian)"


def mode_sections(linear: LinearModel) -> list[Section]:
    """Return the sections about modes, and about controllability and observability."""
    if not len(linear.states):
        return [Section("Modes", [text("The linear model has no states: nothing can move.")])]
    analysis = modal_analysis(linear)
    return [
        Section("Modes", _modes(linear, analysis)),
        Section("Controllability and observability", _channels(linear, analysis)),
    ]


def _modes(linear: LinearModel, analysis: ModalAnalysis) -> list[Block]:
    rows = []
    for k, group in enumerate(analysis.groups):
        s = group.eigenvalue
        swing = (s.imag, abs(s), abs(s) / (2 * np.pi), -rounded(s).real / abs(s)) if group.is_pair else (np.nan,) * 4
        slowness = number(1 / abs(s.real) if abs(rounded(s).real) > 0 else np.nan, digits=4)
        parts = Cell(_largest(linear, analysis.participation[k]))
        value = Cell(_value(group), s.real)
        rows.append([number(k + 1, digits=4), value, *map(number, swing), slowness, _verdict(group), parts])
    heads = ["Mode", "Eigenvalue [1/s]", "Imaginary part [rad/s]", "Natural frequency [rad/s]", "[Hz]", "Damping ratio",
             "Time constant [s]", "Motion", "Coordinates that take part"]  # fmt: skip
    factors = [
        [number(k + 1, digits=4), *(number(100 * p, digits=3) for p in row)]
        for k, row in enumerate(analysis.participation)
    ]
    return [
        table(f"Modes, slowest first; {ALIKE}", heads, rows),
        text(
            "A participation factor is the share of a coordinate in a mode: the diagonal of the spectral projector, "
            "with the sum 100 % over all coordinates. It does not depend on units or scaling; it does depend on which "
            "coordinates were chosen."
        ),
        table("Participation factors in percent", ["Mode", *map(shortened, linear.states.names)], factors),
        picture("Eigenvalues in the complex plane", linear.plot.eigenvalues),
        picture("Mode shapes in all states, dependent ones included", linear.plot.modes),
        picture("Shares of modes in coordinates, inputs and outputs, in percent", linear.plot.participation),
    ]


def _value(group: ModeGroup) -> str:
    shown = eigenvalue_text(group.eigenvalue, pair=group.is_pair)
    return shown if group.count == 1 else f"{shown} ({group.count} times)"


def _verdict(group: ModeGroup) -> Cell:
    real = rounded(group.eigenvalue).real
    swings = "swings" if group.is_pair else "moves"
    if real > 0:
        return Cell(f"{swings if group.is_pair else ''} and grows".removeprefix(" and "), alarm=True)
    return Cell(f"{swings} without decay" if real == 0 else f"{swings} and decays" if group.is_pair else "decays")


def _largest(linear: LinearModel, factors: np.ndarray) -> str:
    order = [i for i in np.argsort(-factors, kind="stable")[:4] if factors[i] > 0.005]
    return ", ".join(f"{shortened(linear.states[i].name)} {100 * factors[i]:.0f} %" for i in order)


def _channels(linear: LinearModel, analysis: ModalAnalysis) -> list[Block]:
    blocks: list[Block] = [
        text(
            "The share of a mode is the largest part that it has in the impulse response of any coordinate to the "
            "input; for outputs, in the response to initial values. It is independent of all units. 'No' is the test "
            "of Popov, Belevitch and Hautus with this input or output alone, against the estimated errors of the "
            "entries."
        ),
        text(*ill_moved(linear, analysis), alarm=True),
    ]
    moved = (analysis.controllability, analysis.unmoved, analysis.uncontrollable)
    seen = (analysis.observability, analysis.unseen, analysis.unobservable)
    for signals, caption, shares, energies, energy_caption in (
        (linear.inputs, "Which input moves which mode", moved, analysis.reached, REACHED),
        (linear.outputs, "Which output shows which mode", seen, analysis.shown, SHOWN),
    ):
        if len(signals):
            rows = (_channel_row(k, *of_mode) for k, of_mode in enumerate(zip(analysis.groups, *shares, strict=True)))
            heads = ["Mode", "Eigenvalue [1/s]", "All together", *map(shortened, signals.names)]
            blocks.append(table(f"{caption}: share in percent", heads, rows))
            amplitudes = (
                [number(k + 1, digits=4), *(number(v, digits=3) for v in row)] for k, row in enumerate(energies)
            )
            heads = ["Mode", *(f"{shortened(s.name)} [{s.unit or '1'}]" for s in signals)]
            blocks.append(table(energy_caption, heads, amplitudes))
    hankel = hankel_singular_values(linear).tolist() if len(linear.inputs) and len(linear.outputs) else []
    if hankel:
        rows = ([number(k + 1, digits=4), number(v, digits=4)] for k, v in enumerate(hankel))
        blocks.append(
            table("Hankel singular values of the part that decays, channels in their sizes", ["Number", "Value"], rows)
        )
    return blocks


def _channel_row(k: int, group: ModeGroup, shares: np.ndarray, missing: np.ndarray, together: int) -> list[Cell | str]:
    total = "yes" if not together else "no" if together == group.count else f"all but {together}"
    mode = Cell(_value(group), group.eigenvalue.real)
    cells: list[Cell | str] = [number(k + 1, digits=4), mode, Cell(total, alarm=together > 0)]
    for share, lack in zip(shares.tolist(), missing.tolist(), strict=True):
        if lack == group.count:
            cells.append(Cell("no", 0.0, alarm=True))
        else:
            cells.append(Cell(f"{100 * share:.3g}" + (f", all but {lack}" if lack else ""), 100 * share))
    return cells


def ill_moved(linear: LinearModel, analysis: ModalAnalysis) -> Iterator[str]:
    """Yield a sentence for every mode that some input cannot move, or some output does not show."""
    for signals, alone, all_of, cannot, none in (
        (linear.inputs, analysis.unmoved, analysis.uncontrollable, ("cannot be moved by",) * 2, "any input"),
        (linear.outputs, analysis.unseen, analysis.unobservable, ("is not seen in", "are not seen in"), "any output"),
    ):
        for k, group in enumerate(analysis.groups):
            what = f"Mode {k + 1} ({_value(group)} 1/s)"
            which = [shortened(s.name) for s, lack in zip(signals, alone[k], strict=True) if lack == group.count]
            if all_of[k] == group.count:
                yield f"{what} {cannot[0]} {none}."
            elif which:
                yield f"{what} {cannot[0]} {', '.join(which)} alone."
            if 0 < all_of[k] < group.count:
                yield f"{what}: {all_of[k]} of its {group.count} motions {cannot[1]} {none}."
