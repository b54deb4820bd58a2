"""LaTeX and plain text: every number with six digits, every name harmless, nothing unbalanced."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fmilin import LinearModel
from fmilin.adapters import Remark
from fmilin.errors import UsageError
from fmilin.signals import Signal, Signals
from tests.hand_made import pendulum, sized

SIZES = [(0, 0, 0, 0), (0, 2, 2, 1), (2, 0, 0, 0), (3, 1, 0, 2), (13, 2, 12, 3)]


def written(linear: LinearModel, suffix: str) -> str:
    """Return the text of the file that a linear model is saved to."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"plant{suffix}"
        linear.save(path)
        return path.read_text(encoding="utf-8")


def matrices(text: str) -> dict[str, list[list[float]]]:
    """The matrices in a LaTeX text, read back."""
    found = re.findall(r"  (\w+) = \\begin\{bmatrix\}\n(.*?)\n  \\end\{bmatrix\}", text, re.DOTALL)
    number = re.compile(r"\\cdot 10\^\{(-?\d+)\}")
    return {
        letter: [
            [float(number.sub(r"e\1", cell).replace(" ", "")) for cell in row.split("&")]
            for row in body.split("\\\\\n")
        ]
        for letter, body in found
    }


def balanced(text: str) -> bool:
    """Whether braces, environments and dollars of a LaTeX text fit together."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    plain = re.sub(r"\\[{}$&#%_]", "", text)
    depth = 0
    for character in plain:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", plain):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    return depth == 0 and not opened and plain.count("$") % 2 == 0


@pytest.mark.parametrize("sample_time", [0.0, 0.5])
@pytest.mark.parametrize("size", SIZES)
def test_latex_has_every_matrix(size: tuple[int, int, int, int], sample_time: float) -> None:
    linear = replace(sized(*size), sample_time=sample_time)
    text = written(linear, ".tex")
    found = matrices(text)
    for letter in ("A", "B", "C", "D", "T", "T_u"):
        matrix = getattr(linear, letter)
        assert (letter in found) == (matrix.size > 0)
        if matrix.size:
            assert np.allclose(found[letter], matrix, rtol=1e-5)
    assert balanced(text)
    assert ("MaxMatrixCols}{13" in text) == (size[0] == 13)
    assert ("y_{k+1}" in text) == (sample_time > 0)
    assert ("of the sampled motion" in text) == (sample_time > 0 and size[0] > 0)


def test_latex_numbers_are_powers_of_ten() -> None:
    assert matrices(written(pendulum(), ".tex"))["C"][2] == [3.14159, -1e300]
    assert r"-1 \cdot 10^{300}" in written(pendulum(), ".tex")


@settings(max_examples=80, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50))
def test_names_cannot_break_the_latex(name: str) -> None:
    linear = replace(sized(1, 0, 0, 1), outputs=Signals([Signal(name, name)]), warnings=(Remark("rank", name),))
    text = written(linear, ".tex")
    assert balanced(text)
    bare = re.sub(r"\\(text\w+\{\}|[{}$&#%_])", "", text[text.index("outputs $z$") :].split("\\\\")[0])
    assert not set("\\#%_^~") & set(bare)
    assert bare.count("&") == 3


@pytest.mark.parametrize("size", SIZES)
def test_text_has_every_matrix_under_its_names(size: tuple[int, int, int, int]) -> None:
    linear = sized(*size)
    lines = written(linear, ".txt").splitlines()
    assert max(map(len, lines)) <= 100
    if not linear.C.size:
        return
    start = next(i for i, line in enumerate(lines) if line.startswith("C  "))
    columns: list[list[float]] = []
    rows: list[list[float]] = [[] for _ in linear.outputs]
    while lines[start].startswith("C  "):
        for k, name in enumerate(linear.outputs.names):
            assert lines[start + 1 + k].split()[0] == name
            rows[k] += map(float, lines[start + 1 + k].split()[1:])
        start += len(rows) + 2
        columns.append([])
    assert np.allclose(rows, linear.C, rtol=1e-5)
    assert len(columns) == (2 if size[0] == 13 else 1)


def test_text_says_what_the_terminal_says() -> None:
    text = written(pendulum(), ".txt")
    assert "±3.132092 i" in text or "3.1320919" in text
    assert "d(pin.vx)/dt is 1e-17 m/s2" in text
    assert re.search(r"^pin.vx +0\.3 +1e-17$", text, re.MULTILINE)


@pytest.mark.parametrize("suffix", [".tex", ".txt"])
def test_nan_is_refused_and_unknown_accuracy_is_not(suffix: str) -> None:
    with pytest.raises(UsageError, match="matrix D contains NaN"):
        written(replace(pendulum(), D=np.full((3, 1), np.inf)), suffix)
    unknown: LinearModel = replace(pendulum(), accuracy=replace(pendulum().accuracy, A=np.nan, conditioning=np.nan))
    assert "nan" in written(unknown, ".txt")
