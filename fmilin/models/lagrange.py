"""Lagrange's equations with multipliers: M(q) v' = F(t, q, v, u) - G' lambda, Spencer (thesis) eqs. (2.1)-(2.5).

With q' = v (2.1a), 0 = g(q) (2.1c), G = dg/dq, and 0 = G v' + Gdot v (2.3) accelerations and multipliers solve

    [M G'; G 0] (v'; lambda) = (F; -Gdot v),

which needs M to be definite on the null space of G only, where (2.4) would need its inverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import sympy

from fmilin.constraints.declared import Constraint, Level
from fmilin.constraints.expressions import ExpressionError, parse
from fmilin.model.capabilities import HasSparseEquations
from fmilin.model.equation_forms import Laws
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
)
from fmilin.models.delayed_equations import build_delayed_model, has_delay
from fmilin.models.labels import Expr, Labels, Name
from fmilin.models.symbolic import SymbolicModel, SystemEngine
from fmilin.signals import rate_unit
from fmilin.support.kinds import containers_checked

if TYPE_CHECKING:
    from sympy import Matrix

    from fmilin.model.equation_forms import SparseEquations
    from fmilin.models.large_equations import LargeEquations


class LagrangeModel(SymbolicModel, HasSparseEquations):
    """M(q) v' = F(t, q, v, u) - G' lambda with q' = v and constraints g(t, q) = 0, or a(t, q, v) = 0 linear in v.

    The states are (q, v). Every constraint on q brings its hidden constraint G v + g_t = 0 with it; a constraint of
    level ``"velocity"`` (nonholonomic) has G = da/dv. An input s in a constraint prescribes a motion: the inputs
    ``der(s)`` and, for position-level constraints, ``der(der(s))`` are added to the model. Outputs may contain
    derivatives of states, ``der(v)`` (:func:`fmilin.models.der` makes the symbol), and the multipliers ``lambda[1]``,
    ``lambda[2]``, ... in the order of the constraints; both can also be asked for as outputs by name. Expressions are
    sympy expressions, numbers, or text in the grammar of :mod:`fmilin.constraints.expressions`; names are symbols
    or text. The symbol named ``time`` is time. Raises UsageError when something is missing or does not fit; the message
    lists everything.

    Parameters
    ----------
    name : str
    coordinates : mapping
        One entry per coordinate: q, and the name or symbol of its velocity v. n of them.
    mass_matrix : matrix
        M, shape (n, n), symmetric; as sympy matrix, nested lists, or a mapping of (i, j) to the entries that are not
        zero. It may be singular as long as it is definite on the velocities that the constraints leave free.
    forces : sequence
        F, shape (n,): all forces but those of the constraints, velocity-dependent terms included.
    constraints : sequence
        Expressions, or :class:`SymbolicConstraint` with a name and a level.
    inputs : sequence
    parameters, outputs, start : mapping
        Values, expressions, and start values of states and inputs by symbol or name; these are 0 where not given.
    labels : Labels
        The unit of a velocity follows from that of its coordinate.
    """

    def __new__(
        cls,
        name: str = "",
        coordinates: Mapping[Name, Name] | None = None,
        mass_matrix: Matrix | Sequence[Sequence[Expr]] = (),
        forces: Sequence[Expr] = (),
        **options: Any,
    ) -> Self:
        """Return a model of this class, or a DelayedModel where forces or outputs contain ``delay(x, T)``."""
        written = {"forces": forces, "outputs": options.get("outputs")}
        if not any(map(has_delay, written.values())):
            return super().__new__(cls)
        fixed = {**options, "coordinates": coordinates, "mass_matrix": mass_matrix}
        delayed: Any = build_delayed_model(name, written, fixed, lambda arguments: cls(name, **arguments))
        return cast("Self", delayed)

    @containers_checked
    def __init__(
        self,
        name: str,
        coordinates: Mapping[Name, Name],
        mass_matrix: Matrix | Sequence[Sequence[Expr]],
        forces: Sequence[Expr],
        *,
        constraints: Sequence[Expr | SymbolicConstraint] = (),
        inputs: Sequence[Name] = (),
        parameters: Mapping[Name, float] | None = None,
        outputs: Mapping[str, Expr] | None = None,
        start: Mapping[Name, float] | None = None,
        labels: Labels | None = None,
    ) -> None:
        declaration = Declaration(name)
        q = declaration.declare(coordinates, "a coordinate")
        v = declaration.declare(coordinates.values(), "a velocity")
        chain = _find_prescribing_inputs(constraints, inputs)
        all_inputs = [*inputs, *(n for n in chain.values() if n not in {str(i) for i in inputs})]
        pairs = [*zip(q, v, strict=True), *chain.items()]
        arguments = ModelArguments(
            all_inputs, parameters or {}, outputs or {}, start or {}, _with_units(labels or Labels(), pairs)
        )
        arguments.declare(declaration)
        driven = {declaration.symbols[s]: declaration.symbols[rate] for s, rate in chain.items()}
        M = declaration.entries(mass_matrix, len(q), "the mass matrix")
        F = [declaration.expression(e, f"force {i + 1}") for i, e in enumerate(forces)]
        if len(F) != len(q):
            declaration.problems.append(f"there are {len(F)} forces for {len(q)} coordinates")
            F = [sympy.S.Zero] * len(q)
        _note_asymmetry(declaration, M)
        motion = _ConstraintRates(dict(zip(q, v, strict=True)), driven, declaration.constants, declaration.time)
        checked = [_check_constraint(declaration, c, motion) for c in constraints]
        equations = _equations(motion, M, F, [(g, c.level) for c, g in checked])
        declaration.derived |= equations.derived_names()
        super().__init__(assemble_system(declaration, equations, [c for c, _ in checked], arguments))
        self.engine.freedoms_known = not self.engine.constraints

    def sparse_equations(self) -> SparseEquations | None:
        """Return sparse equations of a large model with constraints on positions alone, without time; else None."""
        from fmilin.numerics.factors import MAX_DENSE_ROWS

        system = self.engine.system
        if len(system.unknowns) <= MAX_DENSE_ROWS or type(self.engine) is not SystemEngine:
            return None
        moving = {"time", *(str(s) for s in system.inputs)}
        if not self._has_own_constraints or any(
            c.level != "position" or moving & set(c.expression.names) for c in system.constraints
        ):
            return None
        return self._large

    @cached_property
    def _large(self) -> LargeEquations:
        from fmilin.models.large_equations import LargeEquations

        return LargeEquations(self._selection.numeric, self.constraints, self.engine.p, self._full, self._input_indices)


def _find_prescribing_inputs(
    constraints: Sequence[Expr | SymbolicConstraint], inputs: Sequence[Name]
) -> dict[str, str]:
    """Return u -> der(u) for the inputs that enter constraints, and on to the derivative that accelerations need."""
    names = {str(i) for i in inputs}
    chain: dict[str, str] = {}
    for c in constraints:
        full = c if isinstance(c, SymbolicConstraint) else SymbolicConstraint(c)
        text = isinstance(full.expression, str)
        used = _list_names(full.expression) if text else {str(s) for s in getattr(full.expression, "free_symbols", ())}
        for name in sorted(used & names):
            rate = str(der(name))
            chain[name] = rate
            if full.level == "position":
                chain[rate] = str(der(rate))
    return chain


def _list_names(text: str) -> set[str]:
    try:
        return set(parse(text).names)
    except ExpressionError:
        return set()  # said where the expression is read


@dataclass(frozen=True)
class _ConstraintRates:
    """The time-dependent quantities of constraints: coordinates with velocities, prescribed inputs with derivatives."""

    velocity: Mapping[Symbol, Symbol]
    driven: Mapping[Symbol, Symbol]
    constants: Set[Symbol]
    time: Symbol

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Each coordinate's name to that of its velocity."""
        return {str(q): str(v) for q, v in self.velocity.items()}

    @cached_property
    def permitted(self) -> Set[Symbol]:
        """The symbols that constraints on positions may contain."""
        return {self.time, *self.velocity, *self.driven, *self.constants}

    @cached_property
    def velocities(self) -> Set[Symbol]:
        """The additional symbols that constraints on velocities may contain."""
        return set(self.velocity.values())

    def constraint(self, declared: SymbolicConstraint, g: Any) -> Constraint:
        """Return a constraint; with its rate, g_q v + g_t + g_u u', where it is one on positions."""
        full, moving = build_named_constraint(declared, g, None), {self.time, *self.driven} & g.free_symbols
        if declared.level == "velocity":
            return full
        if not moving:
            return replace(full, rate=full.expression.rate(self.names))
        rates = {self.time: 1, **self.velocity, **self.driven}
        along = (g.diff(s) * rates[s] for s in sorted(g.free_symbols & rates.keys(), key=str))
        return build_named_constraint(declared, g, sympy.Add(*along))


def _check_constraint(
    declaration: Declaration, source: SymbolicConstraint | Expr, motion: _ConstraintRates
) -> tuple[Constraint, Any]:
    """Return a constraint, and its expression in the model's symbols."""
    constraint, g = declaration.constraint(source)
    where = f"the constraint '{constraint.name or g}'"
    moving = g.free_symbols & motion.velocities
    holonomic = constraint.level == "position"
    if g.free_symbols - motion.permitted - motion.velocities or (holonomic and moving):
        kind = "coordinates" if holonomic else "coordinates and velocities"
        declaration.problems.append(f"{where} may contain {kind}, inputs, parameters and time only")
        return build_named_constraint(constraint, g, None), sympy.S.Zero
    if any(g.diff(v).free_symbols & moving for v in moving):
        declaration.problems.append(f"{where} is not linear in the velocities")
    return motion.constraint(constraint, g), g


def _equations(
    motion: _ConstraintRates, M: Entries, F: Sequence[Any], laws: Sequence[tuple[Any, Level]]
) -> ExplicitEquations:
    """Return the linear system for w = (v', lambda)."""
    q, v, m = motion.velocity.keys(), motion.velocity.values(), len(laws)
    accelerations = [der(s) for s in v]
    multipliers = [sympy.Symbol(f"lambda[{k + 1}]", real=True) for k in range(m)]
    return ExplicitEquations(
        states=(*q, *v),
        derivatives=[*v, *accelerations],
        unknowns=[*accelerations, *multipliers],
        W=M,
        r=[*F, *[sympy.S.Zero] * m],
        extra_names={str(symbol): symbol for symbol in multipliers},
        laws=Laws(tuple(laws), motion.velocity, motion.driven),
    )


def _note_asymmetry(declaration: Declaration, M: Entries) -> None:
    """Note the first entry of M that differs from its mirror image, in form and at one arbitrary point."""
    zero = sympy.S.Zero
    for i, j in sorted({(max(position), min(position)) for position in M}):
        pair = M.get((i, j), zero), M.get((j, i), zero)
        if pair[0] == pair[1]:
            continue
        symbols = pair[0].free_symbols | pair[1].free_symbols  # of both: the difference may lack one that cancels
        point = {s: 0.3 + 0.1 * k for k, s in enumerate(sorted(symbols, key=str))}
        one, other = (complex(sympy.N(entry.xreplace(point))) for entry in pair)
        if abs(one - other) > 1e-9 * (abs(one) + abs(other)):
            declaration.problems.append(f"the mass matrix is not symmetric: entries [{i}, {j}] and [{j}, {i}] differ")
            return


def _with_units(labels: Labels, pairs: Sequence[tuple[Name, Name]]) -> Labels:
    """Give each rate the unit that follows from its quantity's, pair after pair."""
    units = {str(k): unit for k, unit in labels.units.items()}
    for quantity, rate in pairs:
        units.setdefault(str(rate), rate_unit(units.get(str(quantity), "")))
    return replace(labels, units=units)
