"""A light aircraft of JSBSim: trims over its speeds, its modes over them, and an autopilot flown in JSBSim itself.

``python run.py`` prints what the README shows and writes flight.png into the current folder, or ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jsbsim
import numpy as np
from fmilin_jsbsim import Flight, trim_flight
from fmilin_jsbsim.attitude import quaternion_of
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.linalg import solve_continuous_are

import fmilin as fl
from fmilin.signals import FloatArray

AIRCRAFT, ALTITUDE = "c172p", 4000.0
SPEEDS = (120.0, 135.0, 150.0, 165.0, 180.0, 195.0)
DESIGNED_AT, CLIMB, SECONDS, SAMPLE = 165.0, 50.0, 60.0, 1 / 120
LATERAL = {"e1", "e3", "v", "p", "r"}
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
Case = tuple[fl.OperatingPoint, fl.LinearModel]


def main() -> None:
    """Trim, linearize, design and fly; draw what comes out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="here by default")
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    model = fl.load(f"jsbsim:{AIRCRAFT}")
    cases = {speed: at(model, speed) for speed in SPEEDS}
    print_table(model, cases)
    own_linearization(cases[DESIGNED_AT][1])
    figure = Figure(figsize=(8, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    modes, flight = figure.subplots(2, 1)
    draw_modes(modes, cases)
    draw_flight(flight, fly(model, cases[DESIGNED_AT]))
    figure.savefig(output / "flight.png", dpi=120)


def at(model: fl.Model, speed: float) -> Case:
    """Return the trimmed point at a speed, and the linear model there."""
    point = trim_flight(model, Flight(speed, ALTITUDE))
    return point, fl.linearize(model, point)


def print_table(model: fl.Model, cases: dict[float, Case]) -> None:
    """Print trims and modes, one line for a speed."""
    print(f"{AIRCRAFT} at {ALTITUDE:g} ft, straight and level")
    print("ft/s   alpha  elevator  throttle  rev/min   short period        phugoid")
    for speed, (point, linear) in cases.items():
        values = dict(zip(model.outputs.names, model.evaluate(0.0, point.states, point.inputs).outputs, strict=True))
        elevator, throttle = (point.inputs[model.inputs.index_of(name)] for name in ("elevator", "throttle"))
        short, phugoid = longitudinal(linear)
        print(
            f"{speed:4.0f}  {np.degrees(values['alpha']):5.2f}  {elevator:8.3f}  {throttle:8.3f}  "
            f"{point.states[model.states.index_of('rpm')]:7.0f}   {short:.3f}   {phugoid:.4f}"
        )


def longitudinal(linear: fl.LinearModel) -> tuple[complex, complex]:
    """Return the short period and the phugoid: the fastest and the slowest oscillation that is not lateral."""
    values, vectors = np.linalg.eig(linear.A)
    lateral = np.array([name in LATERAL for name in linear.states.names])
    sizes = linear.states.scales(np.zeros(len(lateral)))
    shares = np.abs(vectors / sizes[:, None]) ** 2
    pairs = [
        complex(v) for v, share in zip(values, shares.T, strict=True)
        if v.imag > 1e-2 and share[lateral].sum() < 0.5 * share.sum()
    ]  # fmt: skip
    return max(pairs, key=abs), min(pairs, key=abs)


def own_linearization(ours: fl.LinearModel) -> None:
    """Print what JSBSim's own linearization says of the propeller's speed, and what ours says."""
    fdm = jsbsim.FGFDMExec(None)
    fdm.set_debug_level(0)
    fdm.load_model(AIRCRAFT)
    fdm.disable_output()
    for name, value in {"h-sl-ft": ALTITUDE, "vt-fps": DESIGNED_AT, "lat-gc-rad": 0.6}.items():
        fdm[f"ic/{name}"] = value
    fdm["propulsion/set-running"] = -1
    fdm.run_ic()
    linear = jsbsim.FGLinearization(fdm)
    names, A = [str(name) for name in linear.x_names], np.array(linear.system_matrix)
    rpm = next(i for i, name in enumerate(names) if "rpm" in name.lower())
    print("JSBSim's own linearization, row of the propeller's speed:")
    print("  " + ", ".join(f"{name} {value:.2g}" for name, value in zip(names, A[rpm], strict=True)))
    row = ours.A[ours.states.index_of("rpm")]
    print("fmilin's, [1/s], per ft/s, per rad:")
    print("  " + ", ".join(f"{name} {row[ours.states.index_of(name)]:.2g}" for name in ("rpm", "map", "u", "w", "lon")))


def regulator(linear: fl.LinearModel) -> tuple[list[str], FloatArray]:
    """Return an LQR over all states but latitude and longitude: their names, and the gain."""
    names = [name for name in linear.states.names if name not in ("lat", "lon")]
    kept = [linear.states.index_of(name) for name in names]
    A, B = linear.A[np.ix_(kept, kept)], linear.B[kept]
    allowed = {"h": 15.0, "rpm": 200.0, "map": 2e4, **dict.fromkeys(("e1", "e2", "e3"), 0.05)}
    allowed |= dict.fromkeys("uvw", 5.0) | dict.fromkeys("pqr", 0.2)
    Q = np.diag([1 / allowed[name] ** 2 for name in names])
    R = np.diag(1 / np.array([0.2, 0.2, 0.2, 0.15]) ** 2)
    return names, np.asarray(np.linalg.solve(R, B.T @ solve_continuous_are(A, B, Q, R)), dtype=np.float64)


def fly(model: fl.Model, case: Case) -> FloatArray:
    """Let JSBSim fly its own aircraft under the autopilot, which climbs after ten seconds; (time, h, VT)."""
    point, linear = case
    names, K = regulator(linear)
    wanted = dict(zip(model.states.names, point.states.tolist(), strict=True))
    fdm = started(wanted, point.inputs)
    history = []
    while fdm.get_sim_time() < SECONDS:
        target = wanted | {"h": ALTITUDE + (CLIMB if fdm.get_sim_time() > 10 else 0.0)}
        seen = measured(fdm)
        u = point.inputs - K @ np.array([seen[name] - target[name] for name in names])
        command(fdm, u)
        fdm.run()
        history.append((fdm.get_sim_time(), seen["h"], fdm["velocities/vt-fps"]))
    result = np.array(history)
    print(
        f"Autopilot, to climb {CLIMB:g} ft after 10 s: at {result[-1, 1] - ALTITUDE:.1f} ft after {SECONDS:g} s, "
        f"overshoot {max(result[:, 1].max() - ALTITUDE - CLIMB, 0):.1f} ft, speed within "
        f"{np.abs(result[:, 2] - DESIGNED_AT).max():.1f} ft/s"
    )
    return result


def started(wanted: dict[str, float], u: FloatArray) -> jsbsim.FGFDMExec:
    """Return JSBSim in the trimmed state, as it comes: its own integration, engine and controls."""
    fdm = jsbsim.FGFDMExec(None)
    fdm.set_debug_level(0)
    fdm.set_dt(SAMPLE)
    fdm.load_model(AIRCRAFT)
    fdm.disable_output()
    alpha = np.arctan2(wanted["w"], wanted["u"])
    start = {"lat-gc-rad": wanted["lat"], "long-gc-rad": 0.0, "h-sl-ft": wanted["h"], "phi-rad": 0.0}
    start |= {"theta-rad": alpha, "psi-true-rad": np.pi / 2, **{f"{name}-fps": wanted[name] for name in "uvw"}}
    for name, value in start.items():
        fdm[f"ic/{name}"] = value
    fdm["fcs/mixture-cmd-norm"] = 1.0
    command(fdm, u)
    fdm.run_ic()
    fdm.get_propulsion().init_running(-1)
    return fdm


def command(fdm: jsbsim.FGFDMExec, u: FloatArray) -> None:
    """Move the controls, within their ranges."""
    for name, value in zip(("aileron", "elevator", "rudder", "throttle"), u.tolist(), strict=True):
        fdm[f"fcs/{name}-cmd-norm"] = min(max(value, 0.0 if name == "throttle" else -1.0), 1.0)


def measured(fdm: jsbsim.FGFDMExec) -> dict[str, float]:
    """Return the states by the names of the linear model."""
    e = quaternion_of(*(fdm[f"attitude/{name}-rad"] for name in ("phi", "theta", "psi")))
    seen = {f"e{i}": float(value) for i, value in enumerate(e)}
    seen |= {name: fdm[f"velocities/{name}-fps"] for name in "uvw"} | {n: fdm[f"velocities/{n}-rad_sec"] for n in "pqr"}
    return seen | {
        "h": fdm["position/h-sl-ft"],
        "rpm": fdm["propulsion/engine/propeller-rpm"],
        "map": fdm["propulsion/engine/map-pa"],
    }


def draw_modes(axes: Axes, cases: dict[float, Case]) -> None:
    """Draw both modes over the envelope."""
    for k, (label, colour) in enumerate((("short period", BLUE), ("phugoid", ORANGE))):
        values = np.array([longitudinal(linear)[k] for _, linear in cases.values()])
        axes.plot(SPEEDS, np.abs(values), color=colour, marker="o", label=f"{label}, frequency [rad/s]")
        axes.plot(SPEEDS, -values.real / np.abs(values), color=colour, linestyle="--", label=f"{label}, damping ratio")
    axes.plot(
        SPEEDS, np.sqrt(2) * 32.1 / np.array(SPEEDS), color="black", linewidth=0.8, label="Lanchester, sqrt(2) g/V"
    )
    axes.set(yscale="log", ylim=(0.04, 60), xlabel="true airspeed [ft/s]", title=f"{AIRCRAFT} at {ALTITUDE:g} ft")
    axes.legend(frameon=False, fontsize="small", ncols=2)


def draw_flight(axes: Axes, flight: FloatArray) -> None:
    """Draw the climb."""
    axes.plot(flight[:, 0], flight[:, 1] - ALTITUDE, color=BLUE, label="altitude [ft]")
    axes.plot(flight[:, 0], flight[:, 2] - DESIGNED_AT, color=GREEN, label="speed, from trim [ft/s]")
    axes.set(xlabel="t [s]", title="JSBSim flies with the LQR: a climb of 50 ft")
    axes.legend(frameon=False)


if __name__ == "__main__":
    main()
