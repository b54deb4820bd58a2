"""MuJoCo's own linear model, mjd_transitionFD, of the MJCF text of a row; as a continuous one, by the matrix logarithm.

``python -m benchmarks.scoreboard.peers.mujoco_spectrum ROW``. Equality constraints are springs there.
"""

from __future__ import annotations

import mujoco
import numpy as np

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell

module = chosen_row()
model = mujoco.MjModel.from_xml_string(module.MJCF)
model.opt.timestep = 1e-4
model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
data = mujoco.MjData(model)
if model.nkey:
    mujoco.mj_resetDataKeyframe(model, data, 0)
A = np.zeros((2 * model.nv, 2 * model.nv))
mujoco.mjd_transitionFD(model, data, eps=1e-6, flg_centered=True, A=A, B=None, C=None, D=None)
steps = np.linalg.eigvals(A).astype(complex)
tell("mujoco", nearest_of(np.log(steps) / model.opt.timestep, module.ROW.value), "MuJoCo")
