"""A crane of 5 kg with a load of 2 kg on 3 m of rope, from three descriptions, each to a regulator.

``python run.py`` prints one table. The MultiBody library is found by MODELICAPATH; without it that row is left out.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import control
import numpy as np

import fmilin as fl

FOLDER = Path(__file__).parent
FOLDERS = [Path(folder) for folder in os.environ.get("MODELICAPATH", "").split(os.pathsep) if folder]
LIBRARY = any((folder / "Modelica" / "package.mo").is_file() for folder in FOLDERS)
SOURCES = {
    "equations in Modelica": (str(FOLDER / "crane.mo"), None),
    "MultiBody library": (str(FOLDER / "crane_of_bodies.mo"), None),
    "mechanism in TOML": (str(FOLDER / "crane.toml"), ["rail.q", "rope.q"]),
}

HEAD = f"{'source':24}{'states':>8}{'order':>7}{'swing [rad/s]':>15}"
print(f"{HEAD}{'gain of the regulator':>36}{'slowest pole':>16}{'time':>9}")
swings, poles = [], []
for name, (source, outputs) in SOURCES.items():
    if name == "MultiBody library" and not LIBRARY:
        print(f"{name:24}left out: MODELICAPATH names no folder with Modelica/")
        continue
    begin = time.perf_counter()
    model = fl.load(source)
    linear = fl.linearize(model, outputs=outputs)
    seconds = time.perf_counter() - begin
    # position and angle with their rates as coordinates, whatever the states are
    C, A, B = linear.C, linear.A, linear.B
    S = np.vstack((C, C @ A))
    A, B = S @ A @ np.linalg.inv(S), S @ B
    K, _, closed = control.lqr(A, B, np.diag([1.0, 10.0, 0.1, 0.1]), [[0.01]])
    swings.append(linear.eigenvalues().imag.max())
    poles.append(np.sort_complex(closed))
    gain = ", ".join(f"{k:.4f}" for k in K[0])
    print(
        f"{name:24}{len(model.states):8}{len(linear.states):7}{swings[-1]:15.9f}{gain:>36}{poles[-1].real.max():16.9f}"
        f"{seconds:7.2f} s"
    )
exact = np.sqrt((5 + 2) / 5 * 9.81 / 3)
different = max(np.abs(np.array(swings) - exact).max(), *(np.abs(p - poles[0]).max() for p in poles))
print(f"sqrt((M + m)/M g/l) = {exact:.9f} rad/s; the largest difference of swings and poles is {different:.1e}")
if different > 1e-8:
    sys.exit("The descriptions do not agree.")
