"""What a discovery is compared with: the constraints that a system is known to have, and points where they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import fmilin as fl
from fmilin import Constraint, Model
from fmilin.systems import five_bar, four_bar, rolling_disk, slider_crank
from tests.discovery import systems, tied, unseen
from tests.systems.linkages import parallel_robot
from tests.systems.torus import rolling_torus

CLOSE = 0.03
"""How far from the start consistent points are looked for, in sizes of the states."""

HOLDS = 1e-7


@dataclass(frozen=True)
class Case:
    """A system and its constraints; None: those that it declares. ``quiet``: the system without noise in its rates."""

    name: str
    build: Callable[[], Model]
    truth: Sequence[str | Constraint] | None = None
    quiet: Callable[[], Model] | None = None

    def models(self) -> tuple[Model, Model]:
        """Return the system with its constraints, and without."""
        model = self.build()
        if self.truth is None:
            return model, model.with_constraints([])
        true = [c if isinstance(c, Constraint) else Constraint.from_text(c) for c in self.truth]
        return model.with_constraints(true), model


def velocity(text: str) -> Constraint:
    return Constraint.from_text(text, level="velocity")


def norm(*names: str) -> Constraint:
    return velocity(" + ".join(f"{n}^2" for n in names) + " - 1")


ROBOT: list[str | Constraint] = [
    "theta - 0.2*(phi_r - phi_l)",
    velocity("vy*cos(theta) - vx*sin(theta)"),
    velocity("vx*cos(theta) + vy*sin(theta) - 0.05*(left + right)"),
]
LENGTHS = [f"(x[{i}] - x[{i - 1}])^2 + (y[{i}] - y[{i - 1}])^2 - 1" for i in range(2, 11)]
BRACED = [f"(x{i + 1} - x{j + 1})^2 + (y{i + 1} - y{j + 1})^2 - {1 if i + j == 3 else 0.5}" for i, j in systems.BRACED]
PIN = ["x - 0.7*s", "y + 0.7*c"]
DIRECTIONS: list[str | Constraint] = [velocity(text) for text in tied.DIRECTIONS]
A, B = ([f"{b}.e{i}" for i in range(4)] for b in "ab")

CASES = (
    Case("pendulum", systems.plain_pendulum, ["x^2 + y^2 - 1.69"]),
    Case("four-bar", four_bar),
    Case("quaternion body", systems.quaternion_body, [norm("e[0]", "e[1]", "e[2]", "e[3]")]),
    Case(
        "two bodies, rod in space",
        systems.rod_in_space,
        ["(a.x - b.x)^2 + (a.y - b.y)^2 + (a.z - b.z)^2 - 1.69", norm(*A), norm(*B)],
    ),
    Case(
        "body on a ball joint",
        systems.hung_body,
        [
            norm("e0", "e1", "e2", "e3"),
            "rx + 0.1*(e0^2 + e1^2 - e2^2 - e3^2) + 0.8*(e1*e3 + e0*e2)",
            "ry + 0.2*(e1*e2 + e0*e3) + 0.8*(e2*e3 - e0*e1)",
            "rz + 0.2*(e1*e3 - e0*e2) + 0.4*(e0^2 - e1^2 - e2^2 + e3^2)",
        ],
    ),
    Case("slider crank", slider_crank),
    Case("slider crank, Cartesian", systems.cartesian_slider_crank, ["x^2 + y^2 - 0.04", "(x - s)^2 + y^2 - 0.49"]),
    Case("five-bar", five_bar),
    Case("robot with a loop", parallel_robot),
    Case("rolling disk", rolling_disk),
    Case("rolling torus", rolling_torus),
    Case("Baumgarte's terms", systems.stabilized_pendulum, ["x^2 + y^2 - 1.69"]),
    Case(
        "noise of 1e-8",
        lambda: systems.noisy(systems.plain_pendulum()),
        ["x^2 + y^2 - 1.69"],
        systems.plain_pendulum,
    ),
    Case("tumbling body", systems.tumbling_body, [norm("e0", "e1", "e2", "e3")]),
    Case("energy and momentum", systems.free_masses, []),
    Case("planet", systems.kepler, []),
    *(
        Case(f"direction cosines{', driven' * driven}", partial(tied.heavy_top, driven=driven), DIRECTIONS)
        for driven in (True, False)
    ),
    *(
        Case(
            f"rack, ratio {ratio:g}{', driven' * driven}",
            partial(tied.rack, ratio, driven=driven),
            [f"th - ({ratio})*y"],
        )
        for ratio, driven in ((4.0, True), (-4.0, True), (4.0, False), (-4.0, False), (-2.5, False))
    ),
    Case("sine and cosine, driven", partial(tied.pendulum, driven=True), [norm("s", "c")]),
    Case("sine and cosine", partial(tied.pendulum, driven=False), [norm("s", "c")]),
    *(
        Case(f"bar with sine and cosine{', simplified' * s}", partial(tied.bar, simplified=s), [*PIN, norm("s", "c")])
        for s in (False, True)
    ),
    Case("skate with sine and cosine", tied.skate, [norm("s", "c"), velocity("vy*c - vx*s")]),
    Case("floating wheels", tied.free_wheels, [norm("s1", "c1"), norm("s2", "c2")]),
    Case(
        "noise of 1e-6",
        lambda: systems.noisy(systems.chain(3), 1e-6),
        ["x[1]^2 + y[1]^2 - 1", *LENGTHS[:2]],
        lambda: systems.chain(3),
    ),
    Case("redundant distances on a link", systems.braced, [*BRACED, "x1^2 + y1^2 - 1"]),
    Case("redundant distances on springs", partial(systems.braced, hung=False), BRACED),
    Case("unseen: wheeled robot", unseen.wheeled_robot, ROBOT),
    Case("unseen: hoist", unseen.hoist, ["(x - s)^2 + y^2 + z^2 - 4"]),
)

LONGER_CASES = (
    Case("four-bar, noise of 1e-8", lambda: systems.noisy(four_bar()), four_bar().constraints.declared),
    Case("chain of ten links", systems.chain, ["x[1]^2 + y[1]^2 - 1", *LENGTHS]),
)


def violated(at: Model, constraints: Sequence[Constraint]) -> int:
    """Return how many of the constraints do not hold at consistent points of a model that has others."""
    if not constraints:
        return 0
    random = np.random.default_rng(5)
    coordinates = fl.linearize(at).states
    sizes = at.states.scales(at.start.states)
    judged = at.with_constraints(constraints)
    worst = np.zeros(len(judged.constraints.declared))
    for _ in range(3):
        positions = [at.states.index_of(name) for name in coordinates.names]
        moved = at.start.states[positions] + CLOSE * sizes[positions] * random.uniform(-1.0, 1.0, len(positions))
        point = fl.operating_point(at, dict(zip(coordinates.names, moved.tolist(), strict=True)))
        residuals = judged.evaluate(point.time, point.states, point.inputs).residuals[: len(worst)]
        worst = np.maximum(worst, np.abs(residuals))
    return int((worst > HOLDS).sum())
