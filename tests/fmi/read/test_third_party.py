"""FMUs that other tools made, as the package gemseo-fmu brings them: against an independent script, and each other."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from tests.by_fmpy import Script

FOUND = find_spec("gemseo_fmu")
if FOUND is None or not FOUND.submodule_search_locations:
    pytest.skip("gemseo-fmu is not installed: pip install --no-deps gemseo-fmu", allow_module_level=True)
FOLDER = Path(FOUND.submodule_search_locations[0]) / "problems/fmu_files/linux"
NAMES = ["add", "Mass_Damper", "ramp", "MassSpringSystem", "MassSpringSubSystem1", "MassSpringSubSystem2"]


@pytest.mark.parametrize("name", NAMES)
def test_matrices_are_those_of_an_independent_script(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.fmu"
    with fl.load(path) as model:
        ours = fl.linearize(model, independent=model.states.names)
    script = Script(path, tmp_path)
    theirs = script.matrices()
    script.close()
    for letter, matrix in zip("ABCD", theirs, strict=True):
        actual = getattr(ours, letter)
        assert actual.shape == matrix.shape
        np.testing.assert_allclose(actual, matrix, atol=1e-7 * np.max(np.abs(matrix), initial=1.0), err_msg=letter)


def test_two_subsystems_make_the_whole(tmp_path: Path) -> None:
    """Each takes the other's position as an input: their matrices, connected, are those of the whole."""
    whole, one, two = (_linear(name) for name in ("MassSpringSystem", "MassSpringSubSystem1", "MassSpringSubSystem2"))
    A = np.zeros((4, 4))
    A[:2, :2], A[2:, 2:] = one.A, two.A
    (x2,), (x1,) = ([i for i, n in enumerate(m.inputs.names) if n in ("x1", "x2")] for m in (one, two))
    out1, out2 = one.outputs.names.index("x1"), two.outputs.names.index("x2")
    A[:2, 2:], A[2:, :2] = np.outer(one.B[:, x2], two.C[out2]), np.outer(two.B[:, x1], one.C[out1])
    np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(A)), np.sort_complex(whole.eigenvalues()), atol=1e-9)


def _linear(name: str) -> fl.LinearModel:
    with fl.load(FOLDER / f"{name}.fmu") as model:
        return fl.linearize(model)
