"""Parameters that are inputs of a linear model: which values of them stand in a running FMU, and which are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.layout import Layout, Scalar
from fmilin.fmi.read.settings import Setting
from fmilin.signals import FloatArray

__all__ = ["Tuning"]


class Tuning:
    """What the views of a running FMU have made of its parameters.

    Attributes
    ----------
    held : mapping of Variable to tuple of float
        Those that were ever moved, as they stand.
    live : bool
        Whether they may be moved while the FMU runs, where it declares them tunable.
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
