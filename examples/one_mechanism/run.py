"""Two linkages from every source: fmilin's eigenvalues, and next to them those of each engine's own linear model.

``python run.py`` writes spectra.png into the current folder, or into ``--output FOLDER``. It needs the adapters:
``pip install ./adapters/mujoco ./adapters/pinocchio``.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices are slower on many threads

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from engines_own import Spectrum, all_states, of_mujoco, of_pinocchio
from equations import four_bar_by_lagrange, four_bar_of_points, spatial_by_kane
from pictures import draw

import fmilin as fl
from fmilin import Model
from fmilin.adapters import read_parts
from fmilin.fmi.write import build_fmu
from fmilin.models.mechanism import Mechanism

HERE = Path(__file__).parent
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
OUTPUT: Path = parser.parse_args().output
OUTPUT.mkdir(parents=True, exist_ok=True)
ZERO = 1e-3
"""Eigenvalues below are defective zeros, scattered by rounding."""


@dataclass(frozen=True)
class Row:
    """What one source says."""

    source: str
    states: int
    ours: Spectrum
    method: str = ""
    own: Spectrum | None = None

    @property
    def label(self) -> str:
        """Return the source, with a name that differs from others of the same engine."""
        return f"{self.source}, {self.method.split()[-2]}" if "constraints" in self.method else self.source


def main() -> None:
    found = {}
    for name, equations in (("four_bar", four_bar_by_lagrange), ("spatial", spatial_by_kane)):
        mechanism = Mechanism.from_urdf(HERE / f"{name}.urdf")
        at_rest = fl.trim(mechanism).states
        angles = {n.removesuffix(".q"): float(x) for n, x in zip(mechanism.states.names, at_rest, strict=True)
                  if n.endswith(".q")}  # fmt: skip
        rows = list(rows_of(name, mechanism, equations(), angles))
        found[name] = rows
        print_table(name, rows)
    print(f"closed form of the four-bar linkage: {np.sqrt(2 * 9.81 / (5 / 3)):.12f} rad/s")
    spectra = {
        name: [(row.label, row.ours, row.own) for row in rows if row.own is not None] for name, rows in found.items()
    }
    draw(spectra, OUTPUT / "spectra.png")


def rows_of(name: str, mechanism: Model, equations: Model, angles: dict[str, float]) -> Iterator[Row]:
    """Yield the result of each source of a linkage at the configuration with these angles of its joints."""
    loops = read_parts(HERE / f"{name}.fmilin.toml").fields["loops"]
    with TemporaryDirectory() as folder:
        exported = four_bar_of_points() if name == "four_bar" else equations
        with fl.load(build_fmu(exported, Path(folder) / "linkage.fmu")) as model:
            yield by_all_states("FMU", model, angles)
    yield by_all_states("sympy", equations, angles)
    yield Row("mechanism", len(mechanism.states), spectrum(mechanism, angles))
    with fl.load(f"mujoco:{HERE / name}.xml") as model:
        own = of_mujoco(HERE / f"{name}.xml", angles)
        yield Row("MuJoCo", len(model.states), spectrum(model, angles), "mjd_transitionFD", own)
    file = HERE / f"{name}.urdf"
    with fl.load(f"pinocchio:{file}") as model:
        for kind, welded in (("3D", False), ("6D", True)):
            own = of_pinocchio(file, angles, loops, welded=welded)
            yield Row(
                "Pinocchio", len(model.states), spectrum(model, angles), f"its derivatives, {kind} constraints", own
            )


def by_all_states(source: str, model: Model, angles: dict[str, float]) -> Row:
    point = fl.operating_point(model, at(model, angles))
    return Row(source, len(model.states), fl.linearize(model, point).eigenvalues(), "Jacobian of all states",
               all_states(model, point))  # fmt: skip


def spectrum(model: Model, angles: dict[str, float]) -> Spectrum:
    return fl.linearize(model, fl.operating_point(model, at(model, angles))).eigenvalues()


def at(model: Model, angles: dict[str, float]) -> dict[str, float]:
    """Return the angles under the names that they have in a model: phi, or phi.q."""
    named = {joint: next((n for n in (joint, f"{joint}.q") if model.states.has(n)), "") for joint in angles}
    return {named[joint]: angle for joint, angle in angles.items() if named[joint]}


def print_table(name: str, rows: list[Row]) -> None:
    reference = rows[0].ours
    print(f"\n{name}: eigenvalues by fmilin, and those of the engine's own linear model (x: of no motion)\n")
    print(f"{'source':<11}{'states':>6}  {'fmilin [rad/s]':<20}own linear model")
    before = ""
    for row in rows:
        ours = f"{row.ours[-1].imag:.10f} i"
        if len(row.ours) != 2 or abs(row.ours[-1] - reference[-1]) > 1e-8 * abs(reference[-1]):
            raise SystemExit(f"{row.source} disagrees: {row.ours}, not {reference}.")
        source, states, ours = (row.source, row.states, ours) if row.source != before else ("", "", "")
        before = row.source
        print(f"{source:<11}{states:>6}  {ours:<20}{described(row)}".rstrip())
    apart = max(abs(row.ours[-1] - reference[-1]) for row in rows) / abs(reference[-1])
    print(f"fmilin's frequencies differ by {apart:.0e} at most, relatively")


def described(row: Row) -> str:
    """Return how many eigenvalues the engine has, what became of the true pair, and the spurious ones."""
    if row.own is None:
        return ""
    pair = row.ours[-1]
    nearest = row.own[np.argmin(np.abs(row.own - pair))]
    off = abs(nearest - pair) / abs(pair)
    spurious = [s for s in row.own if min(abs(s - nearest), abs(s - nearest.conjugate())) > 1e-9 * abs(pair)]
    zeros = [abs(s) for s in spurious if abs(s) < ZERO]
    others = sorted({f"{s.real:.3g}{f'+-{abs(s.imag):.3g}i' if abs(s.imag) > ZERO else ''}" for s in spurious
                     if abs(s) >= ZERO}, key=lambda text: float(text.partition('+-')[0]))  # fmt: skip
    verdict = "" if off < 1e-6 else f" (off by {100 * off:.2g} %)"
    listed = [f"x {s}" for s in others]
    if zeros:
        listed.insert(0, f"x {len(zeros)} zeros, scattered to {max(zeros):.0e}")
    return f"{row.method}: {len(row.own)}; +-{abs(nearest.imag):.6f} i{verdict}; {', '.join(listed)}"


if __name__ == "__main__":
    main()
