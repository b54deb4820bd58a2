"""Systems whose constraints are known and not declared, and such as have none."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fmilin import Model
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray

Rates = Callable[[float, Any, Any], Any]


def _model(name: str, start: dict[str, float], rates: Rates, inputs: Sequence[str] = ()) -> FunctionModel:
    return FunctionModel(name, start, rates, inputs=list(inputs))


def _turned(q: FloatArray, w: FloatArray) -> FloatArray:
    """Return the rate of a quaternion for the angular velocity w in the body."""
    e0, e = q[0], q[1:]
    return 0.5 * np.concatenate(([-e @ w], e0 * w + np.cross(e, w)))


def _rotation(q: FloatArray) -> FloatArray:
    e0, e1, e2, e3 = q
    return np.array(
        [
            [e0**2 + e1**2 - e2**2 - e3**2, 2 * (e1 * e2 - e0 * e3), 2 * (e1 * e3 + e0 * e2)],
            [2 * (e1 * e2 + e0 * e3), e0**2 - e1**2 + e2**2 - e3**2, 2 * (e2 * e3 - e0 * e1)],
            [2 * (e1 * e3 - e0 * e2), 2 * (e2 * e3 + e0 * e1), e0**2 - e1**2 - e2**2 + e3**2],
        ]
    )


INERTIA = np.array([0.4, 0.7, 0.9])


def quaternion_body() -> Model:
    """A rigid body on a spring from the origin to a point of it, 13 states; the unit quaternion is its constraint."""
    s = np.array([0.3, 0.1, -0.2])

    def rates(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        r, q, v, w = x[:3], x[3:7], x[7:10], x[10:]
        R = _rotation(q)
        force = -20.0 * (r + R @ s)
        torque = np.cross(s, R.T @ force) + np.array([u[0], 0.0, 0.0])
        w_dot = (torque - np.cross(w, INERTIA * w)) / INERTIA
        return np.concatenate((v, _turned(q, w), force / 2.0 - [0.0, 0.0, 9.81], w_dot))

    names = [f"r[{i}]" for i in "123"] + [f"e[{i}]" for i in "0123"] + [f"v[{i}]" for i in "123"]
    names += [f"w[{i}]" for i in "123"]
    start = dict.fromkeys(names, 0.0) | {"e[0]": 0.8, "e[2]": 0.6, "r[3]": -0.4}
    return _model("quaternion_body", start, rates, ["torque"])


def _solved(M: FloatArray, G: FloatArray, F: FloatArray, gamma: FloatArray) -> FloatArray:
    """Return the accelerations of M a + G' lambda = F, G a = gamma, M diagonal."""
    W = G / M
    return (F - G.T @ np.linalg.solve(W @ G.T, W @ F - gamma)) / M


def rod_in_space() -> Model:
    """Two bodies with quaternions whose centres a rod of 1.3 m joins; one hangs on a spring; 26 states."""

    def rates(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        r, q1, q2 = x[:6], x[6:10], x[10:14]
        v, w1, w2 = x[14:20], x[20:23], x[23:]
        d, d_dot = r[3:] - r[:3], v[3:] - v[:3]
        M = np.array([2.0, 2.0, 2.0, 3.0, 3.0, 3.0])
        F = np.concatenate((-30.0 * r[:3], [u[0], 0.0, 0.0])) - 9.81 * M * np.tile([0.0, 0.0, 1.0], 2)
        G = np.concatenate((-d, d))[None]
        a = _solved(M, G, F, np.array([-d_dot @ d_dot]))
        twist = 0.5 * (_rotation(q1).T @ np.array([0.0, 0.0, 1.0]) - [0.0, 0.0, 1.0])
        w1_dot = (twist - np.cross(w1, INERTIA * w1)) / INERTIA
        w2_dot = ([u[1], 0.0, 0.0] - np.cross(w2, INERTIA * w2)) / INERTIA
        return np.concatenate((v, _turned(q1, w1), _turned(q2, w2), a, w1_dot, w2_dot))

    r = [f"{b}.{i}" for b in "ab" for i in "xyz"]
    q = [f"{b}.e{i}" for b in "ab" for i in range(4)]
    v = [f"{b}.v{i}" for b in "ab" for i in "xyz"]
    w = [f"{b}.w{i}" for b in "ab" for i in "xyz"]
    start = dict.fromkeys([*r, *q, *v, *w], 0.0) | {"a.e0": 1.0, "b.e0": 0.6, "b.e1": 0.8, "b.x": 0.5, "b.z": -1.2}
    return _model("rod_in_space", start, rates, ["force", "torque"])


def hung_body() -> Model:
    """A rigid body on a ball joint at a point of it that is not its centre of mass, 13 states: r + R s = 0."""
    s, mass = np.array([0.1, 0.0, 0.4]), 2.0

    def rates(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        q, v, w = x[3:7], x[7:10], x[10:]
        R = _rotation(q)
        S = np.array([[0.0, -s[2], s[1]], [s[2], 0.0, -s[0]], [-s[1], s[0], 0.0]])
        G = np.hstack((np.eye(3), -R @ S))
        gamma = -R @ np.cross(w, np.cross(w, s))
        M = np.concatenate((np.full(3, mass), INERTIA))
        F = np.concatenate(([0.0, 0.0, -9.81 * mass], [u[0], 0.0, 0.0] - np.cross(w, INERTIA * w)))
        a = _solved(M, G, F, gamma)
        return np.concatenate((v, _turned(q, w), a))

    names = [f"r{i}" for i in "xyz"] + [f"e{i}" for i in range(4)] + [f"v{i}" for i in "xyz"] + [f"w{i}" for i in "xyz"]
    q = np.array([0.0, 1.0, 0.0, 0.0])
    start = dict(zip(names, [*(-_rotation(q) @ s).tolist(), *q.tolist(), *[0.0] * 6], strict=True))
    return _model("hung_body", start, rates, ["torque"])


def cartesian_slider_crank() -> Model:
    """A crank pin (x, y) at 0.2 m and a slider at s, 0.7 m from the pin; point masses; 6 states."""

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        x, y, s, vx, vy, vs = z
        G = np.array([[x, y, 0.0], [x - s, y, s - x]])
        gamma = -np.array([vx**2 + vy**2, (vx - vs) ** 2 + vy**2])
        a = _solved(np.array([0.5, 0.5, 0.3]), G, np.array([-u[0] * y, u[0] * x - 4.9, -2.0 * s]), gamma)
        return np.concatenate((z[3:], a))

    y = -0.12
    start = {"x": 0.16, "y": y, "s": 0.16 + float(np.sqrt(0.49 - y * y)), "vx": 0.0, "vy": 0.0, "vs": 0.0}
    return _model("cartesian_slider_crank", start, rates, ["torque"])


def chain(links: int = 10) -> Model:
    """Point masses on rods of 1 m, one hanging on the other from the origin: 4 states for each link."""
    n = 2 * links

    def rates(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        r, v = x[:n].reshape(-1, 2), x[n:].reshape(-1, 2)
        d, d_dot = np.diff(r, axis=0, prepend=np.zeros((1, 2))), np.diff(v, axis=0, prepend=np.zeros((1, 2)))
        G = np.zeros((links, links, 2))
        k = np.arange(links)
        G[k, k] = d
        G[k[1:], k[:-1]] = -d[1:]
        F = np.tile([0.0, -9.81], links)
        F[-2] += u[0]
        return np.concatenate((x[n:], _solved(np.ones(n), G.reshape(links, n), F, -(d_dot**2).sum(axis=1))))

    names = [f"{p}{a}[{i}]" for p in ("", "v") for i in range(1, links + 1) for a in "xy"]
    start = dict.fromkeys(names, 0.0) | {f"y[{i}]": -float(i) for i in range(1, links + 1)}
    return _model("chain", start, rates, ["force"])


BRACED = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def braced(*, hung: bool = True) -> Model:
    """Four points of a plane with all six distances, of which five are independent; on a link of 1 m, or on springs.

    No accelerations satisfy all of them where the distances change: the nearest do, in least squares.
    """
    P = np.array([[0.0, -1.0], [-0.5, -1.5], [0.5, -1.5], [0.0, -2.0]])
    m = np.array([1.0, 1.0, 1.5, 1.5, 1.5, 1.5, 2.0, 2.0])

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        r, v = z[:8].reshape(4, 2), z[8:].reshape(4, 2)
        lengths, gamma = np.zeros((7, 4, 2)), np.zeros(7)
        for k, (i, j) in enumerate(BRACED):
            lengths[k, i], lengths[k, j], gamma[k] = r[i] - r[j], r[j] - r[i], -((v[i] - v[j]) @ (v[i] - v[j]))
        if hung:
            lengths[6, 0], gamma[6] = r[0], -v[0] @ v[0]
        G = lengths.reshape(7, 8)
        F = -9.81 * m * np.tile([0.0, 1.0], 4) + np.array([0, 0, 0, u[1], 0, 0, u[0], 0])
        if not hung:
            F -= 20.0 * z[:8] + 0.1 * z[8:]
        forces = np.linalg.lstsq((G / m) @ G.T, (G / m) @ F - gamma, rcond=1e-10)[0]
        return np.concatenate((z[8:], (F - G.T @ forces) / m))

    names = [f"{a}{i}" for i in range(1, 5) for a in "xy"]
    start = dict(zip(names, P.ravel().tolist(), strict=True)) | {f"v{name}": 0.0 for name in names}
    return _model("braced", start, rates, ["push", "pull"])


def stabilized_pendulum(alpha: float = 5.0, beta: float = 4.0) -> Model:
    """A pendulum of 1.3 m in Cartesian coordinates with Baumgarte's terms."""

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        x, y, vx, vy = z
        h, h_dot = 0.5 * (x * x + y * y - 1.69), x * vx + y * vy
        gamma = -(vx**2 + vy**2) - 2 * alpha * h_dot - beta**2 * h
        a = _solved(np.ones(2), np.array([[x, y]]), np.array([u[0], -9.81]), np.array([gamma]))
        return np.concatenate(([vx, vy], a))

    return _model("stabilized_pendulum", {"x": 0.5, "y": -1.2, "vx": 0.0, "vy": 0.0}, rates, ["force"])


def plain_pendulum() -> Model:
    """The same without them."""
    return stabilized_pendulum(0.0, 0.0)


def noisy(model: Model, size: float = 1e-8) -> Model:
    """The same with noise in its derivatives, relative to the largest of them."""

    def rates(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        f = model.evaluate(t, x, u).derivatives
        random = np.random.default_rng(zlib.crc32(x.tobytes() + u.tobytes()))  # hash() is another one in every process
        found: FloatArray = f + size * np.abs(f) * random.uniform(-1.0, 1.0, len(f))
        return found

    start = dict(zip(model.states.names, model.start.states.tolist(), strict=True))
    return _model(f"noisy {model.info.name}", start, rates, model.inputs.names)


# -- nothing to find -------------------------------------------------------------------------------------------------


def free_masses() -> Model:
    """Two masses in the plane and a spring between them: energy and momenta stay; nothing is constrained."""

    def rates(_t: float, z: FloatArray, _u: FloatArray) -> FloatArray:
        d = z[2:4] - z[:2]
        pull = 10.0 * d
        return np.concatenate((z[4:], pull / 2.0, -pull / 3.0))

    names = ["x1", "y1", "x2", "y2", "vx1", "vy1", "vx2", "vy2"]
    return _model("free_masses", dict(zip(names, (0.0, 0.0, 1.0, 0.3, 0.0, 0.0, 0.0, 0.0), strict=True)), rates)


def tumbling_body() -> Model:
    """A free rigid body: of its seven states only the norm of the quaternion is constrained."""

    def rates(_t: float, x: FloatArray, _u: FloatArray) -> FloatArray:
        w = x[4:]
        return np.concatenate((_turned(x[:4], w), -np.cross(w, INERTIA * w) / INERTIA))

    start = {"e0": 0.6, "e1": 0.0, "e2": 0.8, "e3": 0.0, "w1": 0.3, "w2": 1.0, "w3": -0.2}
    return _model("tumbling_body", start, rates)


def pushed_pendulum() -> Model:
    """A pendulum with one angle: its energy is what the input breaks."""
    return _model(
        "pushed_pendulum",
        {"phi": 0.3, "w": 0.0},
        lambda _t, x, u: np.array([x[1], -9.81 * np.sin(x[0]) + u[0]]),
        ["torque"],
    )


def kepler() -> Model:
    """A planet: energy and angular momentum stay."""

    def rates(_t: float, z: FloatArray, _u: FloatArray) -> FloatArray:
        return np.concatenate((z[2:], -z[:2] / float(z[:2] @ z[:2]) ** 1.5))

    return _model("kepler", {"x": 1.0, "y": 0.0, "vx": 0.0, "vy": 1.1}, rates)


def unconstrained(seed: int) -> Model:
    """A random smooth system without any constraint, of 2 to 8 states, of one of several kinds."""
    random = np.random.default_rng(seed)
    n, k = int(random.integers(2, 5)), int(random.integers(0, 3))
    A, B = random.normal(size=(n, n)), random.normal(size=(n, k))
    W, V = random.normal(size=(n, n)), random.normal(size=(n, n, n))
    kind = seed % 5
    u_names = [f"u{i}" for i in range(k)]
    first = {f"x{i}": float(random.normal()) if seed % 2 else 0.0 for i in range(n)}
    both = first | {f"v{i}": 0.0 for i in range(n)}

    def linear(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return A @ x + B @ u

    def network(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return A @ np.tanh(W @ x) - x + B @ u

    def quadratic(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        found: FloatArray = A @ x + 0.3 * np.einsum("ijk,j,k->i", V, x, x) + B @ u
        return found

    def oscillators(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        q, v = x[:n], x[n:]
        return np.concatenate((v, -(W @ W.T + np.eye(n)) @ q - 0.2 * np.abs(A @ A.T) @ v - q**3 + B @ u))

    def pendulums(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        q, v = x[:n], x[n:]
        M = 2 * np.eye(n) + 0.5 * np.cos(q[:, None] - q[None, :])
        turn = 0.5 * np.sin(q[:, None] - q[None, :]) @ v**2
        return np.concatenate((v, np.linalg.solve(M, -9.81 * np.sin(q) - turn - 0.1 * v + B @ u)))

    rates = (linear, network, quadratic, oscillators, pendulums)[kind]
    return _model(f"random {seed}", first if kind < 3 else both, rates, u_names)
