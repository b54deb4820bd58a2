"""Which coordinates and speeds are independent, and how the dependent ones follow: C_0, C_1 and C_2.

Peterson et al., with G_c = grad_q f_c, G_v = grad_q f_v and B = grad_u f_v:

    C_0 = [I - P_qd (G_c P_qd)^-1 G_c] P_qi
    C_1 = -P_ud (B P_ud)^-1 G_v
    C_2 = [I - P_ud (B P_ud)^-1 B] P_ui

All matrices are stacks over k points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.native.kane.form import KaneForm
from fmilin.numerics.saddle_point.dense import inverses, norms

__all__ = ["ConstraintGradients", "Dependence", "Partition", "dependence"]


@dataclass(frozen=True, slots=True)
class Partition:
    """Positions of the independent and dependent coordinates in q, and speeds in u."""

    q_i: tuple[int, ...]
    q_d: tuple[int, ...]
    u_i: tuple[int, ...]
    u_d: tuple[int, ...]

    @classmethod
    def keeping(cls, q_i: Sequence[int], u_i: Sequence[int], n: int, o: int) -> Partition:
        """Return the partition with these independent coordinates out of n, and speeds out of o."""
        return cls(
            tuple(q_i),
            tuple(i for i in range(n) if i not in set(q_i)),
            tuple(u_i),
            tuple(i for i in range(o) if i not in set(u_i)),
        )

    @classmethod
    def named(cls, independent: Sequence[str], form: KaneForm, states: Signals, model: str) -> Partition:
        """Return the partition that keeps the named states."""
        n, o = len(form.q), len(form.u)
        if isinstance(independent, str):
            raise UsageError("'independent' is a sequence of names: write independent=['...'] even for a single one.")
        places = [states.index_of(name, "a state of the model") for name in independent]
        q_i, u_i = [i for i in places if i < n], [i - n for i in places if i >= n]
        wanted = (n - len(form.f_c), o - len(form.velocity))
        if (len(set(q_i)), len(set(u_i))) != wanted or len(places) != form.order:
            raise UsageError(
                f"{len(q_i)} coordinates and {len(u_i)} speeds were named as independent, but '{model}' has "
                f"{wanted[0]} and {wanted[1]}: {n} coordinates under {len(form.f_c)} configuration constraints, "
                f"{o} speeds under {len(form.velocity)} velocity constraints."
            )
        return cls.keeping(q_i, u_i, n, o)

    @property
    def states(self) -> tuple[int, ...]:
        """Positions of the independent states in (q, u)."""
        n = len(self.q_i) + len(self.q_d)
        return (*self.q_i, *(n + i for i in self.u_i))


@dataclass(frozen=True, slots=True)
class ConstraintGradients:
    """G_c (k, l, n), G_v (k, m, n) and B (k, m, o), and the same for the inputs, (k, l, s) and (k, m, s)."""

    G_c: FloatArray
    G_v: FloatArray
    B: FloatArray
    c_r: FloatArray
    v_r: FloatArray


@dataclass(frozen=True, slots=True)
class Dependence:
    """dq = C_0 dq_i + D_0 dr and du = C_1 dq + C_2 du_i + D_2 dr; D_0 and D_2 belong to prescribed motions."""

    C_0: FloatArray
    C_1: FloatArray
    C_2: FloatArray
    D_0: FloatArray
    D_2: FloatArray
    condition_number: FloatArray
    """The larger one of |G_c| |(G_c P_qd)^-1| and |B| |(B P_ud)^-1| in the 1-norm, scaled; shape (k,)."""


def dependence(g: ConstraintGradients, partition: Partition, scales: FloatArray) -> Dependence:
    """Return C_0, C_1 and C_2; NaN, and an infinite condition number, where they do not exist."""
    q_i, q_d, u_i, u_d = (list(p) for p in (partition.q_i, partition.q_d, partition.u_i, partition.u_d))
    k, n, o, s = len(g.G_c), g.G_c.shape[2], g.B.shape[2], g.c_r.shape[2]
    c, c_condition = _inverses(g.G_c, q_d, scales[:n])
    v, v_condition = _inverses(g.B, u_d, scales[n:])
    C_0, C_1, C_2 = np.zeros((k, n, len(q_i))), np.zeros((k, o, n)), np.zeros((k, o, len(u_i)))
    D_0, D_2 = np.zeros((k, n, s)), np.zeros((k, o, s))
    C_0[:, q_i, range(len(q_i))] = 1.0
    C_2[:, u_i, range(len(u_i))] = 1.0
    C_0[:, q_d], D_0[:, q_d] = -(c @ g.G_c[:, :, q_i]), -(c @ g.c_r)
    C_1[:, u_d], C_2[:, u_d], D_2[:, u_d] = -(v @ g.G_v), -(v @ g.B[:, :, u_i]), -(v @ g.v_r)
    return Dependence(C_0, C_1, C_2, D_0, D_2, np.maximum(c_condition, v_condition))


def _inverses(G: FloatArray, dependent: list[int], scales: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (G P_d)^-1 and |G| |(G P_d)^-1| in the 1-norm, rows and columns scaled; NaN and infinity when singular."""
    if not dependent:
        return np.zeros((len(G), 0, 0)), np.ones(len(G))
    scaled = G * scales
    sizes = np.abs(scaled).max(axis=2, keepdims=True)
    scaled = scaled / np.where(sizes > 0, sizes, 1.0)
    found = inverses(scaled[:, :, dependent])
    with np.errstate(all="ignore"):
        condition = norms(scaled) * norms(found)
        found = found * scales[dependent, None] / np.where(sizes > 0, sizes, np.nan).transpose(0, 2, 1)
    known = np.isfinite(condition)
    return np.where(known[:, None, None], found, np.nan), np.where(known, condition, np.inf)
