"""Models in every native form, and mechanisms from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import sympy

import fmilin as fl
from fmilin.models import FunctionModel, KaneModel, LagrangeModel, MultiplierModel, NullSpaceModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, five_bar

__all__ = ["CASES"]

Results = Mapping[str, fl.LinearModel]
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


def _ode() -> OdeModel:
    equations = {"x": "v", "v": "(F - k*x - d*v*abs(v))/m"}
    parameters, outputs = {"k": 3.0, "m": 2.0, "d": 0.4}, {"a": "der(v)", "position": "x"}
    start = {"x": 0.5, "v": 0.2, "F": 1.5}
    return OdeModel("oscillator", equations, inputs=["F"], parameters=parameters, outputs=outputs, start=start)


def _rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
    x, y, vx, vy = s
    mu = (x * u[0] - 9.81 * y + vx**2 + vy**2) / (x**2 + y**2)
    return np.array([vx, vy, u[0] - mu * x, -9.81 - mu * y])


def _function(*, analytic: bool) -> FunctionModel:
    s, c = np.sin(0.6), np.cos(0.6)
    return FunctionModel(
        "pendulum",
        {"x": s, "y": -c, "vx": 1.2 * c, "vy": 1.2 * s},
        _rates,
        inputs=["a"],
        outputs={"energy": lambda t, s, u: (s[2] ** 2 + s[3] ** 2) / 2 + 9.81 * s[1]},
        constraints=["x^2 + y^2 - 1"],
        analytic=analytic,
    )


def _driven(*, analytic: bool) -> FunctionModel:
    """A pendulum under a pivot that is moved sideways: its position is an input, and so are the derivatives of that."""

    def rates(t: float, state: FloatArray, u: FloatArray) -> FloatArray:
        x, y, vx, vy = state
        s, ds, dds = u
        mu = (-(x - s) * dds - 9.81 * y + (vx - ds) ** 2 + vy**2) / ((x - s) ** 2 + y**2)
        return np.array([vx, vy, -mu * (x - s), -9.81 - mu * y])

    sn, cn = np.sin(0.5), np.cos(0.5)
    return FunctionModel(
        "driven pendulum",
        {"x": sn, "y": -cn, "vx": 0.9 * cn, "vy": 0.9 * sn},
        rates,
        inputs=["s", "der(s)", "der(der(s))"],
        constraints=["(x - s)^2 + y^2 - 1"],
        analytic=analytic,
    )


def _redundant() -> LagrangeModel:
    """The pendulum with its constraint there twice, in two ways."""
    x, y, vx, vy, F = sympy.symbols("x y vx vy F", real=True)
    return LagrangeModel(
        "doubled",
        {x: vx, y: vy},
        sympy.diag(2, 2),
        [F, -2 * 9.81],
        inputs=[F],
        constraints=[(x**2 + y**2 - 1) / 2, sympy.sqrt(x**2 + y**2) - 1],
        start={x: np.sin(0.6), y: -np.cos(0.6)},
    )


def _kane() -> KaneModel:
    """A cart with a pendulum, by sympy's own method of Kane."""
    from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, dynamicsymbols

    s, phi, v, w, F = dynamicsymbols("s phi v w F")
    N, origin = ReferenceFrame("N"), Point("O")
    swung = N.orientnew("A", "Axis", [phi, N.z])
    swung.set_ang_vel(N, w * N.z)
    origin.set_vel(N, 0)
    cart = origin.locatenew("C", s * N.x)
    cart.set_vel(N, v * N.x)
    bob = cart.locatenew("B", -0.5 * swung.y)
    bob.v2pt_theory(cart, N, swung)
    kane = KanesMethod(N, q_ind=[s, phi], u_ind=[v, w], kd_eqs=[s.diff() - v, phi.diff() - w])
    bodies = [Particle("cart", cart, 2.0), Particle("bob", bob, 0.5)]
    kane.kanes_equations(bodies, [(cart, F * N.x), (bob, -0.5 * 9.81 * N.y)])
    return KaneModel.from_sympy(kane, parameters={}, outputs={})


def _opened(path: Path) -> fl.LinearModel:
    return fl.linearize(fl.load(path))


def _trimmed(path: Path) -> fl.LinearModel:
    model = fl.load(path)
    return fl.linearize(model, fl.trim(model))


def _rolling_torus() -> Results:
    """Fresh, rolling: after a look at rest it was once refused."""
    return {"fresh": _opened(HERE / "mechanisms/rolling_torus.toml")}


CASES: Mapping[str, Callable[[], fl.LinearModel | Results]] = {
    "ode": lambda: fl.linearize(_ode()),
    "function, analytic": lambda: fl.linearize(_function(analytic=True)),
    "function, by differences": lambda: fl.linearize(_function(analytic=False)),
    "null space with a constraint twice": lambda: fl.linearize(NullSpaceModel(_redundant())),
    "kane from sympy": lambda: fl.linearize(_kane()),
    "prescribed motion": lambda: fl.linearize(_driven(analytic=True), independent=["x"]),
    "prescribed motion, by differences": lambda: fl.linearize(_driven(analytic=False), independent=["x"]),
    "null space": lambda: fl.linearize(NullSpaceModel(cartesian_pendulum(angle=0.6, rate=1.2))),
    "multipliers": lambda: fl.linearize(MultiplierModel(five_bar())),
    "arms.toml": lambda: _opened(HERE / "mechanisms/arms.toml"),
    "cylinder.toml": lambda: _opened(HERE / "mechanisms/cylinder.toml"),
    "cylinder.toml trimmed": lambda: _trimmed(HERE / "mechanisms/cylinder.toml"),
    "engine.toml": lambda: _opened(HERE / "mechanisms/engine.toml"),
    "rolling_torus.toml": _rolling_torus,
    "satellite.toml": lambda: _opened(HERE / "mechanisms/satellite.toml"),
    "sleeping_top.toml": lambda: _opened(HERE / "mechanisms/sleeping_top.toml"),
    "loader.toml": lambda: _opened(EXAMPLES / "mechanisms/loader.toml"),
    "excavator.toml": lambda: _opened(EXAMPLES / "designs/excavator.toml"),
    "biped.toml": lambda: _opened(EXAMPLES / "standing_robot/biped.toml"),
    "robot.urdf": lambda: _opened(EXAMPLES / "mechanisms/robot.urdf"),
    "four_bar.urdf": lambda: _opened(EXAMPLES / "one_mechanism/four_bar.urdf"),
    "spatial.urdf": lambda: _opened(EXAMPLES / "one_mechanism/spatial.urdf"),
}
