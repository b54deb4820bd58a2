"""The parts of a report: sections of texts, tables that can be sorted, and pictures; and the file made of them."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fmilin.errors import FmilinError, count_omitted
from fmilin.report.figures import render_figure
from fmilin.support.tables import Cell, ResultTable, TableColumn, build_cells
from fmilin.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_VECTOR_BYTES = 250_000  # bytes of an SVG picture; one with more goes in as PNG
PICTURE_RESOLUTION_DPI = 110


@dataclass(frozen=True)
class EmbeddedPicture:
    """A picture inside the file."""

    caption: str
    source: str
    kind: str = field(default="picture", init=False)


@dataclass(frozen=True)
class Text:
    """A paragraph, or a list of them."""

    lines: Sequence[str]
    alarm: bool = False
    kind: str = field(default="text", init=False)


Block = ResultTable | EmbeddedPicture | Text


@dataclass(frozen=True)
class Section:
    """A part of the report, with an entry in its contents."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """Its name in links."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())


def number(value: float, unit: str = "", *, digits: int = 6, alarm: bool = False) -> Cell:
    """Return a number as a cell; empty where it is NaN."""
    if math.isnan(value):
        return Cell("", None)
    digits_text = "∞" if math.isinf(value) else f"{value + 0.0:.{digits}g}"
    return Cell(f"{digits_text} {unit}".rstrip(), value, alarm)


def text(*lines: str, alarm: bool = False) -> Text:
    """Return paragraphs."""
    return Text([line for line in lines if line], alarm)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], *, most: int = 5000) -> ResultTable:
    """Return a table; plain values become cells with their text, and rows beyond ``most`` are counted."""
    listed = build_cells(rows)
    return ResultTable(tuple(map(TableColumn, heads)), listed[:most], caption, note_omitted(len(listed), most))


def note_omitted(count: int, most: int) -> str:
    """Return what stands below a table of ``count`` rows of which ``most`` are in the page; nothing if all are."""
    remaining = count_omitted(count, most, "rows")
    return remaining and f"{remaining}: they are in the file of the model"


def picture(caption: str, draw: Callable[[], Figure]) -> Block:
    """Return a picture; a sentence in its place where there is nothing to draw."""
    try:
        figure = draw()
    except FmilinError as error:
        return text(f"{caption}: {error}")
    content, kind = render_figure(figure, ".svg"), "svg+xml"
    if len(content) > MAX_VECTOR_BYTES:
        content, kind = render_figure(figure, ".png", PICTURE_RESOLUTION_DPI), "png"
    return EmbeddedPicture(caption, f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}")


def render_html(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the file: everything in it, and nothing that it could load from elsewhere."""
    script = _resource("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    rendered_page: str = _template().render(
        title=title,
        subtitle=subtitle,
        sections=[s for s in sections if s.blocks],
        style=_resource("report.css"),
        script=script,
        digest=digest,
        version=__version__,
    )
    return rendered_page


@cache
def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_resource("report.html.jinja"))
