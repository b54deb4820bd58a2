"""Public functions with arguments that are right, one call of each: wrong values take the place of one of them."""

# ruff: noqa: E501 - a call is read in one line

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import fmilin as fl
from fmilin.models import DaeModel, FunctionModel, KaneModel, LagrangeModel, MultiplierModel, NullSpaceModel, OdeModel

__all__ = ["CALLS", "Call", "linear", "loop"]


class Call(NamedTuple):
    """A function with arguments that are right."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]


@cache
def pendulum() -> OdeModel:
    rates = {"x": "v", "v": "-9.81*sin(x) - 0.2*v + u"}
    return OdeModel("pendulum", rates, inputs=["u"], outputs={"y": "x"}, start={"x": 0.1})


@cache
def forced() -> OdeModel:
    rates = {"x": "v", "v": "-(1 + 0.2*cos(2*time))*x - 0.3*v + u"}
    return OdeModel("forced", rates, inputs=["u"], outputs={"y": "x"}, parameters={"k": 1.0})


@cache
def linear() -> fl.LinearModel:
    return fl.linearize(pendulum(), fl.trim(pendulum(), fixed={"u": 0.0}))


@cache
def plant() -> Any:
    return OdeModel("plant", {"x": "-k*x + u"}, inputs=["u"], outputs={"y": "x"}, parameters={"k": 2.0})


@cache
def loop() -> Any:
    gain = FunctionModel("gain", {}, lambda t, x, u: [], inputs=["e"], outputs={"c": lambda t, x, u: 2 * u[0]})
    return fl.connect({"p": plant(), "k": gain}, [("p.y", "k.e", -1.0), ("k.c", "p.u")])


@cache
def family() -> fl.LinearFamily:
    return fl.sweep(pendulum(), {"x": [0.1, 0.2, 0.3]})


@cache
def orbit() -> fl.PeriodicOrbit:
    return fl.periodic_orbit(forced(), period=np.pi)


@cache
def periodic() -> fl.PeriodicModel:
    return fl.linearize_periodic(forced(), orbit(), points=32)


@cache
def kalman() -> fl.design.KalmanFilter:
    return fl.design.kalman_filter(linear(), 0.05, process={"u": 0.1}, measured={"y": 1e-2})


def estimator() -> fl.design.Estimator:
    return fl.design.estimator(pendulum(), process_noise={"u": 0.1}, measurement_noise={"y": 1e-2}, sample_time=0.05)


def make_calls() -> dict[str, Call]:
    d = fl.design
    K = np.array([[1.0, 0.5]])
    eye = np.eye(2)
    model = pendulum()
    chain = LagrangeModel("chain", {"q": "v"}, [[1.0]], ["-q"])
    point = fl.operating_point(model)
    trimmed = fl.trim(model, fixed={"u": 0.0})
    motion = {"period": np.pi}
    noise = {"process": {"u": 0.1}, "measured": {"y": 1e-2}}
    gain = fl.design.state_feedback(linear(), K, 0.05)
    trajectory = fl.simulate(model, stop_time=0.1)
    return {
        "linearize": Call(
            fl.linearize,
            {"model": model, "point": point, "independent": ["x", "v"], "inputs": ["u"], "outputs": ["y"],
             "coordinates": "partition", "derivatives": "auto", "keep_inaccurate": False, "one_sided": None,
             "at_singularity": False, "stepping": None, "formulation": None, "descriptor": False,
             "hold_modes": False, "parameters": []},
        ),
        "trim": Call(
            fl.trim,
            {"model": model, "guess": {"x": 0.1}, "fixed": {"u": 0.0}, "steady": [], "free": [], "bounds": {},
             "time": 0.0, "minimize": None, "stable": False, "near": {}},
        ),
        "trim_each": Call(fl.trim_each, {"model": model, "guesses": [{"x": 0.1}], "fixed": {"u": 0.0}, "bounds": {}}),
        "operating_point": Call(fl.operating_point, {"model": model, "values": {"x": 0.2}, "time": 0.0, "project": False}),
        "operating_points": Call(
            fl.operating_points, {"model": model, "values": {"x": [0.1, 0.2]}, "time": 0.0, "starts": 3, "fixed": None, "free": None,
             "bounds": {}, "seed": 0}
        ),
        "simulate": Call(
            fl.simulate,
            {"model": model, "point": point, "stop_time": 0.2, "start_time": 0.0, "step": 0.05, "inputs": {"u": 0.0},
             "stabilization": "projection", "method": "DOP853", "energy": None, "formulation": None},
        ),
        "snapshots": Call(
            lambda **given: list(fl.snapshots(**given)),
            {"model": model, "point": point, "times": [0.1], "until": None, "stop_time": 0.2, "inputs": {"u": 0.0},
             "stabilization": "projection", "method": "DOP853"},
        ),
        "verify": Call(fl.verify, {"model": model, "linear": linear(), "horizon": 0.2}),
        "audit": Call(fl.audit, {"result": linear(), "model": model}),
        "sweep": Call(
            fl.sweep,
            {"source": model, "vary": {"x": [0.1, 0.2]}, "zipped": False, "trim": None, "guess": {}, "settings": {},
             "time": 0.0, "constraints": [], "independent": ["x", "v"], "inputs": ["u"], "outputs": ["y"],
             "coordinates": "partition", "derivatives": "auto", "loop_at": (), "continuous": False, "jobs": 1,
             "limits": None},
        ),
        "linearize_along": Call(fl.linearize_along, {"model": model, "points": [point], "independent": ["x", "v"]}),
        "periodic_orbit": Call(
            fl.periodic_orbit, {"model": forced(), "start": {"x": 0.0}, **motion, "fixed": {}, "free": [], "time": 0.0}
        ),
        "linearize_periodic": Call(
            fl.linearize_periodic, {"model": forced(), "orbit": orbit(), "points": 16, "inputs": ["u"], "outputs": ["y"]}
        ),
        "floquet_chart": Call(fl.floquet_chart, {"model": forced(), "vary": {"k": [1.0, 2.0]}, "start": {}, **motion}),
        "frequency_response": Call(
            fl.frequency_response,
            {"model": model, "point": trimmed, "input": "u", "frequencies": [1.0], "amplitude": 0.01, "outputs": ["y"]},
        ),
        "connect": Call(
            fl.connect,
            {"members": {"a": plant(), "b": plant()}, "connections": [("a.y", "b.u")], "inputs": ["a.u"],
             "outputs": ["b.y"], "name": "s"},
        ),
        "loop_transfer": Call(fl.loop_transfer, {"system": loop(), "wires": "k.e", "point": None, "opened": []}),
        "sensitivity": Call(fl.sensitivity, {"system": loop(), "wires": "k.e", "point": None, "opened": []}),
        "complementary_sensitivity": Call(fl.complementary_sensitivity, {"system": loop(), "wires": "k.e"}),
        "opened": Call(fl.opened, {"system": loop(), "wires": "k.e", "point": None}),
        "sampled_loop": Call(fl.sampled_loop, {"model": loop(), "point": None}),
        "cosimulated": Call(fl.cosimulated, {"model": loop(), "point": None, "step": 0.01, "master": "jacobi", "order": []}),
        "reduce_members": Call(fl.reduce_members, {"system": loop(), "orders": {"p": 1}, "point": None}),
        "discover": Call(fl.discover, {"model": plant(), "point": None, "excite": 1.0}),
        "explain": Call(fl.explain, {"model": model, "point": point, "input": "u", "output": "y"}),
        "explain_zeros": Call(fl.explain_zeros, {"model": plant(), "point": None}),
        "descriptor": Call(fl.descriptor, {"model": chain, "at": None}),
        "to_casadi": Call(fl.to_casadi, {"model": model}),
        "uncertain": Call(fl.uncertain, {"model": plant(), "point": None, "box": {"k": (1.0, 3.0)}}),
        "load": Call(
            fl.load, {"source": "text", "constraints": [], "parameters": {}, "time": 0.0, "interface": None, "fmu": None,
             "options": {}}
        ),
        "isolated": Call(fl.isolated, {"opener": pendulum, "use": str, "limits": fl.Limits()}),
        "closed_loop": Call(
            fl.closed_loop,
            {"model": model, "regulator": gain, "point": trimmed, "stop_time": 0.2, "start": point, "limits": {},
             "delay": 0.0, "noise": {}, "seed": 0, "quantization": {}, "sample_times": {}, "disturbances": {}},
        ),
        # Data classes of the package itself.
        "Connection": Call(fl.Connection, {"source": "a.y", "target": "b.u", "factor": 1.0, "offset": 0.0}),
        "Constraint": Call(fl.Constraint.from_text, {"text": "x - 1", "level": "position"}),
        "Differences": Call(fl.Differences, {"order": 4, "relative_step": None, "retries": 5, "side": None}),
        "Limits": Call(
            fl.Limits, {"seconds": 1.0, "memory": None, "processes": 1, "read": [], "network": False, "environment": []}
        ),
        "OperatingPoint": Call(
            lambda **given: fl.linearize(model, fl.OperatingPoint(**given)),
            {"time": 0.0, "states": np.zeros(2), "inputs": np.zeros(1), "parameters": {}},
        ),
        "Signal": Call(fl.Signal, {"name": "x", "unit": "m", "nominal": 1.0, "start": 0.0, "description": "", "aliases": ()}),
        "Signals": Call(fl.Signals, {"items": ["x"]}),
        "Stepping": Call(
            fl.Stepping, {"method": "auto", "step": 0.1, "lifted": False, "order": 1, "amplitude": 0.1, "budget": 1.0}
        ),
        "TrimRequest": Call(
            fl.TrimRequest,
            {"fixed": {}, "steady": (), "free": (), "bounds": {}, "time": None, "minimize": None, "near": {}},
        ),
        # Methods of results.
        "LinearModel.save": Call(linear().save, {"path": "plant.json"}),
        "LinearModel.load": Call(fl.LinearModel.load, {"path": "plant.json"}),
        "family.interpolate": Call(family().interpolate, {"values": {"x": 0.15}}),
        "family[]": Call(lambda index: family()[index], {"index": 1}),
        "family.save": Call(family().save, {"path": "family.npz"}),
        "plot.bode": Call(linear().plot.bode, {"inputs": ["u"], "outputs": ["y"]}),
        "plot.step": Call(
            linear().plot.step,
            {"inputs": ["u"], "outputs": ["y"], "against": None, "amplitude": 0.1, "stop_time": 1.0},
        ),
        "model.with_constraints": Call(model.with_constraints, {"constraints": [fl.Constraint.from_text("x - v")]}),
        "model.with_parameters": Call(plant().with_parameters, {"values": {"k": 1.0}}),
        "model.with_interface": Call(model.with_interface, {"inputs": ["u"], "outputs": ["y"]}),
        "trajectory[]": Call(lambda name: trajectory[name], {"name": "x"}),
        "periodic.harmonic": Call(periodic().harmonic, {"count": 2}),
        "kalman.correct": Call(
            kalman().correct, {"y": np.zeros(2), "u": np.zeros(1), "measured": np.zeros(1)}
        ),
        "kalman.predict": Call(kalman().predict, {"y": np.zeros(2), "u": np.zeros(1)}),
        "estimator.step": Call(lambda **given: estimator().step(**given), {"u": [0.0], "y": [0.1]}),
        # Designs.
        "design.state_feedback": Call(d.state_feedback, {"linear": linear(), "gain": K, "sample_time": 0.05, "drives": ["u"]}),
        "design.kalman_filter": Call(d.kalman_filter, {"linear": linear(), "sample_time": 0.05, **noise, "hold_noise": False}),
        "design.estimator": Call(
            d.estimator,
            {"model": model, "outputs": ["y"], "process_noise": {"u": 0.1}, "measurement_noise": {"y": 1e-2},
             "sample_time": 0.05, "kind": "ekf", "point": point, "initial_covariance": eye, "augment": (), "limits": {},
             "lag": 0, "horizon": 3, "bounds": {}, "substeps": 1, "hold_noise": False},
        ),
        "design.estimator mhe": Call(
            d.estimator,
            {"model": model, "process_noise": [[0.1]], "measurement_noise": [[1e-2]], "sample_time": 0.05,
             "kind": "mhe", "horizon": 3, "bounds": {"x": (-1.0, 1.0)}},
        ),
        "design.filtered": Call(
            d.filtered, {"kf": estimator(), "inputs": np.zeros((3, 1)), "measured": np.zeros((3, 1))}
        ),
        "design.nees": Call(d.nees, {"kf": estimator(), "x": np.zeros(2)}),
        "design.tuned_noise": Call(
            d.tuned_noise,
            {"make": lambda values: estimator(), "guess": {"q": 1.0}, "inputs": np.zeros((3, 1)),
             "measured": np.zeros((3, 1)), "decades": 1.0, "evaluations": 3},
        ),
        "design.margins": Call(d.margins, {"loop": fl.loop_transfer(loop(), "k.e")}),
        "design.measurement": Call(d.measurement, {"linear": linear(), "sensors": ["x"]}),
        "design.monte_carlo": Call(
            d.monte_carlo,
            {"run": lambda values, seed: trajectory, "parameters": {"k": (1.0, 2.0)}, "runs": 2,
             "measures": {"end": lambda t: float(t["x"][-1])}, "signals": ["x"], "seed": 0, "jobs": 1},
        ),
        "design.noise_through": Call(d.noise_through, {"linear": linear(), "intensities": {"u": 0.1}}),
        "design.sampled_noise": Call(d.sampled_noise, {"A": -eye, "G": eye, "W": eye, "sample_time": 0.1}),
        "design.periodic_lqr": Call(d.periodic_lqr, {"periodic": periodic(), "state_cost": eye, "input_cost": np.eye(1)}),
        "design.periodic_kalman_filter": Call(d.periodic_kalman_filter, {"periodic": periodic(), **noise}),
        "design.schedule": Call(
            d.schedule,
            {"family": family(), "rule": lambda lin: K, "over": ["x"], "sample_time": 0.05,
             "form": "trim", "states": ["x", "v"], "drives": ["u"], "outside": "refuse"},
        ),
        "design.tune": Call(
            d.tune,
            {"plants": fl.linearize(plant()), "structure": "PI", "start": {"kp": 1.0, "ki": 1.0}, "input": "u",
             "output": "y", "bandwidth": 2.0, "disk_margin": 0.7, "decay": None, "fixed": {}},
        ),
        "design.place_modes": Call(
            d.place_modes,
            {"model": plant(), "parameters": {"k": (1.0, 5.0)}, "goals": [d.ModeGoal(near=-3.0, damping=1.0)], "point": None},
        ),
        "design.ModeGoal": Call(d.ModeGoal, {"near": -3.0, "damping": 0.5, "decay": 1.0, "frequency": (1.0, 2.0)}),
        "design.identified_parameters": Call(
            d.identified_parameters,
            {"model": plant(), "parameters": {"k": (1.0, 5.0)}, "frequencies": [1.0, 2.0],
             "response": [1 / (2 + 1j), 1 / (2 + 2j)], "weights": [1.0, 1.0], "point": None},
        ),
        "design.KalmanRegulator": Call(d.KalmanRegulator, {"filter": kalman(), "gain": K, "drives": ["u"]}),
        "design.StateFeedback": Call(
            d.StateFeedback, {"linear": linear(), "gain": K, "sample_time": 0.05, "drives": ["u"]}
        ),
        "design.FunctionRegulator": Call(
            lambda **given: fl.closed_loop(model, d.FunctionRegulator(**given), trimmed, stop_time=0.1),
            {"function": lambda t, y: [0.0], "reads": ["x"], "drives": ["u"], "sample_time": 0.05},
        ),
        "design.EstimatorRegulator": Call(
            lambda **given: fl.closed_loop(model, d.EstimatorRegulator(**given), trimmed, stop_time=0.1),
            {"kf": estimator(), "law": gain},
        ),
        "regulator.answer": Call(gain.answer, {"t": 0.0, "read": np.zeros(2)}),
        "regulator.save": Call(gain.save, {"path": "law.c", "limits": {"u": (-1.0, 1.0)}, "precision": "double", "fmi": "2.0"}),
        # Native models.
        "models.OdeModel": Call(
            OdeModel,
            {"name": "m", "equations": {"x": "-k*x + u"}, "inputs": ["u"], "outputs": {"y": "x"},
             "parameters": {"k": 1.0}, "start": {"x": 1.0}, "constraints": [], "mass_matrix": [[1.0]],
             "algebraic": {}},
        ),
        "models.DaeModel": Call(
            DaeModel,
            {"name": "m", "equations": ["der(x) = -x + z", "z = u"], "states": ["x"], "algebraic": ["z"],
             "inputs": ["u"], "parameters": {}, "outputs": {"y": "x"}, "start": {"x": 1.0}},
        ),
        "models.FunctionModel": Call(
            lambda **given: fl.linearize(FunctionModel(**given)),
            {"name": "m", "states": {"x": 1.0}, "rates": lambda t, x, u: [-x[0]], "inputs": ["u"],
             "outputs": {"y": lambda t, x, u: x[0]}, "constraints": [], "parameters": {}, "analytic": False,
             "algebraic": {}},
        ),
        "models.LagrangeModel": Call(
            LagrangeModel,
            {"name": "m", "coordinates": {"q": "v"}, "mass_matrix": [["m"]], "forces": ["-k*q + u"], "constraints": [],
             "inputs": ["u"], "parameters": {"k": 1.0, "m": 1.0}, "outputs": {"y": "q"}, "start": {"q": 0.1}},
        ),
        "models.KaneEquations": Call(
            lambda **given: KaneModel("m", fl.models.KaneEquations(**given)),
            {"q": ["q"], "u": ["v"], "f_0": ["-der(q)"], "f_1": ["v"], "f_2": ["-der(v)"], "f_3": ["-q"]},
        ),
        "models.MultiplierModel": Call(MultiplierModel, {"model": chain}),
        "models.NullSpaceModel": Call(NullSpaceModel, {"model": chain, "threshold": 1e-10}),
        "models.der": Call(fl.models.der, {"state": "x"}),
        "models.Labels": Call(
            lambda **given: OdeModel("m", {"x": "-x"}, labels=fl.models.Labels(**given)),
            {"units": {"x": "m"}, "nominals": {"x": 1.0}, "descriptions": {"x": "text"}, "independent": ["x"],
             "description": "text"},
        ),
        "models.SymbolicConstraint": Call(
            lambda **given: OdeModel("m", {"x": "-x"}, constraints=[fl.models.SymbolicConstraint(**given)]),
            {"expression": "x - 1", "name": "c", "level": "position"},
        ),
    }  # fmt: skip


CALLS = cache(make_calls)
