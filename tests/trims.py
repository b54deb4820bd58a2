"""Trims whose answer is known: slow, flat, multiple, badly scaled, at limits, families, none at all.

Truth is a closed form, or a root found with 40 digits from the equations as text, independently of fmilin. Most models
come twice: with exact slopes (``OdeModel``) and as a Python function whose slopes are measured.

One file, because it is one table: its groups are read side by side, and its numbers are counted as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp

import fmilin as fl
from fmilin.models import FunctionModel, LagrangeModel, OdeModel
from fmilin.signals import Signal, Signals

__all__ = ["Trim", "TrimVerdict", "judged_trim", "trims"]

Values = Mapping[str, float]
Text = Mapping[str, str]

ROUNDED = 4 * float(np.finfo(float).eps)
"""Of a value, by which a truth in double precision may be off itself."""


@dataclass(frozen=True)
class Trim:
    """A trim problem and its answers."""

    group: str
    name: str
    make: Callable[[], fl.Model]
    truths: Sequence[Values] = ()
    """Each solution, by the unknowns that it determines; none where there is no equilibrium."""
    family: Callable[[Values], Values] | None = None
    """The member of a family nearest to given values, more or less."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``fl.trim``."""


@dataclass(frozen=True)
class TrimVerdict:
    """What was said of one trim."""

    case: Trim
    refusal: str
    values: Values
    distance: Values
    kinds: tuple[str, ...] = ()

    @property
    def off(self) -> float:
        """How far the values are from the truth, over what was said; infinite where there is none, nan if refused."""
        if self.refusal:
            return math.nan
        truths = [*self.case.truths, *([self.case.family(self.values)] if self.case.family else [])]
        return min((self._off(truth) for truth in truths), default=math.inf)

    def _off(self, truth: Values) -> float:
        over = [
            abs(self.values[n] - true) / max(self.distance.get(n, 0.0) + ROUNDED * abs(true), 1e-300)
            for n, true in truth.items()
        ]
        return max(over, default=0.0)

    @property
    def false(self) -> bool:
        """Whether the truth lies outside what was said, or there is none."""
        return bool(self.off > 1.0)

    @property
    def in_vain(self) -> bool:
        """Whether a solution was there and none was returned."""
        return bool(self.refusal and (self.case.truths or self.case.family))


def judged_trim(case: Trim) -> TrimVerdict:
    """Trim one model, and compare."""
    model = case.make()
    try:
        point = fl.trim(model, **case.request)
    except fl.NumericalError as error:
        return TrimVerdict(case, str(error), {}, {})
    values = dict(zip(model.states.names, point.states.tolist(), strict=True))
    values |= dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)) | dict(point.parameters)
    return TrimVerdict(case, "", values, point.report.distance, tuple(r.kind for r in point.report.remarks))


def trims() -> list[Trim]:
    """Return all of them, the same every time."""
    groups = (slow, flat, multiple, scaled, ordinary, limited, families, none, constrained, free_inputs, molecules)
    return [case for group in groups for case in group()]


# -- building ----------------------------------------------------------------------------------------------------------


def both(
    group: str,
    name: str,
    equations: Text,
    truths: Sequence[Values] = (),
    *,
    start: Values | None = None,
    inputs: Sequence[str] = (),
    parameters: Values | None = None,
    family: Callable[[Values], Values] | None = None,
    nominals: Values | None = None,
    **request: Any,
) -> Iterator[Trim]:
    """Yield a model with exact slopes and one without."""
    start = start or {}

    def exact() -> OdeModel:
        return OdeModel(name, equations, inputs=inputs, parameters=parameters or {}, start=start)

    def measured() -> FunctionModel:
        symbols = [sp.Symbol(n) for n in (*equations, *inputs)]
        given = {sp.Symbol(n): v for n, v in (parameters or {}).items()}
        function = sp.lambdify(symbols, [symbolic(e).subs(given) for e in equations.values()], "numpy")

        def rates(_t: float, x: Any, u: Any) -> Any:
            with np.errstate(all="ignore"):
                return np.array([*np.broadcast_arrays(*function(*x, *u))], dtype=float)

        signals = Signals(Signal(n, start=start.get(n, 0.0)) for n in inputs)
        states = Signals(Signal(n, start=start.get(n, 0.0), nominal=(nominals or {}).get(n)) for n in equations)
        return FunctionModel(name, states, rates, inputs=signals)

    yield Trim(group, name, exact, truths, family, request)
    if not set(parameters or {}) & set(request.get("free", ())):
        yield Trim(group, f"{name}, measured", measured, truths, family, request)


def symbolic(text: str) -> Any:
    return sp.sympify(text.replace("^", "**"), locals={"max": sp.Max, "min": sp.Min, "abs": sp.Abs})


def root(equations: Text, near: Values) -> dict[str, float]:
    """Return the root near a place, with 40 digits on the way."""
    symbols = [sp.Symbol(n) for n in near]
    solution = sp.nsolve([symbolic(e) for e in equations.values()], symbols, list(near.values()), prec=40)
    return {n: float(v) for n, v in zip(near, sp.Matrix([solution]), strict=True)}


# -- groups ------------------------------------------------------------------------------------------------------------


def slow() -> Iterator[Trim]:
    for k in (2, 4, 5, 7, 8, 9, 10):
        yield from both("slow", f"soil, 1e{k} s", {"T": f"(283 - T)/1e{k}"}, [{"T": 283.0}], start={"T": 283.2})
    for k in (7, 9):
        yield from both(
            "slow", f"radiation, 1e{k}", {"T": f"(283^4 - T^4)/(1e8*1e{k})"}, [{"T": 283.0}], start={"T": 300.0}
        )
    for value in (5e-11, 5e-9, 1e-12):
        yield from both("slow", f"nearly zero, {value:g}", {"x": f"{value!r} - x"}, [{"x": value}])
    both_rates = {"a": "1000*(b - a)", "b": "(283 - b)/1e8"}
    yield from both("slow", "slow behind fast", both_rates, [{"a": 283.0, "b": 283.0}], start={"a": 280.0, "b": 283.1})
    chain = {"a": "(b - a)/1e6", "b": "(c - b)/1e3", "c": "(20 - c)/1e9"}
    yield from both("slow", "chain", chain, [dict.fromkeys("abc", 20.0)], start=dict.fromkeys("abc", 20.3))
    tank = {"h": "(0.02 - 0.01*sqrt(h))/1e6"}
    yield from both("slow", "tank", tank, [{"h": 4.0}], start={"h": 4.1})
    drag = {"v": "-0.0004*v^2 + 1e-5"}
    yield from both("slow", "coast", drag, [{"v": math.sqrt(0.025)}, {"v": -math.sqrt(0.025)}], start={"v": 30.0})


def flat() -> Iterator[Trim]:
    for power in (3, 5, 7):
        yield from both("flat", f"x^{power} from 1", {"x": f"-x^{power}"}, [{"x": 0.0}], start={"x": 1.0})
        yield from both("flat", f"x^{power} from 0", {"x": f"-x^{power}"}, [{"x": 0.0}])
    for power in (3, 5):
        yield from both("flat", f"(x-1)^{power}", {"x": f"-(x-1)^{power}"}, [{"x": 1.0}], start={"x": 2.0})
    yield from both(
        "flat", "Duffing, no linear spring", {"x": "v", "v": "-x^3-v"}, [{"x": 0.0, "v": 0.0}], start={"x": 0.5}
    )
    yield from both("flat", "x^3 - 1e-9", {"x": "1e-9-x^3"}, [{"x": 1e-3}], start={"x": 1.0})
    yield from both("flat", "x^3 + 1e-6 x", {"x": "-x^3-1e-6*x"}, [{"x": 0.0}], start={"x": 1.0})
    yield from both(
        "flat", "x^3 - 1e-6 x", {"x": "1e-6*x-x^3"}, [{"x": v} for v in (0.0, 1e-3, -1e-3)], start={"x": 1.0}
    )
    yield from both("flat", "x - sin(x)", {"x": "sin(x)-x"}, [{"x": 0.0}], start={"x": 0.7})
    yield from both("flat", "cosh(x) - 1", {"x": "1-cosh(x)"}, [{"x": 0.0}], start={"x": 0.9})


def multiple() -> Iterator[Trim]:
    roots = [{"x": 1e-5}, {"x": -1e-5}]
    for begin in (0.0, 1.0, 1e-6, -0.3):
        yield from both("multiple", f"x^2 - 1e-10 from {begin:g}", {"x": "x^2-1e-10"}, roots, start={"x": begin})
    yield from both("multiple", "x^2", {"x": "x^2"}, [{"x": 0.0}], start={"x": 1.0})
    yield from both("multiple", "(x-1)^2", {"x": "(x-1)^2"}, [{"x": 1.0}], start={"x": 3.0})
    yield from both("multiple", "x^2-2x+1, rounded", {"x": "x^2-2*x+1"}, [{"x": 1.0}], start={"x": 2.0})
    yield from both("multiple", "x^2 + 1e-12, none", {"x": "x^2+1e-12"}, start={"x": 1.0})
    yield from both("multiple", "x^2 + 1e-20, none", {"x": "x^2+1e-20"}, start={"x": 1.0})
    yield from both("multiple", "(x-3)^2 + 1e-11, none", {"x": "(x-3)^2+1e-11"}, start={"x": 1.0})
    at = [{"x": v} for v in (1.0, 1.0 + 1e-4)]
    yield from both("multiple", "two close roots", {"x": "(x-1)*(x-1.0001)"}, at, start={"x": 3.0})
    double = {"x": "x^2+y^2-2", "y": "x*y-1"}
    yield from both("multiple", "circle touches hyperbola", double, [{"x": 1.0, "y": 1.0}], start={"x": 2.0, "y": 0.7})
    yield from both(
        "multiple",
        "double and simple",
        {"x": "-x^2*(x+5)", "y": "x-y"},
        [{"x": 0.0, "y": 0.0}, {"x": -5.0, "y": -5.0}],
        start={"x": 1.0},
    )
    yield from both("multiple", "nearly touching, none", {"x": "y-x^2-1e-11", "y": "-y"}, start={"x": 0.5, "y": 0.5})


def scaled() -> Iterator[Trim]:
    for k in (-9, -6, -3, 3, 6, 9):
        size = float(f"1e{k}")
        yield from both("scaled", f"spring, 1e{k} m", {"x": "v", "v": f"-(x-2e{k})-v"}, [{"x": 2 * size, "v": 0.0}])
        cubic = {"x": f"(1e{k})*(2-(x/1e{k})^3)"}
        yield from both(
            "scaled", f"cubic, 1e{k}", cubic, [{"x": size * 2 ** (1 / 3)}], start={"x": 3 * size}, nominals={"x": size}
        )
    mixed = {"a": "1e9-a*b", "b": "1e-9*(a-2e6)"}
    yield from both("scaled", "units mixed", mixed, [{"a": 2e6, "b": 500.0}], start={"a": 1e6, "b": 100.0})
    motor = {"i": "(12-0.5*i-1e-3*w)/1e-6", "w": "(1e-3*i-1e-9*w^2)/1e-8"}
    near = root(motor, {"i": 2.0, "w": 1400.0})
    also = [root(motor, {"i": i, "w": w}) for i, w in ((23.0, 4000.0), (40.0, -6000.0))]
    yield from both("scaled", "micro motor", motor, [near, *also], start={"i": 1.0, "w": 1000.0})


def ordinary() -> Iterator[Trim]:
    one = {"x": "cos(x)-x"}
    yield from both("ordinary", "cos(x) = x", one, [root(one, {"x": 0.7})])
    two = {"x": "exp(-x)-y", "y": "x-y^3"}
    yield from both("ordinary", "exp and cube", two, [root(two, {"x": 0.5, "y": 0.6})], start={"x": 1.0, "y": 1.0})
    reactor = {"c": "1-c-0.05*c*exp(20*T/(20+T))", "T": "-T+8*0.05*c*exp(20*T/(20+T))-1.5*T"}
    places = ((0.9, 0.3), (0.6, 1.3), (0.2, 2.6), (0.93, 0.2))
    states = []
    for c, T in places:
        try:
            states.append(root(reactor, {"c": c, "T": T}))
        except (ValueError, ZeroDivisionError):
            continue
    for c, T in places[:3]:
        yield from both("ordinary", f"stirred tank from {c}, {T}", reactor, states, start={"c": c, "T": T})
    lotka = {"x": "x*(1-y)", "y": "y*(x-1)"}
    known = [{"x": 1.0, "y": 1.0}, {"x": 0.0, "y": 0.0}]
    yield from both("ordinary", "Lotka and Volterra", lotka, known, start={"x": 1.3, "y": 0.8})
    lorenz = {"x": "10*(y-x)", "y": "x*(28-z)-y", "z": "x*y-8*z/3"}
    arm = math.sqrt(72.0)
    known = [{"x": s * arm, "y": s * arm, "z": 27.0 * s * s} for s in (0.0, 1.0, -1.0)]
    for begin in ({"x": 7.0, "y": 9.0, "z": 25.0}, {"x": -3.0, "y": -3.0, "z": 20.0}, {"x": 0.1, "y": 0.0, "z": 0.0}):
        yield from both("ordinary", f"Lorenz from {begin['x']}", lorenz, known, start=begin)
    pendulum = {"q": "w", "w": "-sin(q)-0.1*w"}
    known = [{"q": k * math.pi, "w": 0.0} for k in range(-3, 4)]
    for q in (0.3, 3.0):
        yield from both("ordinary", f"pendulum from {q}", pendulum, known, start={"q": q})
    diode = {"v": "(5-v)/1000-1e-12*(exp(v/0.025)-1)"}
    yield from both("ordinary", "diode", diode, [root(diode, {"v": 0.55})], start={"v": 0.5})
    maglev = {"x": "v", "v": "9.81-4e-4/x^2"}
    gap = math.sqrt(4e-4 / 9.81)
    yield from both("ordinary", "magnet", maglev, [{"x": s * gap, "v": 0.0} for s in (1, -1)], start={"x": 0.01})


def limited() -> Iterator[Trim]:
    soft = {"x": "tanh(5*(1-x))"}
    yield from both("limited", "saturated drive", soft, [{"x": 1.0}], start={"x": 2.0})
    yield from both("limited", "saturated far", {"x": "tanh(1-x)"}, [{"x": 1.0}], start={"x": 3.0})
    yield from both("limited", "not attainable, none", {"x": "2*tanh(x)-3"}, start={"x": 0.5})
    hard = {"x": "min(max(x, -1), 1) - 0.5"}
    yield from both("limited", "clipped", hard, [{"x": 0.5}], start={"x": 0.2})
    bounded = {"x": "1-x^2"}
    yield from both(
        "limited", "the root within bounds", bounded, [{"x": -1.0}], start={"x": 0.5}, bounds={"x": (-3, 0)}
    )
    yield from both("limited", "no root within bounds, none", bounded, start={"x": 3.0}, bounds={"x": (2, 9)})
    yield from both("limited", "the root at a bound", bounded, [{"x": 1.0}], start={"x": 3.0}, bounds={"x": (1, 9)})
    valve = {"p": "u*sqrt(10-p)-p"}
    held: dict[str, Any] = {"inputs": ["u"], "free": ["u"], "fixed": {"p": 4.0}, "start": {"p": 4.0}}
    root_of = [{"u": 4 / math.sqrt(6.0)}]
    yield from both("limited", "a valve within its bounds", valve, root_of, **held, bounds={"u": (0.0, 2.0)})
    yield from both("limited", "a valve at its bound, none", valve, **held, bounds={"u": (0.0, 1.0)})


def families() -> Iterator[Trim]:
    def circle(at: Values) -> Values:
        r = math.hypot(at["x"], at["y"])
        return {"x": at["x"] / r, "y": at["y"] / r}

    turning = {"x": "-x*(x^2+y^2-1)", "y": "-y*(x^2+y^2-1)"}
    yield from both("families", "circle", turning, family=circle, start={"x": 0.9, "y": 0.9})
    line = {"x": "y-x", "y": "x-y"}
    yield from both(
        "families", "line", line, family=lambda at: dict.fromkeys("xy", (at["x"] + at["y"]) / 2), start={"x": 1.0}
    )
    cart = {"x": "v", "v": "-v"}
    yield from both("families", "cart", cart, family=lambda at: {"x": at["x"], "v": 0.0}, start={"x": 5.0, "v": 1.0})
    dead = {"x": "-max(x-1,0)-min(x+1,0)"}
    yield from both(
        "families", "dead band", dead, family=lambda at: {"x": float(np.clip(at["x"], -1, 1))}, start={"x": 3.0}
    )
    parabola = {"x": "y-x^2", "y": "2*(x^2-y)"}
    yield from both("families", "parabola", parabola, family=lambda at: {"y": at["x"] ** 2}, start={"x": 2.0, "y": 1.0})
    slow_line = {"x": "(y-x)/1e8", "y": "(x-y)/1e8"}
    yield from both(
        "families",
        "slow line",
        slow_line,
        family=lambda at: dict.fromkeys("xy", (at["x"] + at["y"]) / 2),
        start={"x": 1e-3},
    )


def none() -> Iterator[Trim]:
    decays = {
        "exp": "exp(-x)",
        "exp, fast": "exp(-30*x)",
        "exp, slow": "exp(-x/50)",
        "Gauss": "exp(-x^2)",
        "logistic": "1/(1+exp(x))",
        "1 - tanh": "1-tanh(x)",
        "Lorentz": "1/(1+x^2)",
        "softplus": "log(1+exp(-x))",
        "1e-8 exp": "1e-8*exp(-x)",
        "constant": "1e-3",
        "x exp": "x^2*exp(-x)+exp(-x)",
    }
    for name, text in decays.items():
        yield from both("none", name, {"x": text}, start={"x": 0.3})
    yield from both("none", "1 - tanh, in the tail", {"x": "1-tanh(x)"}, start={"x": 15.0})
    yield from both("none", "exp, in the tail", {"x": "exp(-x)"}, start={"x": 30.0})
    yield from both("none", "exp, beyond rounding", {"x": "exp(-x)"}, start={"x": 800.0})
    for power in (1, 2, 3, 6):
        charges = {"r": "v", "v": f"1/r^{power}-0.1*v"}
        yield from both("none", f"repulsion 1/r^{power}", charges, start={"r": 1.0})
    yield from both("none", "free fall", {"z": "v", "v": "-9.81"}, start={"z": 10.0})
    yield from both("none", "Yukawa", {"r": "v", "v": "exp(-r)*(1/r+1/r^2)-0.1*v"}, start={"r": 1.0})
    plane = {"x": "u", "y": "w", "u": "x/(x^2+y^2)^2-u", "w": "y/(x^2+y^2)^2-w"}
    yield from both("none", "repulsion in a plane", plane, start={"x": 1.0, "y": 0.4})
    yield from both("none", "no real root", {"x": "x^2+1"}, start={"x": 1.0})
    yield from both("none", "slow drift", {"x": "1e-9"}, start={"x": 1.0})


def point_mass(name: str, curve: str, forces: Sequence[str], start: Values) -> Callable[[], fl.Model]:
    """Return a maker of a mass of 1 kg in a plane, on a curve."""
    unit = [[1, 0], [0, 1]]
    return lambda: LagrangeModel(name, {"x": "vx", "y": "vy"}, unit, forces, constraints=[curve], start=start)


def constrained() -> Iterator[Trim]:
    from fmilin.systems import cartesian_pendulum, rolling_disk, slider_crank

    hanging = [{"x": 0.0, "y": s, "vx": 0.0, "vy": 0.0} for s in (1.0, -1.0)]
    for y in (0.9, -0.9, 0.3):
        yield Trim("constrained", f"pendulum from {y}", cartesian_pendulum, hanging, request={"guess": {"y": y}})
    resting = [dict.fromkeys(("x", "y", "vx", "vy"), 0.0)]
    damped = ("-vx", "-9.81-vy")
    for power in (2, 4, 6):
        bead = point_mass("bead", f"y-x^{power}", damped, {"x": 0.5, "y": 0.5**power})
        yield Trim("constrained", f"bead on x^{power}", bead, resting)
    slope = point_mass("slope", "y+x/2", ("0", "-9.81"), {})
    yield Trim("constrained", "bead on a slope, none", slope)
    for k in (1, 2):
        hill = point_mass("hill", f"y-exp(-{k}*x)", damped, {"y": 1.0})
        yield Trim("constrained", f"bead on an endless slope, {k}, none", hill)
    ellipse = "sqrt((x+1)^2+y^2)+sqrt((x-1)^2+y^2)-4"
    rope = point_mass("rope", ellipse, damped, {"x": 0.5, "y": -math.sqrt(3 * (1 - 0.25 / 4))})
    yield Trim("constrained", "pulley on a rope", rope, [{"x": 0.0, "y": -math.sqrt(3.0), "vx": 0.0, "vy": 0.0}])
    circle = point_mass("magnet", "x^2+y^2-1", ("1/(x+1.5)^6-vx", "-vy"), {"x": math.cos(2.0), "y": math.sin(2.0)})
    yield Trim("constrained", "repelled on a circle", circle, [{"x": s, "y": 0.0} for s in (1.0, -1.0)])
    crank = slider_crank().states.names[0]
    dead = [{crank: -math.pi / 2}, {crank: math.pi / 2}]
    for angle in (-1.4, -0.8, 1.2):
        yield Trim("constrained", f"slider crank from {angle}", slider_crank, dead, request={"guess": {crank: angle}})

    def upright(_values: Values) -> Values:
        return {"u1": 0.0, "u2": 0.0, "u3": 0.0}

    yield Trim("constrained", "disk at rest", rolling_disk, family=upright, request={"guess": {"u2": 0.0}})


def free_inputs() -> Iterator[Trim]:
    def held(name: str, value: float) -> dict[str, Any]:
        return {"inputs": [name], "free": [name], "fixed": {"x": value}, "start": {"x": value}}

    spring = {"x": "v", "v": "-4*x-x^3-v+F"}
    yield from both("free inputs", "holding force", spring, [{"F": 2.125}], **held("F", 0.5))
    for size in ("1e-6", "1e6", "1e9"):
        lift = {"x": "v", "v": f"{size}*F-9.81-v"}
        yield from both("free inputs", f"lift, {size}", lift, [{"F": 9.81 / float(size)}], **held("F", 0.0))
    band = {"x": "max(u-1,0)+min(u+1,0)-x"}
    for x, u in ((0.5, 1.5), (-2.0, -3.0), (20.0, 21.0), (1e-3, 1.001)):
        yield from both("free inputs", f"out of a dead band, {x}", band, [{"u": u}], **held("u", x))

    def inside(at: Values) -> Values:
        return {"u": float(np.clip(at["u"], -1, 1))}

    yield from both("free inputs", "in a dead band", band, family=inside, **held("u", 0.0))
    square = {"x": "u^2-x"}
    yield from both("free inputs", "thrust u^2 from rest", square, [{"u": 2.0}, {"u": -2.0}], **held("u", 4.0))
    yield from both("free inputs", "no effect, none", {"x": "x+0*u-1"}, **held("u", 0.5))
    stall = {"x": "5*tanh(u)-x"}
    yield from both("free inputs", "too weak, none", stall, **held("u", 6.0))
    yield from both("free inputs", "near its limit", stall, [{"u": math.atanh(0.8)}], **held("u", 4.0))
    spring = {"x": "v", "v": "-k*x-v+3"}
    stiffness: dict[str, Any] = {"parameters": {"k": 1.0}, "free": ["k"], "fixed": {"x": 0.5}, "start": {"x": 0.5}}
    yield from both("free inputs", "a stiffness", spring, [{"k": 6.0}], **stiffness)


def molecules() -> Iterator[Trim]:
    text = {"r": "v", "v": "24*(2/r^13-1/r^7)-0.1*v"}
    for r in (0.8, 1.0, 1.2, 1.4, 2.0, 3.0, 5.0):
        yield from both(
            "molecules", f"Lennard and Jones from {r}", text, [{"r": 2 ** (1 / 6), "v": 0.0}], start={"r": r}
        )
    morse = {"r": "v", "v": "-2*(1-exp(-(r-1)))*exp(-(r-1))-0.1*v"}
    for r in (0.7, 1.3, 2.5, 4.0):
        yield from both("molecules", f"Morse from {r}", morse, [{"r": 1.0, "v": 0.0}], start={"r": r})
    orbit = {"r": "v", "v": "1/r^3-1/r^2"}
    for r in (0.5, 1.3, 2.0, 6.0):
        yield from both("molecules", f"orbit from {r}", orbit, [{"r": 1.0, "v": 0.0}], start={"r": r})
    triple = {
        "a": "u", "b": "w", "u": "-24*(2/a^13-1/a^7)*(-1)+24*(2/(a+b)^13-1/(a+b)^7)-u",
        "w": "24*(2/b^13-1/b^7)+24*(2/(a+b)^13-1/(a+b)^7)-w",
    }  # fmt: skip
    known = root(triple, {"a": 1.12, "b": 1.12, "u": 0.0, "w": 0.0})
    for a in (1.1, 1.2):
        yield from both("molecules", f"three in a row from {a}", triple, [known], start={"a": a, "b": a})
