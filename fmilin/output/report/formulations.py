"""Spectra of constrained coordinates for people: labelled, side by side, a few of many, and the matrices behind them.

What of the mass matrices is not zero is figure 5 of González et al.: M_r of minimal coordinates couples everything, M
of redundant ones keeps the bodies apart, and the penalty adds what the constraints couple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fmilin.ground.errors import UsageError
from fmilin.native.formulations.formulation import ComplexArray, Spectrum
from fmilin.native.formulations.sparse.elimination import sparse_null_space
from fmilin.output.report.figures import COLORS, QUIET, headed_figure, rendered
from fmilin.output.report.numbers import eigenvalue_text, rough
from fmilin.output.report.table import console_on, order_text, print_fact, print_facts, simple_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

    from fmilin.native.formulations.form import ConstrainedForm


MOST = 40  # rows shown of a table; the rest is counted

MOST_NAMES = 8

_NAMES = {"mcs": "MCS", "rcs": "RCS", "ucs": "UCS"}


def print_spectrum(spectrum: Spectrum, stream: TextIO) -> None:
    """Print what a formulation found beside the linear model: sizes, and the spurious eigenvalues."""
    with console_on(stream) as console:
        console.print()
        print_facts(console, _facts(spectrum))
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
            print_fact(console, "Model", [linear.model.name, order_text(linear)])
            print_fact(console, "Point", [f"t = {linear.point.time:.8g} s", *point[:MOST_NAMES], *more])
        sizes = first.sizes
        independent = "" if sizes["rank"] == sizes["m"] else f", {sizes['rank']} of them independent"
        print_fact(console, "Size", [f"n = {sizes['n']} coordinates", f"m = {sizes['m']} constraints{independent}"])
        for spectrum in spectra:
            print_fact(console, _NAMES[spectrum.formulation], [spectrum.method])
        console.print()
        console.print(_sizes_table(spectra))
        console.print()
        console.print(_comparison_table(spectra))
        console.print()
        printed: set[str] = set()
        for spectrum in spectra:
            for remark in spectrum.remarks:
                if str(remark) not in printed:
                    printed.add(str(remark))
                    label = _NAMES[spectrum.formulation] if remark.kind not in _COMMON else remark.heading
                    print_fact(console, label, str(remark))
        if not printed:
            console.print("No warnings.")


_COMMON = ("off-equilibrium", "singular")


def _facts(spectrum: Spectrum) -> Iterator[tuple[str, list[str]]]:
    sizes = spectrum.sizes
    yield "Formulation", [_NAMES[spectrum.formulation], spectrum.method]
    yield "", [f"n = {sizes['n']} coordinates", f"m = {sizes['m']} constraints", f"{sizes['rank']} independent"]
    yield "Eigenvalues", [f"{len(spectrum.true)} true", _spurious_text(spectrum)]
    if len(spectrum.true):
        violation, rounding = (_largest(values[spectrum.is_true]) for values in (spectrum.violations, spectrum.errors))
        yield "", [f"true ones violate the constraints by {violation}", f"rounding may change them by {rounding} 1/s"]


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
    finite = values[np.isfinite(values)]
    return rough(float(np.max(finite))) if len(finite) else "an unknown amount"


def _finite_spurious(spectrum: Spectrum) -> ComplexArray:
    """Return the spurious eigenvalues that are finite; with RCS huge ones are infinite but for rounding."""
    values = spectrum.spurious
    largest = 1e6 * float(np.max(np.abs(spectrum.true), initial=1.0)) if spectrum.formulation == "rcs" else np.inf
    finite: ComplexArray = values[np.abs(values) < largest]
    return finite


def _spurious_table(spectrum: Spectrum) -> Table:
    table = simple_table("Spurious eigenvalue [1/s]", "Violation of the constraints", columns="Rr")
    at = np.flatnonzero(~spectrum.is_true & np.isfinite(spectrum.eigenvalues))
    at = at[spectrum.eigenvalues[at].imag >= 0]
    for i in at[:MOST]:
        s = complex(spectrum.eigenvalues[i])
        violation = spectrum.violations[i]
        text = rough(float(violation)) if np.isfinite(violation) else "moves only multipliers"
        table.add_row(eigenvalue_text(s, pair=s.imag > 0), text)
    if len(at) > MOST:
        table.add_row(f"and {len(at) - MOST} more", "")
    return table


def _sizes_table(spectra: Sequence[Spectrum]) -> Table:
    table = simple_table("", "Order", "True", "Spurious", "Violation, true", "Violation, spurious", "Rounding [1/s]")
    for s in spectra:
        infinite = len(s.spurious) - len(_finite_spurious(s))
        spurious = f"{len(s.spurious)}" + (" (infinite)" if infinite and infinite == len(s.spurious) else "")
        least = s.violations[~s.is_true & np.isfinite(s.violations)]
        violation, rounding = (_largest(v[s.is_true]) if len(s.true) else "" for v in (s.violations, s.errors))
        of_spurious = rough(float(np.min(least))) if len(least) else ""
        counts = str(s.sizes["order"]), str(len(s.true)), spurious
        table.add_row(_NAMES[s.formulation], *counts, violation, of_spurious, rounding)
    return table


def _comparison_table(spectra: Sequence[Spectrum]) -> Table:
    """One row per real eigenvalue or pair of the first spectrum; how far the others' nearest ones are."""
    first, others = spectra[0], spectra[1:]
    heads = [f"{_NAMES[other.formulation]} differs by" for other in others]
    first_head = f"True eigenvalue, {_NAMES[first.formulation]} [1/s]"
    table = simple_table(first_head, *heads, columns="R" + "r" * len(others))
    values = first.true[first.true.imag >= 0]
    for s in values[:MOST]:
        differences = [rough(float(np.abs(other.nearest(np.array([s]))[0] - s))) for other in others]
        table.add_row(eigenvalue_text(complex(s), pair=bool(s.imag > 0)), *differences)
    if len(values) > MOST:
        worst = (float(np.max(np.abs(other.nearest(values[MOST:]) - values[MOST:]))) for other in others)
        table.add_row(f"and {len(values) - MOST} more", *(f"{rough(value)} at most" for value in worst))
    return table


def print_nearest(name: str, spectrum: Spectrum, stream: TextIO) -> None:
    """Print one row for each real eigenvalue or pair, with its label and what rounding may do to it."""
    sizes = spectrum.sizes
    table = simple_table("Eigenvalue [1/s]", "[rad/s]", "Damping ratio", "Rounding", "")
    for i in np.flatnonzero(spectrum.eigenvalues.imag >= 0):
        s, size = complex(spectrum.eigenvalues[i]), abs(spectrum.eigenvalues[i])
        table.add_row(
            eigenvalue_text(s, pair=s.imag > 0),
            f"{size:.8g}",
            f"{0.0 - s.real / size:.3g}" if size > 0 else "",
            rough(float(spectrum.errors[i])) if np.isfinite(spectrum.errors[i]) else "",
            spectrum.labels[i],
        )
    with console_on(stream) as console:
        print_fact(console, "Model", [name])
        print_fact(console, "Size", [f"n = {sizes['n']:,} coordinates", f"m = {sizes['m']:,} constraints"])
        order = f"order {sizes['order']:,}"
        print_fact(console, "Formulation", [spectrum.formulation.upper(), spectrum.method, order])
        console.print()
        console.print(table)
        console.print()
        for remark in spectrum.remarks:
            print_fact(console, remark.heading, str(remark))
        if not spectrum.remarks:
            console.print("No warnings.")


LARGEST = 3000  # coordinates beyond which a picture of single entries shows nothing


def mass_matrices(form: ConstrainedForm, alpha: float = 1e6) -> dict[str, Any]:
    """Return M_r = R' M R (R by elimination), M_q = M and M_p = M + alpha Phi_q' Phi_q as sparse arrays, by name."""
    M, Phi_q = sparse.csc_array(form.M), sparse.csr_array(form.Phi_q)
    R = sparse_null_space(Phi_q).R
    return {
        "$M_r = R^T M R$": (R.T @ M @ R).tocsc(),
        "$M_q = M$": M,
        r"$M_p = M + \alpha\,\Phi_q^T \Phi_q$": (M + alpha * (Phi_q.T @ Phi_q)).tocsc(),
    }


def factor_structure(M: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the entries of a Cholesky factor of ``M`` in its given order, diagonal included.

    The elimination tree: column j fills in what M has there, and what the columns have whose first entry below their
    own diagonal is in row j.

    >>> arrow = sparse.csc_array([[4.0, 1, 1], [1, 4, 0], [1, 0, 4]])
    >>> len(factor_structure(arrow)[0])
    6
    """
    M = sparse.csc_array(M)
    n = M.shape[0]
    below: list[set[int]] = [set() for _ in range(n)]
    rows, columns = M.nonzero()
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        below[min(i, j)].add(max(i, j))
    entries: list[tuple[int, int]] = []
    for j in range(n):
        below[j].discard(j)
        entries += [(j, j), *((i, j) for i in below[j])]
        if below[j]:
            below[min(below[j])] |= below[j]
    positions = np.array(entries, dtype=np.intp).reshape(-1, 2)
    return positions[:, 0], positions[:, 1]


def sparsity_picture(form: ConstrainedForm, *, title: str, suffix: str = ".png") -> bytes:
    """Return a picture: three mass matrices above, their Cholesky factors below."""
    if form.n > LARGEST:
        raise UsageError(
            f"A picture of {form.n} x {form.n} entries shows nothing but a black square: draw it for a smaller system "
            f"of the same kind, of at most {LARGEST} coordinates."
        )
    subtitle = f"n = {form.n} coordinates, m = {form.m} constraints. Above the matrices, below their Cholesky factors."
    figure = headed_figure(title, subtitle, 10.0, 7.0, (0.955, 0.905))
    figure.subplots_adjust(left=0.05, right=0.985, bottom=0.05, top=0.82, wspace=0.16, hspace=0.32)
    for (above, below), (name, M) in zip(figure.subplots(2, 3).T, mass_matrices(form).items(), strict=True):
        _spy(above, M.nonzero(), M.shape[0], name)
        _spy(below, factor_structure(M), M.shape[0], "Cholesky factor")
    return rendered(figure, suffix)


def _spy(axes: Axes, entries: tuple[NDArray[Any], NDArray[Any]], size: int, name: str) -> None:
    rows, columns = entries
    axes.plot(columns, rows, "s", ms=max(0.4, 150.0 / max(size, 1)), color=COLORS[0], mec="none")
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=8, color=QUIET, labelcolor=QUIET)
    axes.set_title(f"{name}: {size} × {size}, {len(rows):,} entries", fontsize=9.5, loc="left")
