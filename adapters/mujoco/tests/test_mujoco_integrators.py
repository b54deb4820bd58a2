"""How MuJoCo steps has no part in a linear model: models with RK4, noslip or nothing that moves, by both ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl

DOUBLE_PENDULUM = """
<mujoco model="double_pendulum">
  <option {option}/>
  <worldbody>
    <body name="upper" pos="0 0 2">
      <joint name="shoulder" type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -0.5" mass="1" diaginertia="0.1 0.1 0.01"/>
      <body name="lower" pos="0 0 -1">
        <joint name="elbow" type="hinge" axis="0 1 0"/>
        <inertial pos="0 0 -0.5" mass="1" diaginertia="0.1 0.1 0.01"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="elbow"/></actuator>
</mujoco>
"""
OPTIONS = ['integrator="RK4"', 'noslip_iterations="3"', 'integrator="implicit"', 'integrator="implicitfast"', ""]


def hanging_frequencies() -> list[float]:
    """Both frequencies from M q'' + K q = 0 with the angles of the links relative to each other."""
    m, length, center, inertia, g = 1.0, 1.0, 0.5, 0.1, 9.81
    inner = inertia + m * center**2
    coupling = inner + m * length * center
    M = np.array([[inner + m * length**2 + coupling + m * length * center, coupling], [coupling, inner]])
    K = g * m * np.array([[center + length + center, center], [center, center]])
    return sorted(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real).tolist())


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("way", ["", "mujoco:"])
def test_the_integrator_and_the_noslip_solver_do_not_matter(option: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "double_pendulum.xml"
    path.write_text(DOUBLE_PENDULUM.format(option=option), encoding="utf-8")
    linear = fl.linearize(fl.load(f"{way}{path}"))
    frequencies = sorted(value.imag for value in linear.eigenvalues() if value.imag > 0)
    assert frequencies == pytest.approx(hanging_frequencies(), rel=1e-9)
    assert linear.B[-2:, 0] == pytest.approx(np.linalg.solve(mass_matrix(), [0.0, 1.0]), rel=1e-9)


def mass_matrix() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([[0.35 + 1.0 + 0.85 + 0.5, 0.85], [0.85, 0.35]])


@pytest.mark.parametrize("way", ["", "mujoco:"])
@pytest.mark.parametrize("body", ["", '<body name="box"><geom type="box" size=".1 .1 .1" mass="1"/></body>'])
def test_a_model_without_a_degree_of_freedom_has_order_zero(body: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "still.xml"
    path.write_text(f'<mujoco><worldbody><geom type="box" size="1 1 1"/>{body}</worldbody></mujoco>', encoding="utf-8")
    linear = fl.linearize(fl.load(f"{way}{path}"))
    assert linear.A.shape == (0, 0)
