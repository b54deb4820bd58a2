"""Models of published trims, as their sources describe them, with the numbers that these print.

Tables of the F-16 are those of Stevens and Lewis, rows at small sideslip only: |beta| < 5 degrees.
"""

from __future__ import annotations

from math import asin, atan2, cos, degrees, floor, pi, sin, sqrt, tan
from typing import Any

import numpy as np

from fmilin.models.function import FunctionModel
from fmilin.models.mechanism import Body, Joint, JointForce, Mechanism, MechanismDescription, Placement
from fmilin.models.ode import OdeModel
from fmilin.signals import FloatArray, Signal, Signals

__all__ = ["beer_disk", "f16", "hibbeler_link", "klatt_engell", "puma", "quadruple_tank", "rcam", "transport"]


# -- Stevens and Lewis, Aircraft Control and Simulation --------------------------------------------------------------


def transport() -> OdeModel:
    """Return the medium transport of example 3.6-1: feet, slugs, pounds, degrees of elevator."""
    density = "0.002377*(1 - 0.703e-5*h)^4.14"
    S, cbar, mass, inertia, g = 2170.0, 17.5, 5e3, 4.1e6, 32.17
    alpha = f"(alpha*{180 / pi})"
    qS = f"(0.5*{density}*V^2*{S})"
    CL, thrust = f"(0.2 + 0.085*{alpha})", "((60000 - 38*V)*thtl)"
    CD = f"(0.016 + 0.042*{CL}^2)"
    CM = f"(0.05 - 0.022*{alpha} - 0.016*elev + {CL}*(xcg - 0.25))"
    pitching = f"(0.5*{cbar}*(-16*q - 6*({{}}))/V)"
    turning = f"((-{thrust}*sin(alpha) - {qS}*{CL} + {mass}*(V*q + {g}*cos(theta - alpha)))/({mass}*V))"
    return OdeModel(
        "transport",
        {
            "V": f"({thrust}*cos(alpha) - {qS}*{CD})/{mass} - {g}*sin(theta - alpha)",
            "alpha": turning,
            "theta": "q",
            "q": f"({qS}*{cbar}*({CM} + {pitching.format(turning)}) + 2*{thrust})/{inertia}",
            "h": "V*sin(theta - alpha)",
        },
        inputs=["thtl", "elev"],
        parameters={"xcg": 0.25},
        outputs={"gamma": "theta - alpha", "alpha_deg": alpha, "lift": CL},
        start={"V": 500.0, "alpha": 0.05, "theta": 0.05},
    )


_IDLE = np.array([[1060.0, 670, 880, 1140, 1500, 1860], [635, 425, 690, 1010, 1330, 1700], [60, 25, 345, 755, 1130, 1525], [-1020, -710, -300, 350, 910, 1360], [-2700, -1900, -1300, -247, 600, 1100], [-3600, -1400, -595, -342, -200, 700]])  # fmt: skip  # noqa: E501
_MIL = np.array([[12680.0, 9150, 6200, 3950, 2450, 1400], [12680, 9150, 6313, 4040, 2470, 1400], [12610, 9312, 6610, 4290, 2600, 1560], [12640, 9839, 7090, 4660, 2840, 1660], [12390, 10176, 7750, 5320, 3250, 1930], [11680, 9848, 8050, 6100, 3800, 2310]])  # fmt: skip  # noqa: E501
_MAX = np.array([[20000.0, 15000, 10800, 7000, 4000, 2500], [21420, 15700, 11225, 7323, 4435, 2600], [22700, 16860, 12250, 8154, 5000, 2835], [24240, 18910, 13760, 9285, 5700, 3215], [26070, 21075, 15975, 11115, 6860, 3950], [28886, 23319, 18300, 13484, 8642, 5057]])  # fmt: skip  # noqa: E501
_DAMPING = np.array([
    [-0.267, -0.110, 0.308, 1.34, 2.08, 2.91, 2.76, 2.05, 1.50, 1.49, 1.83, 1.21],
    [0.882, 0.852, 0.876, 0.958, 0.962, 0.974, 0.819, 0.483, 0.590, 1.21, -0.493, -1.04],
    [-0.108, -0.108, -0.188, 0.110, 0.258, 0.226, 0.344, 0.362, 0.611, 0.529, 0.298, -2.27],
    [-8.80, -25.8, -28.9, -31.4, -31.2, -30.7, -27.7, -28.2, -29.0, -29.8, -38.3, -35.3],
    [-0.126, -0.026, 0.063, 0.113, 0.208, 0.230, 0.319, 0.437, 0.680, 0.100, 0.447, -0.330],
    [-0.360, -0.359, -0.443, -0.420, -0.383, -0.375, -0.329, -0.294, -0.230, -0.210, -0.120, -0.100],
    [-7.21, -0.540, -5.23, -5.26, -6.11, -6.64, -5.69, -6.00, -6.20, -6.40, -6.60, -6.00],
    [-0.380, -0.363, -0.378, -0.386, -0.370, -0.453, -0.550, -0.582, -0.595, -0.637, -1.02, -0.840],
    [0.061, 0.052, 0.052, -0.012, -0.013, -0.024, 0.050, 0.150, 0.130, 0.158, 0.240, 0.150],
])  # fmt: skip
_CX = np.array([
    [-0.099, -0.081, -0.081, -0.063, -0.025, 0.044, 0.097, 0.113, 0.145, 0.167, 0.174, 0.166],
    [-0.048, -0.038, -0.040, -0.021, 0.016, 0.083, 0.127, 0.137, 0.162, 0.177, 0.179, 0.167],
    [-0.022, -0.020, -0.021, -0.004, 0.032, 0.094, 0.128, 0.130, 0.154, 0.161, 0.155, 0.138],
    [-0.040, -0.038, -0.039, -0.025, 0.006, 0.062, 0.087, 0.085, 0.100, 0.110, 0.104, 0.091],
    [-0.083, -0.073, -0.076, -0.072, -0.046, 0.012, 0.024, 0.025, 0.043, 0.053, 0.047, 0.040],
])  # fmt: skip
_CZ = np.array([0.770, 0.241, -0.100, -0.416, -0.731, -1.053, -1.366, -1.646, -1.917, -2.120, -2.248, -2.229])
_CM = np.array([
    [0.205, 0.168, 0.186, 0.196, 0.213, 0.251, 0.245, 0.238, 0.252, 0.231, 0.198, 0.192],
    [0.081, 0.077, 0.107, 0.110, 0.110, 0.141, 0.127, 0.119, 0.133, 0.108, 0.081, 0.093],
    [-0.046, -0.020, -0.009, -0.005, -0.006, 0.010, 0.006, -0.001, 0.014, 0.000, -0.013, 0.032],
    [-0.174, -0.145, -0.121, -0.127, -0.129, -0.102, -0.097, -0.113, -0.087, -0.084, -0.069, -0.006],
    [-0.259, -0.202, -0.184, -0.193, -0.199, -0.150, -0.160, -0.167, -0.104, -0.076, -0.041, -0.005],
])  # fmt: skip
# at 5 degrees of sideslip: rolling and yawing moment, which vanish at none
_CL = np.array([-0.001, -0.004, -0.008, -0.012, -0.016, -0.019, -0.020, -0.020, -0.015, -0.008, -0.013, -0.015])
_CN = np.array([0.018, 0.019, 0.018, 0.019, 0.019, 0.018, 0.013, 0.007, 0.004, -0.014, -0.017, -0.033])
# at no sideslip, and at 10 degrees: moments of aileron and rudder
_DLDA = np.array([
    [-0.040, -0.052, -0.051, -0.052, -0.048, -0.048, -0.042, -0.037, -0.031, -0.026, -0.017, -0.012],
    [-0.043, -0.049, -0.048, -0.049, -0.043, -0.042, -0.042, -0.036, -0.025, -0.021, -0.016, -0.011],
])  # fmt: skip
_DLDR = np.array([
    [0.018, 0.015, 0.015, 0.014, 0.014, 0.014, 0.014, 0.015, 0.013, 0.011, 0.006, 0.001],
    [0.015, 0.014, 0.013, 0.013, 0.012, 0.011, 0.011, 0.010, 0.008, 0.008, 0.007, 0.003],
])  # fmt: skip
_DNDA = np.array([
    [-0.011, -0.011, -0.010, -0.009, -0.008, -0.006, 0.000, 0.004, 0.007, 0.010, 0.004, 0.010],
    [-0.015, -0.015, -0.014, -0.012, -0.011, -0.008, -0.002, 0.002, 0.006, 0.012, 0.011, 0.011],
])  # fmt: skip
_DNDR = np.array([
    [-0.048, -0.045, -0.045, -0.045, -0.044, -0.045, -0.047, -0.048, -0.049, -0.045, -0.033, -0.016],
    [-0.043, -0.044, -0.041, -0.041, -0.040, -0.038, -0.034, -0.035, -0.035, -0.029, -0.022, -0.009],
])  # fmt: skip

_F16 = ("VT", "alpha", "beta", "phi", "theta", "psi", "p", "q", "r", "pn", "pe", "h", "power")


def _part(table: FloatArray, position: float, first: int) -> FloatArray:
    """Return a table between its rows, which stand at first, first + 1, ...; straight on outside."""
    k = min(max(floor(position) - first, 0), len(table) - 2)
    part: FloatArray = table[k] + (position - first - k) * (table[k + 1] - table[k])
    return part


def _thrust(power: float, h: float, mach: float) -> float:
    def of(table: FloatArray) -> float:
        return float(_part(_part(table, 5 * mach, 0), max(h, 0.0) / 1e4, 0))

    military = of(_MIL)
    if power < 50:
        idle = of(_IDLE)
        return idle + (military - idle) * power * 0.02
    return military + (of(_MAX) - military) * (power - 50) * 0.02


def _air(V: float, h: float) -> tuple[float, float]:
    """Return Mach number and dynamic pressure."""
    factor = 1 - 0.703e-5 * h
    temperature = 390.0 if h >= 35000 else 519.0 * factor
    return V / sqrt(1.4 * 1716.3 * temperature), 0.5 * 2.377e-3 * factor**4.14 * V * V


def _f16_coefficients(x: Any, u: Any, xcg: float) -> FloatArray:
    """Return CX, CY, CZ, Cl, Cm, Cn."""
    V, alpha, beta, p, q, r = x[0], degrees(x[1]), degrees(x[2]), x[6], x[7], x[8]
    _, elevator, aileron, rudder = u
    at = 0.2 * alpha
    D = np.array([float(_part(row, at, -2)) for row in _DAMPING])
    DA, DR, b = aileron / 20, rudder / 30, 0.1 * beta
    by_elevator = [float(_part(_part(table, elevator / 12, -2), at, -2)) for table in (_CX, _CM)]
    slopes = [float(_part(row[0] + b * (row[1] - row[0]), at, -2)) for row in (_DLDA, _DLDR, _DNDA, _DNDR)]
    across, along = 30 * 0.5 / V, 11.32 * q * 0.5 / V
    CX = by_elevator[0] + along * D[0]
    CY = -0.02 * beta + 0.021 * DA + 0.086 * DR + across * (D[1] * r + D[2] * p)
    CZ = float(_part(_CZ, at, -2)) * (1 - (beta / 57.3) ** 2) - 0.19 * elevator / 25 + along * D[3]
    Cl = float(_part(_CL, at, -2)) * beta / 5 + slopes[0] * DA + slopes[1] * DR + across * (D[4] * r + D[5] * p)
    Cm = by_elevator[1] + along * D[6] + CZ * (0.35 - xcg)
    Cn = float(_part(_CN, at, -2)) * beta / 5 + slopes[2] * DA + slopes[3] * DR
    Cn += across * (D[7] * r + D[8] * p) - CY * (0.35 - xcg) * 11.32 / 30
    return np.array([CX, CY, CZ, Cl, Cm, Cn])


def _f16_rates(x: Any, u: Any, xcg: float) -> FloatArray:
    V, alpha, beta, phi, theta, psi, p, q, r, _, _, h, power = x
    mach, pressure = _air(V, h)
    C, S, m, g = _f16_coefficients(x, u, xcg), 300.0, 20500 / 32.17, 32.17
    U, v, w = V * cos(alpha) * cos(beta), V * sin(beta), V * sin(alpha) * cos(beta)
    du = r * v - q * w - g * sin(theta) + (pressure * S * C[0] + _thrust(power, h, mach)) / m
    dv = p * w - r * U + g * cos(theta) * sin(phi) + pressure * S * C[1] / m
    dw = q * U - p * v + g * cos(theta) * cos(phi) + pressure * S * C[2] / m
    dV = (U * du + v * dv + w * dw) / V
    I = np.array([[9496.0, 0, -982.0], [0, 55814.0, 0], [-982.0, 0, 63100.0]])  # noqa: E741 - as in the book
    rates = np.array([p, q, r])
    spin = I @ rates + np.array([160.0, 0.0, 0.0])
    moments = pressure * S * np.array([30 * C[3], 11.32 * C[4], 30 * C[5]])
    turning = np.linalg.solve(I, moments - np.cross(rates, spin))
    along = q * sin(phi) + r * cos(phi)
    command = 64.94 * u[0] if u[0] <= 0.77 else 217.38 * u[0] - 117.38
    north = U * cos(theta) * cos(psi) + v * (sin(phi) * sin(theta) * cos(psi) - cos(phi) * sin(psi))
    north += w * (cos(phi) * sin(theta) * cos(psi) + sin(phi) * sin(psi))
    east = U * cos(theta) * sin(psi) + v * (sin(phi) * sin(theta) * sin(psi) + cos(phi) * cos(psi))
    east += w * (cos(phi) * sin(theta) * sin(psi) - sin(phi) * cos(psi))
    climb = U * sin(theta) - v * sin(phi) * cos(theta) - w * cos(phi) * cos(theta)
    change = [dV, (U * dw - w * du) / (U * U + w * w), (V * dv - v * dV) * cos(beta) / (U * U + w * w)]
    change += [p + tan(theta) * along, q * cos(phi) - r * sin(phi), along / cos(theta)]
    return np.array([*change, *turning, north, east, climb, command - power])


def f16(xcg: float = 0.35) -> FunctionModel:
    """Return the F-16 of Stevens and Lewis; the lag of its engine is one second, which no trim sees."""
    starts = {"VT": 500.0, "alpha": 0.05, "theta": 0.05, "power": 15.0}
    states = Signals(Signal(n, start=starts.get(n, 0.0), nominal=1e3 if n in ("pn", "pe", "h") else None) for n in _F16)

    def lateral(_t: float, x: Any, u: Any) -> float:
        _, pressure = _air(x[0], x[11])
        return float(pressure * 300 * _f16_coefficients(x, u, xcg)[1] / 20500)

    return FunctionModel(
        "F-16",
        states,
        lambda _t, x, u: _f16_rates(x, u, xcg),
        inputs=Signals([Signal("thtl", start=0.2), Signal("el"), Signal("ail"), Signal("rdr")]),
        outputs={"ay": lateral, "alpha_deg": lambda _t, x, _u: degrees(x[1])},
    )


# -- GARTEUR: Research Civil Aircraft Model ----------------------------------------------------------------------------


def rcam() -> FunctionModel:
    """Return RCAM in SI units and radians, engines as parts of the weight (GARTEUR/TP-088-3)."""
    m, g, c, lt, S, St = 120e3, 9.81, 6.6, 24.8, 260.0, 64.0
    I = m * np.array([[40.07, 0, -2.0923], [0, 64.0, 0], [-2.0923, 0, 99.92]])  # noqa: E741 - as in the report
    centre, aero = np.array([0.23 * c, 0, 0.10 * c]), np.array([0.12 * c, 0, 0])
    zero, tail = np.radians(-11.5), St * lt / (S * c)

    def rates(_t: float, x: Any, inputs: Any) -> FloatArray:
        u, v, w, p, q, r, phi, theta, _ = x
        ail, stab, rud, th1, th2 = inputs
        V = sqrt(u * u + v * v + w * w)
        alpha, beta, Q = atan2(w, u), asin(v / V), 0.5 * 1.225 * V * V * S
        down = 0.25 * (alpha - zero)
        lift = 5.5 * (alpha - zero) + 3.1 * St / S * (alpha - down + stab + 1.3 * q * lt / V)
        drag = 0.13 + 0.07 * (5.5 * alpha + 0.654) ** 2
        side = -1.6 * beta + 0.24 * rud
        F = Q * np.array([-drag * cos(alpha) + lift * sin(alpha), side, -drag * sin(alpha) - lift * cos(alpha)])
        rate = np.array([p, q, r])
        still = [-1.4 * beta, -0.59 - 3.1 * tail * (alpha - down), (1 - alpha * 180 / (15 * pi)) * beta]
        damped = c / V * np.array([[-11, 0, 5], [0, -4.03 * St * lt**2 / (S * c**2), 0], [1.7, 0, -11.5]]) @ rate
        steered = np.array([[-0.6, 0, 0.22], [0, -3.1 * tail, 0], [0, 0, -0.63]]) @ np.array([ail, stab, rud])
        M = (np.array(still) + damped + steered) * Q * c + np.cross(F, centre - aero)
        for thrust, y in ((th1 * m * g, -7.94), (th2 * m * g, 7.94)):
            arm = np.array([centre[0], y, centre[2] + 1.9])
            M = M + np.cross(arm, np.array([thrust, 0, 0]))
        weight = m * g * np.array([-sin(theta), cos(theta) * sin(phi), cos(theta) * cos(phi)])
        force = F + weight + np.array([(th1 + th2) * m * g, 0, 0])
        moved = force / m - np.cross(rate, x[:3])
        turned = np.linalg.solve(I, M - np.cross(rate, I @ rate))
        along = q * sin(phi) + r * cos(phi)
        return np.array([*moved, *turned, p + tan(theta) * along, q * cos(phi) - r * sin(phi), along / cos(theta)])

    names = ("u", "v", "w", "p", "q", "r", "phi", "theta", "psi")
    return FunctionModel(
        "RCAM",
        Signals(Signal(n, start=85.0 if n == "u" else 0.0) for n in names),
        rates,
        inputs=Signals(
            Signal(n, start=0.08 if n.startswith("th") else 0.0) for n in ("ail", "stab", "rud", "th1", "th2")
        ),
        outputs={
            "VA": lambda _t, x, _u: sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2),
            "gamma": lambda _t, x, _u: x[7] - atan2(x[2], x[0]),
        },
    )


# -- robots, tanks, reactors, textbooks of statics ---------------------------------------------------------------------


def puma() -> Mechanism:
    """Return the Puma 560 of Corke's Robotics Toolbox: standard Denavit and Hartenberg parameters, inputs torques."""
    links = [  # a, alpha, d, mass, centre of mass in the frame of the link
        (0.0, pi / 2, 0.0, 0.0, (0.0, 0.0, 0.0)),
        (0.4318, 0.0, 0.0, 17.4, (-0.3638, 0.006, 0.2275)),
        (0.0203, -pi / 2, 0.15005, 4.8, (-0.0203, -0.0141, 0.070)),
        (0.0, pi / 2, 0.4318, 0.82, (0.0, 0.019, 0.0)),
        (0.0, -pi / 2, 0.0, 0.34, (0.0, 0.0, 0.0)),
        (0.0, 0.0, 0.0, 0.09, (0.0, 0.0, 0.032)),
    ]
    bodies, joints, forces = [], [], []
    place = Placement()
    for i, (a, twist, d, mass, centre) in enumerate(links, start=1):
        x, y, z = centre
        at = (a + x, y * cos(twist) - z * sin(twist), d + y * sin(twist) + z * cos(twist))
        # Armstrong's model has no mass of the first link, which turns about a vertical axis: any will do.
        bodies.append(Body(f"link{i}", mass or 1.0, at, inertia=(0.1, 0.1, 0.1)))
        joints.append(Joint(f"j{i}", "revolute", f"link{i - 1}" if i > 1 else "ground", f"link{i}", place))
        forces.append(JointForce(f"tau{i}", f"j{i}"))
        place = Placement.from_axis((a, 0.0, d), (1, 0, 0), twist)
    return Mechanism(MechanismDescription("Puma 560", bodies, joints, inputs=forces, gravity=(0, 0, -9.81)))


def quadruple_tank(phase: str) -> OdeModel:
    """Return Johansson's process (IEEE Trans. Control Systems Technology 8(3), 2000); centimetres, volts."""
    k1, k2, g1, g2 = (3.33, 3.35, 0.70, 0.60) if phase == "minimum" else (3.14, 3.29, 0.43, 0.34)
    out = {i: f"{a}*sqrt(2*981*h{i})" for i, a in ((1, 0.071), (2, 0.057), (3, 0.071), (4, 0.057))}
    return OdeModel(
        f"quadruple tank, {phase} phase",
        {
            "h1": f"(-{out[1]} + {out[3]} + {g1 * k1}*v1)/28",
            "h2": f"(-{out[2]} + {out[4]} + {g2 * k2}*v2)/32",
            "h3": f"(-{out[3]} + {(1 - g2) * k2}*v2)/28",
            "h4": f"(-{out[4]} + {(1 - g1) * k1}*v1)/32",
        },
        inputs=["v1", "v2"],
        outputs={"flow": f"{out[1]} + {out[2]}", "difference": "h1 - h2"},
        start={"h1": 10.0, "h2": 10.0, "h3": 2.0, "h4": 2.0},
    )


def klatt_engell() -> OdeModel:
    """Return the reactor of Klatt and Engell with van de Vusse's reactions; mol/l, Celsius, hours, kJ."""
    k = [f"{k0}*exp({E}/(T + 273.15))" for k0, E in ((1.287e12, -9758.3), (1.287e12, -9758.3), (9.043e9, -8560))]
    heat = f"(4.2*{k[0]}*cA - 11*{k[1]}*cB - 41.85*{k[2]}*cA^2)/(0.9342*3.01)"
    return OdeModel(
        "Klatt and Engell",
        {
            "cA": f"F*(5.1 - cA) - {k[0]}*cA - {k[2]}*cA^2",
            "cB": f"-F*cB + {k[0]}*cA - {k[1]}*cB",
            "T": f"F*(104.9 - T) - {heat} + {4032 * 0.215 / (0.9342 * 3.01 * 10)}*(TK - T)",
            "TK": f"(Q + {4032 * 0.215}*(T - TK))/(5*2)",
        },
        inputs=["F", "Q"],
        outputs={"yield": "cB/5.1", "selectivity": "cB/(5.1 - cA)"},
        start={"cA": 2.0, "cB": 1.0, "T": 110.0, "TK": 110.0},
    )


def beer_disk() -> OdeModel:
    """Return the block on a disk with a spring of Beer and Johnston, sample problem 10.4: k a^2 theta = m g b sin."""
    return OdeModel(
        "Beer and Johnston 10.4",
        {"theta": "w", "w": f"(10*9.81*0.3*sin(theta) - 4000*0.08^2*theta)/{10 * 0.3**2} - w"},
        start={"theta": 0.5},
    )


def hibbeler_link() -> OdeModel:
    """Return the link of 10 kg and 0.6 m with a spring of 200 N/m of Hibbeler, example 11.5."""
    m, L, k = 10.0, 0.6, 200.0
    return OdeModel(
        "Hibbeler 11.5",
        {
            "theta": "w",
            "w": f"({m * 9.81 * L / 2}*sin(theta) - {k * L**2}*(1 - cos(theta))*sin(theta))/{m * L**2 / 3} - w",
        },
        start={"theta": 0.6},
    )
