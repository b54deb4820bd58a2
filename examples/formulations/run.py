"""Three formulations side by side: the tables of González et al. again, on this machine.

``python run.py`` prints tables 1 to 6 and writes three pictures into the current folder, or into ``--output FOLDER``,
in less than a minute. With ``--full`` the systems are as large as dense matrices reasonably go (minutes).
Times are ratios between formulations that took turns in one run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # at these sizes several threads only wait for each other

import numpy as np
from pictures import draw_sparsity, draw_spectra, draw_times

from fmilin.formulations import MCS, RCS, UCS, ConstrainedForm, Formulation, Spectrum, form_of, spectrum
from fmilin.formulations import spectrum_of_form as solve
from fmilin.systems import flexible_double_pendulum, four_bar, four_bar_form

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
parser.add_argument("--full", action="store_true", help="systems as large as dense matrices reasonably go")
arguments = parser.parse_args()
OUTPUT: Path = arguments.output
OUTPUT.mkdir(parents=True, exist_ok=True)

LOOPS, ELEMENTS = (1, 2, 5, 10, 20, 40), (1, 2, 5, 10, 20)
MORE_LOOPS, MORE_ELEMENTS = (80, 160), (40,)
FOUR_BAR: dict[str, Formulation] = {"MCS": MCS(), "RCS": RCS(), "UCS": UCS(alpha=1e6, xi=1.0, omega=10.0)}
STIFFER = UCS(alpha=1e7, xi=1.0, omega=10.0)
PENDULUM: dict[str, Formulation] = {"MCS": MCS(), "RCS": RCS(), "UCS": STIFFER}
"""The penalties of both are the paper's."""


@dataclass
class Row:
    """One size of one system: its spectra, and the seconds that each formulation took."""

    size: int
    form: ConstrainedForm
    spectra: dict[str, Spectrum] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def first(self, name: str, count: int) -> np.ndarray:
        """Return the slowest true eigenvalues with positive imaginary part."""
        values = self.spectra[name].true
        return values[values.imag > 0][:count]

    def difference(self, name: str, count: int) -> float:
        """Return how far the first eigenvalues are from those of MCS, in 1/s."""
        mine = self.first("MCS", count)
        return float(np.max(np.abs(self.spectra[name].nearest(mine) - mine)))


def main() -> None:
    """Compute everything, print the tables, draw the pictures."""
    loops = LOOPS + (MORE_LOOPS if arguments.full else ())
    elements = ELEMENTS + (MORE_ELEMENTS if arguments.full else ())
    linkage = [measured(N, four_bar_form(N).dense(), FOUR_BAR, ["phi"]) for N in loops]
    damped = [measured(N, four_bar_form(N, 1.0).dense(), FOUR_BAR, ["phi"]) for N in loops]
    pendulum = [measured(n_p, hanging(n_p), PENDULUM, []) for n_p in elements]
    table_1(linkage)
    table_2(damped)
    singular_configuration()
    table_3(pendulum)
    table_4(pendulum)
    table_5(pendulum)
    table_6(linkage, pendulum)
    draw_times(OUTPUT / "times.png", linkage, pendulum)
    draw_spectra(OUTPUT / "spectra.png", linkage[0], pendulum[1])
    draw_sparsity(OUTPUT / "sparsity.png", pendulum[ELEMENTS.index(5)].form, STIFFER)


def hanging(elements: int) -> ConstrainedForm:
    """Return the numeric equations of the pendulum at its equilibrium."""
    model = flexible_double_pendulum(elements)
    return form_of(model, model.start)


def measured(size: int, form: ConstrainedForm, formulations: dict[str, Formulation], independent: Sequence[str]) -> Row:
    """Solve by all formulations in turns, the small systems several times, and keep the least processor time."""
    row = Row(size, form)
    for name in list(formulations) * (5 if form.n < 60 else 2 if form.n < 200 else 1):
        begin = time.process_time()
        row.spectra[name] = solve(form, formulations[name], independent=independent)
        taken = time.process_time() - begin
        row.seconds[name] = min(taken, row.seconds.get(name, np.inf))
    return row


# ---------------------------------------------------------------------- the tables


def table_1(rows: Sequence[Row]) -> None:
    """Four-bar linkage without dampers: sizes, spectrum, times."""
    show(
        "Table 1: N-loop four-bar linkage, no dampers",
        ["N", "n", "m", "s1 (MCS) [1/s]", "MCS time", "RCS / MCS", "UCS / MCS", "RCS off by", "UCS off by"],
        [
            [f"{r.size}", f"{r.form.n}", f"{r.form.m}", pair(r.first("MCS", 1)[0]), *times(r), *differences(r, 1)]
            for r in rows
        ],
    )


def table_2(rows: Sequence[Row]) -> None:
    """Four-bar linkage with dampers."""
    show(
        "Table 2: N-loop four-bar linkage, dampers of 1 Ns/m beside the springs",
        ["N", "s1 (MCS) [1/s]", "MCS time", "RCS / MCS", "UCS / MCS", "RCS off by", "UCS off by"],
        [[f"{r.size}", pair(r.first("MCS", 1)[0]), *times(r), *differences(r, 1)] for r in rows],
    )


def singular_configuration() -> None:
    """The one-loop linkage folded flat, k = 0, gravity along x (section 5.1)."""
    model, rows = four_bar(singular=True), []
    for name, formulation in FOUR_BAR.items():
        found = spectrum(model, None, formulation, at_singularity=name == "MCS")
        values = found.true[found.true.imag > 0]
        note = "over the enlarged set of velocities" if name == "MCS" else ""
        rows.append([name, pair(values[0]), pair(values[1]), f"{len(found.spurious)}", note])
    show("Singular configuration of the one-loop linkage", ["", "s1 [1/s]", "s2 [1/s]", "spurious", ""], rows)


def table_3(rows: Sequence[Row]) -> None:
    """Flexible double pendulum: the first four eigenvalues by MCS."""
    show(
        "Table 3: flexible double pendulum, first four eigenvalues by MCS [1/s]",
        ["n_p", "n", "n - m", "s1", "s2", "s3", "s4"],
        [
            [f"{r.size}", f"{r.form.n}", f"{r.form.n - r.form.m}", *(pair(s, 12) for s in r.first("MCS", 4))]
            for r in rows
        ],
    )


def table_4(rows: Sequence[Row]) -> None:
    """Flexible double pendulum: times."""
    show(
        "Table 4: flexible double pendulum, times of all eigenvalues",
        ["n_p", "order MCS", "RCS", "UCS", "MCS time", "RCS / MCS", "UCS / MCS"],
        [[f"{r.size}", *(f"{s.sizes['order']}" for s in r.spectra.values()), *times(r)] for r in rows],
    )


def table_5(rows: Sequence[Row]) -> None:
    """Flexible double pendulum: differences from MCS."""
    show(
        "Table 5: flexible double pendulum, first four eigenvalues: largest difference from MCS [1/s]",
        ["n_p", "RCS", "its own estimate", "UCS", "largest real part: RCS", "UCS"],
        [
            [
                f"{r.size}",
                f"{r.difference('RCS', 4):.1e}",
                f"{np.max(r.spectra['RCS'].errors[r.spectra['RCS'].is_true][:8]):.1e}",
                f"{r.difference('UCS', 4):.1e}",
                f"{np.max(np.abs(r.first('RCS', 4).real)):.1e}",
                f"{np.max(np.abs(r.first('UCS', 4).real)):.1e}",
            ]
            for r in rows
        ],
    )


def table_6(linkage: Sequence[Row], pendulum: Sequence[Row]) -> None:
    """The assessment, with what was measured in this run."""
    last = linkage[-1], pendulum[-1]

    def ratio(name: str) -> str:
        return " and ".join(f"{r.seconds[name] / r.seconds['MCS']:.1f}" for r in last)

    def off(name: str) -> str:
        return f"{max(r.difference(name, 1) for r in linkage):.0e}, {max(r.difference(name, 4) for r in pendulum):.0e}"

    show(
        f"Table 6: assessment; measured at N = {last[0].size} and n_p = {last[1].size}",
        ["", "MCS", "RCS", "UCS"],
        [
            ["eigenvalues", "2(n - m)", "2n + m", "2n"],
            ["spurious ones", "none", "3m, infinite or zero", "2m, violate Phi_q v = 0"],
            ["accuracy", "exact", "exact, rounding of QZ", "1/alpha"],
            ["off by (linkage, pendulum) [1/s]", "-", off("RCS"), off("UCS")],
            ["explicit integration", "yes", "after a reduction", "yes, stiff"],
            ["needs", "R, independent velocities", "multipliers", "multipliers, alpha, xi, omega"],
            ["singular configuration", "with another R", "yes", "yes"],
            ["time, linkage and pendulum", "1", ratio("RCS"), ratio("UCS")],
        ],
    )


def times(row: Row) -> list[str]:
    """Return the seconds of MCS and the others' as ratios."""
    base = row.seconds["MCS"]
    return [f"{1e3 * base:.1f} ms", *(f"{row.seconds[name] / base:.1f}" for name in ("RCS", "UCS"))]


def differences(row: Row, count: int) -> list[str]:
    """Return how far the first eigenvalues of RCS and UCS are from those of MCS."""
    return [f"{row.difference(name, count):.1e}" for name in ("RCS", "UCS")]


def pair(s: complex, digits: int = 10) -> str:
    """Return a complex pair as text, without a real part that is rounding."""
    imaginary = f"{abs(s.imag):.{digits}g} i"
    return f"±{imaginary}" if abs(s.real) < 1e-12 * abs(s) else f"{s.real:.{digits}g} ± {imaginary}"


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    widths = [max(len(c), *(len(row[i]) for row in rows)) for i, c in enumerate(columns)]
    lines = [columns, ["-" * w for w in widths], *rows]
    print(f"\n{title}\n")
    for line in lines:
        print("| " + " | ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)) + " |")


if __name__ == "__main__":
    main()
