"""Plants of tests/fmus/stepped beside the same plants by model exchange."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import fmilin as fl
from fmilin import LinearModel
from fmilin.systems import four_bar

PREFERRED = {"four_bar": ("phi", "w"), "motor": ("i", "w", "angle")}
FOUR_BAR = 2.147676638502278
"""The true frequency of the four-bar linkage of González et al. with one loop, in rad/s."""

Made = Callable[..., Path]


def constraints_of(name: str) -> list[fl.Constraint]:
    if name != "four_bar":
        return []

    return list(four_bar().constraints.declared)


def exchanged(made: Made, name: str, independent: tuple[str, ...] | None = None) -> LinearModel:
    """The linear model of the same plant by model exchange."""
    with fl.load(made(name, interface="ModelExchange"), constraints=constraints_of(name)) as model:
        return fl.linearize(model, independent=independent)


def transfer(linear: LinearModel, s: complex) -> np.ndarray:
    identity = np.eye(len(linear.A))
    return np.asarray(linear.C @ np.linalg.solve(s * identity - linear.A, linear.B.astype(complex)) + linear.D)


def assert_same(linear: LinearModel, expected: LinearModel, tolerance: float) -> None:
    """The same eigenvalues and transfer functions, and, in the same coordinates, the same matrices."""
    ours, theirs = (np.sort_complex(m.eigenvalues()) for m in (linear, expected))
    np.testing.assert_allclose(ours, theirs, atol=tolerance * max(np.max(np.abs(theirs)), 1.0))
    for w in (0.1, 0.7, 3.0, 12.0):
        H = transfer(expected, 0.3 + 1j * w)
        np.testing.assert_allclose(transfer(linear, 0.3 + 1j * w), H, atol=tolerance * np.max(np.abs(H)))
    if linear.states.names == expected.states.names:
        for name in "ABCDT":
            a, b = getattr(linear, name), getattr(expected, name)
            np.testing.assert_allclose(a, b, atol=tolerance * max(np.max(np.abs(b)), 1.0), err_msg=name)


def remark(linear: LinearModel, kind: str) -> str:
    return " ".join(str(w) for w in linear.warnings if w.kind == kind)
