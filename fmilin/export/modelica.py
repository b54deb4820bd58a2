"""The linear model as a Modelica model: y' = f0 + A (y - y0) + B (u - u0), out = g0 + C (y - y0) + D (u - u0).

A sampled model becomes a when-clause; deviations leave out f0. Programs find the point in the annotation ``__fmilin``.
Names become identifiers that are legal, different from each other, and still readable.

>>> identifiers(["body.r[1]", "body_r_1", "der(w)", "größe", "φ", "time", "2x"])
['body_r_1_2', 'body_r_1', 'der_w', 'groesse', 'phi', 'time_', 'x_2x']
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.errors import UsageError
from fmilin.export.for_people import by_name
from fmilin.export.linear_record import POINT_PARTS, require_writable
from fmilin.formats import Writing
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.version import __version__

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """algorithm and annotation assert block break class connect connector constant constrainedby der discrete each
        else elseif elsewhen encapsulated end enumeration equation expandable extends external false final flow for
        function if import impure in initial inner input loop model not operator or outer output package parameter
        partial protected public pure record redeclare replaceable return stream then true type when while within
        abs acos actualStream asin atan atan2 ceil change cosh cos cross delay diagonal div edge exp fill floor
        getInstanceName homotopy identity inStream integer linspace log log10 matrix max min mod ndims noEvent ones
        outerProduct pre product reinit rem sample scalar semiLinear sign sin sinh size skew smooth
        spatialDistribution sqrt String sum symmetric tan tanh terminal terminate time transpose vector zeros
        Real Integer Boolean Modelica""",
    )
)
"""Keywords and what Modelica itself calls by a name."""

_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
_GREEK = re.compile(r"GREEK (?:SMALL|CAPITAL) LETTER (?:FINAL )?(\w+)")
_IDENT = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_MAX_NAME_CHARACTERS = 200


def identifiers(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return an identifier per name: itself where legal, else a similar one, with a number where that is taken."""
    used = set(taken)
    legal = {name for name in names if name not in used and _is_legal(name)}
    used |= legal
    result = []
    for name in names:
        if name in legal:
            result.append(name)
            continue
        base = identifier(name)
        candidate, number = base, 1
        while candidate in used:
            number += 1
            candidate = f"{base.rstrip('_')}_{number}"
        used.add(candidate)
        result.append(candidate)
    return result


def identifier(name: str) -> str:
    """Return the identifier that says ``name`` best."""
    if _is_legal(name):
        return name
    plain = "".join(_plain(c) for c in unicodedata.normalize("NFC", name).translate(_SPELLED))
    base = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_]+", "_", plain)).strip("_")
    if not base or base[0].isdigit():
        base = f"x_{base}".rstrip("_")
    if len(base) > _MAX_NAME_CHARACTERS:
        base = f"{base[: _MAX_NAME_CHARACTERS // 2]}_{base[-_MAX_NAME_CHARACTERS // 2 :]}"
    return f"{base}_" if base in RESERVED else base


def _is_legal(name: str) -> bool:
    return bool(_IDENT.fullmatch(name)) and name not in RESERVED and len(name) <= _MAX_NAME_CHARACTERS


def _plain(char: str) -> str:
    """Return a character in ASCII: without its accent, by the name of a Greek letter, or by its number."""
    if char.isascii():
        return char
    stripped = "".join(c for c in unicodedata.normalize("NFKD", char) if c.isascii() and c.isalnum())
    if stripped:
        return stripped
    if greek := _GREEK.match(unicodedata.name(unicodedata.normalize("NFD", char)[0], "")):
        word = greek.group(1).lower()
        return word.capitalize() if char.isupper() else word
    return f"u{ord(char):04X}" if char.isalnum() else "_"


_RESERVED_NAMES = ("A", "B", "C", "D", "f0", "x0", "u0", "g0", "x", "u", "g", "y")
_FACTOR = r"[A-Za-z]+(?:[+-]?[0-9]+)?"
_PRODUCT = rf"{_FACTOR}(?:\.{_FACTOR})*"
_LEGAL_UNIT = re.compile(rf"(?:1|{_PRODUCT}|\({_PRODUCT}\))(?:/(?:{_FACTOR}|\({_PRODUCT}\)))?")
"""Modelica 3.6, section 19.1: N.m, m/s2, kg.m2/(s.rad), 1/min."""
_WIDTH = 110


@dataclass(frozen=True)
class _Names:
    states: list[str]
    inputs: list[str]
    outputs: list[str]
    delays: list[str]  # of the last inputs, which are the last outputs a delay ago


def dumps(linear: LinearModel, writing: Writing) -> bytes:
    """Return the file's content: one model, called like the file."""
    return _dumps(linear, writing, {})


def dumps_delayed(linear: DelayedLinearModel, writing: Writing) -> bytes:
    """Return the same of a model with delays: the model between them, and ``delay(...)``."""
    return _dumps(linear.core, writing, linear.delays)


def _dumps(linear: LinearModel, writing: Writing, delays: Mapping[str, float]) -> bytes:
    require_writable(linear)
    if not writing.deviation:
        _require_values("input", linear.inputs, linear.point.inputs)
        _require_values("output", linear.outputs, linear.point.outputs)
    interface_names = {
        *linear.inputs.names,
        *linear.outputs.names,
    }  # an output often has the name of the state that it shows
    states = [f"{name}.state" if name in interface_names else name for name in linear.states.names]
    order = [*linear.inputs.names, *linear.outputs.names, *states, *(f"{name} delay" for name in delays)]
    reserved_names = _RESERVED_NAMES if _is_sampled(linear) or writing.modelica == "equations" else _RESERVED_NAMES[:8]
    legal = identifiers(order, [*reserved_names, identifier(writing.name)])
    n_u, n_y = len(linear.inputs), len(linear.outputs)
    n_x = len(states)
    names = _Names(
        states=legal[n_u + n_y : n_u + n_y + n_x],
        inputs=legal[:n_u],
        outputs=legal[n_u : n_u + n_y],
        delays=legal[n_u + n_y + n_x :],
    )
    return ("\n".join(_lines(linear, writing, names, delays)) + "\n").encode("utf-8")


def _require_values(kind: str, signals: Signals, values: Mapping[str, float]) -> None:
    if unknown := [name for name in signals.names if not np.isfinite(values.get(name, 0.0))]:
        raise UsageError(
            f"A Modelica model in absolute values needs the operating point, but the {kind} '{unknown[0][:70]}' is "
            "not a number there. Write deviations instead: deviation=True."
        )


def _is_sampled(linear: LinearModel) -> bool:
    return linear.sample_time > 0


def _lines(linear: LinearModel, writing: Writing, names: _Names, delays: Mapping[str, float]) -> Iterator[str]:
    name = identifier(writing.name)
    yield "within ;"
    yield f"model {name} {_string(f'Linear model of {linear.model.name}')}"
    yield from _connectors("input", linear, writing, names)
    yield from _connectors("output", linear, writing, names)
    yield from _declare_delays(linear, names, delays)
    yield from _states(linear, writing, names)
    yield from _parameters(linear, writing)
    yield "equation"
    yield from (
        _write_sampled_equations(linear, writing, names) if _is_sampled(linear) else _equations(linear, writing, names)
    )
    first_input, first_output = len(names.inputs) - len(delays), len(names.outputs) - len(delays)
    for behind, before, delay in zip(
        names.inputs[first_input:], names.outputs[first_output:], names.delays, strict=True
    ):
        yield f"  {behind} = delay({before}, {delay});"
    yield from _annotation(linear, writing)
    yield f"end {name};"


def _connectors(kind: str, linear: LinearModel, writing: Writing, names: _Names) -> Iterator[str]:
    signals, legal = (linear.inputs, names.inputs) if kind == "input" else (linear.outputs, names.outputs)
    blocks = writing.modelica == "blocks"
    declared = f"Modelica.Blocks.Interfaces.Real{kind.capitalize()}" if blocks else f"{kind} Real"
    count = len(legal) - len(names.delays)
    for i, (signal, name) in enumerate(zip(signals[:count], legal[:count], strict=True)):
        # An unconnected input stays at the operating point.
        start = 0.0 if writing.deviation else linear.point.inputs.get(signal.name, 0.0)
        modified = _format_modifiers(signal, f"start = {_number(start)}" if kind == "input" else "")
        placed = _place_connector(kind, i, count, blocks=blocks)
        yield f"  {declared} {name}{modified} {_describe_signal(signal)}{placed};"


def _declare_delays(linear: LinearModel, names: _Names, delays: Mapping[str, float]) -> Iterator[str]:
    """Declare the signals at both ends of each delay, and its time as a parameter."""
    first_input, first_output = len(names.inputs) - len(delays), len(names.outputs) - len(delays)
    for k, (seconds, name) in enumerate(zip(delays.values(), names.delays, strict=True)):
        behind, before = names.inputs[first_input + k], names.outputs[first_output + k]
        yield f"  Real {behind} {_describe_signal(linear.inputs[first_input + k])};"
        yield f"  Real {before} {_describe_signal(linear.outputs[first_output + k])};"
        yield f'  parameter Real {name}(unit = "s", min = 0) = {_number(seconds)} "delay in s";'


def _place_connector(kind: str, i: int, count: int, *, blocks: bool) -> str:
    if not blocks:
        return ""
    y = round(100 - 200 * (i + 0.5) / count, 1)
    left_edge, right, half = (-140, -100, 20) if kind == "input" else (100, 120, 10)
    box = f"{{{{{left_edge}, {y - half:g}}}, {{{right}, {y + half:g}}}}}"
    return f"\n    annotation (Placement(transformation(extent = {box})))"


def _states(linear: LinearModel, writing: Writing, names: _Names) -> Iterator[str]:
    starts = np.zeros(len(linear.states)) if writing.deviation else linear.y0
    as_vector = _is_sampled(linear) or writing.modelica == "equations"
    if as_vector and len(starts):
        discrete = "discrete " if _is_sampled(linear) else ""
        yield f"  {discrete}Real x[{len(starts)}](start = {_vector(starts)}, each fixed = true);"
    for i, (signal, name) in enumerate(zip(linear.states, names.states, strict=True)):
        modified = _format_modifiers(signal, "" if as_vector else f"start = {_number(starts[i])}, fixed = true")
        value = f" = x[{i + 1}]" if _is_sampled(linear) else ""
        yield f"  Real {name}{modified}{value} {_describe_signal(signal)};"


def _parameters(linear: LinearModel, writing: Writing) -> Iterator[str]:
    if _is_sampled(linear) or writing.modelica == "equations":
        output = "discrete Real g" if _is_sampled(linear) else "Real y"
        for vector, signals in (("Real u", linear.inputs), (output, linear.outputs)):
            if len(signals):
                yield f"  {vector}[{len(signals)}];"
    for letter in "ABCD":
        matrix = getattr(linear, letter)
        if matrix.size:
            rows = "; ".join(_break_lines([_number(v) for v in row]) for row in matrix.tolist())
            yield f"  parameter Real {letter}[{matrix.shape[0]}, {matrix.shape[1]}] = [{rows}];"
    vectors = (
        ("f0", linear.f0, "rate"),
        ("x0", linear.y0, "states"),
        ("u0", by_name(linear.point.inputs, linear.inputs.names), "inputs"),
        ("g0", by_name(linear.point.outputs, linear.outputs.names), "outputs"),
    )
    for name, values, what in vectors:
        if len(values) and not writing.deviation:
            described = _string(f"{what} at the operating point")
            yield f"  parameter Real {name}[{len(values)}] = {_vector(values)} {described};"


def _equations(linear: LinearModel, writing: Writing, names: _Names) -> Iterator[str]:
    if writing.modelica == "equations":
        yield from _vector_equations(linear, writing, names)
        return
    x, u = _list(names.states), _list(names.inputs)
    if names.states:
        rates = _list([f"der({name})" for name in names.states])
        yield f"  {rates} = {_linear_terms('AB', x, u, writing, 'f0')};"
    if names.outputs:
        yield f"  {_list(names.outputs)} = {_output(linear, x, u, writing)};"


def _vector_equations(linear: LinearModel, writing: Writing, names: _Names) -> Iterator[str]:
    """Write them with vectors alone: some translators take no lists of scalars on the left or with a matrix."""
    for i, name in enumerate(names.inputs):
        yield f"  u[{i + 1}] = {name};"
    x, u = "x" * bool(names.states), "u" * bool(names.inputs)
    if names.states:
        yield f"  der(x) = {_linear_terms('AB', x, u, writing, 'f0')};"
    if names.outputs:
        yield f"  y = {_output(linear, x, u, writing)};"
    for vector, aliases in (("x", names.states), ("y", names.outputs)):
        for i, name in enumerate(aliases):
            yield f"  {name} = {vector}[{i + 1}];"


def _write_sampled_equations(linear: LinearModel, writing: Writing, names: _Names) -> Iterator[str]:
    x, u = ("pre(x)" if names.states else ""), ("u" if names.inputs else "")
    if names.inputs:
        yield f"  u = {_list(names.inputs)};"
    if names.states or names.outputs:
        yield f"  when sample({_number(_start_time(linear))}, {_number(linear.sample_time)}) then"
        if names.states:
            yield f"    x = {_linear_terms('AB', x, u, writing, 'x0 + f0')};"
        if names.outputs:
            yield f"    g = {_output(linear, x, u, writing)};"
        yield "  end when;"
    if names.outputs:
        yield f"  {_list(names.outputs)} = g;"


def _output(linear: LinearModel, x: str, u: str, writing: Writing) -> str:
    return _linear_terms("CD", x, u, writing, "g0") or f"zeros({len(linear.outputs)})"


def _linear_terms(letters: str, x: str, u: str, writing: Writing, origin: str) -> str:
    """Return ``origin + A*(x - x0) + B*(u - u0)``; for deviations ``A*x + B*u``."""
    terms = [(letters[0], x, "x0"), (letters[1], u, "u0")]
    products = [f"{M}*{v if writing.deviation else f'({v} - {v0})'}" for M, v, v0 in terms if v]
    return " + ".join(products if writing.deviation else [origin, *products])


def _annotation(linear: LinearModel, writing: Writing) -> Iterator[str]:
    point, start = linear.point, _start_time(linear)
    yield "  annotation ("
    if writing.modelica == "blocks":
        yield "    Icon(graphics = {Rectangle(extent = {{-100, -100}, {100, 100}}, lineColor = {0, 0, 127}),"
        yield '      Text(extent = {{-90, 20}, {90, -20}}, textString = "%name")}),'
    yield f"    experiment(StartTime = {_number(start)}, StopTime = {_number(start + 1.0)}),"
    yield f"    Documentation(info = {_string(_information(linear, writing))}),"
    fields = [
        f"version = {_string(__version__)}",
        f"source = {_string(linear.model.name)}",
        f"guid = {_string(linear.model.guid)}",
        f"time = {_number(start)}",
        f"sample_time = {_number(linear.sample_time)}",
        f"deviation = {str(writing.deviation).lower()}",
    ]
    for part in POINT_PARTS:
        values = {name: v for name, v in getattr(point, part).items() if np.isfinite(v)}  # Modelica has no others
        if values:
            fields.append(f"{part} = {{{', '.join(map(_string, values))}}}")
            fields.append(f"{part}_values = {_vector(np.array(list(values.values()), dtype=float))}")
    yield "    __fmilin(" + ",\n      ".join(fields) + "));"


def _information(linear: LinearModel, writing: Writing) -> str:
    kind = "deviations from the operating point" if writing.deviation else "absolute values"
    lines = [
        f"<html><p>Made by fmilin {__version__}; {len(linear.states)} of {len(linear.full_states)} states are "
        f"independent. Signals are {kind}. Operating point at t = {linear.point.time:.9g} s:</p><table>"
    ]
    units = {s.name: s.unit for group in (linear.full_states, linear.inputs, linear.outputs) for s in group}
    for part in POINT_PARTS:
        for name, value in getattr(linear.point, part).items():
            cells = (part[:-1], name, f"{value:.9g}", units.get(name, ""))
            lines.append("<tr>" + "".join(f"<td>{html.escape(cell, quote=False)}</td>" for cell in cells) + "</tr>")
    lines.append("</table>")
    lines += [f"<p>{html.escape(str(w), quote=False)}</p>" for w in linear.warnings]
    return "\n".join([*lines, "</html>"])


def _unit(signal: Signal) -> str:
    return f'unit = "{signal.unit}"' if _LEGAL_UNIT.fullmatch(signal.unit) else ""


def _format_modifiers(signal: Signal, attributes: str) -> str:
    modifiers = ", ".join(filter(None, (attributes, _unit(signal))))
    return f"({modifiers})" if modifiers else ""


def _describe_signal(signal: Signal) -> str:
    words = signal.name if not signal.description else f"{signal.name}: {signal.description}"
    if signal.unit and not _unit(signal):
        words += f" [{signal.unit}]"
    return _string(words)


def _start_time(linear: LinearModel) -> float:
    return linear.point.time if np.isfinite(linear.point.time) else 0.0


def _vector(values: FloatArray) -> str:
    return _list([_number(v) for v in values.tolist()])


def _list(items: Sequence[str]) -> str:
    return f"{{{_break_lines(items)}}}" if items else ""


def _break_lines(items: Sequence[str]) -> str:
    """Join at commas, on lines that an editor can show."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) > _WIDTH:
            lines.append("")
        lines[-1] += item + ", "
    return "\n    ".join(line.rstrip() for line in lines).removesuffix(",")


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(value: float) -> str:
    return repr(float(value))
