"""The textbook's models as native descriptions of fmilin: texts of equations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fmilin.models import DaeModel, KaneEquations, KaneModel, LagrangeModel, OdeModel
from tests.textbook.cells import Cell, Coordinate
from tests.textbook.models import MODELS, Textbook

__all__ = ["dae_model", "first_order", "kane_model", "lagrange_model", "ode_model", "start_of"]

Declared = Mapping[str, Any]

QUATERNION_RATES = {
    "e0": "-(e1*wx + e2*wy + e3*wz)/2",
    "e1": "(e0*wx + e2*wz - e3*wy)/2",
    "e2": "(e0*wy + e3*wx - e1*wz)/2",
    "e3": "(e0*wz + e1*wy - e2*wx)/2",
}
EULER_RATES = {
    "wx": "(Mx + (Iy - Iz)*wy*wz)/Ix",
    "wy": "(My + (Iz - Ix)*wz*wx)/Iy",
    "wz": "(Mz + (Ix - Iy)*wx*wy)/Iz",
}
PENDULUM_OUTPUTS = {"angle": "atan2(sin(q), cos(q))", "height": "-l*cos(q)"}
FORCE_OF_THE_GROUND = "max(0, -k*h)"
CART_POLE_ACCELERATION = "(F + m*sin(th)*(l*w^2 - g*cos(th)))/(M + m*sin(th)^2)"
CART_POLE_TURN = "(-F*cos(th) - m*l*w^2*sin(th)*cos(th) + (M + m)*g*sin(th))/(l*(M + m*sin(th)^2))"


def start_of(textbook: Textbook, **dependent: float) -> dict[str, float]:
    """Return the states and inputs of the point, and those of states that depend on them."""
    return {**textbook.states, **textbook.inputs, **dependent}


def first_order(name: str) -> Declared:
    """Return what OdeModel takes: rates, outputs, and what else a model needs."""
    ball = {"equations": {"h": "v", "v": f"(F - m*g + {FORCE_OF_THE_GROUND})/m"}, "outputs": {"height": "h"}}
    pendulum = {"equations": {"q": "w", "w": "(torque - m*g*l*sin(q) - c*w)/(m*l^2)"}, "outputs": PENDULUM_OUTPUTS}
    saturated = {"equations": {"x": "min(max(u, -1), 1)"}, "outputs": {"y": "2*x"}}
    declared: dict[str, Declared] = {
        "rl_circuit": {"equations": {"i": "(v - R*i)/L"}, "outputs": {"current": "i", "coil": "L*der(i)"}},
        "mass_spring_damper": {
            "equations": {"x": "v", "v": "(F - k*x - c*v)/m"},
            "outputs": {"position": "x", "acceleration": "der(v)"},
        },
        "pendulum_hanging": pendulum,
        "pendulum_upright": pendulum,
        "input_with_default": {"equations": {"h": "1 - u*h"}, "outputs": {"discharge": "u*h"}},
        "output_that_is_a_state": {"equations": {"y": "(k*u - y)/T"}, "outputs": {"y": "y"}},
        "zero_parameter": {  # rows of the mass matrix: J w' and L i', of which the second vanishes
            "equations": {"w": "K*i", "i": "U - R*i - K*w"},
            "mass_matrix": [["J", 0], [0, "L"]],
            "outputs": {"speed": "w", "current": "i"},
        },
        "two_tanks": {
            "equations": {"h1": "(q - k*sqrt(h1 - h2))/area", "h2": "(k*sqrt(h1 - h2) - k*sqrt(h2))/area"},
            "outputs": {"outflow": "k*sqrt(h2)"},
        },
        "dc_motor": {
            "equations": {"phi": "w", "w": "(K*i - b*w)/J", "i": "(U - R*i - K*w)/L"},
            "outputs": {"phi": "phi"},
        },
        "cart_pole": {
            "equations": {"x": "v", "th": "w", "v": CART_POLE_ACCELERATION, "w": CART_POLE_TURN},
            "outputs": {"x": "x", "angle": "th"},
        },
        "ball_and_beam": {
            "equations": {
                "r": "rv",
                "a": "av",
                "rv": "(m*r*av^2 - m*g*sin(a))/(7/5*m)",
                "av": "(torque - 2*m*r*rv*av - m*g*r*cos(a))/(J + m*r^2)",
            },
            "outputs": {"r": "r", "a": "a"},
        },
        "ball_at_rest": ball,
        "ball_in_flight": ball,
        "saturated_integrator_inside": saturated,
        "saturated_integrator_outside": saturated,
        "sampled_pi_loop": {"equations": {"x": "-a*x + b*u"}, "inputs": ["u"], "outputs": {"y": "x"}},
        "capacitor_loop": {
            "equations": {
                "i": "(v - R*i - u3)/L",
                "u1": "C2/(C1 + C2)*i/(C3 + C1*C2/(C1 + C2))",
                "u2": "C1/(C1 + C2)*i/(C3 + C1*C2/(C1 + C2))",
                "u3": "i/(C3 + C1*C2/(C1 + C2))",
            },
            "constraints": ["u1 + u2 - u3"],
            "outputs": {"voltage": "u3", "middle": "u2"},
            "dependent": {"u2": MODELS["capacitor_loop"].outputs["middle"]},
        },
        "quaternion_body": {
            "equations": {**QUATERNION_RATES, **EULER_RATES},
            "constraints": ["e0^2 + e1^2 + e2^2 + e3^2 - 1"],
            "outputs": {"rate_x": "wx", "rate_z": "wz"},
            "dependent": {"e0": 1.0},
        },
    }
    return declared[name]


def common(textbook: Textbook, declared: Declared) -> dict[str, Any]:
    """Return the keyword arguments that all native classes share."""
    inputs = declared.get("inputs", list(textbook.inputs))
    states_and_inputs = start_of(textbook, **declared.get("dependent", {}))
    names = {*declared.get("states", declared.get("equations", {})), *inputs}
    start = {name: value for name, value in states_and_inputs.items() if name in names}
    return {"inputs": inputs, "parameters": textbook.parameters, "outputs": declared["outputs"], "start": start}


def ode_model(name: str) -> Cell:
    """Return the model as an OdeModel, with a mass matrix where a parameter of it is zero."""
    declared = first_order(name)
    more = {key: declared[key] for key in ("constraints", "mass_matrix") if key in declared}
    return Cell(OdeModel(name, declared["equations"], **common(MODELS[name], declared), **more))


def dae_model(name: str) -> Cell:
    """Return the model as equations in the order in which a textbook derives them, with algebraic variables."""
    textbook = MODELS[name]
    if name in {"pendulum_hanging", "pendulum_upright"}:
        return _pendulum_in_the_plane(textbook, lagrange=False)
    if name == "cart_pole":
        return _cart_pole_in_the_plane(textbook)
    equations: dict[str, list[str]] = {
        "rl_circuit": ["v = vR + vL", "vR = R*i", "vL = L*der(i)"],
        "mass_spring_damper": ["der(x) = v", "m*der(v) + c*v + k*x = F"],
        "zero_parameter": ["J*der(w) = K*i", "U = R*i + L*der(i) + K*w"],
        "two_tanks": [
            "area*der(h1) = q - q12",
            "area*der(h2) = q12 - q2",
            "q12^2 = k^2*(h1 - h2)",
            "q2 = k*sqrt(h2)",
        ],
        "capacitor_loop": [
            "L*der(i) = v - R*i - u3",
            "C1*der(u1) = i12",
            "C2*der(u2) = i12",
            "C3*der(u3) = i - i12",
            "u1 + u2 = u3",
        ],
        "quaternion_body": [
            "wx = 2*(e0*der(e1) - e1*der(e0) - e2*der(e3) + e3*der(e2))",
            "wy = 2*(e0*der(e2) + e1*der(e3) - e2*der(e0) - e3*der(e1))",
            "wz = 2*(e0*der(e3) - e1*der(e2) + e2*der(e1) - e3*der(e0))",
            "e0^2 + e1^2 + e2^2 + e3^2 = 1",
            "Ix*der(wx) = Mx + (Iy - Iz)*wy*wz",
            "Iy*der(wy) = My + (Iz - Ix)*wz*wx",
            "Iz*der(wz) = Mz + (Ix - Iy)*wx*wy",
        ],
    }
    declared = dict(first_order(name))
    texts = equations.get(name) or [f"der({state}) = {rate}" for state, rate in declared["equations"].items()]
    given = common(textbook, declared)
    start = {"two_tanks": {"q12": 0.6}, "rl_circuit": {"vR": 3.0}}.get(name, {})
    given["start"] = {**given["start"], **start}
    if name == "rl_circuit":
        given["outputs"] = {"current": "i", "coil": "vL"}
    return Cell(DaeModel(name, texts, **given))


def _pendulum_in_the_plane(textbook: Textbook, *, lagrange: bool) -> Cell:
    """Return the pendulum as a point (x, y) on a circle: x = l sin q."""
    scale = textbook.parameters["l"] * math.cos(textbook.states["q"])
    given: dict[str, Any] = {
        "inputs": ["torque"],
        "parameters": textbook.parameters,
        "outputs": {"angle": "atan2(x, -y)", "height": "y"},
        "start": {"x": 0.0, "y": -scale},
    }
    tangential = "(torque - c*(vy*x - vx*y)/l^2)/l^2"
    forces = [f"-{tangential}*y", f"{tangential}*x - m*g"]
    model: Any
    if lagrange:
        mass = [["m", 0], [0, "m"]]
        constraint = ["x^2 + y^2 - l^2"]
        model = LagrangeModel(textbook.name, {"x": "vx", "y": "vy"}, mass, forces, constraints=constraint, **given)
    else:
        equations = [
            "der(x) = vx",
            "der(y) = vy",
            f"m*der(vx) = {forces[0]} - tension*x",
            f"m*der(vy) = {forces[1]} - tension*y",
            "x^2 + y^2 = l^2",
        ]
        model = DaeModel(textbook.name, equations, **given)
    states = {"q": Coordinate("x", {"q": scale}, 0.0), "w": Coordinate("vx", {"w": scale}, 0.0)}
    guess = {"x": scale * math.sin(0.3)}
    return Cell(model, states, guess=guess)


def _cart_pole_in_the_plane(textbook: Textbook) -> Cell:
    """Return cart and bob with the force of the rod between them; the bob is at x + l sin(th)."""
    rod = textbook.parameters["l"]
    equations = [
        "der(x) = v",
        "der(xb) = vb",
        "der(yb) = vyb",
        "M*der(v) = F + rod*(xb - x)",
        "m*der(vb) = -rod*(xb - x)",
        "m*der(vyb) = -m*g - rod*yb",
        "(xb - x)^2 + yb^2 = l^2",
    ]
    model = DaeModel(
        textbook.name,
        equations,
        inputs=["F"],
        parameters=textbook.parameters,
        outputs={"x": "x", "angle": "atan2(xb - x, yb)"},
        start={"yb": rod},
    )
    bob = {"th": Coordinate("xb", {"x": 1.0, "th": rod}, 0.0), "w": Coordinate("vb", {"v": 1.0, "w": rod}, 0.0)}
    return Cell(model, bob)


def lagrange_model(name: str) -> Cell:
    """Return the model as M(q) v' = F(t, q, v, u) - G' lambda."""
    textbook = MODELS[name]
    if name in {"pendulum_hanging", "pendulum_upright"}:
        return _pendulum_in_the_plane(textbook, lagrange=True)
    ball = ({"h": "v"}, [["m"]], [f"F - m*g + {FORCE_OF_THE_GROUND}"])
    declared: dict[str, tuple[dict[str, str], list[list[Any]], list[str]]] = {
        "mass_spring_damper": ({"x": "v"}, [["m"]], ["F - k*x - c*v"]),
        "cart_pole": (
            {"x": "v", "th": "w"},
            [["M + m", "m*l*cos(th)"], ["m*l*cos(th)", "m*l^2"]],
            ["F + m*l*w^2*sin(th)", "m*g*l*sin(th)"],
        ),
        "ball_and_beam": (
            {"r": "rv", "a": "av"},
            [["7/5*m", 0], [0, "J + m*r^2"]],
            ["m*r*av^2 - m*g*sin(a)", "torque - 2*m*r*rv*av - m*g*r*cos(a)"],
        ),
        "ball_at_rest": ball,
        "ball_in_flight": ball,
    }
    coordinates, mass, force = declared[name]
    given = common(textbook, first_order(name))
    return Cell(LagrangeModel(name, coordinates, mass, force, **given))


def kane_model(name: str) -> Cell:
    """Return the model in the general form of Peterson et al."""
    textbook = MODELS[name]
    if name == "quaternion_body":
        return Cell(_kane_body(textbook))
    ball = (["h"], ["v"], ["m*der(v)"], [f"m*g - F - {FORCE_OF_THE_GROUND}"])
    pendulum = (["q"], ["w"], ["m*l^2*der(w)"], ["m*g*l*sin(q) + c*w - torque"])
    declared: dict[str, tuple[list[str], list[str], list[str], list[str]]] = {
        "mass_spring_damper": (["x"], ["v"], ["m*der(v)"], ["k*x + c*v - F"]),
        "pendulum_hanging": pendulum,
        "pendulum_upright": pendulum,
        "cart_pole": (
            ["x", "th"],
            ["v", "w"],
            ["(M + m)*der(v) + m*l*cos(th)*der(w)", "m*l*cos(th)*der(v) + m*l^2*der(w)"],
            ["-m*l*w^2*sin(th) - F", "-m*g*l*sin(th)"],
        ),
        "ball_and_beam": (
            ["r", "a"],
            ["rv", "av"],
            ["7/5*m*der(rv)", "(J + m*r^2)*der(av)"],
            ["m*g*sin(a) - m*r*av^2", "2*m*r*rv*av + m*g*r*cos(a) - torque"],
        ),
        "ball_at_rest": ball,
        "ball_in_flight": ball,
    }
    q, u, inertia, force = declared[name]
    rates = [f"der({coordinate})" for coordinate in q]
    equations = KaneEquations(q=q, u=u, f_0=rates, f_1=[f"-{speed}" for speed in u], f_2=inertia, f_3=force)
    return Cell(KaneModel(name, equations, **common(textbook, first_order(name))))


def _kane_body(textbook: Textbook) -> KaneModel:
    """Return Euler's equations with the unit length of the quaternion as a configuration constraint."""
    equations = KaneEquations(
        q=list(QUATERNION_RATES),
        u=list(EULER_RATES),
        f_0=[f"der({e})" for e in QUATERNION_RATES],
        f_1=[f"-({rate})" for rate in QUATERNION_RATES.values()],
        f_2=["Ix*der(wx)", "Iy*der(wy)", "Iz*der(wz)"],
        f_3=["-Mx - (Iy - Iz)*wy*wz", "-My - (Iz - Ix)*wz*wx", "-Mz - (Ix - Iy)*wx*wy"],
        f_c=["e0^2 + e1^2 + e2^2 + e3^2 - 1"],
    )
    return KaneModel(textbook.name, equations, **common(textbook, first_order(textbook.name)))
