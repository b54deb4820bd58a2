"""The pictures of this example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fmilin.formulations import UCS, ConstrainedForm, basis_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from run import Row

COLORS = {"MCS": "#0072b2", "RCS": "#d55e00", "UCS": "#009e73"}
MARKS = {"MCS": "o", "RCS": "s", "UCS": "^"}
QUIET = "#5f6368"


def draw_times(path: Path, linkage: Sequence[Row], pendulum: Sequence[Row]) -> None:
    """Draw times relative to MCS over the size, and the deviations from MCS."""
    figure = _figure((10.5, 6.8))
    axes = figure.subplots(2, 2, sharey="row")
    for column, (rows, what, count) in enumerate(
        ((linkage, "four-bar linkage: loops N", 1), (pendulum, "flexible pendulum: elements $n_p$", 4))
    ):
        sizes = [row.size for row in rows]
        above, below = axes[0, column], axes[1, column]
        for name, color in COLORS.items():
            ratios = [r.seconds[name] / r.seconds["MCS"] for r in rows]
            above.loglog(sizes, ratios, color=color, marker=MARKS[name], label=name)
        for name in ("RCS", "UCS"):
            off = [max(r.difference(name, count), 1e-17) for r in rows]
            below.loglog(sizes, off, color=COLORS[name], marker=MARKS[name])
        degrees = "n − m = 1" if column == 0 else "n − m = 6$n_p$ + 2"
        above.set_title(f"Time of all eigenvalues over that of MCS, {degrees}", fontsize=10.5, loc="left")
        first = "eigenvalue" if count == 1 else f"first {count} eigenvalues"
        below.set_title(f"Deviation of the {first} from MCS", fontsize=10.5, loc="left")
        for axis in (above, below):
            axis.set_xticks(sizes, [f"{s}" for s in sizes])
            axis.minorticks_off()
            axis.grid(color="#e6e6e6")
        below.set_xlabel(what)
    axes[0, 0].set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    axes[1, 0].set_ylabel("1/s")
    axes[0, 0].legend(frameon=False, fontsize=9.5)
    figure.savefig(path, dpi=130, metadata={"Software": ""})


def draw_spectra(path: Path, linkage: Row, pendulum: Row) -> None:
    """Draw the finite eigenvalues of both systems in the complex plane, labelled."""
    figure = _figure((10.5, 5.6))
    axes = figure.subplots(2, 3, sharey="row")
    for line, (row, title) in enumerate(
        ((linkage, "four-bar linkage, N = 1"), (pendulum, f"flexible pendulum, $n_p$ = {pendulum.size}"))
    ):
        for axis, (name, found) in zip(axes[line], row.spectra.items(), strict=True):
            true, spurious = found.true, found.spurious
            finite = spurious[np.abs(spurious) < 1e6]
            for place in (axis, _close_up(axis, finite)) if len(finite) else (axis,):
                place.plot(finite.real, finite.imag, "x", color="#d55e00", ms=6, label="spurious")
                place.plot(true.real, true.imag, "o", color="#0072b2", mfc="none", ms=7, label="true")
            beyond = len(spurious) - len(finite)
            what = f"{beyond} infinite" if beyond else f"{len(finite)} spurious"
            axis.set_title(f"{name}: {len(true)} true, {what}", fontsize=10, loc="left")
            axis.set_xlim(-14, 3)
            axis.set_xticks([-10, -5, 0])
            if line:
                axis.set_yscale("symlog", linthresh=1.0)
                axis.set_ylim(-2e3, 2e3)
                axis.set_xlabel("real part [1/s]")
            axis.grid(color="#e6e6e6")
            axis.axvline(0, color=QUIET, lw=0.8)
        axes[line, 0].set_ylabel(f"{title}\nimaginary part [1/s]", fontsize=9.5)
    axes[0, 2].legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(path, dpi=130, metadata={"Software": ""})


def _close_up(axis: Axes, values: np.ndarray) -> Axes:
    """Return a panel inside ``axis`` around some eigenvalues."""
    inside = axis.inset_axes((0.33, 0.1, 0.42, 0.3))
    middle = float(np.mean(values.real))
    reach = 1.4 * max(float(np.ptp(values.real)), float(np.ptp(values.imag))) / 2
    inside.set_xlim(middle - reach, middle + reach)
    inside.set_ylim(-reach, reach)
    inside.set_xticks([])
    inside.set_yticks([])
    inside.set_title(f"within {reach:.2g} of {middle:.3g}", fontsize=8, loc="left", color=QUIET, pad=2)
    return inside


def draw_sparsity(path: Path, form: ConstrainedForm, penalty: UCS) -> None:
    """Draw what of M_r, M_q and M_p is not zero, and of their Cholesky factors (figure 5 of the paper)."""
    R = basis_of(form.Phi_q, names=form.names).R
    orthonormal = basis_of(form.Phi_q, "svd").R
    matrices = {
        "$M_r$, coordinates": R.T @ form.M @ R,
        "$M_r$, SVD": orthonormal.T @ form.M @ orthonormal,
        "$M_q$ = M": form.M,
        "$M_p$ = M + α Φ'Φ": form.M + penalty.alpha * form.Phi_q.T @ form.Phi_q,
    }
    figure = _figure((10.5, 5.8))
    axes = figure.subplots(2, len(matrices))
    for (above, below), (name, M) in zip(axes.T, matrices.items(), strict=True):
        size = np.sqrt(np.abs(np.diagonal(M)))
        there = np.abs(M) > 1e-12 * np.outer(size, size)
        _spy(above, there, f"{name}, {len(M)} × {len(M)}")
        _spy(below, _factor(there), "Cholesky factor")
    figure.savefig(path, dpi=130, metadata={"Software": ""})


def _factor(there: np.ndarray) -> np.ndarray:
    """Return where a Cholesky factor fills in: from the structure alone, since M itself is only semidefinite here.

    The frame of each link and its nodes can move against each other without moving any mass.
    """
    L = np.tril(there)
    for k in range(len(L)):
        below = np.flatnonzero(L[k + 1 :, k]) + k + 1
        L[np.ix_(below, below)] |= np.tril(np.ones((len(below), len(below)), dtype=bool))
    return L


def _spy(axis: Axes, there: np.ndarray, title: str) -> None:
    axis.spy(there, markersize=2.4, color="#0072b2")
    axis.set_title(f"{title}: {np.count_nonzero(there)}", fontsize=9.5)
    axis.set_xticks([])
    axis.set_yticks([])


def _figure(size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure
