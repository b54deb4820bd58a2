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
from typing import Any

import sympy

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import ExpressionError, parse
from fmilin.models.assembly import Equations, Given, assembled
from fmilin.models.declaration import (
    Declaration,
    Expr,
    Labels,
    Name,
    Symbol,
    SymbolicConstraint,
    der,
    named_constraint,
)
from fmilin.models.symbolic import SymbolicModel
from fmilin.signals import rate_unit

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
        M, shape (n, n), symmetric; as sympy matrix or nested lists. It may be singular as long as it is
        definite on the velocities that the constraints leave free.
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
        M = declaration.matrix(mass_matrix, len(q), "the mass matrix")
        F = [declaration.expression(e, f"force {i + 1}") for i, e in enumerate(forces)]
        if len(F) != len(q):
            declaration.problems.append(f"there are {len(F)} forces for {len(q)} coordinates")
            F = [sympy.S.Zero] * len(q)
        _note_asymmetry(declaration, M)
        bound = [_bound(declaration, c, dict(zip(q, v, strict=True)), driven) for c in constraints]
        equations = _equations(q, v, M, F, bound)
        declaration.derived |= equations.named()
        super().__init__(assembled(declaration, equations, [c.declared for c in bound], given))


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


def _bound(
    declaration: Declaration,
    source: SymbolicConstraint | Expr,
    velocity: Mapping[Symbol, Symbol],
    driven: Mapping[Symbol, Symbol],
) -> _Bound:
    q, v = tuple(velocity), tuple(velocity.values())
    constraint, g = declaration.constraint(source)
    where = f"the constraint '{constraint.name or g}'"
    t = declaration.time
    place = {symbol: i for i, symbol in enumerate(q)}
    holonomic = constraint.level == "position"
    others = g.free_symbols - {*q, *v, t, *driven} - declaration.constants
    if others or (holonomic and g.free_symbols & set(v)):
        kind = "coordinates" if holonomic else "coordinates and velocities"
        declaration.problems.append(f"{where} may contain {kind}, inputs, parameters and time only")
        return _Bound(named_constraint(constraint, g, None), {}, sympy.S.Zero)

    def rate(e: Any) -> Any:
        """Return de/dt with v held: e_t + e_q v + e_u u'."""
        rates = {**velocity, **driven}
        return sympy.Add(e.diff(t), *(e.diff(s) * rates[s] for s in rates if s in e.free_symbols))

    if holonomic:
        G = {place[s]: g.diff(s) for s in q if s in g.free_symbols}
        gdot = rate(g)
        return _Bound(named_constraint(constraint, g, gdot), G, rate(gdot))
    G = {i: g.diff(s) for i, s in enumerate(v) if s in g.free_symbols}
    if any(G_i.free_symbols & set(v) for G_i in G.values()):
        declaration.problems.append(f"{where} is not linear in the velocities")
    return _Bound(named_constraint(constraint, g, None), G, rate(g))


def _equations(
    q: Sequence[Symbol], v: Sequence[Symbol], M: Sequence[Sequence[Any]], F: Sequence[Any], bound: Sequence[_Bound]
) -> Equations:
    """Return the linear system for w = (v', lambda)."""
    n, m = len(q), len(bound)
    rows = [[c.G.get(j, sympy.S.Zero) for j in range(n)] for c in bound]
    upper = [[*M[i], *(rows[k][i] for k in range(m))] for i in range(n)]
    lower = [[*row, *[sympy.S.Zero] * m] for row in rows]
    accelerations = [der(s) for s in v]
    multipliers = [sympy.Symbol(f"lambda[{k + 1}]", real=True) for k in range(m)]
    return Equations(
        states=(*q, *v),
        derivatives=[*v, *accelerations],
        unknowns=[*accelerations, *multipliers],
        W=upper + lower,
        r=[*F, *(-c.Gdot_v for c in bound)],
        extra_names={str(symbol): symbol for symbol in multipliers},
    )


def _note_asymmetry(declaration: Declaration, M: Sequence[Sequence[Any]]) -> None:
    """Note the first entry of M that differs from its mirror image, in form and at one arbitrary point."""
    pairs = ((i, j) for i in range(len(M)) for j in range(i) if M[i][j] != M[j][i])
    for i, j in pairs:
        point = {s: 0.3 + 0.1 * k for k, s in enumerate(sorted((M[i][j] - M[j][i]).free_symbols, key=str))}
        one, other = (complex(sympy.N(entry.xreplace(point))) for entry in (M[i][j], M[j][i]))
        if abs(one - other) > 1e-9 * (abs(one) + abs(other)):
            declaration.problems.append(f"the mass matrix is not symmetric: entries [{i}, {j}] and [{j}, {i}] differ")
            return


def _with_units(labels: Labels, pairs: Sequence[tuple[Name, Name]]) -> Labels:
    """Give each rate the unit that follows from its quantity's, pair after pair."""
    units = {str(k): unit for k, unit in labels.units.items()}
    for quantity, rate in pairs:
        units.setdefault(str(rate), rate_unit(units.get(str(quantity), "")))
    return replace(labels, units=units)
