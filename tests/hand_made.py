"""Linear models written down by hand, for tests of everything that comes after linearize."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from fmilin import LinearModel
from fmilin.adapters import ModelInfo, Remark
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearizationMethod, LinearizationPoint
from fmilin.signals import FloatArray, Signal, Signals

LONG = "very.long." + "größe·" * 332  # 2,002 characters


def pendulum() -> LinearModel:
    """A pendulum of length 1 m and mass 1 kg, hanging, in Cartesian coordinates: lambda^2 = -9.81."""
    states = Signals(
        [Signal("pin.x", "m", 1.0, 0.0, "horizontal"), Signal("pin.vx", "m/s", None, 0.25, "", ("v", "w.x"))]
    )
    full = Signals([states[0], Signal("pin.y", "m", None, -1.0), states[1], Signal("pin.vy", "m/s")])
    return LinearModel(
        A=np.array([[0.0, 1.0], [-9.81, 0.0]]),
        B=np.array([[0.0], [1 / 3]]),
        C=np.array([[1.0, 0.0], [-0.0, 1e-300], [np.pi, -1e300]]),
        D=np.array([[0.0], [np.nextafter(1.0, 2.0)], [5e-324]]),
        T=np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        f0=np.array([0.0, 1e-17]),
        states=states,
        full_states=full,
        inputs=Signals([Signal("F", "N", 10.0)]),
        outputs=Signals([Signal("pin.x", "m"), Signal("der(pin.vx)", "m/s2"), Signal(LONG, "°", None, 0.1)]),
        y0=np.array([0.0, 0.1 + 0.2]),
        point=LinearizationPoint(
            0.1,
            {"pin.x": 0.0, "pin.y": -1.0, "pin.vx": 0.1 + 0.2, "pin.vy": 0.0},
            {"F": 1 / 3},
            {"pin.x": 0.0, "der(pin.vx)": 2 / 3, LONG: -7.0},
            {"rod.length": 1.0000000000000002},
        ),
        accuracy=Accuracy(1e-13, 2e-13, 3e-13, 4e-13, 0.0, 5e-13, 6e-17, 1.25),
        method=LinearizationMethod("exact", "partition", 17, 3),
        model=ModelInfo("Pendel.Größe 🙂", "{8c4e810f-3df3}", "a tool 1.0", "2.0"),
        warnings=(Remark("off-equilibrium", "d(pin.vx)/dt is 1e-17 m/s2; 'quoted' \"twice\""),),
    )


def sized(order: int, dependent: int, inputs: int, outputs: int) -> LinearModel:
    """Random numbers in matrices of any size, zero included."""
    rng = np.random.default_rng(order + 10 * dependent + 100 * inputs + 1000 * outputs)

    def names(prefix: str, count: int) -> Signals:
        return Signals(Signal(f"{prefix}[{i + 1}]", start=float(i)) for i in range(count))

    states = names("x", order)
    full = Signals([*states, *names("z", dependent)])
    return replace(
        pendulum(),
        A=rng.standard_normal((order, order)),
        B=rng.standard_normal((order, inputs)),
        C=rng.standard_normal((outputs, order)),
        D=rng.standard_normal((outputs, inputs)),
        T=rng.standard_normal((order + dependent, order)),
        f0=rng.standard_normal(order),
        y0=rng.standard_normal(order),
        states=states,
        full_states=full,
        inputs=names("u", inputs),
        outputs=names("out", outputs),
        T_u=rng.standard_normal((order + dependent, inputs)),
        errors=EntryErrors(
            *(
                1e-12 * rng.random(shape)  # small: eigenvalues stay apart
                for shape in (
                    (order, order),
                    (order, inputs),
                    (outputs, order),
                    (outputs, inputs),
                    (order + dependent, order),
                )
            )
        ),
        point=LinearizationPoint(
            0.0, dict.fromkeys(full.names, 0.5), dict.fromkeys(names("u", inputs).names, -0.5), {}
        ),
        warnings=(),
    )


def differences(a: LinearModel, b: LinearModel) -> list[str]:
    """The fields in which two linear models differ, bit by bit."""
    return [f.name for f in fields(LinearModel) if f.compare and not _same(getattr(a, f.name), getattr(b, f.name))]


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, EntryErrors) and isinstance(b, EntryErrors):
        return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(EntryErrors))
    return a == b


def bits(array: FloatArray) -> list[str]:
    """Exact text of every number."""
    return [float(v).hex() for v in array.ravel()]
