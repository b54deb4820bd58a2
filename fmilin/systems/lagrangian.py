"""The Cartesian pendulum and the five-bar mechanism, by Lagrange's equations."""

from math import acos, asin, cos, pi, sin
from typing import Any

import sympy

from fmilin.models.declaration import SymbolicConstraint, der
from fmilin.models.labels import Labels
from fmilin.models.lagrange import LagrangeModel


def cartesian_pendulum(
    length: float = 1.0, mass: float = 1.0, gravity: float = 9.81, *, angle: float = 0.0, rate: float = 0.0
) -> LagrangeModel:
    """Return a pendulum in Cartesian coordinates: N = 4 states x, y, vx, vy, of which P = 2 are independent.

    ::

        m x'' = F - lambda x,    m y'' = -m g - lambda y,    0 = (x^2 + y^2 - L^2)/2

    F is a horizontal force. The outputs are ``angle`` from the downward vertical, positive towards +x, and ``ax``
    and ``ay``, what an accelerometer at the mass measures (the specific force, x'' and y'' + g). It starts at
    ``angle``, turning at ``rate``; by default at its equilibrium. In the angle theta, theta'' = -(g/L) sin(theta) +
    F cos(theta)/(m L): hanging, the eigenvalues are +- i sqrt(g/L). Source: Spencer (thesis), section 2.3, there
    with unit length.

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


LINK_COUNT = 4


def five_bar(*, singular: bool = False) -> LagrangeModel:
    """Return the five-bar mechanism of Spencer (thesis), section 3.2: 8 states, of which 4 are independent.

    Four links in a chain from the support (0, 0) to the support (d, 0); gravity points to -y. The coordinates are
    the angle q1 of the first link from the x axis and the interior angles q2, q3, q4 at the joints: theta_1 = q1,
    theta_i = theta_(i-1) + pi + q_i. The loop closes with sum l_i cos(theta_i) = d and sum l_i sin(theta_i) = 0.
    Links 1 and 4: 1 m, 2 kg, 1 kg m2 about the centre of mass in their middle; links 2 and 3: 1.5 m, 3 kg, 2 kg m2
    (table 3.1); d = 1 m, g = 9.81 m/s2. The inputs are the torques of the supports on links 1 and 4; ``middle`` is
    the joint of links 2 and 3. It starts at rest, which is not an equilibrium, in the symmetric configuration of figure
    3.1, q = (2 pi/3, pi/3 + acos(2/3), 2 asin(2/3), pi/3 + acos(2/3)).

    ``singular``: start with all links on the x axis, q = (pi, 0, pi, 0), where the constraints depend on each other
    and the matrix of Lagrange's equations is singular: the accelerations are then those that the rounding of pi
    leads to; :class:`~fmilin.models.NullSpaceModel` gives those of least norm. The singular configuration that the
    thesis prints, q = (pi, 0, 0, pi), closes the loop in no convention that its regular one obeys.

    With the absolute angles theta, the kinetic energy is 1/2 sum a_ij cos(theta_i - theta_j) theta_i' theta_j', so

        sum_j a_ij [cos(theta_i - theta_j) theta_j'' + sin(theta_i - theta_j) theta_j'^2]
            = torque_i - g b_i cos(theta_i)

    with b_i = m_i l_i/2 + l_i (m_(i+1) + ... + m_4), a_ij = l_i b_j for i < j, and a_ii = J_i + m_i l_i^2/4 + l_i^2
    (m_(i+1) + ... + m_4).

    >>> model = five_bar()
    >>> model.states.names
    ('q1', 'q2', 'q3', 'q4', 'v1', 'v2', 'v3', 'v4')
    """
    q = sympy.symbols("q1:5", real=True)
    v = sympy.symbols("v1:5", real=True)
    torques = sympy.symbols("left_torque right_torque", real=True)
    l1, l2, m1, m2, J1, J2, d, g = sympy.symbols("l1 l2 m1 m2 J1 J2 d g", real=True)
    lengths, masses, inertias = (l1, l2, l2, l1), (m1, m2, m2, m1), (J1, J2, J2, J1)
    theta = [sympy.Add(*q[: i + 1]) + i * sympy.pi for i in range(LINK_COUNT)]
    a, b = _inertia(lengths, masses, inertias)
    S = sympy.Matrix(LINK_COUNT, LINK_COUNT, lambda i, j: 1 if j <= i else 0)  # theta' = S v
    omega = S * sympy.Matrix(v)
    M = _mass_matrix(a, theta)
    swing = sympy.Matrix([sum(a[i][j] * sympy.sin(theta[i] - theta[j]) * omega[j] ** 2 for j in range(LINK_COUNT))
                          for i in range(LINK_COUNT)])  # fmt: skip
    weight = sympy.Matrix([g * b[i] * sympy.cos(theta[i]) for i in range(LINK_COUNT)])
    drive = sympy.Matrix([torques[0], 0, 0, torques[1]])
    kinetic = (omega.T * M * omega)[0] / 2
    potential = sum(g * b[i] * sympy.sin(theta[i]) for i in range(LINK_COUNT))
    middle, end = _joint(2, lengths, theta), _joint(4, lengths, theta)
    regular = (2 * pi / 3, pi / 3 + acos(2 / 3), 2 * asin(2 / 3), pi / 3 + acos(2 / 3))
    start = (pi, 0.0, pi, 0.0) if singular else regular
    return LagrangeModel(
        "five_bar",
        dict(zip(q, v, strict=True)),
        S.T * M * S,
        list(S.T * (drive - weight - swing)),
        constraints=[
            SymbolicConstraint(end[0] - d, name="loop along x"),
            SymbolicConstraint(end[1], name="loop along y"),
        ],
        inputs=torques,
        parameters={l1: 1.0, l2: 1.5, m1: 2.0, m2: 3.0, J1: 1.0, J2: 2.0, d: 1.0, g: 9.81},
        outputs={
            "middle.x": middle[0],
            "middle.y": middle[1],
            "kinetic_energy": kinetic,
            "potential_energy": potential,
            "energy": kinetic + potential,
        },
        start=dict(zip(q, start, strict=True)),
        labels=_labels(q, (l1, l2, d), (m1, m2), (J1, J2), g),
    )


def _joint(count: int, lengths: Any, theta: Any) -> tuple[Any, Any]:
    """Return the end of link ``count``, from the left support."""
    links = list(zip(lengths[:count], theta[:count], strict=True))
    return sum(r * sympy.cos(angle) for r, angle in links), sum(r * sympy.sin(angle) for r, angle in links)


def _inertia(lengths: Any, masses: Any, inertias: Any) -> tuple[list[list[Any]], list[Any]]:
    """Return a, (4, 4), and b, (4,): what the masses of a link and of all that it carries amount to."""
    carried = [sympy.Add(*masses[i + 1 :]) for i in range(LINK_COUNT)]
    b = [masses[i] * lengths[i] / 2 + lengths[i] * carried[i] for i in range(LINK_COUNT)]
    a = [[lengths[min(i, j)] * b[max(i, j)] for j in range(LINK_COUNT)] for i in range(LINK_COUNT)]
    for i in range(LINK_COUNT):
        a[i][i] = inertias[i] + masses[i] * lengths[i] ** 2 / 4 + lengths[i] ** 2 * carried[i]
    return a, b


def _mass_matrix(a: Any, theta: Any) -> Any:
    """Return the mass matrix of the absolute angles, (4, 4)."""
    return sympy.Matrix(LINK_COUNT, LINK_COUNT, lambda i, j: a[i][j] * sympy.cos(theta[i] - theta[j]))


def _labels(q: Any, lengths: Any, masses: Any, inertias: Any, g: Any) -> Labels:
    units = dict.fromkeys(q, "rad") | dict.fromkeys(lengths, "m") | dict.fromkeys(masses, "kg") | {g: "m/s2"}
    units |= dict.fromkeys(inertias, "kg.m2") | dict.fromkeys(("left_torque", "right_torque"), "N.m")
    units |= dict.fromkeys(("middle.x", "middle.y"), "m")
    units |= dict.fromkeys(("kinetic_energy", "potential_energy", "energy"), "J")
    return Labels(
        units=units,
        nominals=dict.fromkeys(q, 1.0),
        descriptions={
            "q1": "angle of the first link from the x axis",
            "q2": "interior angle at the joint of links 1 and 2",
            "q3": "interior angle at the joint of links 2 and 3",
            "q4": "interior angle at the joint of links 3 and 4",
            "left_torque": "torque of the left support on link 1",
            "right_torque": "torque of the right support on link 4",
            "middle.x": "joint of links 2 and 3",
            "middle.y": "joint of links 2 and 3",
        },
        description="Five-bar mechanism with two closed-loop constraints and a singular configuration",
    )
