"""Libraries by name, from folders of every kind, in a fresh environment, and by several processes at once."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

from fmilin_modelica import front_end
from fmilin_modelica.compiler_cache import private_cache
from fmilin_modelica.libraries import names_needed, versions_used

import fmilin as fl
from fmilin.errors import ModelError, UsageError

pytestmark = pytest.mark.usefixtures("fresh_environment")

PLANAR = {  # a library of plane mechanics in several files that uses another one for its constants
    "package.mo": """package Planar "Plane mechanics"
  annotation (version = "1.4.0", uses(Constants_(version = "2")));
end Planar;
""",
    "package.order": "Parts\nJoints\nExamples\n",
    "Parts/package.mo": 'within Planar;\npackage Parts "Bodies"\nend Parts;\n',
    "Parts/package.order": "Body\n",
    "Parts/Body.mo": """within Planar.Parts;
model Body "A point mass"
  parameter Real m = 1;
  Real r[2](each start = 0), v[2](each start = 0), f[2];
equation
  der(r) = v;
  m*der(v) = f + {0, -m*Constants_.g};
end Body;
""",
    "Joints/package.mo": "within Planar;\npackage Joints\n  constant Real damping = 0.1;\nend Joints;\n",
    "Joints/package.order": "Rod\n",
    "Joints/Rod.mo": """within Planar.Joints;
model Rod
  extends Partial;
  parameter Real L = 1;
equation
  r[1]^2 + r[2]^2 = L^2;
end Rod;
""",
    "Joints/Partial.mo": """within Planar.Joints;
partial model Partial
  Real r[2], f[2], T;
equation
  f = -T*r;
end Partial;
""",
    "Examples.mo": """within Planar;
package Examples
  model Pendulum
    Parts.Body body(m = 2, r(start = {0, -2}));
    Joints.Rod rod(L = 2);
  equation
    body.r = rod.r;
    body.f = rod.f;
  end Pendulum;
end Examples;
""",
}
CONSTANTS = "package Constants_\n  constant Real g = 9.81;\nend Constants_;\n"


def write_library(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def planar(tmp_path):
    return write_library(tmp_path / "libraries" / "Planar 1.4.0", PLANAR)


@pytest.fixture
def constants(tmp_path):
    path = tmp_path / "files" / "Constants_.mo"
    path.parent.mkdir()
    path.write_text(CONSTANTS)
    return path


def assert_is_pendulum(model):
    linear = fl.linearize(model)
    np.testing.assert_allclose(np.abs(linear.eigenvalues().imag), [np.sqrt(9.81 / 2)] * 2, rtol=1e-9)


def test_a_model_of_a_library_goes_by_its_name_and_brings_what_the_library_uses(planar, constants):
    for places in (
        [planar.parent, constants.parent],  # folders that contain libraries
        [planar, constants],  # a library's own folder, and a file
        [str(constants), str(planar)],
    ):
        assert_is_pendulum(fl.load("modelica:Planar.Examples.Pendulum", options={"library": places}))


def test_the_folder_of_a_library_may_have_any_name(planar, constants):
    renamed = planar.rename(planar.with_name("planar-mechanics-master"))
    assert_is_pendulum(fl.load("modelica:Planar.Examples.Pendulum", options={"library": [renamed, constants]}))


def test_a_file_uses_a_library_that_uses_another_one(planar, constants, tmp_path):
    path = tmp_path / "plant.mo"
    path.write_text("model Plant\n  extends Planar.Examples.Pendulum;\nend Plant;\n")
    assert_is_pendulum(fl.load(str(path), options={"library": [planar.parent, constants.parent]}))


def test_the_command_line_takes_libraries_in_the_same_way(planar, constants):
    command = [sys.executable, "-m", "fmilin", "linearize", "modelica:Planar.Examples.Pendulum"]
    done = subprocess.run(
        [*command, "--library", str(planar), "--library", str(constants)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2.2147" in done.stdout


def test_of_several_versions_the_one_that_is_used_counts_else_the_newest(tmp_path):
    folder = tmp_path / "libraries"
    for version, value in (("1.9.0", 1), ("1.10.0", 2), ("2.0.0", 3)):
        text = f"package Lib\n  constant Real c = {value};\nend Lib;\n"
        write_library(folder / f"Lib {version}", {"package.mo": text})
    model = "model M\n  Real x(start = 1);\nequation\n  der(x) = -Lib.c*x;\n%send M;\n"
    for use, rate in (("", -3), ('"1.9.0"', -1), ('"1.8.2"', -2)):
        annotation = f"  annotation (uses(Lib(version = {use})));\n" if use else ""
        path = tmp_path / "model.mo"
        path.write_text(model % annotation)
        np.testing.assert_allclose(fl.linearize(fl.load(str(path), options={"library": [folder]})).A, [[rate]])


def test_a_change_in_a_library_counts_even_if_its_time_does_not_change(planar, constants):
    source, options = "modelica:Planar.Examples.Pendulum", {"library": [planar, constants]}
    stamp = constants.stat()
    assert_is_pendulum(fl.load(source, options=options))
    constants.write_text(CONSTANTS.replace("9.81", "1.62"))
    os.utime(constants, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    linear = fl.linearize(fl.load(source, options=options))
    np.testing.assert_allclose(np.abs(linear.eigenvalues().imag), [0.9] * 2, rtol=1e-9)


def test_folders_without_a_library_and_names_that_are_not_there_are_refused(planar, constants, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match="There is no Modelica library in"):
        fl.load("modelica:Planar.Examples.Pendulum", options={"library": [empty]})
    with pytest.raises(ModelError, match="Available libraries: Planar, Constants_"):
        fl.load("modelica:Planar.Examples.Nothing", options={"library": [planar, constants]})


def test_processes_at_once_with_an_empty_cache_agree(planar, constants, tmp_path):
    """Half of them ask for what is not there."""
    code = (
        "import sys, fmilin as fl\n"
        "model = fl.load(sys.argv[1], options={'library': sys.argv[2:]})\n"
        "print(float(fl.linearize(model).eigenvalues()[1].imag))\n"
    )
    names = ["Pendulum", "Nothing"] * 2
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, f"modelica:Planar.Examples.{name}", str(planar), str(constants)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    answers = [process.communicate() for process in running]
    for name, (out, error) in zip(names, answers, strict=True):
        if name == "Pendulum":
            assert abs(float(out or "nan")) == pytest.approx(np.sqrt(9.81 / 2), rel=1e-9), error
        else:
            assert "ModelError" in error
    caches = list((tmp_path / "home" / "cache" / "fmilin").glob("modelica-*"))
    assert len(caches) == 1
    assert not [run for cache in caches for run in cache.glob("run-*")]
    assert_is_pendulum(fl.load("modelica:Planar.Examples.Pendulum", options={"library": [planar, constants]}))


def test_a_process_that_ends_early_leaves_nothing_in_the_cache(tmp_path):
    shared = tmp_path / "shared"

    class Killed(BaseException):
        pass

    def be_killed():
        with private_cache(shared) as folder:
            (folder / "half.bin").write_bytes(b"half")
            raise Killed

    with pytest.raises(Killed):
        be_killed()
    with private_cache(shared) as folder:
        assert list(folder.iterdir()) == []
        (folder / "whole.bin").write_bytes(b"whole")
    with private_cache(shared) as folder:
        assert (folder / "whole.bin").read_bytes() == b"whole"
        with private_cache(shared) as other:
            (other / "new.bin").write_bytes(b"new")
        assert not (folder / "new.bin").exists()
    with private_cache(shared) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["new.bin", "whole.bin"]


def test_a_file_of_the_cache_that_is_written_anew_removes_the_cache(tmp_path):
    shared = tmp_path / "shared"
    with private_cache(shared) as folder:
        (folder / "a.bin").write_bytes(b"content")
    with private_cache(shared) as folder:
        (folder / "a.bin").write_bytes(b"other content")
    with private_cache(shared) as folder:
        assert list(folder.iterdir()) == []


PAIR = {
    "package.mo": "package Pairs\nend Pairs;\n",
    "Pair.mo": """within Pairs;
model Pair "der of a difference, which the front end rejects as it is written"
  Real a(start = 1, fixed = true), b(start = 0, fixed = true);
equation
  der(a - b) = -2*a;
  der(b) = -3*b;
end Pair;
""",
}


def test_an_error_of_the_text_is_not_hidden_by_one_of_an_unchanged_library(tmp_path):
    library = write_library(tmp_path / "Pairs", PAIR)
    path = tmp_path / "plant.mo"
    path.write_text("model Plant\n  extends Pairs.Pair;\n  Real c;\nend Plant;\n")
    with pytest.raises(ModelError, match=r"unbalanced model: 2 equations, 3 unknowns"):
        fl.load(str(path), options={"library": [library]})


def test_whole_libraries_are_rewritten_like_the_files_that_are_needed(tmp_path, monkeypatch):
    """A class that the search for needed files misses is found all the same."""
    library = write_library(tmp_path / "Pairs", PAIR)
    monkeypatch.setattr(front_end, "find_needed_files", lambda *_: {"Pairs/package.mo": library / "package.mo"})
    linear = fl.linearize(fl.load("modelica:Pairs.Pair", options={"library": [library]}), independent=["a", "b"])
    np.testing.assert_allclose(linear.A, [[-2, -3], [0, -3]])


def test_files_may_begin_with_a_byte_order_mark(tmp_path):
    library = write_library(tmp_path / "Pairs", PAIR)
    file = library / "package.mo"
    file.write_bytes(codecs.BOM_UTF8 + file.read_bytes())
    linear = fl.linearize(fl.load("modelica:Pairs.Pair", options={"library": [library]}), independent=["a", "b"])
    np.testing.assert_allclose(linear.A, [[-2, -3], [0, -3]])


def test_names_of_libraries_are_found_through_other_libraries(planar, constants):
    roots = [str(planar), str(constants)]
    assert names_needed(roots, "model M extends Planar.Examples.Pendulum; end M;") == ["Planar", "Constants_"]
    assert names_needed(roots, "model M Real Planarity; end M;") == []
    assert names_needed(roots, 'model M Real x "as in Planar"; end M; // Planar') == []
    assert versions_used('annotation (uses(A(version = "1.2"), B(version="3")), version = "7")') == {
        "A": "1.2",
        "B": "3",
    }


def test_the_standard_library_is_read_in_a_fresh_environment(standard_library, tmp_path):
    """A trapezoid is held at its start; its block needs ModelicaServices, which nothing here names."""
    path = tmp_path / "pulsed.mo"
    path.write_text(
        "model Pulsed\n  Modelica.Blocks.Sources.Trapezoid s(period = 1);\n  Real x(start = 0, fixed = true);\n"
        "equation\n  der(x) = -x + s.y;\nend Pulsed;\n"
    )
    linear = fl.linearize(fl.load(str(path), options={"library": [standard_library]}))
    np.testing.assert_allclose(linear.A, [[-1]], atol=1e-14)
