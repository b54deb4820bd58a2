"""Facts and tables of results as data: a terminal and a page of HTML print the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from fmilin.errors import count_omitted
from fmilin.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    value: float | None = None  # what a page sorts by; the text where None
    alarm: bool = False  # whether a page shows it in a colour that warns


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The head of a column, and how a terminal breaks its cells."""

    head: str
    align: Literal["left", "right"] = "left"
    breaks: Literal["at spaces", "anywhere", "never"] = "at spaces"
    largest_width: int | None = None


@dataclass(frozen=True)
class ResultTable:
    """A table. Rows beyond those in it are counted in ``omitted``."""

    kind: ClassVar[str] = "table"  # of a block of a page

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    note: str = ""  # a sentence below it
    omitted: int = 0
    omitted_cells: tuple[str, ...] = ()  # what is known of omitted rows, in the columns behind the first

    @property
    def is_numeric(self) -> tuple[bool, ...]:
        """Whether each column has numbers, and nothing else."""
        width = len(self.columns) or max(map(len, self.rows), default=0)
        columns = [[row[c] for row in self.rows] for c in range(width)]
        return tuple(
            any(cell.value is not None for cell in column)
            and all(cell.value is not None or not cell.text for cell in column)
            for column in columns
        )

    def beside(self, *other_tables: ResultTable) -> ResultTable:
        """Return the table with the columns of others, which have as many rows, at its right."""
        tables = (self, *other_tables)
        columns = tuple(column for each in tables for column in each.columns)
        rows = (tuple(cell for part in parts for cell in part) for parts in zip(*(t.rows for t in tables), strict=True))
        return replace(self, columns=columns, rows=tuple(rows))

    def texts(self) -> list[list[str]]:
        """Return the texts of all rows, the one that counts omitted rows included."""
        texts = [[cell.text for cell in row] for row in self.rows]
        if self.omitted:
            last_cells = self.omitted_cells or ("",) * (len(self.columns) - 1)
            texts.append([count_omitted(self.omitted, 0), *last_cells])
        return texts

    def cut(self, count: int) -> ResultTable:
        """Return the table with its first rows."""
        if count >= len(self.rows):
            return self
        omitted = self.omitted + len(self.rows) - count
        return replace(self, rows=self.rows[:count], omitted=omitted, omitted_cells=())


@dataclass(frozen=True, slots=True)
class LabelledFact:
    """A word, empty where the fact before continues, and what is known: pieces of a list, or one sentence."""

    word: str
    pieces: tuple[str, ...]
    is_sentence: bool = False  # a sentence is broken between its words, a list between its pieces

    @property
    def separator(self) -> str:
        """The text between two parts of a line that is not broken there."""
        return " " if self.is_sentence else ", "

    @property
    def parts(self) -> list[str]:
        """The parts of the text within which lines are not broken."""
        return " ".join(self.pieces).split() if self.is_sentence else list(self.pieces)

    @property
    def text(self) -> str:
        """Everything in one line."""
        return self.separator.join(self.parts)


def build_cells(rows: Iterable[Sequence[object]]) -> tuple[tuple[Cell, ...], ...]:
    """Return rows of cells; other values become cells with their text."""
    return tuple(tuple(c if isinstance(c, Cell) else Cell(str(c)) for c in row) for row in rows)


def build_table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, columns: str = "", most: int | None = None
) -> ResultTable:
    """Return a table for a terminal, of which rows beyond ``most`` are counted.

    A letter for each column puts it left (``l``) or right (``r``); a capital is never broken, ``f`` is broken anywhere.
    Without letters, columns with a head are at the right.
    """
    letters = columns or "".join("r" if head else "l" for head in heads)
    listed = build_cells(rows)
    omitted = 0 if most is None else max(len(listed) - most, 0)
    return ResultTable(
        tuple(_column(head, letter) for head, letter in zip(heads, letters, strict=True)),
        listed[: len(listed) - omitted],
        omitted=omitted,
    )


def _column(head: str, letter: str) -> TableColumn:
    if letter == "f":
        return TableColumn(head, breaks="anywhere")
    return TableColumn(head, "right" if letter in "rR" else "left", "never" if letter.isupper() else "at spaces")
