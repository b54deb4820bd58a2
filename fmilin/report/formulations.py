"""Spectra of constrained coordinates: labelled, side by side, a few of many, and the mass matrices behind them.

Their nonzero entries are shown as in figure 5 of González et al.: M_r couples everything, M keeps the bodies apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from fmilin.errors import UsageError, cut_list
from fmilin.formulations.formulation import ComplexArray, Spectrum
from fmilin.formulations.sparse.elimination import sparse_null_space
from fmilin.report import facts
from fmilin.report import table as tables
from fmilin.report.figures import COLORS, QUIET, create_headed_figure
from fmilin.report.numbers import eigenvalue_text, rough
from fmilin.support.tables import ResultTable, build_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmilin.diagnostics import Remark
    from fmilin.formulations.form import ConstrainedForm
    from fmilin.support.table_repr import Sheet

MAX_ROWS = 40  # rows shown of a table; the rest is counted
MAX_NAMES = 8
_NAMES = {"mcs": "MCS", "rcs": "RCS", "ucs": "UCS"}


def show_spectrum(spectrum: Spectrum, page: Sheet) -> None:
    """Print the results of a formulation besides the linear model: sizes, and the spurious eigenvalues."""
    page.print()
    facts.print_facts(page, _facts(spectrum))
    if len(_finite_spurious(spectrum)):
        page.print()
        at = np.flatnonzero(~spectrum.is_true & np.isfinite(spectrum.eigenvalues))
        at = at[spectrum.eigenvalues[at].imag >= 0]
        rows = []
        for s, violation in zip(spectrum.eigenvalues[at].tolist(), spectrum.violations[at].tolist(), strict=True):
            text = rough(violation) if np.isfinite(violation) else "moves only multipliers"
            rows.append((eigenvalue_text(s, pair=s.imag > 0), text))
        heads = ("Spurious eigenvalue [1/s]", "Violation of the constraints")
        page.print(build_table(heads, rows, columns="Rr", most=MAX_ROWS))


def show_comparison(spectra: Sequence[Spectrum], page: Sheet) -> None:
    """Print several spectra of one point side by side; deviations are from the first one."""
    first = spectra[0]
    if first.linear is not None:
        linear = first.linear
        point = [f"{s.name} = {v:.8g}" for s, v in zip(linear.states, linear.y0, strict=True)]
        facts.print_fact(page, "Model", [linear.model.name, tables.order_text(linear)])
        facts.print_fact(page, "Point", [f"t = {linear.point.time:.8g} s", *cut_list(point, MAX_NAMES)])
    sizes = first.sizes
    independent = "" if sizes["rank"] == sizes["m"] else f", {sizes['rank']} of them independent"
    facts.print_fact(page, "Size", [f"n = {sizes['n']} coordinates", f"m = {sizes['m']} constraints{independent}"])
    for spectrum in spectra:
        facts.print_fact(page, _NAMES[spectrum.formulation], [spectrum.method])
    page.print()
    page.print(_sizes_table(spectra))
    page.print()
    page.print(_comparison_table(spectra))
    page.print()
    distinct: dict[str, tuple[Spectrum, Remark]] = {}
    for spectrum in spectra:
        for remark in spectrum.remarks:
            distinct.setdefault(str(remark), (spectrum, remark))
    for text, (spectrum, remark) in distinct.items():
        facts.print_fact(page, remark.heading if remark.kind in _COMMON else _NAMES[spectrum.formulation], text)
    if not distinct:
        page.print("No warnings.")


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


def _sizes_table(spectra: Sequence[Spectrum]) -> ResultTable:
    rows = []
    for s in spectra:
        infinite = len(s.spurious) - len(_finite_spurious(s))
        spurious = f"{len(s.spurious)}" + (" (infinite)" if infinite and infinite == len(s.spurious) else "")
        least = s.violations[~s.is_true & np.isfinite(s.violations)]
        violation, rounding = (_largest(v[s.is_true]) if len(s.true) else "" for v in (s.violations, s.errors))
        of_spurious = rough(float(np.min(least))) if len(least) else ""
        counts = str(s.sizes["order"]), str(len(s.true)), spurious
        rows.append((_NAMES[s.formulation], *counts, violation, of_spurious, rounding))
    heads = ("", "Order", "True", "Spurious", "Violation, true", "Violation, spurious", "Rounding [1/s]")
    return build_table(heads, rows)


def _comparison_table(spectra: Sequence[Spectrum]) -> ResultTable:
    """One row per real eigenvalue or pair of the first spectrum; how far the others' nearest ones are."""
    first, other_spectra = spectra[0], spectra[1:]
    heads = [f"{_NAMES[other.formulation]} differs by" for other in other_spectra]
    first_head = f"True eigenvalue, {_NAMES[first.formulation]} [1/s]"
    values = first.true[first.true.imag >= 0]
    rows = []
    for s in values[:MAX_ROWS]:
        differences = [rough(float(np.abs(other.nearest(np.array([s]))[0] - s))) for other in other_spectra]
        rows.append((eigenvalue_text(complex(s), pair=bool(s.imag > 0)), *differences))
    table = build_table((first_head, *heads), rows, columns="R" + "r" * len(other_spectra))
    if len(values) <= MAX_ROWS:
        return table
    worst = (float(np.max(np.abs(other.nearest(values[MAX_ROWS:]) - values[MAX_ROWS:]))) for other in other_spectra)
    largest = tuple(f"{rough(value)} at most" for value in worst)
    return replace(table, omitted=len(values) - MAX_ROWS, omitted_cells=largest)


def show_nearest(name: str, spectrum: Spectrum, page: Sheet) -> None:
    """Print one row for each real eigenvalue or pair, with its label and what rounding may do to it."""
    sizes = spectrum.sizes
    rows = []
    for i in np.flatnonzero(spectrum.eigenvalues.imag >= 0):
        s, size = complex(spectrum.eigenvalues[i]), abs(spectrum.eigenvalues[i])
        damping = f"{0.0 - s.real / size:.3g}" if size > 0 else ""
        rounding = rough(float(spectrum.errors[i])) if np.isfinite(spectrum.errors[i]) else ""
        rows.append((eigenvalue_text(s, pair=s.imag > 0), f"{size:.8g}", damping, rounding, spectrum.labels[i]))
    facts.print_fact(page, "Model", [name])
    facts.print_fact(page, "Size", [f"n = {sizes['n']:,} coordinates", f"m = {sizes['m']:,} constraints"])
    facts.print_fact(page, "Formulation", [spectrum.formulation.upper(), spectrum.method, f"order {sizes['order']:,}"])
    page.print()
    page.print(build_table(("Eigenvalue [1/s]", "[rad/s]", "Damping ratio", "Rounding", ""), rows))
    page.print()
    facts.print_remarks(page, spectrum.remarks)
    if not spectrum.remarks:
        page.print("No warnings.")


MAX_COORDINATES = 3000  # coordinates beyond which a picture of single entries shows nothing


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

    Taken from a matrix with the entries of M, -1 next to a dominant diagonal: nothing cancels in its factors.
    """
    entries = sparse.csc_array(M).astype(bool)
    both = (entries + entries.T).astype(np.float64)
    size = both.shape[0]
    dominant = sparse.csc_array(sparse.diags_array(np.full(size, size + 1.0)) - both)
    factors = splu(dominant, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    rows, columns = factors.L.nonzero()
    return rows.astype(np.intp), columns.astype(np.intp)


def sparsity_figure(form: ConstrainedForm, *, title: str) -> Figure:
    """Return three mass matrices above, their Cholesky factors below."""
    if form.n > MAX_COORDINATES:
        raise UsageError(
            f"A picture of {form.n} x {form.n} entries would be a black square: draw it for a smaller system of the "
            f"same kind, with at most {MAX_COORDINATES} coordinates."
        )
    subtitle = f"n = {form.n} coordinates, m = {form.m} constraints. Above the matrices, below their Cholesky factors."
    figure = create_headed_figure(title, subtitle, 10.0, 7.0, (0.955, 0.905))
    figure.subplots_adjust(left=0.05, right=0.985, bottom=0.05, top=0.82, wspace=0.16, hspace=0.32)
    for (above, below), (name, M) in zip(figure.subplots(2, 3).T, mass_matrices(form).items(), strict=True):
        _spy(above, M.nonzero(), M.shape[0], name)
        _spy(below, factor_structure(M), M.shape[0], "Cholesky factor")
    return figure


def _spy(axes: Axes, entries: tuple[NDArray[Any], NDArray[Any]], size: int, name: str) -> None:
    rows, columns = entries
    axes.plot(columns, rows, "s", ms=max(0.4, 150.0 / max(size, 1)), color=COLORS[0], mec="none")
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    axes.tick_params(labelsize=8, color=QUIET, labelcolor=QUIET)
    axes.set_title(f"{name}: {size} × {size}, {len(rows):,} entries", fontsize=9.5, loc="left")
