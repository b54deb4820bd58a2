"""Ordinary differential equations with algebraic variables, or with a singular mass matrix, as DAEs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import sympy

from fmilin.ground.errors import FmilinError, UsageError
from fmilin.ground.tolerances import RANK
from fmilin.model.constraints.expressions import parse
from fmilin.native.dae.model import DaeModel
from fmilin.native.declaration import der

Written = Any  # text, sympy.Expr or a number


def as_dae(name: str, equations: Mapping[Any, Written], given: Mapping[str, Any]) -> DaeModel | None:
    """Return the model of E x' = F, 0 = g with what else was given to an OdeModel; None where E alone is regular.

    Raises
    ------
    UsageError
        When constraints are given, too.
    """
    algebraic, mass_matrix = given.get("algebraic") or {}, given.get("mass_matrix")
    if not algebraic and (mass_matrix is None or not _is_singular(equations, mass_matrix, given)):
        return None
    if given.get("constraints"):
        raise UsageError(
            f"The constraints of '{name}' are equations of its own where there are algebraic variables: write all of "
            "them with fmilin.models.DaeModel, which finds what is a constraint."
        )
    rates = [der(state) for state in equations]
    if mass_matrix is None:
        rows = [rate - _read(f) for rate, f in zip(rates, equations.values(), strict=True)]
    else:
        rows = [-_read(f) for f in equations.values()]
        for (i, j), e in _entries(mass_matrix).items():
            rows[i] += e * rates[j]
    kept = {key: value for key, value in given.items() if key not in ("algebraic", "mass_matrix", "constraints")}
    residuals = [_read(g) for g in algebraic.values()]
    return DaeModel(name, [*rows, *residuals], states=list(equations), algebraic=list(algebraic), **kept)


def _read(source: Written) -> Any:
    if not isinstance(source, str):
        return sympy.sympify(source)
    expression = parse(source)
    return expression.to_sympy({n: sympy.Symbol(n, real=True) for n in expression.names})


def _entries(source: Any) -> dict[tuple[int, int], Any]:
    """Return the entries that are not zero."""
    if isinstance(source, Mapping):
        return {position: _read(entry) for position, entry in source.items() if entry != 0}
    return {(i, j): _read(e) for i, row in enumerate(_rows(source)) for j, e in enumerate(row) if e != 0}


def _rows(source: Any) -> list[list[Any]]:
    return [list(row) for row in (source.tolist() if hasattr(source, "tolist") else source)]


def _is_singular(equations: Mapping[Any, Written], mass_matrix: Any, given: Mapping[str, Any]) -> bool:
    """Whether E is singular at the start; what cannot be read is for the OdeModel to refuse."""
    values = {str(k): 0.0 for k in [*equations, *given.get("inputs", ()), "time"]}
    values |= {str(k): v for part in ("start", "parameters") for k, v in (given.get(part) or {}).items()}
    E = np.zeros((len(equations), len(equations)))
    rows = [] if isinstance(mass_matrix, Mapping) else _rows(mass_matrix)
    if rows and {len(rows), *map(len, rows)} != {len(E)}:
        return False
    with suppress(FmilinError, KeyError, IndexError, TypeError, ValueError, sympy.SympifyError):
        for position, e in _entries(mass_matrix).items():
            E[position] = float(e.xreplace({s: sympy.Float(values[str(s)]) for s in e.free_symbols}))
        sizes = np.abs(E).max(axis=1, initial=0.0)
        return bool((sizes == 0).any() or np.linalg.matrix_rank(E / sizes[:, None], tol=RANK) < len(E))
    return False
