"""Builds the wheel for Windows into a folder, by the build hook and ziglang: .ci/windows_wheel.py FOLDER."""

import os
import sys
from pathlib import Path

from hatchling.build import build_wheel

if __name__ == "__main__":
    os.environ["FMILIN_HOST_TARGET"] = "x86_64-windows"
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    print(build_wheel(str(folder)))
