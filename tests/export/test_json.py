"""The JSON document field by field, as the format ``fmilin-linear/1`` says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmilin import LinearModel
from fmilin.errors import ModelError
from fmilin.linear_model.model import Accuracy
from tests.file_contents import read, written
from tests.hand_made import LONG, pendulum, sized


def strict(content: bytes) -> dict[str, Any]:
    def refuse(token: str) -> None:
        raise AssertionError(token)

    document: dict[str, Any] = json.loads(content, parse_constant=refuse)
    return document


def test_fields_of_the_contract() -> None:
    document = strict(written(pendulum(), ".json"))
    assert document["format"] == "fmilin-linear/1"
    assert document["A"] == [[0.0, 1.0], [-9.81, 0.0]]
    assert document["B"] == [[0.0], [1 / 3]]
    assert document["C"][2] == [np.pi, -1e300]
    assert document["D"] == [[0.0], [np.nextafter(1.0, 2.0)], [5e-324]]
    assert document["T"] == [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert document["f0"] == [0.0, 1e-17]
    assert document["states"] == ["pin.x", "pin.vx"]
    assert document["full_states"] == ["pin.x", "pin.y", "pin.vx", "pin.vy"]
    assert document["inputs"] == ["F"]
    assert document["outputs"] == ["pin.x", "der(pin.vx)", LONG]
    assert document["units"]["pin.vy"] == "m/s"
    assert document["units"][LONG] == "°"
    frequency = np.sqrt(9.81)
    assert np.allclose(document["eigenvalues"], [[0.0, -frequency], [0.0, frequency]], rtol=1e-15, atol=1e-15)
    assert document["point"]["time"] == 0.1
    assert document["point"]["states"] == {"pin.x": 0.0, "pin.y": -1.0, "pin.vx": 0.1 + 0.2, "pin.vy": 0.0}
    assert document["point"]["inputs"] == {"F": 1 / 3}
    assert document["point"]["outputs"]["der(pin.vx)"] == 2 / 3
    assert document["point"]["parameters"] == {"rod.length": 1.0000000000000002}
    assert document["accuracy"] == {
        "A": 1e-13, "B": 2e-13, "C": 3e-13, "D": 4e-13, "T": 0.0, "f0": 5e-13,
        "constraint_residual": 6e-17, "conditioning": 1.25,
    }  # fmt: skip
    assert document["method"] == {
        "derivatives": "exact", "coordinates": "partition", "evaluations": 17, "products": 3,
    }  # fmt: skip
    assert document["model"] == {
        "name": "Pendel.Größe 🙂", "guid": "{8c4e810f-3df3}", "tool": "a tool 1.0", "fmi_version": "2.0",
    }  # fmt: skip
    assert document["warnings"][0]["kind"] == "off-equilibrium"
    assert document["sample_time"] == 0


def test_eigenvalues_are_sorted_by_real_then_imaginary_part() -> None:
    values = strict(written(sized(7, 0, 0, 0), ".json"))["eigenvalues"]
    assert values == sorted(values)
    assert np.isclose(np.sum(values, axis=0)[0], np.trace(sized(7, 0, 0, 0).A))


def test_what_is_not_finite_becomes_null() -> None:
    infinite = replace(pendulum(), accuracy=Accuracy(np.nan, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, np.inf))
    accuracy = strict(written(infinite, ".json"))["accuracy"]
    assert accuracy["A"] is None
    assert accuracy["conditioning"] is None


def test_the_file_is_ascii_with_one_line_per_field() -> None:
    text = written(pendulum(), ".json").decode("ascii")
    assert text.splitlines()[1].startswith('"A": [[0.0, 1.0], [-9.81, 0.0]],')
    assert len(text.splitlines()) == len(json.loads(text)) + 2


@pytest.mark.parametrize("field", ["A", "states", "point", "accuracy", "signals", "warnings", "model", "method"])
def test_a_missing_field_is_named(field: str) -> None:
    document = json.loads(written(pendulum(), ".json"))
    del document[field]
    with pytest.raises(ModelError, match=f"field '{field}' is missing"):
        read(json.dumps(document).encode(), ".json", "plant.json")


def test_a_matrix_of_the_wrong_size_is_named() -> None:
    document = json.loads(written(pendulum(), ".json"))
    document["B"] = [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ModelError, match=r"B has the shape \(2, 2\), but the names require \(2, 1\)"):
        read(json.dumps(document).encode(), ".json", "plant.json")


@pytest.mark.parametrize("value", ["text", {"a": 1}, [1.0, 2.0], [[1.0], [2.0, 3.0]], 3, None])
def test_a_field_of_the_wrong_kind_is_a_model_error(value: object) -> None:
    for field in ("A", "point", "states", "signals", "warnings", "accuracy"):
        document = json.loads(written(pendulum(), ".json"))
        document[field] = value
        with pytest.raises(ModelError, match=r"plant\.json"):
            read(json.dumps(document).encode(), ".json", "plant.json")


@pytest.mark.parametrize("value", [-1.0, None, "1e999"])
def test_a_sample_time_that_does_not_exist_is_refused(value: object) -> None:
    document = json.loads(written(pendulum(), ".json"))
    document["sample_time"] = float(value) if isinstance(value, str) else value
    with pytest.raises(ModelError, match="the sample time is"):
        read(json.dumps(document).encode(), ".json", "plant.json")


def test_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    document = json.loads(written(pendulum(), ".json")) | {"format": "fmilin-linear/2"}
    path = tmp_path / "plant.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="'fmilin-linear/2' instead of 'fmilin-linear/1'"):
        LinearModel.load(path)
