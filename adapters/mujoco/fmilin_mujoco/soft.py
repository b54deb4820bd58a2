"""MuJoCo's own linear model, of its soft constraints, for comparison with the ideal one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["soft_linearization"]


def soft_linearization(
    path: str | Path, qpos: Any = None, qvel: Any = None, *, step: float | None = None
) -> NDArray[np.complex128]:
    """Return the eigenvalues of ``mjd_transitionFD`` as continuous ones, log(z) / step, shape (2 nv + na,).

    MuJoCo keeps equality constraints by springs and dampers (solref, solimp): all 2 nv velocities and positions may
    move, those against a constraint stiffly. These eigenvalues belong to the springs and move with solref; the others
    are off by what the springs give way.

    Parameters
    ----------
    path : path
        MJCF or URDF.
    qpos, qvel : array, optional
        The point; the model's start by default.
    step : float, optional
        Time step in seconds; the model's own by default.
    """
    model = mujoco.MjModel.from_xml_path(str(path))
    if step is not None:
        model.opt.timestep = step
    data = mujoco.MjData(model)
    home = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, "home")
    if home >= 0:
        mujoco.mj_resetDataKeyframe(model, data, home)
    for own, given in ((data.qpos, qpos), (data.qvel, qvel)):
        if given is not None:
            own[:] = given
    mujoco.mj_forward(model, data)
    size = 2 * model.nv + model.na
    A = np.zeros((size, size))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)  # noqa: FBT003 - flg_centered
    z = linalg.eigvals(A).astype(np.complex128)
    return np.asarray(np.log(np.where(z == 0, np.finfo(float).tiny, z)) / model.opt.timestep)
