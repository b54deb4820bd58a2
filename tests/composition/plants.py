"""Small plants whose coupled systems are known in closed form, and FMUs of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from tests.shared import shared

__all__ = ["chain_eigenvalues", "first_order", "gemseo_fmu", "mass_chain", "motor", "oscillator", "oscillator_fmu"]


def gemseo_fmu(name: str) -> Path:
    """Return an FMU of the package gemseo-fmu, which is not imported: it needs much that we do not."""
    import importlib.util
    import sys

    import pytest

    spec = importlib.util.find_spec("gemseo_fmu")
    if spec is None or not spec.submodule_search_locations or sys.platform != "linux":
        pytest.skip("gemseo-fmu is not installed (pip install --no-deps gemseo-fmu)")
    return Path(spec.submodule_search_locations[0]) / "problems" / "fmu_files" / "linux" / f"{name}.fmu"


def first_order(name: str, pole: float, direct: float) -> OdeModel:
    """Return x' = pole x + u, y = x + direct u + r."""
    equations, outputs = {"x": f"({pole})*x + u"}, {"y": f"x + ({direct})*u + r"}
    return OdeModel(name, equations, inputs=["u", "r"], outputs=outputs, start={"x": 0.3})


def motor() -> OdeModel:
    """Return a direct current motor: i' = (U - R i - k w)/L, torque k i."""
    return OdeModel("motor", {"i": "(U - i - 0.5*w)/0.1"}, inputs=["U", "w"], outputs={"torque": "0.5*i"})


def oscillator(mass: float = 1.0, spring: float = 1.0, damper: float = 0.1) -> OdeModel:
    """Return m x'' = -c x - d x' + F."""
    equations = {"x": "v", "v": "(F - c*x - d*v)/m"}
    parameters = {"m": mass, "c": spring, "d": damper}
    start = {"x": 1.0}
    return OdeModel(
        "oscillator", equations, inputs=["F"], parameters=parameters, outputs={"px": "x", "pv": "v"}, start=start
    )


def coupling_spring(stiffness: float, damping: float = 0.0) -> OdeModel:
    """Return a spring between two bodies: F = c (x2 - x1) + d (v2 - v1), without states."""
    force = f"{stiffness}*(x2 - x1) + {damping}*(v2 - v1)"
    return OdeModel("spring", {}, inputs=["x1", "v1", "x2", "v2"], outputs={"on1": force, "on2": f"-({force})"})


def oscillator_fmu() -> Path:
    """Return the oscillator as an FMU for model exchange and co-simulation."""
    return shared("composition_oscillator.fmu", lambda path: build_fmu(oscillator(), path))


def mass_chain(count: int, *, name: str = "chain") -> OdeModel:
    """Return masses of 1 kg, joined by springs of 1 N/m to each other and to the positions ``left`` and ``right``."""
    x = ["left", *(f"x{i}" for i in range(1, count + 1)), "right"]
    equations: dict[str, str] = {f"x{i}": f"v{i}" for i in range(1, count + 1)}
    equations |= {f"v{i}": f"{x[i - 1]} - 2*x{i} + {x[i + 1]}" for i in range(1, count + 1)}
    outputs = {"first": "x1", "last": f"x{count}"}
    return OdeModel(name, equations, inputs=["left", "right"], outputs=outputs)


def chain_eigenvalues(count: int) -> FloatArray:
    """Return the frequencies of a chain of masses between two walls: 2 sin(k pi / (2 (n + 1)))."""
    return 2 * np.sin(np.arange(1, count + 1) * np.pi / (2 * (count + 1)))
