"""Models in first-order form: x' = f(t, x, u), or E(t, x) x' = F(t, x, u), with what their motion keeps.

An explicit system with invariants is Spencer's (2.6) and (2.7); Kane's equations (f_0 + f_1, f_2 + f_3, f_a) = 0
of Peterson et al. are of the second form. With algebraic variables, or a singular E, they are DAEs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import sympy

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import parse
from fmilin.errors import FmilinError, UsageError
from fmilin.models.declaration import (
    Declaration,
    Entries,
    ExplicitEquations,
    ModelArguments,
    Symbol,
    SymbolicConstraint,
    assemble_system,
    build_named_constraint,
    der,
    differentiate_in_time,
    vanishes,
)
from fmilin.models.delayed_equations import build_delayed_model, has_delay
from fmilin.models.labels import Expr, Labels, Name
from fmilin.models.symbolic import SymbolicModel
from fmilin.support.kinds import containers_checked, require_containers
from fmilin.tolerances import COEFFICIENT_ROUNDING_FACTOR, EPS, RANK

if TYPE_CHECKING:
    from sympy import Matrix

    from fmilin.model.interface import Model
    from fmilin.models.dae.dae_model import DaeModel


class OdeModel(SymbolicModel):
    """x' = f(t, x, u, p), or E(t, x, u, p) x' = F(t, x, u, p), with constraints g(t, x, p) = 0.

    With algebraic variables, or with a mass matrix that is singular at the start, it is a
    :class:`fmilin.models.DaeModel` of the same equations. With ``delay(x, T)`` in texts, T of numbers and parameters,
    it is a :class:`fmilin.models.DelayedModel`.

    Expressions are sympy expressions, numbers, or text in the grammar of :mod:`fmilin.constraints.expressions`;
    names are symbols or text. The symbol named ``time`` is time. Outputs and constraints may contain derivatives of
    states, written ``der(x)`` (:func:`fmilin.models.der` makes the symbol). Raises UsageError when something is missing
    or does not fit; the message lists everything.

    Parameters
    ----------
    name : str
    equations : mapping
        One entry per state, in the order of the states: the state, and its right-hand side f (or, with a
        mass matrix, the right-hand side F of the row in the same place).
    inputs : sequence
    parameters, outputs, start : mapping
        Values, expressions, and start values of states and inputs by symbol or name; these are 0 where not given.
    constraints : sequence
        Expressions (position level), :class:`SymbolicConstraint` or :class:`fmilin.Constraint`. The hidden
        constraint L_f g = g_t + g_x f of a position-level one is added when the rows of f that it needs
        are explicit; otherwise the linearizer finds it.
    mass_matrix : matrix, optional
        E, as sympy matrix or nested lists, one column per state; the identity when left out. Rows that fix one
        derivative by a number stay explicit, the others form the linear system that is solved at each point.
    algebraic : mapping
        Variables without a derivative, and for each a residual that is zero: ``{"q": "h1 - h2 - r*q^3"}``. Newton's
        iteration for them begins at ``start``.
    labels : Labels

    Examples
    --------
    >>> tank = OdeModel("tank", {"h": "(q - k*sqrt(h))/A"}, inputs=["q"], parameters={"k": 0.1, "A": 2}, start={"h": 1})
    >>> tank.evaluate(0.0, tank.start.states, tank.start.inputs).derivatives
    array([-0.05])
    """

    def __new__(cls, name: str = "", equations: Mapping[Name, Expr] | None = None, **options: Any) -> Self:
        """Return a model of this class, a DaeModel with algebraic variables, or a DelayedModel with delays.

        Type checkers see this class only: of a method that may return another one, pyright takes the arguments
        to be unknown, and checks none of them.
        """
        require_containers(OdeModel.__init__, {"name": name, "equations": equations or {}, **options})
        written = {"equations": equations or {}, **{key: options.get(key) for key in ("outputs", "algebraic")}}
        if any(map(has_delay, (*written.values(), options.get("mass_matrix")))):
            return cast("Self", cls._build_with_delays(name, written, options))
        if not options.get("algebraic") and options.get("mass_matrix") is None:
            return super().__new__(cls)
        dae: Any = as_dae(name, equations or {}, options)
        return super().__new__(cls) if dae is None else cast("Self", dae)

    @classmethod
    def _build_with_delays(cls, name: str, written: Mapping[str, Any], options: Mapping[str, Any]) -> Model:
        if has_delay(options.get("mass_matrix")):
            raise UsageError(f"The mass matrix of '{name}' contains a delay: delays stand in equations and outputs.")
        return build_delayed_model(name, written, options, lambda arguments: cls(name, **arguments))

    @containers_checked
    def __init__(
        self,
        name: str,
        equations: Mapping[Name, Expr],
        *,
        inputs: Sequence[Name] = (),
        parameters: Mapping[Name, float] | None = None,
        outputs: Mapping[str, Expr] | None = None,
        constraints: Sequence[Expr | SymbolicConstraint | Constraint] = (),
        mass_matrix: Matrix | Sequence[Sequence[Expr]] | None = None,
        algebraic: Mapping[Name, Expr] | None = None,
        start: Mapping[Name, float] | None = None,
        labels: Labels | None = None,
    ) -> None:
        del algebraic  # there are none: see __new__
        if not isinstance(equations, Mapping):
            raise UsageError("'equations' must give each state its rate: {'x': 'v', 'v': '-x'}.")
        declaration = Declaration(name)
        arguments = ModelArguments(inputs, parameters or {}, outputs or {}, start or {}, labels or Labels())
        states = declaration.declare(equations, "a state")
        arguments.declare(declaration)
        F = [declaration.expression(f, f"the equation of '{s}'") for s, f in equations.items()]
        if mass_matrix is None:
            solved = ExplicitEquations(states, F)
        else:
            solved = _separate_explicit_rows(
                states, declaration.entries(mass_matrix, len(states), "the mass matrix"), F
            )
        declaration.derived |= solved.derived_names()
        driven = {declaration.symbols[str(u)] for u in inputs} | set(solved.unknowns)
        named = [c if isinstance(c, Constraint) else _with_rate(declaration, c, solved, driven) for c in constraints]
        super().__init__(assemble_system(declaration, solved, named, arguments))
        if mass_matrix is not None and not constraints:
            written: dict[str, Any] = {
                "inputs": inputs,
                "parameters": parameters or {},
                "outputs": outputs or {},
                "start": start or {},
            }
            written |= {"labels": labels or Labels(), "mass_matrix": mass_matrix}
            self.engine.as_written = AsWritten(name, equations, written)

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same model with other parameter values, a DaeModel where these make the mass matrix singular."""
        changed = super().with_parameters(values)
        written = changed.engine.as_written
        if not (values and isinstance(written, AsWritten)):
            return changed
        options = {**written.options, "parameters": changed.parameters}
        options["start"] = {signal.name: signal.start for signal in (*changed.states, *changed.engine.inputs)}
        dae = as_dae(written.name, written.equations, options)
        return changed if dae is None else cast("Self", dae.adopt_choice(changed))


@dataclass(frozen=True)
class AsWritten:
    """The arguments of an OdeModel with a mass matrix: with other parameters it may be a DAE."""

    name: str
    equations: Mapping[Name, Expr]
    options: Mapping[str, Any]


def _separate_explicit_rows(states: Sequence[Symbol], E: Entries, F: Sequence[Any]) -> ExplicitEquations:
    """Return E x' = F with the rows that hold one derivative times a number in explicit form, the others as W w = r."""
    n = len(states)
    entries: list[dict[int, Any]] = [{} for _ in range(n)]
    for (i, j), entry in sorted(E.items(), key=lambda item: item[0]):
        entries[i][j] = entry
    explicit: dict[int, Any] = {}
    implicit: list[int] = []
    for i, row in enumerate(entries):
        j = next(iter(row), -1)
        if len(row) == 1 and j not in explicit and row[j].is_number:
            explicit[j] = F[i] / row[j]
        else:
            implicit.append(i)
    columns = [j for j in range(n) if j not in explicit]
    index = {j: k for k, j in enumerate(columns)}
    W = {(k, index[j]): entry for k, i in enumerate(implicit) for j, entry in entries[i].items() if j in index}
    r = [sympy.Add(F[i], *(-E_ij * explicit[j] for j, E_ij in entries[i].items() if j in explicit)) for i in implicit]
    w = {j: der(states[j]) for j in columns}
    return ExplicitEquations(tuple(states), [explicit.get(j, w.get(j)) for j in range(n)], list(w.values()), W, r)


def _with_rate(
    declaration: Declaration, source: SymbolicConstraint | Expr, equations: ExplicitEquations, driven: set[Symbol]
) -> Constraint:
    """Return the constraint g with its hidden one where that can be written down without ``driven``: inputs and w."""
    constraint, g = declaration.constraint(source)
    if constraint.level != "position":
        return build_named_constraint(constraint, g, None)
    rate = differentiate_in_time(g, dict(zip(equations.states, equations.derivatives, strict=True)), declaration.time)
    return build_named_constraint(constraint, g, None if rate.free_symbols & driven or vanishes(rate) else rate)


Written = Any  # text, sympy.Expr or a number


def as_dae(name: str, equations: Mapping[Any, Written], options: Mapping[str, Any]) -> DaeModel | None:
    """Return the model of E x' = F, 0 = g with what else was given to an OdeModel; None where E alone is regular."""
    from fmilin.models.dae.dae_model import DaeModel

    algebraic, mass_matrix = options.get("algebraic") or {}, options.get("mass_matrix")
    if not algebraic and (mass_matrix is None or not _is_singular(equations, mass_matrix, options)):
        return None
    if options.get("constraints"):
        raise UsageError(
            f"The constraints of '{name}' are equations of the model if it has algebraic variables: write all of them "
            "with fmilin.models.DaeModel, which identifies the constraints."
        )
    rates = [der(state) for state in equations]
    if mass_matrix is None:
        rows = [rate - _read(f) for rate, f in zip(rates, equations.values(), strict=True)]
    else:
        rows = [-_read(f) for f in equations.values()]
        for (i, j), e in _entries(mass_matrix).items():
            rows[i] += e * rates[j]
    ode_options = {
        key: value for key, value in options.items() if key not in ("algebraic", "mass_matrix", "constraints")
    }
    residuals = [_read(g) for g in algebraic.values()]
    return DaeModel(name, [*rows, *residuals], states=list(equations), algebraic=list(algebraic), **ode_options)


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


def _value_without_rounding(entry: Any, values: Mapping[str, float]) -> float:
    """Return the value of an entry of E; 0 where it is rounding of its terms, or a number that may be what is left."""
    numbers = {s: sympy.Float(values[str(s)]) for s in entry.free_symbols}
    value = float(entry.xreplace(numbers))
    if abs(value) <= COEFFICIENT_ROUNDING_FACTOR * EPS * _sum_of_moduli(entry, numbers):
        return 0.0
    # Such a number makes a DaeModel, which says so where it decides.
    return 0.0 if abs(value) <= COEFFICIENT_ROUNDING_FACTOR * EPS and math.frexp(value)[0] * 2**12 % 1 == 0 else value


def _sum_of_moduli(entry: Any, numbers: Mapping[Any, Any]) -> float:
    """Return what the terms of an expression add up to without their signs; 0 for what is not a sum."""
    if entry.is_Add:
        return float(sum(abs(float(term.xreplace(numbers))) + _sum_of_moduli(term, numbers) for term in entry.args))
    if entry.is_Mul:
        sums = [_sum_of_moduli(factor, numbers) for factor in entry.args]
        sizes = [abs(float(factor.xreplace(numbers))) for factor in entry.args]
        return float(math.prod(map(max, sums, sizes))) if any(sums) else 0.0
    return 0.0


def _is_singular(equations: Mapping[Any, Written], mass_matrix: Any, options: Mapping[str, Any]) -> bool:
    """Whether E is singular at the start; what cannot be read is for the OdeModel to reject."""
    values = {str(k): 0.0 for k in [*equations, *options.get("inputs", ()), "time"]}
    values |= {str(k): v for part in ("start", "parameters") for k, v in (options.get(part) or {}).items()}
    E = np.zeros((len(equations), len(equations)))
    unreadable = FmilinError, KeyError, IndexError, TypeError, ValueError, AttributeError, sympy.SympifyError
    with suppress(*unreadable):
        rows = [] if isinstance(mass_matrix, Mapping) else _rows(mass_matrix)
        if rows and {len(rows), *map(len, rows)} != {len(E)}:
            return False
        for position, e in _entries(mass_matrix).items():
            E[position] = _value_without_rounding(e, values)
        sizes = np.abs(E).max(axis=1, initial=0.0)
        return bool((sizes == 0).any() or np.linalg.matrix_rank(E / sizes[:, None], tol=RANK) < len(E))
    return False
