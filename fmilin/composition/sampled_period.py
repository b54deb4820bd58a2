"""Sampled members and a plant over their common period, lifted: a product of exact steps from instant to instant.

At an instant all members that are due answer, y = C x + D v, and what they answer is held. A member reads the answers
of others at the same instant, where these are due, and outputs of the plant as they are just before it. Then the states
of members that were due move on, x = A x + B v + f0, and the plant moves to the next instant with its inputs held. All
quantities are deviations from the point, over unit states, unit inputs and one column for the drift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import expm

from fmilin.composition.master import OneStep, output_name
from fmilin.composition.system import ConnectedModel
from fmilin.errors import NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray


@dataclass(frozen=True)
class SamplingPattern:
    """When a sampled member is due: at base steps ``phase``, ``phase + every``, ..."""

    steps_between: int
    phase: int = 0

    def is_due(self, step: int) -> bool:
        """Return whether the member is due at the beginning of a base step."""
        return step % self.steps_between == self.phase


def compute_period(
    model: ConnectedModel,
    members: Sequence[LinearModel],
    patterns: Mapping[str, SamplingPattern],
    base: float,
    count: int,
) -> OneStep:
    """Return the states and outputs over ``count`` base steps; ``members`` in the order of the model, one the plant.

    The states are those of the members, then the held outputs that something reads before they are answered anew.
    """
    return _Period(model, members, patterns, base).run(count)


class _Period:
    """The quantities of all members at an instant, as rows over states, inputs and drift at the start."""

    def __init__(
        self,
        model: ConnectedModel,
        members: Sequence[LinearModel],
        patterns: Mapping[str, SamplingPattern],
        base: float,
    ) -> None:
        coupling = model.coupling
        self._model, self._members = model, members
        self._names = [part.name for part in coupling.parts]
        self._patterns = [patterns.get(name) for name in self._names]
        self._plant = self._patterns.index(None)
        self._inputs, self._outputs = coupling.inputs, coupling.outputs
        counts = [len(linear.states) for linear in members]
        ends = np.cumsum([0, *counts])
        self._states = [slice(a, b) for a, b in pairwise(ends.tolist())]
        self._state_count, output_count, self._input_count = int(ends[-1]), coupling.size[2], len(model.inputs)
        plant_rows = self._outputs[self._plant]
        is_plant = [plant_rows.start <= j < plant_rows.stop for j in range(output_count)]
        self._held_rows = np.flatnonzero(~np.array(is_plant, dtype=bool))
        width = self._state_count + len(self._held_rows) + self._input_count + 1
        self._x = np.eye(self._state_count, width)
        self._outside = np.eye(self._input_count, width, self._state_count + len(self._held_rows))
        self._read = np.zeros((output_count, width))
        self._read[self._held_rows] = np.eye(len(self._held_rows), width, self._state_count)
        K, L = coupling.wires.selections(output_count, self._input_count)
        self._K, self._L = np.asarray(K.todense()), np.asarray(L.todense())
        self._order = self._sort_members()
        self._move = _discretize(members[self._plant], base)

    def _sort_members(self) -> list[int]:
        """Return the sampled members so that each follows those of which its outputs depend on answers at once."""
        sampled = [i for i in range(len(self._members)) if i != self._plant]
        before = {
            i: {j for j in sampled if (self._members[i].D @ self._K[self._inputs[i], self._outputs[j]]).any()}
            for i in sampled
        }
        return sort_answers(before, self._names)

    def run(self, count: int) -> OneStep:
        """Return the whole period."""
        out = np.empty((0, 0))
        for step in range(count):
            self._answer(step)
            if step == 0:
                out = self._read[self._model._output_taps] * self._model._changes[:, :1]
            self._advance(step)
        return self._select(np.vstack((self._x, self._read[self._held_rows])), out)

    def _feed(self, member: int) -> FloatArray:
        """Return the inputs of a member by what can be read now."""
        v = self._inputs[member]
        inputs: FloatArray = self._K[v] @ self._read + self._L[v] @ self._outside
        return inputs

    def _answer(self, step: int) -> None:
        """Let the plant show its outputs, and all members that are due answer."""
        plant, linear = self._plant, self._members[self._plant]
        self._read[self._outputs[plant]] = linear.C @ self._x[self._states[plant]] + linear.D @ self._feed(plant)
        for i in self._order:
            pattern = self._patterns[i]
            if pattern is not None and pattern.is_due(step):
                member = self._members[i]
                self._read[self._outputs[i]] = member.C @ self._x[self._states[i]] + member.D @ self._feed(i)

    def _advance(self, step: int) -> None:
        """Move on the states of members that were due, and the plant to the next base step."""
        x = self._x.copy()
        for i in self._order:
            pattern = self._patterns[i]
            if pattern is not None and pattern.is_due(step):
                member = self._members[i]
                x[self._states[i]] = member.A @ self._x[self._states[i]] + member.B @ self._feed(i)
                x[self._states[i], -1] += member.f0
        Phi, Gamma, drift = self._move
        rows = self._states[self._plant]
        x[rows] = Phi @ self._x[rows] + Gamma @ self._feed(self._plant)
        x[rows, -1] += drift
        self._x = x

    def _select(self, transition: FloatArray, out: FloatArray) -> OneStep:
        """Leave out held outputs that nothing reads before they are answered anew."""
        needed = np.ones(len(transition), dtype=bool)
        while True:
            readers = np.vstack((transition[needed], out))
            still = needed.copy()
            still[self._state_count :] &= readers[:, self._state_count : len(transition)].any(axis=0)
            if (still == needed).all():
                break
            needed = still
        columns = np.concatenate((needed, np.ones(self._input_count + 1, dtype=bool)))
        selected_rows = self._held_rows[needed[self._state_count :]]
        names = [output_name(self._model, int(j)) for j in selected_rows]
        return OneStep(transition[needed][:, columns], out[:, columns], names)


def _discretize(linear: LinearModel, step: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what the plant does over a step with held inputs: x+ = Phi x + Gamma v + drift."""
    n, k = linear.B.shape
    M = np.zeros((n + k + 1, n + k + 1))
    M[:n] = np.hstack((linear.A, linear.B, linear.f0[:, None])) * step
    E = expm(M)[:n]
    return E[:, :n], E[:, n : n + k], E[:, n + k]


def sort_answers(before: Mapping[int, set[int]], names: Sequence[str]) -> list[int]:
    """Return sampled members so that each follows those to which it answers at once; NumericalError of a loop."""
    order: list[int] = []
    while len(order) < len(before):
        ready = [i for i, sources in before.items() if i not in order and sources <= set(order)]
        if not ready:
            loop = ", ".join(names[i] for i in before if i not in order)
            raise NumericalError(
                f"The sampled members {loop} form an algebraic loop: each answers at once to an answer of another at "
                "the same instant. Let one of them have a delay of a sample, or combine them into one."
            )
        order += ready
    return order
