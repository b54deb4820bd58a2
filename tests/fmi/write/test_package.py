"""The file: the same bytes each time, buildable from its own sources, never half-written; and it reads back."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fmpy
import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose, assert_array_equal

import fmilin as fl
from fmilin import Model
from fmilin.codegen.compiler import Compiler
from fmilin.errors import ModelError, UsageError
from fmilin.fmi.write import build_fmu
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.fmi.write import samples
from tests.fmi.write.running import Running


def test_the_archive_holds_what_the_standard_wants_and_no_more(tmp_path: Path, version: str) -> None:
    path = build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        dates = {entry.date_time for entry in archive.infolist()}
    folder = fmpy.platform if version == "2.0" else fmpy.platform_tuple
    major = version[0]
    headers = ["TypesPlatform.h"] if major == "2" else ["PlatformTypes.h"]
    assert names[:2] == ["modelDescription.xml", f"binaries/{folder}/pendulum{fmpy.sharedLibraryExtension}"]
    assert set(names[2:]) == {
        "extra/org.fmilin/constraints.toml",
        "extra/org.fmilin/turns.json",
        *(f"sources/fmi{major}{rest}" for rest in (".c", "Functions.h", "FunctionTypes.h", *headers)),
        *(f"sources/{name}" for name in ("functions.c", "instance.c", "instance.h", "variables.c", "slopes.c")),
        *(f"sources/{name}" for name in ("steps.c", "saved.c")),
        *(f"sources/{name}" for name in ("symbolic.c", "symbolic.h", "integrator.c", "identity.h")),
        *(f"sources/{name}" for name in ("model.c", "model.h", "adjoint.c", "equations.c", "equations.h")),
        *(["sources/buildDescription.xml", "sources/fmi3_unused.c"] if major == "3" else []),
    }
    assert dates == {(1980, 1, 1, 0, 0, 0)}
    assert path.stat().st_size < 60_000


BUILD = """
import sys
from pathlib import Path
from fmilin.codegen.compiler import Compiler
from fmilin.fmi.write import build_fmu
from fmilin.model.interface import Model
from fmilin.systems import four_bar
build_fmu(four_bar(), Path(sys.argv[1]), fmi_version=sys.argv[2], compiler=Compiler(use_cache=False))
"""


def test_the_same_model_gives_the_same_bytes_in_every_process(tmp_path: Path, version: str) -> None:
    own = build_fmu(four_bar(), tmp_path / "here.fmu", fmi_version=version)
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", BUILD, str(tmp_path / "there.fmu"), version]
    subprocess.run(command, env=environment, check=True)
    assert (tmp_path / "there.fmu").read_bytes() == own.read_bytes()


def test_another_model_has_another_token(tmp_path: Path) -> None:
    system = samples.decay()
    others = [
        system,
        replace(system, name="other"),
        replace(system, derivatives=(-2 * system.states[0],)),
        replace(system, independent=("x",)),
    ]
    paths = [build_fmu(s, tmp_path / f"{i}.fmu") for i, s in enumerate(others)]
    tokens = {fmpy.read_model_description(str(p)).guid for p in paths}
    assert len(tokens) == len(others)


def test_only_the_functions_of_the_standard_are_visible(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)) as fmu:
        library = fmu.fmu.dll
        for name in ("model_evaluate", "instance_new", "equations_values", "get_values"):
            assert not hasattr(library, name)
        headers = Path(fmpy.__file__).parent / "c-code" / f"fmi{version[0]}Functions.h"
        exported = [
            line.split()[-1].rstrip(";")
            for line in headers.read_text().splitlines()
            if line.strip().startswith(f"FMI{version[0]}_Export fmi")
        ]
        assert len(exported) > 40
        assert [name for name in exported if not hasattr(library, name)] == []


def test_the_binary_can_be_rebuilt_from_the_sources_inside(tmp_path: Path, version: str) -> None:
    path = build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)
    folder = Path(fmpy.extract(str(path), unzipdir=str(tmp_path / "unpacked")))
    (binary,) = folder.glob("binaries/*/pendulum*")
    binary.unlink()
    sources = [f"fmi{version[0]}.c"]
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(binary), *sources, "-lm"], cwd=folder / "sources", check=True)
    result = fmpy.simulate_fmu(str(folder), stop_time=0.1, fmi_type="ModelExchange")
    original = fmpy.simulate_fmu(str(path), stop_time=0.1, fmi_type="ModelExchange")
    assert_allclose(result["angle"], original["angle"], rtol=1e-9)


def test_a_failed_build_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "model.fmu"
    path.write_bytes(b"old")
    with pytest.raises(ModelError, match="failed with exit status"):
        build_fmu(samples.decay(), path, compiler=Compiler(("false",), use_cache=False))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model.fmu"
    path.write_bytes(b"old")
    assert build_fmu(samples.decay(), str(path)) == path
    assert zipfile.is_zipfile(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_wrong_destination_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.fmu"):
        build_fmu(samples.decay(), tmp_path / "model.zip")
    with pytest.raises(UsageError, match="there is no folder"):
        build_fmu(samples.decay(), tmp_path / "nowhere" / "model.fmu")
    (tmp_path / "folder.fmu").mkdir()
    with pytest.raises(UsageError, match="this is a folder"):
        build_fmu(samples.decay(), tmp_path / "folder.fmu")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"Cannot write .*No space left on device"):
        build_fmu(samples.decay(), tmp_path / "model.fmu")
    assert not list(tmp_path.iterdir())


def test_a_version_that_is_not_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"for FMI 2\.0 or 3\.0, not for '1.0'"):
        build_fmu(samples.decay(), tmp_path / "model.fmu", fmi_version="1.0")


def test_only_native_descriptions_can_be_built(tmp_path: Path) -> None:
    path = build_fmu(samples.decay(), tmp_path / "model.fmu")
    with (
        fl.load(path) as model,
        pytest.raises(UsageError, match="native description only, and 'decay' has no symbolic equations"),
    ):
        build_fmu(model, tmp_path / "again.fmu")


@pytest.mark.parametrize(
    ("name", "identifier"), [("2 masses", "model_2_masses"), ("größe", "gr_e"), ("/../x", "x"), ("é", "model")]
)
def test_a_name_that_is_no_identifier_becomes_one(tmp_path: Path, name: str, identifier: str) -> None:
    path = build_fmu(replace(samples.decay(), name=name), tmp_path / "model.fmu")
    description = fmpy.read_model_description(str(path))
    assert (description.modelName, description.modelExchange.modelIdentifier) == (name, identifier)


def test_a_symbol_without_a_value_is_refused(tmp_path: Path) -> None:
    system = replace(samples.decay(), derivatives=(sympy.Symbol("k"),))
    with pytest.raises(ModelError, match="symbol 'k' appears in the equations"):
        build_fmu(system, tmp_path / "model.fmu")


@pytest.mark.parametrize("build", [cartesian_pendulum, four_bar, rolling_disk])
def test_it_reads_back_as_the_model_that_it_was(tmp_path: Path, version: str, build: Callable[[], Model]) -> None:
    native = build()
    path = build_fmu(native, tmp_path / "model.fmu", fmi_version=version)
    x = native.start.states + 0.01 * np.arange(len(native.states))
    u = np.linspace(1.0, 2.0, len(native.inputs))
    with fl.load(path) as whole:
        model = whole.with_interface(outputs=native.outputs.names)
        assert model.states.names == native.states.names
        assert model.states.units == native.states.units
        assert model.inputs.names == native.inputs.names
        assert set(native.outputs.names) <= set(whole.outputs.names)
        assert model.independent == native.independent
        assert len(model.constraints) == len(native.constraints)
        assert_array_equal(model.start.states, native.start.states)
        own, foreign = native.evaluate(0.0, x, u), model.evaluate(0.0, x, u)
        for a, b in ((own.derivatives, foreign.derivatives), (own.outputs, foreign.outputs)):
            assert_allclose(b, a, rtol=1e-12, atol=1e-12)
        assert_allclose(foreign.residuals, own.residuals, rtol=1e-12, atol=1e-13)
