"""Constrained systems made for the tests of the formulations."""

from __future__ import annotations

import numpy as np

from fmilin.formulations import ConstrainedForm
from fmilin.models import LagrangeModel, SymbolicConstraint
from fmilin.signals import FloatArray

G = 9.81


def closed_pair(loops: int, damping: float, phi: float, w: float = 0.0) -> FloatArray:
    """A of the four-bar linkage in (phi, w), from its equation of motion in phi alone."""
    k, l0 = 25.0, np.sqrt(2.0)
    J, h, s = (4 * loops + 1) / 3, phi / 2, 2 * np.cos(phi / 2)
    spring = k * (-(np.sin(h) ** 2) + (s - l0) * np.cos(h) / 2)
    by_phi = G * (3 * loops + 1) / 2 * np.sin(phi) + loops * spring - loops * damping * np.sin(phi) / 2 * w
    return np.array([[0.0, 1.0], [by_phi / J, -loops * damping * np.sin(h) ** 2 / J]])


def posture(loops: int, phi: float, w: float) -> FloatArray:
    """All states of the linkage at phi."""
    q = [e for i in range(loops + 1) for e in (i + np.cos(phi), np.sin(phi))]
    v = [-w * np.sin(phi), w * np.cos(phi)] * (loops + 1)
    return np.array([*q, phi, *v, w])


def random_form(seed: int, n: int = 7, m: int = 3, redundant: int = 0) -> ConstrainedForm:
    """Any equations at rest: no system has to be behind them."""
    random = np.random.default_rng(seed)
    half = random.standard_normal((n, n))
    rows = random.standard_normal((m, n))
    rows = np.vstack((rows, random.standard_normal((redundant, m)) @ rows))
    return ConstrainedForm(
        M=half @ half.T + np.eye(n),
        C=random.standard_normal((n, n)),
        K=10 * random.standard_normal((n, n)),
        Phi_q=rows,
        B=random.standard_normal((n, 2)),
        multipliers=np.zeros(len(rows)),
        names=tuple(f"q{i + 1}" for i in range(n)),
    )


def swung_pivot() -> LagrangeModel:
    """A pendulum of 2 m whose pivot is carried along x = sin(3 t)/2: its constraint contains time."""
    return LagrangeModel(
        "swung_pivot",
        {"x": "vx", "y": "vy"},
        [[2, 0], [0, 2]],
        ["-0.3*vx", f"-{2 * G} - 0.3*vy"],
        constraints=[SymbolicConstraint("((x - 0.5*sin(3*time))^2 + y^2 - 4)/2", name="rod")],
        start={"y": -2.0, "vx": 1.5},
    )


def springs_in_line(*, redundant: bool = False) -> LagrangeModel:
    """Two masses, 1 and 2 kg, tied together: 3 kg on springs of 3 + 5 N/m, pulled by 1 N: w^2 = 8/3, at rest 1/8 m."""
    return LagrangeModel(
        "springs_in_line",
        {"x": "vx", "y": "vy"},
        [[1, 0], [0, 2]],
        ["-3*x + pull", "-5*y"],
        constraints=["x - y", "2*x - 2*y"] if redundant else ["x - y"],
        inputs=["pull"],
        start={"pull": 1.0},
    )
