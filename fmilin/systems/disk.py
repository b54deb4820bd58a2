"""The rolling disk, described with more coordinates and speeds than it needs, to show what linearizers must mind."""

from math import cos, sin, sqrt
from typing import Any

import sympy

from fmilin.errors import UsageError
from fmilin.models.declaration import der
from fmilin.models.kane import KaneEquations, KaneModel
from fmilin.models.labels import Labels


def rolling_disk(
    speed: float = 1.0,
    *,
    lean: float = 0.0,
    yaw_rate: float | None = None,
    mass: float = 1.0,
    radius: float = 1.0,
    gravity: float = 1.0,
) -> KaneModel:
    """Return the rolling disk of Peterson et al.: 12 states q1..q6, u1..u6, of which 8 are independent.

    Yaw q1, lean q2 and spin q3 are successive rotations about z, x, y; q4, q5, q6 locate the centre, z pointing
    down. The speeds u1, u2, u3 are the components of the angular velocity in the lean frame B, u4, u5, u6 those of
    the centre's velocity in the frame C of the disk. With masses and lengths in kg and m the equations

    ::

        f_c = r cos(q2) + q6 = 0                                            contact
        f_v = (r u2 cos(q3) + u4, -r u1 + u5, r u2 sin(q3) + u6) = 0        rolling without slip
        f_0 + f_1 = 0    kinematics,    f_2 + f_3 = 0    dynamics,    f_a = d f_v/dt = 0

    are solved for all 12 derivatives. The inputs are torques on the disk: ``lean_torque`` about the horizontal axis
    b_x in the disk's plane, and ``steer_torque`` about b_z, from the centre to the contact; the outputs ``lean`` = q2,
    ``yaw_rate`` = q1' and ``contact.y``. ``speed`` is v = -r q3'; without ``yaw_rate`` a leaning disk starts in the
    slower of its two steady turns. No steady motion is an equilibrium of the 12 states, so the spectrum depends on the
    coordinates: in the recommended ones, q1..q5 and u1, u2, u3, two eigenvalues differ from zero,

        lambda^2 = 4/5 (g/r) cos(q2) - q1'^2 - 14/5 sin(q2) q1' q3' - 12/5 q3'^2,

    +- 2 sqrt(1 - 3 v^2)/sqrt(5) upright with g = r = 1; the other six are zero and defective. The Jacobian of all
    12 states has these, and a spurious pair lambda^2 = -2/3 v^2 that no motion of the disk knows. The kinematic
    equations of q4, q5, q6 have the rolling constraints substituted, as printed by the source, so that f_c is kept for
    any u4, u5, u6 and hides no further constraint.
    """
    if not (mass > 0 and radius > 0):
        raise UsageError(f"A disk needs a positive mass and radius, not {mass:g} and {radius:g}.")
    if not abs(cos(lean)) > 1e-6:
        raise UsageError(f"The disk cannot roll at a lean of {lean} rad, where it lies flat on the ground.")
    if yaw_rate is None:
        yaw_rate = steady_yaw_rates(speed, lean, radius=radius, gravity=gravity)[0] if lean else 0.0
    q, u = sympy.symbols("q1:7", real=True), sympy.symbols("u1:7", real=True)
    torques = sympy.symbols("lean_torque steer_torque", real=True)
    m, r, g = sympy.symbols("m r g", real=True)
    contact = sympy.cos(q[0]) * sympy.sin(q[1])  # the contact is r b_z from the centre; b_z . n_y = -cos q1 sin q2
    return KaneModel(
        "rolling_disk",
        _equations(q, u, (m, r, g), torques),
        inputs=torques,
        parameters={m: mass, r: radius, g: gravity},
        outputs={"lean": q[1], "yaw_rate": "der(q1)", "contact.y": q[4] - r * contact},
        start=_start(speed, lean, yaw_rate, radius),
        labels=_labels(),
    )


def steady_yaw_rates(speed: float, lean: float, *, radius: float = 1.0, gravity: float = 1.0) -> tuple[float, float]:
    """Return the two yaw rates (rad/s, the slower first) of a steady turn at v = -r q3' and a lean other than 0.

    They are the roots of (g/r) sin(q2) + 3/2 cos(q2) q1' q3' + 5/4 cos(q2) sin(q2) q1'^2 = 0.
    """
    if sin(lean) == 0:
        raise UsageError("An upright disk rolls in a straight line; a steady turn needs a lean.")
    c, b, a = gravity / radius * sin(lean), -1.5 * cos(lean) * speed / radius, 1.25 * cos(lean) * sin(lean)
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        slowest = sqrt(20 / 9 * gravity * radius * sin(lean) * sin(lean) / cos(lean))
        raise UsageError(
            f"A disk that leans by {lean:g} rad has steady turns from {slowest:.6g} m/s upwards, not at {speed:g} m/s."
        )
    largest = -(b + sqrt(discriminant) * (1 if b >= 0 else -1)) / 2  # the root without cancellation
    return c / largest, largest / a


def _equations(q: Any, u: Any, parameters: Any, torques: Any) -> KaneEquations:
    """Return the equations as Peterson et al. print them."""
    q1, q2, q3, _, _, q6 = q
    u1, u2, u3, u4, u5, u6 = u
    m, r, g = parameters
    lean_torque, steer_torque = torques
    qd, ud = [der(s) for s in q], [der(s) for s in u]
    sin, cos, tan = sympy.sin, sympy.cos, sympy.tan
    lateral = r * u2 / 2 - r * u3 / 4 * tan(q2) - u4 * cos(q3) - u6 * sin(q3)
    return KaneEquations(
        q=q,
        u=u,
        f_c=[r * cos(q2) + q6],
        f_v=[r * u2 * cos(q3) + u4, -r * u1 + u5, r * u2 * sin(q3) + u6],
        f_a=[
            -r * u2 * sin(q3) * qd[2] + r * cos(q3) * ud[1] + ud[3],
            -r * ud[0] + ud[4],
            r * u2 * cos(q3) * qd[2] + r * sin(q3) * ud[1] + ud[5],
        ],
        f_0=[qd[1], sin(q2) * qd[0] + qd[2], cos(q2) * qd[0], qd[3], qd[4], qd[5]],
        f_1=[
            -u1,
            -u2,
            -u3,
            r * u1 * sin(q1) * cos(q2) + r * u2 * cos(q1),
            -r * u1 * cos(q1) * cos(q2) + r * u2 * sin(q1),
            -r * u1 * sin(q2),
        ],
        f_2=[
            -m * r / 4 * (r * ud[0] + 4 * ud[4]),
            m * r / 2 * (-r * ud[1] + 2 * sin(q3) * ud[5] + 2 * cos(q3) * ud[3]),
            -m * r**2 / 4 * ud[2],
        ],
        f_3=[
            m * r * (g * sin(q2) - u1 * u4 * sin(q3) + u1 * u6 * cos(q3) + lateral * u3) + lean_torque,
            -m * r * (u2 * u4 * sin(q3) - u2 * u6 * cos(q3) + u3 * u5),
            -m * r**2 / 4 * (2 * u2 - u3 * tan(q2)) * u1 + steer_torque,
        ],
        names=["contact", *(f"slip along c_{axis}" for axis in "xyz")],
    )


def _start(speed: float, lean: float, yaw_rate: float, radius: float) -> dict[str, float]:
    """Return the states at q1 = q3 = q4 = q5 = 0 that satisfy f_c, f_v and the kinematic equations."""
    u2 = sin(lean) * yaw_rate - speed / radius
    return {"q2": lean, "q6": -radius * cos(lean), "u2": u2, "u3": cos(lean) * yaw_rate, "u4": -radius * u2}


def _labels() -> Labels:
    angles, lengths = ("q1", "q2", "q3", "lean"), ("q4", "q5", "q6", "contact.y", "r")
    units = dict.fromkeys(angles, "rad") | dict.fromkeys(lengths, "m")
    units |= dict.fromkeys(("u1", "u2", "u3", "yaw_rate"), "rad/s") | dict.fromkeys(("u4", "u5", "u6"), "m/s")
    units |= {"lean_torque": "N.m", "steer_torque": "N.m", "m": "kg", "g": "m/s2"}
    return Labels(
        units=units,
        descriptions={
            "q1": "yaw",
            "q2": "lean",
            "q3": "spin",
            "q6": "height of the centre, downwards",
            "lean_torque": "torque about the horizontal axis in the plane of the disk",
            "steer_torque": "torque about the axis from the centre to the contact",
            "contact.y": "lateral position of the contact",
        },
        independent=("q1", "q2", "q3", "q4", "q5", "u1", "u2", "u3"),
        description="Thin disk rolling without slip on a horizontal plane, with dependent coordinates and speeds",
    )
