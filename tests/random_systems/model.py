"""A random system as a Model."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fmilin import Constraint, Evaluation, Model
from fmilin.adapters import ModelInfo
from fmilin.constraints import Constraints
from fmilin.model.interface import Copy
from fmilin.signals import FloatArray, Signal, Signals
from tests.random_systems.recipe import Recipe
from tests.random_systems.system import TINY, HiddenSystem

__all__ = ["HiddenModel", "hidden_system"]


class HiddenModel(Model):
    """A :class:`HiddenSystem` as a Model, with exact directional derivatives or without."""

    def __init__(self, system: HiddenSystem) -> None:
        self.system, recipe = system, system.recipe
        known = recipe.decades > 0 or recipe.seed % 2
        nominals = system.scales.tolist() if known else [None] * recipe.size
        self.info = ModelInfo("hidden")
        self.start = system.start
        starts = self.start.states.tolist()
        names = recipe.names
        self.states = Signals(Signal(n, "", s, x) for n, s, x in zip(names, nominals, starts, strict=True))
        self.inputs = Signals(Signal(f"u[{i}]", "", size) for i, size in enumerate(system.input_sizes.tolist()))
        self.outputs = Signals(["position", "sensor", "rate"])
        self.copies = {0: Copy("state", int(system.noticed[0]))}
        key = replace(recipe, seed=0, at_rest=True, exact=True, noise=0.0)
        self.constraints, self._observed = _bound_constraints(key)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        rates, out, residuals = (part[:, 0] for part in self.system.visit(t, x[:, None], u[:, None]))
        noise = self._noise(t, x, u)
        n = len(self.states)
        g = self.constraints.residuals(t, x, u, residuals[self._observed])
        return Evaluation(rates + noise[:n], out + noise[n:], g)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        if not self.system.recipe.exact:
            return None
        stepped = self.system.visit(t, x[:, None] + 1j * TINY * dx, u[:, None] + 1j * TINY * du)
        rates, out, residuals = (part.imag / TINY for part in stepped)
        along = self.constraints.partials(t, x, u, np.empty(0)).states @ dx if not len(self._observed) else None
        return Evaluation(rates, out, residuals[self._observed] if along is None else along)

    def _noise(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return noise that is random from point to point and the same at the same point."""
        system, n = self.system, len(self.states)
        noise = np.zeros(n + 3)
        if system.recipe.noise:
            random = np.random.default_rng(zlib.crc32(np.concatenate(([t], x, u)).tobytes()))
            first = 0 if system.recipe.is_first_order else n // 2
            size = np.concatenate((system.rate * system.scales, [0.0, 1.0, 0.0]))
            noise[first:] = (system.recipe.noise * size * random.uniform(-1.0, 1.0, n + 3))[first:]
            noise[n + 2] = noise[system.noticed[1]]
        return noise

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        raise NotImplementedError

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        raise NotImplementedError


@lru_cache(maxsize=64)
def _bound_constraints(recipe: Recipe) -> tuple[Constraints, NDArray[np.intp]]:
    """Return the constraints, shared by all systems of one geometry, and which of the model's variables they are."""
    count = 2 * recipe.m + recipe.repeated
    observed = {f"gap[{i}]": i for i in range(count)} if recipe.measured else {}
    declared = HiddenSystem(recipe).declared() if recipe.m else []
    inputs = Signals(["u[0]", "u[1]"])
    bound = Constraints(declared, Signals(recipe.names), inputs, other=lambda n: n if n in observed else None)
    return bound, np.array([observed[name] for name in bound.observed], dtype=np.intp)


def hidden_system(recipe: Recipe) -> tuple[HiddenSystem, HiddenModel]:
    """Return the system of a recipe and its model; a system that moves with time is not at rest."""
    system = HiddenSystem(replace(recipe, at_rest=recipe.at_rest and not recipe.moving))
    return system, HiddenModel(system)
