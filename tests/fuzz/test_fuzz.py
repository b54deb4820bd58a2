"""A modest number of arbitrary inputs in every run of the tests; ``python -m tests.fuzz`` tries many more."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fmilin import Constraint
from fmilin.errors import FmilinError
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

_WORDS = [
    "x",
    "y[1]",
    "der(v)",
    "`a b`",
    "2",
    "1e308",
    ".5",
    "pi",
    "sin(",
    "min(",
    "atan2(",
    ")",
    "(",
    "+",
    "-",
    "*",
    "/",
]


def tried(target: str, data: bytes) -> None:
    """Either a result or one paragraph."""
    try:
        TARGETS[target](data)
    except FmilinError as error:
        refusal = error
    else:
        return
    assert str(refusal).strip()
    assert refusal.exit_status in (2, 3, 4)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_the_seeds_themselves(target: str) -> None:
    for seed in SEEDS[target]():
        tried(target, seed)


@settings(max_examples=400, deadline=None)
@given(st.binary(min_size=2, max_size=26))
def test_changed_descriptions(data: bytes) -> None:
    tried("changed_description", data)


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=2, max_size=26))
def test_changed_linear_models(data: bytes) -> None:
    tried("changed_linear_model", data)


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=2, max_size=26))
def test_changed_mechanisms(data: bytes) -> None:
    tried("changed_mechanism", data)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 20), st.binary(max_size=40), st.integers(0, 10**6))
def test_descriptions_with_foreign_bytes(seed: int, inserted: bytes, where: int) -> None:
    seeds = SEEDS["description"]()
    text = seeds[seed % len(seeds)]
    at = 1 + where % len(text)
    tried("description", text[:at] + inserted + text[at + len(inserted) :])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*_WORDS, "^", "**", ",", " "]), max_size=14).map("".join))
@example("exp(exp(exp(exp(100))))")
@example("min(x, 1/0)")
@example("x - sqrt(-1)")
@example("9^9^9^9^9")
@example("1e400*x")
def test_expressions_of_the_words_of_the_grammar(text: str) -> None:
    tried("constraint", text.encode())


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_expressions_of_any_characters(text: str) -> None:
    with suppress(FmilinError):
        Constraint.from_text(text)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=30), st.integers(0, 10**6))
def test_constraint_files_with_foreign_bytes(inserted: bytes, where: int) -> None:
    text = SEEDS["constraints_file"]()[0]
    at = where % len(text)
    tried("constraints_file", text[:at] + inserted + text[at + len(inserted) // 2 :])


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30), st.booleans()
)
@example("../evil", False)
@example("resources/../../evil", True)
@example("/etc/evil", False)
@example("C:\\evil", False)
def test_archives_with_members_of_any_name_write_nowhere_else(name: str, nested: bool) -> None:
    import zipfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.fmu"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"resources/{name}" if nested else name, "evil")
        tried("archive", path.read_bytes())
