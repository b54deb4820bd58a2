"""One step of a co-simulation's master as a matrix, and the base step of several sample times."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag, expm

from fmilin.composition.system import ConnectedModel
from fmilin.composition.system_declaration import qualify
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray

MASTERS = ("jacobi", "gauss-seidel")


@dataclass(frozen=True, slots=True)
class Master:
    """How values are passed on."""

    kind: str = "jacobi"
    # of the members that a Gauss-Seidel master steps one after the other; as they were connected by default
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in MASTERS:
            raise UsageError(f"'{self.kind}' is not a master: use {' or '.join(MASTERS)}.")
        if self.order and self.kind == "jacobi":
            raise UsageError("A Jacobi master steps all members at once. Give an order only with 'gauss-seidel'.")

    def numbers(self, members: Sequence[str]) -> list[int]:
        """Return the members' numbers in the order of their steps."""
        if not self.order:
            return list(range(len(members)))
        if sorted(self.order) != sorted(members):
            raise UsageError(f"The order {','.join(self.order)} must name every member once: {', '.join(members)}.")
        return [list(members).index(name) for name in self.order]


class LinearizedMember(NamedTuple):
    """A member as it is linearized: continuous, or sampled at the step."""

    name: str
    linear: LinearModel


class DiscretizedMember(NamedTuple):
    """A member over one step with held inputs, in deviations from the point: x+ = Phi x + Gamma v + drift."""

    Phi: FloatArray
    Gamma: FloatArray
    drift: FloatArray
    C: FloatArray
    D: FloatArray
    samples: bool  # whether its outputs are those of the beginning of the step, held


def discretize_member(linear: LinearModel, step: float) -> DiscretizedMember:
    """Return a member over a step; a sampled one is due at its beginning."""
    if linear.sample_time:
        return DiscretizedMember(linear.A, linear.B, linear.f0, linear.C, linear.D, samples=True)
    n, k = linear.B.shape
    M = np.zeros((n + k + 1, n + k + 1))
    M[:n] = np.hstack((linear.A, linear.B, linear.f0[:, None])) * step
    E = expm(M)[:n]
    return DiscretizedMember(E[:, :n], E[:, n : n + k], E[:, n + k], linear.C, linear.D, samples=False)


class OneStep(NamedTuple):
    """A step of the whole, in deviations from the point."""

    # (n, n + nu + 1), A, B and the drift of what is remembered: states of the members, and outputs that hold their last
    # input
    states: FloatArray
    outputs: FloatArray  # shape (ny, n + nu + 1)
    held_outputs: list[str]  # those outputs


def compute_step(model: ConnectedModel, master: Master, members: Sequence[DiscretizedMember]) -> OneStep:
    """Let the master go one step with unit states, and read off the matrices; the members in the model's order."""
    coupling = model.coupling
    sizes = [len(m.Phi) for m in members]
    P, ny = sum(sizes), coupling.size[2]
    D = block_diag(*(m.D for m in members)).reshape(ny, -1)
    C = block_diag(*(m.C for m in members)).reshape(ny, P)
    used = np.zeros(ny, dtype=bool)
    used[coupling.wires.sources[coupling.wires.sources >= 0]] = True
    # An output that was read last is a state where it holds the last input.
    memories = np.flatnonzero(used & (D != 0).any(axis=1))
    nz, nu = P + len(memories), len(model.inputs)
    width = nz + nu + 1
    states = np.eye(P, width)
    read = np.hstack((C, np.zeros((ny, width - P))))
    read[memories] = 0.0
    read[memories, P + np.arange(len(memories))] = 1.0
    outside = np.hstack((np.zeros((nu, nz)), np.eye(nu), np.zeros((nu, 1))))
    K, L = coupling.wires.selections(coupling.size[2], nu)
    first = np.cumsum([0, *sizes])
    inputs = K @ read + L @ outside
    all_outputs = read + sparse.csr_array(D) @ inputs
    all_outputs[memories] = read[memories]
    after, last = states.copy(), read.copy()
    for i in master.numbers(list(model.members)):
        v = coupling.inputs[i]
        member_inputs = inputs[v] if master.kind == "jacobi" else (K[v] @ last + L[v] @ outside)
        rows = slice(first[i], first[i + 1])
        after[rows] = members[i].Phi @ states[rows] + members[i].Gamma @ member_inputs
        after[rows, -1] += members[i].drift
        x = states[rows] if members[i].samples else after[rows]
        last[coupling.outputs[i]] = members[i].C @ x + members[i].D @ member_inputs
        if members[i].samples:  # what it answers at this point
            all_outputs[coupling.outputs[i]] = last[coupling.outputs[i]]
    transition = np.vstack((after, last[memories]))
    needed = P + np.flatnonzero(np.vstack((transition, all_outputs[model._output_taps]))[:, P:nz].any(axis=0))
    columns = [*range(P), *needed, *range(nz, width)]  # a value that is not read again is not a state
    transition, all_outputs, memories = (
        transition[columns[: P + len(needed)]][:, columns],
        all_outputs[:, columns],
        memories[needed - P],
    )
    out = all_outputs[model._output_taps] * model._changes[:, :1]
    return OneStep(transition, out, [output_name(model, int(j)) for j in memories])


def output_name(model: ConnectedModel, output: int) -> str:
    """Return what the system calls an output of all its members."""
    for part, outputs in zip(model.coupling.parts, model.coupling.outputs, strict=True):
        if outputs.start <= output < outputs.stop:
            return qualify(part.name, part.model.outputs[output - outputs.start].name)
    raise IndexError(output)


MAX_STEPS = 10_000  # base steps of a common period
SAMPLE_TIME_TOLERANCE = 1e-9  # relative difference of a sample time and a multiple of the base step


def base_step(times: Sequence[float], offsets: Sequence[float] = ()) -> tuple[float, dict[float, int]]:
    """Return the longest step of which all sample times, and offsets of samples, are multiples, and these multiples."""
    shortest = min(times)
    ratios = {t: Fraction(t / shortest).limit_denominator(MAX_STEPS) for t in (*times, *offsets)}
    base = Fraction(gcd(*(r.numerator for r in ratios.values())), lcm(*(r.denominator for r in ratios.values())))
    periods = {t: int(r / base) for t, r in ratios.items()}
    if lcm(*(periods[t] for t in times)) > MAX_STEPS or any(
        abs(r * shortest - t) > SAMPLE_TIME_TOLERANCE * t for t, r in ratios.items()
    ):
        listed_times = ", ".join(f"{t:g} s" for t in sorted(times))
        late = ", ".join(f"{t:g} s" for t in sorted(offsets))
        delays = f" with delays (beyond whole samples: {late})" if late else ""
        raise UsageError(
            f"The sample times {listed_times}{delays} have no short common period. Change them to multiples of one "
            "period."
        )
    return float(base) * shortest, periods


def one_step(model: ConnectedModel, master: Master, members: Sequence[LinearizedMember], step: float) -> OneStep:
    """Return the step of a master."""
    return compute_step(model, master, [discretize_member(m.linear, step) for m in members])
