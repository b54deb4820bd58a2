"""The double pendulum twice: in Cartesian coordinates with multipliers, and in two angles."""

from __future__ import annotations

from math import cos, sin

from fmilin.models import KaneEquations, KaneModel

__all__ = ["CANONICAL", "in_angles", "in_cartesian_coordinates"]

VALUES = {"l1": 1.0, "l2": 0.8, "m1": 1.0, "m2": 1.5, "g": 9.81}

CANONICAL = ("t1", "t2", "p1", "p2")
"""Angles and their momenta, outputs of both: the flow keeps volumes in them."""


def in_cartesian_coordinates(t1: float = 2.0, t2: float = 1.2) -> KaneModel:
    """8 states, 4 of them independent; y upwards, released at rest at two angles."""
    l1, l2 = VALUES["l1"], VALUES["l2"]
    x1, y1 = l1 * sin(t1), -l1 * cos(t1)
    equations = KaneEquations(
        q=["x1", "y1", "x2", "y2"],
        u=["vx1", "vy1", "vx2", "vy2"],
        f_0=["der(x1)", "der(y1)", "der(x2)", "der(y2)"],
        f_1=["-vx1", "-vy1", "-vx2", "-vy2"],
        f_c=["(x1^2 + y1^2 - l1^2)/2", "((x2 - x1)^2 + (y2 - y1)^2 - l2^2)/2"],
        f_v=["x1*vx1 + y1*vy1", "(x2 - x1)*(vx2 - vx1) + (y2 - y1)*(vy2 - vy1)"],
        f_2=["m1*der(vx1)", "m1*der(vy1)", "m2*der(vx2)", "m2*der(vy2)"],
        f_3=["0", "m1*g", "0", "m2*g"],
        f_4=["x1*a - (x2 - x1)*b", "y1*a - (y2 - y1)*b", "(x2 - x1)*b", "(y2 - y1)*b"],
        multipliers=["a", "b"],
    )
    return KaneModel(
        "double_pendulum_xy",
        equations,
        parameters=VALUES,
        outputs={
            "t1": "atan2(x1, -y1)",
            "t2": "atan2(x2 - x1, y1 - y2)",
            "p1": "x1*(m1*vy1 + m2*vy2) - y1*(m1*vx1 + m2*vx2)",
            "p2": "m2*((x2 - x1)*vy2 - (y2 - y1)*vx2)",
        },
        start={"x1": x1, "y1": y1, "x2": x1 + l2 * sin(t2), "y2": y1 - l2 * cos(t2)},
    )


def in_angles(t1: float = 2.0, t2: float = 1.2, damping: float = 0.0) -> KaneModel:
    """4 states; ``damping`` acts between each rod and the ground, in N m s."""
    coupling = "m2*l1*l2*cos(t1 - t2)"
    turning = "m2*l1*l2*sin(t1 - t2)"
    equations = KaneEquations(
        q=["t1", "t2"],
        u=["w1", "w2"],
        f_0=["der(t1)", "der(t2)"],
        f_1=["-w1", "-w2"],
        f_2=[f"(m1 + m2)*l1^2*der(w1) + {coupling}*der(w2)", f"{coupling}*der(w1) + m2*l2^2*der(w2)"],
        f_3=[f"{turning}*w2^2 + (m1 + m2)*g*l1*sin(t1) + c*w1", f"-{turning}*w1^2 + m2*g*l2*sin(t2) + c*w2"],
    )
    return KaneModel(
        "double_pendulum",
        equations,
        parameters=VALUES | {"c": damping},
        outputs={
            "t1": "t1",
            "t2": "t2",
            "p1": f"(m1 + m2)*l1^2*w1 + {coupling}*w2",
            "p2": f"{coupling}*w1 + m2*l2^2*w2",
        },
        start={"t1": t1, "t2": t2},
    )
