"""Linear models as .fmu: through the registry and the command line, there and back."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fmpy
import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.errors import ModelError, UsageError
from fmilin.export.files import dumps, load, save
from fmilin.fmi.platforms import host
from fmilin.formats import Writing
from tests.command_line import main
from tests.hand_made import differences, pendulum


@pytest.fixture(scope="module", autouse=True)
def cache_of_libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def test_the_linear_model_comes_back_bit_by_bit(tmp_path: Path) -> None:
    linear = pendulum()
    linear.save(tmp_path / "plant.fmu")
    assert differences(linear, LinearModel.load(tmp_path / "plant.fmu")) == []


def test_the_name_is_that_of_the_file_and_the_choices_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "my plant.fmu"
    save(pendulum(), path, Writing(fmi="3.0", deviation=True))
    description = fmpy.read_model_description(str(path))
    assert (description.modelName, description.coSimulation.modelIdentifier) == ("my plant", "my_plant")
    assert description.fmiVersion == "3.0"
    assert "in deviations from its operating point" in description.description
    assert {float(v.start) for v in description.modelVariables if v.start} == {0.0}


def test_a_large_model_does_not_carry_itself_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.export.fmu_file.MAX_EMBEDDED_BYTES", 100)
    pendulum().save(tmp_path / "plant.fmu")
    with pytest.raises(ModelError, match=r"an FMU without a linear model in it.*fmilin linearize"):
        load(tmp_path / "plant.fmu")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"x" * 100])
def test_what_is_no_fmu_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "plant.fmu").write_bytes(content)
    with pytest.raises(ModelError, match=r"plant\.fmu' is not an FMU"):
        load(tmp_path / "plant.fmu")


def test_nan_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "plant.fmu"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="The matrix B contains NaN"):
        replace(pendulum(), B=np.array([[np.nan], [1.0]])).save(path)
    assert path.read_bytes() == b"old"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plant.fmu"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    content = dumps(pendulum(), path)  # compiling needs fsync; only the file itself meets the full disk
    monkeypatch.setattr("fmilin.export.fmu_file.dumps", lambda *_: content)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        save(pendulum(), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_from_the_command_line_and_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, plant, again = (str(tmp_path / name) for name in ("lin.fmu", "plant.fmu", "back.npz"))
    source = "fmilin.systems:cartesian_pendulum"
    assert main(["linearize", source, "-o", first, "--no-isolation"]) == 0
    assert main(["convert", first, "-o", plant, "-o", again, "--fmi", "3.0", "--deviation"]) == 0
    assert differences(load(first), load(again)) == []
    with fl.load(plant) as model:
        np.testing.assert_array_equal(fl.linearize(model, independent=load(first).states.names).A, load(first).A)
    assert main(["convert", first, "-o", plant, "--platforms", "win46"]) == 2
    assert "'win46' is not a platform of FMUs" in capfd.readouterr().err
    with zipfile.ZipFile(plant) as archive:
        assert "resources/linear.bin" in archive.namelist()


def test_linearize_writes_an_fmu_as_convert_does(tmp_path: Path) -> None:
    plant, here = tmp_path / "plant.fmu", host().fmi3_folder
    options = ["--fmi", "3.0", "--deviation", "--platforms", here]
    command = ["linearize", "fmilin.systems:four_bar", "--set", "phi=2", "-o", str(plant), *options]
    assert main([*command, "--no-isolation"]) == 0
    description = fmpy.read_model_description(str(plant))
    assert description.fmiVersion == "3.0"
    assert float(description.defaultExperiment.stopTime) > float(description.defaultExperiment.startTime)
    assert 0 < float(description.defaultExperiment.tolerance) < 1e-3
    starts = {v.name: float(v.start) for v in description.modelVariables if v.name == "phi" and v.start}
    assert all(start == 0.0 for start in starts.values())
    with zipfile.ZipFile(plant) as archive:
        assert [name for name in archive.namelist() if name.startswith(f"binaries/{here}/")]


def test_build_takes_platforms(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.fmu"
    here = host().fmi3_folder
    assert (
        main(["build", "fmilin.systems:cartesian_pendulum", "-o", str(path), "--fmi", "3.0", "--platforms", here]) == 0
    )
    assert "model exchange and co-simulation" in capfd.readouterr().err
    with zipfile.ZipFile(path) as archive:
        assert [name for name in archive.namelist() if name.startswith(f"binaries/{here}/")]


def test_a_sampled_model_from_the_command_line(tmp_path: Path) -> None:
    plant = str(tmp_path / "plant.fmu")
    pendulum().save(tmp_path / "plant.mat")
    command = ["convert", str(tmp_path / "plant.mat"), "-o", plant, "--discretize", "zoh", "--sample-time", "0.01"]
    assert main(command) == 0
    description = fmpy.read_model_description(plant)
    assert description.modelExchange is None
    assert float(description.defaultExperiment.stepSize) == 0.01
