"""Drake's Linearize of a MultibodyPlant from the MJCF text of a row: ``... ROW``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.primitives import Linearize

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell

module = chosen_row()
plant = MultibodyPlant(time_step=0.0)
with TemporaryDirectory() as folder:
    path = Path(folder) / "scene.xml"
    path.write_text(module.MJCF.replace("<mujoco>", '<mujoco model="scene">'), encoding="utf-8")
    Parser(plant).AddModels(path)
plant.Finalize()
context = plant.CreateDefaultContext()
plant.get_actuation_input_port().FixValue(context, np.zeros(plant.num_actuators()))
linear = Linearize(
    plant, context, plant.get_actuation_input_port().get_index(), plant.get_state_output_port().get_index()
)
tell("drake", nearest_of(np.linalg.eigvals(linear.A()), module.ROW.value), "Drake")
