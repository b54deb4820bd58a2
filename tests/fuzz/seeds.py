"""Inputs from which the fuzzing starts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from fmilin.export.foreign import dumps_dslin
from tests.composition.ssp_files import SSD, component, connection, connector, system
from tests.file_contents import written
from tests.fmus.make import description_of, pack
from tests.fuzz.harmful import HARMFUL, zipped
from tests.hand_made import pendulum

__all__ = ["MECHANISMS", "SEEDS"]

EXAMPLES = Path(__file__).parents[2] / "examples"
MECHANISMS = tuple(
    (EXAMPLES / name).read_text()
    for name in ("mechanisms/loader.toml", "mechanisms/robot.urdf", "one_mechanism/four_bar.urdf")
)
"""Read together with nothing beside them."""

FOUND = (
    "(3*x)^999999999",
    "(x/3)^(-1e9)",
    "((x^99)^99)^99",
    "sin(" * 60 + "x" + ")" * 60,
    "^".join(["x"] * 60),
    f"min({', '.join(f'{i}*x' for i in range(1, 51))})",
    f"max({', '.join(f'x + y^{i}' for i in range(1, 51))})",
    "min(x, " * 40 + "y" + ")" * 40,
    "+".join(["x*y"] * 3000),
    "-" * 5000 + "x",
    "x - x",
    "9^9^9^9^9*x",
)
"""What once ran for ever, or ended in an error that was none of fmilin's own."""

EXPRESSIONS = (
    "x^2 + y**2 - L^2",
    "pin.x - rod.length*cos(q[1])",
    "der(v) - der(body.w[2])",
    "`strange name!` * 2",
    "min(3, x, 2) + max(1, 4)/atan2(y, -1)",
    "-(1 + .5e1)*pi^x - sqrt(abs(x))",
    *FOUND,
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

_WIRED = [
    component(name, "m.fmu", [connector("u", "input", "m"), connector("y", "output", "mm")]) for name in ("one", "two")
]
SYSTEM = SSD.format(
    version="1.0",
    name="demo",
    system=system("root", _WIRED, [connection("one.y", "two.u"), connection("two.y", "one.u")]),
    more="",
)
DEEP, DIGITS, LONG = b"[" * 100_000, b"1" * 100_000, b".".join([b"a"] * 50_000)
POINT = b'{"format": "fmilin-point/1", "model": {"name": "m"}, "time": 0.0, "states": {"x": 1}, "inputs": {}}'


def descriptions() -> list[bytes]:
    names = ("spring1", "slave1", "pendulum", "arrays3", "switch_and_name", "singles3", "no_states")
    texts = [description_of(name).encode() for name in names]
    odd = [
        texts[0].replace(b'valueReference="0"', b'valueReference="-3"', 1),
        texts[2].replace(b'valueReference="0"', b'valueReference="4294967296"', 1),
        texts[3].replace(b'start="3"', b'start="-7"'),
        texts[2].replace(b"<fmiModelDescription", b'<fmiModelDescription numberOfEventIndicators="2000000000"', 1),
    ]
    return [first + text for text in (*texts, *odd) for first in (b"0", b"1")]


def archives() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        members: dict[str, bytes | str] = {
            "modelDescription.xml": description_of("no_states"),
            "resources/a b.txt": "1 2 3",
            "binaries/linux64/m.so": b"\x7fELF",
            "../evil": "",
        }
        return [pack(Path(folder) / "m.fmu", dict(list(members.items())[:number])).read_bytes() for number in range(5)]


def linear_models() -> list[bytes]:
    contents = [*(written(pendulum(), suffix) for suffix in (".npz", ".json", ".mat")), dumps_dslin(pendulum())]
    files = [bytes([kind]) + content for kind, content in enumerate(contents)]
    inside = zipped({"extra/org.fmilin/linear.npz": written(pendulum(), ".npz")})
    return [*files, b"\x04" + inside, *(bytes([kind]) + content for content in HARMFUL.values() for kind in (0, 4))]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "description": descriptions,
    "changed_description": lambda: [bytes((i, j, *range(i, i + 12))) for i in range(40) for j in range(2)],
    "constraint": lambda: [text.encode() for text in EXPRESSIONS],
    "constraints_file": lambda: [CONSTRAINTS, b"x = " + DEEP, b"x = " + DIGITS, LONG + b" = 1"],
    "archive": archives,
    "linear_model": linear_models,
    "changed_linear_model": lambda: [bytes((i, j, *range(i, i + 11))) for i in range(40) for j in range(2)],
    "mechanism": lambda: [*(text.encode() for text in MECHANISMS), b"x = " + DEEP, b"gravity = " + DIGITS],
    "system": lambda: [SYSTEM.encode(), b"<a>" * 100_000, b"\xff\xfe\x00"],
    "changed_system": lambda: [bytes((i, j, *range(i, i + 12))) for i in range(40) for j in range(2)],
    "point": lambda: [b"0" + POINT, b"0" + DEEP, b"0" + DIGITS, b"1x = " + DEEP, b"1x = " + DIGITS, b"1\xff"],
    "changed_mechanism": lambda: [bytes((i, j, *range(i, i + 12))) for i in range(40) for j in range(2)],
}
