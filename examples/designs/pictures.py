"""What the designs share: the folder that their pictures go to, and how the pictures look."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8a8f94"  # distinguishable for colour-blind people, and in print


def run(main: Callable[[Path], dict[str, Any]]) -> None:
    """Run a design from the command line: print its figures, write its picture."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, default=Path(), help="folder for what is written (default: this one)")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in main(folder).items():
        print(f"{name:<44} {value:.5g}" if isinstance(value, float) else f"{name:<44} {value}")


def picture(rows: int, title: str) -> tuple[Figure, Any]:
    """Return a figure with ``rows`` diagrams over the same time."""
    figure = Figure(figsize=(7.0, 1.2 + 1.9 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.02, ha="left")
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for one in axes:
        one.grid(visible=True, color="#dcdfe2")
    return figure, axes
