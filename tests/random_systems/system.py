"""One random system: its functions for many points at once, and what is known of it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin import Constraint, OperatingPoint
from fmilin.signals import FloatArray
from tests.random_systems.answer import Chosen, Reference
from tests.random_systems.recipe import Recipe, Values, random_dynamics
from tests.random_systems.smooth_maps import Path, Turn, extended, path, random_graph, random_map

__all__ = ["TINY", "HiddenSystem"]

TINY = 1e-40
"""Complex step."""


class HiddenSystem:
    """The functions of one random system, for many points at once, and what is known of them."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        p, m, n, d = recipe.p, recipe.m, recipe.p + recipe.m, recipe.decades
        random = np.random.default_rng([2011, recipe.geometry, p, m])
        self.sizes = 10.0 ** random.uniform(-d, d, n)
        self.gamma = random_map(random, n)
        self.phi = random_graph(random, p, m, moving=recipe.moving)
        self.weights = 10.0 ** random.uniform(-d, d, m + recipe.repeated)
        self.factor = random.integers(0, n, m + recipe.repeated)
        self.with_factor = random.uniform(size=m) < 0.3
        self.sources = random.integers(0, max(m, 1), (2, recipe.repeated))
        random = np.random.default_rng([2013, recipe.seed, p, m])
        self.order = p if recipe.is_first_order else 2 * p
        self.rate = 10.0 ** random.uniform(-0.25 * d, 0.25 * d)
        self.input_sizes = 10.0 ** random.uniform(-d, d, 2)
        self.y0 = random.uniform(-1.0, 1.0, self.order)
        if recipe.at_rest and not recipe.is_first_order:
            self.y0[p:] = 0.0
        self.u0 = random.uniform(-1.0, 1.0, 2)
        self.a = random_dynamics(random, recipe)
        self.stray = random.uniform(-1.0, 1.0, (2, n, m)) if m else np.zeros((2, n, 0))
        first, second = np.array_split(random.permutation(n)[: n // 2 * 2], 2)
        self.mixing = Turn(first, second, random.uniform(0.3, 1.2, n // 2), n)
        self.sensor = random.uniform(-1.0, 1.0, (2, recipe.size))
        self.noticed = random.integers(0, recipe.size, 2)

    # -- the model, from x ------------------------------------------------------------------------------

    @property
    def scales(self) -> FloatArray:
        """Sizes of the states, shape (N,)."""
        first = self.recipe.is_first_order
        return self.sizes if first else np.concatenate((self.sizes, self.rate * self.sizes))

    def visit(self, t: float, x: Values, u: Values) -> tuple[Values, Values, Values]:
        """Return x' (N, k), the outputs (3, k) and the constraints, on and beside the manifold.

        Constraints are the m + ``repeated`` declared ones, then, in second order, the rates of the first m.
        """
        p = self.recipe.p
        z = self._intrinsic(x)
        gaps = z[:, p:] - self.phi(z[:, :p], self._time(t, x))
        z = extended(z)
        stray = self.rate * self.stray[0] @ gaps[0]
        if self.recipe.is_first_order:
            z[1, :p] = self._reduced(z[0, :p], u) + stray[:p]
            z[1, p:] = self.phi(z[:, :p], self._time(t, x))[1] + stray[p:]
            rates = self._scaled(self.gamma.forward(z)[1])
        else:
            stray = self.rate * (stray + self.stray[1] @ gaps[1])
            z[2, :p] = self._reduced(np.concatenate((z[0, :p], z[1, :p])), u) + stray[:p]
            z[2, p:] = self.phi(z[:, :p], self._time(t, x))[2] + stray[p:]
            rates = np.concatenate((self._velocities(x), self._speeds(self._scaled(self.gamma.forward(z)[2]))))
        return rates, self.outputs(x, u, rates), self._residuals(x, gaps)

    def _residuals(self, x: Values, gaps: Path) -> Values:
        m, both = self.recipe.m, []
        xi = x[: len(self.sizes)] / self.sizes[:, None]
        for g in gaps:
            again = g[self.sources[0]] + (1 + 0.5 * xi[self.factor[m:]]) * g[self.sources[1]] if m else g
            own = np.where(self.with_factor[:, None], 2 + np.sin(xi[self.factor[:m]]), 1.0) * g
            both.append(self.weights[:, None] * np.concatenate((own, again)))
        return np.concatenate((both[0], *(rates[:m] for rates in both[1:])))

    def outputs(self, x: Values, u: Values, rates: Values) -> Values:
        """Return a state, a smooth function of all states and inputs, and the rate of a state, shape (3, k)."""
        xi = x / self.scales[:, None]
        a, b = self.sensor @ xi
        du = u / self.input_sizes[:, None]
        return np.stack((x[self.noticed[0]], np.sin(a) + a * b + du[0] * (1 + b), rates[self.noticed[1]]))

    def _intrinsic(self, x: Values) -> Path:
        n = len(self.sizes)
        xi = x[:n] / self.sizes[:, None]
        if self.recipe.is_first_order:
            return self.gamma.backward(path(xi))
        return self.gamma.backward(path(xi, self._velocities(x) / self.sizes[:, None]))

    def _velocities(self, x: Values) -> Values:
        s = x[len(self.sizes) :]
        return s if self.recipe.family == "second order" else self._mixed(s, backward=True)

    def _speeds(self, v: Values) -> Values:
        return v if self.recipe.family == "second order" else self._mixed(v, backward=False)

    def _mixed(self, v: Values, *, backward: bool) -> Values:
        """Return s = 2 D mix(D^-1 v), or its inverse."""
        sizes = self.sizes[:, None]
        step, gain = (self.mixing.backward, 0.5) if backward else (self.mixing.forward, 2.0)
        result: Values = gain * sizes * step(path(v / sizes))[0]
        return result

    def _reduced(self, y: Values, u: Values) -> Values:
        """Return y' or y'' from y or (y, y')."""
        power = 1 if self.recipe.is_first_order else 2
        result: Values = self.rate**power * self.a(self._normalized(y) - self.y0[:, None], self._input_offsets(u))
        return result

    def _normalized(self, y: Values) -> Values:
        p = self.recipe.p
        return y if self.recipe.is_first_order else np.concatenate((y[:p], y[p:] / self.rate))

    def _input_offsets(self, u: Values) -> Values:
        result: Values = u / self.input_sizes[:, None] - self.u0[:, None]
        return result

    def _scaled(self, xi: Values) -> Values:
        result: Values = self.sizes[:, None] * xi
        return result

    def _time(self, t: float, like: Values) -> Path:
        one = np.ones((1, like.shape[1]))
        return path(t * one, one, 0 * one)

    # -- the known answer, from y -----------------------------------------------------------------------

    def on_manifold(self, y: Values, u: Values, t: float = 0.0) -> tuple[Values, Values]:
        """Return x and x' from the intrinsic coordinates (of size 1), shape (P, k), without the map's inverse."""
        p = self.recipe.p
        if self.recipe.is_first_order:
            along = path(y, self._reduced(y, u))
        else:
            velocity = self.rate * y[p:]
            along = path(y[:p], velocity, self._reduced(np.concatenate((y[:p], velocity)), u))
        z = np.concatenate((along, self.phi(along, self._time(t, y))), axis=1)
        x, v, *a = (self._scaled(part) for part in self.gamma.forward(z))
        if self.recipe.is_first_order:
            return x, v
        return np.concatenate((x, self._speeds(v))), np.concatenate((v, self._speeds(a[0])))

    @cached_property
    def start(self) -> OperatingPoint:
        """The point, on the manifold."""
        u = self.input_sizes * self.u0
        return OperatingPoint(0.0, self.on_manifold(self.y0[:, None], u[:, None])[0][:, 0], u)

    @cached_property
    def stepped(self) -> tuple[Values, Values, Values]:
        """x, x' and outputs at complex steps along every intrinsic coordinate and every input, side by side."""
        count, u = self.order, self.start.inputs
        steps = 1j * TINY * np.eye(count + 2)
        us = u[:, None] + self.input_sizes[:, None] * steps[count:]
        x, rates = self.on_manifold(self.y0[:, None] + steps[:count], us)
        return x, rates, self.outputs(x, us, rates)

    @property
    def x_y(self) -> FloatArray:
        """How states depend on the intrinsic coordinates: a basis of the tangent space, shape (N, P)."""
        slopes: FloatArray = self.stepped[0][:, : self.order].imag / TINY
        return slopes

    def reference(self, coordinates: Chosen | FloatArray) -> Reference:
        """Return the known linear model in the coordinates R x or those chosen."""
        chosen = coordinates if isinstance(coordinates, Chosen) else Chosen(coordinates)
        x, rates, outputs = self.stepped
        count, sizes = self.order, np.abs(chosen.R) @ self.scales
        by_input = self.input_sizes * TINY
        rho = chosen.values(x)[:, :count].imag / TINY

        def in_coordinates(stepped: Values) -> FloatArray:
            return np.asarray(np.linalg.solve(rho.T, stepped[:, :count].imag.T / TINY).T, dtype=np.float64)

        y_rates = chosen.rates(x, rates)
        return Reference(
            A=in_coordinates(y_rates),
            B=y_rates[:, count:].imag / by_input,
            C=in_coordinates(outputs),
            D=outputs[:, count:].imag / by_input,
            T=in_coordinates(x),
            f0=y_rates[:, 0].real,
            sizes=sizes,
            condition=float(np.linalg.cond(rho / sizes[:, None])),
        )

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Of the reduced dynamics, without any coordinates of x, in 1/s."""
        p, A = self.recipe.p, self.a.A
        if not self.recipe.is_first_order:
            A = np.block([[np.zeros((p, p)), np.eye(p)], [A]])
        values: NDArray[np.complex128] = self.rate * np.linalg.eigvals(A).astype(np.complex128)
        return values

    def regular_subset(self, random: np.random.Generator) -> list[int]:
        """Return P states, chosen at random among the sets that are regular coordinates."""
        weights = 10.0 ** random.uniform(-1.0, 0.0, self.recipe.size)
        rows = self.x_y / self.scales[:, None]
        order = linalg.qr((rows * weights[:, None]).T, mode="r", pivoting=True)[1]
        return [int(i) for i in order[: self.order]]

    def bent(self, random: np.random.Generator) -> Chosen:
        """Return nonlinear coordinates: a regular subset of the states, each plus a sine of any state."""
        subset = self.regular_subset(random)
        Q = np.zeros((self.order, self.recipe.size))
        for i, j in enumerate(random.integers(0, self.recipe.size, self.order)):
            Q[i, j] = 1 / self.scales[j]
        return Chosen(np.eye(self.recipe.size)[subset], 0.2 * self.scales[subset], Q)

    # -- as a model -------------------------------------------------------------------------------------

    def declared(self) -> list[Constraint]:
        """Return the constraints, as expressions in the states or as variables of the model."""
        recipe = self.recipe
        level = recipe.level if recipe.is_first_order else "position"
        if recipe.measured:
            count = recipe.m + recipe.repeated
            found = [Constraint.from_text(f"gap[{i}]", level=level) for i in range(count)]
            if recipe.repeated and not recipe.is_first_order:
                found[-1] = Constraint.from_text(f"gap[{count}]", level="velocity")  # the rate of the first
            return found
        return [Constraint.from_text(text, name=f"gap {i}", level=level) for i, text in enumerate(self._texts())]

    def _texts(self) -> list[str]:
        p, m = self.recipe.p, self.recipe.m
        names = self.recipe.names[: p + m]
        xi = [f"({name}/{float(size)!r})" for name, size in zip(names, self.sizes, strict=True)]
        z = self.gamma.backward_texts(xi)
        gaps = [f"({w} - {phi})" for w, phi in zip(z[p:], self.phi.texts(z[:p]), strict=True)]
        rows = [
            f"{gap}*(2 + sin({xi[k]}))" if bent else gap
            for gap, k, bent in zip(gaps, self.factor[:m], self.with_factor, strict=True)
        ]
        for (i, j), k in zip(self.sources.T, self.factor[m:], strict=True):
            rows.append(f"({gaps[i]} + (1 + 0.5*{xi[k]})*{gaps[j]})")
        return [f"{float(weight)!r}*{row}" for weight, row in zip(self.weights, rows, strict=True)]
