"""Why a channel is zero: each reason is looked for by changing that one thing, and asking whether it answers then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fmilin.discovery.causes import CAUSES
from fmilin.discovery.channel import Channel, moves, without_errors
from fmilin.errors import UsageError
from fmilin.linearization.procedure import linearize
from fmilin.manifold.operating_points import model_at, operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.visits import one_at_a_time
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr


@dataclass(frozen=True, repr=False)
class Explanation(TableRepr):
    """Why an input does not move an output."""

    _attributes = ".kind, .culprits, .confirmed"

    input: str  #: by name
    output: str  #: by name
    #: ``"not zero"``, ``"held"``, ``"limit"``, ``"dead zone"``, ``"symmetry"``, ``"parameter"``, ``"point"``,
    #: ``"constraint"``, ``"no path"``
    kind: str
    culprits: tuple[str, ...]  #: the variables, parameters, constraints, members or wires that it is due to
    text: str  #: the same in words, with what to change
    confirmed: bool  #: whether the channel answers when that alone is changed

    @implemented_in("fmilin.report.designs:show_sentence")
    def _print_table(self, page: Sheet) -> None: ...

    def __str__(self) -> str:
        return f"{self.input} to {self.output}: {self.text}"


@one_at_a_time
def explain(model: Model, point: OperatingPoint | None, input: str, output: str) -> Explanation:  # noqa: A002
    """Say why an input does not move an output at a point.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        Where the model starts, for None.
    input, output : str
        Any output of :func:`fmilin.linearize` will do.

    Returns
    -------
    Explanation
        Found by asking again with one thing changed: members that hold their outputs, larger pushes, a symmetry broken,
        parameters that are zero, another point, a constraint less, a wire more. The first that opens the channel.

    Raises
    ------
    UnknownNameError
        With the nearest names.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> valve = OdeModel("valve", {"h": "-h + opening*p"}, inputs=["opening", "p"], outputs={"level": "h"})
    >>> why = fl.explain(valve, None, "opening", "level")
    >>> why.kind, why.culprits, why.confirmed
    ('point', ('p',), True)
    """
    point = operating_point(model) if point is None else point
    model = model_at(model, point)
    model.inputs.index_of(input, f"an input of '{model.info.name}'")
    model.with_interface(None, [output])  # refuses what is unknown
    return _explained(Channel(model, point, input, output))


@one_at_a_time
def explain_zeros(model: Model, point: OperatingPoint | None = None) -> tuple[Explanation, ...]:
    """Say why inputs move nothing, and why outputs are moved by nothing: one explanation for each.

    Raises UsageError when there are no inputs or no outputs.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        Where the model starts by default.

    Returns
    -------
    tuple of Explanation
        For each zero column the channel to the first output, for each zero row the channel from the first input; empty
        where every input moves something and every output is moved.
    """
    point = operating_point(model) if point is None else point
    model = model_at(model, point)
    if not len(model.inputs) or not len(model.outputs):
        raise UsageError(f"'{model.info.name}' has no inputs or no outputs: there is no channel to explain.")
    return tuple(_explained(channel) for channel in _zero_channels(model, point))


def _zero_channels(model: Model, point: OperatingPoint) -> Iterator[Channel]:

    linear = without_errors(linearize(model, point, keep_inaccurate=True, hold_modes=True))
    A, B, C, D = linear.A, linear.B, linear.C, linear.D
    inputs, outputs = model.inputs.names, model.outputs.names
    dead = [j for j in range(len(inputs)) if not moves((A, B[:, [j]], C, D[:, [j]]))]
    yield from (Channel(model, point, inputs[j], outputs[0]) for j in dead)
    for i, name in enumerate(outputs):
        if not moves((A, B, C[[i]], D[[i]])) and not (i == 0 and 0 in dead):
            yield Channel(model, point, inputs[0], name)


def _explained(channel: Channel) -> Explanation:
    about = Explanation(channel.input, channel.output, "not zero", (), "It is not zero at this point.", confirmed=True)
    if channel.answers():
        return about
    for cause in CAUSES:
        if (answer := cause(channel)) is not None:
            kind, culprits, text, confirmed = answer
            return replace(about, kind=kind, culprits=culprits, text=text, confirmed=confirmed)
    raise AssertionError("the last cause always answers")
