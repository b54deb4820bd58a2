"""``fl.connect``: models wired together become one model, with events where members have them; sampled closed loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from fmilin.composition.delayed_system import DelayedSystem, WireDelay, delay_system, expand_delays
from fmilin.composition.hybrid_system import build_system
from fmilin.composition.linear_member import SampledMember, from_linear, linear_from_control
from fmilin.composition.sampled_system import SampledSystem, make_map
from fmilin.composition.system import ConnectedModel, SystemDeclaration
from fmilin.composition.system_declaration import (
    Connection,
    WireLink,
    in_member,
    resolve_inputs,
    resolve_links,
    resolve_outputs,
)
from fmilin.errors import UsageError
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.model.capabilities import (
    CutDelays,
)
from fmilin.model.interface import Model
from fmilin.model.stepping import Stepped
from fmilin.models.delayed_model import DelayedModel
from fmilin.models.map_model import MapModel
from fmilin.support.kinds import kinds_checked

if TYPE_CHECKING:
    from control import StateSpace, TransferFunction


__all__ = ["Connection", "build_member", "connect"]


@overload
def connect(
    members: Mapping[str, Model | LinearModel | StateSpace | TransferFunction],
    connections: Iterable[Connection | Sequence[str | float]] = (),
    *,
    inputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    name: str = "system",
    delays: None = None,
) -> ConnectedModel: ...
@overload
def connect(
    members: Mapping[str, Model | LinearModel | StateSpace | TransferFunction],
    connections: Iterable[Connection | Sequence[str | float]] = (),
    *,
    inputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    name: str = "system",
    delays: Mapping[str, float],
) -> DelayedSystem: ...
@kinds_checked
def connect(
    members: Mapping[str, Model | LinearModel | StateSpace | TransferFunction],
    connections: Iterable[Connection | Sequence[str | float]] = (),
    *,
    inputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    name: str = "system",
    delays: Mapping[str, float] | None = None,
) -> ConnectedModel | DelayedSystem:
    """Return models that are wired together as one model.

    It is a model like any other: states ``member.state``, the constraints of its members, exact derivatives through
    algebraic loops where all members have exact derivatives. ``linearize``, ``trim``, ``simulate``, ``verify``, exports
    and ``fmilin build`` take it. Closing it closes the members. Raises UsageError or UnknownNameError when a name is
    unknown, units do not fit, sizes differ, or an input is fed twice; NumericalError when an algebraic loop has no
    solution, or no single one: det(I - K D) = 0.

    Parameters
    ----------
    members : mapping of str to member
        By name: a :class:`~fmilin.Model` of any source, a :class:`~fmilin.LinearModel`, or a linear system of
        python-control. A co-simulation FMU is identified first. A sampled member holds its outputs between its samples:
        :func:`fmilin.sampled_loop`. With a map among them, as :class:`fmilin.models.DiscreteModel`, the result is a
        :class:`~fmilin.composition.sampled_system.SampledSystem`.
    connections : iterable of (source, target), (source, target, factor) or (source, target, factor, offset)
        ``("plant.y", "controller.u")``: an input gets factor times the output plus offset, after a conversion of units
        where both ends have one. An output may feed several inputs, an input takes one output. The name of an array
        means all its elements. :class:`Connection` says more.
    inputs : sequence of str, or mapping of str to str or sequence of str, optional
        Inputs of members that are inputs of the system; as a mapping, under names of their own. By default all that
        nothing feeds. Others stay at their start values.
    outputs : sequence of str, or mapping of str to str, optional
        Variables of members; by default all their outputs.
    name : str
        Of the system.
    delays : mapping of str to float, optional
        Dead time in seconds of what reaches inputs of members, ``{"plant.u": 0.02}``. The result is a
        :class:`~fmilin.composition.delayed_system.DelayedSystem`: it is trimmed and linearized, and linear models of it
        have these delays exactly. A member that is a linear model or a system with delays needs ``delays``, ``{}`` if
        no others are added.

    Examples
    --------
    >>> import control
    >>> import fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> spring = control.ss([], [], [], [[-3.0]], inputs=["x"], outputs=["force"])
    >>> plant = OdeModel("cart", {"s": "v", "v": "F"}, inputs=["F"], outputs={"x": "s"})
    >>> system = fl.connect({"cart": plant, "spring": spring}, [("cart.x", "spring.x"), ("spring.force", "cart.F")])
    >>> fl.linearize(system).A
    array([[ 0.,  1.],
           [-3.,  0.]])
    """
    if not isinstance(members, Mapping) or not members:
        raise UsageError("'members' must be a mapping of names to models, with at least one member.")
    models: dict[str, Model] = {}
    inner_links: list[WireLink] = []
    inner_delays: dict[tuple[str, str], WireDelay] = {}
    for member, source in members.items():
        if not isinstance(member, str) or not member:
            raise UsageError(f"The name of a member must be a text, not {member!r}.")
        with in_member(member):
            cut = None if delays is None else cut_member(source)
            models[member] = build_member(member, source if cut is None else cut.model)
        if cut is not None:
            more_links, more_delays = expand_delays(member, cut)
            inner_links += more_links
            inner_delays |= more_delays
    has_maps = any(isinstance(model, MapModel) for model in models.values())
    if has_maps:
        models = {
            member: make_map(model.linear) if isinstance(model, SampledMember) else model
            for member, model in models.items()
        }
    links = [*resolve_links(models, connections), *inner_links]
    feeds = resolve_inputs(models, links, inputs)
    chosen_outputs = resolve_outputs(models, outputs)
    if outputs is None:
        ends = {link.source for link in inner_links}
        chosen_outputs = [output for output in chosen_outputs if output.source not in ends]
    declaration = SystemDeclaration(name, models, links, feeds, chosen_outputs)
    system = SampledSystem(declaration) if has_maps else build_system(declaration)
    fed = {link.target for link in links} | {target for feed in feeds for target, _ in feed.targets}
    inner_delays = {end: delay for end, delay in inner_delays.items() if end in fed}
    return system if delays is None else delay_system(system, delays, inner_delays)


def cut_member(source: object) -> CutDelays | None:
    """Return a member that has delays without them, with inputs and outputs where they were; None if it has none."""
    if isinstance(source, DelayedLinearModel):
        core = from_linear(source.core)
        return CutDelays(core, core.start, list(source.delays), list(source.delays.values()), {})
    if not isinstance(source, (DelayedModel, DelayedSystem)):
        return None
    cut = source.cut_delays(source.start)
    if own_inputs := dict.fromkeys(cut.shared_inputs.values()):
        raise UsageError(
            f"'{source.info.name}' delays its own inputs ({', '.join(own_inputs)}) for some of its members: delay the "
            "connections to them instead."
        )
    return cut


def build_member(name: str, source: Any) -> Model:
    """Return what is connected as a model."""
    if isinstance(source, LinearModel):
        return SampledMember(source) if source.sample_time else from_linear(source)
    if isinstance(source, Stepped):
        from fmilin.linearization.linearize import linearize

        return from_linear(linearize(source))  # type: ignore[arg-type]
    if isinstance(source, (DelayedSystem, DelayedModel)):
        source.evaluate(0.0, source.start.states, source.start.inputs)  # raises: connect(..., delays={}) keeps delays
    if isinstance(source, Model):
        return source
    if isinstance(source, (str, bytes)) or hasattr(source, "__fspath__"):
        raise UsageError(f"The member '{name}' is a text or path: load it first, fl.load({str(source)!r}).")
    linear = linear_from_control(name, source)
    return SampledMember(linear) if linear.sample_time else from_linear(linear)
