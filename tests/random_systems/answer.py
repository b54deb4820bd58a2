"""The known answer, and coordinates to give it in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fmilin.signals import FloatArray
from tests.random_systems.recipe import Values

__all__ = ["Chosen", "Reference", "relative_error"]


@dataclass(frozen=True)
class Chosen:
    """Coordinates R x + b sin(Q x), one entry in each row of Q: linear ones without b."""

    R: FloatArray
    b: FloatArray = field(default_factory=lambda: np.zeros(0))
    Q: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def values(self, x: Values) -> Values:
        linear: Values = self.R @ x
        return linear + self.b[:, None] * np.sin(self.Q @ x) if self.b.any() else linear

    def rates(self, x: Values, rates: Values) -> Values:
        linear: Values = self.R @ rates
        return linear + self.b[:, None] * np.cos(self.Q @ x) * (self.Q @ rates) if self.b.any() else linear

    def texts(self, names: Sequence[str]) -> list[str]:
        """Return the coordinates as fmilin reads them, for R a choice of states."""
        result = []
        for i, (r, b, q) in enumerate(zip(self.R, self.b, self.Q, strict=True)):
            j = int(np.argmax(np.abs(q)))
            result.append(f"c{i} = {names[int(np.argmax(r))]} + {float(b)!r}*sin({float(q[j])!r}*{names[j]})")
        return result


@dataclass(frozen=True)
class Reference:
    """The known linear model, the sizes of its coordinates, and their condition number."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    T: FloatArray
    f0: FloatArray
    sizes: FloatArray
    condition: float


def relative_error(found: FloatArray, true: FloatArray, rows: FloatArray, columns: FloatArray) -> float:
    """Return the largest error over the largest entry, in units of size ``rows`` (r,) per ``columns`` (c,)."""
    if not true.size:
        return 0.0
    largest = float(np.max(np.abs(true) * columns / rows[:, None]))
    worst = float(np.max(np.abs(found - true) * columns / rows[:, None]))
    return worst / largest if largest > 0 else worst
