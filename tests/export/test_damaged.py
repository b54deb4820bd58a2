"""Files that say what no linear model is: complex, NaN, or made to do harm. Each is one sentence, status 3."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.errors import ModelError
from fmilin.export import mat5
from fmilin.export.files import load_descriptor
from fmilin.export.foreign import loads_dslin
from fmilin.systems import cartesian_pendulum
from tests.file_contents import read, without_checksum, written
from tests.fuzz.harmful import HARMFUL, flagged, zipped
from tests.hand_made import pendulum

Change = Callable[[np.ndarray], Any]


def at(value: complex) -> Change:
    def changed(A: np.ndarray) -> np.ndarray:
        other = A.astype(complex if isinstance(value, complex) else float)
        other[0, 1] = value
        return other

    return changed


def changed_npz(change: Change, name: str = "A") -> bytes:
    with np.load(io.BytesIO(written(pendulum(), ".npz"))) as archive:
        arrays: dict[str, Any] = {key: archive[key] for key in archive.files}
    arrays[name] = change(arrays[name])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def changed_mat(change: Change, name: str = "A") -> bytes:
    variables = mat5.read(without_checksum(written(pendulum(), ".mat"), ".mat"))
    return mat5.write(variables | {name: change(variables[name])})


def changed_json(change: Change, name: str = "A") -> bytes:
    document = json.loads(written(pendulum(), ".json"))
    document[name] = change(np.array(document[name])).tolist()
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", ["A", "T"])
@pytest.mark.parametrize(("made", "suffix"), [(changed_npz, ".npz"), (changed_mat, ".mat")])
def test_a_complex_matrix_is_refused_and_a_real_one_in_complex_numbers_is_not(
    made: Any, suffix: str, name: str
) -> None:
    with pytest.raises(ModelError, match=rf"{name} is complex.*imaginary part would be lost"):
        read(made(at(1 + 2j), name), suffix)
    again = read(made(lambda A: A.astype(complex), name), suffix)
    np.testing.assert_array_equal(getattr(again, name), getattr(pendulum(), name))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["A", "B", "C", "D", "T"])
@pytest.mark.parametrize(
    ("made", "suffix"),
    [(changed_npz, ".npz"), (changed_mat, ".mat"), (changed_json, ".json")],
)
def test_what_is_no_number_is_refused_by_place(made: Any, suffix: str, name: str, value: float) -> None:
    def with_one(matrix: np.ndarray) -> np.ndarray:
        matrix = matrix.copy()
        matrix[-1, 0] = value
        return matrix

    rows = getattr(pendulum(), name).shape[0]
    with pytest.raises(ModelError, match=rf"{name} has NaN, infinite or missing entries, the first at \({rows}, 1\)"):
        read(made(with_one, name), suffix)


@pytest.mark.parametrize("name", ["T", "time", "x0", "f0", "A"])
def test_a_point_of_a_family_that_lacks_a_quantity_is_an_error(name: str, tmp_path: Path) -> None:
    fl.sweep(cartesian_pendulum(), {"x": [0.1, 0.2]}).save(tmp_path / "family.json")
    document = json.loads((tmp_path / "family.json").read_text())
    del document["points"][1][name]
    (tmp_path / "family.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match=f"'{name}'"):
        fl.LinearFamily.load(tmp_path / "family.json")


def test_a_missing_entry_of_json_is_refused_and_an_unknown_error_is_not() -> None:
    document = json.loads(written(pendulum(), ".json"))
    document["errors"]["A"][0][0] = None
    assert np.isnan(read(json.dumps(document).encode(), ".json").errors.A[0, 0])
    document["A"][0][0] = None
    with pytest.raises(ModelError, match="A has NaN, infinite or missing entries"):
        read(json.dumps(document).encode(), ".json")


@pytest.mark.parametrize(("value", "why"), [(np.nan, "NaN"), (1j, "complex")])
def test_a_file_of_dymola_with_what_is_no_number(value: complex, why: str) -> None:
    from scipy.io import savemat

    buffer = io.BytesIO()
    content = {"ABCD": np.array([[1.0, value], [0.0, 1.0]]), "nx": 2.0, "xuyName": ["a", "b"]}
    savemat(buffer, content, format="4")  # type: ignore[arg-type]  # the stubs forgot open files
    with pytest.raises(ModelError, match=rf"dslin\.mat that fmilin reads: ABCD .*{why}"):
        loads_dslin(buffer.getvalue(), "file")


@pytest.mark.parametrize("kind", HARMFUL)
@pytest.mark.parametrize("suffix", [".npz", ".fmu"])
def test_archives_that_are_damaged_or_made_to_do_harm(kind: str, suffix: str, tmp_path: Path) -> None:
    path, content = tmp_path / f"plant{suffix}", HARMFUL[kind]
    if suffix == ".fmu":
        content = content.replace(b"A.npy", b"extra")  # not there, or damaged
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"plant\.\w+' is (no|an FMU without)"):
        LinearModel.load(path)
    if suffix == ".npz":
        with pytest.raises(ModelError, match="not a descriptor system"):
            load_descriptor(path)


@pytest.mark.parametrize("kind", ["encrypted", "unknown method", "damaged npz inside"])
def test_a_linear_fmu_whose_inside_cannot_be_read(kind: str, tmp_path: Path) -> None:
    inside = "extra/org.fmilin/linear.npz"
    content = zipped({inside: HARMFUL["7 TiB in the header"]})
    if kind != "damaged npz inside":
        content = flagged(content, *((6, 1) if kind == "encrypted" else (8, 77)))
    path = tmp_path / "plant.fmu"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="encrypted" if kind == "encrypted" else r"is no"):
        LinearModel.load(path)
