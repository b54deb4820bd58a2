"""The linear model in LaTeX, to be read into a report: tables of signals and modes, and the matrices.

The file is no document of its own; it needs the packages amsmath and longtable, and for names in other alphabets an
engine with such fonts (LuaLaTeX, XeLaTeX).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fmilin.ground.signals import Signals
from fmilin.ground.version import __version__
from fmilin.linear_model.model import LinearModel
from fmilin.output.export.document import to_document
from fmilin.output.export.matrices import Sheet, sheets, short
from fmilin.output.report.numbers import rounded, shortened

__all__ = ["dumps"]

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "[": "{[}", "]": "{]}", "°": r"\textdegree{}", "·": r"\textperiodcentered{}",
}  # fmt: skip
_MARKED = re.compile("|".join(map(re.escape, _SPECIAL)))
_MOST_COLUMNS = 10
"""What a bmatrix takes, unless the counter MaxMatrixCols is raised."""


def dumps(linear: LinearModel) -> bytes:
    r"""Return the file's content, for ``\input{plant}``: six digits, which nothing reads back."""
    to_document(linear)  # refuses what no file should carry
    return ("\n".join(_lines(linear)) + "\n").encode("utf-8")


def _lines(linear: LinearModel) -> Iterator[str]:
    yield f"% Linear model of {_line(linear.model.name)}, made by fmilin {__version__}."
    yield "% In the preamble: \\usepackage{amsmath,longtable,textcomp}"
    yield from _equation(linear)
    yield f"at $t = {short(linear.point.time)}\\,\\mathrm{{s}}$:"
    yield from _signals(linear)
    yield from _modes(linear)
    widest = max((s.matrix.shape[1] for s in sheets(linear)), default=0)
    if widest > _MOST_COLUMNS:
        yield f"\\setcounter{{MaxMatrixCols}}{{{widest}}}"
    for sheet in sheets(linear):
        yield from _matrix(sheet)
    for warning in linear.warnings:
        yield f"\n{_text(str(warning))}"


def _equation(linear: LinearModel) -> Iterator[str]:
    yield "\\begin{align*}"
    follows = " + T_u\\,(u - u_0)" if linear.T_u.any() else ""
    if linear.sample_time > 0:
        follows = follows.replace("u -", "u_k -")
        yield "  y_{k+1} &= y_0 + f_0 + A\\,(y_k - y_0) + B\\,(u_k - u_0), &"
        yield f"  h &= {short(linear.sample_time)}\\,\\mathrm{{s}}, \\\\"
        yield "  z_k &= z_0 + C\\,(y_k - y_0) + D\\,(u_k - u_0), & x_k &= x_0 + T\\,(y_k - y_0)" + follows
    else:
        yield "  \\dot y &= f_0 + A\\,(y - y_0) + B\\,(u - u_0), \\\\"
        yield "  z &= z_0 + C\\,(y - y_0) + D\\,(u - u_0), & x &= x_0 + T\\,(y - y_0)" + follows
    yield "\\end{align*}"


def _signals(linear: LinearModel) -> Iterator[str]:
    yield "\\begin{longtable}{llrl}"
    yield "  & signal & at the point & unit \\\\ \\hline"
    coordinates = dict(zip(linear.states.names, linear.y0.tolist(), strict=True))
    groups: list[tuple[str, Signals, Mapping[str, float]]] = [
        ("coordinates $y$", linear.states, coordinates),
        ("inputs $u$", linear.inputs, linear.point.inputs),
        ("outputs $z$", linear.outputs, linear.point.outputs),
    ]
    for title, signals, values in groups:
        for i, signal in enumerate(signals):
            value = f"${_number(values[signal.name])}$" if signal.name in values else ""
            yield f"  {'' if i else title} & {_text(signal.name)} & {value} & {_text(signal.unit)} \\\\"
    yield "\\end{longtable}"


def _modes(linear: LinearModel) -> Iterator[str]:
    if not len(linear.states):
        return
    yield "\\begin{longtable}{rrrr}"
    whose = " of the sampled motion" if linear.sample_time > 0 else ""
    yield f"  eigenvalue [1/s]{whose} & frequency [rad/s] & [Hz] & damping ratio \\\\ \\hline"
    for mode in linear.modes():
        value = rounded(mode.eigenvalue, 6)
        cells: Sequence[str] = (f"${_number(value.real)}$", "", "", "")
        if mode.is_oscillatory:
            real = "" if value.real == 0 else _number(value.real)
            damping = -rounded(mode.eigenvalue).real / mode.frequency
            numbers = (mode.frequency, mode.frequency_in_hertz, damping)
            cells = (f"${real} \\pm {_number(value.imag)}\\,\\mathrm{{i}}$", *(f"${_number(n)}$" for n in numbers))
        yield f"  {' & '.join(cells)} \\\\"
    yield "\\end{longtable}"


def _matrix(sheet: Sheet) -> Iterator[str]:
    yield "\\begin{equation*}"
    yield f"  {sheet.letter} = \\begin{{bmatrix}}"
    yield " \\\\\n".join("    " + " & ".join(map(_number, row)) for row in sheet.matrix.tolist())
    yield "  \\end{bmatrix}"
    yield "\\end{equation*}"


def _number(value: float) -> str:
    r"""Return a number in mathematics mode: 1.5 \cdot 10^{-7} instead of 1.5e-07."""
    mantissa, e, exponent = short(value + 0.0).partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if e else mantissa


def _text(text: str) -> str:
    return _MARKED.sub(lambda m: _SPECIAL[m.group()], _line(shortened(text)))


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
