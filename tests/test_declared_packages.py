"""What is imported is declared in pyproject.toml, and what is required is imported, here and in the adapters."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {"fmilin": ROOT, "fmilin_mujoco": ROOT / "adapters/mujoco", "fmilin_pinocchio": ROOT / "adapters/pinocchio"}
INSTALLED_AS = {"PIL": "pillow", "mpl_toolkits": "matplotlib", "pinocchio": "pin"}
"""Packages by what is imported, where that has another name."""
FOR_USERS = ("families", "wrap", "cross", "explore", "robust", "mcp")
"""Extras whose packages are imported when they are installed."""


def imported(package: str) -> set[str]:
    """Return the names of all other packages that the modules of one import, anywhere in them."""
    names: set[str] = set()
    for path in (PACKAGES[package] / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module)
    tops = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {package}
    return {INSTALLED_AS.get(top, top).replace("_", "-") for top in tops}


def project(package: str) -> dict[str, Any]:
    metadata: dict[str, Any] = tomllib.loads((PACKAGES[package] / "pyproject.toml").read_text(encoding="utf-8"))
    return metadata["project"]  # type: ignore[no-any-return]


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;\s]", requirement)[0] for requirement in requirements}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_that_is_imported_is_declared(package: str) -> None:
    extras = project(package).get("optional-dependencies", {})
    declared = named([*project(package)["dependencies"], *(r for extra in FOR_USERS for r in extras.get(extra, []))])
    assert imported(package) <= declared


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_that_is_required_is_imported(package: str) -> None:
    assert named(project(package)["dependencies"]) <= imported(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_requirement_has_a_lower_bound(package: str) -> None:
    assert all(">=" in requirement for requirement in project(package)["dependencies"])


@pytest.mark.parametrize("package", PACKAGES)
def test_the_licence_goes_into_what_is_published(package: str) -> None:
    (name,) = project(package)["license-files"]
    assert (PACKAGES[package] / name).read_text() == (ROOT / "LICENSE").read_text()


def test_what_ci_installs_is_pinned_with_hashes() -> None:
    """``.ci/lock`` writes the file; it holds for other systems and registries, and names none."""
    text = (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8")
    pins = re.findall(
        r"^([\w.-]+)==[^\s;]+[^\\\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE
    )
    assert len(pins) == len(re.findall(r"^\S", text, re.MULTILINE))
    metadata = project("fmilin")
    extras = [r for extra in ("test", "docs", "families") for r in metadata["optional-dependencies"][extra]]
    adapters = [r for package in PACKAGES for r in project(package)["dependencies"]]
    assert named([*metadata["dependencies"], *extras, *adapters]) - {"fmilin"} <= {name for name, _ in pins}
    assert "://" not in text
