"""Both linkages as equations: by hand for the FMU, by sympy.physics.mechanics, Lagrange's and Kane's.

The joints are those of four_bar.urdf and spatial.urdf, so that states have the same meaning everywhere.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Lagrangian,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

from fmilin import Model
from fmilin.models import KaneModel
from fmilin.systems import four_bar

G = sympy.Float("9.81")

# body: joint, the body that it turns on, where on that, its axis; mass, centre, inertia (xx yy zz xy xz yz)
SPATIAL = {
    "crank": ("a", "ground", (0, 0, 0), (0, 1, 0), 1.0, (0, 0, -0.2), (0.0143, 0.0143, 0.001, 0, 0, 0)),
    "cross1": ("b", "crank", (0, 0, -0.4), (0, 0, 1), 0.05, (0, 0, 0), (1e-4, 1e-4, 1e-4, 0, 0, 0)),
    "rod1": ("c", "cross1", (0, 0, 0), (0, 1, 0), 0.8, (0.4, 0.25, -0.1),
             (0.0201, 0.0461, 0.0601, -0.0267, 0.0107, 0.0067)),
    "rocker1": ("d", "ground", (0.8, 0.5, 0), (0.6, 0.8, 0), 1.2, (0, 0, -0.3), (0.0372, 0.0372, 0.0012, 0, 0, 0)),
    "cross2": ("e", "rocker1", (0.1, 0, -0.3), (0, 0, 1), 0.05, (0, 0, 0), (1e-4, 1e-4, 1e-4, 0, 0, 0)),
    "rod2": ("f", "cross2", (0, 0, 0), (0, 1, 0), 0.9, (0.3, -0.35, 0), (0.0376, 0.0279, 0.0646, 0.0315, 0, 0)),
    "rocker2": ("g", "ground", (1.5, -0.2, 0.2), (0.8, 0, 0.6), 1.1, (0, 0, -0.25),
                (0.024, 0.024, 0.0011, 0, 0, 0)),
}  # fmt: skip
BALLS = {"ball1": ("rod1", (0.8, 0.5, -0.2), "rocker1", (0, 0, -0.6)),
         "ball2": ("rod2", (0.6, -0.7, 0), "rocker2", (0, 0, -0.5))}  # fmt: skip


def four_bar_of_points() -> Model:
    """Return the four-bar linkage in Cartesian coordinates of its pins, hanging, without its springs."""
    return four_bar(branch="hanging").with_parameters({"k": 0.0})


def four_bar_by_lagrange() -> KaneModel:
    """Return the four-bar linkage from sympy's LagrangesMethod, in three angles and with two constraints."""
    phi, elbow, rock = dynamicsymbols("phi elbow rock")
    N = ReferenceFrame("N")
    ground = Point("O")
    ground.set_vel(N, 0)
    bodies: list[Any] = []
    ends: dict[str, Any] = {}
    for name, start, angle in (("crank", None, phi), ("coupler", "crank", phi + elbow), ("rocker", "ground", rock)):
        frame = N.orientnew(name, "Axis", [angle, -N.y])
        pin = ground if start is None else ground.locatenew("C", N.x) if start == "ground" else ends[start]
        if start == "ground":
            pin.set_vel(N, 0)
        center, ends[name] = pin.locatenew(f"{name}_m", frame.x / 2), pin.locatenew(f"{name}_e", frame.x)
        for point in (center, ends[name]):
            point.v2pt_theory(pin, N, frame)
        body = RigidBody(
            name, center, frame, 1, (inertia(frame, 0.001, sympy.Rational(1, 12), sympy.Rational(1, 12)), center)
        )
        body.potential_energy = G * center.pos_from(ground).dot(N.z)
        bodies.append(body)
    gap = ends["coupler"].pos_from(ends["rocker"])
    closed = [sympy.simplify(gap.dot(axis)) for axis in (N.x, N.z)]
    q = [phi, elbow, rock]
    method = LagrangesMethod(Lagrangian(N, *bodies), q, frame=N, hol_coneqs=closed)
    method.form_lagranges_equations()
    down = sympy.pi / 2
    return KaneModel.from_sympy(method, name="four_bar", start={phi: -down, elbow: down, rock: -down})


def spatial_by_kane() -> KaneModel:
    """Return the spatial linkage from sympy's KanesMethod, in seven angles and with six constraints."""
    N = ReferenceFrame("N")
    ground = Point("O")
    ground.set_vel(N, 0)
    frames: dict[str, Any] = {"ground": N}
    points: dict[str, Any] = {"ground": ground}
    bodies: list[Any] = []
    q: list[Any] = []
    u: list[Any] = []
    kinematics: list[Any] = []
    for name, (joint, parent, where, axis, mass, center, moments) in SPATIAL.items():
        angle, speed = dynamicsymbols(f"{joint} {joint}_v")
        frame = frames[name] = frames[parent].orientnew(name, "Axis", [angle, _vector(frames[parent], axis)])
        frame.set_ang_vel(frames[parent], speed * _vector(frames[parent], axis).normalize())
        pin = points[name] = points[parent].locatenew(f"{name}_p", _vector(frames[parent], where))
        pin.v2pt_theory(points[parent], N, frames[parent])
        middle = pin.locatenew(f"{name}_m", _vector(frame, center))
        middle.v2pt_theory(pin, N, frame)
        xx, yy, zz, xy, xz, yz = moments
        bodies.append(RigidBody(name, middle, frame, mass, (inertia(frame, xx, yy, zz, xy, yz, xz), middle)))
        q, u, kinematics = [*q, angle], [*u, speed], [*kinematics, speed - angle.diff()]
    closed, rates = [], []
    for first, at, second, there in BALLS.values():
        ends = [points[b].locatenew(f"{b}_e", _vector(frames[b], p)) for b, p in ((first, at), (second, there))]
        for end, body in zip(ends, (first, second), strict=True):
            end.v2pt_theory(points[body], N, frames[body])
        closed += [ends[0].pos_from(ends[1]).dot(axis) for axis in (N.x, N.y, N.z)]
        rates += [(ends[0].vel(N) - ends[1].vel(N)).dot(axis) for axis in (N.x, N.y, N.z)]
    method = KanesMethod(N, q[:1], u[:1], kinematics, q_dependent=q[1:], configuration_constraints=closed,
                         u_dependent=u[1:], velocity_constraints=rates)  # fmt: skip
    method.kanes_equations(bodies, [(body.masscenter, -G * body.mass * N.z) for body in bodies])
    return KaneModel.from_sympy(method, name="spatial")


def _vector(frame: ReferenceFrame, components: tuple[float, ...]) -> Any:
    return sum((c * axis for c, axis in zip(components, (frame.x, frame.y, frame.z), strict=True)), start=0 * frame.x)
