"""The closed loop of a plant with sampled regulators, from sample to sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fmilin.connected.connect import system_of
from fmilin.connected.cosimulation import Cosimulation, Master, Member
from fmilin.connected.declaration import NO_CHANGE, Feed, Link, Wanted
from fmilin.connected.linear_member import at_rest, from_linear, with_outputs
from fmilin.connected.master import base_step
from fmilin.connected.names import qualified
from fmilin.connected.sampled_member import SampledMember
from fmilin.connected.system import ConnectedModel, Declaration
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import Signal, Signals
from fmilin.ground.tolerances import INSEPARABLE
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.procedure import linearize
from fmilin.manifold.operating_points import model_at, operating_point
from fmilin.model.interface import OperatingPoint
from fmilin.model.visits import one_at_a_time


@one_at_a_time
def sampled_loop(model: ConnectedModel, point: OperatingPoint | None = None) -> LinearModel:
    """Return the discrete linear model of a plant with sampled regulators, from sample to sample.

    The plant between two samples is exact: its outputs are read at t_k, every regulator answers at once, and what it
    answers is held until t_(k+1).

    Parameters
    ----------
    model : ConnectedModel
        With sampled members, which feed continuous members only. Where their sample times differ, the model is lifted
        over their common period: inputs are held over it.
    point : OperatingPoint, optional
        Where the system starts by default.

    Returns
    -------
    LinearModel
        With ``sample_time``; states of the plant, then of the regulators.

    Raises
    ------
    UsageError
        When this is no connected system, nothing is sampled, sample times have no common period, or one regulator
        feeds another.
    """
    if not isinstance(model, ConnectedModel):
        raise UsageError("A sampled loop needs a connected system: join plant and regulators with fl.connect first.")
    sampled = {name: m for name, m in model.members.items() if isinstance(m, SampledMember)}
    times = {m.linear.sample_time for m in sampled.values()}
    if not times:
        raise UsageError(f"No member of '{model.info.name}' is sampled: fl.linearize gives its linear model.")
    step, periods = base_step(sorted(times))
    point = operating_point(model) if point is None else point
    model = model_at(model, point)  # type: ignore[assignment]
    continuous, declaration = _split(model, sampled)
    plant = linearize(continuous, _plant_point(continuous, model, point))
    whole = system_of(replace(declaration, members={_PLANT: from_linear(plant), **sampled}))
    parts = {_PLANT: plant, **{name: m.linear for name, m in sampled.items()}}
    members = tuple(
        Member(part.name, with_outputs(own, [own.outputs.index_of(name) for name in part.model.outputs.names]))
        for part in whole.coupling.parts
        for own in (parts[part.name],)
    )
    master = Master("gauss-seidel", (*sampled, _PLANT))
    every = {name: periods[m.linear.sample_time] for name, m in sampled.items()}
    loop = Cosimulation(whole, operating_point(whole), master, step, plant, members, every)
    return _renamed(loop.linear, model)


_PLANT = "plant of the loop"


def approximated_loop(model: ConnectedModel, point: OperatingPoint) -> LinearModel:
    """Return a continuous approximation of the same, with :func:`continuous_law` for each regulator."""
    sampled = {name: m for name, m in model.members.items() if isinstance(m, SampledMember)}
    continuous, declaration = _split(model, sampled)
    plant = linearize(continuous, _plant_point(continuous, model, point))
    laws = {name: from_linear(continuous_law(m.linear)) for name, m in sampled.items()}
    return _renamed(linearize(system_of(replace(declaration, members={_PLANT: from_linear(plant), **laws}))), model)


def continuous_law(linear: LinearModel) -> LinearModel:
    """Return a sampled model, by Tustin's rule, w = s h/2, and Pade's (1 - s h/4)/(1 + s h/4) for what is held."""
    h, one, k = linear.sample_time, np.eye(len(linear.A)), len(linear.outputs)
    if np.linalg.cond(linear.A + one) > INSEPARABLE:
        raise UsageError(
            f"'{linear.model.name}' has a pole at z = -1, which no continuous system has: ask for L as it is."
        )
    M = np.linalg.inv(linear.A + one)
    A, B = 2 / h * M @ (linear.A - one), 4 / h * M @ linear.B
    C, D = linear.C @ M, linear.D - linear.C @ M @ linear.B
    held = Signals(Signal(f"hold of {s.name}", s.unit, s.nominal) for s in linear.outputs)
    matrices = (
        np.block([[A, np.zeros((len(A), k))], [8 / h * C, -4 / h * np.eye(k)]]),
        np.vstack((B, 8 / h * D)),
        np.hstack((-C, np.eye(k))),
        -D,
    )
    law = at_rest(linear.model, (Signals([*linear.states, *held]), linear.inputs, linear.outputs), matrices, 0.0)
    start = {s.name: 0.0 for s in held} | dict(zip(linear.states.names, linear.y0.tolist(), strict=True))
    y0 = np.concatenate((linear.y0, np.zeros(k)))
    return replace(law, y0=y0, point=replace(linear.point, states={s.name: start[s.name] for s in law.states}))


def _split(model: ConnectedModel, sampled: Mapping[str, SampledMember]) -> tuple[ConnectedModel, Declaration]:
    """Return the continuous members as a system of their own, and how the regulators are wired to it."""
    d = model.declaration
    inner = [link for link in d.links if link.source[0] not in sampled and link.target[0] not in sampled]
    held = [link for link in d.links if link.source[0] in sampled and link.target[0] not in sampled]
    read = [link for link in d.links if link.source[0] not in sampled and link.target[0] in sampled]
    if len(inner) + len(held) + len(read) < len(d.links):
        raise UsageError("One sampled regulator feeds another: join them to one first.")
    own = [f for f in (d.feeds[i] for i in model._chosen) if any(t[0] not in sampled for t, _ in f.targets)]
    feeds = [replace(f, targets=tuple(x for x in f.targets if x[0][0] not in sampled)) for f in own]
    feeds += [Feed(Signal(f"held {qualified(*k.target)}"), ((k.target, k.change),)) for k in held]
    shown = [w for w in d.wanted if w.source[0] not in sampled]
    sources = list(dict.fromkeys(link.source for link in read))
    wanted = [*shown, *(Wanted(f"read {qualified(*s)}", s) for s in sources)]
    members = {name: m for name, m in model.members.items() if name not in sampled}
    plant = system_of(Declaration(_PLANT, members, inner, feeds, wanted))
    links = [Link((_PLANT, f"read {qualified(*k.source)}"), k.target, k.change) for k in read]
    links += [Link(k.source, (_PLANT, f"held {qualified(*k.target)}"), NO_CHANGE) for k in held]
    outer = []
    for i in model._chosen:
        f = d.feeds[i]
        targets = [((_PLANT, f.signal.name), NO_CHANGE)] if any(t[0] not in sampled for t, _ in f.targets) else []
        targets += [x for x in f.targets if x[0][0] in sampled]
        outer.append(Feed(f.signal, tuple(targets)))
    out = [w if w.source[0] in sampled else Wanted(w.name, (_PLANT, w.name)) for w in d.wanted]
    return plant, Declaration(model.info.name, {}, links, outer, out)


def _plant_point(plant: ConnectedModel, model: ConnectedModel, point: OperatingPoint) -> OperatingPoint:
    at = model.coupling.settle(point.time, point.states, point.inputs)
    sources = {link.target: link.source for link in model.declaration.links}
    inputs = []
    for feed in plant.declaration.feeds:
        name = feed.signal.name
        if model.inputs.has(name):
            inputs.append(point.inputs[model.inputs.positions[name]])
        else:
            inputs.append(at.outputs[model._taps[sources[feed.targets[0][0]]]])
    return OperatingPoint(point.time, point.states, np.array(inputs, dtype=float), {})


def _renamed(linear: LinearModel, model: ConnectedModel) -> LinearModel:
    """Give the plant's states the names that they have in the system."""

    def own(signal: Signal) -> Signal:
        return replace(signal, name=signal.name.removeprefix(f"{_PLANT}."), aliases=())

    point = linear.point
    states = {name.removeprefix(f"{_PLANT}."): value for name, value in point.states.items()}
    y, x = (Signals(map(own, signals)) for signals in (linear.states, linear.full_states))
    return replace(linear, point=replace(point, states=states), states=y, full_states=x, model=model.info)
