from __future__ import annotations

from pathlib import Path

import pytest

from fmilin.errors import ConstraintError
from fmilin.model.model_files import read_constraints

GOOD = b"""
[[constraint]]
expression = "x^2 + y^2 - L^2"
name = "rod length"
rate = "x*vx + y*vy"

[[constraint]]
variable = "strange name [1]"
level = "velocity"

[coordinates]
independent = ["x", "vx"]
"""


def test_everything_that_a_file_may_say() -> None:
    result = read_constraints(GOOD, "rod.toml")
    rod, slip = result.constraints
    assert (rod.label, rod.level, rod.expression.names) == ("rod length", "position", ("x", "y", "L"))
    assert rod.rate is not None
    assert rod.rate.names == ("x", "vx", "y", "vy")
    assert (slip.level, slip.expression.names, slip.rate) == ("velocity", ("strange name [1]",), None)
    assert slip.expression.is_variable
    assert result.independent == ("x", "vx")


def test_a_file_and_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(GOOD)
    assert len(read_constraints(path).constraints) == 2
    assert read_constraints(b"").constraints == ()
    assert read_constraints(b"").independent == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[[constraint]", r"'c.toml' is not TOML: .*line 1"),
        (b"\xff\xfe", r"'c.toml' is not TOML: .*utf-8"),
        (b"[[constraint]]\nname = 'a'", r"constraint 1: it needs either 'expression' or 'variable'"),
        (
            b"[[constraint]]\nexpression = 'x'\n[[constraint]]\nexpression = 'x'\nvariable = 'x'",
            r"constraint 2: it needs",
        ),
        (b"[[constraint]]\nexpresion = 'x'", r"constraint 1 expresion: Extra inputs are not permitted"),
        (b"[[constraint]]\nexpression = 3", r"constraint 1 expression: Input should be a valid string"),
        (
            b"[[constraint]]\nexpression = 'x'\nlevel = 'acceleration'",
            r"constraint 1 level: .*'position' or 'velocity'",
        ),
        (
            b"[[constraint]]\nexpression = 'x'\nlevel = 'velocity'\nrate = 'v'",
            r"constraint 1: only a constraint of level",
        ),
        (b"[coordinates]\nindependent = 'x'", r"coordinates independent: Input should be a valid list"),
        (b"constraint = 3", r"constraint: Input should be a valid list"),
        (b"constraint = [3]", r"constraint 1: Input should be a table"),
        (b"[[constraint]]\nexpression = 'x'\nname = 3", r"constraint 1 name: Input should be a valid string"),
        (b"[coordinates]\nindependent = [3]", r"coordinates independent: Input should be a valid list of strings"),
        (b"[coordinates]\ndependent = []", r"coordinates dependent: Extra inputs are not permitted"),
        (b"coordinates = 3", r"coordinates: Input should be a table"),
        (b"[[constraints]]\nexpression = 'x'", r"constraints: Extra inputs.*Known are \[\[constraint\]\]"),
        (
            b"[[constraint]]\nexpression = 'x'\n[[constraint]]\nexpression = 'x +'",
            r"In c.toml, entry 2: Cannot read the",
        ),
        (
            b"[[constraint]]\nexpression = 'x'\nrate = '__import__(1)'",
            r"In c.toml, entry 1: Cannot read the expression",
        ),
    ],
)
def test_wrong_files_are_refused_with_file_and_entry(content: bytes, message: str) -> None:
    with pytest.raises(ConstraintError, match=message) as caught:
        read_constraints(content, "c.toml")
    assert caught.value.exit_status == 4


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConstraintError, match=r"'.*absent.toml' cannot be read: No such file"):
        read_constraints(tmp_path / "absent.toml")
