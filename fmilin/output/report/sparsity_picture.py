"""What of the mass matrices is not zero in the three formulations, and what a Cholesky factor fills in.

Figure 5 of González et al.: M_r of minimal coordinates couples everything, M of redundant ones keeps the bodies
apart, and the penalty adds what the constraints couple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fmilin.ground.errors import UsageError
from fmilin.native.formulations.sparse.elimination import sparse_null_space
from fmilin.output.report.figures import new_figure, rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fmilin.native.formulations.form import ConstrainedForm

__all__ = ["factor_structure", "mass_matrices", "sparsity_picture"]

LARGEST = 3000
"""Coordinates beyond which a picture of single entries shows nothing."""

ENTRY, QUIET = "#0b5394", "#5f6368"


def mass_matrices(form: ConstrainedForm, alpha: float = 1e6) -> dict[str, Any]:
    """Return M_r = R' M R, M_q = M and M_p = M + alpha Phi_q' Phi_q as sparse arrays, by their names.

    ``form``: R comes from elimination: columns for independent coordinates. ``alpha``: the penalty, positive; its size
    does not matter for what is zero.
    """
    M, Phi_q = sparse.csc_array(form.M), sparse.csr_array(form.Phi_q)
    R = sparse_null_space(Phi_q).R
    return {
        "$M_r = R^T M R$": (R.T @ M @ R).tocsc(),
        "$M_q = M$": M,
        r"$M_p = M + \alpha\,\Phi_q^T \Phi_q$": (M + alpha * (Phi_q.T @ Phi_q)).tocsc(),
    }


def factor_structure(M: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the entries of a Cholesky factor of ``M`` in its given order, diagonal included.

    From the structure alone: column j fills in below the diagonal what M has there, and what the columns have whose
    first entry below their own diagonal is in row j (the elimination tree).

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
    found: list[tuple[int, int]] = []
    for j in range(n):
        below[j].discard(j)
        found += [(j, j), *((i, j) for i in below[j])]
        if below[j]:
            below[min(below[j])] |= below[j]
    places = np.array(found, dtype=np.intp).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def sparsity_picture(form: ConstrainedForm, *, title: str, suffix: str = ".png") -> bytes:
    """Return a picture: three mass matrices above, their Cholesky factors below."""
    if form.n > LARGEST:
        raise UsageError(
            f"A picture of {form.n} x {form.n} entries shows nothing but a black square: draw it for a smaller system "
            f"of the same kind, of at most {LARGEST} coordinates."
        )
    figure = new_figure(10.0, 7.0)
    figure.subplots_adjust(left=0.05, right=0.985, bottom=0.05, top=0.82, wspace=0.16, hspace=0.32)
    figure.text(0.02, 0.955, title, fontsize=15, fontweight="bold", va="center")
    said = f"n = {form.n} coordinates, m = {form.m} constraints. Above the matrices, below their Cholesky factors."
    figure.text(0.02, 0.905, said, fontsize=10.5, color=QUIET, va="center")
    for (above, below), (name, M) in zip(figure.subplots(2, 3).T, mass_matrices(form).items(), strict=True):
        _spy(above, M.nonzero(), M.shape[0], name)
        _spy(below, factor_structure(M), M.shape[0], "Cholesky factor")
    return rendered(figure, suffix)


def _spy(axes: Axes, places: tuple[NDArray[Any], NDArray[Any]], size: int, name: str) -> None:
    rows, columns = places
    axes.plot(columns, rows, "s", ms=max(0.4, 150.0 / max(size, 1)), color=ENTRY, mec="none")
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=8, color=QUIET, labelcolor=QUIET)
    axes.set_title(f"{name}: {size} × {size}, {len(rows):,} entries", fontsize=9.5, loc="left")
