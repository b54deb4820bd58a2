"""Pinocchio's derivatives of the articulated body algorithm, of the MJCF text of a row: ``... ROW``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pinocchio as pin

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell

module = chosen_row()
with TemporaryDirectory() as folder:
    path = Path(folder) / "scene.xml"
    path.write_text(module.MJCF, encoding="utf-8")
    model = pin.buildModelFromMJCF(str(path))
data, rest = model.createData(), np.zeros(model.nv)
pin.computeABADerivatives(model, data, pin.neutral(model), rest, rest)
unit = np.eye(model.nv)
A = np.block([[0 * unit, unit], [data.ddq_dq, data.ddq_dv]])
tell("pin", nearest_of(np.linalg.eigvals(A), module.ROW.value), "Pinocchio")
