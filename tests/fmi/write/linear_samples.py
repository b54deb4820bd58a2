"""Linear models to be exported, and what they do, computed another way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.linalg import expm

from fmilin import LinearModel
from fmilin.fmi.write import LinearFmu, linear_fmu
from fmilin.signals import FloatArray
from tests.fmi.write.running import Running
from tests.hand_made import sized

__all__ = ["U", "drifting", "exact", "outputs", "outputs_at", "sampled", "set_inputs", "states", "written"]

U = np.array([1.0, -0.25])
"""Inputs."""


def drifting(order: int = 6, dependent: int = 3, inputs: int = 2, outputs: int = 3) -> LinearModel:
    """A stable model of random numbers at a point that is no equilibrium."""
    linear = sized(order, dependent, inputs, outputs)
    values = {name: 0.3 * i for i, name in enumerate(linear.outputs.names)}
    return replace(linear, A=linear.A - 2.0 * np.eye(order), point=replace(linear.point, outputs=values))


def sampled(sample_time: float = 0.1) -> LinearModel:
    """The same numbers as a sampled model."""
    linear = drifting()
    return replace(linear, A=linear.A / 10, sample_time=sample_time)


def written(linear: LinearModel, folder: Path, version: str, *, deviation: bool = False) -> Path:
    """Return the path of the FMU."""
    path = folder / "plant.fmu"
    path.write_bytes(linear_fmu(linear, LinearFmu(fmi_version=version, deviation=deviation)))
    return path


def exact(linear: LinearModel, x: FloatArray, u: FloatArray, slope: FloatArray, h: float) -> FloatArray:
    """Return x after h seconds of inputs u + slope t: by the exponential of one large matrix (Van Loan 1978)."""
    n, m = linear.B.shape
    u0 = np.array([linear.point.inputs[name] for name in linear.inputs.names])
    M = np.zeros((n + m + 1, n + m + 1))
    M[:n, :n], M[:n, n:-1], M[:n, -1], M[n:-1, -1] = linear.A, linear.B, linear.f0, slope
    z = expm(h * M) @ np.concatenate((x - linear.y0, u - u0, [1.0]))
    result: FloatArray = linear.y0 + z[:n]
    return result


def outputs_at(linear: LinearModel, x: FloatArray, u: FloatArray) -> FloatArray:
    """Return g0 + C (x - x0) + D (u - u0)."""
    g0 = np.array([linear.point.outputs[name] for name in linear.outputs.names])
    u0 = np.array([linear.point.inputs[name] for name in linear.inputs.names])
    result: FloatArray = g0 + linear.C @ (x - linear.y0) + linear.D @ (u - u0)
    return result


def set_inputs(fmu: Running, values: FloatArray) -> None:
    """Set u[1], u[2], ..."""
    fmu.set(**{f"u[{i + 1}]": float(v) for i, v in enumerate(values)})


def states(fmu: Running, n: int = 6) -> FloatArray:
    """Return x[1], x[2], ..."""
    return np.array(fmu.get(*(f"x[{i + 1}]" for i in range(n))))


def outputs(fmu: Running, n: int = 3) -> FloatArray:
    """Return out[1], out[2], ..."""
    return np.array(fmu.get(*(f"out[{i + 1}]" for i in range(n))))
