"""Where equations and expressions of a flattened model stand in the files that the front end read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

__all__ = ["Texts"]

SHOWN_CHARACTERS = 60  # of an equation


class Texts:
    """The texts of files by the numbers that the front end gives them."""

    def __init__(self, texts: Mapping[int, tuple[str, bytes]]) -> None:
        self._texts = texts

    @cached_property
    def _ends_of_lines(self) -> dict[int, list[int]]:
        return {number: [k for k, byte in enumerate(text) if byte == 0x0A] for number, (_, text) in self._texts.items()}

    def line(self, span: Mapping[str, int]) -> int:
        """Return the line in which a part of a text begins; 0 in a file that is not there."""
        ends = self._ends_of_lines.get(span["source"])
        return 0 if ends is None else bisect_right(ends, span["start"] - 1) + 1

    def name(self, span: Mapping[str, int]) -> str:
        """Return the name of the file of a part of a text."""
        path, _ = self._texts.get(span["source"], ("", b""))
        return Path(path).name

    def list_equations(self, operations: Sequence[Any]) -> list[str]:
        """Return "crane.mo:12: m*der(v) = f" of each equation."""
        places = []
        for operation in operations:
            span = next(iter(operation.values()))["provenance"]["span"]
            _, raw = self._texts.get(span["source"], ("", b""))
            begin, end = span["start"], span["end"]
            if raw[begin:end].count(b")") > raw[begin:end].count(b"(") and raw[begin - 1 : begin] == b"(":
                begin -= 1  # the front end leaves out the bracket with which an equation begins
            words = " ".join(raw[begin:end].decode("utf-8", "replace").split())
            places.append(f"{self.name(span)}:{self.line(span)}: {words[:SHOWN_CHARACTERS]}")
        return places

    def list_expressions(self, storage: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return names of files, and for each node of an expression the number of its file there and the line."""
        numbers: dict[str, int] = {}
        files, lines = [], []
        for provenance in storage["expressions"]["provenance"]:
            span = provenance["span"]
            files.append(numbers.setdefault(self.name(span), len(numbers)))
            lines.append(self.line(span))
        return {"names": list(numbers), "files": files, "lines": lines}
