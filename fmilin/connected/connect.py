"""``fl.connect``: models wired together become one model, with events where members have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fmilin.connected.declaration import Connection, inputs_of, links_of, outputs_of
from fmilin.connected.linear_member import from_linear, linear_from_control
from fmilin.connected.names import in_member
from fmilin.connected.sampled_member import SampledMember
from fmilin.connected.system import ConnectedModel, Declaration
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.model.stepping import Hybrid, Passage, Stepped

__all__ = ["Connection", "HybridSystem", "connect", "member_of", "system_of"]


def system_of(declaration: Declaration) -> ConnectedModel:
    """Return the model; a :class:`Hybrid` one where a member is."""
    hybrid = any(isinstance(model, Hybrid) for model in declaration.members.values())
    return (HybridSystem if hybrid else ConnectedModel)(declaration)


class HybridSystem(ConnectedModel, Hybrid):
    """A connected system with members that have events."""

    def _hybrids(self) -> dict[str, Hybrid]:
        return {part.name: part.model for part in self.coupling.parts if isinstance(part.model, Hybrid)}

    def restart(self) -> None:
        """Return all members to the mode in which they start."""
        self.coupling.forget()
        for name, member in self._hybrids().items():
            with in_member(name):
                member.restart()

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Carry out what happens at a point in every member, with the inputs that stood just before."""
        return self._passed(t, x, u, lambda m, own, v: m.pass_event(t, own, v))

    def completed_step(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Tell every member that a step was accepted."""
        return self._passed(t, x, u, lambda m, own, v: m.completed_step(t, own, v))

    def _passed(
        self, t: float, x: FloatArray, u: FloatArray, act: Callable[[Any, FloatArray, FloatArray], Passage]
    ) -> Passage:
        passages = self._at_members(
            t, x, u, lambda model, own, v: act(model, own, v) if isinstance(model, Hybrid) else Passage(own)
        )
        self.coupling.forget()
        states = np.concatenate([np.empty(0), *(p.states for p in passages)])
        return Passage(states, any(p.wants_event for p in passages), any(p.terminates for p in passages))

    @property
    def remembers_mode(self) -> bool:
        """Whether every member does."""
        return all(member.remembers_mode for member in self._hybrids().values())

    def next_event_time(self) -> float | None:
        """Return when the first of the members' time events is due."""
        times = [t for member in self._hybrids().values() if (t := member.next_event_time()) is not None]
        return min(times, default=None)


def connect(
    members: Mapping[str, Any],
    connections: Iterable[Connection | Sequence[Any]] = (),
    *,
    inputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    name: str = "system",
) -> ConnectedModel:
    """Return models that are wired together as one model.

    It is a model like any other: states ``member.state``, the constraints of its members, exact derivatives through
    algebraic loops where all members have exact derivatives. ``linearize``, ``trim``, ``simulate``, ``verify``, exports
    and ``fmilin build`` take it.

    Parameters
    ----------
    members : mapping of str to member
        By name: a :class:`~fmilin.Model` of any source, a :class:`~fmilin.LinearModel`, or a linear system of
        python-control. A co-simulation FMU is identified first. What is sampled holds its outputs between its samples:
        :func:`fmilin.sampled_loop`.
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

    Returns
    -------
    Model
        Closing it closes the members.

    Raises
    ------
    UsageError, UnknownNameError
        When a name is unknown, units do not fit, sizes differ, or an input is fed twice.
    NumericalError
        When an algebraic loop has no solution, or no single one: det(I - K D) = 0.

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
        raise UsageError("'members' is a mapping of names to models, with one member at least.")
    models = {}
    for member, source in members.items():
        if not isinstance(member, str) or not member:
            raise UsageError(f"A member's name is a text, not {member!r}.")
        with in_member(member):
            models[member] = member_of(member, source)
    links = links_of(models, connections)
    feeds = inputs_of(models, links, inputs)
    return system_of(Declaration(name, models, links, feeds, outputs_of(models, outputs)))


def member_of(name: str, source: Any) -> Model:
    """Return what is connected as a model."""
    if isinstance(source, LinearModel):
        return SampledMember(source) if source.sample_time else from_linear(source)
    if isinstance(source, Stepped):
        from fmilin.linearization.procedure import linearize

        return from_linear(linearize(source))  # type: ignore[arg-type]
    if isinstance(source, Model):
        return source
    if isinstance(source, (str, bytes)) or hasattr(source, "__fspath__"):
        raise UsageError(f"The member '{name}' is a text or path: load it first, fl.load({str(source)!r}).")
    linear = linear_from_control(name, source)
    return SampledMember(linear) if linear.sample_time else from_linear(linear)
