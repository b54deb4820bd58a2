"""The lines that errors name are the lines where the keys stand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from fmilin.models.mechanism.source_lines import KeyPath, find_lines

TEXT = '''# a comment with [brackets] and a = sign
title = "x # y"
gravity = [0, 0,
   -9.81]  # m/s2
[joint.swing]
"odd key" = """multi
line ] = """
note = \'\'\'a = 1
[[body]]\'\'\'
c.d = { e = 1, f = [1, {g = "}"}] }

[[body]]
name = 'rod # 1'
when = 1979-05-27T07:32:00Z
[body.inertia]
xx = 1.0
[[body]]
name = "tw\\"o"
[[body.spring]]
k=1
[[body.spring]]
k=2
    damping = 3e1
'''


def places(value: Any, here: KeyPath = ()) -> Iterator[KeyPath]:
    if here:
        yield here
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inside:
        yield from places(below, (*here, key))


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n")])
def test_every_key_is_found_in_its_line(text: str) -> None:
    lines = find_lines(text)
    every = [p for p in places(tomllib.loads(text)) if p != ("joint",)]  # a header makes it without naming it alone
    assert set(every) <= set(lines.of)
    written = text.splitlines()
    for place in every:
        if isinstance(place[-1], str):
            assert place[-1] in written[lines.of[place] - 1], place


def test_the_same_key_of_two_tables_of_an_array_has_two_lines() -> None:
    lines = find_lines(TEXT)
    assert (lines.of["body", 0, "name"], lines.of["body", 1, "name"]) == (13, 18)
    assert (lines.of["body", 1, "spring", 0, "k"], lines.of["body", 1, "spring", 1, "k"]) == (20, 22)


def test_what_is_missing_has_the_line_of_the_table_around_it() -> None:
    lines = find_lines(TEXT)
    assert lines.find(("body", 1, "mass")) == 17
    assert lines.find(("nowhere", 0, "at all")) is None


def test_no_toml_is_no_error_here() -> None:
    assert find_lines("a = 1\nb =\n]] {").of == {("a",): 1, ("b",): 2}
