"""mypy and pyright over the code that users see; both run once, beside each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.typing.sources import CASES, ROOT, write_sources

SETTINGS = Path(__file__).with_name("mypy.ini")
CACHE = ROOT / ".mypy_cache" / "documentation"
PYRIGHT_SETTINGS = {"typeCheckingMode": "standard", "pythonVersion": "3.11"}

# Complaints that fmilin can do nothing about, by their cause.
COMPLAINTS_ABOUT_LIBRARIES = {
    "numpy: pyright does not see .real and .imag of arrays whose type is not known": (
        r'Cannot access attribute "(real|imag)" for class "(ndarray\[_AnyShape, dtype\[Any\]\]|NDArray\[Any\])"'
    ),
}


@dataclass(frozen=True)
class Complaint:
    """An error that a type checker reports."""

    checker: str  # "mypy" or "pyright"
    module: str  # the file name, see :mod:`tests.typing.sources`
    line: int
    rule: str
    message: str

    @property
    def is_about_a_library(self) -> bool:
        """Whether the cause is a library without types."""
        patterns = COMPLAINTS_ABOUT_LIBRARIES.values()
        return self.checker == "pyright" and any(re.search(pattern, self.message) for pattern in patterns)

    @property
    def is_about_an_import(self) -> bool:
        """Whether a module, or a name in one, cannot be resolved."""
        if self.rule in ("import-not-found", "import-untyped", "reportMissingImports"):
            return True
        unknown_name = r'^Module .*has no attribute|is unknown import symbol|is not a known attribute of module "fmilin'
        return re.search(unknown_name, self.message) is not None


def check_sources(folder: Path) -> tuple[dict[str, Path], list[Complaint]]:
    """Write the modules into a folder and check them; return what each is made of, and the complaints.

    In the cases pyright infers types from the code of python-control, as it does in an editor. In documentation and
    examples it does not: what it infers there (from defaults: ``p=2`` is taken to be an integer) is often wrong.
    """
    sources = write_sources(folder)
    cases = sorted(name for name, source in sources.items() if source.parent == CASES)
    pages = sorted(set(sources) - set(cases))
    python = sys.executable
    mypy = [python, "-m", "mypy", "--config-file", SETTINGS, "--python-executable", python, "--cache-dir", CACHE]
    commands = [
        [*mypy, "--output", "json", *pages, *cases],
        _pyright_command(folder / "pages.json", pages, infers_types=False),
        _pyright_command(folder / "cases.json", cases, infers_types=True),
    ]
    with ThreadPoolExecutor(max_workers=2) as pool:
        printed = list(pool.map(lambda command: _run(command, folder), commands))
    pyright = [complaint for text in printed[1:] for complaint in pyright_complaints(text)]
    return sources, [*mypy_complaints(printed[0]), *pyright]


def _pyright_command(settings: Path, names: Sequence[str], *, infers_types: bool) -> list[str | Path]:
    """Write the settings of a run of pyright, and return its command."""
    content = PYRIGHT_SETTINGS | {"include": names, "useLibraryCodeForTypes": infers_types}
    settings.write_text(json.dumps(content), encoding="utf-8")
    python = sys.executable
    return [python, "-m", "pyright", "--pythonpath", python, "--outputjson", "-p", settings]


def _run(command: Sequence[str | Path], folder: Path) -> str:
    """Return what a type checker prints; its status 1 says that there are complaints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), f"{done.stdout}\n{done.stderr}"
    return done.stdout


def mypy_complaints(printed: str) -> list[Complaint]:
    """Return the errors in what mypy prints, an object of JSON in each line."""
    entries = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [
        Complaint("mypy", Path(entry["file"]).name, entry["line"], entry["code"] or "", entry["message"])
        for entry in entries
        if entry["severity"] == "error"
    ]


def pyright_complaints(printed: str) -> list[Complaint]:
    """Return the errors in what pyright prints, one object of JSON."""
    document = json.loads(printed[printed.index("{") :])
    return [
        Complaint(
            "pyright",
            Path(entry["file"]).name,
            entry["range"]["start"]["line"] + 1,
            entry.get("rule", ""),
            entry["message"],
        )
        for entry in document["generalDiagnostics"]
        if entry["severity"] == "error"
    ]


def count_unresolved_imports(complaints: Sequence[Complaint]) -> dict[str, int]:
    """Return by checker how many modules and names of fmilin in documentation and examples cannot be resolved."""
    unresolved = [c.checker for c in complaints if c.is_about_an_import and c.module != "mistakes.py"]
    return {checker: unresolved.count(checker) for checker in ("mypy", "pyright")}


def list_mistakes() -> set[int]:
    """Return the lines of ``mistakes.py`` that have a mistake on purpose."""
    text = (CASES / "mistakes.py").read_text(encoding="utf-8")
    return {number for number, line in enumerate(text.splitlines(), 1) if re.search(r"# mistake: \w", line)}
