"""GNU Octave with its control package as a second opinion."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.io import loadmat

__all__ = ["needs_octave", "run", "texts"]


def _has_control_package() -> bool:
    if shutil.which("octave-cli") is None:
        return False
    command = ["octave-cli", "--no-gui", "-q", "--no-history", "--eval", "pkg load control"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_octave = pytest.mark.skipif(
    not _has_control_package(),
    reason="GNU Octave with its control package is not installed (Debian: octave octave-control); CI has it",
)


# Octave's texts are bytes, which no .mat file can say: numbers they must be on the way out.
_TEXTS = "function codes = texts(cells), codes = double(strjoin(cells(:)', char(1))); end"


def texts(codes: NDArray[np.float64]) -> list[str]:
    """Return the texts whose bytes Octave's function of the same name made numbers of."""
    return bytes(codes.ravel().astype(np.uint8)).decode("utf-8").split("\x01")


def run(script: str, folder: Path, *results: str) -> dict[str, Any]:
    """Run ``script`` in ``folder`` and return the named variables that it leaves behind."""
    saved = f"save('-v7', 'results.mat', {', '.join(repr(r) for r in results)});"
    (folder / "script.m").write_text(f"pkg load control\n{_TEXTS}\n{script}\n{saved}\n", encoding="utf-8")
    command = ["octave-cli", "--no-gui", "-q", "--no-history", "--no-init-file", "script.m"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return loadmat(folder / "results.mat")
