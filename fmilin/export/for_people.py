"""The linear model to be read by people: plain text, and LaTeX to be read into a report, no document of its own."""

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.export.linear_record import MATRICES, require_writable
from fmilin.linear_model.model import LinearModel
from fmilin.report.numbers import round_digits, shorten_name
from fmilin.report.table import print_table
from fmilin.signals import FloatArray, Signals
from fmilin.version import __version__

_DIGITS = 6


@dataclass(frozen=True)
class NamedMatrix:
    """One matrix with the names of its rows and columns."""

    letter: str
    matrix: FloatArray  # shape (rows, columns)
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def name_matrices(linear: LinearModel) -> Iterator[NamedMatrix]:
    """Yield A, B, C, D, T and T_u; those without entries are left out, and T_u when it is zero."""
    for letter, groups in MATRICES.items():
        matrix: FloatArray = getattr(linear, letter)
        rows, columns = (getattr(linear, group).names for group in groups)
        if matrix.size and (letter != "T_u" or matrix.any()):
            yield NamedMatrix(letter, matrix, rows, columns)


def by_name(values: Mapping[str, float], names: Sequence[str]) -> FloatArray:
    """Return values in the order of the names; 0 for one that is not known."""
    return np.array([values.get(name, 0.0) for name in names], dtype=np.float64)


def short(value: float) -> str:
    """Return a number with six digits, and zero as 0."""
    return "0" if value == 0 else f"{value:.{_DIGITS}g}" if math.isfinite(value) else str(value)


_WIDTH = 100


def dumps_txt(linear: LinearModel) -> bytes:
    """Return the file's content: a report for people, with six digits, which nothing reads back."""
    require_writable(linear)
    stream = io.StringIO()
    print_table(linear, stream)
    law = "y' = f0 + A (y - y0) + B (u - u0)"
    if linear.sample_time > 0:
        law = f"y[k+1] = y0 + f0 + A (y[k] - y0) + B (u[k] - u0), every {linear.sample_time:g} s"
    follows = " + T_u (u - u0)" if linear.T_u.any() else ""
    lines = ["", law, "out = g0 + C (y - y0) + D (u - u0)", f"x - x0 = T (y - y0){follows}", ""]
    if len(linear.states):
        at_point = np.column_stack((linear.y0, linear.f0))
        lines += [*_table(NamedMatrix("", at_point, linear.states.names, ("y0", "f0"))), ""]
    for named in name_matrices(linear):
        lines += [*_table(named), ""]
    return (stream.getvalue() + "\n".join(lines)).encode("utf-8")


def _table(named: NamedMatrix) -> Iterator[str]:
    """Yield the lines of a matrix; one that is too wide goes on below."""
    names = [_plain(name) for name in named.rows]
    head = max(len(named.letter), *map(len, names))
    columns = [[_plain(name), *(short(v) for v in named.matrix[:, j].tolist())] for j, name in enumerate(named.columns)]
    at = 0
    while at < len(columns):
        widths: list[int] = []
        for column in columns[at:]:
            widths.append(max(map(len, column)))
            if len(widths) > 1 and head + sum(widths) + 2 * len(widths) > _WIDTH:
                widths.pop()
                break
        part = columns[at : at + len(widths)]
        for i, name in enumerate([named.letter, *names]):
            cells = (column[i].rjust(width) for column, width in zip(part, widths, strict=True))
            yield f"{name.ljust(head)}  {'  '.join(cells)}".rstrip()
        at += len(widths)
        if at < len(columns):
            yield ""


def _plain(name: str) -> str:
    return " ".join(shorten_name(name).split()) or "(no name)"


_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "[": "{[}", "]": "{]}", "°": r"\textdegree{}", "·": r"\textperiodcentered{}",
}  # fmt: skip
_MARKED = re.compile("|".join(map(re.escape, _SPECIAL)))
_MAX_COLUMNS = 10  # what a bmatrix takes, unless the counter MaxMatrixCols is raised


def dumps_tex(linear: LinearModel) -> bytes:
    r"""Return the file's content, for ``\input{plant}``: six digits, which nothing reads back."""
    require_writable(linear)
    return ("\n".join(_lines(linear)) + "\n").encode("utf-8")


def _lines(linear: LinearModel) -> Iterator[str]:
    yield f"% Linear model of {_line(linear.model.name)}, made by fmilin {__version__}."
    yield "% In the preamble: \\usepackage{amsmath,longtable,textcomp}"
    yield from _equation(linear)
    yield f"at $t = {short(linear.point.time)}\\,\\mathrm{{s}}$:"
    yield from _signals(linear)
    yield from _modes(linear)
    widest = max((s.matrix.shape[1] for s in name_matrices(linear)), default=0)
    if widest > _MAX_COLUMNS:
        yield f"\\setcounter{{MaxMatrixCols}}{{{widest}}}"
    for named in name_matrices(linear):
        yield from _matrix(named)
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
        value = round_digits(mode.eigenvalue, 6)
        cells: Sequence[str] = (f"${_number(value.real)}$", "", "", "")
        if mode.is_oscillatory:
            real = "" if value.real == 0 else _number(value.real)
            numbers = (mode.frequency, mode.frequency_in_hertz, (-round_digits(mode.eigenvalue).real / mode.frequency))
            cells = (f"${real} \\pm {_number(value.imag)}\\,\\mathrm{{i}}$", *(f"${_number(n)}$" for n in numbers))
        yield f"  {' & '.join(cells)} \\\\"
    yield "\\end{longtable}"


def _matrix(named: NamedMatrix) -> Iterator[str]:
    yield "\\begin{equation*}"
    yield f"  {named.letter} = \\begin{{bmatrix}}"
    yield " \\\\\n".join("    " + " & ".join(map(_number, row)) for row in named.matrix.tolist())
    yield "  \\end{bmatrix}"
    yield "\\end{equation*}"


def _number(value: float) -> str:
    r"""Return a number in mathematics mode: 1.5 \cdot 10^{-7} instead of 1.5e-07."""
    mantissa, e, exponent = short(value + 0.0).partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if e else mantissa


def _text(text: str) -> str:
    return _MARKED.sub(lambda m: _SPECIAL[m.group()], _line(shorten_name(text)))


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
