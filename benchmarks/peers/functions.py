"""Linear models of Python functions: found operating points, and black boxes by differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.peers.ways import TOOLS, Way
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray

__all__ = ["WAYS_OF_BLACK_BOX", "WAYS_OF_OPERATING_POINT"]

PUSH = 0.4
"""N, on the first mass."""


def compute_rates(x: FloatArray, push: Any) -> FloatArray:
    """Return the rates of masses on springs that harden, the first one pushed."""
    q, v = np.split(x, 2)
    gaps = np.diff(q, prepend=0.0, append=0.0)
    forces = 4.0 * gaps + 0.5 * gaps**3
    accelerations = forces[1:] - forces[:-1] - 0.1 * v
    accelerations[0] = accelerations[0] + push
    return np.concatenate((v, accelerations))


def name_states(size: int) -> list[str]:
    return [f"{kind}{i + 1}" for kind in "qv" for i in range(size // 2)]


def make_model(size: int) -> FunctionModel:
    start = dict.fromkeys(name_states(size), 0.0)
    return FunctionModel("masses", start, lambda _t, x, u: compute_rates(x, u[0]), inputs=["u"])


@contextmanager
def operating_point(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = make_model(size)
    yield lambda: fl.linearize(model, fl.trim(model, fixed={"u": PUSH}))


@contextmanager
def operating_point_by_control(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    import control

    system = control.nlsys(
        lambda _t, x, u, _p: compute_rates(x, u[0]), None, inputs=["u"], states=name_states(size), name="masses"
    )

    def linearize() -> Any:
        point = control.find_operating_point(system, np.zeros(size), [PUSH])
        return control.linearize(system, point)

    yield linearize


@contextmanager
def operating_point_by_scipy(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    from scipy import differentiate, optimize

    def linearize() -> Any:
        found = optimize.root(compute_rates, np.zeros(size), args=(PUSH,), tol=1e-12)
        return differentiate.jacobian(_vectorize(PUSH), found.x).df

    yield linearize


@contextmanager
def black_box(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = make_model(size)
    point = fl.operating_point(model, _list_displaced_values(size))
    yield lambda: fl.linearize(model, point)


@contextmanager
def black_box_by_control(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    import control

    system = control.nlsys(lambda _t, x, u, _p: compute_rates(x, u[0]), None, inputs=["u"], states=name_states(size))
    x = np.array(list(_list_displaced_values(size).values()))
    yield lambda: control.linearize(system, x, [0.0])


@contextmanager
def black_box_by_scipy(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    from scipy import differentiate

    x, rates = np.array(list(_list_displaced_values(size).values())), _vectorize(0.0)
    yield lambda: differentiate.jacobian(rates, x).df


def _list_displaced_values(size: int) -> dict[str, float]:
    values = [0.1 * (i % 3) if i < size // 2 else 0.0 for i in range(size)]
    return dict(zip(name_states(size), values, strict=True))


def _vectorize(push: float) -> Callable[[FloatArray], FloatArray]:
    """Return the rates as ``scipy.differentiate.jacobian`` takes them: points along the further axes."""
    return lambda x: np.apply_along_axis(compute_rates, 0, x, push)


def _state_matrix(linear: Any) -> FloatArray:
    return np.asarray(linear.A)


WAYS_OF_OPERATING_POINT = [
    Way(TOOLS["fmilin"], operating_point, _state_matrix, "trim, linearize"),
    Way(TOOLS["python-control"], operating_point_by_control, _state_matrix, "find_operating_point, linearize"),
    Way(TOOLS["SciPy"], operating_point_by_scipy, remark="root, differentiate.jacobian"),
]
WAYS_OF_BLACK_BOX = [
    Way(TOOLS["fmilin"], black_box, _state_matrix),
    Way(TOOLS["python-control"], black_box_by_control, _state_matrix, "linearize"),
    Way(TOOLS["SciPy"], black_box_by_scipy, remark="differentiate.jacobian"),
]
