"""H-infinity control of an active double-wishbone suspension: 17 states, of which 4 are independent.

    python suspension_hinf.py --output pictures

The strut's force is to keep the car's body quiet on a rough road, with an accelerometer on the body and a sensor of the
strut's length. python-control needs slycot for ``hinfsyn``; the two Riccati equations of Doyle, Glover, Khargonekar
and Francis (1989) need scipy alone. The regulator is tried on the nonlinear suspension over a bump.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
from pictures import BLUE, ORANGE, picture, run
from scipy.linalg import solve_continuous_are

import fmilin as fl
from fmilin.systems import double_wishbone

TYRE_STIFFNESS, TYRE_DAMPING = 200e3, 60.0  # N/m, N s/m
SAMPLE = 0.003  # s
BUMP, LENGTH, SPEED = 0.03, 1.0, 10.0  # m, m, m/s
LIMIT = 3000.0  # N
SENSOR, ROAD = 2 * np.pi * 25.0, 2 * np.pi * 1.0  # rad/s: the accelerometer's filter, and where the road falls off


def main(output: Path) -> dict[str, Any]:
    """Design the regulator, drive over a bump with and without it, and draw both."""
    plant = double_wishbone()
    linear = fl.linearize(plant, outputs=["body.a", "strut"])
    K, gamma, loop, passive = design(linear)
    regulator = control.c2d(K, SAMPLE, "tustin")
    regulator.set_inputs(["body/a", "strut"])
    regulator.set_outputs(["strut_force"])

    road = {"wheel_load": lambda t: TYRE_STIFFNESS * height(t)[0] + TYRE_DAMPING * height(t)[1]}
    alone = fl.simulate(plant, stop_time=1.0, step=SAMPLE, inputs=road)
    active = fl.closed_loop(plant, regulator, stop_time=1.0, inputs=road, limits={"strut_force": (-LIMIT, LIMIT)})

    figure, (body, strut, force) = picture(3, "Double wishbone over a bump of 3 cm at 36 km/h (nonlinear)")
    for ran, style, color, label in ((alone, "--", ORANGE, "passive"), (active, "-", BLUE, "H-infinity")):
        body.plot(ran.times, ran["body.a"], style, color=color, label=label)
        strut.plot(ran.times, 1e3 * (ran["strut"] - ran["strut"][0]), style, color=color)
        force.plot(ran.times, ran["strut_force"] / 1e3, style, color=color)
    body.set_ylabel("body.a [m/s2]")
    body.legend(frameon=False)
    strut.set_ylabel("strut [mm]")
    force.set_ylabel("strut_force [kN]")
    force.set_xlabel("time [s]")
    figure.savefig(output / "suspension_hinf.png", dpi=130)
    return {
        "gamma": gamma,
        "H-infinity norm with the regulator": float(control.system_norm(loop, "inf", method="scipy")),
        "H-infinity norm without": float(control.system_norm(passive, "inf", method="scipy")),
        "body.a, rms, passive [m/s2]": _rms(alone["body.a"]),
        "body.a, rms, active [m/s2]": _rms(active["body.a"]),
        "largest departure from the manifold": float(active.largest_drift),
    }


def design(linear: fl.LinearModel) -> tuple[control.StateSpace, float, control.StateSpace, control.StateSpace]:
    """Return regulator, gamma, and the loop from ground and noise to the weighted outputs with and without it.

    The plant of the design: w = (the noise behind the ground's height, in cm, and sensor noise), u = force in kN, z =
    (body.a in m/s2, strut travel / 5 cm, 0.6 u); measured are body.a in m/s2 and the strut's travel in cm.
    """
    j = [linear.inputs.index_of(name) for name in ("wheel_load", "strut_force")]
    B, (a, travel), (d, _) = linear.B[:, j] * (0.01 * TYRE_STIFFNESS, 1e3), linear.C, linear.D[:, j]
    d = d * (0.01 * TYRE_STIFFNESS, 1e3)
    n = len(linear.A)
    # two more states: the sensor's filter follows the acceleration, and the road is slow against the wheel
    A = np.block(
        [[linear.A, np.zeros((n, 1)), B[:, :1]], [SENSOR * a, -SENSOR, SENSOR * d[0]], [np.zeros(n + 1), -ROAD]]
    )
    B1, B2 = np.zeros((n + 2, 3)), np.concatenate([B[:, 1], [SENSOR * d[1], 0.0]])[:, None]
    B1[n + 1, 0] = ROAD
    seen, stroke = np.eye(n + 2)[n], np.append(travel, [0.0, 0.0])
    C1, C2 = np.vstack([seen, stroke / 0.05, 0 * stroke]), np.vstack([seen, stroke / 0.01])
    D12, D21 = np.array([[0.0], [0.0], [0.6]]), np.hstack([np.zeros((2, 1)), np.diag([0.1, 0.05])])
    K, gamma = _central(A, (B1, B2), (C1, C2), (D12, D21))
    P = control.ss(
        A, np.hstack([B1, B2]), np.vstack([C1, C2]), np.block([[np.zeros((3, 3)), D12], [D21, np.zeros((2, 1))]])
    )
    sensor = control.append(control.tf2ss([SENSOR], [1, SENSOR]), control.ss([], [], [], [[100.0]]))
    real = 1e3 * K * sensor  # from m/s2 and m to N
    return real, gamma, P.lft(K), control.ss(A, B1, C1, 0)


def _central(
    A: np.ndarray, B: tuple[np.ndarray, np.ndarray], C: tuple[np.ndarray, np.ndarray], D: tuple[np.ndarray, np.ndarray]
) -> tuple[control.StateSpace, float]:
    """Return the central regulator for nearly the least gamma (Doyle et al. 1989, theorem 3)."""
    (B1, B2), (C1, C2) = B, C
    U, V = np.linalg.inv(D[0].T @ D[0]), np.linalg.inv(D[1] @ D[1].T)

    def tried(gamma: float) -> control.StateSpace | None:
        try:
            X = _riccati(A, B1, B2, U, C1.T @ C1, gamma)
            Y = _riccati(A.T, C1.T, C2.T, V, B1 @ B1.T, gamma)
        except (np.linalg.LinAlgError, ValueError):
            return None
        positive = min(np.linalg.eigvalsh(X).min(), np.linalg.eigvalsh(Y).min()) > -1e-6 * max(X.max(), Y.max())
        if not positive or np.abs(np.linalg.eigvals(X @ Y)).max() >= gamma**2:
            return None
        F, L = -U @ B2.T @ X, -Y @ C2.T @ V
        Z = np.linalg.inv(np.eye(len(A)) - Y @ X / gamma**2)
        return control.StateSpace(
            A + B1 @ B1.T @ X / gamma**2 + B2 @ F + Z @ L @ C2, -Z @ L, F, np.zeros((B2.shape[1], len(C2)))
        )

    low, high = 0.0, 50.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if tried(middle) is not None else (middle, high)
    found = tried(1.05 * high)
    if found is None:
        raise RuntimeError("No regulator of this gamma was found.")
    return found, 1.05 * high


def _riccati(
    A: np.ndarray, B1: np.ndarray, B2: np.ndarray, weight: np.ndarray, Q: np.ndarray, gamma: float
) -> np.ndarray:
    """Return the stabilizing X of A'X + XA + X (B1 B1'/gamma^2 - B2 weight B2') X + Q = 0."""
    k = B1.shape[1]
    R = np.block(
        [[-(gamma**2) * np.eye(k), np.zeros((k, B2.shape[1]))], [np.zeros((B2.shape[1], k)), np.linalg.inv(weight)]]
    )
    return np.asarray(solve_continuous_are(A, np.hstack([B1, B2]), Q, R))


def height(t: float) -> tuple[float, float]:
    """Return height in m and its rate in m/s of the road under the tyre."""
    s = (t - 0.1) * SPEED / LENGTH
    if not 0 < s < 1:
        return 0.0, 0.0
    return BUMP * (1 - np.cos(2 * np.pi * s)) / 2, BUMP * np.pi * np.sin(2 * np.pi * s) * SPEED / LENGTH


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


if __name__ == "__main__":
    run(main)
