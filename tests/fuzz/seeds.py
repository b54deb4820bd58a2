"""Inputs from which the fuzzing starts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.fmus.make import description_of, pack

__all__ = ["SEEDS"]

EXPRESSIONS = (
    "x^2 + y**2 - L^2",
    "pin.x - rod.length*cos(q[1])",
    "der(v) - der(body.w[2])",
    "`strange name!` * 2",
    "min(3, x, 2) + max(1, 4)/atan2(y, -1)",
    "-(1 + .5e1)*pi^x - sqrt(abs(x))",
)
CONSTRAINTS = b"""[[constraint]]
expression = "x^2 + y^2 - L^2"
level = "position"
name = "rod"
rate = "2*x*vx"

[[constraint]]
variable = "loop.gap"

[coordinates]
independent = ["x", "vx"]
"""


def descriptions() -> list[bytes]:
    names = ("spring1", "slave1", "pendulum", "arrays3", "switch_and_name", "singles3", "no_states")
    texts = [description_of(name).encode() for name in names]
    return [first + text for text in texts for first in (b"0", b"1")]


def archives() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        members: dict[str, bytes | str] = {
            "modelDescription.xml": description_of("no_states"),
            "resources/a b.txt": "1 2 3",
            "binaries/linux64/m.so": b"\x7fELF",
            "../evil": "",
        }
        return [pack(Path(folder) / "m.fmu", dict(list(members.items())[:number])).read_bytes() for number in range(5)]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "description": descriptions,
    "changed_description": lambda: [bytes((i, j, *range(i, i + 12))) for i in range(40) for j in range(2)],
    "constraint": lambda: [text.encode() for text in EXPRESSIONS],
    "constraints_file": lambda: [CONSTRAINTS],
    "archive": archives,
}
