"""Parameters that are inputs of a linear model: which values of them stand in a running FMU, and which are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fmilin.fmi.read.description import Description, Variable
from fmilin.fmi.read.elements import shortened
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.layout import Layout, Scalar
from fmilin.fmi.read.settings import Setting
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray

__all__ = ["Tuning", "is_parameter", "require_tunable"]


class Tuning:
    """What the views of a running FMU have made of its parameters.

    ``held``: those that were ever moved, as they stand. ``live``: whether they may be moved while the FMU runs, where
    it declares them tunable.
    """

    def __init__(self) -> None:
        self.held: Mapping[Variable, tuple[float, ...]] = {}
        self.live = True
        self._first: dict[Variable, tuple[float, ...]] = {}
        self._asked: tuple[Sequence[Scalar], bytes] = ((), b"")

    def settings(self, base: Sequence[Setting]) -> tuple[Setting, ...]:
        """Return what a fresh instance is given: ``base``, but parameters as they stand."""
        own = (s for s in base if s.variable not in self.held)
        return (*own, *(Setting(v, values) for v, values in self.held.items()))

    def change(
        self, instance: Instance, layout: Layout, parameters: Sequence[Scalar], values: FloatArray
    ) -> list[Setting]:
        """Note that ``parameters`` are to have ``values``, and all others their first ones; return what changes."""
        asked = (parameters, values.tobytes())
        if asked[0] is self._asked[0] and asked[1] == self._asked[1]:
            return []
        for scalar in parameters:
            v = scalar.variable
            if v not in self._first:
                self._first[v] = tuple(instance.values(v, layout.size(v)))
        wanted = {v: list(numbers) for v, numbers in self._first.items()}
        for scalar, value in zip(parameters, values.tolist(), strict=True):
            wanted[scalar.variable][scalar.offset] = value
        before, self.held = self.held, {v: tuple(numbers) for v, numbers in wanted.items()}
        self._asked = asked
        return [Setting(v, x) for v, x in self.held.items() if before.get(v, self._first[v]) != x]


def is_parameter(layout: Layout, scalar: Scalar) -> bool:
    """Whether a scalar is a parameter or constant, and neither state, input nor derivative."""
    return layout.place(scalar) is None and scalar.variable.is_parameter


def require_tunable(description: Description, scalar: Scalar, *, only_tunable: bool) -> None:
    """Refuse a parameter that cannot be an input, with ``only_tunable`` also one that is fixed."""
    v = scalar.variable
    if not v.is_float or not v.is_settable or v.causality == "structuralParameter":
        what = "is calculated by the model" if v.is_float and not v.is_settable else "is no continuous number"
        raise UsageError(f"The parameter '{scalar.name}' cannot be an input of a linear model: it {what}.")
    if only_tunable and (v.variability != "tunable" or v.dimensions):
        every = description.with_causality("parameter")
        tunable = [p.name for p in every if p.variability == "tunable" and p.is_float and not p.dimensions]
        others = f"Tunable are: {shortened(tunable)}." if tunable else "It has no tunable ones."
        raise UsageError(
            f"The parameter '{scalar.name}' cannot be an input: a co-simulation FMU takes parameters between two "
            f"steps only where they are tunable and no arrays. {others} Through model exchange (--interface me) "
            "fixed ones can be inputs, too; or compare models at two of its values (--set)."
        )
