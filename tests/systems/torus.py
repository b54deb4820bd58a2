"""The rolling torus: a tyre on the ground, with dependent coordinates and speeds, by Kane's method."""

from __future__ import annotations

from functools import cache

import sympy
from sympy.physics.mechanics import KanesMethod, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from fmilin.errors import UsageError
from fmilin.models import KaneModel, Labels

__all__ = ["rolling_torus", "torus_equations"]


def rolling_torus(
    speed: float = 1.0, *, mass: float = 1.0, ring_radius: float = 1.0, tube_radius: float = 0.2, gravity: float = 9.81
) -> KaneModel:
    """Return a solid torus that rolls upright without slip: 12 states, 8 of them independent.

    Its circle of tube centres has the radius a = ``ring_radius``, its tube the radius b = ``tube_radius``; in the
    limit b = 0 it is a hoop. Yaw q1, lean q2 and spin q3 are successive rotations about z (downwards), x and y;
    q4, q5, q6 locate the centre. The speeds u1, u2, u3 are the components of the angular velocity in the lean
    frame, u4, u5, u6 those of the centre's velocity in the same frame. The lowest point of the tube touches the ground,
    q6 + a cos(q2) + b = 0, and is at rest. The input is ``lean_torque`` about the horizontal axis in the torus's
    plane, in N m; the outputs are ``lean`` in rad and ``contact.y``, the lateral position of the contact, in m.

    ``speed``: in m/s. ``mass``, ``ring_radius``, ``tube_radius``, ``gravity``: parameters ``m``, ``a``, ``b`` and
    ``g``.

    Upright, six eigenvalues are zero (defective), and with r = a + b, the axial moment of inertia
    J = m (a^2 + 3/4 b^2) and the diametral one I = m (a^2/2 + 5/8 b^2) the others are

        lambda^2 = [m g a - (J + m r^2) J v^2 / (I r^2)] / (I + m r^2).
    """
    if not mass > 0:
        raise UsageError(f"A torus needs a positive mass, not {mass:g}.")
    if not ring_radius > tube_radius >= 0:
        raise UsageError(f"A torus has a ring larger than its tube, not {ring_radius:g} and {tube_radius:g}.")
    r = ring_radius + tube_radius
    return (
        _model()
        .with_parameters({"m": mass, "a": ring_radius, "b": tube_radius, "g": gravity})
        .with_start({"q6": -r, "u2": -speed / r, "u4": speed})
    )


@cache
def _model() -> KaneModel:
    return KaneModel.from_sympy(
        torus_equations(),
        name="rolling_torus",
        parameters={"m": 1.0, "a": 1.0, "b": 0.2, "g": 9.81},
        outputs={"lean": "q2", "contact.y": "q5 - a*cos(q1)*sin(q2)"},
        start={"q6": -1.2},
        labels=_labels(),
    )


@cache
def torus_equations() -> KanesMethod:
    """Return the equations as a ``KanesMethod`` object of sympy, Kane's equations formed."""
    t = dynamicsymbols._t
    q, u = dynamicsymbols("q1:7"), dynamicsymbols("u1:7")
    m, a, b, g = sympy.symbols("m a b g", real=True)
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q[0], N.z])
    B = Y.orientnew("B", "Axis", [q[1], Y.x])
    C = B.orientnew("C", "Axis", [q[2], B.y])
    spin, lean = C.ang_vel_in(N), B.ang_vel_in(N)
    origin = Point("O")
    centre = origin.locatenew("C_o", q[3] * N.x + q[4] * N.y + q[5] * N.z)
    moving = centre.pos_from(origin).dt(N)
    C.set_ang_vel(N, u[0] * B.x + u[1] * B.y + u[2] * B.z)
    centre.set_vel(N, u[3] * B.x + u[4] * B.y + u[5] * B.z)
    kinematics = [(spin - C.ang_vel_in(N)).dot(axis) for axis in (B.x, B.y, B.z)]
    kinematics += [(moving - centre.vel(N)).dot(axis) for axis in (N.x, N.y, N.z)]
    B.set_ang_vel(N, lean.subs({q[0].diff(t): u[2] / sympy.cos(q[1]), q[1].diff(t): u[0]}))
    C.set_ang_acc(N, C.ang_vel_in(N).dt(B) + B.ang_vel_in(N).cross(C.ang_vel_in(N)))
    centre.set_acc(N, centre.vel(N).dt(B) + B.ang_vel_in(N).cross(centre.vel(N)))
    to_contact = a * B.z + b * N.z
    slip = centre.vel(N) + C.ang_vel_in(N).cross(to_contact)
    axial, diametral = m * (a**2 + 3 * b**2 / 4), m * (a**2 / 2 + 5 * b**2 / 8)
    torus = RigidBody("torus", centre, C, m, (inertia(B, diametral, axial, diametral), centre))
    kane = KanesMethod(
        N,
        q_ind=q[:5],
        q_dependent=[q[5]],
        u_ind=u[:3],
        u_dependent=u[3:],
        kd_eqs=kinematics,
        configuration_constraints=[q[5] + a * sympy.cos(q[1]) + b],
        velocity_constraints=[slip.dot(axis) for axis in (B.x, B.y, B.z)],
    )
    kane.kanes_equations([torus], [(centre, m * g * N.z), (C, dynamicsymbols("lean_torque") * B.x)])
    return kane


def _labels() -> Labels:
    units = dict.fromkeys(("q1", "q2", "q3", "lean"), "rad") | dict.fromkeys(("u1", "u2", "u3"), "rad/s")
    units |= dict.fromkeys(("q4", "q5", "q6", "a", "b", "contact.y"), "m") | dict.fromkeys(("u4", "u5", "u6"), "m/s")
    units |= {"m": "kg", "g": "m/s2", "lean_torque": "N.m"}
    descriptions = {"q1": "yaw", "q2": "lean", "q3": "spin", "q6": "height of the centre, downwards"}
    return Labels(units=units, descriptions=descriptions, description="Solid torus that rolls without slip")
