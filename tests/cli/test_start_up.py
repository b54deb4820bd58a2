"""Which libraries a command imports: most of the time of a short command is the import of what it does not need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENGINES = {"casadi", "exudyn", "fmpy", "jsbsim", "mujoco", "pinocchio", "rumoca"}
RESULTS = {"control", "matplotlib", "netCDF4", "pandas", "xarray"}
HEAVY = ENGINES | RESULTS | {"IPython", "pydantic", "sympy"}


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["info"], HEAVY | {"scipy"}),
        (["linearize"], HEAVY | {"scipy"}),
        (["linearize", "--json"], HEAVY | {"rich", "scipy"}),
    ],
    ids=["info", "linearize", "linearize --json"],
)
def test_a_command_imports_no_library_that_an_fmu_does_without(
    arguments: list[str], unneeded: set[str], fmus: Path
) -> None:
    command, *options = arguments
    code = f"from fmilin.cli.main import main; main({[command, str(fmus / 'four_bar.fmu'), *options]!r})"
    assert not unneeded & imported_by(code)


def imported_by(code: str) -> set[str]:
    """Return the modules that are loaded when Python has run a program."""
    program = f"{code}\nimport sys; print(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("3", "3")], ids=["unset", "set"])
def test_a_command_has_one_thread_of_openblas_unless_the_user_says_otherwise(given: str | None, expected: str) -> None:
    """On many threads small matrices take many times the processor time. The number is read when NumPy is imported."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if given is not None:
        environment["OPENBLAS_NUM_THREADS"] = given
    code = "import fmilin.__main__, os, sys; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", expected]
