"""Operating points: published trims to their digits, random targets against brute force, what an output costs.

``missed`` counts targets for which brute force (SciPy's least squares from many starts, on the equations alone) finds a
point and ``fl.trim`` none; ``false`` answers that do not satisfy the equations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import degrees, pi
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import fmilin as fl
from benchmarks import published_trims as published
from benchmarks.counting import count_calls
from benchmarks.tables import show
from fmilin.errors import NumericalError
from fmilin.signals import FloatArray
from fmilin.systems import four_bar
from tests.trimming.test_targets import car, motors, tank

__all__ = ["main"]

TARGETS, STARTS = 25, 15
TURN = 180 / pi

F16_TABLE = (  # table 3.6-2: speed, throttle, angle of attack, elevator
    (130, "0.816", "45.6", "20.1"), (140, "0.736", "40.3", "-1.36"), (150, "0.619", "34.6", "0.173"),
    (170, "0.464", "27.2", "0.621"), (200, "0.287", "19.7", "0.723"), (260, "0.148", "11.6", "-0.09"),
    (300, "0.122", "8.49", "-0.591"), (350, "0.107", "5.87", "-0.539"), (400, "0.108", "4.16", "-0.591"),
    (440, "0.113", "3.19", "-0.671"), (500, "0.137", "2.14", "-0.756"), (540, "0.16", "1.63", "-0.798"),
    (600, "0.2", "1.04", "-0.846"), (640, "0.23", "0.742", "-0.871"), (700, "0.282", "0.382", "-0.9"),
    (800, "0.378", "-0.045", "-0.943"),
)  # fmt: skip
F16_TURN = {  # table 3.6-3, fourth column
    "alpha": "0.2485", "phi": "1.367", "theta": "0.05185", "p": "-0.01555", "q": "0.2934", "r": "0.06071",
    "thtl": "0.8499", "el": "-6.256", "ail": "0.09891", "rdr": "-0.4218",
}  # fmt: skip
SURFACES = ["thtl", "el", "ail", "rdr"]


@dataclass(frozen=True)
class Published:
    """One number: where it stands, as it is printed, and what fmilin finds."""

    source: str
    name: str
    printed: str
    value: float

    @property
    def off(self) -> float:
        """The difference in units of the last printed digit."""
        digits = len(self.printed.partition(".")[2])
        return float(abs(self.value - float(self.printed)) * 10.0**digits)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _show_published()
        _show_random()
        _show_costs()


# -- published ---------------------------------------------------------------------------------------------------------


def _values(model: fl.Model, **request: Any) -> dict[str, float]:
    point = fl.trim(model, **request)
    values = dict(zip(model.states.names, point.states.tolist(), strict=True))
    return values | dict(zip(model.inputs.names, point.inputs.tolist(), strict=True))


def _published() -> list[Published]:
    numbers: list[Published] = []

    def compare(source: str, values: Mapping[str, float], printed: Mapping[str, str], at: str = "") -> None:
        numbers.extend(Published(source, f"{at}{n}", text, values[n]) for n, text in printed.items())

    transport = published.transport()
    source = "Stevens and Lewis, transport"
    for V, h, guess, printed in (
        (170, 0, {"alpha": 0.3, "elev": -20.0}, {"thtl": "0.297", "elev": "-25.7", "alpha_deg": "22.1"}),
        (500, 0, {}, {"thtl": "0.293", "elev": "2.46", "alpha_deg": "0.580"}),
        (500, 30000, {}, {"thtl": "0.204", "elev": "-4.10", "alpha_deg": "5.43"}),
    ):
        values = _values(transport, fixed={"V": V, "h": h, "gamma": 0.0}, free=["thtl", "elev"], guess=guess)
        compare(source, values | {"alpha_deg": degrees(values["alpha"])}, printed, f"{V} ft/s, {h} ft: ")
    _compare_f16(compare)
    symmetric = {"VA": 85.0, "gamma": 0.0, "v": 0.0, "psi": 0.0}
    controls = ["ail", "stab", "rud", "th1", "th2"]
    values = _values(published.rcam(), fixed=symmetric, free=controls, minimize="th1^2 + th2^2")
    printed = {"u": "84.9905", "w": "1.2713", "theta": "0.0150", "stab": "-0.1780", "th1": "0.0821", "th2": "0.0821"}
    compare("GARTEUR, RCAM", values, printed, "85 m/s: ")
    for name, posture, torques in (
        ("nominal", (0, pi / 4, pi, 0, pi / 4, 0), {"tau2": "31.6399", "tau3": "6.0351", "tau5": "0.0283"}),
        ("stretched", (0, 0, -pi / 2, 0, 0, 0), {"tau2": "46.0069", "tau3": "8.7722", "tau5": "0.0283"}),
        ("ready", (0, pi / 2, -pi / 2, 0, 0, 0), {"tau2": "-0.7752", "tau3": "0.2489"}),
    ):
        fixed = {f"j{i}.q": q for i, q in enumerate(posture, start=1)}
        values = _values(published.puma(), fixed=fixed, free=[f"tau{i}" for i in range(1, 7)])
        compare("Corke, Puma 560", values, torques, f"{name}: ")
    values = _values(published.klatt_engell(), fixed={"F": 14.19, "Q": -1113.5})
    compare("Klatt and Engell", values, {"cA": "2.14", "cB": "1.09", "T": "114.2", "TK": "112.9"})
    values = _values(published.beer_disk(), stable=True)
    compare(
        "Beer and Johnston 10.4", {"degrees": values["theta"] * TURN, **values}, {"theta": "0.902", "degrees": "51.7"}
    )
    values = _values(published.hibbeler_link(), stable=True)
    compare("Hibbeler 11.5", {"degrees": values["theta"] * TURN}, {"degrees": "53.8"})
    return numbers


def _compare_f16(compare: Callable[..., None]) -> None:
    source, guess = "Stevens and Lewis, F-16", {"alpha": 0.17, "theta": 0.17, "thtl": 0.5}
    bounds = {"el": (-25.0, 25.0)}
    for V, throttle, alpha, elevator in F16_TABLE:
        level = {"VT": V, "h": 0.0, "psi": 0.0, "beta": 0.0, "phi": 0.0}
        try:
            values = _values(
                published.f16(), fixed=level, steady=["pn", "pe"], free=SURFACES, guess=guess, bounds=bounds
            )
        except NumericalError:
            values = dict.fromkeys(("thtl", "alpha", "el"), np.nan)
        values["alpha_deg"] = degrees(values["alpha"])
        compare(source, values, {"thtl": throttle, "alpha_deg": alpha, "el": elevator}, f"{V} ft/s: ")
    turn = {"VT": 502.0, "h": 0.0, "psi": 0.0, "der(psi)": 0.3, "ay": 0.0}
    guess = {"alpha": 0.2, "phi": 1.3, "q": 0.3, "el": -6.0, "thtl": 0.8}
    values = _values(published.f16(0.3), fixed=turn, steady=["pn", "pe"], free=SURFACES, guess=guess)
    compare(f"{source} turning", values, F16_TURN)


def _show_published() -> None:
    numbers = _published()
    sources = list(dict.fromkeys(n.source for n in numbers))
    rows = []
    for source in sources:
        own = [n for n in numbers if n.source == source]
        worst = max(own, key=lambda n: np.nan_to_num(n.off, nan=np.inf))
        rows.append(
            [
                source,
                str(len(own)),
                str(sum(n.off <= 0.51 for n in own)),
                f"{worst.name} {worst.value:.6g}",
                worst.printed,
            ]
        )
    exact = sum(n.off <= 0.51 for n in numbers)
    show(
        "Points: published trims",
        ["source", "numbers", "to the digit", "farthest", "printed"],
        rows,
        f"to the digit: {exact} of {len(numbers)} numbers of {len(sources)} sources (30 of 5). The tables of the F-16 "
        "were printed from a simplex search in single precision.",
    )


# -- random targets ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Search:
    """Random targets of one model: in a box, some of them out of reach."""

    make: Callable[[], fl.Model]
    targets: Mapping[str, tuple[float, float]]
    free: Sequence[str]
    fixed: Mapping[str, float] = field(default_factory=dict)
    steady: Sequence[str] = ()
    sizes: Mapping[str, float] = field(default_factory=dict)  # of unknowns, for brute force


SEARCHES = (
    Search(tank, {"flow": (0.02, 0.3)}, ["q"]),
    Search(car, {"ay": (-3.0, 3.0), "der(psi)": (0.05, 1.0)}, ["thrust", "steer"], {"x": 0.0, "y": 0.0, "psi": 0.0},
           ["x", "y", "psi"], {"u": 10.0}),
    Search(motors, {"y": (-8.0, 8.0), "power": (0.0, 20.0)}, ["a", "b"], sizes={"a": 5.0, "b": 5.0}),
    Search(four_bar, {"coupler.y": (-1.3, 1.3)}, ["torque"], sizes={"torque": 30.0, "phi": 3.0}),
    Search(lambda: published.quadruple_tank("minimum"), {"flow": (3.0, 40.0), "difference": (-8.0, 8.0)}, ["v1", "v2"],
           sizes={f"h{i}": 10.0 for i in range(1, 5)}),
    Search(lambda: published.quadruple_tank("other"), {"flow": (3.0, 40.0), "difference": (-8.0, 8.0)}, ["v1", "v2"],
           sizes={f"h{i}": 10.0 for i in range(1, 5)}),
    Search(published.klatt_engell, {"yield": (0.05, 0.3)}, ["F"], {"Q": -1113.5},
           sizes={"T": 110.0, "TK": 110.0, "F": 15.0}),
    Search(published.transport, {"gamma": (-0.1, 0.3), "alpha_deg": (-2.0, 15.0)}, ["thtl", "elev"],
           {"h": 0.0}, ["h"], {"V": 400.0, "alpha": 0.2, "theta": 0.2, "elev": 10.0}),
)  # fmt: skip


def _show_random() -> None:
    rows, totals = [], np.zeros(4, dtype=int)
    for number, search in enumerate(SEARCHES):
        counts = np.array([0, 0, 0, 0])
        random = np.random.default_rng(number)
        model = search.make()
        for _ in range(TARGETS):
            wanted = {n: float(random.uniform(*span)) for n, span in search.targets.items()}
            reachable = _brute(model, search, wanted, random)
            try:
                steady = list(search.steady)
                point = fl.trim(model, fixed=wanted | dict(search.fixed), free=list(search.free), steady=steady)
                false = float(np.max(np.abs(_left(model, search, wanted, point.states, point.inputs)))) > 1e-7
                counts += [1, reachable, 0, false]
            except NumericalError:
                counts += [0, reachable, reachable, 0]
        totals += counts
        rows.append([model.info.name, str(TARGETS), *map(str, counts)])
    rows.append(["all", str(TARGETS * len(SEARCHES)), *map(str, totals)])
    show(
        "Points: random targets",
        ["model", "targets", "found", "by brute force", "missed", "false"],
        rows,
        f"missed {totals[2]} (0), false {totals[3]} (0).",
    )


def _left(model: fl.Model, search: Search, wanted: Mapping[str, float], x: FloatArray, u: FloatArray) -> FloatArray:
    """Return what the equations leave: constraints, rates of what rests, and targets."""
    answer = model.evaluate(0.0, x, u)
    moving = {*search.steady, *(n[4:-1] for n in wanted if n.startswith("der("))}
    rest = [r for n, r in zip(model.states.names, answer.derivatives, strict=True) if n not in moving]
    read = dict(zip(model.outputs.names, answer.outputs, strict=True))
    read |= {f"der({n})": r for n, r in zip(model.states.names, answer.derivatives, strict=True)}
    return np.array([*answer.residuals, *rest, *(read[n] - value for n, value in wanted.items())], dtype=np.float64)


def _brute(model: fl.Model, search: Search, wanted: Mapping[str, float], random: np.random.Generator) -> bool:
    """Whether least squares from many starts finds a point."""
    names = [n for n in model.states.names if n not in search.fixed] + list(search.free)
    start = dict(zip(model.states.names, model.start.states.tolist(), strict=True))
    start |= dict(zip(model.inputs.names, model.start.inputs.tolist(), strict=True)) | dict(search.fixed)

    def left(z: FloatArray) -> FloatArray:
        values = start | dict(zip(names, z.tolist(), strict=True))
        x = np.array([values[n] for n in model.states.names])
        u = np.array([values[n] for n in model.inputs.names])
        return np.nan_to_num(_left(model, search, wanted, x, u), nan=1e6, posinf=1e6, neginf=-1e6)

    for _ in range(STARTS):
        spread = np.array([search.sizes.get(n, max(abs(start[n]), 1.0)) for n in names])
        z = np.array([start[n] for n in names]) + spread * random.uniform(-1, 1, len(names))
        try:
            found = least_squares(left, z, xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=80)
        except ValueError:
            continue
        if float(np.max(np.abs(found.fun))) < 1e-9:
            return True
    return False


# -- what an output costs ----------------------------------------------------------------------------------------------

PAIRS: tuple[tuple[Callable[[], fl.Model], dict[str, Any], dict[str, Any]], ...] = (
    (tank, {"fixed": {"h": 2.0}, "free": ["q"]}, {"fixed": {"flow": 0.0626418}, "free": ["q"]}),
    (motors, {"fixed": {"w": 5.0}, "free": ["a"]}, {"fixed": {"y": 10.0}, "free": ["a"]}),
    (car, {"fixed": {"r": 0.3, "u": 4.0}, "free": ["thrust", "steer"], "steady": ["x", "y", "psi"]},
     {"fixed": {"der(psi)": 0.3, "ay": 1.2}, "free": ["thrust", "steer"], "steady": ["x", "y", "psi"]}),
    (four_bar, {"fixed": {"phi": 1.2}, "free": ["torque"]},
     {"fixed": {"coupler.y": 0.932039}, "free": ["torque"], "guess": {"phi": 1.2}}),
    (published.klatt_engell, {"fixed": {"cB": 1.0, "T": 112.0}, "free": ["F", "Q"]},
     {"fixed": {"yield": 1 / 5.1, "T": 112.0}, "free": ["F", "Q"]}),
    (lambda: published.quadruple_tank("minimum"), {"fixed": {"h1": 12.0, "h2": 13.0}, "free": ["v1", "v2"]},
     {"fixed": {"flow": 19.9966, "difference": -1.0}, "free": ["v1", "v2"]}),
    (published.transport, {"fixed": {"V": 500.0, "h": 0.0}, "free": ["thtl", "elev"]},
     {"fixed": {"gamma": 0.0, "alpha_deg": 0.58, "h": 0.0}, "free": ["thtl", "elev"]}),
)  # fmt: skip


def _show_costs() -> None:
    rows, ratios = [], []
    for make, by_state, by_output in PAIRS:
        visits = []
        for request in (by_state, by_output):
            model = make()
            with count_calls(model) as calls:
                fl.trim(model, **request)
            visits.append(calls.total())
        ratios.append(visits[1] / visits[0])
        targets = ", ".join(by_output["fixed"])
        rows.append([make().info.name, ", ".join(by_state["fixed"]), targets, *map(str, visits), f"{ratios[-1]:.2f}"])
    show(
        "Points: what a trim to an output costs",
        ["model", "states", "outputs", "visits", "visits", "ratio"],
        rows,
        f"visits: evaluations and directions of products. Ratio: median {np.median(ratios):.2f}, largest "
        f"{max(ratios):.2f} (2).",
    )
