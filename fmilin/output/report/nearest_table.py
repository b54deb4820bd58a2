"""A few eigenvalues around a frequency as a person reads them."""

from __future__ import annotations

from typing import TextIO

import numpy as np

from fmilin.native.formulations.formulation import Spectrum
from fmilin.output.report.numbers import eigenvalue_text, rough
from fmilin.output.report.table import console_on, fact, simple_table

__all__ = ["print_nearest"]


def print_nearest(name: str, found: Spectrum, stream: TextIO) -> None:
    """Print one row for each real eigenvalue or pair, with its label and what rounding may do to it."""
    sizes = found.sizes
    table = simple_table("Eigenvalue [1/s]", "[rad/s]", "Damping ratio", "Rounding", "")
    for i in np.flatnonzero(found.eigenvalues.imag >= 0):
        s, size = complex(found.eigenvalues[i]), abs(found.eigenvalues[i])
        table.add_row(
            eigenvalue_text(s, pair=s.imag > 0),
            f"{size:.8g}",
            f"{0.0 - s.real / size:.3g}" if size > 0 else "",
            rough(float(found.errors[i])) if np.isfinite(found.errors[i]) else "",
            found.labels[i],
        )
    with console_on(stream) as console:
        console.print(fact("Model", [name], console.width))
        console.print(
            fact("Size", [f"n = {sizes['n']:,} coordinates", f"m = {sizes['m']:,} constraints"], console.width)
        )
        order = f"order {sizes['order']:,}"
        console.print(fact("Formulation", [found.formulation.upper(), found.method, order], console.width))
        console.print()
        console.print(table)
        console.print()
        for remark in found.remarks:
            console.print(fact("Warning", str(remark).split(), console.width, separator=" "))
        if not found.remarks:
            console.print("No warnings.")
