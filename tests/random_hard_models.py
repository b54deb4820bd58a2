"""Hard models at random: a smooth model of one to three states, and something hard added to some of its rows.

What is hard is a feature (of any width, height and distance), a staircase, digits that are lost, a table, noise, memory
or a ripple; it acts through one variable, beside smooth terms that may be far larger than it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import numpy as np

import fmilin as fl
from tests.hard_models import Array, Case, model

__all__ = ["random_cases"]

Hard = tuple[str, Callable[[], Callable[[float], float]], Sequence[float], float, float]
"""Name, a fresh function of one variable, its possible slopes at the point, its noise (absolute), and its reach."""

EPS = float(np.finfo(float).eps)
Random = np.random.Generator

FLAT = 1 / 70
"""A function that is constant over as much of the variable's size may be said to be."""

FINE = 1e-10
"""A wave of so small a length, which is its height beside what is smooth, may be called a wave or noise."""


def _feature(random: Random, at: float) -> Hard:
    """height * shape((x - centre) / width), as narrow as some hundred units in the last place."""
    shapes: dict[str, tuple[Callable[[float], float], Callable[[float], float], float]] = {
        "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2, 2.0),
        "sin": (np.sin, np.cos, 30.0),
        "arctan": (np.arctan, lambda z: 1 / (1 + z * z), 3.0),
        "bell": (lambda z: np.exp(-z * z), lambda z: -2 * z * np.exp(-z * z), 2.0),
        "hyperbola": (lambda z: np.sqrt(1 + z * z), lambda z: z / np.sqrt(1 + z * z), 5.0),
        "deadzone": (lambda z: np.sign(z) * max(abs(z) - 1, 0.0), lambda z: float(abs(z) > 1), 4.0),
        "saturation": (lambda z: float(np.clip(z, -1, 1)), lambda z: float(abs(z) < 1), 4.0),
    }
    name = str(random.choice(list(shapes)))
    shape, slope, spread = shapes[name]
    width = max(10.0 ** -random.uniform(-1, 14), 300 * float(np.spacing(at)))
    steep = 10.0 ** random.choice([0.0, random.uniform(-4, 4), -np.log10(width)])
    beside = random.choice([0.0, random.uniform(-spread, spread)])
    if name in ("deadzone", "saturation") and 0.8 < abs(beside) < 1.2:
        beside = 0.5
    centre = at - beside * width
    here = (at - centre) / width
    return (
        f"feature, {name} of width {width:.1e}, steepness {steep:.1e}, {here:.2g} widths away",
        lambda: lambda x: width * steep * shape((x - centre) / width),
        [steep * slope(here)] + [0.0] * (name == "sin" and width < FINE),
        10 * EPS * (1 + width * steep) / width,
        width,
    )


def _stairs(random: Random, at: float) -> Hard:
    quantum = 10.0 ** -random.uniform(0.5, 13)
    shift = random.choice([0.0, 0.5, random.uniform()])
    slopes = [1.0] if quantum < FLAT else [1.0, 0.0]
    return (
        f"stairs, quantum {quantum:.1e}, shift {shift:.2g}",
        lambda: lambda x: float(np.floor(x / quantum + shift) * quantum),
        slopes,
        quantum,
        quantum,
    )


def _lost(random: Random, at: float) -> Hard:
    kind = int(random.integers(3))
    if kind == 0:
        K = 10.0 ** random.uniform(1, 14)
        return f"lost, K = {K:.1e}", lambda: lambda x: (K + np.sin(x)) - K, [np.cos(at)], float(np.spacing(K)), np.inf
    if kind == 1:
        digits = int(random.integers(1, 15))
        return (
            f"lost, {digits} decimals",
            lambda: lambda x: float(np.round(np.sin(x), digits)),
            [np.cos(at)] + [0.0] * int(10.0**-digits > FLAT * abs(np.cos(at))),
            10.0**-digits,
            np.inf,
        )
    return "lost, single precision", lambda: lambda x: float(np.sin(np.float32(x))), [np.cos(at)], 1e-7, np.inf


def _table(random: Random, at: float) -> Hard:
    knots = int(10 ** random.uniform(1, 6))
    low = at - random.uniform(0.1, 0.9)
    grid = np.linspace(low, low + 1.0, knots)
    values = np.sin(3 * grid)
    i = int(np.clip(np.searchsorted(grid, at, side="right") - 1, 0, knots - 2))
    if random.random() < 0.3:
        nearest = lambda x: float(values[int(np.clip(np.round((x - low) * (knots - 1)), 0, knots - 1))])  # noqa: E731
        return (
            f"table, {knots} knots, the nearest",
            lambda: nearest,
            [3 * np.cos(3 * at)] + [0.0] * (1 / knots > FLAT),
            3.0 / knots,
            1 / knots,
        )
    part = min(at - grid[i], grid[i + 1] - at)
    slopes = [(values[i + 1] - values[i]) / (grid[i + 1] - grid[i]), 3 * np.cos(3 * at)]
    if part < 1e-9 / knots:
        slopes = []
    return (
        f"table, {knots} knots, {part * knots:.1g} of a segment from one",
        lambda: lambda x: float(np.interp(x, grid, values)),
        slopes,
        2 * EPS / max(part, 1e-300),
        1.0 / knots,
    )


def _noise(random: Random, at: float) -> Hard:
    level, seed = 10.0 ** -random.uniform(1, 15), int(random.integers(1000))

    def same(x: float) -> float:
        drawn = np.random.default_rng((seed, zlib.crc32(np.float64(x).tobytes())))
        return float(np.sin(x) + level * drawn.uniform(-1, 1))

    def fresh() -> Callable[[float], float]:
        drawn = np.random.default_rng(seed)
        return lambda x: float(np.sin(x) + level * drawn.standard_normal())

    if random.random() < 0.5:
        return f"noise, {level:.1e}, the same at the same point", lambda: same, [np.cos(at)], level, np.inf
    return f"noise, {level:.1e}, new every time", fresh, [np.cos(at)], level, np.inf


def _ripple(random: Random, at: float) -> Hard:
    """A wave: its own slope, or where it is many times as fast as anything else, that of what it lies on."""
    level, rate, phase = 10.0 ** -random.uniform(1, 14), 10.0 ** random.uniform(0, 12), random.uniform(0, 6)
    own = np.cos(at) + level * rate * np.cos(rate * (at + phase))
    return (
        f"ripple, {level:.1e}, {rate:.1e} rad",
        lambda: lambda x: float(np.sin(x) + level * np.sin(rate * (x + phase))),
        [own, np.cos(at)] if rate > 1e6 or level < 1e-10 else [own],
        10 * EPS * rate + (level if rate > 1e6 else 0.0),
        1 / rate,
    )


def _memory(random: Random, at: float) -> Hard:
    level, kind = 10.0 ** -random.uniform(1, 14), int(random.integers(4))

    def drifting() -> Callable[[float], float]:
        calls = count()
        return lambda x: float(np.sin(x) + level * next(calls))

    def alternating() -> Callable[[float], float]:
        calls = count()
        return lambda x: float(np.sin(x) * (1 + level * (next(calls) % 2)))

    def iterating() -> Callable[[float], float]:
        last = [0.0]

        def solve(x: float) -> float:
            z = last[0]
            for _ in range(1000):
                z, before = 0.5 * np.cos(z) + x, z
                if abs(z - before) < level:
                    break
            last[0] = z
            return z

        return solve

    def play() -> Callable[[float], float]:
        held = [at]

        def tooth(x: float) -> float:
            held[0] = min(max(held[0], x - level), x + level)
            return held[0]

        return tooth

    z = at
    for _ in range(200):
        z = 0.5 * np.cos(z) + at
    names = ("drifts", "alternates", "iterates", "play")
    slopes = ([np.cos(at)], [np.cos(at)], [1 / (1 + 0.5 * np.sin(z))], [0.0, 1.0])[kind]
    return (
        f"memory, {names[kind]} by {level:.1e}",
        (drifting, alternating, iterating, play)[kind],
        slopes,
        level,
        np.inf,
    )


def _kink(random: Random, at: float) -> Hard:
    """A kink or a jump, on the point or beside it."""
    jumps, height = random.random() < 0.4, 10.0 ** random.choice([0.0, -random.uniform(0, 8)])
    away = random.choice([0.0, 1.0, -1.0]) * max(10.0 ** -random.uniform(0, 14), 300 * float(np.spacing(at)))
    place = at + away

    def jump(x: float) -> float:
        return float(x + height * (x > place))

    def kink(x: float) -> float:
        return float(x + height * max(x - place, 0.0))

    both = [] if jumps else [1.0, 1.0 + height]
    slopes = both if away == 0 else [1.0 + (0.0 if jumps else height * (at > place))]
    name, noise = "jump" if jumps else "kink", 4 * EPS / max(abs(away), 1e-300)
    return (
        f"kink, {name} of {height:.1e}, {away:.1e} away",
        lambda: jump if jumps else kink,
        slopes,
        noise,
        abs(away) or 1e-6,
    )


def _power(random: Random, at: float) -> Hard:
    """What is as flat as a power, or wavy without end; infinitely steep where the power is below 1."""
    p, kind = random.uniform(0.3, 3.5), int(random.integers(3))

    def power(x: float) -> float:
        return float(np.sign(x - at) * abs(x - at) ** p)

    def wavy(x: float) -> float:
        return 0.0 if x == at else float((x - at) ** 2 * np.sin(1 / (x - at)))

    def logarithm(x: float) -> float:
        return 0.0 if x == at else float((x - at) ** 2 * np.log(abs(x - at)))

    if kind == 0:
        return f"power, {p:.2g}", lambda: power, [0.0] if p > 1 else [], float(p <= 2), np.inf
    if kind == 1:
        return "power, x^2 sin(1/x)", lambda: wavy, [0.0], 1.0, np.inf
    return "power, x^2 log|x|", lambda: logarithm, [0.0], 0.0, np.inf


KINDS: tuple[Callable[[Random, float], Hard], ...] = (
    _feature, _feature, _feature, _stairs, _stairs, _lost, _table, _noise, _ripple, _memory, _kink, _power
)  # fmt: skip


def random_cases(number: int, first: int = 0) -> Iterator[Case]:
    """Return ``number`` of them, the same every time."""
    return (_case(seed) for seed in range(first, first + number))


def _case(seed: int) -> Case:
    random = np.random.default_rng((1859, seed))
    n, k, m = int(random.integers(1, 4)), int(random.integers(0, 2)), int(random.integers(0, 2))
    columns = n + k
    start = np.where(random.random(columns) < 0.5, 0.0, random.uniform(-2, 2, columns))
    start[n:] = 0.0
    moved = int(random.integers(columns))
    family, make, slopes, noise, reach = KINDS[int(random.integers(len(KINDS)))](random, float(start[moved]))
    m *= not family.startswith("memory")  # outputs are visits of their own here: every second would be the same
    rows = n + m
    W, shift = random.uniform(-1, 1, (rows, columns)), random.uniform(-2, 2, rows)
    V = random.uniform(-1, 1, (rows, columns)) * (random.random((rows, columns)) < 0.7)
    sizes = 10.0 ** random.choice([0.0, 0.0, random.uniform(-6, 6)], rows)
    weights = np.where(random.random(rows) < 0.5, 0.0, random.choice([-1.0, 1.0], rows))
    weights[int(random.integers(rows))] = 1.0
    weights *= random.choice([1.0, 10.0 ** random.uniform(-6, 0)])
    alone = bool(random.random() < 0.15) and not family.startswith(
        "feature"
    )  # nothing else in the rows with the feature
    smooth_part = np.where(alone & (weights != 0), 0.0, 1.0)

    def smooth(z: Array) -> Array:
        return np.asarray(sizes * smooth_part * (np.sin(W @ z + shift) + V @ z))

    def build() -> fl.Model:
        hard = make()

        def values(x: Array, u: Array) -> Array:
            z = np.concatenate((x, u))
            return smooth(z) + sizes * weights * hard(float(z[moved]))

        outputs = [lambda t, x, u, i=i: values(x, u)[i] for i in range(n, rows)]
        return model(f"random {seed}", start[:n], lambda t, x, u: values(x, u)[:n], k, outputs)

    plain = (sizes * smooth_part)[:, None] * (np.cos(W @ start + shift)[:, None] * W + V)
    truths = []
    for slope in slopes:
        truth = plain.copy()
        truth[:, moved] += sizes * weights * slope
        truths.append(truth)
    value = np.abs(smooth(start)) + np.abs(sizes * weights * make()(float(start[moved])))
    levels = np.maximum(value, np.max([np.abs(t).max(axis=1) for t in [*truths, plain]], axis=0))
    # noise over the largest slope of the row, to the power that fourth-order differences reach
    largest = [np.abs(truth).max(axis=1) for truth in truths]
    relative = [np.max(np.where(weights != 0, sizes * np.abs(weights) * noise / np.maximum(one, 1e-300), 0.0))
                for one in largest]  # fmt: skip
    attainable = min(1.0, 3 * max(relative, default=1.0) ** 0.8) if truths else 1.0
    return Case(
        f"random {family.split(',')[0]}", f"{seed}: {family}", build, truths, attainable, reach=reach, levels=levels
    )
