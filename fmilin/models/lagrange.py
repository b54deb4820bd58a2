"""Lagrange's equations with multipliers: M(q) v' = F(t, q, v, u) - G' lambda, Spencer (thesis) eqs. (2.1)-(2.5).

With q' = v (2.1a), the constraints 0 = g(q) (2.1c), G = dg/dq, and their second derivative (2.3)

    0 = G v' + Gdot v

accelerations and multipliers solve

    [ M  G' ] [   v'   ]   [    F    ]
    [ G  0  ] [ lambda ] = [ -Gdot v ]

which needs M to be definite on the null space of G only, where (2.4) would need its inverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import ExpressionError, parse
from fmilin.models.assembly import Equations, Given, assembled
from fmilin.models.declaration import (
    Declaration,
    Entries,
    Expr,
    Labels,
    Name,
    Symbol,
    SymbolicConstraint,
    der,
    named_constraint,
)
from fmilin.models.large import LARGEST_DENSE, LargeEquations
from fmilin.models.symbolic import SymbolicEngine, SymbolicModel
from fmilin.signals import rate_unit

if TYPE_CHECKING:
    from fmilin.model.sparse_equations import SparseEquations

__all__ = ["LagrangeModel"]


class LagrangeModel(SymbolicModel):
    """M(q) v' = F(t, q, v, u) - G' lambda with q' = v and constraints g(t, q) = 0, or a(t, q, v) = 0 linear in v.

    The states are (q, v). Every constraint on q brings its hidden constraint G v + g_t = 0 with it; a
    constraint of level ``"velocity"`` (nonholonomic) has G = da/dv. An input s in a constraint prescribes a motion:
    the inputs ``der(s)`` and, for position-level constraints, ``der(der(s))`` are added to the model. Outputs may
    contain derivatives of states, ``der(v)`` (:func:`fmilin.models.der` makes the symbol), and the multipliers
    ``lambda[1]``, ``lambda[2]``, ... in the order of the constraints; both can also be asked for as outputs by name.
    Expressions are sympy expressions, numbers, or text in the grammar of :mod:`fmilin.constraints.expressions`; names
    are symbols or text. The symbol named ``time`` is time.

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
    parameters : mapping
        Values by symbol or name.
    outputs : mapping of str
        Expressions by name.
    start : mapping
        Start values of states and inputs, by symbol or name; 0 where not given.
    labels : Labels
        Units, nominal values, descriptions. The unit of a velocity follows from that of its coordinate.

    Raises
    ------
    UsageError
        When something is missing or does not fit; the message lists everything.
    """

    def __init__(
        self,
        name: str,
        coordinates: Mapping[Name, Name],
        mass_matrix: Any,
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
        chain = _prescribing(constraints, inputs)
        every = [*inputs, *(n for n in chain.values() if n not in {str(i) for i in inputs})]
        pairs = [*zip(q, v, strict=True), *chain.items()]
        given = Given(every, parameters or {}, outputs or {}, start or {}, _with_units(labels or Labels(), pairs))
        given.declare(declaration)
        driven = {declaration.symbols[s]: declaration.symbols[rate] for s, rate in chain.items()}
        M = declaration.entries(mass_matrix, len(q), "the mass matrix")
        F = [declaration.expression(e, f"force {i + 1}") for i, e in enumerate(forces)]
        if len(F) != len(q):
            declaration.problems.append(f"there are {len(F)} forces for {len(q)} coordinates")
            F = [sympy.S.Zero] * len(q)
        _note_asymmetry(declaration, M)
        motion = _Motion(dict(zip(q, v, strict=True)), driven)
        bound = [_bound(declaration, c, motion) for c in constraints]
        equations = _equations(q, v, M, F, bound)
        declaration.derived |= equations.named()
        super().__init__(assembled(declaration, equations, [c.declared for c in bound], given))

    def sparse_equations(self) -> SparseEquations | None:
        """Return the equations in sparse matrices where they are large; None when small.

        Only with the model's own constraints, all on positions, that neither time nor inputs enter.
        """
        system = self.engine.system
        if len(system.unknowns) <= LARGEST_DENSE or type(self.engine) is not SymbolicEngine:
            return None
        moving = {"time", *(str(s) for s in system.inputs)}
        if not self._has_own_constraints or any(
            c.level != "position" or moving & set(c.expression.names) for c in system.constraints
        ):
            return None
        return self._large

    @cached_property
    def _large(self) -> LargeEquations:
        held = self.engine.inputs.select([i for i in range(len(self.engine.inputs)) if i not in self._kept])
        graph = self.in_graph()
        assert graph is not None  # noqa: S101 - symbols always have one
        return LargeEquations(graph, self.constraints, np.concatenate((self.engine.p, held.starts)))


@dataclass(frozen=True)
class _Bound:
    """A constraint differentiated: its row of G, and Gdot v with everything else that v' does not multiply."""

    declared: Constraint
    G: Mapping[int, Any]
    Gdot_v: Any


def _prescribing(constraints: Sequence[Expr | SymbolicConstraint], inputs: Sequence[Name]) -> dict[str, str]:
    """Return u -> der(u) for the inputs that enter constraints, and on to the derivative that accelerations need."""
    names = {str(i) for i in inputs}
    chain: dict[str, str] = {}
    for c in constraints:
        full = c if isinstance(c, SymbolicConstraint) else SymbolicConstraint(c)
        text = isinstance(full.expression, str)
        used = _names_in(full.expression) if text else {str(s) for s in getattr(full.expression, "free_symbols", ())}
        for name in sorted(used & names):
            rate = str(der(name))
            chain[name] = rate
            if full.level == "position":
                chain[rate] = str(der(rate))
    return chain


def _names_in(text: str) -> set[str]:
    try:
        return set(parse(text).names)
    except ExpressionError:
        return set()  # said where the expression is read


@dataclass(frozen=True)
class _Motion:
    """What moves in constraints: coordinates by their velocities, and prescribed inputs by their derivatives."""

    velocity: Mapping[Symbol, Symbol]
    driven: Mapping[Symbol, Symbol]

    @cached_property
    def rates(self) -> Mapping[Symbol, Symbol]:
        """The derivative of everything that has one."""
        return {**self.velocity, **self.driven}

    @cached_property
    def order(self) -> Mapping[Symbol, int]:
        """The places of ``rates``."""
        return {symbol: k for k, symbol in enumerate(self.rates)}

    @cached_property
    def place(self) -> Mapping[Symbol, int]:
        """The places of the coordinates."""
        return {symbol: i for i, symbol in enumerate(self.velocity)}

    @cached_property
    def place_of_velocity(self) -> Mapping[Symbol, int]:
        """The places of the velocities."""
        return {symbol: i for i, symbol in enumerate(self.velocity.values())}

    def gradient(self, e: Any, place: Mapping[Symbol, int]) -> dict[Symbol, Any]:
        """Return de/ds for each symbol s of ``place`` that ``e`` contains, in their order."""
        return {s: _slope(e, s) for s in sorted(e.free_symbols & place.keys(), key=place.__getitem__)}

    def rate(self, e: Any, t: Symbol) -> Any:
        """Return de/dt with v held: e_t + e_q v + e_u u'."""
        slopes = self.gradient(e, self.order)
        return sympy.Add(_along(e, t), *(slope * self.rates[s] for s, slope in slopes.items()))

    def second_rate(self, e: Any, t: Symbol) -> Any:
        """Return the rate of the rate of ``e``, differentiated term by term: sums of products would take far longer."""
        slopes, rates = self.gradient(e, self.order), self.rates
        terms = [self.rate(slope, t) * rates[s] for s, slope in slopes.items()]
        terms += [slope * rates[rates[s]] for s, slope in slopes.items() if rates[s] in rates]
        return sympy.Add(self.rate(_along(e, t), t), *terms)


def _slope(e: Any, s: Symbol) -> Any:
    """Return de/ds; sums, multiples and powers of these by hand, which sympy takes several times as long for."""
    if s not in e.free_symbols:
        return sympy.S.Zero
    if e.is_Add:
        return sympy.Add(*(_slope(term, s) for term in e.args))
    if e.is_Mul:
        number, rest = e.as_coeff_Mul()
        return e.diff(s) if number == 1 else number * _slope(rest, s)
    if e.is_Pow and e.exp.is_Rational:
        return e.exp * e.base ** (e.exp - 1) * _slope(e.base, s)
    return e.diff(s)


def _along(e: Any, t: Symbol) -> Any:
    """Return the partial derivative de/dt."""
    return e.diff(t) if t in e.free_symbols else sympy.S.Zero


def _bound(declaration: Declaration, source: SymbolicConstraint | Expr, motion: _Motion) -> _Bound:
    constraint, g = declaration.constraint(source)
    where = f"the constraint '{constraint.name or g}'"
    t, place, velocities = declaration.time, motion.place, motion.place_of_velocity
    holonomic = constraint.level == "position"
    wrong = [
        s
        for s in g.free_symbols
        if not (s in place or s in velocities or s == t or s in motion.driven or s in declaration.constants)
    ]
    if wrong or (holonomic and g.free_symbols & velocities.keys()):
        kind = "coordinates" if holonomic else "coordinates and velocities"
        declaration.problems.append(f"{where} may contain {kind}, inputs, parameters and time only")
        return _Bound(named_constraint(constraint, g, None), {}, sympy.S.Zero)
    if holonomic:
        G = {place[s]: slope for s, slope in motion.gradient(g, place).items()}
        return _Bound(named_constraint(constraint, g, motion.rate(g, t)), G, motion.second_rate(g, t))
    G = {velocities[s]: slope for s, slope in motion.gradient(g, velocities).items()}
    if any(G_i.free_symbols & velocities.keys() for G_i in G.values()):
        declaration.problems.append(f"{where} is not linear in the velocities")
    return _Bound(named_constraint(constraint, g, None), G, motion.rate(g, t))


def _equations(
    q: Sequence[Symbol], v: Sequence[Symbol], M: Entries, F: Sequence[Any], bound: Sequence[_Bound]
) -> Equations:
    """Return the linear system for w = (v', lambda)."""
    n, m = len(q), len(bound)
    G = {(n + k, j): entry for k, c in enumerate(bound) for j, entry in c.G.items()}
    accelerations = [der(s) for s in v]
    multipliers = [sympy.Symbol(f"lambda[{k + 1}]", real=True) for k in range(m)]
    return Equations(
        states=(*q, *v),
        derivatives=[*v, *accelerations],
        unknowns=[*accelerations, *multipliers],
        W=M | G | {(j, i): entry for (i, j), entry in G.items()},
        r=[*F, *(-c.Gdot_v for c in bound)],
        extra_names={str(symbol): symbol for symbol in multipliers},
    )


def _note_asymmetry(declaration: Declaration, M: Entries) -> None:
    """Note the first entry of M that differs from its mirror image, in form and at one arbitrary point."""
    zero = sympy.S.Zero
    for i, j in sorted({(max(place), min(place)) for place in M}):
        pair = M.get((i, j), zero), M.get((j, i), zero)
        if pair[0] == pair[1]:
            continue
        point = {s: 0.3 + 0.1 * k for k, s in enumerate(sorted((pair[0] - pair[1]).free_symbols, key=str))}
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
