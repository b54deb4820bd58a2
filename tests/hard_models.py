"""Models that are hard to difference, as Python functions, each with its true A, B, C, D.

Truth is a closed form, or of analytic functions a complex step (exact to the last bit). Where two answers are honest
(a table's segment, or the function that it stands for) both are given; where there is no linear model (a kink at the
point) none is.

One file, because it is one table: its groups are read side by side, and its numbers are counted as a whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fmilin as fl
from fmilin.models import FunctionModel
from fmilin.signals import Signal, Signals

__all__ = ["Case", "cases"]

Array = NDArray[Any]
Rates = Callable[..., Any]
"""(t, x, u) -> values."""
Scalar = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A model and what is true of it."""

    family: str
    name: str
    make: Callable[..., fl.Model]
    """A fresh one: some keep memory."""
    truths: Sequence[Array]
    """Each (N + ny, N + nu), the blocks A B; C D; none where no linear model exists."""
    attainable: float = 1e-10
    """Relative error that differences with the best step would have."""
    sizes: Array = field(default_factory=lambda: np.ones(0))
    """Of the states, where they are not 1."""
    reach: float = np.inf
    """How far from the point what is hard makes the difference; with ``levels`` it says what rounding hides."""
    levels: Array = field(default_factory=lambda: np.ones(0))
    """Sizes of what each row sums, shape (N + ny,)."""


def cases() -> list[Case]:
    """Return all of them, the same every time."""
    families = (smooth, stiff, scaled, narrow, rounded, tables, noisy, remembering, kinked, far, warm)
    return [case for family in families for case in family()]


# -- building ------------------------------------------------------------------------------------------------------


def model(
    name: str, start: Any, rates: Rates, inputs: int = 0, outputs: Sequence[Any] = (), nominals: Any = None
) -> fl.Model:
    nominals = nominals if nominals is not None else [None] * len(start)
    states = Signals(Signal(f"x{i}", start=v, nominal=n) for i, (v, n) in enumerate(zip(start, nominals, strict=True)))
    named = {f"y{i}": function for i, function in enumerate(outputs)}
    return FunctionModel(name, states, rates, inputs=[f"u{i}" for i in range(inputs)], outputs=named)


def complex_step(rates: Rates, start: Sequence[float], inputs: int = 0, outputs: Sequence[Any] = ()) -> Array:
    x, u, columns = np.array(start, dtype=float), np.zeros(inputs), []
    for j in range(len(x) + inputs):
        step = 1e-30j * np.eye(len(x) + inputs)[j]
        a, b = x + step[: len(x)], u + step[len(x) :]
        values = [*np.asarray(rates(0.0, a, b)), *(f(0.0, a, b) for f in outputs)]
        columns.append(np.imag(values) / 1e-30)
    return np.array(columns).T


def analytic(family: str, name: str, start: Any, rates: Rates, *, inputs: int = 0, **more: Any) -> Case:
    """A case whose functions take complex numbers; fmilin is not told so."""
    outputs, nominals = more.pop("outputs", ()), more.pop("nominals", None)
    truth = complex_step(rates, start, inputs, outputs)
    return Case(family, name, lambda: model(name, start, rates, inputs, outputs, nominals), [truth], **more)


def one(family: str, name: str, f: Scalar, slopes: Sequence[float], at: float = 0.0, **more: Any) -> Case:
    """x' = f(x) with the possible slopes at ``at``."""
    return Case(
        family, name, lambda: model(name, [at], lambda t, x, u: [f(x[0])]), [np.array([[s]]) for s in slopes], **more
    )


def beside(family: str, name: str, f: Scalar, slopes: Sequence[float], at: float = 0.0, **more: Any) -> Case:
    """The same beside a slow, smooth state that it drives, with an input and as an output."""

    def rates(t: float, x: Array, u: Array) -> Array:
        return np.array([f(x[0]) + 0.3 * np.sin(x[1]), 0.5 * x[0] - np.sin(x[1]) * (1 + u[0])])

    c = np.cos(0.2)
    s = np.sin(0.2)
    truths = [np.array([[d, 0.3 * c, 0.0], [0.5, -c, -s], [d, 0.0, 0.0]]) for d in slopes]
    return Case(family, name, lambda: model(name, [at, 0.2], rates, 1, [lambda t, x, u: f(x[0])]), truths, **more)


# -- families ------------------------------------------------------------------------------------------------------


def smooth() -> Iterator[Case]:
    for seed in range(90):
        random = np.random.default_rng(seed)
        n, k, m = int(random.integers(1, 9)), int(random.integers(0, 3)), int(random.integers(0, 3))
        W, V = random.uniform(-1, 1, (2, n + m, n + k))
        shift, parts = random.uniform(-2, 2, n + m), random.integers(0, 5, n + m)
        start = random.uniform(-2, 2, n) * (seed % 3 > 0)

        def values(
            x: Array, u: Array, W: Array = W, V: Array = V, shift: Array = shift, parts: Array = parts
        ) -> list[Any]:
            z = np.concatenate((x, u))
            forms = (np.sin, lambda v: np.exp(0.3 * v), lambda v: 1 / (2 + np.cos(v)), lambda v: v**3, np.arctan)
            return [forms[p](W[i] @ z + shift[i]) + V[i] @ z for i, p in enumerate(parts)]

        yield analytic(
            "smooth",
            f"random {seed}: {n} states, {k} inputs, {m} outputs",
            start,
            lambda t, x, u, n=n, v=values: np.array(v(x, u)[:n]),
            inputs=k,
            outputs=[lambda t, x, u, i=i, v=values: v(x, u)[i] for i in range(n, n + m)],
        )


def stiff() -> Iterator[Case]:
    for k in range(1, 13):
        fast = 10.0**k
        yield analytic(
            "stiff",
            f"a fast state of 1e{k} 1/s",
            [np.cos(0.4), 0.4],
            lambda t, x, u, fast=fast: np.array(
                [-fast * (x[0] - np.cos(x[1])) + u[0], -np.sin(x[1]) - 0.1 * x[0] ** 2]
            ),
            inputs=1,
            attainable=1e-9,
        )
        yield analytic(
            "stiff",
            f"Van der Pol, mu = 1e{k}",
            [1.5, -0.4],
            lambda t, x, u, mu=fast: np.array([x[1], mu * (1 - x[0] ** 2) * x[1] - x[0] + u[0]]),
            inputs=1,
        )
    for scale in (1.0, 1e-3, 1e-6):
        yield analytic(
            "stiff",
            f"Robertson, y2 = {3.6e-5 * scale:g}",
            [0.9, 3.6e-5 * scale, 0.1],
            lambda t, x, u: np.array(
                [
                    -0.04 * x[0] + 1e4 * x[1] * x[2],
                    0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] ** 2,
                    3e7 * x[1] ** 2,
                ]
            ),
            attainable=1e-9,
        )


def scaled() -> Iterator[Case]:
    for k in range(-12, 13, 2):
        size = 10.0**k

        def rates(t: float, x: Array, u: Array, size: float = size) -> Array:
            z = x[0] / size
            return np.array([size * (np.sin(z) + 0.5 * x[1] * z + u[0]), np.cos(z) - x[1]])

        for name, z, nominal in (("nominal", 0.7, size), ("no nominal", 0.7, None), ("no nominal, at 0", 0.0, None)):
            unknown = nominal is None and size < 1
            yield analytic(
                "scaled",
                f"a state of size 1e{k}, {name}",
                [size * z, 0.4],
                rates,
                inputs=1,
                nominals=[nominal, None],
                sizes=np.array([size, 1.0]),
                attainable=1e-9 if not unknown else 1e-8,
            )


def narrow() -> Iterator[Case]:
    for k in range(1, 11):
        w = 10.0**-k
        kinds: dict[str, tuple[Scalar, float]] = {
            "s sin(x / s)": (lambda x, w=w: -w * np.sin(x / w), -1.0),
            "- x - tanh(x / s)": (lambda x, w=w: -x - np.tanh(x / w), -1.0 - 1 / w),
            "deadzone": (lambda x, w=w: -np.sign(x) * max(abs(x) - w, 0.0), 0.0),
            "- x + deadzone": (lambda x, w=w: -x - np.sign(x) * max(abs(x) - w, 0.0), -1.0),
            "- x - s arctan(x / s)": (lambda x, w=w: -x - w * np.arctan(x / w), -2.0),
            "- x sqrt(x^2 + s^2)": (lambda x, w=w: -x * np.sqrt(x * x + w * w), -w),
            "saturation": (lambda x, w=w: -0.5 * x - np.clip(x / w, -1.0, 1.0), -0.5 - 1 / w),
        }
        for name, (f, slope) in kinds.items():
            build = beside if k % 2 and name != "- x sqrt(x^2 + s^2)" else one
            yield build("narrow", f"{name}, s = 1e-{k}", f, [slope])
        yield Case(
            "narrow",
            f"tanh(u / s), s = 1e-{k}",
            lambda w=w: model("input", [0.1], lambda t, x, u: [-x[0] + np.tanh(u[0] / w)], 1),
            [np.array([[-1.0, 1 / w]])],
        )
        rounding = (1.1e-16 / w) ** 0.8
        for name, f, slope in (
            ("s sin((x - 0.7) / s)", lambda x, w=w: -w * np.sin((x - 0.7) / w), -1.0),
            ("x^2 + s tanh((x - 0.7) / s)", lambda x, w=w: x * x + w * np.tanh((x - 0.7) / w), 2.4),
        ):
            yield beside("narrow", f"{name} at 0.7, s = 1e-{k}", f, [slope], 0.7, attainable=10 * rounding)
    yield one("narrow", "- x |x|", lambda x: -x * abs(x), [0.0])
    yield beside("narrow", "- x |x|, beside", lambda x: -x * abs(x), [0.0])
    yield one("narrow", "x^3 beside nothing", lambda x: x**3, [0.0])


def rounded() -> Iterator[Case]:
    for k in range(3, 14):
        K, digits = 10.0**k, k - 1
        quantum = float(np.spacing(K)) if K > 1 else 0.0
        good = min(1.0, (3 * quantum) ** 0.8)
        for at in (0.0, 0.3):
            c = np.cos(at)
            lost = lambda x, K=K: (K + np.sin(x)) - K  # noqa: E731
            yield beside("rounded", f"(K + sin x) - K at {at}, K = 1e{k}", lost, [c], at, attainable=good)
            mixed = lambda x, K=K: ((K + np.sin(x)) - K) - x  # noqa: E731
            yield one("rounded", f"(K + sin x) - K - x at {at}, K = 1e{k}", mixed, [c - 1.0], at, attainable=good)
        N = 10.0 ** (k - 2)
        good = min(1.0, (3 / N) ** 0.8)
        encoder = lambda x, N=N: np.floor(x * N + 0.5) / N  # noqa: E731
        yield one("rounded", f"encoder of {N:g} counts", lambda x, e=encoder: -e(x), [-1.0], 0.3, attainable=good)
        yield beside("rounded", f"encoder of {N:g} counts at 0", encoder, [1.0], attainable=good)
        yield Case(
            "rounded",
            f"encoder of {N:g} counts as an output",
            lambda e=encoder: model("out", [0.41], lambda t, x, u: [-np.sin(x[0])], 0, [lambda t, x, u: e(x[0])]),
            [np.array([[-np.cos(0.41)], [1.0]])],
            attainable=good,
        )
        yield one(
            "rounded",
            f"{digits} decimals",
            lambda x, d=digits: -np.round(np.sin(x), d),
            [-np.cos(0.3)],
            0.3,
            attainable=min(1.0, (3 * 10.0**-digits) ** 0.8),
        )
    for at in (0.0, 0.3, 3.0):
        single = lambda x: float(np.sin(np.float32(x)))  # noqa: E731
        yield one("rounded", f"single precision at {at}", single, [np.cos(at)], at, attainable=1e-5)
        f = lambda x: float(np.float32(-x * x)) - 2 * x  # noqa: E731
        yield beside("rounded", f"half in single precision at {at}", f, [-2 * at - 2], at, attainable=1e-5)


def tables() -> Iterator[Case]:
    for knots in (11, 31, 101, 301, 1001, 3001, 10_001, 30_001, 100_001):
        grid = np.linspace(0.0, 1.0, knots)
        values = np.sin(3 * grid)
        linear = lambda x, g=grid, v=values: -float(np.interp(x, g, v))  # noqa: E731
        i = knots // 3
        slopes = -np.diff(values) / np.diff(grid)
        for part in (0.5, 0.03, 1e-4):
            at = grid[i] + part / (knots - 1)
            good = (1.1e-16 * knots / part) ** 0.8
            yield beside(
                "tables",
                f"{knots} knots, {part:g} of a segment from one",
                linear,
                [slopes[i], -3 * np.cos(3 * at)],
                at,
                attainable=good,
            )
        at = float(grid[i])
        yield one(
            "tables",
            f"{knots} knots, on one",
            linear,
            [slopes[i - 1], slopes[i], -3 * np.cos(3 * at)],
            at,
            attainable=1.0,
        )
        nearest = lambda x, g=grid, v=values: -float(v[int(np.clip(round(x * (len(g) - 1)), 0, len(g) - 1))])  # noqa: E731
        at = 0.3217
        yield one(
            "tables",
            f"{knots} knots, the nearest",
            nearest,
            [-3 * np.cos(3 * at)],
            at,
            attainable=min(1.0, (3 / knots) ** 0.8),
        )


def noisy() -> Iterator[Case]:
    for k in range(3, 15):
        level = 10.0**-k
        good = min(1.0, (3 * level) ** 0.8)

        def hashed(x: Any, level: float = level) -> float:
            random = np.random.default_rng(zlib.crc32(np.float64(x).tobytes()))
            return float(-np.sin(x) + level * random.uniform(-1, 1))

        yield one("noise", f"1e-{k}, the same at the same point", hashed, [-np.cos(0.4)], 0.4, attainable=good)
        yield beside("noise", f"1e-{k}, the same at the same point, beside", hashed, [-1.0], 0.0, attainable=good)

        def fresh(level: float = level) -> fl.Model:
            random = np.random.default_rng(5)
            return model("fresh", [0.4], lambda t, x, u: [-np.sin(x[0]) + level * random.standard_normal()])

        yield Case("noise", f"1e-{k}, new every time", fresh, [np.array([[-np.cos(0.4)]])], good)
    for k in range(4, 13, 2):
        level = 10.0**-k
        wave = lambda x, level=level: -np.sin(x) + level * np.sin(1e9 * (x + 0.1234))  # noqa: E731
        yield beside(
            "noise",
            f"a ripple of 1e-{k}, 1e9 rad",
            wave,
            [-np.cos(0.4), -np.cos(0.4) + level * 1e9 * np.cos(1e9 * (0.4 + 0.1234))],
            0.4,
            attainable=1.0,
        )


def remembering() -> Iterator[Case]:
    for k in range(2, 12):
        level = 10.0**-k
        good = min(1.0, (3 * level) ** 0.8)

        def warm(level: float = level) -> fl.Model:
            last = [0.0]

            def rates(t: float, x: Array, u: Array) -> Any:
                z = last[0]
                for _ in range(10_000):  # z = 0.5 cos z + x
                    z, before = 0.5 * np.cos(z) + x[0], z
                    if abs(z - before) < level:
                        break
                last[0] = z
                return [-z]

            return model("warm", [0.3], rates)

        z = 0.3
        for _ in range(200):
            z = 0.5 * np.cos(z) + 0.3
        truth = np.array([[-1 / (1 + 0.5 * np.sin(z))]])
        yield Case("memory", f"a solver that starts where it ended, to 1e-{k}", warm, [truth], good)

        def alternating(level: float = level) -> fl.Model:
            calls = count()
            return model("alternating", [0.3], lambda t, x, u: [-np.sin(x[0]) * (1 + level * (next(calls) % 2))])

        yield Case("memory", f"alternates by 1e-{k}", alternating, [np.array([[-np.cos(0.3)]])], good)

        def drifting(level: float = level) -> fl.Model:
            calls = count()
            return model("drifting", [0.3, 0.1], lambda t, x, u: [-np.sin(x[0]) + level * next(calls), x[0] - x[1]])

        yield Case("memory", f"drifts by 1e-{k} a call", drifting, [np.array([[-np.cos(0.3), 0.0], [1.0, -1.0]])], good)

        def hysteresis(level: float = level) -> fl.Model:
            held = [0.3]

            def rates(t: float, x: Array, u: Array) -> Any:
                held[0] = min(max(held[0], x[0] - level), x[0] + level)  # play between two teeth
                return [-held[0] - 0.5 * x[1], x[0] - x[1]]

            return model("play", [0.3, 0.1], rates)

        yield Case(
            "memory", f"play of 1e-{k}", hysteresis, [np.array([[s, -0.5], [1.0, -1.0]]) for s in (-1.0, 0.0)], 1.0
        )


def kinked() -> Iterator[Case]:
    for name, f in (
        ("|x|", abs),
        ("- x - |x|", lambda x: -x - abs(x)),
        ("max(x, 0)", lambda x: max(x, 0.0)),
        ("1.1 to the right", lambda x: x if x < 0 else 1.1 * x),
        ("1.01 to the right", lambda x: x if x < 0 else 1.01 * x),
        ("sin, 3 to the right", lambda x: np.sin(x) if x < 0 else 3 * np.sin(x)),
        ("sign", np.sign),
        ("a step of 1e-3", lambda x: -x + 1e-3 * (x > 0)),
        ("a step of 1e-6", lambda x: -x + 1e-6 * (x > 0)),
        ("sqrt |x|", lambda x: np.sign(x) * np.sqrt(abs(x))),
    ):
        for at in (0.0, 0.3):
            shifted = lambda x, f=f, at=at: float(f(x - at))  # noqa: E731
            yield one("kinks", f"{name} at {at:g}", shifted, [], at, attainable=1.0)
            yield beside("kinks", f"{name} at {at:g}, beside", shifted, [], at, attainable=1.0)
    for k in range(1, 11):
        d = 10.0**-k
        good = (1.1e-16 / d) ** 0.8
        kink = lambda x, d=d: -x if x < d else -d - 3 * (x - d)  # noqa: E731
        yield beside("kinks", f"1e-{k} to the left of one", kink, [-1.0])
        behind = lambda x, d=d: -x - 1.0 * max(0.2 - d - x, 0.0)  # noqa: E731
        yield one("kinks", f"1e-{k} to the right of one, at 0.2", behind, [-1.0], 0.2, attainable=10 * good)
        step = lambda x, d=d: -np.sin(x) + 0.1 * (x > d)  # noqa: E731
        yield one("kinks", f"1e-{k} to the left of a step", step, [-1.0])


def far() -> Iterator[Case]:
    """Smooth models far from zero, or of a size that no nominal value tells: the first steps overflow."""
    for part in (bonds, diodes, reactors, units, steep_powers):
        yield from part()


def far_away(name: str, start: Sequence[float], rates: Rates, sizes: Sequence[float], nominals: Any = None) -> Case:
    """A case with an input; what overflows does so without a word."""

    def quiet(t: float, x: Array, u: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(rates(t, x, u))

    return analytic("far", name, start, quiet, inputs=1, nominals=nominals, sizes=np.array(sizes), attainable=1e-8)


def bonds() -> Iterator[Case]:
    lengths = (("1", 1.0), ("0.026", 0.026), ("1e-3", 1e-3), ("300", 300.0))
    shapes: dict[str, Callable[[Any], Any]] = {
        "Morse bond": lambda z: -20 * (1 - np.exp(-z)) * np.exp(-z),
        "well of cosh": lambda z: -np.sinh(z),
        "diode": lambda z: 1e-2 - 1e-3 * (np.exp(z) - 1),
        "Lennard-Jones": lambda z: 24 * (2 / (z + 1) ** 13 - 1 / (z + 1) ** 7),
        "logarithm": lambda z: -np.log(2 + z),
        "Gauss": lambda z: -z * np.exp(-z * z),
        "softplus": lambda z: 0.3 - np.log(1 + np.exp(z)),
        "barrier": lambda z: 1 / (z + 1) ** 3 - z,
    }
    for name, force in shapes.items():
        for said, length in lengths:
            for offset in (3e2, 1e4, 1e6):

                def bond(t: float, x: Array, u: Array, f: Any = force, L: float = length, at: float = offset) -> Array:
                    return np.array([x[1], L * f((x[0] - at * L) / L) - 0.5 * x[1] + u[0]])

                yield far_away(
                    f"{name} of length {said}, {offset:g} lengths away",
                    [length * (offset + 0.3), 0.1],
                    bond,
                    sizes=[length, 1.0],
                )


def diodes() -> Iterator[Case]:
    thermal = 0.026
    for volts in (0.0, 5.0, 48.0, 230.0, 800.0, 1.5e4):
        for nominal in (None, max(volts, 1.0)):
            for parts in (1, 2, 3):

                def ladder(t: float, x: Array, u: Array, n: int = parts, at: float = volts) -> Array:
                    current = [(at + 0.6 * (n + 1) - x[0]) / 10 + u[0]]
                    current += [1e-12 * (np.exp((x[i] - x[i + 1]) / thermal) - 1) for i in range(n)]
                    current += [(x[n] - at) / 10]
                    return np.array([current[i] - current[i + 1] for i in range(n + 1)])

                yield far_away(
                    f"{parts} diodes at {volts:g} V, nominal {nominal}",
                    [volts + 0.55 * (parts - i) for i in range(parts + 1)],
                    ladder,
                    nominals=[nominal] * (parts + 1),
                    sizes=[thermal] * (parts + 1),
                )


def reactors() -> Iterator[Case]:
    for kelvin in (250.0, 300.0, 600.0, 1500.0):
        for energy in (5e3, 2e4, 5e4):

            def reactor(t: float, x: Array, u: Array, E: float = energy, T: float = kelvin) -> Array:
                speed = 3 * x[0] * np.exp(E * (x[1] - T) / (T * x[1]))
                return np.array([1.0 - x[0] - speed, 40 * speed - 2 * (x[1] - T) + u[0]])

            yield far_away(
                f"reactor at {kelvin:g} K, {energy:g} K of activation",
                [0.3, kelvin],
                reactor,
                sizes=[1.0, kelvin**2 / energy],
            )


def units() -> Iterator[Case]:
    for k in range(-9, 13):
        unit = 10.0**k

        def tank(t: float, x: Array, u: Array, unit: float = unit) -> Array:
            pressure, volume = x[0] / unit, x[1] * unit  # p V = const in units in which p is large and V small
            flow = np.sqrt(pressure + 1) - pressure * volume
            return np.array([unit * (u[0] - flow), (pressure - 1 / volume) / unit])

        yield far_away(
            f"p V, p of 1e{k} and V of 1e{-k}",
            [0.8 * unit, 1.3 / unit],
            tank,
            nominals=[None, 1.3 / unit if k > 6 else None],  # 1e-7 beside rates of 1e7 is rounding of a size of 1
            sizes=[unit, 1 / unit],
        )
    for k in range(-8, 9):
        size = 10.0**k

        def species(t: float, x: Array, u: Array, size: float = size) -> Array:
            z = x / size
            return np.array([-size * np.log(z[0]) + u[0] * size, size * (z[0] ** 1.4 - z[1] * np.sqrt(z[0] * z[1]))])

        yield far_away(
            f"logarithms and powers of 1e{k}",
            [2.3 * size, 0.4 * size],
            species,
            sizes=[size, size],
        )


def steep_powers() -> Iterator[Case]:
    for k in (2, 3, 4, 5, 6, 7):
        for power in (5, 20, 60):
            place = 10.0**k

            def steep(t: float, x: Array, u: Array, at: float = place, n: int = power) -> Array:
                return np.array([x[1], -((x[0] / at) ** n) + 1 - x[1] + u[0], at * np.sin(x[2] / at) - x[2]])

            yield far_away(
                f"a power of {power} at 1e{k}",
                [place, 0.2, 0.3 * place],
                steep,
                sizes=[place / power, 1.0, place],
            )


def ring_of_rooms(rooms: int) -> Case:
    """Temperatures in K, humidities in kg/kg and heat in J of rooms in a ring, between which air flows: no nominals."""

    def rates(t: float, x: Array, u: Array) -> Array:
        T, w, E = x.reshape(3, -1)
        after, before = np.roll(T, -1), np.roll(T, 1)
        flow = 0.02 * np.sqrt((T - after) ** 2 + 0.3)
        vapour = 1e-4 * np.exp(17.3 * (T - 273.15) / (T - 35.9))
        heat = (5 * (after + before - 2 * T) + 1005 * flow * (after - T)) / 1e5
        return np.concatenate((heat, (flow * (np.roll(w, -1) - w) + vapour - 0.2 * w) / 80, 40 * (310 - T) - E / 3e3))

    start = np.outer([293.0, 0.008, 4e6], np.ones(rooms)) * np.random.default_rng(7).uniform(0.995, 1.005, (3, rooms))
    return analytic("scaled", f"{rooms} rooms", start.ravel(), rates)


def warm() -> Iterator[Case]:
    """A solver inside, content with its last solution as long as that leaves less than its tolerance.

    The last forty, of a loose tolerance, do not move within a good part of the variables' sizes.
    """
    for seed in range(100):
        random = np.random.default_rng((1685, seed))
        digits, powers = ((4, 13), (-1, 2)) if seed < 60 else ((1.5, 3), (-1, 0))
        n, level, stiffness = (
            int(random.integers(1, 4)),
            10.0 ** -random.uniform(*digits),
            10.0 ** random.uniform(*powers),
        )
        W, b, w = random.uniform(-1, 1, (n, n)), random.uniform(-1, 1, n), random.uniform(-1, 1, n)
        start = np.where(random.random(n) < 0.4, 0.0, random.uniform(-2, 2, n))

        def residual(z: float, p: float, k: float = stiffness) -> float:
            return k * (z + 0.5 * float(np.sin(z)) + 0.1 * z**3 - p)

        def slope(z: float, k: float = stiffness) -> float:
            return k * (1 + 0.5 * float(np.cos(z)) + 0.3 * z**2)

        def solved(z: float, p: float, level: float, g: Any = residual, dg: Any = slope) -> float:
            for _ in range(50):
                if abs(g(z, p)) < level:
                    break
                z -= g(z, p) / dg(z)
            return z

        def build(
            level: float = level, W: Array = W, b: Array = b, w: Array = w, start: Array = start, solved: Any = solved
        ) -> fl.Model:
            last = [1.0]

            def rates(t: float, x: Array, u: Array) -> Array:
                last[0] = solved(last[0], 0.5 + float(w @ x), level)
                return np.asarray(W @ x + 0.1 * np.sin(x) + b * last[0])

            return model("warm", start, rates)

        z = solved(0.5, 0.5 + float(w @ start), 1e-15 * stiffness)
        truth = W + np.diag(0.1 * np.cos(start)) + np.outer(b, w) * stiffness / slope(z)
        family = "warm" if seed < 60 else "loose"
        yield Case(family, f"{seed}: {n} states, to {level:.0e}", build, [truth], min(1.0, (3 * level) ** 0.8))
