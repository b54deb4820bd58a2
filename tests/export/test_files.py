"""The three formats that are written and read: nothing may get lost, whatever the names and sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fmilin import LinearModel
from fmilin.errors import ModelError, UsageError
from fmilin.formats import suffixes
from fmilin.linear_model.model import Accuracy
from fmilin.signals import Signal, Signals
from tests.hand_made import LONG, differences, pendulum, sized

# FMUs want a point (test_fmu_file.py), Dymola's file has no place for most of it (test_dslin.py).
SUFFIXES = suffixes("linear model", complete=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_field_comes_back_bit_by_bit(suffix: str, tmp_path: Path) -> None:
    linear = pendulum()
    linear.save(tmp_path / f"plant{suffix}")
    again = LinearModel.load(tmp_path / f"plant{suffix}")
    assert differences(linear, again) == []
    assert len(LONG) > 2000
    assert np.signbit(again.C[1, 0])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("order", "dependent", "inputs", "outputs"),
    [(0, 0, 0, 0), (0, 4, 0, 0), (3, 0, 0, 0), (3, 0, 2, 0), (2, 1, 0, 3), (0, 0, 2, 3), (1, 0, 1, 1), (11, 5, 2, 4)],
)
def test_any_size_keeps_its_shape(
    suffix: str, order: int, dependent: int, inputs: int, outputs: int, tmp_path: Path
) -> None:
    linear = sized(order, dependent, inputs, outputs)
    linear.save(tmp_path / f"plant{suffix}")
    again = LinearModel.load(tmp_path / f"plant{suffix}")
    assert differences(linear, again) == []
    assert again.B.shape == (order, inputs)
    assert again.C.shape == (outputs, order)
    assert again.T.shape == (order + dependent, order)


NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30), unique=True, max_size=4
)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES, data=st.data())
def test_any_name_and_any_double_come_back(suffix: str, names: list[str], data: st.DataObject, tmp_path: Path) -> None:
    size = len(names)
    values = data.draw(st.lists(DOUBLES, min_size=size, max_size=size))
    base = sized(1, 0, 0, size)
    outputs = Signals(Signal(n, unit=n, nominal=abs(v) or None, start=v) for n, v in zip(names, values, strict=True))
    linear = replace(base, outputs=outputs, C=np.array(values).reshape(size, 1))
    linear.save(tmp_path / f"plant{suffix}")
    assert differences(linear, LinearModel.load(tmp_path / f"plant{suffix}")) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unknown_accuracy_comes_back_as_nan(suffix: str, tmp_path: Path) -> None:
    nan = float("nan")
    linear = replace(pendulum(), accuracy=Accuracy(nan, nan, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    linear.save(tmp_path / f"plant{suffix}")
    again = LinearModel.load(tmp_path / f"plant{suffix}").accuracy
    assert np.isnan([again.A, again.B]).all()
    assert again.C == 0.0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_matrix_with_nan_is_refused_and_the_old_file_stays(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"plant{suffix}"
    path.write_bytes(b"old")
    linear = replace(pendulum(), B=np.array([[np.nan], [0.0]]))
    with pytest.raises(UsageError, match="matrix B contains NaN"):
        linear.save(path)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".m", ".mo", ".txt", ".tex"])
@pytest.mark.parametrize("part", ["name", "unit", "description"])
def test_half_a_surrogate_pair_is_no_text(suffix: str, part: str, tmp_path: Path) -> None:
    texts = {"name": "x", "unit": "m", "description": ""} | {part: "a\ud800"}
    signal = Signal(texts["name"], texts["unit"], description=texts["description"])
    linear = replace(sized(1, 0, 0, 1), outputs=Signals([signal]))
    with pytest.raises(UsageError, match="is not a text"):
        linear.save(tmp_path / f"plant{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nul_in_a_name_is_refused(suffix: str, tmp_path: Path) -> None:
    linear = replace(pendulum(), inputs=Signals(["a\0b"]))
    with pytest.raises(UsageError, match="character NUL"):
        linear.save(tmp_path / f"plant{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\x00garbage", b"PK\x03\x04broken", b"MATLAB 5.0" + bytes(200)]
)
def test_a_file_that_is_something_else_is_a_model_error(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"plant{suffix}"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=f"plant\\{suffix}' is no"):
        LinearModel.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_truncation_is_a_model_error(suffix: str, tmp_path: Path) -> None:
    pendulum().save(tmp_path / f"plant{suffix}")
    whole = (tmp_path / f"plant{suffix}").read_bytes()
    cut = tmp_path / f"cut{suffix}"
    for length in np.linspace(1, len(whole) - 10, 25).astype(int):
        cut.write_bytes(whole[:length])
        with pytest.raises(ModelError, match="cut"):
            LinearModel.load(cut)


def test_a_missing_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"Cannot read the linear model .*absent\.mat"):
        LinearModel.load(tmp_path / "absent.mat")


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"written by lin\.save_report\(\)\."):
        pendulum().save(tmp_path / "plant.html")
    with pytest.raises(UsageError, match=r"drawn by lin\.plot\.eigenvalues\(\)\."):
        pendulum().save(tmp_path / "plant.png")
    with pytest.raises(UsageError, match=r"suffix '\.slx'\. Known are \.mat .*\.npz .*\.json"):
        pendulum().save(tmp_path / "plant.slx")
    with pytest.raises(UsageError, match="no suffix"):
        LinearModel.load(tmp_path / "plant")
    assert list(tmp_path.iterdir()) == []


def test_capitals_in_the_suffix_do_not_matter(tmp_path: Path) -> None:
    pendulum().save(tmp_path / "PLANT.MAT")
    assert differences(pendulum(), LinearModel.load(tmp_path / "PLANT.MAT")) == []
