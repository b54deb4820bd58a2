"""Systems with accelerometers, their true motions with noise, and whether filters know how large their errors are.

The noise of each sample is held over it: the motion feels it, and an accelerometer reads it at the end of the sample.
The true motion is integrated by scipy's DOP853 on the model's rates, which no filter uses.

Usage: ``python -m tests.design.accelerated --runs 100`` prints NEES and NIS of every filter on every system.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin import design
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, furuta_pendulum, slider_crank
from tests.c_code import CCode

KINDS = ("ekf", "iekf", "ukf", "mhe", "c")
SAMPLES = 12  # of a run
SMALL = 0.02  # deviations of the noise for the linear filter, in those for the filters on the nonlinear model


@dataclass(frozen=True)
class Case:
    """A model with sensors, some of which see a noisy input at once."""

    model: fl.Model
    outputs: Mapping[str, float]  # deviations of the sensors' noise
    noise: Mapping[str, float]  # deviations of the held noise of inputs
    sample_time: float
    start: Mapping[str, float]  # deviations of the first guess, of the coordinates
    commands: float = 1.0  # amplitude of the known inputs

    def scale(self, factor: float) -> Case:
        """Return the case with smaller deviations."""
        outputs, noise, start = (
            {name: factor * value for name, value in values.items()}
            for values in (self.outputs, self.noise, self.start)
        )
        return Case(self.model, outputs, noise, self.sample_time, start, factor * self.commands)


def _chain() -> OdeModel:
    """Return three carts in a row, the first and the last pushed."""
    rates: dict[str, str] = {f"x{i}": f"v{i}" for i in (1, 2, 3)}
    rates |= {
        "v1": "F1 - 3*x1 - 4*(x1 - x2) - 0.4*v1",
        "v2": "(4*(x1 - x2) - 5*(x2 - x3) - 0.3*v2)/2",
        "v3": "(F3 + 5*(x2 - x3) - 0.2*v3)/1.5",
    }
    return OdeModel("chain", rates, inputs=["F1", "F3"], outputs={"a1": "der(v1)", "a3": "der(v3)", "x2": "x2"})


def _quarter_car() -> OdeModel:
    """Return a body on a wheel; the road's speed reaches the wheel through the tire's damping."""
    rates = {
        "s": "v - r", "d": "road - r",
        "v": "(-16*s - 1.5*(v - r) + F)/0.3", "r": "(16*s + 1.5*(v - r) - F + 160*d + 2*(road - r))/0.05",
    }  # fmt: skip
    return OdeModel("quarter_car", rates, inputs=["road", "F"], outputs={"a": "der(v)", "b": "der(r)", "s": "s"})


def _duffing() -> OdeModel:
    return OdeModel("duffing", {"x": "v", "v": "F - x - x^3 - 0.2*v"}, inputs=["F"], outputs={"a": "der(v)", "x": "x"})


def _quadrotor() -> OdeModel:
    """Return a plane quadrotor; both accelerometers turn with it."""
    rates = {
        "x": "vx", "z": "vz", "th": "w",
        "vx": "-(9.81 + left + right)*sin(th)", "vz": "(9.81 + left + right)*cos(th) - 9.81", "w": "8*(right - left)",
    }  # fmt: skip
    outputs = {
        "ax": "der(vx)*cos(th) + (der(vz) + 9.81)*sin(th) + 0.1*der(w)",
        "az": "-der(vx)*sin(th) + (der(vz) + 9.81)*cos(th)",
        "gyro": "w", "px": "x", "pz": "z",
    }  # fmt: skip
    return OdeModel("quadrotor", rates, inputs=["left", "right"], outputs=outputs)


def _crane() -> OdeModel:
    """Return a trolley with a swinging load, an accelerometer on each."""
    a = "(F + sin(q)*(w^2 + 9.81*cos(q)))/(2 + sin(q)^2)"
    rates = {"s": "v", "q": "w", "v": a, "w": f"-({a})*cos(q) - 9.81*sin(q)"}
    return OdeModel(
        "crane", rates, inputs=["F"], outputs={"s": "s", "trolley": "der(v)", "load": "der(v)*cos(q) + der(w)"}
    )


def _motor() -> OdeModel:
    """Return a motor; its current is read through a shunt that sees the noisy voltage at once."""
    return OdeModel(
        "motor", {"i": "(u - 2*i - 0.5*w)/0.05", "w": "(0.5*i - 0.1*w)/0.02"}, inputs=["u"],
        outputs={"terminal": "u - 2*i", "w": "w"},
    )  # fmt: skip


@cache
def cases() -> dict[str, Case]:
    """Return the systems."""
    cart = OdeModel("cart", {"x": "v", "v": "(u - 0.5*v - 2*x)/2"}, inputs=["u"], outputs={"acc": "der(v)"})
    pendulum, linkage = cartesian_pendulum(angle=0.4), four_bar(damping=0.3)
    return {
        "cart": Case(cart, {"acc": 0.03}, {"u": 0.7}, 0.05, {"x": 0.2, "v": 0.2}),
        "chain": Case(
            _chain(), {"a1": 0.05, "a3": 0.03, "x2": 0.02}, {"F1": 0.4, "F3": 0.3}, 0.1,
            {f"{a}{i}": 0.1 for a in "xv" for i in (1, 2, 3)},
        ),
        "quarter car": Case(
            _quarter_car(), {"a": 0.2, "b": 1.0, "s": 2e-3}, {"road": 0.1, "F": 0.05}, 0.02,
            {"s": 0.02, "d": 5e-3, "v": 0.1, "r": 0.2}, 0.1,
        ),
        "motor": Case(_motor(), {"terminal": 0.05, "w": 0.1}, {"u": 0.3}, 0.01, {"i": 0.1, "w": 0.5}),
        "duffing": Case(_duffing(), {"a": 0.05, "x": 0.05}, {"F": 0.3}, 0.1, {"x": 0.05, "v": 0.05}),
        "quadrotor": Case(
            _quadrotor(), {"ax": 0.02, "az": 0.02, "gyro": 5e-3, "px": 0.05, "pz": 0.05},
            {"left": 0.1, "right": 0.1}, 0.05,
            {"x": 0.1, "z": 0.1, "th": 0.02, "vx": 0.1, "vz": 0.1, "w": 0.02}, 0.1,
        ),
        "crane": Case(
            _crane(), {"s": 0.01, "trolley": 0.02, "load": 0.02}, {"F": 0.3}, 0.05,
            {"s": 0.05, "q": 0.02, "v": 0.05, "w": 0.05},
        ),
        "pendulum": Case(pendulum, {"x": 0.01, "der(vx)": 0.03}, {"F": 0.5}, 0.05, {"x": 0.02, "vx": 0.05}),
        "four-bar": Case(
            linkage, {"phi": 5e-3, "der(vx1)": 0.03}, {"torque": 0.3}, 0.02, {"phi": 0.01, "w": 0.05}, 0.2
        ),
        "slider-crank": Case(
            slider_crank(), {"phi": 5e-3, "slider.a": 0.05}, {"torque": 0.3, "force": 0.3}, 0.02,
            {"phi": 0.01, "w": 0.05}, 0.2,
        ),
        "furuta": Case(
            furuta_pendulum(), {"arm.q": 2e-3, "pendulum.q": 2e-3, "der(pendulum.v)": 0.5, "der(arm.v)": 0.5},
            {"torque": 5e-3}, 0.01, {"arm.q": 0.01, "pendulum.q": 0.01, "arm.v": 0.03, "pendulum.v": 0.03}, 2e-3,
        ),
    }  # fmt: skip


@dataclass(frozen=True)
class Consistency:
    """Sums of squared errors and innovations of independent runs."""

    nees: float
    nees_count: int
    nis: float
    nis_count: int

    def is_within(self, probability: float) -> tuple[bool, bool]:
        """Return whether both sums are in the band in which those of a right filter are with this probability."""
        return tuple(
            bool(abs(stats.chi2.cdf(total, count) - 0.5) <= probability / 2)
            for total, count in ((self.nees, self.nees_count), (self.nis, self.nis_count))
        )  # type: ignore[return-value]

    @property
    def z(self) -> tuple[float, float]:
        """Both sums in standard deviations from their expectations."""
        return tuple(
            float((total - count) / np.sqrt(2 * count))
            for total, count in ((self.nees, self.nees_count), (self.nis, self.nis_count))
        )  # type: ignore[return-value]


class Truth:
    """The true motion of a case with noise."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.model = case.model.with_interface(None, list(case.outputs))
        names = self.model.inputs.names
        self.noise = np.array([case.noise.get(name, 0.0) for name in names])
        self.measured = np.array(list(case.outputs.values()))

    def command(self, k: int) -> FloatArray:
        """Return the known inputs of a sample."""
        phases = np.arange(len(self.noise))
        return np.asarray(self.case.commands * np.sin(0.4 * k + phases))

    def advance(self, x: FloatArray, u: FloatArray, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the states and the measurements a sample later."""
        applied = u + self.noise * random.standard_normal(len(u))
        h = self.case.sample_time

        def compute_rates(t: float, x: FloatArray) -> FloatArray:
            return self.model.evaluate(t, x, applied).derivatives

        x = solve_ivp(compute_rates, (0.0, h), x, method="DOP853", rtol=1e-8, atol=1e-10).y[:, -1]
        y = self.model.evaluate(h, x, applied).outputs
        return x, y + self.measured * random.standard_normal(len(y))


def make_estimator(case: Case, kind: str) -> design.Estimator:
    """Return the estimator of a kind."""
    return design.estimator(
        case.model, kind="ekf" if kind == "c" else kind, outputs=list(case.outputs), sample_time=case.sample_time,
        process_noise=_square(case.noise), measurement_noise=_square(case.outputs), hold_noise=True, horizon=4,
        initial_covariance=_square(case.start),
    )  # fmt: skip


def _square(deviations: Mapping[str, float]) -> dict[str, float]:
    return {name: value**2 for name, value in deviations.items()}


def draw_start(
    case: Case, center: FloatArray, factor: FloatArray, names: Sequence[str], random: np.random.Generator
) -> FloatArray:
    """Return states on the manifold whose coordinates differ from those of the center as their covariance says."""
    error = factor @ random.standard_normal(len(factor))
    at = [case.model.states.index_of(name) for name in names]
    values = dict(zip(names, (center[at] + error).tolist(), strict=True))
    point = fl.operating_point(case.model, values)
    return point.states


def run_estimator(case: Case, kind: str, runs: int, seed: int, samples: int = SAMPLES) -> Consistency:
    """Return NEES of the last samples and NIS of all samples of independent runs."""
    kf, truth = make_estimator(case, kind), Truth(case)
    nees = nis = 0.0
    nis_count = 0
    with tempfile.TemporaryDirectory() as folder:
        code = None
        if kind == "c":
            kf.save(Path(folder) / "filter.c")
            code = CCode(Path(folder) / "filter.c")
        for run in range(runs):
            random = np.random.default_rng([seed, run])
            kf.reset()
            if code is not None:
                code.restart()
            factor: FloatArray = np.asarray(np.linalg.cholesky(kf.covariance))
            x = draw_start(case, kf.x, factor, kf.states.names, random)
            for k in range(samples):
                u = truth.command(k)
                x, y = truth.advance(x, u, random)
                kf.step(u, y)
                nis_count += len(y)
                if code is None:
                    nis += kf.nis
                    estimate = kf.x
                else:
                    out = code.step(*u, *y)
                    nis += out[-2]
                    estimate = out[:-2]
            error = (x - estimate)[kf.kept]
            nees += float(error @ np.linalg.solve(kf.covariance, error))
    return Consistency(nees, runs * len(kf.kept), nis, nis_count)


def run_kalman_filter(case: Case, runs: int, seed: int, samples: int = SAMPLES) -> Consistency:
    """Return the same of the steady filter at the equilibrium, around which the nonlinear model moves little."""
    case = case.scale(SMALL)
    truth = Truth(case)
    point = fl.trim(case.model)
    linear = fl.linearize(case.model, point, outputs=list(case.outputs))
    kf = design.kalman_filter(
        linear, case.sample_time, process=_square(case.noise), measured=_square(case.outputs), hold_noise=True
    )
    names = linear.states.names
    at = [case.model.states.index_of(name) for name in names]
    factor: FloatArray = np.asarray(np.linalg.cholesky(kf.covariance))
    nees = nis = 0.0
    for run in range(runs):
        random = np.random.default_rng([seed, run])
        x = draw_start(case, point.states, factor, names, random)
        y = linear.y0
        for k in range(samples):
            u = linear.u0 + truth.command(k)
            x, measured = truth.advance(x, u, random)
            y, innovation = kf.correct(kf.predict(y, u), u, measured)
            nis += float(innovation @ np.linalg.solve(kf.innovation_covariance, innovation))
        error = x[at] - y
        nees += float(error @ np.linalg.solve(kf.covariance, error))
    return Consistency(nees, runs * len(names), nis, runs * samples * len(case.outputs))


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=43)
    parser.add_argument("--kinds", nargs="+", default=["kalman", *KINDS])
    parser.add_argument("--only", nargs="+")
    arguments = parser.parse_args()
    outside = total = 0
    for place, (name, case) in enumerate(cases().items()):
        if arguments.only and name not in arguments.only:
            continue
        for number, kind in enumerate(arguments.kinds):
            seed = 1000 * arguments.seed + 10 * place + number
            runs = max(arguments.runs // 4, 5) if kind == "mhe" else arguments.runs
            try:
                found = (
                    run_kalman_filter(case, runs, seed) if kind == "kalman" else run_estimator(case, kind, runs, seed)
                )
            except fl.FmilinError as error:
                _write(f"{name:14}{kind:8} {type(error).__name__}: {error}")
                continue
            within = found.is_within(0.95)
            outside += within.count(False)
            total += 2
            _write(
                f"{name:14}{kind:8} NEES {found.nees / found.nees_count:6.3f} ({found.z[0]:+5.1f})"
                f"  NIS {found.nis / found.nis_count:6.3f} ({found.z[1]:+5.1f})  {'' if all(within) else 'outside'}",
            )
    _write(f"{outside} of {total} outside their bands of 95 %: {0.05 * total:.1f} are expected")


if __name__ == "__main__":
    main()
