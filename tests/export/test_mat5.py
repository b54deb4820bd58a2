"""Our MAT-files against SciPy's reader and writer, bit by bit."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from fmilin.export.mat5 import read, write

TEXTS = st.text(st.characters(exclude_characters="\0"), max_size=40)
SIXTEEN_BITS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="\0"))


def with_scipy(content: bytes) -> dict[str, Any]:
    return loadmat(io.BytesIO(content), chars_as_strings=True)  # type: ignore[arg-type]  # the stubs forgot open files


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_texts_come_back(cell: list[str], text: str) -> None:
    assert read(write({"cell": cell, "text": text, "s": {"a": text, "b": [cell, []]}})) == {
        "cell": cell,
        "text": text,
        "s": {"a": text, "b": [cell, []]},
    }


@settings(max_examples=60, deadline=None)
@given(SIXTEEN_BITS)
def test_scipy_reads_the_same_texts(text: str) -> None:
    found = with_scipy(write({"x": [text]}))["x"][0, 0]
    assert (str(found[0]) if found.size else "") == text


@pytest.mark.parametrize("text", ["🙂", "a🙂b", "größe 🙂"])
def test_scipy_reads_what_does_not_fit_into_16_bits(text: str) -> None:
    assert str(with_scipy(write({"x": text}))["x"][0]) == text
    assert read(write({"x": text})) == {"x": text}


def test_texts_in_utf16_as_matlab_writes_them() -> None:
    # a🙂b in the way of MATLAB: four units of 16 bits, the middle ones a surrogate pair.
    plain = write({"x": "aßçb"})
    assert read(plain.replace("aßçb".encode("utf-16-le"), "a🙂b".encode("utf-16-le"))) == {"x": "a🙂b"}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3), st.integers(0, 3), st.data())
def test_numbers_are_those_of_scipy_bit_by_bit(rows: int, columns: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(), min_size=rows * columns, max_size=rows * columns))
    matrix = np.array(values).reshape(rows, columns)
    both = np.empty((rows, columns), dtype=complex)
    both.real, both.imag = matrix, matrix[::-1]
    content = write({"A": matrix, "Long_name": both})
    for found in (read(content), with_scipy(content)):
        assert found["A"].shape == (rows, columns)
        assert np.asfortranarray(found["A"]).tobytes() == np.asfortranarray(matrix).tobytes()
        assert np.array_equal(found["Long_name"].imag, both.imag, equal_nan=True)


@pytest.mark.parametrize("compressed", [False, True])
def test_files_of_scipy(compressed: bool) -> None:
    cell = np.empty((2, 1), dtype=object)
    cell[0, 0], cell[1, 0] = "größe 🙂", np.arange(3.0)
    buffer = io.BytesIO()
    variables = {"c": cell, "i": np.array([[1, -2]], dtype=np.int16), "s": {"deep": {"x": 1.5}, "t": "ab"}, "l": True}
    savemat(buffer, variables, do_compression=compressed)  # type: ignore[arg-type]  # the stubs forgot open files
    found = read(buffer.getvalue())
    assert found["c"][0] == "größe 🙂"
    assert found["c"][1].tolist() == [[0.0, 1.0, 2.0]]
    assert found["i"].tolist() == [[1.0, -2.0]]
    assert found["s"]["deep"]["x"].tolist() == [[1.5]]
    assert found["s"]["t"] == "ab"
    assert found["l"].tolist() == [[1.0]]


def test_structs_and_cells_as_scipy_sees_them() -> None:
    found = with_scipy(write({"s": {"a": "x", "much_longer_name_of_a_field": [1.0, "y"]}, "v": 2.5}))
    assert found["v"].tolist() == [[2.5]]
    assert found["s"]["a"][0, 0][0] == "x"
    assert found["s"]["much_longer_name_of_a_field"][0, 0].shape == (2, 1)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_is_a_value_error_or_some_value(data: st.DataObject) -> None:
    whole = bytearray(write({"A": np.eye(3), "c": ["größe", "b"], "s": {"x": 1.0}}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    except (ValueError, KeyError, IndexError, TypeError):
        return
