"""The names of the package keep to the style: ``tests/names.py`` counts those that do not."""

from __future__ import annotations

import ast

import pytest

from tests.names import Names, add_names, collect_names, ends_in_preposition, is_participle, list_repeated

# the style's targets, where they are not reached yet
MAX_PARTICIPLES_PERCENT = 1.7  # target 3
MIN_VERBS_PERCENT = 56.0
MAX_TRAILING_PREPOSITIONS_PERCENT = 0.3  # those left are public names and nouns: index_of, linearize_along
MAX_PRONOUNS = 0
MAX_CONSTANTS_WITHOUT_QUANTITY = 0
MAX_REPEATED_CLASSES = 0
MAX_REPEATED_MODULES = 11

OFFENDING = """
LEFT, FURTHER = 1e-9, 3
MAX_STEPS = 20
FORMATS = {"a": 1}
class Motion: ...
def solved(given):
    self._found = given
def facts_of(model): ...
def solve_request(model): ...
@property
def reduced(self): ...
class Mode:
    seen = DeprecatedAlias("apparent")
"""


@pytest.fixture(scope="module")
def names() -> Names:
    return collect_names()


def test_functions_are_verbs(names: Names) -> None:
    functions = len(names.functions)
    assert 100 * len(names.participles) / functions < MAX_PARTICIPLES_PERCENT
    assert 100 * len(names.verbs) / functions > MIN_VERBS_PERCENT
    assert 100 * len(names.trailing_prepositions) / functions < MAX_TRAILING_PREPOSITIONS_PERCENT


def test_variables_say_what_they_are(names: Names) -> None:
    assert len(names.pronouns) <= MAX_PRONOUNS, "\n".join(map(str, names.pronouns))


def test_numeric_constants_carry_a_quantity(names: Names) -> None:
    offenders = names.constants_without_quantity
    assert len(offenders) <= MAX_CONSTANTS_WITHOUT_QUANTITY, "\n".join(map(str, offenders))


def test_one_name_has_one_meaning(names: Names) -> None:
    assert len(names.repeated_classes) <= MAX_REPEATED_CLASSES, names.repeated_classes
    assert len(names.repeated_modules) <= MAX_REPEATED_MODULES, names.repeated_modules


def test_what_breaks_the_style_is_counted() -> None:
    names = Names()
    add_names(names, ast.parse(OFFENDING), "example.py")
    assert [name.name for name in names.participles] == ["solved"]
    assert [name.name for name in names.trailing_prepositions] == ["facts_of"]
    assert [name.name for name in names.verbs] == ["solve_request"]
    assert [name.name for name in names.pronouns] == ["LEFT", "given", "_found"]
    assert [name.name for name in names.constants_without_quantity] == ["LEFT", "FURTHER"]
    assert [name.name for name in names.constants] == ["LEFT", "FURTHER", "MAX_STEPS", "FORMATS"]
    assert list_repeated([("Motion", "a"), ("Motion", "b"), ("Point", "a"), ("Point", "a")]) == ["Motion"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("solved", True), ("kept", True), ("growing", True), ("need", False), ("damping", False), ("set", False)],
)
def test_participles_are_told_from_nouns_and_verbs(word: str, *, expected: bool) -> None:
    assert is_participle(word) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("carried_on", True), ("set_up", False), ("of", False), ("values_of", True), ("solve", False)],
)
def test_trailing_prepositions_are_recognized(name: str, *, expected: bool) -> None:
    assert ends_in_preposition(name) is expected
