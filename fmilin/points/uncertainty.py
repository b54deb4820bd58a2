"""Linear models whose parameters lie in a box: a fractional transformation by exact derivatives, and its remainder.

With p = middle + half d, d in [-1, 1], the affine part [A B; C D](d) = M_0 + sum d_i M_i is exact where the matrices
are affine in p. M_i = L_i R_i by singular values gives d_i a block of the size of its rank: w_i = d_i z_i with
z_i = R_i (x, u).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.ground.verbs import Shown, perform
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.threads import one_at_a_time
from fmilin.points.structured import RobustStability, robust_stability
from fmilin.points.varied import Box, VariedModel

COUNTS = 1e-9  # of a singular value beside the largest of M_i that counts
CORNERS, BETWEEN = 64, 16  # most corners of the box, and fewest points in it, at which the remainder is measured
SAFETY = 1.5  # by which the bound of the remainder is more than the largest that was measured


@dataclass(frozen=True, eq=False, repr=False)
class Uncertain(Shown):
    """A family of linear models over a box of parameters; see :func:`fmilin.uncertain`.

    Attributes
    ----------
    nominal : LinearModel
        In the middle of the box, with its derivatives.
    M : LinearModel
        Its first inputs w and first outputs z are those of the blocks, w = d z; then those of the nominal model.
    blocks : tuple of (str, int)
        The parameters, each a real d in [-1, 1] repeated so many times.
    box : mapping of str to (float, float)
    remainder : mapping of str to array
        By matrix, A to D, of its shape: how far the true entries may be from the affine ones in the box, as measured
        at its corners and between, enlarged by one half.
    """

    nominal: LinearModel
    M: LinearModel
    blocks: tuple[tuple[str, int], ...]
    box: Mapping[str, tuple[float, float]]
    remainder: Mapping[str, FloatArray]

    def at(self, parameters: Mapping[str, float]) -> LinearModel:
        """Return the affine linear model where some ``parameters`` have other values, the others in the middle.

        Raises
        ------
        UsageError
            When a parameter is not uncertain.
        """
        moved = {name: getattr(self.nominal, name).copy() for name in "ABCD"}
        for name, value in parameters.items():
            if name not in self.box:
                raise UsageError(f"'{name}' is not uncertain: the parameters are {', '.join(self.box)}.")
            for part in moved:
                moved[part] += (value - sum(self.box[name]) / 2) * getattr(self.nominal.derivatives[name], part)
        point = replace(self.nominal.point, parameters={**self.nominal.point.parameters, **parameters})
        return replace(self.nominal, **moved, point=point, derivatives={}, descriptor=None)

    def sample(self, n: int, seed: int = 0) -> list[LinearModel]:
        """Return ``n`` affine linear models at parameters that are equally likely in the box, by a ``seed``."""
        random = np.random.default_rng(seed)
        return [self.at({k: random.uniform(*limits) for k, limits in self.box.items()}) for _ in range(n)]

    def to_control(self, n: int = 20, seed: int = 0) -> list[object]:
        """Return ``n`` samples, by a ``seed``, as systems of python-control."""
        return [linear.to_control() for linear in self.sample(n, seed)]

    def eigenvalue_bars(self) -> NDArray[np.complex128]:
        """Return how far real and imaginary parts of the eigenvalues may move, to first order, shape (P,)."""
        slopes = self.nominal.eigenvalue_derivatives()
        half = np.array([(high - low) / 2 for low, high in self.box.values()])
        return np.asarray(np.abs(slopes.real) @ half + 1j * (np.abs(slopes.imag) @ half))

    def worst(self, n: int = 1000, seed: int = 0) -> tuple[dict[str, float], LinearModel]:
        """Return the parameters of the least damped of ``n`` samples (by a ``seed``) and corners, and its model."""
        random, names = np.random.default_rng(seed), list(self.box)
        points = [random.uniform(*zip(*self.box.values(), strict=True)) for _ in range(n)]
        points += [np.array(corner) for _, corner in zip(range(n), product(*self.box.values()), strict=False)]
        growth = [float(np.max(self.at(dict(zip(names, p, strict=True))).eigenvalues().real)) for p in points]
        chosen = dict(zip(names, points[int(np.argmax(growth))].tolist(), strict=True))
        return chosen, self.at(chosen)

    def robust_stability(self, n: int = 200, seed: int = 0) -> RobustStability:
        """Return by which factor the box may grow before an affine model in it is unstable, from both sides.

        ``at_least`` by the structured singular value at many frequencies, with slycot, ``at_most`` by the nearest
        unstable model along corners and ``n`` random directions (by a ``seed``), with its ``parameters``.

        Returns
        -------
        RobustStability

        Raises
        ------
        UsageError
            When slycot is not installed, or the model in the middle is not stable.
        """
        channels = sum(size for _, size in self.blocks)
        return robust_stability(self.nominal, self.M, channels, self.box, n, seed)

    def save(self, path: str | Path) -> None:
        """Write a function file of MATLAB that builds a ``uss`` with a ``ureal`` for each parameter.

        Parameters
        ----------
        path : str or Path
            As ``plant.m``.

        Raises
        ------
        UsageError
            When the file does not end in .m, or cannot be written.
        """
        perform("Uncertain.save", self, path)


@one_at_a_time
def uncertain(model: Model, point: OperatingPoint | None, box: Box) -> Uncertain:
    """Return the linear models over a box of parameters as a linear fractional transformation, with its remainder.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        Where the model starts, for None. A trimmed point stays trimmed for other parameters, any other one keeps its
        independent states.
    box : mapping of str to (float, float)
        Lowest and highest value of each parameter, in its unit.

    Returns
    -------
    Uncertain

    Raises
    ------
    UsageError, UnknownNameError
        When a range is none, or there is no such parameter.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> cart = OdeModel("cart", {"s": "v", "v": "F - k*s"}, inputs=["F"], parameters={"k": 4.0})
    >>> u = fl.uncertain(cart, None, {"k": (3.0, 5.0)})
    >>> u.blocks, u.M.B.shape, float(u.remainder["A"].max()) < 1e-12
    ((('k', 1),), (2, 2), True)
    """
    varied = VariedModel(model, point, box)
    nominal = varied.linear(varied.values(np.zeros(len(box))))
    affine = Uncertain(nominal, nominal, (), dict(box), {})
    rest = {name: np.zeros_like(getattr(nominal, name)) for name in "ABCD"}
    corners = [c for c, _ in zip(product((-1.0, 1.0), repeat=len(box)), range(CORNERS), strict=False)]
    between = np.random.default_rng(34).uniform(-1, 1, (max(BETWEEN, len(corners)), len(box)))
    for q in [*corners, *between]:
        values = varied.values(np.asarray(q))
        true, guess = varied.linear(values, derivatives=False), affine.at(values)
        rest = {n: np.maximum(r, SAFETY * np.abs(getattr(true, n) - getattr(guess, n))) for n, r in rest.items()}
    M, blocks = _transformation(nominal, dict(zip(box, varied.half.tolist(), strict=True)))
    return Uncertain(nominal, M, blocks, dict(box), rest)


def _transformation(nominal: LinearModel, half: Mapping[str, float]) -> tuple[LinearModel, tuple[tuple[str, int], ...]]:
    """Return M and its blocks."""
    P, left, right, blocks = len(nominal.states), [], [], []
    for name, size in half.items():
        d = nominal.derivatives[name]
        U, s, V = np.linalg.svd(size * np.block([[d.A, d.B], [d.C, d.D]]))
        rank = int((s > COUNTS * max(float(s[0]), 1e-300)).sum()) if s.size else 0
        left.append(U[:, :rank] * np.sqrt(s[:rank]))
        right.append(np.sqrt(s[:rank])[:, None] * V[:rank])
        blocks.append((name, rank))
    L, R = np.hstack(left), np.vstack(right)
    labels = [f"{name}[{k + 1}]" for name, rank in blocks for k in range(rank)]
    w, z = (Signals(Signal(f"{sign}.{label}") for label in labels) for sign in "wz")
    E, k, at = nominal.errors, len(labels), nominal.point
    more = (0, 0), (k, 0)  # rows or columns before those of the nominal model
    still_w, still_z = (dict.fromkeys(part.names, 0.0) for part in (w, z))
    M = replace(
        nominal,
        B=np.hstack((L[:P], nominal.B)),
        C=np.vstack((R[:, :P], nominal.C)),
        D=np.block([[np.zeros((k, k)), R[:, P:]], [L[P:], nominal.D]]),
        T_u=np.pad(nominal.T_u, more),
        inputs=Signals([*w, *nominal.inputs]),
        outputs=Signals([*z, *nominal.outputs]),
        point=replace(at, inputs={**still_w, **at.inputs}, outputs={**still_z, **at.outputs}),
        errors=replace(E, B=np.pad(E.B, more), C=np.pad(E.C, more[::-1]), D=np.pad(E.D, (more[1], more[1]))),
        derivatives={},
        descriptor=None,
    )
    return M, tuple(blocks)
