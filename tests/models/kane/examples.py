"""Small systems in sympy.physics.mechanics and in plain letters, for the tests of this folder."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Lagrangian,
    Particle,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

import fmilin as fl
from fmilin import OperatingPoint
from fmilin.models import KaneEquations, KaneModel
from fmilin.systems import rolling_disk

__all__ = ["bead", "cartesian_lagrange", "disc", "leaning", "pendulum_on_a_moving_pivot", "pulled_pendulum"]


@cache
def disc() -> Any:
    """The rolling disk of Peterson et al. as sympy's own test derives it, with implicit kinematic equations."""
    r, m, g = sympy.symbols("r m g")
    q, u = dynamicsymbols("q1:7"), dynamicsymbols("u1:7")
    t = dynamicsymbols._t
    qd = [s.diff(t) for s in q]
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q[0], N.z])
    B = A.orientnew("B", "Axis", [q[1], A.x])
    C = B.orientnew("C", "Axis", [q[2], B.y])
    origin = Point("O")
    centre = origin.locatenew("C_o", q[3] * N.x + q[4] * N.y + q[5] * N.z)
    spin, lean = C.ang_vel_in(N), B.ang_vel_in(N)
    C.set_ang_vel(N, u[0] * B.x + u[1] * B.y + u[2] * B.z)
    moving = centre.pos_from(origin).dt(N)
    centre.set_vel(N, u[3] * C.x + u[4] * C.y + u[5] * C.z)
    contact = centre.locatenew("P", r * B.z)
    contact.v2pt_theory(centre, N, C)
    kinematics = [(spin - C.ang_vel_in(N)).dot(e) for e in B] + [(moving - centre.vel(N)).dot(e) for e in N]
    B.set_ang_vel(N, lean.subs(sympy.solve(kinematics, qd)))
    C.set_ang_acc(N, C.ang_vel_in(N).dt(B) + B.ang_vel_in(N).cross(C.ang_vel_in(N)))
    body = RigidBody("disc", centre, C, m, (inertia(C, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4), centre))
    kane = KanesMethod(
        N,
        q[:5],
        u[:3],
        kd_eqs=kinematics,
        q_dependent=[q[5]],
        configuration_constraints=[q[5] - centre.pos_from(contact).dot(N.z)],
        u_dependent=u[3:],
        velocity_constraints=[contact.vel(N).dot(e) for e in C],
    )
    kane.kanes_equations([body], [(centre, m * g * A.z)])
    return kane


def cartesian_lagrange() -> Any:
    """A pendulum in Cartesian coordinates, y downwards, with a multiplier."""
    x, y = dynamicsymbols("x y")
    m, g, L = sympy.symbols("m g L")
    N = ReferenceFrame("N")
    origin = Point("O")
    origin.set_vel(N, 0)
    bob = origin.locatenew("P", x * N.x + y * N.y)
    bob.set_vel(N, bob.pos_from(origin).dt(N))
    push = dynamicsymbols("push")
    lagrange = LagrangesMethod(
        Lagrangian(N, Particle("bob", bob, m)),
        [x, y],
        hol_coneqs=[x**2 + y**2 - L**2],
        forcelist=[(bob, m * g * N.y + push * N.x)],
        frame=N,
    )
    lagrange.form_lagranges_equations()
    return lagrange


def pendulum_on_a_moving_pivot() -> Any:
    """A pendulum whose pivot has the specified horizontal position ``pivot``: its acceleration enters the equations."""
    theta, w, pivot = dynamicsymbols("theta w pivot")
    m, g, L = sympy.symbols("m g L")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [theta, N.z])
    A.set_ang_vel(N, w * N.z)
    origin = Point("O")
    origin.set_vel(N, 0)
    P = origin.locatenew("P", pivot * N.x)
    P.set_vel(N, pivot.diff() * N.x)
    bob = P.locatenew("B", -L * A.y)
    bob.v2pt_theory(P, N, A)
    kane = KanesMethod(N, [theta], [w], kd_eqs=[theta.diff() - w])
    kane.kanes_equations([Particle("bob", bob, m)], [(bob, -m * g * N.y)])
    return kane


def pulled_pendulum(length: str, **options: Any) -> KaneModel:
    """A particle that hangs on a rope of prescribed length, in Cartesian coordinates, y downwards."""
    equations = KaneEquations(
        q=["x", "y"],
        u=["vx", "vy"],
        f_0=["der(x)", "der(y)"],
        f_1=["-vx", "-vy"],
        f_c=[f"x^2 + y^2 - ({length})^2"],
        f_v=options.pop("f_v"),
        f_2=["m*(y*der(vx) - x*der(vy))"],
        f_3=["m*g*x"],
        f_a=options.pop("f_a", None),
    )
    return KaneModel("rope", equations, parameters={"m": 2.0, "g": 9.81}, **options)


def bead(**changes: Any) -> KaneEquations:
    """A bead on the parabola y = x^2/2, in letters that tests replace one by one."""
    letters: dict[str, Any] = {
        "q": ["x", "y"],
        "u": ["vx", "vy"],
        "f_0": ["der(x)", "der(y)"],
        "f_1": ["-vx", "-vy"],
        "f_c": ["y - x^2/2"],
        "f_v": ["vy - x*vx"],
        "f_2": ["m*der(vx) + x*m*der(vy)"],
        "f_3": ["x*m*g"],
    }
    return KaneEquations(**(letters | changes))


def leaning() -> tuple[KaneModel, OperatingPoint]:
    """A disk somewhere on its way, no steady motion."""
    model = rolling_disk(mass=2.0, radius=0.5, gravity=9.81)
    values = {"q1": 0.3, "q2": -0.4, "q3": 1.1, "q4": 2.0, "q5": 1.0, "u1": 0.2, "u2": -0.9, "u3": 0.5}
    return model, fl.operating_point(model, values | {"lean_torque": 0.3})
