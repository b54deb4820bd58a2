"""A filter on a MuJoCo model: slopes by the engine, a bias of the sensor beside the state."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fmilin as fl

PENDULUM = """<mujoco><worldbody><body><joint name="hinge" type="hinge" axis="0 1 0" damping="0.01"/>
<geom type="capsule" fromto="0 0 0 0 0 -1" size=".05" mass="1"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""


def test_a_pendulum_is_followed_from_its_angle_with_a_bias(tmp_path: Path) -> None:
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    with fl.load(str(tmp_path / "pendulum.xml")) as model:
        q, v = model.states.names
        start = fl.operating_point(model, {q: 0.5})
        truth = fl.simulate(model, start, stop_time=2.0, step=0.02)
        kf = fl.design.estimator(
            model,
            outputs=[q],
            augment=[f"{q}.bias"],
            process_noise={model.inputs.names[0]: 1e-4},
            measurement_noise={q: 1e-4},
            sample_time=0.02,
            point=start,
            initial_covariance={q: 1e-2, v: 1e-2, f"{q}.bias": 0.04},
        )
        rng = np.random.default_rng(0)
        for k in range(1, 101):
            kf.step([0.0], [truth.states[k, 0] + 0.1 + 1e-2 * rng.standard_normal()])
        true = [*truth.states[-1], 0.1]
        assert (np.abs(kf.x - true) < 4 * kf.deviations).all()
        assert kf.deviations.max() < 0.05
