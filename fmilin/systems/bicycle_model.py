"""The Whipple bicycle: nonlinear, by Kane's method, with pitch as a dependent coordinate."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import pi
from types import MappingProxyType
from typing import Any

import sympy
from sympy.physics.mechanics import KanesMethod, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from fmilin.errors import UnknownNameError
from fmilin.models.kane import KaneModel
from fmilin.models.labels import Labels

BENCHMARK: Mapping[str, float] = MappingProxyType(
    {
        "w": 1.02, "c": 0.08, "tilt": pi / 10, "g": 9.81,
        "r_R": 0.3, "m_R": 2.0, "I_Rxx": 0.0603, "I_Ryy": 0.12,
        "x_B": 0.3, "z_B": -0.9, "m_B": 85.0, "I_Bxx": 9.2, "I_Byy": 11.0, "I_Bzz": 2.8, "I_Bxz": 2.4,
        "x_H": 0.9, "z_H": -0.7, "m_H": 4.0, "I_Hxx": 0.05892, "I_Hyy": 0.06, "I_Hzz": 0.00708, "I_Hxz": -0.00756,
        "r_F": 0.35, "m_F": 3.0, "I_Fxx": 0.1405, "I_Fyy": 0.28,
    }
)  # fmt: skip
"""Table 1 of Meijaard et al. (2007), in kg, m and rad: wheelbase w, trail c, tilt of the steer axis; rear wheel R,
rear frame with rider B, handlebar and fork H, front wheel F; positions from the rear contact, x forwards, z down."""


def bicycle(speed: float = 4.6, *, parameters: Mapping[str, float] | None = None) -> KaneModel:
    """Return the Whipple bicycle, upright and rolling straight ahead: 14 states, 10 of them independent.

    Four rigid bodies with knife-edge wheels that touch the ground and do not slip (Meijaard et al. 2007);
    :data:`BENCHMARK` has its parameters. Axes: x forwards, y to the right, z down. The coordinates are the rear
    contact ``x``, ``y``, the successive rotations ``yaw``, ``lean`` and ``pitch`` of the rear frame, ``steer`` and
    the rotations ``rear_wheel`` and ``front_wheel``; the speeds are their rates, ``x`` and ``y`` apart. The front
    contact makes ``pitch``, ``yaw_rate``, ``pitch_rate`` and ``front_rate`` dependent. ``lean_torque`` acts on the
    frame about the heading, ``rear_torque`` between frame and rear wheel; ``speed`` = -r_R rear_rate.

    Of the ten eigenvalues six are zero; the others are the weave pair, capsize and castering. The benchmark is
    stable between 4.292382 (weave) and 6.024262 m/s (capsize). The equations are derived when they are first
    needed, which takes a few seconds.
    """
    changed = {name: float(value) for name, value in (parameters or {}).items()}
    for name in changed:
        if name not in BENCHMARK:
            raise UnknownNameError.among(name, BENCHMARK, "a parameter of the bicycle")
    values = {**BENCHMARK, **changed}
    start = {"rear_rate": -speed / values["r_R"], "front_rate": -speed / values["r_F"]}
    return _benchmark_model().with_parameters(changed).with_start(start)


@cache
def _benchmark_model() -> KaneModel:
    return KaneModel.from_sympy(
        whipple_equations(),
        name="bicycle",
        inputs=["lean_torque", "steer_torque", "rear_torque"],
        parameters=BENCHMARK,
        outputs={"lean": "lean", "steer": "steer", "speed": "-r_R*rear_rate"},
        labels=_labels(),
    )


@dataclass(frozen=True)
class BicycleFrames:
    """Frames and points: N ground, Y yawed, L leaned, B rear frame, H fork; R and F wheels."""

    q: Mapping[str, Any]
    u: Mapping[str, Any]
    p: Mapping[str, Any]
    frames: Mapping[str, Any]
    steer_axis: Any
    points: Mapping[str, Any]
    to_contact: Any  # from the centre of the front wheel to its lowest point


@cache
def whipple_equations() -> KanesMethod:
    """Return the equations as a ``KanesMethod`` object of sympy, Kane's equations formed."""
    b = describe_frames()
    q, u, p, N, Y = b.q, b.u, b.p, b.frames["N"], b.frames["Y"]
    front, rear = b.points["F"], b.points["R"]
    height = (front.pos_from(rear) + b.to_contact).dot(Y.z) - p["r_R"] * sympy.cos(q["lean"])
    slip = front.vel(N) + b.frames["F"].ang_vel_in(N).cross(b.to_contact)
    rolling = rear.vel(N) + b.frames["L"].ang_vel_in(N).cross(p["r_R"] * b.frames["L"].z)  # of the rear contact
    t = dynamicsymbols._t
    kane = KanesMethod(
        N,
        q_ind=[q[s] for s in ("x", "y", "yaw", "lean", "steer", "rear_wheel", "front_wheel")],
        q_dependent=[q["pitch"]],
        u_ind=[u[s] for s in ("lean", "steer", "rear_wheel")],
        u_dependent=[u[s] for s in ("yaw", "pitch", "front_wheel")],
        configuration_constraints=[height],
        velocity_constraints=[slip.dot(axis) for axis in (Y.x, Y.y, Y.z)],
        kd_eqs=[
            q["x"].diff(t) - rolling.dot(N.x),
            q["y"].diff(t) - rolling.dot(N.y),
            *(q[s].diff(t) - u[s] for s in u),
        ],
        constraint_solver="CRAMER",
    )
    kane.kanes_equations(_bodies(b), _loads(b))
    return kane


def describe_frames() -> BicycleFrames:
    """Return frames, coordinates, speeds, parameters and points of the bicycle."""
    names = ("yaw", "lean", "pitch", "steer", "rear_wheel", "front_wheel")
    q = {s: dynamicsymbols(s) for s in ("x", "y", *names)}
    u = {s: dynamicsymbols(f"{s.removesuffix('_wheel')}_rate") for s in names}
    p = {s: sympy.Symbol(s, real=True) for s in BENCHMARK}
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q["yaw"], N.z])
    L = Y.orientnew("L", "Axis", [q["lean"], Y.x])
    B = L.orientnew("B", "Axis", [q["pitch"], L.y])
    S = B.orientnew("S", "Axis", [p["tilt"], B.y])
    steered = S.orientnew("T", "Axis", [q["steer"], S.z])
    H = steered.orientnew("H", "Axis", [-p["tilt"], steered.y])
    R, F = ReferenceFrame("R"), ReferenceFrame("F")
    for frame, base, velocity in (
        (Y, N, u["yaw"] * N.z), (L, Y, u["lean"] * Y.x), (B, L, u["pitch"] * L.y),
        (S, B, 0 * B.z), (steered, S, u["steer"] * S.z), (H, steered, 0 * S.z),
        (R, B, u["rear_wheel"] * B.y), (F, H, u["front_wheel"] * H.y),
    ):  # fmt: skip
        frame.set_ang_vel(base, velocity)
    origin = Point("O")
    origin.set_vel(N, 0)
    rear = origin.locatenew("R_o", q["x"] * N.x + q["y"] * N.y - p["r_R"] * L.z)
    rear.set_vel(N, R.ang_vel_in(N).cross(-p["r_R"] * L.z))  # rolling: the wheel's lowest point is at rest
    frame = rear.locatenew("B_o", p["x_B"] * B.x + (p["z_B"] + p["r_R"]) * B.z)
    axis = rear.locatenew("G", (p["w"] + p["c"]) * B.x + p["r_R"] * B.z)  # where the steer axis meets the ground
    fork = axis.locatenew("H_o", (p["x_H"] - p["w"] - p["c"]) * H.x + p["z_H"] * H.z)
    front = axis.locatenew("F_o", -p["c"] * H.x - p["r_F"] * H.z)
    for point, base, body in ((frame, rear, B), (axis, rear, B), (fork, axis, H), (front, axis, H)):
        point.v2pt_theory(base, N, body)
    tilt = H.y.dot(Y.z)
    down = (Y.z - tilt * H.y) * (p["r_F"] / sympy.sqrt(1 - tilt**2))
    frames = {"N": N, "Y": Y, "L": L, "B": B, "H": H, "R": R, "F": F}
    return BicycleFrames(q, u, p, frames, S.z, {"R": rear, "B": frame, "H": fork, "F": front}, down)


def _bodies(b: BicycleFrames) -> list[Any]:
    """Return the four bodies; wheels are symmetric, so that their inertia is written in the frames that carry them."""
    p, f, points = b.p, b.frames, b.points
    inertias = {
        "R": inertia(f["B"], p["I_Rxx"], p["I_Ryy"], p["I_Rxx"]),
        "B": inertia(f["B"], p["I_Bxx"], p["I_Byy"], p["I_Bzz"], 0, 0, p["I_Bxz"]),
        "H": inertia(f["H"], p["I_Hxx"], p["I_Hyy"], p["I_Hzz"], 0, 0, p["I_Hxz"]),
        "F": inertia(f["H"], p["I_Fxx"], p["I_Fyy"], p["I_Fxx"]),
    }
    return [RigidBody(k, points[k], f[k], p[f"m_{k}"], (inertias[k], points[k])) for k in ("R", "B", "H", "F")]


def _loads(b: BicycleFrames) -> list[Any]:
    lean, steer, drive = dynamicsymbols("lean_torque steer_torque rear_torque")
    f = b.frames
    weights = [(b.points[k], b.p[f"m_{k}"] * b.p["g"] * f["N"].z) for k in ("R", "B", "H", "F")]
    return [
        *weights,
        (f["B"], lean * f["Y"].x - steer * b.steer_axis - drive * f["B"].y),
        (f["H"], steer * b.steer_axis),
        (f["R"], drive * f["B"].y),
    ]


def _labels() -> Labels:
    angles = ("yaw", "lean", "pitch", "steer", "rear_wheel", "front_wheel", "tilt")
    rates = ("yaw_rate", "lean_rate", "pitch_rate", "steer_rate", "rear_rate", "front_rate")
    lengths = ("x", "y", "w", "c", "r_R", "r_F", "x_B", "z_B", "x_H", "z_H")
    units = dict.fromkeys(angles, "rad") | dict.fromkeys(rates, "rad/s") | dict.fromkeys(lengths, "m")
    units |= {s: "kg" for s in BENCHMARK if s.startswith("m_")}
    units |= {s: "kg.m2" for s in BENCHMARK if s.startswith("I_")}
    units |= dict.fromkeys(("lean_torque", "steer_torque", "rear_torque"), "N.m") | {"g": "m/s2", "speed": "m/s"}
    return Labels(
        units=units,
        descriptions={
            "x": "rear contact, forwards",
            "y": "rear contact, to the right",
            "lean": "of the rear frame to the right",
            "steer": "of the fork to the right",
            "rear_rate": "of the rear wheel against the frame, negative when rolling forwards",
            "front_rate": "of the front wheel against the fork, negative when rolling forwards",
            "w": "wheelbase",
            "c": "trail",
            "tilt": "of the steer axis against the vertical",
        },
        description="Whipple bicycle with the benchmark parameters of Meijaard et al. (2007)",
    )
