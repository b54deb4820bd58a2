"""The names of functions in messages are those that the host looks up in the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fmilin.fmi import host
from fmilin.fmi.client.function_names import FmiStandard, function_name
from fmilin.fmi.client.host_programs import Operation, ValueType

FOLDER = Path(host.__path__[0])
TABLES = [
    ("fmi1.c", "fmi1_model_exchange", FmiStandard(1, stepped=False)),
    ("fmi1.c", "fmi1_co_simulation", FmiStandard(1, stepped=True)),
    ("fmi2.c", "fmi2", FmiStandard(2, stepped=False)),
    ("fmi2.c", "fmi2", FmiStandard(2, stepped=True)),
    ("fmi3.c", "fmi3", FmiStandard(3, stepped=False)),
    ("fmi3.c", "fmi3", FmiStandard(3, stepped=True)),
]


def read_table(source: Path, name: str) -> dict[str, str]:
    """Return the names of functions by operation, as a table in C has them."""
    text = source.read_text(encoding="utf-8")
    table = text[text.index(f"const struct standard {name} = ") :]
    return dict(re.findall(r'\[(\w+)\] = \{\w+, "(\w+)"\}', table[: table.index("};")]))


@pytest.mark.parametrize(("file", "name", "standard"), TABLES)
def test_operations_have_the_names_of_the_hosts_table(file: str, name: str, standard: FmiStandard) -> None:
    table = read_table(FOLDER / file, name)
    assert len(table) > 5
    for operation, expected in table.items():
        assert function_name(standard, Operation[operation]) == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_values_have_the_names_of_the_hosts_tables(version: int) -> None:
    text = (FOLDER / f"fmi{version}.c").read_text(encoding="utf-8")
    for verb, operation in (("get", Operation.GET_VALUES), ("set", Operation.SET_VALUES)):
        content = text[text.index(f"const {verb}_names[LAST_TYPE + 1] = {{") :]
        content = content[: content.index("};")]
        names = {ValueType[kind]: name for kind, name in re.findall(r'\[(\w+)\] = "(\w+)"', content)}
        if version == 3:
            names = dict(zip(ValueType, re.findall(r'"(\w+)"', content), strict=True))
        for kind, expected in names.items():
            assert function_name(FmiStandard(version, stepped=False), operation, kind) == expected
