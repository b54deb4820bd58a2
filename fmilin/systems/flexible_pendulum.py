"""The flexible double pendulum of González et al.: few constraints, many degrees of freedom."""

from math import cos, pi, sin

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError
from fmilin.models.sparse.numeric_equations import NumericEquations, Output, Pattern, SparseDerivatives
from fmilin.models.sparse.numeric_model import NumericModel
from fmilin.signals import FloatArray, Signal
from fmilin.systems.flexible_link import FlexibleLink, J, LinkMotion, Rod, rotation

GRAVITY = 9.81


def flexible_double_pendulum(
    elements: int = 5,
    geometric_stiffening: bool = False,  # noqa: FBT001, FBT002 - short to write where models are named
    *,
    angle: float = 0.0,
    rate: float = 0.0,
) -> NumericModel:
    """Return the flexible double pendulum: n = 6 n_p + 12 coordinates under m = 10 constraints.

    Two equal rods of 4 m (radius 0.15 m, 1500 kg/m3, 1e8 N/m2), the first hinged to the ground, the second to the
    end of the first; gravity along -y. Each link has a floating frame at its first node, tangent to it, with the
    coordinates ``link1.x``, ``link1.y``, ``link1.theta``, and ``link1.u[i]``, ``link1.w[i]``, ``link1.phi[i]`` at
    the nodes i = 1..n_p + 1: displacements along and across the frame's axis and the slope. It starts stretched as
    it hangs, turned by ``angle`` about the ground joint and turning at ``rate``; by default at its equilibrium.

    With ``geometric_stiffening`` the links have their lengths as they hang, under the axial force N0(s) of that
    configuration as initial stress, which adds int N0 (u' + w'^2/2) ds: the weight below straightens them. The paper's
    model has no such term and hangs stretched; its third frequency is 39 % lower. The equations are in
    :mod:`fmilin.systems.flexible_link`. Hanging, with one element in each link, the first four frequencies
    are 1.33593155834248, 3.531082271144686, 9.705195842688476 and 25.30224732821966 rad/s; with more elements and
    with stiffening they converge to 1.338727312976, 3.554338414641, 15.3525880538 and 25.39771147261.

    >>> model = flexible_double_pendulum(elements=2)
    >>> len(model.states), len(model.constraints)
    (48, 10)
    """
    if isinstance(elements, bool) or elements < 1 or int(elements) != elements:
        raise UsageError(f"A link has 1 finite element or more, not {elements}.")
    if not (np.isfinite(angle) and np.isfinite(rate)):
        raise UsageError(f"The pendulum starts at a finite angle and rate, not at {angle} and {rate}.")
    return NumericModel(FlexibleDoublePendulum(int(elements), stiffening=geometric_stiffening, angle=angle, rate=rate))


class FlexibleDoublePendulum(NumericEquations):
    """The equations: two :class:`LinkMotion` with equal rods, and ten constraints."""

    def __init__(
        self, elements: int, *, stiffening: bool = False, angle: float = 0.0, rate: float = 0.0, rod: Rod | None = None
    ) -> None:
        rod = rod or Rod()
        weight = rod.mu * rod.length * GRAVITY
        self.links = [
            LinkMotion(FlexibleLink(rod, elements, pull=pull, gravity=GRAVITY, stiffened=stiffening))
            for pull in (weight, 0.0)
        ]
        self._begin = _start(self.links, angle, rate)
        size = self.links[0].size
        self.name = f"flexible_double_pendulum_{elements}" + ("_stiffened" if stiffening else "")
        self.description = f"Planar double pendulum of two flexible links with {elements} finite element(s) each"
        self.n, self.m = 2 * size, 10
        blocks = [(0, 0), (size, size)]
        shape = (self.n, self.n)
        self.pattern_M, self.pattern_e_v = (
            Pattern.from_blocks(
                [(getattr(link, name), i, j) for link, (i, j) in zip(self.links, blocks, strict=True)], shape
            )
            for name in ("pattern_M", "pattern_f_v")
        )
        parts = [(link.pattern_e_q, i, j) for link, (i, j) in zip(self.links, blocks, strict=True)]
        self.pattern_G, bent = self._joints()
        self.pattern_e_q = Pattern.from_blocks([*parts, (bent, 0, 0)], shape)
        self.inputs = [Signal(f"torque{k}", "N.m", description=f"of the motor in joint {k}") for k in (1, 2)]
        self.outputs = {
            "tip.x": Signal("tip.x", "m", description="place of the free end"),
            "tip.y": Signal("tip.y", "m", description="height of the free end"),
        }
        self.further = {"energy": Signal("energy", "J", description="kinetic, elastic and potential energy")}
        self.input_matrix = np.zeros((self.n, 2))
        self.input_matrix[2, 0] = 1.0  # the first motor turns the tangent at the first node: theta
        self.input_matrix[[size - 1, size + 2], 1] = -1.0, 1.0  # the second one also the last slope of link 1 ...
        self.input_matrix[2, 1] = -1.0  # ... which is counted from the frame
        self.parameters = {"L": rod.length}
        free = [s.name for k in (0, 1) for s in self._free(k)]
        self.independent = (*free, *(_velocity_name(name) for name in free))

    def coordinates(self) -> list[Signal]:
        """Return q with start values."""
        return [s for k in (0, 1) for s in self._signals(k)]

    def velocities(self) -> list[Signal]:
        """Return v with start values."""
        v = self._begin[1]
        return [
            Signal(_velocity_name(s.name), f"{s.unit}/s", max(1.0, s.nominal or 0.0), float(start))
            for s, start in zip(self.coordinates(), v, strict=True)
        ]

    def declared(self) -> list[Constraint]:
        """Return the ten constraints as expressions."""
        last = self.links[0].link.elements + 1
        end = f"(L + link1.u[{last}])", f"link1.w[{last}]"
        cosine, sine = "cos(link1.theta)", "sin(link1.theta)"
        texts = {f"link{k}.{c}[1]": f"frame {k}, {what}" for k in (1, 2) for c, what in _FRAME.items()}
        texts |= {"link1.x": "ground, x", "link1.y": "ground, y"}
        texts |= {
            f"link1.x + {cosine}*{end[0]} - {sine}*{end[1]} - link2.x": "joint, x",
            f"link1.y + {sine}*{end[0]} + {cosine}*{end[1]} - link2.y": "joint, y",
        }
        return [Constraint.from_text(text, name=name) for text, name in texts.items()]

    def _signals(self, k: int) -> list[Signal]:
        q, size, rod = self._begin[0], self.links[k].size, self.links[k].link.rod
        rod_coordinates = q[k * size : (k + 1) * size]
        frame = [("x", "m", 2 * rod.length), ("y", "m", 2 * rod.length), ("theta", "rad", 1.0)]
        node = [("u", "m", 0.01 * rod.length), ("w", "m", 0.1 * rod.length), ("phi", "rad", 0.1)]
        names = [(f"link{k + 1}.{c}", unit, size) for c, unit, size in frame]
        names += [
            (f"link{k + 1}.{c}[{i + 1}]", unit, size)
            for i in range(self.links[k].link.elements + 1)
            for c, unit, size in node
        ]
        return [
            Signal(name, unit, size, float(s)) for (name, unit, size), s in zip(names, rod_coordinates, strict=True)
        ]

    def _free(self, k: int) -> list[Signal]:
        """Return the coordinates of link k that are independent: its angle and the nodes behind the first."""
        rod_signals = self._signals(k)
        return [rod_signals[2], *rod_signals[6:]]

    def mass(self, q: FloatArray) -> FloatArray:
        """Return the values of M on ``pattern_M``."""
        return np.concatenate([link.mass(part) for link, part in zip(self.links, np.split(q, 2), strict=True)])

    def forces(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return f without inputs, shape (n,)."""
        halves = np.split(v, 2)
        parts = zip(self.links, np.split(q, 2), halves, strict=True)
        return np.concatenate([link.forces(part, half) for link, part, half in parts])

    def slopes(self, q: FloatArray, v: FloatArray, a: FloatArray, multipliers: FloatArray) -> SparseDerivatives:
        """Return the derivatives of f - M a - G' lambda."""
        parts = list(zip(self.links, np.split(q, 2), np.split(v, 2), np.split(a, 2), strict=True))
        by_q = [link.slopes_by_q(*rest) for link, *rest in parts]
        by_v = [link.slopes_by_v(p, half) for link, p, half, _ in parts]
        # - d(G' lambda)/dq: the joint turns with frame 1; lambda of the joint are the last two
        A, tip = self._tip(q)
        pull = multipliers[8:] @ A
        across = pull @ J
        bent = np.concatenate(([pull @ tip], -across, -across))
        return SparseDerivatives(np.concatenate((*by_q, bent)), np.concatenate(by_v))

    def residuals(self, q: FloatArray) -> FloatArray:
        """Return g, shape (10,)."""
        A, tip = self._tip(q)
        size = self.links[0].size
        return np.concatenate((q[self._pinned], q[:2] + A @ tip - q[size : size + 2]))

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Return the values of G on ``pattern_G``."""
        A, tip = self._tip(q)
        ones = np.ones(2)
        return np.concatenate((np.ones(8), ones, A @ J @ tip, A.ravel(), -ones))

    def bend(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return D^2 g [v, v], shape (10,)."""
        A, tip = self._tip(q)
        w, dtip = v[2], v[self._end]
        return np.concatenate((np.zeros(8), A @ (2 * w * J @ dtip - w**2 * tip)))

    def rate_slopes(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the values of d(G v)/dq on ``pattern_G``."""
        A, tip = self._tip(q)
        w, dtip = v[2], v[self._end]
        zero = np.zeros(2)
        return np.concatenate((np.zeros(8), zero, A @ (J @ dtip - w * tip), (w * A @ J).ravel(), zero))

    def bend_slopes(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the values of db/dq on ``pattern_G``."""
        A, tip = self._tip(q)
        w, dtip = v[2], v[self._end]
        zero = np.zeros(2)
        by_theta = A @ J @ (2 * w * J @ dtip - w**2 * tip)
        return np.concatenate((np.zeros(8), zero, by_theta, (-(w**2) * A).ravel(), zero))

    def output(self, name: str, q: FloatArray, v: FloatArray) -> Output:
        """Return ``tip.x``, ``tip.y`` or ``energy`` with its gradient."""
        if name == "energy":
            return self._energy(q, v)
        size, axis = self.links[1].size, ("tip.x", "tip.y").index(name)
        A, tip = rotation(q[size + 2]), q[[-3, -2]] + np.array([self.links[1].link.rod.length, 0.0])
        by_q = np.zeros(self.n)
        by_q[size + axis] = 1.0
        by_q[size + 2] = (A @ J @ tip)[axis]
        by_q[[-3, -2]] = A[axis]
        return Output(float((q[size : size + 2] + A @ tip)[axis]), by_q, np.zeros(self.n))

    def _energy(self, q: FloatArray, v: FloatArray) -> Output:
        """Return 1/2 v' M v + V, with the gradient (1/2 (M v)_q' v - f(q, 0), M v); without inputs it is kept."""
        still = np.zeros(self.n)
        parts = zip(self.links, np.split(q, 2), np.split(v, 2), strict=True)
        value = sum(link.energy(part, half) for link, part, half in parts)
        no_pull = np.zeros(self.m)
        e_q = [self.slopes(q, still, a, no_pull).e_q for a in (still, v)]
        by_q = self.pattern_e_q.sparse(e_q[0] - e_q[1]).T @ v / 2 - self.forces(q, still)
        return Output(value, by_q, self.pattern_M.sparse(self.mass(q)) @ v)

    def _joints(self) -> tuple[Pattern, Pattern]:
        """Return the patterns of G and of d(G' lambda)/dq, and note which coordinates are held at zero."""
        size = self.links[0].size
        first = [3, 4, 5]
        self._pinned = [*first, *(size + i for i in first), 0, 1]
        self._end = [size - 3, size - 2]
        x, y = 8, 9
        rows = [*range(8), x, y, x, y, x, x, y, y, x, y]
        columns = [*self._pinned, 0, 1, 2, 2, *self._end, *self._end, size, size + 1]
        turned = Pattern([2, 2, 2, *self._end], [2, *self._end, 2, 2], (self.n, self.n))
        return Pattern(rows, columns, (self.m, self.n)), turned

    def _tip(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A of link 1 and where its last node is in its frame."""
        tip = q[self._end] + np.array([self.links[0].link.rod.length, 0.0])
        return rotation(q[2]), tip


_FRAME = {"u": "at its first node along", "w": "at its first node across", "phi": "tangent"}


def _velocity_name(name: str) -> str:
    """Return ``link1.vx`` for ``link1.x``."""
    link, coordinate = name.split(".")
    return f"{link}.v{coordinate}"


def _start(links: list[LinkMotion], angle: float, rate: float) -> tuple[FloatArray, FloatArray]:
    """Return (q, v): hanging, turned as a whole about the ground joint."""
    theta = angle - pi / 2
    axis, across = np.array([cos(theta), sin(theta)]), np.array([-sin(theta), cos(theta)])
    q, v, distance = [], [], 0.0
    for motion in links:
        d = motion.link.deflection_under_gravity()
        q += [*(distance * axis), theta, *d]
        v += [*(rate * distance * across), rate, *np.zeros(motion.link.size)]
        distance += motion.link.rod.length + d[-3]
    return np.array(q), np.array(v)
