"""Checksums in files of results: a flipped bit is an error or changes no number; other programs may rewrite a file."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import logging
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import fmilin as fl
from fmilin.errors import FmilinError, ModelError
from fmilin.export import mat5, netcdf_file
from fmilin.export.checksum import ArrayDigest, Integrity, compute_checksum, digest_value
from fmilin.export.container import find_conversions
from fmilin.export.files import dumps
from fmilin.export.periodic_record import dumps_chart, load_chart
from fmilin.formats import require_codec
from fmilin.linear_model.descriptor import Descriptor
from fmilin.periodic.chart import FloquetChart
from tests.file_contents import without_checksum
from tests.hand_made import pendulum

EARLIER = Path(__file__).parent / "earlier"
NAMES = sorted(path.name for path in EARLIER.iterdir())
TYPES: dict[str, Any] = {"descriptor": Descriptor, "pendulums": fl.LinearFamily, "van_der_pol": fl.PeriodicModel}
FLIPS = 60  # in each file
needs_octave = pytest.mark.skipif(shutil.which("octave-cli") is None, reason="GNU Octave is not installed")


def load(path: Path) -> Any:
    """Return the result in a file, by the stem of its name up to the first dash."""
    return TYPES.get(path.stem.split("-")[0], fl.LinearModel).load(path)


def load_or_reject(path: Path) -> Any:
    """Return the result in a file, None where an error that names the file says that it cannot be read."""
    try:
        return load(path)
    except FmilinError as error:
        if str(path) not in str(error):
            raise
    return None


def list_arrays(result: Any) -> dict[str, np.ndarray]:
    """Return every array that a file of the result would have."""
    record = find_conversions(type(result).file_kind)[0](result)
    arrays = {name: array.values for name, array in record.arrays.items()}
    for group in ("errors", "derivatives", "descriptor"):
        for name, value in record.facts.get(group, {}).items():
            if isinstance(value, np.ndarray):
                arrays[f"{group}.{name}"] = value
    return arrays


def is_said_to_be_rewritten(result: Any) -> bool:
    if isinstance(result, fl.LinearFamily):
        said = {any(r.kind == "rewritten" for r in result[k].warnings) for k in np.flatnonzero(result.ok).tolist()}
        assert len(said) == 1, "a remark about a file is one about each of its points"
        return said.pop()
    remarks = result.remarks if isinstance(result, fl.PeriodicModel) else result.warnings
    return any(remark.kind == "rewritten" for remark in remarks)


def assert_same_numbers(one: Any, other: Any) -> None:
    arrays, others = list_arrays(one), list_arrays(other)
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


@pytest.fixture(params=NAMES)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of today with the result in a file of an earlier version."""
    name: str = request.param
    load(EARLIER / name).save(tmp_path / name)
    return tmp_path / name


def test_a_flipped_bit_is_an_error_or_changes_no_number(written: Path) -> None:
    content, result = written.read_bytes(), load(written)
    rng = random.Random(written.name)
    rejected = 0
    for _ in range(FLIPS):
        bit = rng.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        written.write_bytes(flipped)
        again = load_or_reject(written)
        if again is None:
            rejected += 1
            continue
        assert_same_numbers(result, again)
        assert isinstance(again, Descriptor) or not is_said_to_be_rewritten(again)
    assert rejected > FLIPS // 4  # the rest are bits of paddings and of what containers say twice


def test_a_file_that_is_cut_off_is_an_error_or_has_the_same_numbers(written: Path) -> None:
    content, result = written.read_bytes(), load(written)
    rng = random.Random(written.name)
    for length in [*(rng.randrange(len(content)) for _ in range(20)), *range(len(content) - 8, len(content))]:
        written.write_bytes(content[:length])
        again = load_or_reject(written)
        if again is not None:
            assert_same_numbers(result, again)


def test_a_file_without_a_checksum_is_read_as_it_is(written: Path) -> None:
    result = load(written)
    content = without_checksum(written.read_bytes(), written.suffix)
    codec: Any = require_codec(written, type(result).file_kind, "read")
    assert codec.decode(written.read_bytes()).integrity is Integrity.INTACT
    assert codec.decode(content).integrity is Integrity.NOT_STATED
    written.write_bytes(content)
    assert_same_numbers(result, again := load(written))
    assert isinstance(again, Descriptor) or not is_said_to_be_rewritten(again)


def test_the_error_says_which_file_is_damaged_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "plant.json"
    pendulum().save(path)
    path.write_text(path.read_text("ascii").replace('"equilibrium": ', '"equilibrium_": '), "ascii")
    with pytest.raises(ModelError, match=r"plant\.json' is damaged.*checksum.*Use an intact copy"):
        fl.LinearModel.load(path)


def test_a_chart_of_multipliers_has_a_checksum(tmp_path: Path) -> None:
    chart = FloquetChart(
        {"k": np.array([1.0, 2.0])},
        period=np.ones(2),
        multipliers=np.ones((2, 1), complex),
        exponents=np.ones((2, 1), complex),
        frequencies=np.ones((2, 1)),
        stable=np.array([True, False]),
        margin=np.zeros(2),
        reasons=np.array(["", ""], dtype=object),
        undecided=np.array([False, False]),
    )
    path = tmp_path / "chart.json"
    content = dumps_chart(chart)
    path.write_bytes(content)
    np.testing.assert_array_equal(load_chart(path).multipliers, chart.multipliers)
    path.write_bytes(content.replace(b"[[1.0, 0.0]]", b"[[1.5, 0.0]]", 1))
    with pytest.raises(ModelError, match="checksum"):
        load_chart(path)


# Other programs.


def octave(script: str, folder: Path) -> None:
    command = ["octave-cli", "--no-gui", "-q", "--no-history", "--no-init-file", "--eval", script]
    subprocess.run(command, cwd=folder, check=True, timeout=120)


@needs_octave
@pytest.mark.parametrize("option", ["-v6", "-v7"])
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".mat")])
def test_octave_may_save_a_file_and_is_named_where_it_changed_the_content(
    name: str, option: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = load(EARLIER / name)
    result.save(tmp_path / name)
    stem = name.removesuffix(".mat")
    octave(
        f"S = load('{name}'); save('{option}', '{stem}-same.mat', '-struct', 'S');"
        f"S.A = 2 * S.A; S.mine = 3; save('{option}', '{stem}-other.mat', '-struct', 'S');",
        tmp_path,
    )
    same = load(tmp_path / f"{stem}-same.mat")
    assert_same_numbers(result, same)
    with caplog.at_level(logging.WARNING, "fmilin.files"):
        other = load(tmp_path / f"{stem}-other.mat")
    np.testing.assert_array_equal(other.A, 2 * result.A)
    if isinstance(result, Descriptor):  # which has no remarks
        assert "Another program has saved the file" in caplog.text
        return
    assert not is_said_to_be_rewritten(same)
    assert is_said_to_be_rewritten(other)


@pytest.mark.parametrize("front", ["MATLAB 5.0 MAT-file, written by nobody", "GATLAB 5.0 MAT-file, Platform: PCWIN64"])
def test_any_other_text_in_front_of_a_mat_file_is_damage(front: str, tmp_path: Path) -> None:
    variables = mat5.read(dumps(pendulum(), "plant.mat"))
    content = mat5.write(variables | {"A": 2 * variables["A"]})
    (tmp_path / "plant.mat").write_bytes(front.encode().ljust(124) + content[124:])
    with pytest.raises(ModelError, match="checksum"):
        fl.LinearModel.load(tmp_path / "plant.mat")


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".npz")])
def test_numpy_may_save_a_file_and_a_changed_content_is_told(name: str, tmp_path: Path) -> None:
    result = load(EARLIER / name)
    result.save(tmp_path / name)
    arrays: dict[str, Any] = dict(np.load(tmp_path / name))
    np.savez_compressed(tmp_path / name, **arrays)
    assert_same_numbers(result, load(tmp_path / name))
    np.savez(tmp_path / name, **{**arrays, "A": arrays["A"].astype(np.float32)})
    other = load(tmp_path / name)
    np.testing.assert_array_equal(other.A, result.A.astype(np.float32))
    assert isinstance(other, Descriptor) or is_said_to_be_rewritten(other)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".json")])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_may_be_written_anew_and_a_changed_content_is_told(
    name: str, indent: int | None, tmp_path: Path
) -> None:
    result = load(EARLIER / name)
    result.save(tmp_path / name)
    document = json.loads((tmp_path / name).read_bytes())
    (tmp_path / name).write_text(json.dumps(document, indent=indent, sort_keys=True))
    again = load(tmp_path / name)
    assert_same_numbers(result, again)
    assert not is_said_to_be_rewritten(again)
    (tmp_path / name).write_text(json.dumps({**document, "comment": "mine"}, indent=indent))
    assert is_said_to_be_rewritten(load(tmp_path / name))


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".nc")])
def test_xarray_may_save_a_file_and_a_changed_content_is_told(name: str, tmp_path: Path) -> None:
    result = load(EARLIER / name)
    result.save(tmp_path / name)
    with xr.open_dataset(tmp_path / name, engine="h5netcdf") as file:
        data = file.load()
    data.to_netcdf(tmp_path / name, engine="h5netcdf")
    again = load(tmp_path / name)
    assert_same_numbers(result, again)
    assert not is_said_to_be_rewritten(again)
    (2 * data["A"]).to_dataset().to_netcdf(tmp_path / name, engine="h5netcdf", mode="a")
    other = load(tmp_path / name)
    np.testing.assert_array_equal(other.A, 2 * result.A)
    assert is_said_to_be_rewritten(other)


def test_a_netcdf_file_that_is_changed_in_place_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "pendulums.nc"
    load(EARLIER / path.name).save(path)
    with h5py.File(path, "r+") as file:
        file["A"][...] = 2 * file["A"][...]
    with pytest.raises(ModelError, match="checksum"):
        load(path)


def test_a_family_that_is_written_in_parts_has_the_checksum_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netcdf_file, "MAX_BLOCK_SIZE", 10)
    result = load(EARLIER / "pendulums.nc")
    result.save(tmp_path / "pendulums.nc")
    content = (tmp_path / "pendulums.nc").read_bytes()
    (tmp_path / "pendulums.nc").write_bytes(content[: content.rindex(b"\nfmilin bytes ")])  # the attribute decides
    again = load(tmp_path / "pendulums.nc")
    assert_same_numbers(result, again)
    assert not is_said_to_be_rewritten(again)


def test_a_damaged_netcdf_file_leaves_nothing_that_fails_when_it_is_deleted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = (EARLIER / "pendulums.nc").read_bytes()  # has no checksum, so that HDF5 gets it
    assert b"checksum" not in content
    for begin in range(48, 400, 16):
        damaged = content[:begin] + bytes(16) + content[begin + 16 :]
        (tmp_path / "pendulums.nc").write_bytes(damaged)
        load_or_reject(tmp_path / "pendulums.nc")
        gc.collect()
    assert capfd.readouterr().err == ""


# NaN.


@pytest.mark.parametrize("name", ["A", "T", "transitions", "jump", "times", "f0", "x"])
def test_nan_in_a_matrix_of_a_periodic_model_is_rejected(name: str, tmp_path: Path) -> None:
    path = tmp_path / "van_der_pol.npz"
    load(EARLIER / path.name).save(path)
    arrays: dict[str, Any] = dict(np.load(io.BytesIO(without_checksum(path.read_bytes(), ".npz"))))
    arrays[name].flat[-1] = np.nan
    np.savez(path, **arrays)
    with pytest.raises(ModelError, match=f"{name} has NaN, infinite or missing entries"):
        load(path)


def test_nan_in_an_error_estimate_of_a_periodic_model_stays(tmp_path: Path) -> None:
    path = tmp_path / "van_der_pol.npz"
    load(EARLIER / path.name).save(path)
    arrays: dict[str, Any] = dict(np.load(io.BytesIO(without_checksum(path.read_bytes(), ".npz"))))
    arrays["error"][0, 0, 0] = np.nan
    np.savez(path, **arrays)
    assert np.isnan(load(path).error[0, 0, 0])


@pytest.mark.parametrize("name", ["A", "B", "C", "D", "T", "f0", "y0"])
def test_nan_at_a_good_point_of_a_family_is_rejected_and_at_a_failed_one_stays(name: str, tmp_path: Path) -> None:
    path = tmp_path / "pendulums.npz"
    load(EARLIER / path.name).save(path)
    arrays: dict[str, Any] = dict(np.load(io.BytesIO(without_checksum(path.read_bytes(), ".npz"))))
    assert np.isnan(load(path).array(name)[2]).all()
    arrays[name][1].flat[0] = np.nan
    np.savez(path, **arrays)
    with pytest.raises(ModelError, match=f"{name} has NaN or infinite entries at a point that is good"):
        load(path)


# The checksum itself.


def sha(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def test_a_checksum_is_what_the_description_of_its_parts_says() -> None:
    numbers = sha(b"numbers" + struct.pack("<2q2d", 1, 2, 3.0, 4.5))
    mixed = sha(b"list" + sha(b"text" + "é".encode()) + sha(b"constant None"))
    expected = sha(b"mapping" + sha(b"texta") + numbers + sha(b"textb") + mixed)
    assert compute_checksum({"b": ["é", None], "a": [3, 4.5]}) == f"sha256:{expected.hex()}"


def test_a_checksum_is_independent_of_how_numbers_are_stored() -> None:
    matrix = np.array([[1.0, 2.0, np.nan], [-3.0, 0.0, 5.0]])
    expected = digest_value(matrix)
    quiet_nan = matrix.copy()
    quiet_nan.view(np.uint64)[0, 2] ^= 1
    assert np.isnan(quiet_nan[0, 2])
    for other in (np.asfortranarray(matrix), matrix.astype(">f8"), matrix.astype(np.float32), matrix + 0j, quiet_nan):
        assert digest_value(other) == expected
    assert digest_value(np.array(["a", "b"])) == digest_value(np.array(["a", "b"], dtype="U9"))


def test_a_checksum_depends_on_values_shapes_and_names() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    others: list[Any] = [matrix, matrix.T, matrix.reshape(3, 2), -matrix, matrix + 1j, matrix.ravel(), "012345"]
    others += [matrix + np.finfo(float).tiny, {"A": matrix}, {"B": matrix}, [], {}, "", None, True, False, 1.0, [1.0]]
    others += [["ab", "c"], ["a", "bc"], np.array(["ab", "c"]), np.array([["ab"], ["c"]])]
    assert len({digest_value(other) for other in others}) == len(others)


def test_an_array_in_blocks_has_the_digest_of_the_whole() -> None:
    array = np.arange(24.0).reshape(4, 3, 2)
    blocks = ArrayDigest(array.shape)
    for begin, end in ((0, 1), (1, 1), (1, 4)):
        blocks.update(array[begin:end])
    assert blocks.finish() == digest_value(array)
