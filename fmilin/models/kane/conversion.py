"""``KanesMethod`` and ``LagrangesMethod`` objects of sympy as the general form.

Taken are the matrices that sympy solves for u' with, not what its linearizer reads off them: rates that were left in
the forces (q', q'' or u' in a load) are found, and replaced or kept where the form has a place for them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sympy
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, dynamicsymbols

from fmilin.errors import UsageError
from fmilin.models.declaration import TIME, Symbol, der
from fmilin.models.kane.kane_form import LinearRow, SymbolsIn, linear_row, plain_name
from fmilin.models.labels import Expr


class Translation:
    """Rewrites expressions; shared subexpressions stay shared, so that large equations take a moment only.

    ``f(t)`` becomes the symbol ``f``, its derivatives ``der(f)`` and so on, time the symbol ``time``; or what
    ``meanings`` says, a callable when it is needed. ``dynamic`` and ``constants`` collect what had no meaning.
    """

    def __init__(self, time: Symbol, meanings: Mapping[Expr, Expr | Callable[[], Expr]]) -> None:
        self._time = time
        self._meanings = dict(meanings)
        self._translations: dict[Expr, Expr] = {}
        self.dynamic: dict[str, Symbol] = {}
        self.constants: dict[str, Symbol] = {}
        self.problems: list[str] = []
        self.symbols_in = SymbolsIn()

    def __call__(self, expression: Expr) -> Expr:
        """Return ``expression`` in plain symbols."""
        translation = self._translations.get(expression)
        if translation is None:
            translation = self._translations[expression] = self._translate(expression)
        return translation

    def _translate(self, e: Expr) -> Expr:
        if e in self._meanings:
            meaning = self._meanings[e]
            return self(meaning()) if callable(meaning) and not isinstance(meaning, sympy.Basic) else meaning
        if e == self._time:
            return sympy.Symbol(TIME, real=True)
        if e.is_Symbol:
            return self.constants.setdefault(str(e), sympy.Symbol(str(e), real=True))
        if isinstance(e, sympy.Float):
            return sympy.Float(float(e), 17)
        if isinstance(e, AppliedUndef) and e.args == (self._time,):
            return self._dynamic(str(e.func))
        if isinstance(e, sympy.Derivative):
            return self._derivative(e)
        if isinstance(e, AppliedUndef | sympy.Integral | sympy.Subs):
            self.problems.append(f"'{e}' is neither a function of time nor an elementary function")
            return sympy.S.Zero
        if not e.args:
            return e
        arguments = [self(a) for a in e.args]
        return e if all(new is old for new, old in zip(arguments, e.args, strict=True)) else e.func(*arguments)

    def _derivative(self, e: Expr) -> Expr:
        base, order = e.expr, _time_order(e, self._time)
        if isinstance(base, AppliedUndef) and base.args == (self._time,) and order:
            return self._dynamic(plain_name(e))
        done = e.doit()
        if done != e and not isinstance(done, sympy.Derivative):
            return self(done)
        self.problems.append(f"'{e}' is a derivative that sympy cannot carry out")
        return sympy.S.Zero

    def _dynamic(self, name: str) -> Symbol:
        return self.dynamic.setdefault(name, sympy.Symbol(name, real=True))


def _time_order(derivative: Expr, time: Symbol) -> int:
    """Return how often the derivative is with respect to time, 0 when it is with respect to something else, too."""
    counts = dict(derivative.variable_count)
    return int(counts[time]) if set(counts) == {time} else 0


@dataclass
class SympyEquations:
    """The equations of a sympy object, in plain symbols."""

    translate: Translation  # has met everything that appears in the equations
    q: list[Symbol]
    u: list[Symbol]
    multipliers: list[Symbol] = field(default_factory=list)
    f_c: list[Expr] = field(default_factory=list)
    velocity: list[LinearRow] = field(default_factory=list)
    acceleration: list[LinearRow] = field(default_factory=list)
    kinematics: list[LinearRow] = field(default_factory=list)
    dynamics: list[LinearRow] = field(default_factory=list)
    independent: list[str] = field(default_factory=list)  # the states that the author declared as independent
    problems: list[str] = field(default_factory=list)

    def rows(self, name: str, matrix: Any, symbols: Sequence[Symbol], rest: Any) -> list[LinearRow]:
        """Return the rows of ``matrix symbols + rest = 0``; what of ``symbols`` the rest contains is moved."""
        rows = []
        for i in range(matrix.rows):
            entries = {w: self.translate(matrix[i, j]) for j, w in enumerate(symbols) if matrix[i, j] != 0}
            entries = {w: c for w, c in entries.items() if c != 0}
            rows.append(self.row(f"{name}[{i + 1}]", entries, self.translate(rest[i]), symbols))
        return rows

    def row(self, name: str, entries: dict[Symbol, Expr], rest: Expr, symbols: Sequence[Symbol]) -> LinearRow:
        """Return one row ``entries symbols + rest = 0``; what of ``symbols`` the rest contains is moved."""
        inside = self.translate.symbols_in
        hidden, nonlinear_in = linear_row(name, rest, symbols, inside)
        nonlinear = {*nonlinear_in, *(w for w in symbols for c in entries.values() if w in inside(c))}
        if nonlinear:
            self.problems.append(f"{name} is not linear in {', '.join(sorted(map(str, nonlinear)))}")
        slopes = hidden.coefficients
        total = {w: entries.get(w, sympy.S.Zero) + slopes.get(w, sympy.S.Zero) for w in {**entries, **slopes}}
        return LinearRow(name, {w: c for w, c in total.items() if c != 0}, hidden.rest)


def read_sympy_equations(method: Any, reactions: Sequence[Any] = ()) -> SympyEquations:
    """Return the equations of a ``KanesMethod`` or ``LagrangesMethod``; ``reactions`` name its unknown forces."""
    if isinstance(method, KanesMethod):
        return _kane(method, reactions)
    if isinstance(method, LagrangesMethod):
        return _lagrange(method)
    raise UsageError(f"Equations can be taken from a KanesMethod or LagrangesMethod of sympy, not from {type(method)}.")


def _kane(kane: Any, reactions: Sequence[Any]) -> SympyEquations:
    _form_kanes_equations(kane)
    t = dynamicsymbols._t
    q, u = list(kane.q), list(kane.u)
    equations = SympyEquations(Translation(t, _find_meanings(kane, q, u)), _to_plain_symbols(q), _to_plain_symbols(u))
    o, m = len(u), len(kane._f_nh)
    q_dot, u_dot = list(map(der, equations.q)), list(map(der, equations.u))
    K = getattr(kane, "_k_kqdot_implicit", kane._k_kqdot)
    k_u, k = getattr(kane, "_k_ku_implicit", kane._k_ku), getattr(kane, "_f_k_implicit", kane._f_k)
    equations.kinematics = equations.rows("f_0", K, q_dot, k_u * sympy.Matrix(u) + k)
    equations.f_c = [equations.translate(e) for e in kane._f_h]
    if m:
        equations.velocity = equations.rows("f_v", kane._k_nh, equations.u, kane._f_nh)
        equations.acceleration = equations.rows("f_a", kane._k_dnh, u_dot, kane._f_dnh)
    equations.dynamics = equations.rows("f_2", kane.mass_matrix[: o - m, :], u_dot, -kane.forcing[: o - m, :])
    if kane._uaux:
        _add_reactions(equations, kane.auxiliary_eqs, u_dot, [plain_name(r) for r in reactions])
    independent_u = u[: o - m]
    equations.independent = [
        str(s) for s in (*equations.q[: len(q) - len(kane._qdep)], *_to_plain_symbols(independent_u))
    ]
    return equations


def _form_kanes_equations(kane: Any) -> None:
    if kane._fr is not None and kane._frstar is not None:
        return
    if not kane.bodies:
        raise UsageError("The equations of the KanesMethod object have not been formed: call kanes_equations() first.")
    kane.kanes_equations()


def _find_meanings(kane: Any, q: Sequence[Expr], u: Sequence[Expr]) -> dict[Expr, Any]:
    """Return what states, their rates and auxiliary speeds become; q'' is asked for only where it was left over."""
    t = dynamicsymbols._t
    meanings: dict[Expr, Any] = dict(zip((*q, *u), _to_plain_symbols((*q, *u)), strict=True))
    meanings |= {s.diff(t): der(meanings[s]) for s in (*q, *u)}
    meanings |= {s: sympy.S.Zero for a in kane._uaux for s in (a, a.diff(t))}
    for s, rate in (kane._qdot_u_map or {}).items():
        meanings[s.diff(t)] = partial(rate.diff, t)
    return meanings


def _add_reactions(equations: SympyEquations, auxiliary: Any, u_dot: Sequence[Symbol], named: Sequence[str]) -> None:
    """Append the auxiliary equations and make unknowns of the forces that appear only in them."""
    before = set(equations.translate.dynamic)
    rest = [equations.translate(e) for e in auxiliary]
    new = [name for name in equations.translate.dynamic if name not in before and not name.startswith("der(")]
    symbols = equations.translate.dynamic | equations.translate.constants
    reactions = [symbols[name] for name in (named or new) if name in symbols]
    if len(reactions) != len(rest):
        listed = ", ".join(map(str, reactions)) or "none"
        equations.problems.append(
            f"the {len(rest)} auxiliary equations determine {len(rest)} reaction forces, but {len(reactions)} were "
            f"found ({listed}): name them with reactions=[...]"
        )
        return
    for symbol in reactions:
        equations.translate.dynamic.pop(str(symbol), None)
        equations.translate.constants.pop(str(symbol), None)
    equations.dynamics += [
        equations.row(f"auxiliary[{i + 1}]", {}, e, [*u_dot, *reactions]) for i, e in enumerate(rest)
    ]
    equations.multipliers = reactions


def _lagrange(lagrange: Any) -> SympyEquations:
    if lagrange.eom is None:
        lagrange.form_lagranges_equations()
    t = dynamicsymbols._t
    q, n, m = list(lagrange.q), len(lagrange.q), len(lagrange.coneqs)
    names = _to_plain_symbols(q)
    u = [sympy.Symbol(f"{name}_dot", real=True) for name in names]
    multipliers = _to_plain_symbols(list(lagrange.lam_vec))
    meanings: dict[Expr, Any] = dict(zip(q, names, strict=True))
    meanings |= {s.diff(t): v for s, v in zip(q, u, strict=True)}
    meanings |= {s.diff(t, 2): der(v) for s, v in zip(q, u, strict=True)}
    meanings |= dict(zip(lagrange.lam_vec, multipliers, strict=True))
    equations = SympyEquations(Translation(t, meanings), names, u, multipliers)
    u_dot = list(map(der, u))
    equations.kinematics = [
        LinearRow(f"f_0[{i + 1}]", {der(s): sympy.S.One}, -v) for i, (s, v) in enumerate(zip(names, u, strict=True))
    ]
    equations.f_c = [equations.translate(e) for e in lagrange._hol_coneqs]
    dynamic = lagrange.mass_matrix[:, :n]
    if m:
        rates = sympy.Matrix([s.diff(t) for s in q])
        still = dict.fromkeys(rates, sympy.S.Zero)
        velocity = sympy.Matrix(lagrange.coneqs)
        equations.velocity = equations.rows("f_v", velocity.jacobian(rates), u, velocity.xreplace(still))
        moving = lagrange.mass_matrix_full[2 * n :, n : 2 * n]
        equations.acceleration = equations.rows("f_a", moving, u_dot, -lagrange.forcing_full[2 * n :, :])
        dynamic = dynamic.row_join(-lagrange.lam_coeffs.T)
    equations.dynamics = equations.rows("f_2", dynamic, [*u_dot, *multipliers], -lagrange.forcing)
    return equations


def _to_plain_symbols(functions: Sequence[Expr]) -> list[Symbol]:
    """Return the plain symbols of functions of time."""
    return [sympy.Symbol(plain_name(f), real=True) for f in functions]
