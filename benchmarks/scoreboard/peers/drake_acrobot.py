"""Drake's LinearQuadraticRegulator of its AcrobotPlant, upright."""

from __future__ import annotations

import numpy as np
from pydrake.examples import AcrobotPlant
from pydrake.systems.controllers import LinearQuadraticRegulator

from benchmarks.scoreboard.peers.common import tell

plant = AcrobotPlant()
context = plant.CreateDefaultContext()
plant.get_input_port().FixValue(context, [0.0])
context.SetContinuousState([np.pi, 0, 0, 0])
regulator = LinearQuadraticRegulator(plant, context, np.diag([10.0, 10.0, 1.0, 1.0]), np.eye(1))
tell("drake", regulator.D()[0, 0], "Drake")
