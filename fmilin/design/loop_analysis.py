"""Loops of a sampled regulator around its linear plant: L at each input and output, sensitivity peaks, poles.

What is read at a sample depends on the inputs that were held before it; at each wire L is what comes back for what is
sent, as wired: the critical point is +1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.design.laws import linear_law
from fmilin.design.margins import Margins, margins
from fmilin.diagnostics import Remark
from fmilin.errors import UnknownNameError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.sparse import change_fields
from fmilin.signals import FloatArray, Signal, Signals

FREQUENCY_COUNT = 2000  # at which sensitivities are evaluated before their peaks are refined
MIN_FREQUENCY_FACTOR = 1e-5  # of half the sampling frequency
REFINEMENTS = 4  # of a peak between its neighbours, each ten times finer


@dataclass(frozen=True, eq=False)
class WireLoop:
    """L at one wire with the others closed."""

    loop: LinearModel  #: as :func:`fmilin.loop_transfer` returns it
    margins: Margins
    peaks: tuple[float, float]  #: of |S| and |T|


@dataclass(frozen=True, eq=False)
class LoopAnalysis:
    """The loops of a regulator, by the name of the wire, and the poles z of the closed loop.

    ``loops["torque"]`` is the loop at that wire: ``.loop`` is L as a linear model, with ``.margins`` and ``.peaks``.
    """

    wires: Mapping[str, WireLoop]
    poles: NDArray[np.complex128]
    is_stable: bool

    def __getitem__(self, name: str) -> WireLoop:
        """Return the loop at a driven input or a measured output."""
        if name not in self.wires:
            raise UnknownNameError.among(name, self.wires, "a driven input or a measured output of the regulator")
        return self.wires[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.wires)

    def __len__(self) -> int:
        return len(self.wires)


def analyse_loops(plant: LinearModel, sampled: LinearModel, law: LinearModel) -> LoopAnalysis:
    """Return the loops at all driven inputs and all measured outputs.

    The first inputs of the ``law`` are the outputs of the plant; ``sampled`` is the plant at its samples.
    """
    drives = law.outputs.names
    columns = [plant.inputs.index_of(name) for name in drives]
    P, m = len(sampled.A), len(plant.outputs)
    A, C = sampled.A, sampled.C
    B, D = sampled.B[:, columns], sampled.D[:, columns]
    k = len(columns) if D.any() else 0  # of the inputs that were held before, which outputs show at once
    law_B, law_D = law.B[:, :m], law.D[:, :m]
    n = len(law.A)
    size = P + k + n
    Y = np.hstack(
        (C, D[:, :k], np.zeros((m, n)))
    )  # of plant states, the inputs that were held before, states of the law
    X = np.zeros((size, size))
    X[:P, :P] = A
    X[P + k :, P + k :] = law.A
    U = np.hstack((np.zeros((len(columns), P + k)), law.C))
    from_u = np.vstack((B, np.eye(len(columns))[:k], np.zeros((n, len(columns)))))
    from_y = np.vstack((np.zeros((P + k, m)), law_B))
    answers = U + law_D @ Y
    closed = X + from_y @ Y + from_u @ answers
    poles = np.linalg.eigvals(closed).astype(np.complex128)
    wires: dict[str, WireLoop] = {}
    for j, name in enumerate(drives):
        closed_others = closed - np.outer(from_u[:, j], answers[j])
        signal = plant.inputs[columns[j]]
        wires[name] = _analyse_wire(law, (closed_others, from_u[:, [j]], answers[[j]]), name, signal)
    for i, name in enumerate(plant.outputs.names):
        sent = from_y[:, [i]] + from_u @ law_D[:, [i]]
        closed_others = closed - sent @ Y[[i]]
        unique = name if name not in wires else f"output {name}"
        wires[unique] = _analyse_wire(law, (closed_others, sent, Y[[i]]), unique, plant.outputs[i])
    return LoopAnalysis(wires, poles, bool(np.abs(poles).max(initial=0.0) < 1))


def _analyse_wire(
    law: LinearModel, matrices: tuple[FloatArray, FloatArray, FloatArray], name: str, signal: Signal
) -> WireLoop:
    A, B, C = matrices
    states = Signals(Signal(f"x[{i}]") for i in range(len(A)))
    wire = Signals([Signal(name, signal.unit)])
    text = f"L at {name}: the returned signal per signal sent; signs are as wired, so that S = 1/(1 - L)."
    matrices_of_loop = A, B, C, np.zeros((1, 1))
    plain = linear_law("loop", law, matrices_of_loop, (states, wire, wire), law.sample_time)
    loop = change_fields(plain, warnings=(Remark("loop", text),))
    return WireLoop(loop, margins(loop), find_sensitivity_peaks(loop))


def find_sensitivity_peaks(loop: LinearModel) -> tuple[float, float]:
    """Return the peaks of |S| and |T| of a sampled loop at one wire."""
    highest = np.pi / loop.sample_time
    w = np.geomspace(MIN_FREQUENCY_FACTOR * highest, highest, FREQUENCY_COUNT)
    rates = np.abs(np.log(np.linalg.eigvals(loop.A + loop.B @ loop.C).astype(np.complex128) + 1e-300).imag)
    near = rates / loop.sample_time
    w = np.unique(np.concatenate((w, near[near > w[0]])))
    peaks = []
    for part in (0, 1):
        grid = w
        for _ in range(REFINEMENTS):
            values = _evaluate_sensitivity(loop, grid, part)
            k = int(np.argmax(values))
            peak = float(values[k])
            grid = np.linspace(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)], 21)
        peaks.append(peak)
    return peaks[0], peaks[1]


def _evaluate_sensitivity(loop: LinearModel, w: FloatArray, part: int) -> FloatArray:
    S = 1 / (1 - loop.frequency_response(w)[0, 0])
    return np.asarray(np.abs(S if part == 0 else 1 - S))
