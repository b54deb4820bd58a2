"""The C code of FMUs: what is written by hand, and the headers of the standards."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal

from fmilin.fmi.write.description import Standard
from fmilin.ground.errors import ModelError

__all__ = ["runtime_sources"]

Kind = Literal["symbolic", "linear"]

SHARED = ("instance.h", "instance.c", "variables.c", "slopes.c", "steps.c", "saved.c")
PARTICULAR: Mapping[Kind, tuple[str, ...]] = {
    "symbolic": ("symbolic.h", "symbolic.c", "integrator.c"),
    "linear": ("linear.h", "linear.c", "linear_steps.c", "matrix.c", "exponential.c", "resource.c"),
}


def runtime_sources(standard: Standard, kind: Kind) -> dict[str, bytes]:
    """Return the files of the runtime by name, the standard's own headers included.

    What is particular to one model, and ``identity.h``, is still missing.
    """
    runtime = files("fmilin.fmi.write") / "runtime"
    names = (*SHARED, *PARTICULAR[kind], *standard.runtime)
    return {name: (runtime / name).read_bytes() for name in names} | _headers(standard)


def _headers(standard: Standard) -> dict[str, bytes]:
    found = importlib.util.find_spec("fmpy")  # not imported: only its files are wanted
    if found is None or not found.submodule_search_locations:
        raise ModelError(
            "The package FMPy, which brings the headers of the FMI standard, is not installed. Install it."
        )
    folder = Path(found.submodule_search_locations[0]) / "c-code"
    headers = {}
    for name in standard.headers:
        try:
            headers[name] = (folder / name).read_bytes()
        except OSError as error:
            raise ModelError(
                f"The header '{name}' of the FMI standard is missing in the installed package FMPy "
                f"({error.strerror}). Install FMPy again."
            ) from None
    return headers
