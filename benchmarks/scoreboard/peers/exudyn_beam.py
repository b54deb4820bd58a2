"""Exudyn's ComputeODE2Eigenvalues for the beam on a hinge; with ``hanging``, in gravity without its spring."""

from __future__ import annotations

from contextlib import chdir
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.scoreboard.exudyn_systems import make_beam
from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell

row = chosen_row()
hanging = row.__name__.endswith("hanging")
mbs = make_beam(hanging=hanging)
with TemporaryDirectory() as folder, chdir(folder):  # Exudyn leaves a folder "solution" where it is
    squares, _ = mbs.ComputeODE2Eigenvalues()
rates = np.sqrt(np.asarray(squares, dtype=complex))
tell("exudyn", nearest_of(1j * rates if hanging else rates / (2 * np.pi), row.ROW.value), "Exudyn")
