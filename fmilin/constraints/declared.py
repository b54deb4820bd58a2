"""Constraints on the states: as declared, and bound to a model's variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.expression_functions import ExpressionFunctions
from fmilin.constraints.expressions import Expression, ExpressionError, parse
from fmilin.errors import ConstraintError, UnknownNameError
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass

if TYPE_CHECKING:
    from casadi import SX

LONGEST_LABEL = 200  # characters of an expression that stands for a name in a message
Level = Literal["position", "velocity"]


@dataclass(frozen=True)
class Constraint:
    """One scalar equation ``expression = 0`` that the model's motion keeps."""

    expression: Expression  #: over states, parameters, ``time`` and other variables of the model
    name: str = ""  #: for messages; the expression's text when empty
    #: ``"position"``, to which fmilin adds the hidden constraint, its time derivative; ``"velocity"``, complete as it
    #: is, as nonholonomic constraints are
    level: Level = "position"
    #: the time derivative of a position-level constraint where the model provides it; else fmilin derives it
    rate: Expression | None = None

    def __post_init__(self) -> None:
        if isinstance(self.expression, str) or isinstance(self.rate, str):
            raise ConstraintError(
                "The expression of a constraint must be parsed from a text: "
                f"Constraint.from_text({str(self.expression)!r}, level={self.level!r}) does that."
            )
        if self.level not in ("position", "velocity"):
            raise ConstraintError(f"The level of a constraint must be 'position' or 'velocity', not {self.level!r}.")

    @property
    def label(self) -> str:
        """The name for messages: a long text is shortened."""
        if self.name or len(self.expression.text) <= LONGEST_LABEL:
            return self.name or self.expression.text
        half = LONGEST_LABEL // 2
        return f"{self.expression.text[:half]} ... {self.expression.text[-half:]}"

    @classmethod
    def from_text(cls, text: str, *, name: str = "", level: Level = "position", rate: str | None = None) -> Constraint:
        """Return a constraint for ``text``: an expression, a variable, or an equation, where ``a = b`` means a - (b).

        Raises ConstraintError when the text is not an expression of the grammar.

        Parameters
        ----------
        text : str
        level : {"position", "velocity"}
            Whether a hidden constraint on velocities belongs to it.
        name : str
            What it is called in messages.
        rate : str
            The variable that is its time derivative, where the model has one.
        """
        if not isinstance(text, str) or not isinstance(rate, str | None):
            kind = type(rate if isinstance(text, str) else text).__name__
            raise ConstraintError(f"A constraint must be a text, as 'x^2 + y^2 - 1', not of the type '{kind}'.")
        try:
            return cls(parse(_difference(text)), name, level, None if rate is None else parse(rate))
        except ExpressionError as error:
            raise ConstraintError(str(error)) from None


def _difference(text: str) -> str:
    """Return ``(a) - (b)`` for ``a = b``, and other texts as they are."""
    sides = re.split(r"=(?=(?:[^`]*`[^`]*`)*[^`]*$)", text)  # not one inside backquotes
    if len(sides) != 2 or not all(side.strip() for side in sides):
        return text
    return f"({sides[0].strip()}) - ({sides[1].strip()})"


@dataclass(frozen=True, slots=True)
class ResidualRow:
    """One scalar residual: a declared constraint, or the rate that was declared with it."""

    name: str
    expression: Expression
    level: Level
    needs_rate: bool


@dataclass(frozen=True, slots=True)
class ResidualPartials:
    """Partial derivatives of the residuals g(t, x, u, z), one row each."""

    time: FloatArray  # shape (m,)
    states: FloatArray  # shape (m, N)
    inputs: FloatArray  # shape (m, nu)
    observed: FloatArray  # shape (m, nz)


class Constraints:
    """Declared constraints, bound to a model: residuals g(t, x, u, z) and their exact partial derivatives.

    z are the values of ``observed``: variables of the model that are neither states, inputs, parameters nor time (a
    loop gap computed inside the model, say). The m rows are the declared constraints, then the rates declared with
    them; ``variables`` (m,) are the positions in (t, x, u, z) of residuals that are nothing but a variable.
    """

    def __init__(
        self,
        declared: Iterable[Constraint],
        states: Signals,
        inputs: Signals,
        *,
        parameters: Mapping[str, float] | None = None,
        other: Callable[[str], str | None] = lambda _: None,
        offered: Iterable[str] = (),
    ) -> None:
        self.declared = tuple(declared)
        if other_kinds := [c for c in self.declared if not isinstance(c, Constraint)]:
            raise ConstraintError(
                f"A constraint is of the type '{type(other_kinds[0]).__name__}': give a text, or "
                "fl.Constraint.from_text(text)."
            )
        self.rows = _rows(self.declared)
        self.parameters = parameters = parameters or {}  # maybe read from a running model: not copied
        observed: dict[str, int] = {}
        used: dict[str, float] = {}
        index: dict[str, int] = {}
        n, k = len(states), len(inputs)
        for name in dict.fromkeys(n for row in self.rows for n in row.expression.names):
            if states.has(name):
                index[name] = 1 + states.positions[name]
            elif inputs.has(name):
                index[name] = 1 + n + inputs.positions[name]
            elif name in parameters:
                used[name] = parameters[name]
            elif (canonical := other(name)) is not None:
                index[name] = 1 + n + k + observed.setdefault(canonical, len(observed))
            elif name == "time":
                index[name] = 0
            else:
                where = next(row.name for row in self.rows if name in row.expression.names)
                names = dict.fromkeys([*states.positions, *inputs.positions, *parameters, *offered])
                error = UnknownNameError.among(name, names, "a variable of the model")
                raise ConstraintError(f"In the constraint '{where}': {error}")
        _require_motion(self.declared, index)
        self.observed = tuple(observed)
        self._sizes = (1, n, k, len(observed))
        self._functions = ExpressionFunctions([row.expression for row in self.rows], index, sum(self._sizes), used)
        contains = np.zeros((len(self.rows), sum(self._sizes)), dtype=np.bool_)
        for i, row in enumerate(self.rows):
            contains[i, [index[name] for name in row.expression.names if name in index]] = True
        self.structure, self.input_structure = contains[:, 1 : 1 + n], contains[:, 1 + n : 1 + n + k]
        self.time_dependent = bool(contains[:, 0].any())
        self.analytic = np.logical_not(contains[:, 1 + n + k :].any(axis=1))
        self.hidden = [i for i, row in enumerate(self.rows) if row.needs_rate]
        self.prescribing = np.flatnonzero(self.input_structure.any(axis=0)).tolist()
        self.variables: NDArray[np.intp] | None = None
        if all(row.expression.is_variable and row.expression.names[0] in index for row in self.rows):
            self.variables = np.array([index[row.expression.names[0]] for row in self.rows], dtype=np.intp)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """One name per residual."""
        return tuple(row.name for row in self.rows)

    def residuals(self, t: float | FloatArray, x: FloatArray, u: FloatArray, z: FloatArray) -> FloatArray:
        """Return g, shape (m,); or (..., m) at many points x (..., N), u (..., nu), z (..., nz), t or t (...)."""
        if not self.rows:
            return np.empty((*x.shape[:-1], 0))
        s = self._arguments(t, x, u, z)
        if self.variables is not None:
            values: FloatArray = s[..., self.variables]  # nothing to compute: CasADi need not be loaded
            return values
        return self._functions.values(s)

    def graph(self, t: SX, x: SX, u: SX, z: SX, parameters: Mapping[str, SX] | None = None) -> SX:
        """Return g as a column of CasADi's nodes for such columns t, x, u and z, and nodes for parameters by name."""
        import casadi as ca

        column: SX = self._functions.graph(ca.vertcat(t, x, u, z), parameters)
        return column

    def partials(self, t: float | FloatArray, x: FloatArray, u: FloatArray, z: FloatArray) -> ResidualPartials:
        """Return the exact partial derivatives of g; at many points (..., n) with these axes in front."""
        if self.variables is not None:
            full = np.zeros((len(self.rows), sum(self._sizes)))
            full[np.arange(len(self.rows)), self.variables] = 1.0
            return self._split(full)
        return self._split(self._functions.jacobian(self._arguments(t, x, u, z)))

    def along(self, point: tuple[float, FloatArray, FloatArray, FloatArray], directions: FloatArray) -> FloatArray:
        """Return the derivatives of g at ``point`` = (t, x, u, z) along columns of (x, u, z), shape (m, k)."""
        moved = np.vstack((np.zeros((1, directions.shape[1])), directions))
        if self.variables is not None:
            return np.asarray(moved[self.variables])
        return self._functions.along(self._arguments(*point), moved)

    def gradient(self, point: tuple[float, FloatArray, FloatArray, FloatArray], z_x: FloatArray) -> FloatArray:
        """Return derivatives of g by the states, (..., m, N), with those of z, (..., nz, N), at one or more points."""
        if self.variables is None:
            g = self.partials(*point)
            slopes: FloatArray = g.states + g.observed @ z_x
            return slopes
        # Every row is one variable: a quantity or a state; an input or time moves nothing.
        _, n, k, _ = self._sizes
        fixed = np.concatenate((np.zeros((1, n)), np.eye(n), np.zeros((k, n))))
        batch = z_x.shape[:-2]
        rows = np.concatenate((np.broadcast_to(fixed, (*batch, *fixed.shape)), z_x), axis=-2)
        return rows[..., self.variables, :]

    def curvature(
        self, t: float, x: FloatArray, u: FloatArray, w: FloatArray, u_dot: FloatArray | None = None
    ) -> ResidualPartials:
        """Return the partials of g_x w + g_u u_dot + g_t, w (N,) and u_dot (nu,) held; NaN where not analytic."""
        if self.variables is not None:
            full = np.zeros((len(self.rows), sum(self._sizes)))
        else:
            unknown = np.zeros(self._sizes[3])
            rates = np.zeros(self._sizes[2]) if u_dot is None else u_dot
            along = self._arguments(1.0, w, rates, unknown)
            full = self._functions.curvature(self._arguments(t, x, u, unknown), along)
        full[~self.analytic] = np.nan
        return self._split(full)

    def _arguments(self, t: float | FloatArray, x: FloatArray, u: FloatArray, z: FloatArray) -> FloatArray:
        """Return s = (t, x, u, z), shape (..., 1 + N + nu + nz)."""
        _, n, k, _ = self._sizes
        s = np.empty((*x.shape[:-1], sum(self._sizes)))
        s[..., 0] = t
        s[..., 1 : 1 + n] = x
        s[..., 1 + n : 1 + n + k] = u
        s[..., 1 + n + k :] = z
        return s

    def _split(self, full: FloatArray) -> ResidualPartials:
        _, n, k, _ = self._sizes
        return ResidualPartials(
            full[..., 0], full[..., 1 : 1 + n], full[..., 1 + n : 1 + n + k], full[..., 1 + n + k :]
        )


def _rows(declared: Sequence[Constraint]) -> tuple[ResidualRow, ...]:
    rows = [ResidualRow(c.label, c.expression, c.level, c.level == "position" and c.rate is None) for c in declared]
    rates = [
        ResidualRow(f"rate of {c.label}", c.rate, "velocity", needs_rate=False) for c in declared if c.rate is not None
    ]
    return tuple(rows + rates)


def _require_motion(declared: Sequence[Constraint], moving: Container[str]) -> None:
    for constraint in declared:
        if not any(name in moving for name in constraint.expression.names):
            raise ConstraintError(
                f"The constraint '{constraint.expression.text}' contains only numbers and parameters, so it does not "
                'constrain the motion. Write it with the states of the model, as in "x^2 + y^2 - L^2".'
            )
