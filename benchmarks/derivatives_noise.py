"""A model with artificial noise, as an iterative solver inside it would leave."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.interface import Evaluation, Model
from fmilin.signals import FloatArray


class Noisy(Model):
    """Adds noise to the rates, random from point to point and the same at the same point; no exact products.

    Rates that are states (the velocities of positions) stay as they are. The size of a rate is its state's size
    times the fastest rate at the start, or 1/s.
    """

    def __init__(self, source: Model, level: float) -> None:
        self.source, self.level = source, level
        self.info, self.states, self.inputs, self.outputs = source.info, source.states, source.inputs, source.outputs
        self.constraints, self.start, self.copies = source.constraints, source.start, source.copies
        self.independent = source.independent
        start = source.start
        scales = source.states.scales(start.states)
        rates = source.evaluate(start.time, start.states, start.inputs).derivatives
        self.sizes = level * scales * max(1.0, float(np.max(np.abs(rates) / scales, initial=0.0)))
        self.sizes[list(kinematic_pairs(source, start))] = 0.0

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        visit = self.source.evaluate(t, x, u)
        random = np.random.default_rng(zlib.crc32(np.concatenate(([t], x, u)).tobytes()))
        noise = self.sizes * random.uniform(-1.0, 1.0, len(x))
        return Evaluation(visit.derivatives + noise, visit.outputs, visit.residuals)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        return Noisy(self.source.with_interface(inputs, outputs), self.level)

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        return Noisy(self.source.with_constraints(constraints), self.level)
