"""Labelled spectra as a person reads them: one formulation, or several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

import numpy as np

from fmilin.native.formulations.formulation import ComplexArray, Spectrum
from fmilin.output.report.numbers import eigenvalue_text, rough
from fmilin.output.report.table import console_on, fact, order_text, simple_table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["print_comparison", "print_spectrum"]

MOST = 40
"""Rows shown of a table; the rest is counted."""

MOST_NAMES = 8

_NAMES = {"mcs": "MCS", "rcs": "RCS", "ucs": "UCS"}


def print_spectrum(spectrum: Spectrum, stream: TextIO) -> None:
    """Print what a formulation found beside the linear model: sizes, and the spurious eigenvalues."""
    with console_on(stream) as console:
        console.print()
        for word, pieces in _facts(spectrum):
            console.print(fact(word, pieces, console.width))
        if len(_finite_spurious(spectrum)):
            console.print()
            console.print(_spurious_table(spectrum))


def print_comparison(spectra: Sequence[Spectrum], stream: TextIO) -> None:
    """Print several spectra of one point side by side; deviations are from the first one."""
    first = spectra[0]
    with console_on(stream) as console:
        if first.linear is not None:
            linear = first.linear
            point = [f"{s.name} = {v:.8g}" for s, v in zip(linear.states, linear.y0, strict=True)]
            more = [f"and {len(point) - MOST_NAMES} more"] if len(point) > MOST_NAMES else []
            console.print(fact("Model", [linear.model.name, order_text(linear)], console.width))
            console.print(fact("Point", [f"t = {linear.point.time:.8g} s", *point[:MOST_NAMES], *more], console.width))
        sizes = first.sizes
        independent = "" if sizes["rank"] == sizes["m"] else f", {sizes['rank']} of them independent"
        console.print(
            fact("Size", [f"n = {sizes['n']} coordinates", f"m = {sizes['m']} constraints{independent}"], console.width)
        )
        for spectrum in spectra:
            console.print(fact(_NAMES[spectrum.formulation], [spectrum.method], console.width))
        console.print()
        console.print(_sizes_table(spectra))
        console.print()
        console.print(_comparison_table(spectra))
        console.print()
        said: set[str] = set()
        for spectrum in spectra:
            for remark in spectrum.remarks:
                if str(remark) not in said:
                    said.add(str(remark))
                    label = _NAMES[spectrum.formulation] if remark.kind not in _COMMON else "Warning"
                    console.print(fact(label, str(remark).split(), console.width, separator=" "))
        if not said:
            console.print("No warnings.")


_COMMON = ("off-equilibrium", "singular")


def _facts(spectrum: Spectrum) -> Iterator[tuple[str, list[str]]]:
    sizes = spectrum.sizes
    yield "Formulation", [_NAMES[spectrum.formulation], spectrum.method]
    yield "", [f"n = {sizes['n']} coordinates", f"m = {sizes['m']} constraints", f"{sizes['rank']} independent"]
    yield "Eigenvalues", [f"{len(spectrum.true)} true", _spurious_text(spectrum)]
    if len(spectrum.true):
        yield (
            "",
            [
                f"true ones violate the constraints by {_largest(spectrum.violations[spectrum.is_true])}",
                f"rounding may change them by {_largest(spectrum.errors[spectrum.is_true])} 1/s",
            ],
        )


def _spurious_text(spectrum: Spectrum) -> str:
    values = spectrum.spurious
    finite = _finite_spurious(spectrum)
    infinite = len(values) - len(finite)
    if not len(values):
        return "no spurious ones"
    if infinite == len(values):
        return f"{infinite} spurious (infinite)"
    beyond = f", {infinite} infinite" if infinite else ""
    if np.max(np.abs(finite)) < 1e-3:
        return f"{len(values)} spurious (zero{beyond})"
    low, high = float(np.min(np.abs(finite))), float(np.max(np.abs(finite)))
    return f"{len(values)} spurious (moduli {low:.4g} to {high:.4g} 1/s{beyond})"


def _largest(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return rough(float(np.max(known))) if len(known) else "an unknown amount"


def _finite_spurious(spectrum: Spectrum) -> ComplexArray:
    """Return the spurious eigenvalues that are finite; with RCS huge ones are infinite but for rounding."""
    values = spectrum.spurious
    largest = 1e6 * float(np.max(np.abs(spectrum.true), initial=1.0)) if spectrum.formulation == "rcs" else np.inf
    finite: ComplexArray = values[np.abs(values) < largest]
    return finite


def _spurious_table(spectrum: Spectrum) -> Table:
    table = simple_table()
    table.add_column("Spurious eigenvalue [1/s]", justify="right", no_wrap=True)
    table.add_column("Violation of the constraints", justify="right")
    shown = 0
    at = np.flatnonzero(~spectrum.is_true & np.isfinite(spectrum.eigenvalues))
    at = at[spectrum.eigenvalues[at].imag >= 0]
    for i in at[:MOST]:
        s = complex(spectrum.eigenvalues[i])
        violation = spectrum.violations[i]
        text = rough(float(violation)) if np.isfinite(violation) else "moves only multipliers"
        table.add_row(eigenvalue_text(s, pair=s.imag > 0), text)
        shown += 1
    if shown < len(at):
        table.add_row(f"and {len(at) - shown} more", "")
    return table


def _sizes_table(spectra: Sequence[Spectrum]) -> Table:
    table = simple_table("", "Order", "True", "Spurious", "Violation, true", "Violation, spurious", "Rounding [1/s]")
    for s in spectra:
        infinite = len(s.spurious) - len(_finite_spurious(s))
        spurious = f"{len(s.spurious)}" + (" (infinite)" if infinite and infinite == len(s.spurious) else "")
        least = s.violations[~s.is_true & np.isfinite(s.violations)]
        table.add_row(
            _NAMES[s.formulation],
            str(s.sizes["order"]),
            str(len(s.true)),
            spurious,
            _largest(s.violations[s.is_true]) if len(s.true) else "",
            rough(float(np.min(least))) if len(least) else "",
            _largest(s.errors[s.is_true]) if len(s.true) else "",
        )
    return table


def _comparison_table(spectra: Sequence[Spectrum]) -> Table:
    """One row per real eigenvalue or pair of the first spectrum; how far the others' nearest ones are."""
    first, others = spectra[0], spectra[1:]
    table = simple_table()
    table.add_column(f"True eigenvalue, {_NAMES[first.formulation]} [1/s]", justify="right", no_wrap=True)
    for other in others:
        table.add_column(f"{_NAMES[other.formulation]} differs by", justify="right")
    values = first.true[first.true.imag >= 0]
    for s in values[:MOST]:
        differences = [rough(float(np.abs(other.nearest(np.array([s]))[0] - s))) for other in others]
        table.add_row(eigenvalue_text(complex(s), pair=bool(s.imag > 0)), *differences)
    if len(values) > MOST:
        worst = [
            rough(float(np.max(np.abs(other.nearest(values[MOST:]) - values[MOST:])))) + " at most" for other in others
        ]
        table.add_row(f"and {len(values) - MOST} more", *worst)
    return table
