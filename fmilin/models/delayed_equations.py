"""``delay(x, T)`` in the texts of equations: read before anything else, and replaced by inputs.

Each delayed expression x becomes an output z of the model, and ``delay(x, T)`` an input w(t) = z(t - T). T may contain
numbers and parameters; x may contain delays itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fmilin.constraints.expressions import Expression, name_in_expression, parse
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model

_CALL = re.compile(r"(?<![\w.`])delay\s*\(")
_PAIRS = {"(": ")", "[": "]"}


def has_delay(source: Any) -> bool:
    """Whether texts in a source of equations contain ``delay(x, T)``."""
    if isinstance(source, str):
        return "delay" in source and any(_is_outside_quotes(source, m.start()) for m in _CALL.finditer(source))
    if isinstance(source, Mapping):
        return any(map(has_delay, source.values()))
    return isinstance(source, list | tuple) and any(map(has_delay, source))


def _is_outside_quotes(text: str, position: int) -> bool:
    return text.count("`", 0, position) % 2 == 0


@dataclass
class DelayTable:
    """The delays that were read so far."""

    model: str
    seconds: dict[str, str] = field(default_factory=dict)  # T as text, by channel
    before: dict[str, str] = field(default_factory=dict)  # the delayed expression over delayed signals, by channel
    undelayed: dict[str, str] = field(default_factory=dict)  # the same without delays
    _names: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, written: str, before: str, undelayed: str, seconds: str) -> str:
        """Return the name of the channel that delays an expression by so many seconds."""
        from fmilin.linear_model.delay_channels import name_channel

        key = (before, seconds)
        if key not in self._names:
            channel = name_channel(written, list(self.seconds))
            self._names[key] = channel
            self.seconds[channel], self.before[channel], self.undelayed[channel] = seconds, before, undelayed
        return self._names[key]

    def split(self, text: str) -> tuple[str, str]:
        """Return a text with delayed signals as variables, and the same without delays."""
        from fmilin.linear_model.delay_channels import name_ends

        cut, undelayed, position = "", "", 0
        for match in _CALL.finditer(text):
            if match.start() < position or not _is_outside_quotes(text, match.start()):
                continue  # inside of a delay that was read already
            arguments, end = self._read_arguments(text, match.end())
            if len(arguments) != 2 or not all(argument.strip() for argument in arguments):
                raise UsageError(
                    f"'{text}' of the model '{self.model}': delay takes an expression and a time, delay(x, 0.1)."
                )
            inner_cut, inner_undelayed = self.split(arguments[0].strip())
            channel = self.add(arguments[0].strip(), inner_cut, inner_undelayed, arguments[1].strip())
            between = text[position : match.start()]
            cut += between + name_in_expression(name_ends(channel)[0])
            undelayed += f"{between}({inner_undelayed})"
            position = end
        return cut + text[position:], undelayed + text[position:]

    def _read_arguments(self, text: str, start: int) -> tuple[list[str], int]:
        """Return the arguments of a call that begins behind its parenthesis, and where it ends."""
        arguments: list[str] = []
        depth, first, quoted = 0, start, False
        for position in range(start, len(text)):
            character = text[position]
            quoted ^= character == "`"
            if quoted:
                continue
            if character == ")" and depth == 0:
                return [*arguments, text[first:position]], position + 1
            if character == "," and depth == 0:
                arguments.append(text[first:position])
                first = position + 1
            depth += (character in _PAIRS) - (character in _PAIRS.values())
        raise UsageError(f"'{text}' of the model '{self.model}': a parenthesis of delay(x, T) is not closed.")

    def replace(self, source: Any, *, cut: bool) -> Any:
        """Return a source of equations with the delays in its texts replaced; containers stay what they are."""
        if isinstance(source, str):
            return self.split(source)[0 if cut else 1]
        if isinstance(source, Mapping):
            return {key: self.replace(value, cut=cut) for key, value in source.items()}
        if isinstance(source, list | tuple):
            return [self.replace(value, cut=cut) for value in source]
        return source


def build_delayed_model(
    name: str, equations: Mapping[str, Any], options: Mapping[str, Any], build: Callable[[Mapping[str, Any]], Model]
) -> Model:
    """Return the model of equations with delays in their texts.

    Parameters
    ----------
    name : str
    equations : mapping
        The arguments of the constructor that may contain delays, by name.
    options : mapping
        Its other arguments.
    build : callable
        Returns the model without delays that such arguments describe.
    """
    from fmilin.linear_model.delay_channels import name_ends
    from fmilin.models.delayed_model import DelayedModel

    for keyword in ("constraints", "start", "parameters"):
        if has_delay(options.get(keyword)):
            raise UsageError(
                f"'{keyword}' of the model '{name}' contain a delay: delays stand in equations and outputs only."
            )
    table = DelayTable(name)
    cut = {key: table.replace(source, cut=True) for key, source in equations.items()}
    undelayed = {key: table.replace(source, cut=False) for key, source in equations.items()}
    ends = {channel: name_ends(channel) for channel in table.seconds}
    outputs_without = {ends[channel][1]: text for channel, text in table.undelayed.items()}
    outputs_between = {ends[channel][1]: text for channel, text in table.before.items()}
    outputs = undelayed.pop("outputs", None) or {}
    without = build({**options, **undelayed, "outputs": {**outputs, **outputs_without}})
    start = without.start
    values = without.evaluate(start.time, start.states, start.inputs).outputs[len(outputs) :]
    behind = [ends[channel][0] for channel in table.seconds]
    outputs = cut.pop("outputs", None) or {}
    between = build(
        {
            **options,
            **cut,
            "outputs": {**outputs, **outputs_between},
            "inputs": [*(options.get("inputs") or ()), *behind],
            "start": {**(options.get("start") or {}), **dict(zip(behind, values.tolist(), strict=True))},
        }
    )
    times = [_read_time(name, channel, seconds) for channel, seconds in table.seconds.items()]
    parameters = {str(key) for key in options.get("parameters") or {}}
    for (channel, seconds), time in zip(table.seconds.items(), times, strict=True):
        if unknown := [variable for variable in time.names if variable not in parameters]:
            raise UsageError(
                f"delay({channel}, {seconds}) of the model '{name}': the time contains '{unknown[0]}', and may contain "
                "numbers and parameters only."
            )

    def compute_seconds(values: Mapping[str, float]) -> Sequence[float]:
        return [_evaluate(time, values) for time in times]

    follow = any(time.names for time in times)
    return DelayedModel(without, between, list(table.seconds), compute_seconds, delays_follow_parameters=follow)


def _read_time(name: str, channel: str, text: str) -> Expression:
    if has_delay(text):
        raise UsageError(f"The time of the delay of '{channel}' in the model '{name}' contains a delay itself.")
    return parse(text)


def _evaluate(time: Expression, values: Mapping[str, float]) -> float:
    import sympy

    return float(time.to_sympy({name: sympy.Float(values[name], 17) for name in time.names}))
