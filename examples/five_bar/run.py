"""The five-bar mechanism from and through its singular configuration: Spencer (thesis), section 3.2.

``python run.py`` prints the table of the README, and writes its two pictures into the current folder, or into
``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

import fmilin as fl
from fmilin.models import MultiplierModel, NullSpaceModel, SymbolicModel
from fmilin.signals import FloatArray
from fmilin.simulation import Baumgarte, Method, Projection, Stabilization, Underlying
from fmilin.systems import five_bar

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
OUTPUT: Path = parser.parse_args().output
OUTPUT.mkdir(parents=True, exist_ok=True)

STOP = 5.0
RK4 = Method("RK4", longest_step=1e-3)
"""The thesis' integrator and step, in seconds."""

RETURN = 2.82536845859
"""When the mechanism is back at the singular configuration, along the symmetric branch, in seconds."""

BLUE, ORANGE, GREEN, GOLD, QUIET = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#5f6368"
NAMES = ("$q_1$", "$q_2$", "$q_3$", "$q_4$")


@dataclass(frozen=True)
class Case:
    """A way to simulate the mechanism from its regular configuration."""

    name: str
    model: SymbolicModel
    stabilization: Stabilization

    def motion(self) -> fl.Trajectory:
        """Return 5 s of it, a sample every 5 ms."""
        return fl.simulate(
            self.model, stop_time=STOP, step=5e-3, stabilization=self.stabilization, method=RK4, energy="energy"
        )


def main() -> None:
    """Do both runs, print the table and draw the pictures."""
    first = NullSpaceModel(five_bar(singular=True))
    fall = fl.simulate(first, stop_time=STOP, step=5e-3, stabilization=Underlying(), method=RK4, energy="energy")
    draw_fall(fall, condition_numbers(first, fall))

    null_space, multipliers = NullSpaceModel(five_bar()), MultiplierModel(five_bar())
    # The thesis takes the projection for converged at 1e-3.
    projected = Case("null space + projection (energy, too)", null_space, Projection(keeps_energy=True, tolerance=1e-3))
    stabilized = Case("multipliers + Baumgarte (10, 10)", multipliers, Baumgarte(10.0, 10.0))
    others = [
        Case("null space + projection", null_space, Projection(tolerance=1e-3)),
        Case("multipliers, nothing done", multipliers, Underlying()),
    ]
    motions = {case.name: case.motion() for case in (projected, stabilized, *others)}
    kappa = {name: condition_numbers(null_space, motion) for name, motion in motions.items()}
    print_table(motions, kappa)
    first_two = [(motions[case.name], kappa[case.name]) for case in (projected, stabilized)]
    draw_passage(*first_two)


def condition_numbers(model: NullSpaceModel, motion: fl.Trajectory) -> FloatArray:
    """Return kappa = sigma_1/sigma_m of G at every sample."""
    samples = zip(motion.times, motion.states, strict=True)
    return np.array([model.singularity(t, x).constraints.condition_number for t, x in samples])


def passages(times: FloatArray, kappa: FloatArray) -> list[float]:
    """Return when the singular configuration is passed: peaks of the condition number above 50."""
    peak = (kappa[1:-1] > kappa[:-2]) & (kappa[1:-1] >= kappa[2:]) & (kappa[1:-1] > 50)
    return [float(t) for t in times[1:-1][peak]]


def print_table(motions: dict[str, fl.Trajectory], kappa: dict[str, FloatArray]) -> None:
    """Print one line per case."""
    print("| formulation | passes the singularity at | largest drift, positions | velocities | energy is off by |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name, motion in motions.items():
        times = ", ".join(f"{t:.2f} s" for t in passages(motion.times, kappa[name]))
        drift = np.abs(motion.drift).max(axis=0)
        change = np.abs(motion.energy - motion.energy[0]).max()
        print(f"| {name} | {times} | {drift[:2].max():.1e} m | {drift[2:].max():.1e} m/s | {change:.2g} J |")


# -- pictures ----------------------------------------------------------------------------------------


def draw_fall(motion: fl.Trajectory, kappa: FloatArray) -> None:
    """Draw the run that starts at the singular configuration."""
    figure, axes = panels("Falling from the singular configuration, and back")
    draw_angles(axes[0], motion)
    finish(axes[0], "Joint angles [π rad]")
    axes[1].semilogy(motion.times, np.minimum(kappa, 1e6), color=BLUE)
    axes[1].set_ylim(0.7, 1e6)
    axes[1].annotate(f"{RETURN:.3f} s", (RETURN, 2e3), (RETURN + 0.12, 2e4), color=QUIET, fontsize=9.5)
    finish(axes[1], r"Condition number $\sigma_1/\sigma_m$ of G")
    for name, color in (("kinetic_energy", BLUE), ("potential_energy", ORANGE)):
        axes[2].plot(motion.times, motion[name], color=color, label=name.removesuffix("_energy"))
    axes[2].plot(motion.times, motion.energy, color=QUIET, label="sum")
    finish(axes[2], "Energy [J]")
    draw_drift(axes[3], motion, BLUE)
    axes[3].set_ylim(1e-11, 1e-5)
    finish(axes[3], "Opening of the loop [m]")
    for each in axes:
        each.axvline(RETURN, color="#b9bdc3", linewidth=0.9, zorder=0)
    figure.savefig(OUTPUT / "from_singularity.png", dpi=120)


def draw_passage(projected: tuple[fl.Trajectory, FloatArray], stabilized: tuple[fl.Trajectory, FloatArray]) -> None:
    """Draw the run that passes the singular configuration, in both ways."""
    figure, axes = panels("Through the singular configuration")
    draw_angles(axes[0], projected[0])
    draw_angles(axes[0], stabilized[0], dashed=True)
    axes[0].plot([], [], color=QUIET, linestyle="--", label="Baumgarte")
    finish(axes[0], "Joint angles [π rad]")
    words = ("null space + projection", "multipliers + Baumgarte")
    for (motion, kappa), color, word in zip((projected, stabilized), (BLUE, ORANGE), words, strict=True):
        axes[1].semilogy(motion.times, kappa, color=color)
        axes[2].plot(motion.times, motion.energy - motion.energy[0], color=color, label=word)
        draw_drift(axes[3], motion, color)
    finish(axes[1], r"Condition number $\sigma_1/\sigma_m$ of G")
    finish(axes[2], "Change of the energy [J]", legend="center left")
    finish(axes[3], "Opening of the loop [m]")
    figure.savefig(OUTPUT / "through_singularity.png", dpi=120)


def panels(title: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with two rows and two columns of panels."""
    figure = Figure(figsize=(10.5, 6.9), layout=ConstrainedLayoutEngine(h_pad=0.09))
    figure.suptitle(title, fontsize=14, fontweight="bold", x=0.01, ha="left")
    every = list(figure.subplots(2, 2, sharex=True).ravel())
    for axes in every[-2:]:
        axes.set_xlabel("time [s]")
    return figure, every


def finish(axes: Axes, title: str, legend: Literal["", "center left"] = "") -> None:
    """Title on the left, legend in the same line on the right unless it has another place."""
    axes.set_title(title, loc="left", fontsize=10.5)
    handles, labels = axes.get_legend_handles_labels()
    if legend:
        axes.legend(handles, labels, frameon=False, fontsize=9.5, loc=legend)
    elif labels:
        axes.legend(handles, labels, frameon=False, fontsize=9, ncols=len(labels), loc="lower right",
                    bbox_to_anchor=(1.01, 0.985), handlelength=1.3, columnspacing=0.9, borderaxespad=0.3)  # fmt: skip
    axes.margins(x=0)
    axes.grid(visible=True, color="#e4e6e9", linewidth=0.7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_angles(axes: Axes, motion: fl.Trajectory, *, dashed: bool = False) -> None:
    """Draw the joint angles in turns of pi; q2 and q4 are the same as long as the motion is symmetric."""
    widths = (1.7, 3.4, 1.7, 1.2)
    for i, (name, color, width) in enumerate(zip(NAMES, (BLUE, ORANGE, GREEN, GOLD), widths, strict=True)):
        if dashed:
            axes.plot(motion.times, motion.states[:, i] / np.pi, color=color, linestyle="--", linewidth=1.1, alpha=0.7)
        else:
            axes.plot(motion.times, motion.states[:, i] / np.pi, color=color, linewidth=width, label=name)


def draw_drift(axes: Axes, motion: fl.Trajectory, color: str) -> None:
    """Draw the largest constraint residual on position level."""
    largest = np.abs(motion.drift[:, :2]).max(axis=1)
    axes.semilogy(motion.times, np.maximum(largest, 1e-16), color=color)


if __name__ == "__main__":
    main()
