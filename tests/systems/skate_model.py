"""A skate on a slope: the smallest nonholonomic mechanism, written letter by letter in Kane's form."""

from __future__ import annotations

from math import radians

from fmilin.errors import UsageError
from fmilin.models import KaneEquations, KaneModel, Labels

__all__ = ["skate"]


def skate(
    speed: float = 1.0,
    *,
    yaw_rate: float = 0.0,
    offset: float = 0.0,
    mass: float = 1.0,
    inertia: float = 1.0,
    slope: float = 0.0,
    gravity: float = 9.81,
) -> KaneModel:
    """Return a rigid body on a blade that cannot slip sideways, on an inclined plane: 6 states, 5 of them independent.

    ``x`` (downhill), ``y`` and ``psi`` locate the blade, ``v`` and ``s`` are its speeds along and across itself,
    ``w`` is the yaw rate. The centre of mass lies ``a`` = ``offset`` in front of the blade (with it the skate is
    Chaplygin's sleigh). The lateral speed is a dependent one, f_v = s = 0. The inputs are a ``push`` along the blade
    in N and a ``torque`` in N m about the normal of the plane; the outputs are ``x``, ``y`` and the lateral
    ``acceleration`` of the centre of mass in m/s^2.

    ``speed``: v in m/s. ``yaw_rate``: w in rad/s. ``offset``, ``mass``, ``inertia``, ``gravity``: parameters ``a``,
    ``m``, ``J`` (about the centre of mass) and ``g``. ``slope``: of the plane, in degrees.

    On a level plane, straight on, the only eigenvalue that differs from zero is -m a v/(J + m a^2). On a slope, without
    offset, the skate that starts from rest with the yaw rate w does not slide downhill but moves along a cycloid:
    v = (g sin(slope)/w) sin(w t), x = (g sin(slope)/(2 w^2)) sin(w t)^2.
    """
    if not (mass > 0 and inertia > 0 and abs(slope) <= 90):
        raise UsageError("A skate needs a positive mass and inertia, and a slope of at most 90 degrees.")
    equations = KaneEquations(
        q=["x", "y", "psi"],
        u=["v", "s", "w"],
        f_0=["der(x)", "der(y)", "der(psi)"],
        f_1=["-v*cos(psi) + s*sin(psi)", "-v*sin(psi) - s*cos(psi)", "-w"],
        f_v=["s"],
        f_2=["m*der(v)", "(J + m*a^2)*der(w) + m*a*der(s)"],
        f_3=["-m*w*(s + a*w) - m*g*sin(slope)*cos(psi) - push", "m*a*w*v + m*a*g*sin(slope)*sin(psi) - torque"],
    )
    return KaneModel(
        "skate",
        equations,
        inputs=["push", "torque"],
        parameters={"a": offset, "m": mass, "J": inertia, "g": gravity, "slope": radians(slope)},
        outputs={"x": "x", "y": "y", "acceleration": "der(s) + a*der(w) + w*v"},
        start={"v": speed, "w": yaw_rate},
        labels=_labels(),
    )


def _labels() -> Labels:
    return Labels(
        units={
            "x": "m", "y": "m", "psi": "rad", "v": "m/s", "s": "m/s", "w": "rad/s", "a": "m", "m": "kg", "J": "kg.m2",
            "g": "m/s2", "slope": "rad", "push": "N", "torque": "N.m", "acceleration": "m/s2",
        },
        descriptions={
            "x": "of the blade, downhill",
            "s": "speed of the blade across itself",
        },
        independent=("x", "y", "psi", "v", "w"),
        description="Rigid body on a blade, on an inclined plane",
    )  # fmt: skip
