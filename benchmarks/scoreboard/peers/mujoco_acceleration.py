"""MuJoCo's acceleration of a joint at the start of the MJCF text of a row: ``... ROW JOINT``."""

from __future__ import annotations

import sys

import mujoco

from benchmarks.scoreboard.peers.common import chosen_row, tell

model = mujoco.MjModel.from_xml_string(chosen_row().MJCF)
data = mujoco.MjData(model)
mujoco.mj_resetDataKeyframe(model, data, 0)
mujoco.mj_forward(model, data)
tell("mujoco", data.joint(sys.argv[2]).qacc[0], "MuJoCo")
