"""Systems written as texts: directions as states, gears, a simplified frame; what ties their states is known."""

from __future__ import annotations

from fmilin import Model
from fmilin.models import OdeModel


def heavy_top(*, driven: bool) -> Model:
    """A top on a ball joint with its nine direction cosines, 12 states, 6 constraints."""
    J, mgl, c = (0.3, 0.5, 0.2), 1.0, 0.1
    turn = [["0", "-r", "q"], ["r", "0", "-p"], ["-q", "p", "0"]]
    rates = {
        f"r{i}{j}": " + ".join(f"r{i}{k}*({turn[k][j]})" for k in range(3) if k != j)
        for i in range(3)
        for j in range(3)
    }
    torque = " + T" if driven else ""
    rates["p"] = f"(({J[1]} - {J[2]})*q*r + {mgl}*r21 - {c}*p{torque})/{J[0]}"
    rates["q"] = f"(({J[2]} - {J[0]})*p*r - {mgl}*r20 - {c}*q)/{J[1]}"
    rates["r"] = f"(({J[0]} - {J[1]})*p*q - {c}*r)/{J[2]}"
    return OdeModel("top", rates, inputs=["T"] if driven else [], start={"r00": 1.0, "r11": 1.0, "r22": 1.0})


DIRECTIONS = [
    " + ".join(f"r{i}{k}*r{j}{k}" for k in range(3)) + (" - 1" if i == j else "") for i in range(3) for j in range(i, 3)
]


def rack(ratio: float, *, driven: bool) -> Model:
    """A pinion that turns by ``ratio`` times what its rack moves, th = ratio y, and a spring."""
    push = "(-3*y - 0.1*w" + (" + F)/2" if driven else ")/2")
    rates = {"th": "w", "y": "v", "w": push, "v": f"({push})/({ratio})"}
    return OdeModel("rack", rates, inputs=["F"] if driven else [], start={"th": 0.8, "y": 0.8 / ratio})


def pendulum(*, driven: bool) -> Model:
    """A pendulum with the sine and the cosine of its angle as states."""
    rates = {"s": "c*w", "c": "-s*w", "w": "-9.81*s - 0.1*w" + (" + T" if driven else "")}
    return OdeModel("pendulum", rates, inputs=["T"] if driven else [], start={"c": 1.0})


def bar(*, simplified: bool) -> Model:
    """A bar on a pin: x = 0.7 s, y = -0.7 c; where ``simplified``, its rates keep that where s^2 + c^2 = 1 only."""
    turn = "(-6.867*s - 0.1*w + T)/0.6"
    more = ("*(s^2 + c^2)", "*(2 - s^2 - c^2)") if simplified else ("", "")
    rates = {"x": "vx", "y": "vy", "s": "c*w", "c": "-s*w", "w": turn}
    rates |= {"vx": f"0.7*(c*{turn} - s*w^2{more[0]})", "vy": f"0.7*(s*{turn} + c*w^2{more[1]})"}
    return OdeModel("bar", rates, inputs=["T"], start={"y": -0.7, "c": 1.0})


def skate() -> Model:
    """A skate with sine and cosine of its heading: vy c = vx s, where s^2 + c^2 = 1."""
    along = "(vx*c + vy*s)"
    rates = {"x": "vx", "y": "vy", "s": "c*w", "c": "-s*w"}
    rates |= {"vx": f"F*c - w*s*{along}", "vy": f"F*s + w*c*{along}", "w": "T"}
    return OdeModel("skate", rates, inputs=["F", "T"], start={"c": 0.8, "s": 0.6, "vx": 0.8, "vy": 0.6})


def free_wheels() -> Model:
    """Two wheels that float, a motor between them: their momentum is kept, and ties no states."""
    torque = "(T - 0.1*(w1 - w2) - 2*(s1*c2 - c1*s2))"
    rates = {"s1": "c1*w1", "c1": "-s1*w1", "s2": "c2*w2", "c2": "-s2*w2", "w1": f"{torque}/3", "w2": f"-{torque}/2"}
    return OdeModel("wheels", rates, inputs=["T"], start={"c1": 1.0, "c2": 1.0})


def gears(*, loaded: bool) -> Model:
    """Two equal gears, th1 = -th2, without any input, from rest at zero."""
    torque = f"(-{2 * loaded}*th1 - 0.1*w1)/3"
    return OdeModel("gears", {"th1": "w1", "th2": "w2", "w1": torque, "w2": f"-{torque}"})


def pulley() -> Model:
    """Two weights on a rope of 3 m over a pulley, y1 + y2 = 3; the rates are constant, and no state acts on another."""
    rise = "(9.81 + F)/5"
    return OdeModel(
        "pulley", {"y1": "v1", "y2": "v2", "v1": rise, "v2": f"-{rise}"}, inputs=["F"], start={"y1": 1.0, "y2": 2.0}
    )
