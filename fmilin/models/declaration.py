"""The declaration of a native model, checked (all problems at once) and turned into one symbolic system."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any, SupportsFloat, SupportsIndex

import sympy

from fmilin.constraints.declared import Constraint, Level
from fmilin.constraints.expressions import Expression, ExpressionError, parse
from fmilin.errors import UsageError, nearest_names
from fmilin.model.equation_forms import Laws, SymbolicSystem
from fmilin.models.labels import Expr, Labels, Name
from fmilin.signals import Signal, Signals

Symbol = Any  # sympy.Symbol: sympy ships no types
Entries = dict[tuple[int, int], Any]  # of a matrix, by row and column; those that are left out are zero
TIME = "time"  # the name of time in every native model, as it is in constraints
MAX_EXPANDED_OPERATIONS = 500  # operations
MAX_VALUE_CHARACTERS = 60  # characters of a rejected value
LONGEST_REASON = 300  # characters of what sympy says

_NOT_REAL = tuple(type(part) for part in (sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I))
_UNSOLVED = (sympy.core.function.AppliedUndef, sympy.Derivative, sympy.Integral)


def der(state: Name) -> Symbol:
    """Return the symbol for the time derivative of ``state``, to be used in outputs and constraints.

    >>> der(sympy.Symbol("vx"))
    der(vx)
    """
    return sympy.Symbol(f"der({state})", real=True)


@dataclass(frozen=True)
class SymbolicConstraint:
    """An expression in a native model's symbols that its motion keeps at zero."""

    expression: Expr  #: over states, parameters and time
    name: str = ""  #: for messages; the expression itself when empty
    #: ``"position"`` where its time derivative is a constraint, too; ``"velocity"``, complete as nonholonomic ones are
    level: Level = "position"


def _is_position(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2 and all(isinstance(i, SupportsIndex) for i in key)


class Declaration:
    """The names of a model under construction as real symbols, one each, and what is wrong with it so far."""

    def __init__(self, model: str) -> None:
        if not isinstance(model, str):
            raise UsageError(f"The name of a model must be a text, not {model!r}.")
        self.model = model
        self.problems: list[str] = []
        self.symbols: dict[str, Symbol] = {TIME: sympy.Symbol(TIME, real=True)}
        self.derived: dict[str, Any] = {}
        self.constants: set[Symbol] = set()
        if not model:
            self.problems.append("the model has no name")

    @property
    def time(self) -> Symbol:
        """The symbol of time."""
        return self.symbols[TIME]

    def declare(self, names: Iterable[Name], what: str) -> tuple[Symbol, ...]:
        """Make the symbols of ``names``, which are ``what`` (``"a state"``)."""
        made: list[Symbol] = []
        for name in map(str, names):
            if name in self.symbols:
                self.problems.append(f"'{name}', {what}, is declared twice or is the name of time")
            self.symbols[name] = sympy.Symbol(name, real=True)
            made.append(self.symbols[name])
        return tuple(made)

    def numbers(self, values: Mapping[Name, Any], symbols: Iterable[Symbol], what: str) -> dict[str, float]:
        """Return finite numbers by name; every name must be one of ``symbols``."""
        names = [str(s) for s in symbols]
        result: dict[str, float] = {}
        for name, value in self.by_name(values, names, what).items():
            try:
                result[name] = float(value)
            except (TypeError, ValueError, OverflowError):
                self.problems.append(f"the {what} of '{name}', {repr(value)[:MAX_VALUE_CHARACTERS]}, is not a number")
                continue
            if not math.isfinite(result[name]):
                self.problems.append(f"the {what} of '{name}' is {value}")
        return result

    def by_name(self, values: Mapping[Name, Any], allowed: Sequence[str], what: str) -> dict[str, Any]:
        """Return ``values`` with names for keys, those that are not ``allowed`` left out and noted."""
        result = {str(name): value for name, value in values.items()}
        for name in [n for n in result if n not in allowed]:
            self.problems.append(f"there is a {what} for '{name}', which the model does not have{_hint(name, allowed)}")
            del result[name]
        return result

    def expression(self, source: Expr, where: str, *, derived: bool = False) -> Any:
        """Return ``source`` in the model's own symbols; zero, and a problem noted, when that cannot be."""
        try:
            expression = self._from_text(source) if isinstance(source, str) else sympy.sympify(source, strict=True)
        except (ExpressionError, sympy.SympifyError, TypeError, AttributeError, OverflowError) as error:
            self.problems.append(f"{where} cannot be read: {shorten(str(error), LONGEST_REASON, placeholder=' ...')}")
            return sympy.S.Zero
        if problem := self._describe_problem(expression, derived=derived):
            self.problems.append(f"{where} {problem}")
            return sympy.S.Zero
        exact: dict[Any, Any] = {number: sympy.Float(float(number), 17) for number in expression.atoms(sympy.Float)}
        exact |= {
            s: meaning for s in expression.free_symbols if (meaning := self._meaning(str(s), derived=derived)) != s
        }
        return expression.xreplace(exact) if exact else expression

    def entries(self, source: Any, size: int, where: str) -> Entries:
        """Return the entries of a square matrix that are not zero; none, and a problem, for another shape."""
        if isinstance(source, Mapping):
            entries = dict(source)
            if other := [position for position in entries if not _is_position(position)]:
                self.problems.append(
                    f"{where} has an entry {str(other[0])[:MAX_VALUE_CHARACTERS]!r} and should have (i, j)"
                )
                return {}
            if outside := [position for position in entries if not all(0 <= i < size for i in position)]:
                i, j = outside[0]
                self.problems.append(f"{where} has an entry [{i}, {j}] and should be {size} by {size}")
                return {}
        else:
            try:
                rows = source.tolist() if hasattr(source, "tolist") else [list(row) for row in source]
                rows = [list(row) for row in rows]
            except TypeError:
                self.problems.append(f"{where} is of the type '{type(source).__name__}' and should be a list of rows")
                return {}
            shapes = {len(row) for row in rows}
            if len(rows) != size or shapes - {size}:
                width = "x".join(str(s) for s in sorted(shapes)) or "0"
                self.problems.append(f"{where} is {len(rows)} by {width} and should be {size} by {size}")
                return {}
            entries = {(i, j): entry for i, row in enumerate(rows) for j, entry in enumerate(row)}
        return {(i, j): self.expression(entry, f"{where}[{i}, {j}]") for (i, j), entry in entries.items() if entry != 0}

    def constraint(self, source: SymbolicConstraint | Expr) -> tuple[SymbolicConstraint, Any]:
        """Return a constraint and its expression in the model's own symbols."""
        full = source if isinstance(source, SymbolicConstraint) else SymbolicConstraint(source)
        return full, self.expression(full.expression, f"the constraint '{full.name or full.expression}'", derived=True)

    def signals(self, names: Iterable[str], starts: Mapping[str, float], labels: Labels) -> Signals:
        """Return the signals ``names`` with what ``labels`` says about them."""
        units, nominals, descriptions = ({str(k): v for k, v in m.items()} for m in _texts(labels))
        return Signals(
            Signal(n, units.get(n, ""), nominals.get(n), starts.get(n, 0.0), descriptions.get(n, "")) for n in names
        )

    def check_labels(self, labels: Labels, outputs: Iterable[str]) -> None:
        """Note every label of something that the model does not have, and every nominal that is not positive."""
        names = [*self.symbols, *outputs]
        for values, what in zip(_texts(labels), ("unit", "nominal", "description"), strict=True):
            self.by_name(values, names, what)
        bad = [str(k) for k, v in labels.nominals.items() if not (isinstance(v, SupportsFloat) and float(v) > 0)]
        self.problems += [f"the nominal of '{name}' is not positive" for name in bad]
        texts = {"unit": labels.units, "description": labels.descriptions}
        for what, values in texts.items():
            unread = [str(name) for name, text in values.items() if not isinstance(text, str)]
            self.problems += [f"the {what} of '{name}' is not a text" for name in unread]

    def check_outputs(self, outputs: Mapping[str, Any]) -> None:
        """Note every output that has the name of another quantity without being that quantity."""
        other = self.symbols | self.derived
        wrong = [name for name, c in outputs.items() if name in other and other[name] != c]
        self.problems += [f"the output '{name}' has the name of another quantity" for name in wrong]

    def raise_problems(self) -> None:
        """Raise all problems at once."""
        if self.problems:
            raise UsageError(
                f"The declaration of the model '{self.model}' is not complete: "
                f"{'; '.join(p.rstrip('.') for p in self.problems)}."
            )

    def _meaning(self, name: str, *, derived: bool) -> Any:
        """Return what a name stands for, or None."""
        derived_meaning = self.derived.get(name) if derived else None
        return self.symbols.get(name) if derived_meaning is None else derived_meaning

    def _from_text(self, text: str) -> Any:
        expression = parse(text)
        return expression.to_sympy({n: sympy.Symbol(n, real=True) for n in expression.names})

    def _describe_problem(self, expression: Any, *, derived: bool) -> str:
        if not isinstance(expression, sympy.Expr):
            return f"is not a real expression: {expression}"
        suspects = expression.atoms(*_NOT_REAL, *_UNSOLVED)  # one walk: large models have many expressions
        if any(isinstance(part, _NOT_REAL) for part in suspects):
            return f"is not a real expression: {expression}"
        if suspects:
            return f"contains {sorted(map(str, suspects))[0]}; use symbols, and der(x) for derivatives in outputs"
        names = map(str, expression.free_symbols)
        unknown = sorted(name for name in names if self._meaning(name, derived=derived) is None)
        if not unknown:
            return ""
        candidates = self.symbols | self.derived if derived else self.symbols
        if not derived and any(n.startswith("der(") for n in unknown):
            return f"contains {unknown[0]}: write equations with derivatives on both sides in mass-matrix form"
        return f"contains {', '.join(map(repr, unknown))}, which has no value{_hint(unknown[0], candidates)}"


def build_named_constraint(constraint: SymbolicConstraint, expression: Any, rate: Any | None) -> Constraint:
    """Return a constraint over names from a checked expression over symbols."""
    names = {s: str(s) for e in (expression, rate) if e is not None for s in e.free_symbols}
    return Constraint(
        Expression.from_sympy(expression, names),
        constraint.name,
        constraint.level,
        None if rate is None else Expression.from_sympy(rate, names),
    )


def differentiate_in_time(g: Any, rates: Mapping[Symbol, Any], time: Symbol) -> Any:
    """Return g_t + g_x x' for the ``rates`` x'."""
    return sympy.Add(g.diff(time), *(g.diff(x) * rate for x, rate in rates.items() if x in g.free_symbols))


def vanishes(rate: Any) -> bool:
    """Whether the terms cancel, as for the norm of a quaternion; long ones are not expanded."""
    if rate == 0:
        return True
    if rate.count_ops() >= MAX_EXPANDED_OPERATIONS:
        return False
    numerator, _ = rate.together().as_numer_denom()  # C1/(C1 + C2) + C2/(C1 + C2) - 1 cancels over one denominator only
    return bool(numerator.expand() == 0)


def _texts(labels: Labels) -> tuple[Mapping[Name, Any], ...]:
    return labels.units, labels.nominals, labels.descriptions


def _hint(name: str, candidates: Iterable[str]) -> str:
    close = nearest_names(name, candidates)
    return " (did you mean " + " or ".join(f"'{c}'" for c in close) + "?)" if close else ""


@dataclass(frozen=True)
class ModelArguments:
    """The arguments common to every form of the equations, except the equations, as the author gave them."""

    inputs: Sequence[Name]
    parameters: Mapping[Name, float]
    outputs: Mapping[str, Expr]
    start: Mapping[Name, float]
    labels: Labels

    def declare(self, declaration: Declaration) -> None:
        """Make the symbols of inputs and parameters."""
        declaration.declare(self.inputs, "an input")
        declaration.constants |= set(declaration.declare(self.parameters, "a parameter"))


@dataclass(frozen=True)
class ExplicitEquations:
    """Equations in the form that everything reduces to: W w = r, x' = f(t, x, u, p, w); see ``SymbolicSystem``."""

    states: tuple[Symbol, ...]
    derivatives: Sequence[Any]
    unknowns: Sequence[Symbol] = ()
    W: Mapping[tuple[int, int], Any] = field(default_factory=dict)
    r: Sequence[Any] = ()
    intermediate: Sequence[tuple[Symbol, Any]] = ()
    extra_names: Mapping[str, Any] = field(default_factory=dict)
    laws: Laws | None = None

    def derived_names(self) -> dict[str, Any]:
        """Return what follows from the states by its name: ``der(x)`` of each state, and the further names."""
        rates = {f"der({x})": f for x, f in zip(self.states, self.derivatives, strict=True)}
        return rates | dict(self.extra_names)


def assemble_system(
    declaration: Declaration, equations: ExplicitEquations, constraints: Sequence[Constraint], arguments: ModelArguments
) -> SymbolicSystem:
    """Return the checked system."""
    labels, states = arguments.labels, equations.states
    inputs = tuple(declaration.symbols[str(n)] for n in arguments.inputs)
    parameters = tuple(declaration.symbols[str(n)] for n in arguments.parameters)
    outputs = {
        name: declaration.expression(c, f"the output '{name}'", derived=True) for name, c in arguments.outputs.items()
    }
    starts = declaration.numbers(arguments.start, (*states, *inputs), "start value")
    values = declaration.numbers(arguments.parameters, parameters, "value")
    declaration.check_labels(labels, outputs)
    declaration.check_outputs(outputs)
    state_names = {str(s) for s in states}
    independent = tuple(map(str, labels.independent))
    declaration.problems += [
        f"the independent coordinate '{n}' is not a state" for n in independent if n not in state_names
    ]
    declaration.raise_problems()
    return SymbolicSystem(
        name=declaration.model,
        time=declaration.time,
        states=states,
        inputs=inputs,
        parameters={s: values[str(s)] for s in parameters},
        derivatives=tuple(equations.derivatives),
        outputs=tuple(outputs.values()),
        state_signals=declaration.signals(map(str, states), starts, labels),
        input_signals=declaration.signals(map(str, inputs), starts, labels),
        output_signals=declaration.signals(outputs, {}, labels),
        parameter_signals=declaration.signals(map(str, parameters), values, labels),
        unknowns=tuple(equations.unknowns),
        matrix={position: entry for position, entry in equations.W.items() if entry != 0},
        right_hand_side=tuple(equations.r),
        laws=equations.laws,
        constraints=tuple(constraints),
        description=labels.description,
        intermediate=tuple(equations.intermediate),
        extra_names=dict(equations.extra_names),
        independent=independent,
    )
