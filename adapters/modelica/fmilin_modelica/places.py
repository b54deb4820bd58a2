"""Where equations and expressions of a flattened model stand in the files that the front end read."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Texts", "describe_declarations", "strip_subscripts"]

SHOWN_CHARACTERS = 60  # of an equation
SHOWN_NAMES = 2  # of variables with the places of their declarations
_NAME = re.compile(r"[A-Za-z_]\w*(?:\[[^\[\]]*\])?(?:\.[A-Za-z_]\w*(?:\[[^\[\]]*\])?)*")
_SUBSCRIPTS = re.compile(r"\[[^\[\]]*\]")


def strip_subscripts(name: str) -> str:
    """Return "body.r" of "body.r[2]"."""
    return _SUBSCRIPTS.sub("", name)


def describe_declarations(message: str, places: Mapping[str, str]) -> str:
    """Return "'body.m' is declared at crane.mo:3." of the first variables that a message names; "" of none.

    Names of one part that are words of the language of messages as well, such as ``time``, count in quotation marks.
    """
    names = [
        name[0] for name in _NAME.finditer(message) if "." in name[0] or message[: name.start()].endswith(("'", "der("))
    ]
    found = {name: places[strip_subscripts(name)] for name in names if strip_subscripts(name) in places}
    shown = [f"'{name}' is declared at {place}" for name, place in list(found.items())[:SHOWN_NAMES]]
    return f"{', '.join(shown)}." if shown else ""


class Texts:
    """The texts of files by the numbers that the front end gives them."""

    def __init__(self, texts: Mapping[int, tuple[str, bytes]]) -> None:
        self._texts = texts
        self._ends_of_lines: dict[int, list[int]] = {}  # of the files that were asked for

    def line(self, span: Mapping[str, int]) -> int:
        """Return the line in which a part of a text begins; 0 in a file that is not there."""
        number = span["source"]
        if number not in self._texts:
            return 0
        if number not in self._ends_of_lines:
            self._ends_of_lines[number] = [end.start() for end in re.finditer(b"\n", self._texts[number][1])]
        return bisect_right(self._ends_of_lines[number], span["start"] - 1) + 1

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

    def list_variables(self, variables: Mapping[str, Any]) -> dict[str, str]:
        """Return "crane.mo:3" of the declaration of each variable, without subscripts in its name."""
        spans = {strip_subscripts(name): variable["source_span"] for name, variable in variables.items()}
        return {name: f"{self.name(span)}:{line}" for name, span in spans.items() if (line := self.line(span))}

    def list_expressions(self, storage: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return names of files, and for each node of an expression the number of its file there and the line."""
        numbers: dict[str, int] = {}
        files, lines = [], []
        for provenance in storage["expressions"]["provenance"]:
            span = provenance["span"]
            files.append(numbers.setdefault(self.name(span), len(numbers)))
            lines.append(self.line(span))
        return {"names": list(numbers), "files": files, "lines": lines}
