"""Families in files: nothing is lost, Octave reads them, other files are refused."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.systems import cartesian_pendulum
from tests.command_line import main
from tests.export.octave import needs_octave, run
from tests.families.plants import oscillator
from tests.file_contents import without_checksum, written

FORMATS = ["nc", "mat", "npz", "json"]
MAKERS: dict[str, Callable[[], fl.LinearFamily]] = {
    "with a failed point": lambda: fl.sweep(cartesian_pendulum(), {"x": [0.0, 0.6, 1.4], "F": [0.0, 1.0]}),
    "a line": lambda: fl.sweep(oscillator(), {"k": [1.0, 2.0, 3.0]}),
    "a list": lambda: fl.sweep(oscillator(), {"k": [1.0, 2.0], "d": [0.5, 0.6]}, zipped=True),
    "all failed": lambda: fl.sweep(cartesian_pendulum(), {"x": [2.0, 3.0]}),
    "nothing in, nothing out": lambda: fl.sweep(oscillator(), {"k": [1.0, 2.0]}, inputs=[], outputs=[]),
    "names that other things have": lambda: fl.sweep(oscillator(), {"F": [1.0, 2.0], "q": [0.0, 1.0]}),
}


def same(a: fl.LinearFamily, b: fl.LinearFamily) -> None:
    for name in a.layout.shapes:
        np.testing.assert_array_equal(a.array(name), b.array(name), err_msg=name)
    np.testing.assert_array_equal(a.ok, b.ok)
    assert a.reasons.tolist() == b.reasons.tolist()
    assert a.template == b.template
    assert a.choices == b.choices
    assert dict(a.remarks) == dict(b.remarks)
    assert {n: v.tolist() for n, v in a.axes.items()} == {n: v.tolist() for n, v in b.axes.items()}
    for k in np.flatnonzero(a.ok.ravel()).tolist():
        x, y = a.linear_model(k), b.linear_model(k)
        assert (x.point, x.states, x.warnings) == (y.point, y.states, y.warnings)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", MAKERS)
def test_nothing_is_lost(name: str, suffix: str, tmp_path: Path) -> None:
    family = MAKERS[name]()
    family.save(tmp_path / f"family.{suffix}")
    same(family, fl.LinearFamily.load(tmp_path / f"family.{suffix}"))
    assert [p.name for p in tmp_path.iterdir()] == [f"family.{suffix}"]


def test_xarray_has_labelled_axes(tmp_path: Path) -> None:
    family = MAKERS["with a failed point"]()
    data = family.to_xarray()
    assert data.A.dims == ("x", "F", "state", "state_")
    np.testing.assert_array_equal(data.A.sel(x=0.6, F=1.0, state="vx", state_="x"), family.A[1, 1, 1, 0])
    family.save(tmp_path / "family.nc")
    with xarray.open_dataset(tmp_path / "family.nc", engine="h5netcdf") as read:
        np.testing.assert_array_equal(read.A, family.A)
        assert [str(n) for n in read.full_state.values] == list(family.full_states.names)


def test_json_is_the_contract(tmp_path: Path) -> None:
    family = MAKERS["with a failed point"]()
    family.save(tmp_path / "family.json")
    document = json.loads((tmp_path / "family.json").read_text())
    assert document["format"] == "fmilin-family/1"
    assert document["axes"] == {"x": [0.0, 0.6, 1.4], "F": [0.0, 1.0]}
    assert [p["index"] for p in document["points"]] == [[i, j] for i in range(3) for j in range(2)]
    bad, good = document["points"][4], document["points"][3]
    assert (bad["ok"], good["ok"], good["reason"]) == (False, True, "")
    assert "cannot be satisfied" in bad["reason"]
    np.testing.assert_array_equal(good["A"], family.A[1, 1])
    assert len(good["eigenvalues"][0]) == 2


@needs_octave
def test_octave_reads_arrays_for_lpv_blocks(tmp_path: Path) -> None:
    family = fl.sweep(oscillator(), {"k": [1.0, 2.0, 3.0], "d": [0.1, 0.2]})
    family.save(tmp_path / "family.mat")
    family.save(tmp_path / "plant.m")
    script = """
    S = load('family.mat'); shape = size(S.A); entry = S.A(2, 1, 3, 2); off = size(S.offsets.x); ks = S.grid.values{1};
    [sys, offsets, points] = plant(); a = sys{3, 2}.a(2, 1); eigs = size(S.eigenvalues);
    """
    found = run(script, tmp_path, "shape", "entry", "off", "ks", "a", "eigs")
    assert found["shape"].ravel().tolist() == [2, 2, 3, 2]
    assert found["entry"] == found["a"] == -3.0
    assert found["off"].ravel().tolist() == [2, 1, 3, 2]
    assert found["eigs"].ravel().tolist() == [2, 3, 2]
    assert found["ks"].ravel().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("suffix", FORMATS)
def test_another_version_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"family.{suffix}"
    MAKERS["a line"]().save(path)
    content = without_checksum(path.read_bytes(), path.suffix)
    for code in ("ascii", "utf-16-le", "utf-32-le"):
        content = content.replace("fmilin-family/1".encode(code), "fmilin-family/7".encode(code))
    path.write_bytes(content)
    if suffix == "npz":  # it has check sums
        arrays = dict(np.load(io.BytesIO(written(MAKERS["a line"](), ".npz"))))
        arrays["fmilin"] = np.array(str(arrays["fmilin"]).replace("family/1", "family/7"))
        np.savez(path, **arrays)
    with pytest.raises(fl.ModelError, match="fmilin-family/7"):
        fl.LinearFamily.load(path)


@pytest.mark.parametrize(("wrong", "why"), [(1j, "A is complex"), (np.nan, "A has NaN")])
def test_a_matrix_that_is_none_is_refused(wrong: complex, why: str, tmp_path: Path) -> None:
    arrays = dict(np.load(io.BytesIO(written(MAKERS["a line"](), ".npz"))))
    arrays["A"] = arrays["A"] + wrong
    np.savez(tmp_path / "family.npz", **arrays)
    with pytest.raises(fl.ModelError, match=why):
        fl.LinearFamily.load(tmp_path / "family.npz")


@pytest.mark.parametrize("header", ["(1000000, 1000000)", "(((("])
def test_a_header_that_asks_for_anything_is_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "family.npz"
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {header}, }}\n".encode()
    content = written(MAKERS["a line"](), ".npz")
    with zipfile.ZipFile(io.BytesIO(content)) as good, zipfile.ZipFile(path, "w") as damaged:
        for name in good.namelist():
            array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
            damaged.writestr(name, array if name == "A.npy" else good.read(name))
    with pytest.raises(fl.ModelError, match=str(path)):
        fl.LinearFamily.load(path)
    assert main(["convert", str(path), "-o", str(tmp_path / "plant.json")]) == ModelError.exit_status


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_no_family_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"family.{suffix}"
    with pytest.raises(fl.ModelError, match="No such file"):
        fl.LinearFamily.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(fl.ModelError, match=str(path)):
        fl.LinearFamily.load(path)
    if suffix != "nc":
        fl.linearize(oscillator()).save(path)
        with pytest.raises(fl.ModelError, match=str(path)):
            fl.LinearFamily.load(path)


def test_suffixes() -> None:
    family = MAKERS["a line"]()
    with pytest.raises(fl.UsageError, match=r"as a family: it has the suffix '\.fmu'"):
        family.save("family.fmu")
    with pytest.raises(fl.UsageError, match="a program"):
        fl.LinearFamily.load("family.m")
    with pytest.raises(fl.UsageError, match="nothing to write"):
        MAKERS["all failed"]().save("family.m")


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    family = MAKERS["a line"]()
    for package in ("h5netcdf", "h5py", "xarray"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(fl.UsageError, match=r"pip install 'fmilin\[families\]'"):
        family.save(tmp_path / "family.nc")
    with pytest.raises(fl.UsageError, match="the package xarray"):
        family.to_xarray()


def test_along_a_path_the_type_is_the_same(tmp_path: Path) -> None:
    model = cartesian_pendulum()
    start = fl.operating_point(model, {"x": 0.2})
    family = fl.linearize_along(model, fl.snapshots(model, start, times=[0.1, 0.2, 0.4]))
    assert isinstance(family, fl.LinearFamily)
    assert list(family.axes) == ["time"]
    for suffix in FORMATS:
        family.save(tmp_path / f"family.{suffix}")
        same(family, fl.LinearFamily.load(tmp_path / f"family.{suffix}"))
    with xarray.open_dataset(tmp_path / "family.nc", engine="h5netcdf") as read:
        np.testing.assert_array_equal(read.A.sel(time=0.2), family.A[1])
    np.testing.assert_array_equal(family.to_xarray().A.sel(time=0.4), family.A[2])


@needs_octave
def test_octave_reads_models_along_a_path(tmp_path: Path) -> None:
    model = cartesian_pendulum()
    family = fl.linearize_along(model, fl.snapshots(model, fl.operating_point(model, {"x": 0.2}), times=[0.1, 0.4]))
    family.save(tmp_path / "family.mat")
    family.save(tmp_path / "way.m")
    script = """
    S = load('family.mat'); shape = size(S.A); t = S.grid.values{1}; first = S.A(:, :, 1);
    rates = S.offsets.dx(:, 1, 2);
    [sys, offsets, points] = way(); second = sys{2}.a; same = offsets.dx(:, 1, 2); at = points(2).time;
    """
    found = run(script, tmp_path, "shape", "t", "first", "rates", "second", "same", "at")
    assert found["shape"].ravel().tolist() == [2, 2, 2]
    assert found["t"].ravel().tolist() == [0.1, 0.4]
    assert float(found["at"].squeeze()) == 0.4
    np.testing.assert_array_equal(found["first"], family.A[0])
    np.testing.assert_array_equal(found["second"], family.A[1])
    np.testing.assert_array_equal(found["rates"].ravel(), family.f0[1])
    np.testing.assert_array_equal(found["same"].ravel(), family.f0[1])
