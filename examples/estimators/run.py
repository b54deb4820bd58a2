"""Three filters on nonlinear models: an attitude, a linkage, a load.

``python run.py`` writes attitude.png, four_bar.png, crane.png and crane_filter.c into the current folder, or into
``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import attitude
import crane
import four_bar

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)
for example in (attitude, four_bar, crane):
    print(f"\n{example.__doc__}")
    for name, value in example.main(output).items():
        shown = value if not isinstance(value, tuple) else ", ".join(f"{v:.5g}" for v in value)
        print(f"  {name:<52} {shown:.5g}" if isinstance(shown, float) else f"  {name:<52} {shown}")
