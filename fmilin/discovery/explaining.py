"""Why a channel is zero: each possible reason is removed alone, and the channel evaluated again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Unpack

from fmilin.discovery.causes import CAUSES
from fmilin.discovery.channel import ExplainedChannel, clear_inaccurate_entries, has_response
from fmilin.discovery.limits import describe_limits
from fmilin.errors import UsageError
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import DerivativeOptions, takes_linearization
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr


@dataclass(frozen=True, repr=False)
class Explanation(TableRepr):
    """Why an input does not move an output, or what limits control where it does."""

    _attributes = ".kind, .culprits, .confirmed"

    input: str  #: by name
    output: str  #: by name
    #: ``"not zero"``, ``"held"``, ``"limit"``, ``"dead zone"``, ``"symmetry"``, ``"parameter"``, ``"point"``,
    #: ``"constraint"``, ``"no path"``
    kind: str
    culprits: tuple[str, ...]  #: the variables, parameters, constraints, members or wires that it is due to
    text: str  #: the same in words, with what to change
    confirmed: bool  #: whether the channel answers when that alone is changed
    #: of a channel that is not zero its transmission zeros, in 1/s or in z; ``text`` says what they do to controllers
    zeros: tuple[complex, ...] = ()

    @implemented_in("fmilin.report.designs:show_sentence")
    def _print_table(self, page: Sheet) -> None: ...

    def __str__(self) -> str:
        return f"{self.input} to {self.output}: {self.text}"


@one_at_a_time
@takes_linearization
def explain(
    model: Model,
    point: OperatingPoint | None,
    input: str,  # noqa: A002
    output: str,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[DerivativeOptions],
) -> Explanation:
    """Say why an input does not move an output at a point.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        Where the model starts, for None.
    input, output : str
        Any output of :func:`fmilin.linearize` will do.
    linearization : Linearization, optional
        How derivatives are taken; its options may be keywords instead.

    Returns
    -------
    Explanation
        Found by asking again with one thing changed: members that hold their outputs, larger pushes, a symmetry broken,
        parameters that are zero, another point, a constraint less, a wire more. The first that opens the channel.
        Of a channel that answers the kind is ``"not zero"``, and the text says what its zeros do to every controller.

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
    model = apply_point_parameters(model, point)
    model.inputs.index_of(input, f"an input of '{model.info.name}'")
    model.with_interface(None, [output])  # rejects what is unknown
    request = _build_request("explain", linearization, options)
    return _explain_channel(ExplainedChannel(model, point, input, output, request))


def _build_request(function: str, linearization: Linearization | None, options: Mapping[str, object]) -> Request:
    """Return how channels are linearized: in their present modes, and inaccurate entries do not matter."""
    request = Request.of(function, linearization, options)
    return replace(request, keep_inaccurate=True, hold_modes=True)


@one_at_a_time
@takes_linearization
def explain_zeros(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[DerivativeOptions],
) -> tuple[Explanation, ...]:
    """Say why inputs move nothing, and why outputs are moved by nothing: one explanation for each.

    Raises UsageError when there are no inputs or no outputs.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        Where the model starts by default.
    linearization : Linearization, optional
        How derivatives are taken; its options may be keywords instead.

    Returns
    -------
    tuple of Explanation
        For each zero column the channel to the first output, for each zero row the channel from the first input; empty
        where every input moves something and every output is moved.
    """
    point = operating_point(model) if point is None else point
    model = apply_point_parameters(model, point)
    if not len(model.inputs) or not len(model.outputs):
        raise UsageError(f"'{model.info.name}' has no inputs or no outputs: there is no channel to explain.")
    request = _build_request("explain_zeros", linearization, options)
    return tuple(_explain_channel(channel) for channel in _list_zero_channels(model, point, request))


def _list_zero_channels(model: Model, point: OperatingPoint, request: Request) -> Iterator[ExplainedChannel]:
    linear = clear_inaccurate_entries(linearize_request(model, point, request))
    A, B, C, D = linear.A, linear.B, linear.C, linear.D
    inputs, outputs = model.inputs.names, model.outputs.names
    inactive = [j for j in range(len(inputs)) if not has_response((A, B[:, [j]], C, D[:, [j]]))]
    yield from (ExplainedChannel(model, point, inputs[j], outputs[0], request) for j in inactive)
    for i, name in enumerate(outputs):
        if not has_response((A, B, C[[i]], D[[i]])) and not (i == 0 and 0 in inactive):
            yield ExplainedChannel(model, point, inputs[0], name, request)


def _explain_channel(channel: ExplainedChannel) -> Explanation:
    explanation = Explanation(
        channel.input, channel.output, "not zero", (), "It is not zero at this point.", confirmed=True
    )
    if channel.responds():
        linear = channel.linearize()
        if linear is None or not len(linear.states):
            return explanation
        text = " ".join((explanation.text, *describe_limits(linear)))
        return replace(explanation, text=text, zeros=tuple(linear.zeros().tolist()))
    for cause in CAUSES:
        if (answer := cause(channel)) is not None:
            kind, culprits, text, confirmed = answer
            return replace(explanation, kind=kind, culprits=culprits, text=text, confirmed=confirmed)
    raise AssertionError("the last cause always answers")
