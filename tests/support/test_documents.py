"""What comes from outside as TOML or JSON is read, or is one error, soon."""

from __future__ import annotations

import pytest

from fmilin.support.files import MAX_KEY_PARTS, DocumentError, read_json, read_toml

DIGITS = "1" * 100_000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("x = " + "{a=" * 50_000, "nested too deeply"),
        (f"x = {DIGITS}", "an integer has thousands of digits"),
        (".".join(["a"] * 50_000) + " = 1", f"a dotted key has more than {MAX_KEY_PARTS} parts"),
        ("[" + " . ".join(["'a'", '"b"'] * 25_000) + "]", f"a dotted key has more than {MAX_KEY_PARTS} parts"),
        (b"\xff\xfe\x00", "invalid start byte"),
        ("x = ", "Invalid value"),
    ],
)
def test_toml_that_is_wrong_is_one_error(text: bytes | str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        read_toml(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (DIGITS, "an integer has thousands of digits"),
        (b"\xff\xfe{", "invalid start byte"),
        ("{", "Expecting property name"),
    ],
)
def test_json_that_is_wrong_is_one_error(text: bytes | str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        read_json(text)


def test_what_is_long_for_a_reason_is_read() -> None:
    numbers = ", ".join(f"{i}.5" for i in range(1000))
    path = ".".join(["a"] * MAX_KEY_PARTS)
    text = f"# {'.' * 500}\nx = [{numbers}]\n{path} = 1\ns = '{'word. ' * 30}'\n{'k' * 200_000} = 2"
    table = read_toml(text)
    assert len(table["x"]) == 1000
    assert read_json(f"[{numbers}]") == table["x"]
