"""Mechanisms from files and from the package: two sets of coordinates of a loader, and a gallery.

``python run.py`` prints the tables of the README, and writes its pictures into the current folder, or into
``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from linkages import five_bar_mechanism, four_bar_mechanism, parallel_robot

import fmilin as fl
from fmilin import LinearModel
from fmilin.models.mechanism import Mechanism
from fmilin.report import mechanism_figure
from fmilin.systems import double_wishbone, furuta_pendulum, loader, slider_crank, stewart_platform

HERE = Path(__file__).parent
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
OUTPUT: Path = parser.parse_args().output
OUTPUT.mkdir(parents=True, exist_ok=True)
ANGLES, STROKES = ["boom.q", "bucket.q"], ["lift.q", "tilt.q"]


def main() -> None:
    """Print the tables, draw the pictures."""
    compare_coordinates()
    check_robot()
    for name, (model, title) in gallery().items():
        linear = fl.linearize(model)
        figure = mechanism_figure(model.description, linear, title=title)
        figure.savefig(OUTPUT / f"{name}.png", dpi=130, metadata={"Software": ""})


def compare_coordinates() -> None:
    """The loader in two sets of coordinates, off its equilibrium and in it."""
    free = Mechanism.from_toml(HERE / "loader.toml")
    print("| loader | boom and bucket angles | cylinder strokes |")
    print("| --- | --- | --- |")
    for words, model in (("cylinders free of force", free), ("held in equilibrium", loader(at_rest=True))):
        angles, strokes = (fl.linearize(model, independent=names) for names in (ANGLES, STROKES))
        print(f"| {words} | {spectrum(angles)} | {spectrum(strokes)} |")
    print()


def check_robot() -> None:
    """A robot from a URDF file and the loop in the file next to it; K is constant."""
    robot = fl.load(HERE / "robot.urdf")
    linear = fl.linearize(robot)
    print("K of the parallel robot:", np.round(linear.T[:4, :2], 12).tolist())


def spectrum(linear: LinearModel) -> str:
    """Return the eigenvalues with positive or no imaginary part."""
    values = sorted((s for s in linear.eigenvalues() if s.imag >= 0 and abs(s) > 0), key=abs)
    return ", ".join(f"±{s.imag:.4f} i" if abs(s.real) < 1e-9 else f"{s:.4f}" for s in values)


def gallery() -> dict[str, tuple[Mechanism, str]]:
    """Return each mechanism with its title, by the name of its picture."""
    return {
        "four_bars": (four_bar_mechanism(3), "Three four-bar linkages with springs"),
        "parallel_robot": (parallel_robot(), "Parallel four-bar robot, held by its motors"),
        "five_bar": (five_bar_mechanism(), "Five-bar mechanism"),
        "slider_crank": (slider_crank(), "Slider-crank mechanism"),
        "loader": (loader(at_rest=True), "Loader, held by its cylinders"),
        "stewart_platform": (stewart_platform(), "Stewart platform"),
        "double_wishbone": (double_wishbone(), "Double-wishbone suspension"),
        "furuta_pendulum": (furuta_pendulum(), "Furuta pendulum"),
    }


if __name__ == "__main__":
    main()
