"""The simplest constrained mechanism: a point on a rod, described by both of its Cartesian coordinates."""

from __future__ import annotations

from math import cos, sin

import sympy

from fmilin.native.declaration import Labels, SymbolicConstraint, der
from fmilin.native.lagrange import LagrangeModel

__all__ = ["cartesian_pendulum"]


def cartesian_pendulum(
    length: float = 1.0, mass: float = 1.0, gravity: float = 9.81, *, angle: float = 0.0, rate: float = 0.0
) -> LagrangeModel:
    """Return a pendulum in Cartesian coordinates: N = 4 states x, y, vx, vy, of which P = 2 are independent.

    ::

        m x'' = F - lambda x,    m y'' = -m g - lambda y,    0 = (x^2 + y^2 - L^2)/2

    The input F is a horizontal force on the mass, in N. The outputs are ``angle`` from the downward vertical,
    positive towards +x, in rad, and ``ax`` and ``ay``, what an accelerometer at the mass with axes along x and y
    measures (the specific force, x'' and y'' + g), in m/s2.

    ``length``, ``mass``, ``gravity``: L in m, m in kg, g in m/s2; parameters ``L``, ``m`` and ``g`` of the model.
    ``angle``, ``rate``: where and how fast it starts, in rad and rad/s; by default it hangs at rest, its equilibrium.

    In the angle theta, theta'' = -(g/L) sin(theta) + F cos(theta)/(m L): hanging, the eigenvalues are
    +- i sqrt(g/L). Source: the example of Spencer (thesis), section 2.3, there with unit length.

    >>> model = cartesian_pendulum(length=2.0)
    >>> model.states.names, model.start.states.tolist()
    (('x', 'y', 'vx', 'vy'), [0.0, -2.0, 0.0, 0.0])
    """
    x, y, vx, vy, F, L, m, g = sympy.symbols("x y vx vy F L m g", real=True)
    return LagrangeModel(
        "cartesian_pendulum",
        {x: vx, y: vy},
        sympy.diag(m, m),
        [F, -m * g],
        constraints=[SymbolicConstraint((x**2 + y**2 - L**2) / 2, name="rod length")],
        inputs=[F],
        parameters={L: length, m: mass, g: gravity},
        outputs={"angle": sympy.atan2(x, -y), "ax": der(vx), "ay": der(vy) + g},
        start={
            x: length * sin(angle),
            y: -length * cos(angle),
            vx: length * rate * cos(angle),
            vy: length * rate * sin(angle),
        },
        labels=Labels(
            units={x: "m", y: "m", F: "N", L: "m", m: "kg", g: "m/s2", "angle": "rad", "ax": "m/s2", "ay": "m/s2"},
            nominals={x: length, y: length},
            descriptions={
                F: "horizontal force on the mass",
                "angle": "from the downward vertical, positive towards +x",
                "ax": "specific force along x",
                "ay": "specific force along y",
            },
            description="Point mass on a massless rod, in Cartesian coordinates",
        ),
    )
