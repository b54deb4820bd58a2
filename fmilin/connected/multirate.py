"""Regulators of different sample times in one loop, lifted over their common period.

Where a regulator is due it reads and answers, and what it answered is a state until it is due again; the master goes
from one base step to the next. All are due at the beginning of the period, so none of these states is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from fmilin.connected.master import Held, Master, Member, OneStep, held_over, step_of
from fmilin.connected.system import ConnectedModel
from fmilin.ground.errors import UsageError

MOST_STEPS = 10_000  # base steps of a common period
AGREE = 1e-9  # relative difference of a sample time and a multiple of the base step


def base_step(times: Sequence[float]) -> tuple[float, dict[float, int]]:
    """Return the longest step of which all sample times are multiples, and these multiples."""
    shortest = min(times)
    ratios = {t: Fraction(t / shortest).limit_denominator(MOST_STEPS) for t in times}
    base = Fraction(gcd(*(r.numerator for r in ratios.values())), lcm(*(r.denominator for r in ratios.values())))
    periods = {t: int(r / base) for t, r in ratios.items()}
    if lcm(*periods.values()) > MOST_STEPS or any(abs(r * shortest - t) > AGREE * t for t, r in ratios.items()):
        shown = ", ".join(f"{t:g} s" for t in sorted(times))
        raise UsageError(
            f"Sample times have no common period that is short enough: {shown}. Bring them to one of them."
        )
    return float(base) * shortest, periods


def one_period(
    model: ConnectedModel, master: Master, members: Sequence[Member], base: float, periods: Mapping[str, int]
) -> OneStep:
    """Return the step over the common period, all inputs held over it, the outputs at its beginning."""
    own = [held_over(m.linear, base) for m in members]
    every = [periods.get(m.name, 1) for m in members]
    first = _phase(own, every, 0)
    whole = outputs = step_of(model, master, first)
    for k in range(1, lcm(*every)):
        following = step_of(model, master, _phase(own, every, k))
        n = len(whole.states)
        states = following.states[:, :n] @ whole.states
        states[:, n:] += following.states[:, n:]
        whole = whole._replace(states=states)
    kept = np.concatenate([np.arange(len(f.Phi)) < len(m.Phi) for f, m in zip(first, own, strict=True)])
    kept = np.concatenate((kept, np.ones(len(whole.held), dtype=bool)))
    columns = np.concatenate((kept, np.ones(whole.states.shape[1] - len(kept), dtype=bool)))
    return OneStep(whole.states[kept][:, columns], outputs.outputs[:, columns], whole.held)


def _phase(own: Sequence[Held], every: Sequence[int], k: int) -> list[Held]:
    """Return the members at base step k: those that are not due at each step carry what they answered last."""
    return [m if n == 1 else _due(m) if k % n == 0 else _idle(m) for m, n in zip(own, every, strict=True)]


def _due(m: Held) -> Held:
    ny = len(m.C)
    Phi = np.block([[m.Phi, np.zeros((len(m.Phi), ny))], [m.C, np.zeros((ny, ny))]])
    C = np.hstack((m.C, np.zeros((ny, ny))))
    return m._replace(Phi=Phi, Gamma=np.vstack((m.Gamma, m.D)), drift=np.append(m.drift, np.zeros(ny)), C=C)


def _idle(m: Held) -> Held:
    n, ny = len(m.Phi), len(m.C)
    C = np.hstack((np.zeros((ny, n)), np.eye(ny)))
    return m._replace(
        Phi=np.eye(n + ny), Gamma=np.zeros((n + ny, m.D.shape[1])), drift=np.zeros(n + ny), C=C, D=np.zeros_like(m.D)
    )
